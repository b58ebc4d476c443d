"""Placeholder characters, and the repair of translations: each placeholder of the source exactly once."""

from collections import Counter
from collections.abc import Sequence

import regex
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mt.text.placeholders import (
    AFTER_WORD,
    CORPUS_TAG,
    FIRST_NUMBER_PLACEHOLDER,
    FIRST_PLACEHOLDER,
    MAX_PLACEHOLDERS,
    MAX_SEGMENT_TERMS,
    PLACEHOLDER,
    TOO_CLOSE,
    all_placeholders,
    insert_missing_placeholders,
    missing_placeholders,
    placeholder,
    remove_surplus_placeholders,
)
from mt.text.placement import AlignmentLink

WORDS = st.sampled_from(["", " ", "  ", "ba", " ba", "ba ", "\u3000", "好", "\n"])
SLOTS = st.integers(0, 5).map(placeholder)
TRANSLATIONS = st.lists(st.one_of(WORDS, SLOTS, st.text(max_size=3)), max_size=12).map("".join)


@st.composite
def sources(draw: st.DrawFn) -> str:
    """Words with each placeholder at most once."""
    numbers = draw(st.permutations(range(6)))[: draw(st.integers(0, 6))]
    return "".join(draw(WORDS) + placeholder(number) for number in numbers) + draw(WORDS)


def repaired(translation: str, source: str, links: Sequence[AlignmentLink] = ()) -> tuple[str, int]:
    """The translation with each placeholder once, and how many were removed or put back."""
    text, removed = remove_surplus_placeholders(translation, source)
    missing = missing_placeholders(text, source)
    return insert_missing_placeholders(text, source, links, missing), removed + len(missing)


def test_placeholder_characters():
    assert all(PLACEHOLDER.fullmatch(placeholder(number)) for number in range(-MAX_SEGMENT_TERMS, 2 * MAX_PLACEHOLDERS))
    assert not PLACEHOLDER.search(
        chr(FIRST_PLACEHOLDER - MAX_SEGMENT_TERMS - 1) + placeholder(2 * MAX_PLACEHOLDERS) + CORPUS_TAG + "a\ue000"
    )
    assert (placeholder(0), placeholder(63), placeholder(64), placeholder(127)) == (
        "\U0010f000",
        "\U0010f03f",
        "\U0010f040",
        "\U0010f07f",
    )
    assert all_placeholders(2) == [placeholder(0), placeholder(1), placeholder(64), placeholder(65)]


@given(TRANSLATIONS, sources())
@example("", placeholder(0))
@example(placeholder(0) + placeholder(0), placeholder(0))
@example(placeholder(1) + placeholder(1), placeholder(0))
def test_repair_gives_each_placeholder_of_the_source_once(translation, source):
    assume(not AFTER_WORD.search(source))  # such placeholders move to their words
    expected, written = Counter(PLACEHOLDER.findall(source)), Counter(PLACEHOLDER.findall(translation))
    found, count = repaired(translation, source)
    assert Counter(PLACEHOLDER.findall(found)) == expected
    # The rest of the text is as it was, up to blanks.
    assert PLACEHOLDER.sub("", found).replace(" ", "") == PLACEHOLDER.sub("", translation).replace(" ", "")
    assert count == (written - expected).total() + (expected - written).total()
    # What was right keeps its order.
    kept = [one for one in dict.fromkeys(PLACEHOLDER.findall(translation)) if one in expected]
    assert [one for one in PLACEHOLDER.findall(found) if one in kept] == kept
    if not count and not TOO_CLOSE.search(translation):
        assert found == translation
    assert repaired(found, source) == (found, 0)


@given(TRANSLATIONS, sources())
def test_insert_missing_placeholders_keeps_words(translation, source):
    translation = PLACEHOLDER.sub("", translation)
    found, _ = repaired(translation, source)
    assert regex.sub(rf" ?{PLACEHOLDER.pattern} ?", " ", found).split() == translation.split()


def test_insert_missing_placeholders_without_links():
    a, b = placeholder(0), placeholder(1)
    assert repaired("un deux trois", f"{a} one two {b}") == (f"{a} un deux trois {b}", 2)
    assert repaired("", f"one {a} two {b}") == (f"{a} {b}", 2)


def linked(source: str, target: str, *words: tuple[str, str]) -> list[AlignmentLink]:
    return [
        AlignmentLink(
            source.index(one), source.index(one) + len(one), target.index(other), target.index(other) + len(other)
        )
        for one, other in words
    ]


def put(source: str, target: str, *words: tuple[str, str]) -> str:
    """Return a target with the missing placeholders of its source, given pairs of linked words."""
    return repaired(target, source, linked(source, target, *words))[0]


