"""What becomes of a training pair depends on the seed, the epoch and the row; nothing is lost on the way."""

import math
import random
import re
from collections import Counter

import numpy as np
import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt.config import AugmentationConfig
from mt.core.randomness import generator
from mt.data.samples import NUMBERS_IN_WORDS, Augmentation, CorpusStatistics
from mt.storage.model_description import TextLayerDescription
from mt.text.casing import uppercase_random_words
from mt.text.final_punctuation import strip_final_punctuation
from mt.text.keyboard import add_typos
from mt.text.layer import TextLayer
from mt.text.lexicon import (
    NEW_PLACEHOLDERS_ALONE,
    NEW_PLACEHOLDERS_OF_NUMBERS,
    Lexicon,
    insert_new_placeholder,
    renumber_placeholders,
    shared_names_and_numbers,
)
from mt.text.placeholders import (
    CORPUS_TAG,
    FIRST_NUMBER_PLACEHOLDER,
    PLACEHOLDER,
    all_placeholders,
    placeholder,
)
from mt.text.spelling import Spelling
from tests import languages

A, B = placeholder(0), placeholder(1)
OFF = dict.fromkeys(AugmentationConfig.model_fields, 0.0)
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(
            ["ba", "Moku", "DE", "oo", "ß", "İı", "12", "x1", A, B, ".", "?!", "…", "Telo's", "mo-ku", "é\u0301"]
        ),
        st.text(max_size=4),
    ),
    max_size=10,
).map(" ".join)
ROWS = 20_000
LEXICON = Lexicon([("red", "rote"), ("dogs", "Hunde"), *[("ba", "mo")] * 500] + [("red dogs", "rote Hunde")] * 4)
ALWAYS = 1 - 1e-12


def augmentation(
    seed: int = 1,
    pairs: int = ROWS,
    languages_: tuple[str, str] = ("en", "de"),
    with_numbers: np.ndarray | None = None,
    tags: tuple[str, ...] = (),
    **shares: float,
) -> Augmentation:
    """By default no pair has a number word."""
    config = AugmentationConfig(**(OFF | shares))
    with_numbers = np.zeros(pairs, bool) if with_numbers is None else with_numbers
    layer = languages.layer(*languages_, tags=tags)
    return Augmentation(config, [layer], seed, CorpusStatistics([LEXICON], np.zeros(pairs, int), with_numbers))


def is_ascending(placeholders: list[str]) -> bool:
    """Whether no placeholder stands twice and the numbers of either kind ascend."""
    kinds = [
        [one for one in placeholders if (one >= placeholder(FIRST_NUMBER_PLACEHOLDER)) == of_numbers]
        for of_numbers in (False, True)
    ]
    return all(kind == sorted(set(kind)) for kind in kinds)


def near(count: int, share: float, total: int = ROWS) -> bool:
    """Whether a count is within five standard deviations."""
    return abs(count - share * total) <= 5 * math.sqrt(total * share * (1 - share)) + 1e-9


WORDS = "Anna", "Moku", "rote", "Hunde"
"""What placeholders may stand for in the pair below, as it stands in its target: two names and words of the lexicon."""
PAIR = "Anna and Moku see red dogs running home.", "Anna und Moku sehen rote Hunde."
SHARES = {"lower_case": 0.04, "capitals": 0.02, "unpunctuated": 0.03, "typos": 0.1, "slots": 0.12}


def kind_of_change(source: str) -> str:
    """Which change was made, of those that exclude each other, beside placeholders."""
    left = PLACEHOLDER.sub("", source).replace(".", " .").split()
    if set(left) <= set(PAIR[0].replace(".", " .").split()) and left[-1] == ".":
        return "none"
    if set(left) <= set(PAIR[0].lower().replace(".", " .").split()) and left[-1] == ".":
        return "lower_case"
    if left[-1] != ".":
        return "unpunctuated"
    return "capitals" if re.search("[A-Z]{3}", source) else "typos"


