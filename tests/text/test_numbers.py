"""Numbers in digits and in words, and the numbers of a translation that its source lacks."""

import num2words
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.core.language import base_language
from mt.text import numbers
from mt.text.numbers import (
    NUM2WORDS_CODES,
    find_numbers,
    invented_numbers,
    number_word_pattern,
    number_words,
    shared_numbers,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1,249.99 and 1 249,99", [("1249", "99"), ("1249", "99")]),
        ("1'000'000, 1.000", [("1000000",), ("1000",)]),
        ("1.5, 15, 0.500", [("1", "5"), ("15",), ("0", "500")]),
        ("1,00 and 12345,678 and 1,2345", [("1", "00"), ("12345", "678"), ("1", "2345")]),
        ("3.10.2024, 10:30", [("3", "10"), ("2024",), ("10",), ("30",)]),
        ("in 1984 200 of B-207", [("1984",), ("200",), ("207",)]),
        ("１５ and १२٫٥", [("15",), ("12", "5")]),
        ("none", []),
    ],
)
def test_find_numbers(text: str, expected: list[tuple[str, ...]]) -> None:
    assert [digits for _, digits in find_numbers(text)] == expected


INVENTED = [
    ("en-fr", "It is late.", "Il est 10 heures, ½, x²", [10, 1, 2, 2]),
    ("en-fr", "A 2nd x² and ½", "Un 2e x² et 1/2", []),
    ("en-fr", "1,000; 1,000.5", "1000; 1 000; 1.000,5", []),
    ("en-de", "1.5 of 1,000", "1,5 von 1.000", []),
    ("en-fr", "10.5, 1.05, 2.3", "105, 5.10, 1.5, 2.03", [105, 5.1, 1.5, 2.03]),
    ("en-fr", "1,000", "1 et 0", [1, 0]),
    ("zh-en", "１５只鸟", "15 birds", []),
    # words
    ("en-fr", "Ten geese", "10 oies, 11 oies", [11]),
    ("en-fr", "He sees seventy tents", "7 et 10", [7, 10]),
    ("en-fr", "I have twenty-five books.", "J'ai 20 livres et 5, ou 25.", [20, 5]),
    ("en-fr", "Six thousand three hundred fifty-two, or five hundred and six", "6352, 506", []),
    ("en-fr", "Ten thousand geese, ninety thousand birds", "10 000 oies, 90.000", []),
    ("en-fr", "fifteen hundred boats in nineteen eighty-four", "1500 et 1984", []),
    ("en-fr", "One goose, at zero", "1, 0", []),
    ("en-fr", "I saw a goose and someone", "0, 1 oie", [0, 1]),
    ("en-fr", "The eighth lesson, the twenty-second", "La 8e leçon, la 22e", []),
    ("de-en", "dreihundertvierzehn Vögel", "314 birds", []),
    ("de-en", "vor zweitausendfünfhundert Jahren am fünften Tag", "2,500 on the 5th", []),
    ("de-en", "neunzehnhundertachtzig, tausend Familien, achthunderttausend", "1980, 1000, 800,000", []),
    ("fr-en", "un lion, vingt et un, quatre-vingt-dix-sept", "1, 21, 97, 20, 80, 17", [1, 20, 80, 17]),
    ("es-en", "tres mil quinientos, la segunda vez", "3500, 2nd", []),
    ("xx-en", "forty", "40", [40]),
    ("cs-en", "a pes", "100 dogs", [100]),
    # Chinese numerals
    ("zh-en", "三十六只鸟，两本书，一百零二只，十五", "36 birds, 2 books, 102, 15", []),
    ("zh-en", "一九八四年，五万零三百，三亿，三百一十五", "1984: 50,300; 300,000,000; 315", []),
    ("zh-en", "二十五", "20", [20]),
    # scale words
    ("en-fr", "2 million, three million", "2 000 000, 3 000 000, 3 millions", []),
    ("en-zh", "1.5 billion, twenty thousand", "15亿, 2万", []),
    ("it-en", "5 mila", "5,000", []),
    ("en-fr", "hundreds of boats, a million sails", "100, 1 000 000", []),
    ("zh-en", "3.5万", "35,000 or 3,500", [3500]),
    # times and dates
    ("en-fr", "At half past eight", "à 8 h 30", [30]),
    ("en-fr", "At 7 pm, at seven thirty", "à 19 h, à 7.30", []),
    ("de-en", "um 16.30 Uhr", "at 4:30 in the afternoon", []),
    ("en-fr", "At 25", "à 13 h", [13]),
    ("en-de", "24 cats, 12 apples, 5 days", "12 Katzen, 0 Äpfel, 17 Tage", [0, 17]),
    ("en-de", "24 cats", "12 Katzen", [12]),
    ("de-en", "am 3.10.2024", "on October 3, 2024, or 10/3/24", [24]),
]


@pytest.mark.parametrize(("languages", "source", "target", "invented"), INVENTED)
def test_invented_numbers(languages: str, source: str, target: str, invented: list[float]) -> None:
    source_language, target_language = languages.split("-")
    assert list(map(float, invented_numbers(source, target, (source_language, target_language)))) == invented


