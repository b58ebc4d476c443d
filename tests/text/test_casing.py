"""Conversion of case by the rules of languages, and detection of the case of lines."""

import sys

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mt.text.casing import (
    capitalize_sentences,
    detect_case,
    to_lowercase,
    to_sentence_case,
    to_uppercase,
)
from mt.text.placeholders import placeholder
from mt.text.segment import Case

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
def test_to_sentence_case(language, text, small):
    assert to_sentence_case(text, language) == small


@given(text=CAPITALS, language=st.sampled_from(LANGUAGES))
@example(text="STRAẞE STRASSE İSTANBUL ISPARTA", language="tr")
@example(text="STRAẞE STRASSE İSTANBUL ISPARTA", language="de")
@example(text="ΌΣΟΣ ΣΑΣ", language="el")
@example(text="ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ ᲐᲠᲘᲡ", language="ka")
@example(text="ⅣⅤⅥⅦ ⒶⒷⒸ", language="en")
@example(text="I\u0307STANBUL", language="tr")
@settings(max_examples=300)
def test_to_uppercase_inverts_to_sentence_case(text, language):
    text = text.upper() if not text.isupper() else text
    assume(text.isupper())
    small = to_sentence_case(text, language)
    assert len(small) == len(text)
    assert to_uppercase(small, language) == text


@pytest.mark.parametrize(("language", "last"), [("en", sys.maxunicode), ("tr", 0xFFFF)])
def test_to_lowercase_keeps_the_length(language, last):
    for number in range(last + 1):
        one = chr(number)
        small = to_lowercase(one, language)
        assert len(small) == 1
        if one not in "Iİ":
            assert small == one.lower()
    assert to_lowercase("Iİ", language) == ("ıi" if language == "tr" else "ii")
    assert to_uppercase("ıi", language) == ("Iİ" if language == "tr" else "II")


CASES = {
    Case.UPPER: [
        "STOP", "STOP!", "A B C D", "ISO 9001 UND CE", "STRASSE", "İSTANBUL", "ΌΣΟΣ", "ᲡᲐᲥᲐ", "ABCD 漢字", "E.V. AB",
        "ⅣⅤⅥⅦ", "THE OLD TOWN",
    ],
    Case.TITLE: [
        "The Old Town", "Good-Bye To You", "Tom's Old Car", "McDonald's And Sons", "The USA Today", "Stop It Now",
        "“One” Two, 3 Three!", "Όλα Τα Μικρά", "The Old 3rd Town", "L’Été À Paris",
    ],
    Case.LOWER: ["where is tom", "开 门 a b c", "слово слово слово", "საქართველო არის აქ"],
    None: [
        "", "USA", "A1 B2", "ISO 9001", "STOPp", "STRAßE", "iPHONE", "e.V. ABCD", "123 !", "漢字漢字", "ǅABCD", "stop",
        "საქართველო", "New York", "The old town", "My New iPhone", "Der Verein e.V. Nord", "A B C", "漢字 漢字 漢字",
        "ǅungla Ǆ Stop", "1 2 3 4", "The Old town", "L’été À Paris d’Or", "where is",
        "where is Tom", "3 2 1 x y", "ا ب ت", "where is ǅungla",
    ],
}  # fmt: skip


@pytest.mark.parametrize(("case", "text"), [(case, text) for case, texts in CASES.items() for text in texts])
def test_detect_case(case, text):
    assert detect_case(text) is case


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
def test_capitalize_sentences(language, text, starts, expected):
    assert capitalize_sentences(text, starts, language) == expected