def test_the_shares_are_those_of_the_config():
    changing = augmentation(**SHARES)
    rows = np.flatnonzero(changing.is_changed(3, np.arange(ROWS))).tolist()
    plain: Counter[str] = Counter()
    slotted: Counter[str] = Counter()
    numbers: Counter[int] = Counter()
    replaced: Counter[str] = Counter()
    alone = of_numbers = 0
    for row in rows:
        source, target = changing.augment(3, row, PAIR[:1], PAIR[1:])
        placeholders = PLACEHOLDER.findall(source)
        assert sorted(placeholders) == sorted(PLACEHOLDER.findall(target)) and is_ascending(placeholders)
        assert (source, target) != PAIR
        of_numbers += sum(one >= placeholder(FIRST_NUMBER_PLACEHOLDER) for one in placeholders)
        if not placeholders:
            plain[kind_of_change(source)] += 1
            assert target == (PAIR[1][:-1] if kind_of_change(source) == "unpunctuated" else PAIR[1])
            continue
        numbers[len(placeholders)] += 1
        slotted[kind_of_change(source)] += 1
        missing = [word for word in WORDS if word not in target]
        # All placeholders are new ones, or all stand for words.
        assert len(missing) in (0, len(placeholders))
        alone += not missing
        replaced.update(missing)
    exclusive = {name: share for name, share in SHARES.items() if name != "slots"}
    assert set(plain) == set(exclusive)
    for name, share in exclusive.items():
        assert near(plain[name], share * 0.88), (name, plain)
    assert near(numbers.total(), 0.12)
    assert near(alone, NEW_PLACEHOLDERS_ALONE, numbers.total())
    total = sum(count * times for count, times in numbers.items())
    assert near(of_numbers, NEW_PLACEHOLDERS_OF_NUMBERS, total)
    for count, share in {1: 0.5, 2: 0.25, 3: 0.15, 4: 0.1}.items():
        assert near(numbers[count], share, numbers.total()), numbers
    for word in WORDS:  # all are replaced equally often
        assert near(replaced[word], 1 / len(WORDS), replaced.total()), replaced
    assert near(slotted["typos"], SHARES["typos"], numbers.total()), slotted
    assert slotted["unpunctuated"]
    assert len(set(rows)) == plain.total() + numbers.total()


def test_what_is_not_changed_is_marked_alone():
    changing = augmentation(**SHARES)
    unchanged = np.flatnonzero(~changing.is_changed(0, np.arange(ROWS)))
    assert near(len(unchanged), (1 - 0.19) * (1 - 0.12))
    marked = languages.layer().prepare_pair("SEE {x} NOW 1999", "1999 {x} ok")
    for row in unchanged[:300].tolist():
        assert changing.augment(0, row, ["SEE {x} NOW 1999"], ["1999 {x} ok"]) == marked
    assert changing.is_changed(0, unchanged).tolist() == [False] * len(unchanged)
    nothing = augmentation(joined=0.5)
    assert not nothing.is_changed(0, np.arange(ROWS)).any()
    assert augmentation(slots=ALWAYS).is_changed(0, np.arange(ROWS)).all()


def test_changes_depend_on_seed_epoch_and_row_alone() -> None:
    shares = SHARES | {"typos": 0.5, "slots": 0.5}
    calls = [(epoch, row) for epoch in range(4) for row in range(60)]

    def changed(changing: Augmentation, calls: list[tuple[int, int]]) -> dict:
        return {call: changing.augment(*call, PAIR[:1], PAIR[1:]) for call in calls}

    once = changed(augmentation(pairs=60, **shares), calls)
    shuffled = random.Random(1).sample(calls, len(calls))
    assert changed(augmentation(pairs=60, **shares), shuffled) == once
    assert changed(augmentation(pairs=60, **shares), calls[::-1]) == once
    again = augmentation(pairs=60, **shares)
    for epoch, row in shuffled:
        assert bool(again.is_changed(epoch, np.array([row]))[0]) == (once[epoch, row] != PAIR)
    other_seed = changed(augmentation(seed=2, pairs=60, **shares), calls)
    assert sum(other_seed[call] != once[call] for call in calls) > 100
    for epoch in range(1, 4):
        assert sum(once[epoch, row] != once[0, row] for row in range(60)) > 20
    assert len({once[0, row] for row in range(60)}) > 20


def test_placeholders_are_of_all_numbers():
    changing = augmentation(slots=ALWAYS, pairs=600)
    numbers: Counter[str] = Counter()
    for row in range(600):
        source, target = changing.augment(
            0, row, ["Anna sees {x} in Moku, Telo, Fina"], ["Fina, Telo {x} Anna in Moku"]
        )
        placeholders = PLACEHOLDER.findall(source)
        assert sorted(placeholders) == sorted(PLACEHOLDER.findall(target))
        names = sum(name not in target for name in ("Anna", "Moku", "Telo", "Fina"))
        assert "{x}" not in source and is_ascending(placeholders)
        assert 2 <= len(placeholders) <= languages.SLOTS and names in (0, len(placeholders) - 1)
        numbers.update(placeholders)
    assert set(numbers) == set(all_placeholders(languages.SLOTS))
    for first in (0, FIRST_NUMBER_PLACEHOLDER):
        counts = [numbers[placeholder(first + number)] for number in range(languages.SLOTS)]
        assert max(counts) < 1.6 * min(counts)


