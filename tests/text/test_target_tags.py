"""Tags of target languages are learned, and precede each segment."""

import pytest

from mt.text.target_tags import learn_tags
from tests import languages

WORDS = [("The dog", "Der Hund"), ("The house", "La maison"), ("I'm here", "Je suis là")] * 10


@pytest.mark.parametrize("pattern", ["<2{}>", ">>{}<<", "__{}__", "[{}]", "{}_Latn"])
def test_learned_tags_precede_each_segment(pattern):
    tags = [pattern.format(code) for code in ("de", "fr")]
    pairs = [(f"{tags[number % 2]} {source} {number}.", target) for number, (source, target) in enumerate(WORDS)]
    assert learn_tags(pairs) == tags
    layer = languages.layer(tags=tuple(tags), max_sentences=1)
    for tag in tags:
        line = f"{tag} dogs go 25 times. dogs sit."
        first, second = layer.segment(line)
        assert (first.source, second.source) == (f"{tag} {first.text}", f"{tag} dogs sit.")
        assert first.values == ("25",)
        assert layer.prepare_pair(f"{tag} dogs go 25 times.", "25 Hunde")[0] == first.source
        assert layer.restore(first, first.text) + layer.restore(second, second.text) == "dogs go 25 times. dogs sit."
        assert [segment.source for segment in layer.segment(f"{tag} 25")] == [""]
    assert layer.segment("dogs sit.")[0].source == "dogs sit."


@pytest.mark.parametrize("source", ["I'm here", "<b>the</b> dog", "1. dog", "A-1 dog"])
def test_learn_tags_ignores_other_first_words(source):
    pairs = [(source, "A-1 Hund"), ("The dog", "Der Hund"), ("The house", "Das Haus")]
    assert learn_tags(pairs * 10) == []
