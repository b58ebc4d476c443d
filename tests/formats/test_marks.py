"""Paired marks: pairs of all syntaxes are found, also inside each other."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mt.formats.marks import find_pairs
from mt.formats.tags import coded_markup
from mt.text.markup_transfer import transfer_markup
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
def test_find_pairs_of_nested_marks(line):
    text, pairs = line
    assume("__START" not in text and "_P__" not in text)  # these are identifiers
    contents = [(text[a.start : a.end], text[b.start : b.end], text[a.end : b.start]) for a, b in find_pairs(text)]
    assert contents == pairs


def test_adjacent_emphasis_is_separated():
    links = [AlignmentLink(0, 1, 0, 1), AlignmentLink(2, 3, 1, 2)]
    assert transfer_markup(coded_markup("**a** **b**", "auto"), "甲乙", links).written() == "**甲** **乙**"


@pytest.mark.parametrize(
    "text",
    ["2 * 3 * 4", "rm *.txt *.bak", "f(*args, **options)", "__init__ and _id_", "List<String> and Map<A, B>",
     "a < b > c", "{start} to {end}", "[1] and [note]", "<br> or <b>", "****", "see [the list][7]", "E<lt>",
     "I</usr/lib>", "$5 and $6", "{a_start_b} to {c}"],
)  # fmt: skip
def test_find_pairs_ignores_other_text(text):
    assert find_pairs(text) == []


@given(st.lists(st.sampled_from([*"<>[]*_~{}$|&; ab1", "START_A", "</1>", "<1>", "](b)", "**"])).map("".join))
def test_copied_marks_equal_line(line):
    assert coded_markup(line, "auto").written() == line
