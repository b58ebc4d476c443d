"""Lines in capitals come back in capitals; what is no such line stays as it is."""

import sys
import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from mt.text.normalization.casing import (
    begun_with_capitals,
    in_capitals,
    in_small_letters,
    is_in_capitals,
    is_in_small_letters,
    is_in_title_case,
    lowercased,
)
from mt.text.placeholders.placeholders import placeholder

LANGUAGES = ["en", "de", "tr", "az", "tr_TR", "el", "ka", "zh"]
ODD = "ßẞİıIiΣσςǅǆǄﬁŉΐᲐაⅣⅳⒶⓐÅÿŸĸªº\u0307\u0301"
CAPITALS = st.text(st.one_of(st.sampled_from(ODD + " '-.3"), st.characters(max_codepoint=0x24F), st.characters()))


@pytest.mark.parametrize(
    ("language", "text", "small"),
    [
        ("en", "STOP HERE NOW", "Stop here now"),
        ("de", "DIE STRASSE IST LANG", "Die strasse ist lang"),
        ("de", "DIE STRAẞE IST LANG", "Die STRAẞE ist lang"),
        ("de", "STRAẞE IST LANG", "STRAẞE ist lang"),
        ("tr", "İSTANBUL ILIK", "İstanbul ılık"),
        ("az", "BU İL ILIK", "Bu il ılık"),
        ("tr-TR", "ILIK İSTANBUL", "Ilık istanbul"),
        ("en", "IN İSTANBUL", "In İSTANBUL"),
        ("en", "İSTANBUL IS BIG", "İSTANBUL is big"),
        ("el", "ΌΣΟΣ ΟΔΟΣ", "Όσος οδος"),
        ("ka", "ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ", "საქართველო"),
        ("en", "“STOP!” 3 TIMES", "“Stop!” 3 times"),
        ("en", "ⅣⅤⅥ ⅦⅧ", "ⅳⅴⅵ ⅶⅷ"),
        ("en", "The Old Town", "The old town"),
        ("en", "İzmir And Ankara", "izmir and ankara"),
        ("en", "‘The’ Old ǅ Town", "‘The’ old ǆ town"),
    ],
)
def test_small_letters_of_lines(language: str, text: str, small: str) -> None:
    assert lowercased(text, language) == small


@pytest.mark.parametrize("language", LANGUAGES)
@given(text=CAPITALS)
@example(text="STRAẞE STRASSE İSTANBUL ISPARTA")
@example(text="ΌΣΟΣ ΣΑΣ")
@example(text="ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ ᲐᲠᲘᲡ")
@example(text="ⅣⅤⅥⅦ ⒶⒷⒸ")
@example(text="I\u0307STANBUL")
def test_capitals_come_back(text: str, language: str) -> None:
    text = text.upper() if not text.isupper() else text
    assume(text.isupper())
    small = lowercased(text, language)
    assert len(small) == len(text)
    assert in_capitals(small, language) == text


@pytest.mark.parametrize("language", ["en", "tr"])
def test_every_character_has_one_small_letter(language: str) -> None:
    for number in range(sys.maxunicode + 1):
        one = chr(number)
        small = in_small_letters(one, language)
        assert len(small) == 1
        if one not in "Iİ":
            assert small == one.lower()
    assert in_small_letters("Iİ", language) == ("ıi" if language == "tr" else "ii")
    assert in_capitals("ıi", language) == ("Iİ" if language == "tr" else "II")


@pytest.mark.parametrize(
    "text",
    ["STOP", "STOP!", "A B C D", "ISO 9001 UND CE", "STRASSE", "İSTANBUL", "ΌΣΟΣ", "ᲡᲐᲥᲐ", "ABCD 漢字", "E.V. AB",
     "ⅣⅤⅥⅦ"],
)  # fmt: skip
def test_what_is_in_capitals(text: str) -> None:
    assert is_in_capitals(text)
    assert not is_in_title_case(text)


@pytest.mark.parametrize(
    "text",
    ["", "USA", "A1 B2", "ISO 9001", "STOPp", "STRAßE", "iPHONE", "e.V. ABCD", "123 !", "漢字漢字", "ǅABCD",
     "საქართველო", "Stop It Now", "stop"],
)  # fmt: skip
def test_what_is_not_in_capitals(text: str) -> None:
    assert not is_in_capitals(text)


@pytest.mark.parametrize(
    "text",
    ["The Old Town", "Good-Bye To You", "Tom's Old Car", "McDonald's And Sons", "The USA Today", "“One” Two, 3 Three!",
     "Όλα Τα Μικρά", "The Old 3rd Town", "L’Été À Paris"],
)  # fmt: skip
def test_what_is_in_title_case(text: str) -> None:
    assert is_in_title_case(text)


@pytest.mark.parametrize(
    "text",
    ["", "New York", "The old town", "My New iPhone", "Der Verein e.V. Nord", "THE OLD TOWN", "A B C", "漢字 漢字 漢字",
     "საქართველო არის აქ", "ǅungla Ǆ Stop", "1 2 3 4", "The Old town", "L’été À Paris d’Or"],
)  # fmt: skip
def test_what_is_not_in_title_case(text: str) -> None:
    assert not is_in_title_case(text)


@given(st.text())
def test_a_line_is_in_one_case_at_most(text: str) -> None:
    assert not (is_in_capitals(text) and is_in_title_case(text))
    if is_in_capitals(text):
        assert not any(unicodedata.category(one) in ("Ll", "Lt") for one in text)
        assert sum(one.isupper() for one in text) >= 4


@given(st.lists(st.from_regex(r"[A-ZÄÖÜ][a-zäöüß]{0,5}", fullmatch=True), min_size=3, max_size=8))
def test_titles_keep_their_first_letter_alone(words: list[str]) -> None:
    text = " ".join(words)
    assume(not text.isupper())
    assert is_in_title_case(text)
    assert lowercased(text, "de") == text[0] + text[1:].lower()


@pytest.mark.parametrize(
    ("text", "is_small"),
    [
        ("where is tom", True),
        ("where is", False),
        ("where is Tom", False),
        ("3 2 1 x y", False),
        ("开 门 a b c", True),
        ("слово слово слово", True),
        ("ا ب ت", False),
        ("where is ǅungla", False),
    ],
)
def test_lines_in_small_letters(text: str, is_small: bool) -> None:
    assert is_in_small_letters(text) == is_small


@pytest.mark.parametrize(
    ("language", "text", "starts", "expected"),
    [
        ("en", "come on. let's go.", [0, 9], "Come on. Let's go."),
        ("en", "“stop!” ‘no’ - iPhone", [0, 8, 13], "“Stop!” ‘No’ - iPhone"),
        ("tr", "istanbul ılık", [0, 9], "İstanbul Ilık"),
        (
            "en",
            f"{placeholder(0)} cats. 3 dogs. {placeholder(70)}",
            [0, 8, 16],
            f"{placeholder(0)} cats. 3 dogs. {placeholder(70)}",
        ),
        ("ka", "საქართველო", [0], "საქართველო"),
        ("en", "... ", [0, 4], "... "),
    ],
)
def test_sentences_begin_with_capitals(language: str, text: str, starts: list[int], expected: str) -> None:
    assert begun_with_capitals(text, starts, language) == expected
