"""Lines are cut into sentences, and long sentences into clauses."""

import random
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt.text.placeholders import placeholder
from mt.text.sentences import Sentences, segment_starts, split_sentences
from mt.tokenizer.tokenizer import TokenSpan

LANGUAGES = ["en", "de", "tr", "el", "zh", "zh_CN", "ka", "xx"]
MORE_LANGUAGES = ["fr", "es", "it", "ru", "ja", "th", "ar", "hi", "nl", "pl", "pt", "am", "hy", "my", "ko", "fi", "kk"]
PARTS = ["Ba de. ", "Fi? ", "Go!", " ", "\n", "\u2028", "Mr. ", "e.g. ", "。", "！", "好", "…", "\"", "(", ")", "«",
         "3.5 ", "z.B. ", "\r\n", "\0", "\u3000", placeholder(0), "\ufeff", "👩‍👩‍👧"]  # fmt: skip


SPACES = ["\u00a0", "\u2003", "\u202f", "\u3000"]
INITIALS = st.lists(
    st.sampled_from([*"A.JMé«»“’!?…。1", *SPACES, "Mr.", "J.", "e.g.", "No.", "p."]), max_size=14
).map("".join)  # fmt: skip


@given(language=st.sampled_from([*LANGUAGES, *MORE_LANGUAGES]), text=INITIALS)
@example(language="en", text="M\u00a0.")
@example(language="de", text="B\u2003.")
@example(language="en", text="See J.\u00a0Moku. I\u3000. Ba")
@settings(max_examples=500)
def test_split_sentences_treats_all_spaces_alike(text, language):
    plain = text
    for space in SPACES:
        plain = plain.replace(space, " ")
    found = split_sentences(text, language)
    assert "".join(found) == text
    assert list(map(len, found)) == list(map(len, split_sentences(plain, language)))


@given(
    language=st.sampled_from(LANGUAGES),
    text=st.one_of(st.text(), st.lists(st.sampled_from(PARTS), max_size=15).map("".join)),
)
@example(language="en", text="")
@example(language="zh", text="  ")
@settings(max_examples=200)
def test_split_sentences_keeps_the_text(text, language):
    found = split_sentences(text, language)
    assert "".join(found) == text
    assert found and (all(found) or not text)


@pytest.mark.parametrize(
    ("language", "text", "cut"),
    [
        ("en", "Ba de fi. Go ku! La?", ["Ba de fi. ", "Go ku! ", "La?"]),
        ("en", "Mr. Moku met Dr. Telo. They sang.", ["Mr. Moku met Dr. Telo. ", "They sang."]),
        ("de", "Das ist z. B. gut. Ja.", ["Das ist z. B. gut. ", "Ja."]),
        ("zh", "你好。我们去海边！看船？", ["你好。", "我们去海边！", "看船？"]),
        ("de_DE", "Das ist am 3. Mai. Ja.", ["Das ist am 3. Mai. ", "Ja."]),
        ("zh-TW", "你好。我们去海边！", ["你好。", "我们去海边！"]),
        ("en", "No end", ["No end"]),
        ("xx", "Bala moku. Dera fi.", ["Bala moku. ", "Dera fi."]),
    ],
)
def test_split_sentences(language, text, cut):
    assert split_sentences(text, language) == cut


@given(st.lists(st.integers(1, 4), min_size=1, max_size=300), st.integers(0, 9))
def test_max_sentences_is_the_99th_percentile(counts, seed):
    lines = [" ".join(["Ba de."] * count) for count in counts]
    random.Random(seed).shuffle(lines)
    most = Sentences.learn(lambda: [(line, "") for line in lines], "en")["max_sentences"]
    share = [sum(count <= limit for count in counts) / len(counts) for limit in (most, most - 1)]
    assert share[0] >= 0.99 > share[1]


def test_split_sentences_of_long_texts():
    words = "word " * 4000
    assert split_sentences(f"{words}It ends. {words}", "en") == [f"{words}It ends. ", words]
    brackets = "([" * 50_000
    assert "".join(split_sentences(brackets, "en")) == brackets


@dataclass
class Characters:
    """A tokenizer that makes a piece of every character but whitespace, which belongs to the piece behind it."""

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[span.start for span in spans] for spans in self.spans(texts)]

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
def test_segment_starts(sentence, language, longest, usual, parts):
    assert cut_up(sentence, language, longest, usual) == parts


@given(st.text("ab ,。我", max_size=60), st.sampled_from(["en", "zh"]), st.integers(1, 20), st.integers(1, 20))
def test_segment_starts_limit_the_length_of_segments(sentence, language, longest, less):
    usual = min(longest, less)
    parts = cut_up(sentence, language, longest, usual)
    assert "".join(parts) == sentence
    lengths = [len(part.replace(" ", "")) for part in parts]
    assert len(parts) == 1 and lengths[0] <= longest or (min(lengths) > 0 and max(lengths) <= usual)
