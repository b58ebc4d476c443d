"""Augmentation of training pairs: shares, placeholders, casing, punctuation and typing errors."""

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
    INSERTION_SHARE,
    NUMBER_PLACEHOLDER_SHARE,
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
    seed=1,
    pairs=ROWS,
    languages_=("en", "de"),
    with_numbers=None,
    tags=(),
    **shares,
):
    """Return an augmentation with the given shares. By default, no pair has a number word."""
    config = AugmentationConfig(**(OFF | shares))
    with_numbers = np.zeros(pairs, bool) if with_numbers is None else with_numbers
    layer = languages.layer(*languages_, tags=tags)
    return Augmentation(config, [layer], seed, CorpusStatistics([LEXICON], np.zeros(pairs, int), with_numbers))


def is_ascending(placeholders):
    """Return whether placeholders are distinct and ascend, those of numbers apart from the others."""
    kinds: tuple[list[str], list[str]] = ([], [])
    for text in placeholders:
        kinds[is_of_number(text)].append(text)
    return all(kind == sorted(set(kind)) for kind in kinds)


def is_of_number(text):
    return text >= placeholder(FIRST_NUMBER_PLACEHOLDER)


def is_near(count, share, total=ROWS):
    """Return whether a count is within five standard deviations of a share of the total."""
    return abs(count - share * total) <= 5 * math.sqrt(total * share * (1 - share)) + 1e-9


WORDS = "Anna", "Moku", "rote", "Hunde"
"""The target words of PAIR that placeholders may replace: two names and two words of the lexicon."""
PAIR = "Anna and Moku see red dogs running home.", "Anna und Moku sehen rote Hunde."
SHARES = {"lower_case": 0.04, "capitals": 0.02, "unpunctuated": 0.03, "typos": 0.1, "slots": 0.12}


def kind_of_change(source):
    """Return the exclusive change of the source of PAIR, placeholders aside."""
    words = PLACEHOLDER.sub("", source).replace(".", " .").split()
    if words[-1] != ".":
        return "unpunctuated"
    for change, original in (("none", PAIR[0]), ("lower_case", PAIR[0].lower())):
        if set(words) <= set(original.replace(".", " .").split()):
            return change
    return "capitals" if re.search("[A-Z]{3}", source) else "typos"


def test_augmentation_changes_configured_shares():
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
        of_numbers += sum(map(is_of_number, placeholders))
        kind = kind_of_change(source)
        if not placeholders:
            plain[kind] += 1
            assert target == (PAIR[1][:-1] if kind == "unpunctuated" else PAIR[1])
            continue
        numbers[len(placeholders)] += 1
        slotted[kind] += 1
        missing = [word for word in WORDS if word not in target]
        # All placeholders are new ones, or all stand for words.
        assert len(missing) in (0, len(placeholders))
        alone += not missing
        replaced.update(missing)
    exclusive = {name: share for name, share in SHARES.items() if name != "slots"}
    assert set(plain) == set(exclusive)
    for name, share in exclusive.items():
        assert is_near(plain[name], share * 0.88), (name, plain)
    assert is_near(numbers.total(), 0.12)
    assert is_near(alone, INSERTION_SHARE, numbers.total())
    total = sum(count * times for count, times in numbers.items())
    assert is_near(of_numbers, NUMBER_PLACEHOLDER_SHARE, total)
    for count, share in {1: 0.5, 2: 0.25, 3: 0.15, 4: 0.1}.items():
        assert is_near(numbers[count], share, numbers.total()), numbers
    for word in WORDS:  # all are replaced equally often
        assert is_near(replaced[word], 1 / len(WORDS), replaced.total()), replaced
    assert is_near(slotted["typos"], SHARES["typos"], numbers.total()), slotted
    assert slotted["unpunctuated"]


def test_unchanged_pairs_only_get_placeholders():
    changing = augmentation(**SHARES)
    unchanged = np.flatnonzero(~changing.is_changed(0, np.arange(ROWS)))
    assert is_near(len(unchanged), (1 - 0.19) * (1 - 0.12))
    marked = languages.layer().prepare_pair("SEE {x} NOW 1999", "1999 {x} ok")
    for row in unchanged[:300].tolist():
        assert changing.augment(0, row, ["SEE {x} NOW 1999"], ["1999 {x} ok"]) == marked
    assert not augmentation(joined=0.5).is_changed(0, np.arange(ROWS)).any()
    assert augmentation(slots=ALWAYS).is_changed(0, np.arange(ROWS)).all()


