"""Words and whitespace, in languages with and without spaces between words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.text.word_boundaries import WordBoundaries


def _words(borders):
    """Returns the positions of all words. A punctuation mark counts as a word."""
    starts = [place for place in range(borders.length) if not borders.inside_word[place]]
    spans = [(start, borders.word_end[start + 1]) for start in starts]
    return [(start, end) for start, end in spans if borders.space_end[start] == start]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" ", []),
        ("ab, c1\u00a0d", ["ab", ",", "c1", "d"]),
        ("l'été e\u0301te\u0301", ["l'", "été", "e\u0301te\u0301"]),
        ("jusqu’ici don't dell'anno", ["jusqu’", "ici", "don't", "dell'anno"]),
        ("est-ce - 'x' 1-2", ["est-ce", "-", "'", "x", "'", "1", "-", "2"]),
        ("x_y", ["x", "_", "y"]),
        ("漢字ab漢", ["漢", "字", "ab", "漢"]),
        ("여기 있다", ["여기", "있다"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("a\u200db \u200d c\u200c d", ["a\u200db", "\u200d", "c\u200c", "d"]),
        ("\u0301a", ["\u0301a"]),
    ],
)
def test_word_boundaries(text, words):
    assert [text[start:end] for start, end in _words(WordBoundaries(text))] == words


@given(st.text(st.sampled_from("ab ,漢\u0301\t")))
def test_word_boundaries_around_each_position(text):
    borders = WordBoundaries(text)
    words = _words(borders)
    for place in range(len(text) + 1):
        assert borders.space_start[place] == len(text[:place].rstrip())
        assert borders.space_end[place] == len(text) - len(text[place:].lstrip())
        around = [(start, end) for start, end in words if start < place < end]
        assert (borders.word_start[place], borders.word_end[place]) == (around[0] if around else (place, place))
        assert borders.inside_word[place] == bool(around)
