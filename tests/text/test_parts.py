"""Parts of a sentence are translated separately: labels, speech, remarks in brackets, alternatives."""

import pytest

from mt.storage.model_description import TextLayerDescription
from mt.text.layer import TextLayer
from mt.text.line import Line
from mt.translation.hypotheses import Hypothesis
from tests import languages
from tests.golden.engine import KeyedEngine, KeyedTranslator

RARE = dict.fromkeys('()[]"“”:;/&', 0)


def layer(rare=RARE, **rules) -> TextLayer:
    return TextLayer(TextLayerDescription(rare_characters=rare, **rules), languages.layer().tokenizers, "en", "de")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("Note: the dog ran.", [("", "Note", ": "), ("", "the dog ran.", "")]),
        ("Step 1: the dog", [("", "Step \U0010f000", " "), ("", "the dog", "")]),
        ('"I ran," he said.', [('"', "I ran", '," '), ("", "he said.", "")]),
        ('He said, "I ran."', [("", "He said", ", "), ('"', "I ran.", '"')]),
        ('He said "I ran."', [("", "He said", " "), ('"', "I ran.", '"')]),
        ('I saw "Titanic."', [("", "I saw \U0010f000Titanic.\U0010f001", "")]),
        ("(red) The dog ran.", [("(", "red", ") "), ("", "The dog ran.", "")]),
        ("The dog ran (I saw it).", [("", "The dog ran", " "), ("(", "I saw it", ")"), (".", "", "")]),
        ("Note: (red) dog", [("", "Note", ": "), ("(", "red", ") "), ("", "dog", "")]),
        ("(red; blue) dog", [("(", "red", "; "), ("", "blue", ") "), ("", "dog", "")]),
        ("f(x) is the dog", [("", "f\U0010f000x\U0010f001 is the dog", "")]),
    ],
)
def test_sentences_are_split_into_parts(line, parts):
    segments = layer(final_marks={".": ()}).segment(line)
    assert "".join(layer().restore(segment, segment.text) for segment in segments) == line
    texts = [
        (segment.before, segment.text.removesuffix(segment.added_punctuation), segment.after) for segment in segments
    ]
    assert texts == parts


@pytest.fixture(autouse=True)
def reversing(monkeypatch):
    """The engine translates a source into its words in reverse."""
    monkeypatch.setattr(
        KeyedEngine,
        "_hypothesis",
        lambda self, source, *_: Hypothesis(sum(reversed(self._group_by_word(source)), []), -1.0),
    )


@pytest.mark.parametrize(
    ("line", "translation"),
    [
        ("the dog (so big) ran", "ran dog (big so) the"),
        ("the dog (a (so big) cat) ran", "ran dog (cat (big so) a) the"),
        ("the red / blue dog", "dog red / blue the"),
        ("the red/green/blue dog", "dog red/green/blue the"),
        ("the dog & cat ran", "ran dog & cat the"),
        ("note: the dog (so big) ran", "note: ran dog (big so) the"),
        ("n/a", "n/a"),
        ("the dog ran:", "ran dog the :"),
    ],
)
def test_parts_are_translated_separately(line, translation):
    translator = KeyedTranslator(layer(edge_marks={":": " :"} if line.endswith(":") else {}))
    (result,) = translator.hypotheses([Line(aligned=True).with_text(line)])[0]
    assert result.text == translation
    # Words outside of brackets, which are words of the alignment by themselves, are aligned with themselves.
    words, translated = line.split(), translation.split()
    pairs = [(words[source], translated[target]) for source, target in result.alignment]
    assert all(
        source.strip(":") == target.strip(":") for source, target in pairs if not set("()") & set(source + target)
    )


@pytest.mark.parametrize(
    ("line", "translation"),
    [
        ("<b>the note</b>: the dog ran", "<b>note the</b>: ran dog the"),
        ("the dog <i>(so <b>big</b>)</i> ran", "ran dog <i>(<b>big</b> so)</i> the"),
    ],
)
def test_tags_stay_around_their_parts(line, translation):
    assert KeyedTranslator(layer()).hypotheses([Line().with_text(line, "html")])[0][0].text == translation
