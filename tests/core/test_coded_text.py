"""Whatever is done to a coded text, no code is lost or overtakes another one."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.coded_text import Mark, Splice, apply_splices, coded_text, joined, restored

WRITTEN = st.lists(st.sampled_from(["a", "éb", " ", "<b>", "</b>", "<i>", "</i>", "<hr>"])).map("".join)


def read(written):
    tags = re.finditer(r"<(\w*)(/?\w*)>", written)
    return coded_text(written, [Mark(*tag.span(), tag[1], tag[2][1:], ends_text=tag[1] == "hr") for tag in tags])


@st.composite
def texts_with_spans(draw):
    """A coded text, and spans of it, in order."""
    text = draw(WRITTEN.map(read))
    borders = sorted(draw(st.lists(st.integers(0, len(text.text)), max_size=6)))
    return text, list(zip(borders[::2], borders[1::2], strict=False))


def numbers(text):
    return [code.number for code in text.codes]


@given(WRITTEN)
def test_a_text_is_written_as_it_was_read(written):
    text = read(written)
    assert text.written() == written
    assert all(text.codes[code.partner].partner == code.number for code in text.codes if code.partner is not None)
    assert restored(text, text.text, [(code.number, code.position) for code in text.codes]) == text
    assert text.mapped(lambda part: f"{part * 2}x").written() == text.written(lambda part: f"{part * 2}x")


@given(texts_with_spans(), st.booleans())
def test_the_pieces_of_a_text_make_it_up(text_with_spans, with_ends):
    text, spans = text_with_spans
    pieces = text.split(spans, with_ends)
    assert joined(pieces) == text
    assert [piece.text for piece in pieces[1::2]] == [text.text[start:end] for start, end in spans]
    pieces = text.separate_texts()
    assert joined(pieces) == text
    assert all(piece.text.strip() and "<hr>" not in piece.written() for piece in pieces[1::2])
    assert not "".join(piece.text for piece in pieces[::2]).strip()


@given(texts_with_spans(), st.lists(st.sampled_from(["", "x", "yz"]), min_size=3, max_size=3))
def test_replaced_parts_leave_all_codes_in_order(text_with_spans, contents):
    text, spans = text_with_spans
    splices = [Splice(*span, content) for span, content in zip(spans, contents, strict=False)]
    changed = text.spliced(splices)
    assert changed.text == "".join(changed.parts()[::2]) == apply_splices(text.text, splices)
    assert numbers(changed) == numbers(text)


@pytest.mark.parametrize(
    ("written", "span", "expected"),
    [
        ("a <b>b</b>", (1, 2), "a-<b>b</b>"),
        ("a <i><hr> b</i>", (1, 3), "a<i><hr>-b</i>"),
    ],
)
def test_codes_in_and_beside_a_replaced_part(written, span, expected):
    assert read(written).spliced([Splice(*span, "-")]).written() == expected
