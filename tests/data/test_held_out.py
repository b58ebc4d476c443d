"""Held-out pairs share no sentence with others and depend on the text only; normal forms of sentences."""

import hashlib
import random
import tracemalloc
import unicodedata
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.data.pairs import (
    _NORMAL_FORM_TABLE,
    PUNCTUATION_IN_NUMBER,
    SPACING_ACCENT,
    normal_form,
    pair_hash,
    sentence_key,
)
from mt.data.split import hold_out

SENTENCE = st.integers(0, 60).map("sentence {}".format)
SPELLINGS: list[Callable[[str], str]] = [
    str.upper,
    str.title,
    "« {} ».".format,
    "{}\u202f!".format,
    lambda text: text.replace(" ", "\u00a0 "),
    lambda text: text.replace(" ", ""),
    lambda text: text.replace(" ", ", "),
    lambda text: unicodedata.normalize("NFD", text),
    lambda text: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text),  # wide forms
    lambda text: "\u00ad".join(text),  # soft hyphens
]
"""Other ways to write a sentence that is not all punctuation or digits; each leaves it the same."""
SPELLED_SENTENCE = st.builds(
    lambda number, spellings: spelled(f"L'été numéro {'abcdefghij'[number // 10]}{number % 10}", spellings),
    st.integers(0, 60),
    st.lists(st.sampled_from(SPELLINGS), max_size=2),
)


def spelled(text, spellings):
    for spelling in spellings:
        text = spelling(text)
    return text


def parts(pairs, sizes):
    sources, targets = (np.array(list(map(sentence_key, side))) for side in zip(*pairs, strict=True))
    return hold_out(np.array([pair_hash(*pair) for pair in pairs]), (sources, targets), sizes)


@given(pairs=st.lists(st.tuples(SPELLED_SENTENCE, SPELLED_SENTENCE), min_size=20, max_size=60), size=st.integers(1, 5))
def test_hold_out_puts_no_sentence_into_two_parts(pairs, size):
    try:
        part = parts(pairs, (size, size + 1))
    except InputError:
        assume(False)
    for side in (0, 1):
        places: dict[str, set[int]] = {}
        for pair, number in zip(pairs, part, strict=True):
            # The normal form, computed in another way.
            text = unicodedata.normalize("NFKC", pair[side]).casefold()
            text = "".join(c for c in text if c.isalnum())
            places.setdefault(text, set()).add(number)
        assert all(len(numbers) == 1 for numbers in places.values())
    assert (part == 1).sum() >= size
    assert (part == 2).sum() >= size + 1


@given(pairs=st.lists(st.tuples(SENTENCE, SENTENCE), min_size=20, max_size=60, unique=True), random=st.randoms())
def test_hold_out_does_not_depend_on_order(pairs, random):
    shuffled = pairs.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    try:
        expected = dict(zip(pairs, parts(pairs, (2, 3)), strict=True))
    except InputError:
        assume(False)
    assert dict(zip(shuffled, parts(shuffled, (2, 3)), strict=True)) == expected


def test_hold_out_keeps_long_chains_together():
    chain = [(f"left {number // 2}", f"right {(number + 1) // 2}") for number in range(2000)]
    singles = [(f"left {number}", f"right {number}") for number in range(5000, 5300)]
    part = parts(chain + singles, (20, 20))
    assert not part[: len(chain)].any()
    assert sorted(np.bincount(part[len(chain) :])) == [20, 20, 260]


def test_hold_out_chooses_large_groups_as_often():
    singles = [(f"alone {number}", f"seul {number}") for number in range(8000)]
    groups = [(f"shared {number // 4}", f"partagé {number}") for number in range(8000)]
    part = parts(singles + groups, (2000,))
    share = (part[8000:] == 1).sum() / (part == 1).sum()
    assert 0.45 < share < 0.55


def test_hold_out_leaves_training_pairs():
    for count in range(4, 40):
        pairs = [(f"left {number // 3}", f"right {number}") for number in range(count)]
        try:
            part = parts(pairs, (max(1, count // 10),) * 2)
        except InputError:
            continue
        assert (part == 0).any()
    with pytest.raises(InputError, match=r"2 \+ 2 pairs cannot be held out of 7"):
        parts([(f"left {number // 3}", f"right {number}") for number in range(6)] + [("one", "alone")], (2, 2))


def test_hold_out_memory_per_pair():
    draw = np.random.default_rng(1)
    count = 200_000
    hashes, sources, targets = draw.integers(-(2**63), 2**63 - 1, (3, count))
    tracemalloc.start()
    hold_out(hashes, (sources, targets), (2000, 2000))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 70 * count


def test_hold_out_never_changes():
    draw = random.Random(1)
    pairs = [
        (f"Satz {draw.randrange(900)}{draw.choice('.!')}", f"Sentence {draw.randrange(900)}.") for _ in range(1000)
    ]
    part = parts(pairs, (30, 40))
    assert np.bincount(part).tolist() == [929, 30, 41]
    checksum = hashlib.sha256(part.astype(np.int8).tobytes()).hexdigest()
    assert checksum.startswith("369b30697b67ed7cb106f8d19ba0d561")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("text", ["Aujourd'hui, l'été est là", "straße 7 und 8b", "ὀδυσσεύς", "这是3个句子"])
def test_normal_form_ignores_other_spelling(text, spelling):
    assert normal_form(spelling(text)) == normal_form(text)
    assert sentence_key(spelling(text)) == sentence_key(text)


@pytest.mark.parametrize(
    "texts",
    [
        ["Aujourd\u2019hui", "aujourd\u02bchui", "AUJOURD´HUI"],
        ["Um 10:30", "um 10.30 !", "um 10 – 30"],
        ["10 000 €", "10000", "10\u202f000"],
        ["m²", "M2"],
        ["I \u2764\ufe0f it", "i it"],
    ],
)
def test_normal_form_of_equal_sentences(texts):
    assert len({normal_form(text) for text in texts}) == 1


def test_normal_form_of_different_sentences():
    different = ["3.5", "35", "3.55", "été", "ete", "?!", "!?", "...", "\u266b", "1", "2", "का", "कि", "が", "か"]
    assert len({normal_form(text) for text in different}) == len(different)
    assert "" not in map(normal_form, different)


JOINING = st.sampled_from(
    "e\u0301\u0308´¨ \uff76\uff9e\u30ab\u3099\u1100\u1161\u11a8\uffa1\uffc2\u0130\u1fb3\u01f0\u0915\u093f.1"
)


@given(st.text(st.one_of(JOINING, st.characters(exclude_categories=["Cs"]))))
def test_normal_form_folds_whole_text(text):
    whole = SPACING_ACCENT.sub("", unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()))
    expected = PUNCTUATION_IN_NUMBER.sub(".", whole.translate(_NORMAL_FORM_TABLE)).replace("\0", "")
    assert normal_form(text) == (expected or "".join(whole.split()) or text)
