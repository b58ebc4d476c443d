"""Generated lines with pairs of all syntaxes: they are found, nested, and come back around the same words."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mt.formats.marks import find_pairs
from mt.formats.tags import coded_markup
from mt.text.markup_transfer import text_and_elements, transfer_markup
from mt.text.placement import AlignmentLink

SYNTAXES = [
    ("<3>", "</3>"), ("<em>", "</em>"), ('<Trans.Link to="/a?b>c">', "</Trans.Link>"), ("&lt;u&gt;", "&lt;/u&gt;"),
    ("**", "**"), ("__", "__"), ("~~", "~~"), ("[", "](/faq)"), ("[size=4]", "[/size]"), ("B<", ">"),
    ("L<", "|perldoc>"), ("START_TAG_P_1 ", " CLOSE_TAG_P"), ("{$START_LINK}", "{$CLOSE_LINK}"),
    ("{b>", "<b}"), ("%{codeStart}", "%{codeEnd}"), ("{{open_bold}}", "{{close_bold}}"), ("$LINK_BEGIN$", "$LINK_END$"),
]  # fmt: skip


@st.composite
def marked_lines(draw):
    """A line of words, some of them between marks, and these marks with their content, in the order of the line."""
    pairs = []

    def content(depth, outer):
        parts = []
        for _ in range(draw(st.integers(1, 3))):
            if depth and draw(st.booleans()):
                number = len(pairs)
                pair = draw(st.sampled_from([each for each in SYNTAXES if each not in outer]))
                pairs.append(pair)
                inner = content(depth - 1, [*outer, pair])
                pairs[number] = (*pair, inner)
                parts.append(f"{pair[0]}{inner}{pair[1]}")
            else:
                parts.append("two words")
        return " ".join(parts)

    return content(3, []), pairs


@given(marked_lines())
def test_pairs_are_found_whatever_they_are_nested_in(line):
    text, pairs = line
    assume("__START" not in text and "_P__" not in text)  # these are identifiers
    found = find_pairs(text)
    contents = [(text[a.start : a.end], text[b.start : b.end], text[a.end : b.start]) for a, b in found]
    assert contents == pairs


@given(marked_lines(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))))
def test_marks_come_back_around_words(line, pairs):
    assume("__" not in line[0])  # around one word, it may be an identifier
    coded = coded_markup(line[0], "auto")
    text, _ = text_and_elements(coded)
    words = text.split()
    translation = " ".join(["Mot"] * len(words))
    starts = [text.find(word, index) for index, word in enumerate(words)]
    links = [
        AlignmentLink(starts[i % len(starts)], starts[i % len(starts)] + 3, n % len(words) * 4, n % len(words) * 4 + 3)
        for i, n in pairs
    ]
    result = transfer_markup(coded, translation, links).written()
    found = find_pairs(result)
    assert sorted(result[a.start : a.end] for a, _ in found) == sorted(opening for opening, *_ in line[1])
    assert all(any(map(str.isalpha, result[a.end : b.start])) for a, b in found)


def test_marks_of_neighbors_stay_apart():
    links = [AlignmentLink(0, 1, 0, 1), AlignmentLink(2, 3, 1, 2)]
    assert transfer_markup(coded_markup("**a** **b**", "auto"), "甲乙", links).written() == "**甲** **乙**"


@pytest.mark.parametrize(
    "text",
    ["2 * 3 * 4", "rm *.txt *.bak", "f(*args, **options)", "__init__ and _id_", "List<String> and Map<A, B>",
     "a < b > c", "{start} to {end}", "[1] and [note]", "<br> or <b>", "****", "see [the list][7]", "E<lt>",
     "I</usr/lib>", "$5 and $6"],
)  # fmt: skip
def test_what_only_looks_like_marks_is_text(text):
    assert find_pairs(text) == []


@given(st.lists(st.sampled_from([*"<>[]*_~{}$|&; ab1", "START_A", "</1>", "<1>", "](b)", "**"])).map("".join))
def test_an_unchanged_text_gives_the_line(line):
    coded = coded_markup(line, "auto")
    assert transfer_markup(coded, text_and_elements(coded)[0], []).written() == line