NUMBERS = "He has ten dogs and 3 cats, Anna has 250.", "Er hat zehn Hunde und 3 Katzen, Anna hat 250."


def test_numbers_have_placeholders_of_their_own_in_digits_and_in_words():
    changing = augmentation(with_numbers=np.arange(ROWS) % 2 == 0, slots=1e-9)
    changed = changing.is_changed(0, np.arange(ROWS))
    assert not changed[1::2].any() and near(int(changed.sum()), NUMBERS_IN_WORDS, ROWS // 2)
    for row in range(200):
        source, target = changing.augment(0, row, NUMBERS[:1], NUMBERS[1:])
        placeholders = PLACEHOLDER.findall(source)
        assert PLACEHOLDER.findall(target) == placeholders and is_ascending(placeholders)
        assert all(one >= placeholder(FIRST_NUMBER_PLACEHOLDER) for one in placeholders)
        assert ("ten" in source) == ("zehn" in target) == (not changed[row]) == (len(placeholders) == 2)
        assert not re.search("[0-9]", source + target)
    assert not augmentation(with_numbers=np.ones(9, bool), pairs=9).is_changed(0, np.arange(9)).any()


@given(
    languages_=st.sampled_from([("en", "de"), ("zh", "en"), ("tr", "zh")]),
    sources=st.lists(TEXTS, min_size=1, max_size=3),
    row=st.integers(0, 50),
    data=st.data(),
)
@settings(max_examples=150)
def test_placeholders_stay_pairs_whatever_is_changed(languages_, sources, row, data):
    targets = [data.draw(st.permutations(text.split(" ")).map(" ".join)) for text in sources]
    shares = {"lower_case": 0.2, "capitals": 0.2, "unpunctuated": 0.2, "typos": 0.4, "slots": 0.6, "symbols": 0.5}
    changing = augmentation(pairs=51, languages_=languages_, with_numbers=np.ones(51, bool), **shares)
    one, other = changing.augment(0, row, sources, targets)
    placeholders = PLACEHOLDER.findall(one)
    assert sorted(placeholders) == sorted(PLACEHOLDER.findall(other)) and is_ascending(placeholders)
    assert len(placeholders) <= 2 * languages.SLOTS


def test_some_pairs_get_marks_that_the_corpus_has_too_seldom():
    rules = TextLayerDescription(rare_characters=dict.fromkeys("()–", 3))
    layer = TextLayer(rules, languages.layer().tokenizers, "en", "de")
    config = AugmentationConfig(**(OFF | {"symbols": 0.1}))
    changing = Augmentation(config, [layer], 1, CorpusStatistics([LEXICON], np.zeros(ROWS, int), np.zeros(ROWS, bool)))
    rows = np.flatnonzero(changing.is_changed(0, np.arange(ROWS))).tolist()
    assert near(len(rows), 0.1)
    pairs = {changing.augment(0, row, ["Anna said, red dogs run."], ["Anna sagte, rote Hunde rennen."]) for row in rows}
    assert {
        (f"{A} Anna said, red dogs run.", f"{A} Anna sagte, rote Hunde rennen."),
        (f"Anna said, {A} red dogs run.", f"Anna sagte, {A} rote Hunde rennen."),
        (f"Anna said {A} red dogs run.", f"Anna sagte {A} rote Hunde rennen."),
    } <= pairs
    joined = {changing.augment(0, row, ["I see.", "It rains!"], ["Aha.", "Es regnet!"]) for row in rows}
    assert joined == {(f"I see {A} It rains!", f"Aha {A} Es regnet!")}
    assert not augmentation(symbols=0.1).is_changed(0, np.arange(ROWS)).any()  # its tokenizers know all symbols


def test_joined_pairs_have_a_space_between_them_where_their_language_has_one():
    changing = augmentation(languages_=("en", "zh"), joined=0.1)
    assert changing.augment(0, 0, ["Ba de.", "Fi.", "Go!"], ["你好。", "世界。", "看！"]) == (
        "Ba de. Fi. Go!",
        "你好。世界。看！",
    )
    assert changing.augment(0, 0, ["Ba de."], ["你好。"]) == ("Ba de.", "你好。")


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), st.integers(0, 2), st.integers(0, 50))
def test_a_tag_stays_in_front_whatever_is_changed(target, sources, tagged, row):
    shares = {"lower_case": 0.2, "capitals": 0.2, "unpunctuated": 0.2, "typos": 0.4, "slots": 0.6}
    targets = [target] * len(sources)
    expected = augmentation(pairs=51, **shares).augment(0, row, sources, targets)
    with_tag = [
        f"{CORPUS_TAG} {text}" if number == tagged % len(sources) else text for number, text in enumerate(sources)
    ]
    changed = augmentation(pairs=51, **shares).augment(0, row, with_tag, targets)
    assert changed == (f"{CORPUS_TAG} {expected[0]}", expected[1])


