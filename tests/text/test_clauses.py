"""A sentence that is too long is cut into parts of about equal length, where a reader would pause."""

from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.text.sentences import segment_starts
from mt.tokenizer.tokenizer import TokenSpan


@dataclass
class Characters:
    """A tokenizer that makes a piece of every character but white space, which belongs to the piece behind it."""

    def spans(self, texts: list[str]) -> list[list[TokenSpan]]:
        return [[TokenSpan(0, n, n + 1) for n, letter in enumerate(text) if not letter.isspace()] for text in texts]


def cut_up(sentence: str, language: str, longest: int, usual: int) -> list[str]:
    starts = segment_starts(sentence, Characters(), language, longest, usual)  # type: ignore[arg-type]
    return [sentence[start:end] for start, end in pairwise([*starts, len(sentence)])]


@pytest.mark.parametrize(
    ("sentence", "language", "longest", "usual", "parts"),
    [
        ("abcd", "en", 4, 2, ["abcd"]),
        ("ab cd ef gh", "en", 8, 4, ["ab cd ef gh"]),  # eight pieces, eleven bytes
        ("ab cd ef gh", "en", 7, 4, ["ab cd ", "ef gh"]),
        ("ab cd ef g", "en", 6, 6, ["ab cd ", "ef g"]),  # even, rather than six and one
        ("abc, de fg hij", "en", 8, 8, ["abc, ", "de fg hij"]),  # behind a comma, if it is not too early
        ("a, bcd ef ghi jk", "en", 8, 8, ["a, bcd ", "ef ghi jk"]),
        ("abcdefgh", "en", 4, 4, ["abcd", "efgh"]),
        ("我们今天去，学校学习", "zh", 8, 8, ["我们今天去，", "学校学习"]),
        ("我们今天去学校学习吧", "zh", 8, 8, ["我们今天去", "学校学习吧"]),
    ],
)
def test_places_of_cuts(sentence, language, longest, usual, parts):
    assert cut_up(sentence, language, longest, usual) == parts


@given(st.text("ab ,。我", max_size=60), st.sampled_from(["en", "zh"]), st.integers(1, 20), st.integers(1, 20))
def test_parts_make_up_the_sentence_and_are_short(sentence, language, longest, less):
    usual = min(longest, less)
    parts = cut_up(sentence, language, longest, usual)
    assert "".join(parts) == sentence
    lengths = [len(part.replace(" ", "")) for part in parts]
    assert len(parts) == 1 and lengths[0] <= longest or (min(lengths) > 0 and max(lengths) <= usual)
