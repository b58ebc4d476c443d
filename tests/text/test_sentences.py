"""Lines are cut into sentences, and nothing of them is lost."""

import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt.text.placeholders import placeholder
from mt.text.sentences import sentences, usual_max_sentences

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
def test_spaces_beyond_ascii_stop_nothing(text, language):
    plain = text
    for space in SPACES:
        plain = plain.replace(space, " ")
    found = sentences(text, language)
    assert "".join(found) == text
    assert list(map(len, found)) == list(map(len, sentences(plain, language)))


@given(
    language=st.sampled_from(LANGUAGES),
    text=st.one_of(st.text(), st.lists(st.sampled_from(PARTS), max_size=15).map("".join)),
)
@example(language="en", text="")
@example(language="zh", text="  ")
@settings(max_examples=200)
def test_the_sentences_together_are_the_text(text, language):
    found = sentences(text, language)
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
def test_where_sentences_end(language, text, cut):
    assert sentences(text, language) == cut


@given(st.lists(st.integers(1, 4), min_size=1, max_size=300), st.integers(0, 9))
def test_nearly_all_lines_have_at_most_so_many(counts, seed):
    lines = [" ".join(["Ba de."] * count) for count in counts]
    random.Random(seed).shuffle(lines)
    most = usual_max_sentences(iter(lines), "en")
    share = [sum(count <= limit for count in counts) / len(counts) for limit in (most, most - 1)]
    assert share[0] >= 0.99 > share[1]


@pytest.mark.parametrize(("long", "most"), [(10, 1), (11, 3)])
def test_one_line_in_a_hundred_may_have_more(long, most):
    lines = ["Ba de."] * (1000 - long) + ["Ba de. Fi go. Ku la."] * long
    assert usual_max_sentences(lines, "en") == most


def test_long_texts_are_cut_in_time_and_only_at_the_ends_of_sentences():
    words = "word " * 4000
    assert sentences(f"{words}It ends. {words}", "en") == [f"{words}It ends. ", words]
    brackets = "([" * 50_000
    assert "".join(sentences(brackets, "en")) == brackets