def test_a_tag_of_a_language_stays_as_it_is():
    changing = augmentation(pairs=50, capitals=0.5, typos=0.5 - 1e-12, tags=("fra_latn",))
    pairs = [changing.augment(0, row, ["fra_latn the red dogs"], ["rote Hunde"]) for row in range(50)]
    assert {source.split()[0] for source, _ in pairs} == {"fra_latn"} and len(set(pairs)) > 5


def test_small_letters_are_those_of_the_language():
    for language, small in (("tr", "ılık istanbul"), ("en", "ilik istanbul")):
        changing = augmentation(pairs=1, languages_=(language, "de"), lower_case=ALWAYS)
        assert changing.augment(0, 0, ["Ilık İstanbul" if language == "tr" else "Ilik Istanbul"], ["x"])[0] == small


def test_names():
    assert shared_names_and_numbers("Anna met Berg in 1999, Ä Éa", "Berg Anna 1999 Ä Éa") == [
        "Anna",
        "Berg",
        "1999",
        "Éa",
    ]
    assert shared_names_and_numbers("Anna Anna met Berg", "Berg met Anna") == ["Berg"]
    assert shared_names_and_numbers("Anna met Berg", "Berg Anna Anna") == ["Berg"]
    assert shared_names_and_numbers("Bergen Berg", "Berg Berger") == shared_names_and_numbers("12 3", "3 12.3 12") == []
    assert shared_names_and_numbers("Moku", "moku") == []
    assert shared_names_and_numbers("Moku", "Moku-ba") == shared_names_and_numbers("Moku-ba", "Moku") == []
    assert shared_names_and_numbers("Moku", "Moku, Moku-ba") == []
    assert shared_names_and_numbers("A1 Bo2 3c Telo's mo-Ku", "A1 Bo2 3c Telo's mo-Ku") == []
    assert shared_names_and_numbers("去Anna。", "Anna") == []


@pytest.mark.parametrize("between", [(" ", " "), ("", " ")])
def test_a_new_placeholders_is_at_the_same_place_of_both_sides(between):
    gap = between[0]
    ends: Counter[str] = Counter()
    for seed in range(2000):
        source, target = insert_new_placeholder(A, "ba de.", "fi go ?!", between, generator(seed, "test"))
        forms = {
            (f"{A}{gap}ba de.", f"{A} fi go ?!"): "front",
            (f"ba de.{gap}{A}", f"fi go ?! {A}"): "behind",
            (f"ba de{gap}{A}.", f"fi go {A} ?!"): "before the punctuation",
        }
        ends[forms[source, target]] += 1
        bare = insert_new_placeholder(A, "ba de", "fi go.", between, generator(seed, "test"))
        assert bare[0] in (f"{A}{gap}ba de", f"ba de{gap}{A}")
        assert bare[0].startswith(A) == bare[1].startswith(A)
        at_a_comma = insert_new_placeholder(A, "ba, de; mo", "fi; go, lu", between, generator(seed, "test"))
        assert at_a_comma in [
            (f"ba{gap}{A}, de; mo", f"fi {A}; go, lu"),
            (f"ba, de{gap}{A}; mo", f"fi; go {A}, lu"),
            (f"ba, de; mo{gap}{A}", f"fi; go, lu {A}"),
        ]
        without_commas = insert_new_placeholder(A, "ba, de", "fi go", between, generator(seed, "test"))
        assert without_commas[0] in (f"{A}{gap}ba, de", f"ba, de{gap}{A}")
    for name, share in {"front": 0.15, "behind": 0.35, "before the punctuation": 0.5}.items():
        assert near(ends[name], share, 2000)


