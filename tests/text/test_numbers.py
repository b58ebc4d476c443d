"""Numbers of a translation have counterparts in the source: in digits, in words or as Chinese numerals."""

import num2words
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.core.language import base_language
from mt.text.number_words import NUM2WORDS_CODES
from mt.text.numbers import invented_numbers

INVENTED = [
    ("en", "It is late.", "Il est 10 heures.", ["10"]),
    ("en", "It is late.", "Il est ½ heure, x²", ["½", "²"]),
    ("en", "Ten geese", "10 oies", []),
    ("en", "Ten geese", "10 oies et 10 autres", ["10"]),
    ("en", "Ten geese", "11 oies", ["11"]),
    ("en", "He sees seventy tents", "7 et 10", ["7", "10"]),
    ("en", "Ten thousand geese", "10 000 oies, 10.000", ["10.000"]),
    ("en", "Six thousand three hundred fifty-two, or five hundred and six", "6352, 506", []),
    ("en", "fifteen hundred boats in nineteen eighty-four", "1500 et 1984", []),
    ("en", "hundreds of boats, a million sails", "100, 1 000 000", []),
    ("en", "At half past eight", "à 8 h 30", ["30"]),
    ("en", "The eighth lesson, the twenty-second", "La 8e leçon, la 22e", []),
    ("en", "A 2nd x² and ½", "Un 2e x² et ½", []),
    ("en", "A goose, another, and someone", "1 oie", ["1"]),
    ("en", "One goose", "1 oie", []),
    ("en", "At 7 pm", "à 19 h", []),
    ("en", "At 7", "à 19 h", ["19"]),
    ("en", "At seven thirty", "à 7.30", []),
    ("de", "dreihundertvierzehn Vögel, ein Hund", "314 birds, 1 dog", ["1"]),
    ("de", "vor zweitausendfünfhundert Jahren am fünften Tag", "2,500 on the 5th", []),
    ("de", "neunzehnhundertachtzig, tausend Familien", "1980, 1000", []),
    ("fr", "un lion, quatre-vingt-dix-sept ours", "97 bears, 1 lion", ["1"]),
    ("es", "tres mil quinientos, la segunda vez", "3500, 2nd", []),
    ("zh", "三十六只鸟，两本书，一百只", "36 birds, 2 books, 100", []),
    ("zh", "一九八四年，五万零三百，三亿", "1984: 50,300; 300,000,000", []),
    ("zh", "１５只鸟", "15 birds", []),
    ("zh", "很晚了", "at 10", ["10"]),
    ("en", "I have twenty-five books.", "J'ai 20 livres et 5.", ["20", "5"]),
    ("en", "twenty-five", "25", []),
    ("en", "two hundred", "100, 2", ["100", "2"]),
    ("en", "two million", "2 millions", []),
    ("en", "Just a second", "2", ["2"]),
    ("en", "No one", "1", ["1"]),
    ("en", "10.5", "105", ["105"]),
    ("en", "10.5", "5.10", ["5.10"]),
    ("en", "1.05", "1.5", ["1.5"]),
    ("en", "1.2", "1.02", ["1.02"]),
    ("en", "1.5", "1,5", []),
    ("en", "1,000", "1 et 0", ["1", "0"]),
    ("en", "1,000; 1,000; 1,000.5", "1000; 1 000; 1.000,5", []),
    ("en", "5 10", "510", ["510"]),
    ("en", "0", "0000", ["0000"]),
    ("en", "2 million", "2 000 000", []),
    ("en", "At seven pm", "19 h", []),
    ("en", "½", "1/2", []),
    ("fr", "vingt et un, quatre-vingt-dix-sept", "20, 80, 17", ["20", "80", "17"]),
    ("zh", "二十五", "20", ["20"]),
    ("xx", "forty", "40", ["40"]),
]


@pytest.mark.parametrize(("language", "source", "target", "invented"), INVENTED)
def test_numbers_without_a_counterpart(language: str, source: str, target: str, invented: list[str]) -> None:
    assert invented_numbers(source, target, language) == invented


@pytest.mark.parametrize("language", sorted({*map(base_language, num2words.CONVERTER_CLASSES)}))
def test_numbers_in_words_of_all_languages(language: str) -> None:
    for number in (2, 14, 37, 99, 240, 7000):
        words = num2words.num2words(number, lang=NUM2WORDS_CODES.get(language, language))
        assert invented_numbers(f"- {words}!", f"{number}", language) == [], words
        assert invented_numbers(f"- {words}!", f"{number + 1}", language) == [f"{number + 1}"], words


@given(st.text(), st.sampled_from(["en", "de", "zh", "xx"]))
@example(text="\U0001ccf1 12", language="en")
def test_no_text_invents_a_number_of_itself(text: str, language: str) -> None:
    assert invented_numbers(text, text, language) == []
