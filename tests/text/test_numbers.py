"""The numbers of a source in digits, words and Chinese numerals, and those that a translation invents."""

import num2words
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.language import base_language
from mt.text.number_words import CODES
from mt.text.numbers import invented_numbers, number_values

VALUES = [
    ("en", "Forty-two geese, and one fox", {42, 1}),
    ("en", "six thousand three hundred", {6, 1000, 300, 6300}),
    ("en", "fifteen hundred", {15, 100, 1500}),
    ("en", "the fourth of July, twenty-second", {4, 22}),
    ("en", "dozens of boats, thousands of sails", {12, 1000}),
    ("en", "an apple, another, and someone", set()),
    ("en", "No. 1,500", {1, 500, 1500}),
    ("en", "at 7 pm", {7, 19}),
    ("de", "dreihundertvierzehn Vögel, ein Hund", {314}),
    ("de", "vor zweitausend Jahren am fünften Tag", {2, 1000, 2000, 5}),
    ("de", "neunzehnhundertachtzig Familien", {19, 100, 80, 1980}),
    ("fr", "un lion, quatre-vingt-dix-sept ours", {97}),
    ("es", "tres mil quinientas, la segunda vez", {3, 1000, 3000, 2}),
    ("zh", "三十六只鸟，两本书", {36, 3, 6, 10, 2}),
    ("zh", "一九八四年，五万零三百", {1984, 1, 9, 8, 4, 50300, 5, 10000, 0, 3, 100}),
    ("zh", "１５", {15}),
    ("xx", "forty", set()),
]


@pytest.mark.parametrize(("language", "text", "values"), VALUES)
def test_the_values_of_a_text(language: str, text: str, values: set[int]) -> None:
    assert set(number_values(text, language)) == values


INVENTED = [
    ("It is late.", "Il est 10 heures.", ["10"]),
    ("It is late.", "Il est ½ heure, x²", ["½", "²"]),
    ("Ten geese", "10 oies", []),
    ("Ten geese", "10 oies et 10 autres", ["10"]),
    ("Ten geese", "11 oies", ["11"]),
    ("Ten thousand geese", "10 000 oies, 10.000", ["10.000"]),
    ("At half past eight", "à 8 h 30", ["30"]),
    ("The eighth lesson", "La 8e leçon", []),
    ("A 2nd x² and ½", "Un 2e x² et ½", []),
    ("A goose", "1 oie", ["1"]),
    ("One goose", "1 oie", []),
]


@pytest.mark.parametrize(("source", "target", "invented"), INVENTED)
def test_numbers_without_a_counterpart(source: str, target: str, invented: list[str]) -> None:
    assert invented_numbers(source, target, "en") == invented


@pytest.mark.parametrize(
    "language", sorted({base_language(code) for code in num2words.CONVERTER_CLASSES} - {"ja", "ko"})
)
def test_numbers_in_words_of_all_languages(language: str) -> None:
    for number in (2, 14, 37, 99, 240):
        words = num2words.num2words(number, lang=CODES.get(language, language))
        assert number in number_values(words, language), words


@given(st.text(), st.sampled_from(["en", "de", "zh", "xx"]))
def test_no_text_invents_a_number_of_itself(text: str, language: str) -> None:
    assert invented_numbers(text, text, language) == []