def test_augmentation_depends_on_seed_epoch_and_row():
    calls = [(epoch, row) for epoch in range(4) for row in range(60)]

    def changed_pairs(calls, seed=1):
        changing = augmentation(seed, 60, **SHARES | {"typos": 0.5, "slots": 0.5})
        pairs = {call: changing.augment(*call, PAIR[:1], PAIR[1:]) for call in calls}
        assert all(
            changing.is_changed(epoch, np.array([row]))[0] == (pairs[epoch, row] != PAIR) for epoch, row in calls
        )
        return pairs

    pairs = changed_pairs(calls)
    assert changed_pairs(random.Random(1).sample(calls, len(calls))) == pairs
    other_seed = changed_pairs(calls, seed=2)
    assert sum(other_seed[call] != pairs[call] for call in calls) > 100
    for epoch in range(1, 4):
        assert sum(pairs[epoch, row] != pairs[0, row] for row in range(60)) > 20
    assert len({pairs[0, row] for row in range(60)}) > 20


def test_augmentation_uses_all_placeholders():
    changing = augmentation(slots=ALWAYS, pairs=600)
    numbers: Counter[str] = Counter()
    for row in range(600):
        source, target = changing.augment(
            0, row, ["Anna sees {x} in Moku, Telo, Fina"], ["Fina, Telo {x} Anna in Moku"]
        )
        placeholders = PLACEHOLDER.findall(source)
        assert sorted(placeholders) == sorted(PLACEHOLDER.findall(target))
        assert "{x}" not in source and is_ascending(placeholders)
        assert 2 <= len(placeholders) <= languages.SLOTS
        numbers.update(placeholders)
    assert set(numbers) == set(all_placeholders(languages.SLOTS))
    for first in (0, FIRST_NUMBER_PLACEHOLDER):
        counts = [numbers[placeholder(first + number)] for number in range(languages.SLOTS)]
        assert max(counts) < 1.6 * min(counts)


NUMBERS = "He has ten dogs and 3 cats, Anna has 250.", "Er hat zehn Hunde und 3 Katzen, Anna hat 250."


def test_number_words_get_number_placeholders():
    changing = augmentation(with_numbers=np.arange(ROWS) % 2 == 0, slots=1e-9)
    changed = changing.is_changed(0, np.arange(ROWS))
    assert not changed[1::2].any() and is_near(int(changed.sum()), NUMBERS_IN_WORDS, ROWS // 2)
    for row in range(200):
        source, target = changing.augment(0, row, NUMBERS[:1], NUMBERS[1:])
        placeholders = PLACEHOLDER.findall(source)
        assert PLACEHOLDER.findall(target) == placeholders and is_ascending(placeholders)
        assert all(map(is_of_number, placeholders))
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
def test_augmentation_keeps_placeholders_paired(languages_, sources, row, data):
    targets = [data.draw(st.permutations(text.split(" ")).map(" ".join)) for text in sources]
    shares = {"lower_case": 0.2, "capitals": 0.2, "unpunctuated": 0.2, "typos": 0.4, "slots": 0.6, "symbols": 0.5}
    changing = augmentation(pairs=51, languages_=languages_, with_numbers=np.ones(51, bool), **shares)
    source, target = changing.augment(0, row, sources, targets)
    placeholders = PLACEHOLDER.findall(source)
    assert sorted(placeholders) == sorted(PLACEHOLDER.findall(target)) and is_ascending(placeholders)
    assert len(placeholders) <= 2 * languages.SLOTS


def test_augmentation_inserts_rare_symbols():
    rules = TextLayerDescription(rare_characters=dict.fromkeys("()–", 3))
    layer = TextLayer(rules, languages.layer().tokenizers, "en", "de")
    config = AugmentationConfig(**(OFF | {"symbols": 0.1}))
    changing = Augmentation(config, [layer], 1, CorpusStatistics([LEXICON], np.zeros(ROWS, int), np.zeros(ROWS, bool)))
    rows = np.flatnonzero(changing.is_changed(0, np.arange(ROWS))).tolist()
    assert is_near(len(rows), 0.1)
    pairs = {changing.augment(0, row, ["Anna said, red dogs run."], ["Anna sagte, rote Hunde rennen."]) for row in rows}
    assert {
        (f"{A} Anna said, red dogs run.", f"{A} Anna sagte, rote Hunde rennen."),
        (f"Anna said, {A} red dogs run.", f"Anna sagte, {A} rote Hunde rennen."),
        (f"Anna said {A} red dogs run.", f"Anna sagte {A} rote Hunde rennen."),
    } <= pairs
    joined = {changing.augment(0, row, ["I see.", "It rains!"], ["Aha.", "Es regnet!"]) for row in rows}
    assert joined == {(f"I see {A} It rains!", f"Aha {A} Es regnet!")}
    assert not augmentation(symbols=0.1).is_changed(0, np.arange(ROWS)).any()  # its tokenizers know all symbols


def test_joined_pairs_are_separated_as_in_their_language():
    changing = augmentation(languages_=("en", "zh"), joined=0.1)
    assert changing.augment(0, 0, ["Ba de.", "Fi.", "Go!"], ["你好。", "世界。", "看！"]) == (
        "Ba de. Fi. Go!",
        "你好。世界。看！",
    )
    assert changing.augment(0, 0, ["Ba de."], ["你好。"]) == ("Ba de.", "你好。")


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3), st.integers(0, 2), st.integers(0, 50))
def test_augmentation_keeps_corpus_tag_in_front(target, sources, tagged, row):
    shares = {"lower_case": 0.2, "capitals": 0.2, "unpunctuated": 0.2, "typos": 0.4, "slots": 0.6}
    targets = [target] * len(sources)
    expected = augmentation(pairs=51, **shares).augment(0, row, sources, targets)
    with_tag = [
        f"{CORPUS_TAG} {text}" if number == tagged % len(sources) else text for number, text in enumerate(sources)
    ]
    changed = augmentation(pairs=51, **shares).augment(0, row, with_tag, targets)
    assert changed == (f"{CORPUS_TAG} {expected[0]}", expected[1])


