"""Word counts, corrections of typing errors, and truecasing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.text import spelling
from mt.text.keyboard import correction_candidates
from mt.text.placeholders import placeholder
from mt.text.segment import Segment
from mt.text.spelling import CORRECTABLE_WORD, Spelling, count_source_words, has_word_list, is_listed, learn_spelling
from tests import languages

WORDS = languages.WORDS


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("teh dgo wwent ovr", "the dog went over"),  # swapped, swapped, doubled, dropped
        ("Teh dog. Teh dog.", "The dog. Teh dog."),  # elsewhere a capital may begin a name
        ("the Smih, the smiht", "the Smith, the smith"),
        ("the DGO, dGo and USAA", "the DGO, dGo and USAA"),
        ("don't don’t don'tt", "don't don’t don't"),
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
def test_correct(typed, expected):
    found, corrections = Spelling(WORDS, "en").correct(typed)
    assert found == expected
    for one in reversed(corrections):
        found = found[: one.start] + one.typed + found[one.end :]
    assert found == typed


def test_replacements_of_short_words_must_be_more_frequent():
    def corrected(typed: str, meant: str) -> list[int]:
        counts = (4, 5, 12, 13, 40, 126, 127, 400)
        return [count for count in counts if Spelling({meant: count}, "en").correct(typed)[0] == meant]

    assert corrected("oevr", "over") == [40, 126, 127, 400]
    assert corrected("ovr", "over") == [127, 400]
    assert corrected("orevr", "orver") == [13, 40, 126, 127, 400]
    assert corrected("wintres", "winters") == [4, 5, 12, 13, 40, 126, 127, 400]
    assert Spelling({"over": 126, "filler": 3_000_000}, "en").correct("oevr")[0] == "over"
    assert Spelling({"over": 100, "filler": 3_000_000}, "en").correct("oevr")[0] == "oevr"


REAL = {
    "en": "dear ha hrs beta lice hello settings whose shorts criticized organized lbs gravel",
    "fr": "chatte vertes verre l'arme d’approche sauge qu'elle faisan",
    "de": "posten Wange Gattin hoch einige aalen Schaukel",
}


@pytest.mark.parametrize(("language", "word"), [(code, word) for code in REAL for word in REAL[code].split()])
def test_words_of_word_lists_are_not_corrected(language, word):
    """Every word that a typing error can turn into it is known, and frequent."""
    near = set(correction_candidates(word.lower().replace("’", "'"), language, "abcdefghijklmnopqrstuvwxyz"))
    near.discard(word.lower().replace("’", "'"))
    spelling = Spelling(dict.fromkeys((typo for typo in near if CORRECTABLE_WORD.fullmatch(typo)), 9000), language)
    for text in (word, word.capitalize(), f"{min(near)} {word} {max(near)}"):
        assert spelling.correct(text) == (text, ())


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("the voiture rouge", "the voiture rouge"),  # words of the target language
        ("the rouge dgo", "the rouge dog"),
        ("the rougr dgo", "the rougr dgo"),  # rougr is unknown, and not taken for anything
        ("zqx dgo the dgo", "zqx dgo the dog"),
        ("teh dgo", "the dog"),  # two errors side by side
        ("a dgo. and", "a dgo. and"),  # an abbreviation
        ("a dgo. And a dgo.", "a dog. And a dog."),
        ("Here's the county's dgo", "Here's the county's dog"),  # the parts of a contraction are words
    ],
)
def test_names_abbreviations_and_target_words_are_not_corrected(typed, expected):
    words = WORDS | {"a": 9000, "and": 9000, "routes": 9000, "routed": 9000, "roughe": 9000, "voitures": 9000}
    words |= {"there's": 9000, "country's": 9000}
    assert Spelling(words, "en", target_language="fr").correct(typed)[0] == expected


def test_corrects_typos_by_default_only_with_word_list():
    listed, unlisted, none = (languages.layer(code, corrects=code != "fr") for code in ("en", "xx", "fr"))
    assert [listed.corrects_typos(setting) for setting in ("auto", True, False)] == [True, True, False]
    assert [unlisted.corrects_typos(setting) for setting in ("auto", True, False)] == [False, True, False]
    assert not none.corrects_typos(True)
    assert unlisted.spelling is not None and unlisted.spelling.correct("teh dgo")[0] == "the dog"


@pytest.mark.parametrize("code", ["nb", "no", "hr", "sr_Latn", "tl", "deu", "pt_BR", "en"])
def test_has_word_list(code):
    assert has_word_list(code)


@pytest.mark.parametrize("code", ["xx", "zh", "eu", "ja"])
def test_languages_without_word_list(code):
    assert not has_word_list(code) and not is_listed("a", code)


def test_count_source_words_of_turkish():
    counts = count_source_words(["bu İzmir güzel", "o İzmir ılık"] * 5, "tr")
    assert counts["İzmir"] == 10 and counts["ılık"] == 5
    assert Spelling(counts, "tr").correct("İzmir İzmirr")[0] == "İzmir İzmir"


def test_correct_turkish():
    known = Spelling({"ılık": 900, "İzmir": 900} | languages.WORDS, "tr")
    assert known.correct("Ilıkk İzmirr izzmir the IIlık")[0] == "Ilık İzmir izmir the IIlık"


@given(st.lists(st.sampled_from([*WORDS, "Doggy", "THE"]), min_size=1).map(" ".join))
def test_known_words_are_not_corrected(text):
    assert Spelling(WORDS, "en").correct(text) == (text, ())


@pytest.mark.parametrize("long", ["ab" * 100_000, "o'" * 100_000 + "o", "dgo " * 20_000, "x" * 51 + "dgo"])
def test_correct_takes_linear_time(long):
    """If the time grew with the square of the length of a word, this test would take hours."""
    found, corrections = Spelling(WORDS, "en").correct(f"teh dog {long}")
    assert found == f"the dog {long.replace('dgo ', 'dog ')}"
    assert len(corrections) == 1 + long.count("dgo ")


@given(st.text())
def test_correct_keeps_the_number_of_words(text):
    found, corrections = Spelling(WORDS, "en").correct(text)
    assert (found == text) == (not corrections)
    assert len(CORRECTABLE_WORD.findall(found)) == len(CORRECTABLE_WORD.findall(text))


LINES = ["The dog saw Anna.", "Anna saw the McDog, the dog's DOG!", "", "It don’t, it don't. x2 3y", "paris Paris"]


def test_count_source_words(monkeypatch):
    expected = {
        "the": 3, "Paris": 2, "Anna": 2, "dog": 2, "saw": 2, "it": 2, "don't": 2, "McDog": 1, "dog's": 1,
    }  # fmt: skip
    counts = count_source_words(LINES, "en")
    assert counts == expected
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    monkeypatch.setattr(spelling, "COUNTED_LINES", 2)
    assert count_source_words(LINES, "en") == expected
    monkeypatch.setattr(spelling, "MAX_KEPT_WORDS", 2)
    assert count_source_words(LINES, "en") == {"the": 3, "Anna": 2}


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
def test_truecase(language, text, usual):
    words = {"Boston": 2, "Tom": 9, "O'Hara": 1, "TV": 3, "iPhone": 2, "is": 5, "weiß": 2, "dass": 3, "Straße": 1}
    assert Spelling(words, language).truecase(text) == usual
    assert len(usual) == len(text)


def test_merged_counts():
    first = Spelling({"the": 3, "Paris": 2, "dog": 1}, "en")
    assert first.merged_counts({"paris": 4, "cat": 1}) == {"Paris": 6, "the": 3, "cat": 1, "dog": 1}


@pytest.mark.parametrize(
    ("source", "translation", "restored"),
    [
        ("one dog", "Ein Hund", "ein Hund"),
        ("One dog", "Ein Hund", "Ein Hund"),
        ("dogs", "Hunde", "Hunde"),
        ("i’m here", "I'm da", "I'm da"),
    ],
)
def test_restore_lowercases_the_first_word_like_the_source(source, translation, restored):
    known = learn_spelling([source], ["Der Hund und die Hunde: Hier bin ich, I'm da"], "en", "de", None)
    assert "".join(known.restore(Segment(source, original=source), translation, list(translation))) == restored