@given(
    st.permutations([placeholder(number) for number in (1, 4, FIRST_NUMBER_PLACEHOLDER, FIRST_NUMBER_PLACEHOLDER + 9)]),
    st.permutations(range(4)),
    st.integers(0, 4),
)
def test_placeholders_ascend_in_the_source_and_stay_pairs(placeholders, order, count):
    source = " ".join(f"{word} {one}" for word, one in zip("abcd", placeholders[:count], strict=False))
    target = " ".join(f"{'abcd'[place]} {placeholders[place]}" for place in order if place < count)
    one, other = renumber_placeholders(source, target)
    found = PLACEHOLDER.findall(one)
    assert sorted(found) == sorted(placeholders[:count]) and is_ascending(found)
    # Each kind stays where it was.
    assert [each >= placeholder(FIRST_NUMBER_PLACEHOLDER) for each in found] == [
        each >= placeholder(FIRST_NUMBER_PLACEHOLDER) for each in placeholders[:count]
    ]
    beside = dict(zip(one.split()[::2], found, strict=True))
    assert dict(zip(other.split()[::2], PLACEHOLDER.findall(other), strict=True)) == beside


@given(TEXTS, TEXTS)
@example("ba.", "")
@example(". ", "ba!")
@example("ba!", ". ")
@example("ba . ! ", "de。")
def test_punctuation_goes_from_both_sides_or_from_none(source, target):
    one, other = strip_final_punctuation(source, target)
    marks = ".!?…。！？।॥؟"

    def bare(text: str) -> str:
        return without_blanks(without_blanks(text).rstrip(marks))

    def without_blanks(text: str) -> str:
        return regex.sub(r"\s+\Z", "", text)

    expected = bare(source), bare(target)
    ends = all(without_blanks(text)[-1:] in set(marks) for text in (source, target))
    assert (one, other) == (expected if ends and all(expected) else (source, target))


def test_a_line_of_blanks_and_dots_takes_no_time():
    for text in ("." * 100_000 + "a", " " * 100_000 + "a", " ." * 50_000 + "a"):
        assert strip_final_punctuation(text, text) == (text, text)
    assert languages.layer().segment(text + " {x}", split=False)


def test_every_run_of_words_can_be_put_into_capitals():
    found = {uppercase_random_words("ba de, fi go", generator(seed, "test"), "en") for seed in range(300)}
    assert found == {"BA de, fi go", "BA DE, fi go", "BA DE, FI go", "ba DE, fi go", "ba DE, FI go", "ba DE, FI GO",
                     "ba de, FI go", "ba de, FI GO", "ba de, fi GO"}  # fmt: skip


def test_capitals_are_those_of_the_language():
    found = {uppercase_random_words("ili", generator(1, "test"), language) for language in ("en", "tr", "tur")}
    assert found == {"ILI", "İLİ"}


def words_of(text: str) -> list[str]:
    """Words and what is between them, in turns."""
    return regex.split(r"(\p{L}[\p{L}\p{M}]*)", text)


@given(TEXTS, st.integers(0, 10_000))
@example("oo", 1)
@example("aaa bb", 3)
@example("Ab", 7)
def test_typing_errors_are_in_words_of_several_letters(text, seed):
    found = add_typos(text, generator(seed, "test"), "en")
    if any(len(word) > 1 for word in words_of(text)[1::2]):
        assert found != text
    else:
        assert found == text
    if text.isascii():
        before, after = words_of(text), words_of(found)
        assert after[::2] == before[::2]
        assert all(len(word) > 1 for word, other in zip(before[1::2], after[1::2], strict=True) if word != other)


def test_every_eighth_word_has_a_typing_error():
    text = " ".join(["bamo"] * 40_001)
    wrong = sum(word != "bamo" for word in add_typos(text, generator(1, "test"), "en").split(" "))
    assert near(wrong, 1 / 8, 40_001)


def test_the_keyboard_is_that_of_the_source_language():
    for language, letters in (("fr", "zq"), ("fra_Latn", "zq"), ("en", "qwsz")):
        text = " ".join(["aa"] * 400)
        found = {
            augmentation(languages_=(language, "de"), typos=ALWAYS).pair(1, row, [text], [text])[0] for row in range(3)
        }
        assert set("".join(found)) == {*letters, "a", " "}


def test_a_source_in_small_letters_gets_no_capitals_back():
    layer = languages.layer()
    layer = TextLayer(layer.config, layer.tokenizers, "en", "de", Spelling({"Tom": 3, "met": 2}, "en"))
    assert layer.prepare_pair("we met tom", "ba") == ("We met Tom", "ba")
    config = AugmentationConfig(**(OFF | {"lower_case": ALWAYS}))
    changing = Augmentation(config, [layer], 1, CorpusStatistics([LEXICON], np.zeros(1, int), np.zeros(1, bool)))
    assert changing.augment(0, 0, ["We met Tom B-207"], ["ba B-207"]) == (f"we met tom {A}", f"ba {A}")
