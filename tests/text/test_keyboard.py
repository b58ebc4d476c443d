"""Adjacent letters of keyboards, and the typing errors that are made of them."""

from itertools import product

import pytest

from mt.core.randomness import generator
from mt.text.keyboard import LAYOUTS, QWERTY, add_typo, adjacent_letters, correction_candidates

LANGUAGES = sorted(LAYOUTS)


def test_adjacent_letters_of_qwerty():
    assert {letter: set(adjacent_letters(letter, "en")) for letter in "qapzmgls"} == {
        "q": set("wa"), "a": set("qwsz"), "p": set("ol"), "z": set("asx"), "m": set("njk"), "g": set("tyfhvb"),
        "l": set("opk"), "s": set("adwezx"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("language", "letter", "beside"),
    [
        ("fr", "a", "zq"), ("fra", "a", "zq"), ("de_AT", "t", "rzfg"), ("ces", "t", "rzfg"), ("deu_Latn", "ö", "lpüä"),
        ("es", "ñ", "lp"), ("rus", "ф", "йцыя"), ("uk", "і", "фцувяч"), ("be", "і", "мпрт"),
        ("srp_Cyrl", "ј", "хкуинм"),
        ("mk", "ѕ", "тугх"), ("el", "α", "ςσζ"), ("ell", "ς", "εασ"), ("he", "ש", "דז"),
        ("heb", "ק", "רדג"), ("ar", "ا", "لتغعى"), ("apc_Arab", "ا", "لتغعى"), ("arb", "ش", "ضصسئ"),
    ],
)  # fmt: skip
def test_adjacent_letters_of_other_layouts(language, letter, beside):
    assert set(adjacent_letters(letter, language)) == set(beside)


@pytest.mark.parametrize("language", ["en", *LANGUAGES])
def test_adjacent_letters_are_symmetric(language):
    rows = LAYOUTS.get(language, QWERTY).split("|")
    letters = "".join(rows).replace(" ", "")
    assert len(letters) == len(set(letters)) and letters == letters.lower()
    for letter in letters:
        near = adjacent_letters(letter, language)
        assert 2 <= len(near) <= 6 and set(near) <= set(letters) - {letter}
        assert len(set(near)) == len(near)
        assert all(letter in adjacent_letters(other, language) for other in near)
        if letter.upper() != letter and letter not in "ςσ":
            assert adjacent_letters(letter.upper(), language) == near.upper()


def test_adjacent_letters_fall_back_to_qwerty():
    assert adjacent_letters("a", "ru") == adjacent_letters("a", "zh") == adjacent_letters("a", "en")
    assert {adjacent_letters(letter, language) for letter in "é好. 1" for language in ("en", "ru", "fr", "zh")} == {""}
    assert adjacent_letters("ж", "en") == ""


def errors(word: str, language: str) -> set[str]:
    """Every spelling of a word with one typing error in a letter."""
    positions = [position for position in range(len(word)) if word[position].isalpha()]
    dropped = {word[:position] + word[position + 1 :] for position in positions}
    doubled = {word[: position + 1] + word[position:] for position in positions}
    pairs = {min(position, len(word) - 2) for position in positions}
    swapped = {word[:position] + word[position + 1] + word[position] + word[position + 2 :] for position in pairs}
    replaced = {
        word[:position] + other + word[position + 1 :]
        for position in positions
        for other in adjacent_letters(word[position], language)
    }
    return (dropped | doubled | swapped | replaced) - {word}


@pytest.mark.parametrize(
    ("word", "language"),
    [("dog", "en"), ("Anna", "deu"), ("oo", "en"), ("ßé", "de"), ("IT", "fr"), ("кот", "ru"), ("don't", "en"),
     ("5km", "en"), ("我们", "zh"), ("e\u0301t", "fr"), ("γη", "el")],
)  # fmt: skip
def test_add_typo_makes_each_possible_error(word, language):
    found = {add_typo(word, generator(seed, "test"), language) for seed in range(2500)}
    assert found == errors(word, language)


@pytest.mark.parametrize("language", ["en", "fr"])
def test_correction_candidates_invert_add_typo(language):
    words = ["".join(letters) for length in (2, 3, 4) for letters in product("aqzé", repeat=length)]
    typed_for = {word: errors(word, language) for word in words}
    for typed in words:
        meant = set(correction_candidates(typed, language, "aqzé")) & set(words)
        assert meant == {word for word in words if typed in typed_for[word]}
