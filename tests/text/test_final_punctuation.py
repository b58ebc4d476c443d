"""Final punctuation is added to lines without it, and removed from their translations."""

import pytest

from mt.text.final_punctuation import (
    MIN_SENTENCES,
    choose_final_mark,
    first_word,
    learn_final_marks,
    span_without_final_mark,
)
from mt.text.layer import TextLayer
from tests import languages

MARKS = {".": (), "?": ("how", "where's"), "!": ("hurrah",)}


def corpus(*counts: tuple[int, str]) -> list[tuple[str, str]]:
    """So many sources with each beginning and end, with translations that have the same end."""
    return [(line, f"x {line[-1]}") for count, line in counts for _ in range(count)]


def test_learn_final_marks_by_first_word():
    pairs = corpus(
        (50, "It is late."), (8, "It rains!"), (12, "How late is it?"), (2, "how nice!"), (11, "Where’s Ann?"),
        (MIN_SENTENCES - 1, "Who is it?"), (11, "«Hurrah» they cried!"), (6, "May I?"), (6, "May he come."),
    )  # fmt: skip
    assert learn_final_marks(pairs, "en") == MARKS
    assert learn_final_marks(pairs[::-1], "en") == MARKS


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("open_ends", "is_learned"), [(5, True), (6, False)])
def test_learn_final_marks_needs_95_percent_of_pairs(side, open_ends, is_learned):
    pair = [("Late.", "Spät"), ("Late", "Spät.")][side]
    pairs = [*corpus((100 - open_ends, "It is late.")), *[pair] * open_ends]
    assert bool(learn_final_marks(pairs, "en")) == is_learned
    assert learn_final_marks([], "en") == {}


@pytest.mark.parametrize(
    ("text", "mark"),
    [
        ("it is late", "."),
        ("How late is it", "?"),
        ("HOW LATE", "?"),
        ("where’s ann", "?"),
        ("(how) late", "?"),
        ("Hurrah Ann", "!"),
        ("It rains. How late is it", "?"),
        ("How late is it? It rains", "."),
        ("see room 5", "."),
        ("see \U0010f000", "."),
        *((f"it is late{end}", "") for end in (".", "!", "?", "…", ":", ",", ")", '"', "”", "。", " -", "%", "?!")),
    ],
)
def test_choose_final_mark(text, mark):
    assert choose_final_mark(text, MARKS, "en") == mark


@pytest.mark.parametrize(
    ("translation", "kept"),
    [
        ("Il est tard.", "Il est tard"),
        ("Quelle heure est-il\u202f?", "Quelle heure est-il"),
        ("¿Qué hora es?", "Qué hora es"),
        ("¡Hola!", "Hola"),
        ("Es spät...", "Es spät"),
        ("Es spät!?", "Es spät!"),
        ("晚了。", "晚了"),
        ("Es ist spät", "Es ist spät"),
        ("Ist das „gut“", "Ist das „gut“"),
        ("¿Qué hora", "¿Qué hora"),
        (".", "."),
        ("", ""),
    ],
)
def test_span_without_final_mark(translation, kept):
    start, end = span_without_final_mark(translation)
    assert translation[start:end] == kept


def test_first_word_is_lowercase():
    assert first_word("“İYİ MİSİN", "tr") == "iyi" and first_word("IŞIK", "tr") == "ışık"
    assert first_word("1 + 2", "en") == ""


def layer(**rules: object) -> TextLayer:
    return languages.layer("en", "de", marks=True, **rules)


@pytest.mark.parametrize(
    ("line", "texts", "translations", "restored"),
    [
        ("the dog went", ["the dog went?"], ["Ging der Hund?"], "Ging der Hund"),
        ("a dog went", ["a dog went."], ["Ein Hund ging."], "Ein Hund ging"),
        ("A DOG WENT", ["A dog went."], ["Ein Hund ging."], "EIN HUND GING"),
        ("a dog went.", ["a dog went."], ["Ein Hund ging."], "Ein Hund ging."),
        ("a dog went 😀", ["a dog went."], ["Ein Hund ging."], "Ein Hund ging 😀"),
        ("a dog went. is it far", ["a dog went.", "is it far?"], ["Er ging.", "Ist es?"], "Er ging. Ist es"),
        ("see 1,000", ["see \U0010f040."], ["Sieh \U0010f040."], "Sieh 1,000"),
        ("the dog", ["the dog?"], ["the dog?"], "the dog"),
    ],
)
def test_layer_adds_final_punctuation_and_removes_it(line, texts, translations, restored):
    segments = layer().segment(line)
    assert [segment.text for segment in segments] == texts
    assert "".join(map(layer().restore, segments, translations)) == restored


def test_continued_segments_get_no_final_punctuation():
    line = "see " + " ".join(["{x}"] * (languages.SLOTS + 2)) + " there"
    segments = layer().segment(line)
    assert [segment.added_punctuation for segment in segments] == ["", "."]
    assert "".join(layer().restore(segment, segment.text) for segment in segments) == line


def test_prepare_pair_adds_no_final_punctuation():
    assert layer().prepare_pair("a dog went", "ein Hund ging") == ("a dog went", "ein Hund ging")
