"""Words are counted as they stand in the text; what looks like a typing error of a frequent one is taken for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.text.layer import min_word_count
from mt.text.normalization import spelling
from mt.text.normalization.spelling import WORD, Spelling, count_words
from mt.text.placeholders.placeholders import placeholder
from tests import languages

WORDS = languages.WORDS


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("teh dgo wwent ovr", "the dog went over"),  # swapped, swapped, doubled, dropped
        ("Teh dog. Teh dog.", "The dog. Teh dog."),  # elsewhere a capital may begin a name
        ("the Smih, the smiht", "the Smith, the smith"),
        ("the DGO, dGo and USAA", "the DGO, dGo and USAA"),
        ("dont don’t don'tt", "don't don’t don't"),
        ("dg", "dog"),  # rather than "dig", which is rarer
        ("dogy", "dogy"),  # "doggy" is too rare, and "dog" two errors away
        ("the doggy", "the doggy"),  # known, however rare
        (
            f"{placeholder(0)}dgo dgo{placeholder(1)} {placeholder(2)} dgo",
            f"{placeholder(0)}dgo dgo{placeholder(1)} {placeholder(2)} dog",
        ),
        ("x2dgo dgo3 @dgo #dgo d_dgo", "x2dgo dgo3 @dgo #dgo d_dgo"),
        ("«dgo»-dgo", "«dog»-dog"),
        ("", ""),
    ],
)
def test_what_is_corrected(typed: str, expected: str) -> None:
    found, corrections = Spelling(WORDS, "en").correct(typed)
    assert found == expected
    for one in reversed(corrections):
        found = found[: one.start] + one.typed + found[one.end :]
    assert found == typed


def test_words_must_be_frequent_to_be_meant() -> None:
    assert [Spelling(WORDS, "en", fewest).correct("smiht ovr teh")[0] for fewest in (3, 4, 9, 91)] == [
        "smith over the", "smith ovr the", "smiht ovr the", "smiht ovr teh",
    ]  # fmt: skip


def test_words_of_turkish_are_known_as_they_are_counted() -> None:
    counts = count_words(["bu İzmir güzel", "o İzmir ılık"] * 5, "tr")
    assert counts["İzmir"] == 10 and counts["ılık"] == 5
    known = Spelling(counts, "tr")
    assert known.count("İzmir") == known.count("izmir") == 10
    assert known.correct("İzmir İzmirr")[0] == "İzmir İzmir"


def test_turkish_letters() -> None:
    known = Spelling({"ılık": 9, "İzmir": 9} | languages.WORDS, "tr")
    assert known.correct("Ilıkk İzmirr izzmir IIlık")[0] == "Ilık İzmir izmir IIlık"


@given(st.lists(st.sampled_from([*WORDS, "Doggy", "THE"]), min_size=1).map(" ".join))
def test_no_known_word_is_changed(text: str) -> None:
    assert Spelling(WORDS, "en").correct(text) == (text, ())


@pytest.mark.parametrize("long", ["ab" * 250_000, "o'" * 250_000 + "o", "dgo " * 100_000, "x" * 51 + "dgo"])
def test_long_words_take_no_time_to_speak_of(long: str) -> None:
    """If the time grew with the square of the length of a word, this test would take hours."""
    found, corrections = Spelling(WORDS, "en").correct(f"teh {long}")
    assert found == f"the {long.replace('dgo ', 'dog ')}"
    assert len(corrections) == 1 + long.count("dgo ")


@given(st.text())
def test_any_text_can_be_corrected(text: str) -> None:
    found, corrections = Spelling(WORDS, "en").correct(text)
    assert (found == text) == (not corrections)
    assert len(WORD.findall(found)) == len(WORD.findall(text))


LINES = ["The dog saw Anna.", "Anna saw the McDog, the dog's DOG!", "", "It don’t, it don't. x2 3y", "paris Paris"]


def test_words_are_counted_as_they_stand_in_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {
        "the": 3, "Paris": 2, "Anna": 2, "dog": 2, "saw": 2, "it": 2, "don't": 2, "McDog": 1, "dog's": 1,
    }  # fmt: skip
    counts = count_words(LINES, "en")
    assert counts == expected
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    monkeypatch.setattr(spelling, "COUNTED_LINES", 2)
    assert count_words(LINES, "en") == expected
    monkeypatch.setattr(spelling, "MAX_WORDS", 2)
    assert count_words(LINES, "en") == {"the": 3, "Anna": 2}


@pytest.mark.parametrize(
    ("language", "text", "usual"),
    [
        ("en", "I'm in boston, said tom o’hara on tv.", "I'm in Boston, said Tom O’Hara on TV."),
        ("en", "Tv is Boring, and iphones are not an iphone", "TV is Boring, and iphones are not an iPhone"),
        ("en", "tom-like boston2 xtom", "Tom-like boston2 xtom"),
        ("de", "Weiss tom, dass die strasse gross ist?", "Weiss Tom, dass die strasse gross ist?"),
        ("de", "Weiß tom das?", "Weiß Tom das?"),
    ],
)
def test_words_get_the_capitals_that_they_usually_have(language: str, text: str, usual: str) -> None:
    words = {"Boston": 2, "Tom": 9, "O'Hara": 1, "TV": 3, "iPhone": 2, "is": 5, "weiß": 2, "dass": 3, "Straße": 1}
    assert Spelling(words, language).in_usual_case(text) == usual
    assert len(usual) == len(text)


def test_counts_of_two_texts_are_added() -> None:
    first = Spelling({"the": 3, "Paris": 2, "dog": 1}, "en")
    assert first.counts_with({"paris": 4, "cat": 1}) == {"Paris": 6, "the": 3, "cat": 1, "dog": 1}


@pytest.mark.parametrize("errors", [0, 1, 2, 3, 5])
@pytest.mark.parametrize("words", [999, 1000, 2500])
def test_the_fewest_times_is_the_smallest_number_with_few_enough_false_alarms(errors: int, words: int) -> None:
    lines = [f"the {wrong} the." for wrong in ("ovr", "smiht", "wnet", "wrod", "dgo")[:errors]]
    lines += ["the"] * (words - 3 * len(lines))
    fewest = min_word_count(languages.layer(corrects=True), lines)

    def changed(least: int) -> int:
        return sum(len(Spelling(WORDS, "en", least).correct(line)[1]) for line in lines)

    assert changed(fewest) <= words / 1000
    assert fewest == spelling.MIN_WORD_COUNT or changed(fewest - 1) > words / 1000
