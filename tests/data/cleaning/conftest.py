"""An English–German corpus of made-up sentences, large enough for every rule to learn what is usual."""

import json
from functools import cache
from itertools import product

import pytest
from py3langid.langid import LanguageIdentifier
from pydantic import TypeAdapter

from mt.config import DataConfig

WHO = {"the old farmer": "der alte Bauer", "my sister": "meine Schwester", "our teacher": "unser Lehrer",
       "a young doctor": "ein junger Arzt", "the neighbor": "der Nachbar", "her brother": "ihr Bruder"}  # fmt: skip
DOES = {"sees": "sieht", "paints": "malt", "buys": "kauft", "sells": "verkauft", "finds": "findet",
        "loses": "verliert"}  # fmt: skip
WHAT = {"the red house": "das rote Haus", "a small boat": "ein kleines Boot", "three books": "drei Bücher",
        "the broken clock": "die kaputte Uhr", "warm bread": "warmes Brot",
        "a green door": "eine grüne Tür"}  # fmt: skip
WHEN = {"every morning": "jeden Morgen", "in winter": "im Winter", "before dinner": "vor dem Abendessen",
        "on the market": "auf dem Markt", "without a word": "ohne ein Wort", "at night": "in der Nacht"}  # fmt: skip


def good_pairs():
    """1,296 pairs."""
    parts = product(WHO.items(), DOES.items(), WHAT.items(), WHEN.items())
    return [tuple(f"{a[side]} {b[side]} {c[side]} {d[side]}.".capitalize() for side in (0, 1)) for a, b, c, d in parts]  # type: ignore[misc]


def write_table(path, pairs):
    path.write_text("".join(json.dumps({"en": en, "de": de}) + "\n" for en, de in pairs))
    return str(path)


@pytest.fixture(scope="session", autouse=True)
def identifier_that_is_read_once():
    """Reading the model takes most of the time in which a small corpus is cleaned."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageIdentifier, "from_model_file", cache(LanguageIdentifier.from_model_file))
        yield


@pytest.fixture
def table(tmp_path):
    """Makes the config of a table with the given training pairs, and validation and test pairs of its own."""

    def make(pairs, **settings):
        others = {split: write_table(tmp_path / f"{split}.jsonl", good_pairs()[:20]) for split in ("valid", "test")}
        values = {"kind": "table", "source_language": "en", "target_language": "de", **others, **settings}
        values.setdefault("train", write_table(tmp_path / "train.jsonl", pairs))
        return TypeAdapter(DataConfig).validate_python(values)

    return make
