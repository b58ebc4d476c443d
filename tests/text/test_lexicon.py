"""The lexicon against Dice coefficients that are computed directly."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mt.text import lexicon
from mt.text.lexicon import MIN_DICE, MIN_SHARED_PAIRS, Lexicon, lexicon_words

SOURCES, TARGETS = ["ba", "de", "fi", "Go", "mo"], ["lu", "na", "pe", "Ro", "sy"]
SIDES = [st.lists(st.sampled_from(side), max_size=5).map(" ".join) for side in (SOURCES, TARGETS)]


@given(st.lists(st.tuples(*SIDES), max_size=40), st.integers(1, 4))
def test_lexicon_has_mutual_best_matches_by_dice(pairs, times):
    pairs = pairs * times
    found = Lexicon(pairs)
    inside = [(set(lexicon_words(source.lower())), set(lexicon_words(target.lower()))) for source, target in pairs]
    most = max(MIN_SHARED_PAIRS, 0.01 * len(pairs))

    def dice(one: str, other: str) -> float:
        together = sum(one in source and other in target for source, target in inside)
        of_one, of_other = sum(one in source for source, _ in inside), sum(other in target for _, target in inside)
        if together < MIN_SHARED_PAIRS or max(of_one, of_other) > most:
            return 0.0
        return 2 * together / (of_one + of_other)

    names = [word.lower() for word in SOURCES], [word.lower() for word in TARGETS]
    for one in names[0]:
        for other in names[1]:
            own = dice(one, other)
            best = own >= max([*(dice(one, each) for each in names[1]), *(dice(each, other) for each in names[0])])
            meant = own >= MIN_DICE and best
            if meant or found.matching_pairs(one, other):
                # Where two companions are equally frequent, either may be taken.
                assert meant and (found.matching_pairs(one, other) == [(one, other)] or _tied(dice, one, other, names))


def _tied(dice, one: str, other: str, names: tuple[list[str], list[str]]) -> bool:
    return sum(dice(one, each) == dice(one, other) for each in names[1]) > 1


def learned() -> Lexicon:
    """A lexicon of three words."""
    fillers = [("ko", "ti")] * 1000
    return Lexicon(fillers + [("Ba de", "Lu na")] * 4 + [("ba", "lu"), ("de", "na"), *[("Öko's fi", "pe")] * 5])


def test_matching_pairs_occur_once_and_keep_their_casing():
    found = learned()
    assert len(found) == 3
    assert found.matching_pairs("BA and fi, de", "na - Pe, lu") == [("BA", "lu"), ("fi", "Pe"), ("de", "na")]
    assert (
        found.matching_pairs("ba ba", "lu")
        == found.matching_pairs("ba", "lu lu")
        == found.matching_pairs("ba", "lu, Lu")
        == []
    )
    assert (
        found.matching_pairs("ba", "lu-na")
        == found.matching_pairs("ba's", "lu")
        == found.matching_pairs("ba1", "lu")
        == []
    )
    assert found.matching_pairs("ba and bath", "lu") == []
    assert found.matching_pairs("ba", "") == found.matching_pairs("ko", "ti") == found.matching_pairs("", "") == []


def test_lexicon_of_pairs_without_words_is_empty():
    for pairs in ([], [("", "")], [("1 2", "1 2")] * 9, [("ba", "")] * 9):
        assert len(Lexicon(pairs)) == 0


def test_lexicon_reads_a_limited_number_of_pairs(monkeypatch):
    monkeypatch.setattr(lexicon, "MAX_COUNTED_PAIRS", 100)
    read = []

    def endless():
        while True:
            read.append(1)
            yield "ba de fi go mo", "lu na"

    Lexicon(endless())
    assert len(read) == 10


def test_lexicon_of_languages_without_spaces():
    pairs = [("the red dog", "红狗在海边"), ("a red cat", "我的红猫"), ("the dog's boat", "狗船")]
    pairs += [("boat", "看小船了"), ("the boat", "小船"), ("boats", "大船")] * 3 + [("ko", "去山")] * 1000
    found = Lexicon(pairs)
    assert found.matching_pairs("my boat left", "我的小船走了") == [("boat", "小船")]
    assert found.matching_pairs("my boat left", "小船小船") == []
    back = Lexicon([(target, source) for source, target in pairs])
    assert back.matching_pairs("我的小船走了", "my boat left") == [("小船", "boat")]
    mixed = Lexicon([("Berg boat", "看Berg船")] * 5 + pairs)
    assert mixed.matching_pairs("Berg", "看Berg船") == [("Berg", "Berg")]


def test_lexicon_skips_words_in_over_one_percent_of_pairs():
    found = Lexicon([("ba", "lu")] * 20 + [("de", "na")] * 21 + [("fi", "pe")] * 4 + [(" ", " ")] * 1955)
    assert [found.matching_pairs(*pair) for pair in (("ba", "lu"), ("de", "na"), ("fi", "pe"))] == [
        [("ba", "lu")],
        [],
        [],
    ]


@given(st.integers(0, 99))
def test_reduce_to_word_keeps_translation_and_final_punctuation(seed):
    pair = lexicon.reduce_to_word("a ba?", "a lu ?", [("ba", "lu")], np.random.default_rng(seed))
    assert pair in [("ba?", "lu ?"), ("Ba?", "Lu ?")]