def test_augmentation_keeps_target_tag():
    changing = augmentation(pairs=50, capitals=0.5, typos=0.5 - 1e-12, tags=("fra_latn",))
    pairs = [changing.augment(0, row, ["fra_latn the red dogs"], ["rote Hunde"]) for row in range(50)]
    assert {source.split()[0] for source, _ in pairs} == {"fra_latn"} and len(set(pairs)) > 5


@pytest.mark.parametrize(
    ("language", "source", "lowercase"),
    [("tr", "Ilık İstanbul", "ılık istanbul"), ("en", "Ilik Istanbul", "ilik istanbul")],
)
def test_lowercase_depends_on_language(language, source, lowercase):
    changing = augmentation(pairs=1, languages_=(language, "de"), lower_case=ALWAYS)
    assert changing.augment(0, 0, [source], ["x"])[0] == lowercase


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("Anna met Berg in 1999, Ä Éa", "Berg Anna 1999 Ä Éa", ["Anna", "Berg", "1999", "Éa"]),
        ("Anna Anna met Berg", "Berg met Anna", ["Berg"]),
        ("Anna met Berg", "Berg Anna Anna", ["Berg"]),
        ("Bergen Berg", "Berg Berger", []),
        ("12 3", "3 12.3 12", []),
        ("Moku", "moku", []),
        ("Moku", "Moku-ba", []),
        ("Moku-ba", "Moku", []),
        ("Moku", "Moku, Moku-ba", []),
        ("A1 Bo2 3c Telo's mo-Ku", "A1 Bo2 3c Telo's mo-Ku", []),
        ("去Anna。", "Anna", []),
    ],
)
def test_shared_names_and_numbers(source, target, expected):
    assert shared_names_and_numbers(source, target) == expected


@pytest.mark.parametrize("between", [(" ", " "), ("", " ")])
@pytest.mark.parametrize(
    ("source", "target", "shares"),
    [
        (
            "ba de.",
            "fi go ?!",
            {("{A}{gap}ba de.", "{A} fi go ?!"): 0.15, ("ba de.{gap}{A}", "fi go ?! {A}"): 0.35,
             ("ba de{gap}{A}.", "fi go {A} ?!"): 0.5},
        ),
        ("ba de", "fi go.", {("{A}{gap}ba de", "{A} fi go."): 0.15, ("ba de{gap}{A}", "fi go. {A}"): 0.35,
                            ("ba de{gap}{A}", "fi go {A}."): 0.5}),
        (
            "ba, de; mo",
            "fi; go, lu",
            {("ba{gap}{A}, de; mo", "fi {A}; go, lu"): 0.25, ("ba, de{gap}{A}; mo", "fi; go {A}, lu"): 0.25,
             ("ba, de; mo{gap}{A}", "fi; go, lu {A}"): 0.5},
        ),
        ("ba, de", "fi go", {("{A}{gap}ba, de", "{A} fi go"): 0.15, ("ba, de{gap}{A}", "fi go {A}"): 0.85}),
    ],
    ids=["final punctuation of both", "final punctuation of one", "commas of both", "comma of one"],
)  # fmt: skip
def test_insert_new_placeholder_at_corresponding_positions(between, source, target, shares):
    counts = Counter(
        insert_new_placeholder(A, source, target, between, generator(seed, "test")) for seed in range(2000)
    )
    expected = {tuple(text.format(A=A, gap=between[0]) for text in pair): share for pair, share in shares.items()}
    assert counts.keys() == expected.keys()
    for pair, share in expected.items():
        assert is_near(counts[pair], share, 2000), counts