@pytest.mark.parametrize("language", sorted({*map(base_language, num2words.CONVERTER_CLASSES)}))
def test_invented_numbers_reads_number_words_of_all_languages(language: str) -> None:
    for number in (2, 14, 37, 99, 240):
        words = num2words.num2words(number, lang=NUM2WORDS_CODES.get(language, language))
        assert invented_numbers(f"- {words}!", f"{number}", (language, "en")) == [], words
        assert invented_numbers(f"- {words}!", f"{number + 1}", (language, "en")) == [number + 1], words


def test_invented_numbers_spells_only_numbers_without_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_up = []
    monkeypatch.setattr(numbers, "spelled_numbers", lambda *args: looked_up.append(args) or [])
    assert invented_numbers("5 of ten", "5", ("en", "fr")) == [] and not looked_up
    assert invented_numbers("5 of ten", "10", ("en", "fr")) == [10] and looked_up == [("5 of ten", "en", 10)]


@pytest.mark.parametrize("source", ["千" * 3000, "一" * 6000, "1" * 6000 + "万"])
def test_invented_numbers_accepts_long_numbers(source: str) -> None:
    assert invented_numbers(source, "5", ("zh", "en")) == [5]


@given(st.text(), st.sampled_from(["en", "de", "zh", "xx"]))
@example(text="\U0001ccf1 12", language="en")
def test_invented_numbers_of_a_copy_is_empty(text: str, language: str) -> None:
    assert invented_numbers(text, text, (language, language)) == []


FORMATS = [f"{{:{form}}}".format for form in (",", "", ",.2f", ".1f")]
POINTS = [",.", ".,", " ,", "\u202f,", "’."]


@given(st.integers(25, 10**9), st.sampled_from(FORMATS), st.sampled_from(POINTS), st.integers(0, 9), st.data())
def test_invented_numbers_allows_other_formats_but_no_other_digit(number, write, points, digit, data):
    source = write(number)
    target = source.translate(str.maketrans(",.", points))
    sentences = f"We need {source} of them.", f"Il en faut {target}."
    assert invented_numbers(*sentences, ("en", "fr")) == []
    index = data.draw(st.sampled_from([index for index, character in enumerate(target) if character.isdecimal()]))
    if target[index] != str(digit):
        changed = target[:index] + str(digit) + target[index + 1 :]
        assert invented_numbers(sentences[0], f"Il en faut {changed}.", ("en", "fr"))


def test_number_words_are_single_words() -> None:
    english = number_words("en")
    assert english["ten"] == 10 and english["ninety"] == 90
    # "one hundred" and "soixante-dix" are not one word of letters.
    assert 100 not in english.values() and 70 not in number_words("fr").values()
    assert number_words("de")["zwölf"] == 12 and number_words("de")["dreißig"] == 30
    # One is an article in many languages, and second is a unit of time.
    for language, words in {
        "en": ("one", "second"),
        "de": ("ein", "eins"),
        "fr": ("un", "une"),
        "es": ("un", "uno"),
    }.items():
        assert not set(words) & number_words(language).keys()
    assert number_words("nb") == number_words("no") and number_words("kk")["он"] == 10
    assert number_words("deu_Latn") == number_words("de") == number_words("ger")
    assert number_words("xx") == {} and number_word_pattern("xx") is None


SHARED = [
    ("He has ten dogs.", "Er hat zehn Hunde.", [("ten", "zehn")]),
    ("Ten dogs, twenty cats", "Zwanzig Katzen, zehn Hunde", [("Ten", "zehn"), ("twenty", "Zwanzig")]),
    ("He has ten dogs.", "Er hat elf Hunde.", []),
    ("ten of ten", "zehn von zehn", []),  # which is which is not known
    ("ten of ten", "zehn", []),
    ("ten", "zehn, Zehn", []),
    ("tennis and often", "Tennis zehn", []),
    ("a ten-year-old", "zehn", []),
    ("ten tenants", "zehn Mieter", []),  # a placeholder in place of "ten" would stand in "tenants" too
    ("ten", "zehntausend", []),
    ("thirty five dogs, two cats", "fünf Hunde, zwei Katzen", [("two", "zwei")]),  # the one number is 35
    ("", "", []),
]


@pytest.mark.parametrize(("source", "target", "expected"), SHARED)
def test_shared_numbers(source: str, target: str, expected: list[tuple[str, str]]) -> None:
    assert shared_numbers(source, target, ("en", "de")) == expected


@given(st.lists(st.sampled_from(["ten", "Ten", "two", "TWO", "often", "seven-", "'six", "a", "12", "(nine)", "é"])))
@example(["ten", "two"])
def test_number_word_pattern_matches_texts_with_shared_numbers(words: list[str]) -> None:
    text = " ".join(words)
    shared = shared_numbers(text, text, ("en", "en"))
    assert all(one == other and text.count(one) == 1 for one, other in shared)
    if shared:
        assert _matches(number_word_pattern("en"), text)
    if not set(words) & {"ten", "Ten", "two", "TWO", "(nine)", "seven-", "'six"}:
        assert not _matches(number_word_pattern("en"), text)


def _matches(pattern: str, text: str) -> bool:
    return pc.match_substring_regex(pa.array([text]), pattern)[0].as_py()
