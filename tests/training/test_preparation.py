"""What is learnt from the training text before the first update becomes part of the model."""

from pathlib import Path

import pytest

from tests import toy
from tests.cleaning.conftest import good_pairs


@pytest.mark.parametrize(("rules", "marks"), [(3, {".": ()}), (2, {})])
def test_final_marks_are_learnt_by_rules_3(tmp_path: Path, rules: int, marks: dict[str, tuple[str, ...]]) -> None:
    pairs = good_pairs()
    for split, some in (("train", pairs[:600]), ("valid", pairs[600:610]), ("test", pairs[610:620])):
        for place, side in enumerate(("xx", "yy")):
            (tmp_path / f"{split}.{side}").write_text("".join(f"{pair[place]}\n" for pair in some))
    config = toy.config(tmp_path, data={"source_language": "en", "target_language": "de"}, text={"rules": rules})
    layer = toy.prepared(config).layer
    assert layer.rules.final_marks == marks
    (part,) = layer.mark("My sister sees a small boat")
    assert part.added == ("." if marks else "")