@given(
    st.permutations([placeholder(number) for number in (1, 4, FIRST_NUMBER_PLACEHOLDER, FIRST_NUMBER_PLACEHOLDER + 9)]),
    st.permutations(range(4)),
    st.integers(0, 4),
)
def test_renumber_placeholders_keeps_pairs(placeholders, order, count):
    source = " ".join(f"{word} {text}" for word, text in zip("abcd", placeholders[:count], strict=False))
    target = " ".join(f"{'abcd'[index]} {placeholders[index]}" for index in order if index < count)
    ordered, ordered_target = renumber_placeholders(source, target)
    found = PLACEHOLDER.findall(ordered)
    assert sorted(found) == sorted(placeholders[:count]) and is_ascending(found)
    assert [*map(is_of_number, found)] == [*map(is_of_number, placeholders[:count])]  # a position keeps its kind
    placeholder_of = dict(zip(ordered.split()[::2], found, strict=True))
    assert dict(zip(ordered_target.split()[::2], PLACEHOLDER.findall(ordered_target), strict=True)) == placeholder_of


@given(TEXTS, TEXTS)
@example("ba.", "")
@example(". ", "ba!")
@example("ba!", ". ")
@example("ba . ! ", "de。")
def test_strip_final_punctuation_changes_both_sides_or_neither(source, target):
    marks = ".!?…。！？।॥؟"

    def strip_spaces(text):
        return regex.sub(r"\s+\Z", "", text)

    pair = source, target
    ends = [strip_spaces(text) for text in pair]
    stripped = tuple(strip_spaces(text.rstrip(marks)) for text in ends)
    is_stripped = all(stripped) and all(text.endswith(tuple(marks)) for text in ends)
    assert strip_final_punctuation(source, target) == (stripped if is_stripped else pair)


@pytest.mark.parametrize(
    "text", ["." * 100_000 + "a", " " * 100_000 + "a", " ." * 50_000 + "a"], ids=["dots", "spaces", "both"]
)
def test_strip_final_punctuation_takes_linear_time(text):
    assert strip_final_punctuation(text, text) == (text, text)
    assert languages.layer().segment(text + " {x}", split=False)


def test_uppercase_random_words_chooses_any_run():
    variants = {uppercase_random_words("ba de, fi go", generator(seed, "test"), "en") for seed in range(300)}
    assert variants == {"BA de, fi go", "BA DE, fi go", "BA DE, FI go", "ba DE, fi go", "ba DE, FI go", "ba DE, FI GO",
                     "ba de, FI go", "ba de, FI GO", "ba de, fi GO"}  # fmt: skip


def words_of(text):
    """Split a text into words, at odd indices, and the text between them."""
    return regex.split(r"(\p{L}[\p{L}\p{M}]*)", text)


@given(TEXTS, st.integers(0, 10_000))
@example("oo", 1)
@example("aaa bb", 3)
@example("Ab", 7)
def test_add_typos_changes_words_of_several_letters(text, seed):
    typed = add_typos(text, generator(seed, "test"), "en")
    if any(len(word) > 1 for word in words_of(text)[1::2]):
        assert typed != text
    else:
        assert typed == text
    if text.isascii():
        before, after = words_of(text), words_of(typed)
        assert after[::2] == before[::2]
        assert all(len(word) > 1 for word, other in zip(before[1::2], after[1::2], strict=True) if word != other)


def test_add_typos_changes_every_eighth_word():
    text = " ".join(["bamo"] * 40_001)
    wrong = sum(word != "bamo" for word in add_typos(text, generator(1, "test"), "en").split(" "))
    assert is_near(wrong, 1 / 8, 40_001)


@pytest.mark.parametrize(("language", "letters"), [("fr", "zq"), ("fra_Latn", "zq"), ("en", "qwsz")])
def test_typos_use_keyboard_of_source_language(language, letters):
    text = " ".join(["aa"] * 1200)
    assert set(augmentation(languages_=(language, "de"), typos=ALWAYS).augment(1, 0, [text], [text])[0]) == {
        *letters,
        "a",
        " ",
    }


def test_lowercase_source_is_not_truecased():
    layer = languages.layer()
    layer = TextLayer(layer.config, layer.tokenizers, "en", "de", Spelling({"Tom": 3, "met": 2}, "en"))
    assert layer.prepare_pair("we met tom", "ba") == ("We met Tom", "ba")
    config = AugmentationConfig(**(OFF | {"lower_case": ALWAYS}))
    changing = Augmentation(config, [layer], 1, CorpusStatistics([LEXICON], np.zeros(1, int), np.zeros(1, bool)))
    assert changing.augment(0, 0, ["We met Tom B-207"], ["ba B-207"]) == (f"we met tom {A}", f"ba {A}")