def test_insert_missing_placeholders_beside_aligned_words():
    a, b = placeholder(0), placeholder(1)
    assert put(f"on {a} March at noon", "à midi, le mars", ("on", "le"), ("March", "mars")) == f"à midi, le {a} mars"
    assert put(f"buy {a} apples", "les pommes achète", ("apples", "pommes")) == f"les {a} pommes achète"
    assert put(f"we met {a}.", "rencontrés, nous. Oui", ("we", "nous"), (".", ".")) == f"rencontrés, nous {a}. Oui"
    assert put(f"{a} {b} dogs", "chiens", ("dogs", "chiens")) == f"{a} {b} chiens"
    assert put(f"dogs {a}, {b}", "les chiens", ("dogs", "chiens")) == f"les chiens {a} {b}"
    assert put(f"see ({a}) now", "voir () ici", ("(", "("), (")", ")")) == f"voir ({a}) ici"
    assert put(f"go to {a}now", "去到现在", ("to", "到"), ("now", "现在")) == f"去到{a}现在"
    assert put(f"my {a} dogs", "¿mis perros", ("dogs", "perros"), ("my", "¿")) == f"¿{a} mis perros"
    # The model may link the placeholder itself to any word. That says nothing about its neighbors.
    assert put(f"{a} dogs run", "oui non non", (a, "oui")) == f"{a} oui non non"


def test_insert_missing_placeholders_separates_terms_from_words():
    first, second, value = placeholder(-1), placeholder(-2), placeholder(0)
    assert put(f"ba {first}{value} su", f"Su{value}. Ba", ("ba", "Ba"), (value, ".")) == f"Su{value}. Ba {first}"
    assert put(f"ba {first} {second} su", "Su ba", ("ba", "Su")) == f"Su {first} {second} ba"
    assert put(f"ba {first} {second} su", "Su ba", ("su", "ba")) == f"Su {first} {second} ba"
    # A link to a full stop does not count.
    assert put(f"ba {first} {second} su ra", "Ba su.", ("su", "."), ("ra", "su")) == f"Ba {first} {second} su."


@given(TRANSLATIONS, sources(), st.lists(st.tuples(*[st.integers(0, 20)] * 4), max_size=6))
def test_insert_missing_placeholders_with_any_links(translation, source, places):
    text, _ = remove_surplus_placeholders(translation, source)
    links = [
        AlignmentLink(
            min(one, len(source)), min(one + more, len(source)), min(other, len(text)), min(other + further, len(text))
        )
        for one, more, other, further in places
    ]
    found = insert_missing_placeholders(text, source, links, missing_placeholders(text, source))
    assert Counter(PLACEHOLDER.findall(found)) == Counter(PLACEHOLDER.findall(source))
    assert PLACEHOLDER.sub("", found).replace(" ", "") == PLACEHOLDER.sub("", translation).replace(" ", "")


def test_remove_surplus_placeholders_with_their_spaces():
    a, b = placeholder(0), placeholder(1)
    assert repaired(f"un {a} deux {a} trois {b}.", f"one {a}") == (f"un {a} deux trois.", 2)
    assert repaired(f"{b} un{b}{a}", f"{a}") == (f" un {a}", 2)


def test_insert_missing_placeholders_touches_whole_words_as_in_source():
    a, b = placeholder(0), placeholder(1)
    links = [AlignmentLink(1, 6, 0, 7)]
    assert insert_missing_placeholders("aujourd'hui", f"{a}today{b}.", links, [a, b]) == f"{a}aujourd'hui{b}"
    assert insert_missing_placeholders("aujourd'hui", f"{a} today {b}.", links, [a, b]) == f"{a} aujourd'hui {b}"


def test_remove_surplus_placeholders_of_symbols_apart_from_words():
    sign, other = placeholder(0), placeholder(1)
    source = f"the house{sign} of {other}"
    assert remove_surplus_placeholders(f"la maison de {sign} {other}", source) == (f"la maison de {other}", 0)
    assert remove_surplus_placeholders(f"la maison{sign} de {other}", source) == (f"la maison{sign} de {other}", 0)


def test_repair_separates_touching_placeholders():
    one, other, number = placeholder(0), placeholder(1), placeholder(FIRST_NUMBER_PLACEHOLDER)
    source = f"ba {one} de {other}"
    assert repaired(f"5{one}0 fi {other}", source) == (f"5 {one} 0 fi {other}", 0)
    assert repaired(f"{other}{one}", source) == (f"{other} {one}", 0)
    assert repaired(f"l'{one} ({other})", source) == (f"l'{one} ({other})", 0)
    assert repaired(f"{one}ed un{other}", source) == (f"{one} ed un {other}", 0)
    assert repaired(f"{number}e", f"the {number}th") == (f"{number}e", 0)
    assert repaired(f"{one}은 好{other}", source) == (f"{one}은 好{other}", 0)
    assert repaired(f"re{one}ed", f"re{one}ed") == (f"re{one}ed", 0)
    assert repaired(f"५{one}", source)[0].startswith(f"५ {one}")
    assert repaired(f"5{one}", f"5{one}") == (f"5{one}", 0)
