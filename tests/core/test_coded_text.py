"""Whatever is done to a coded text, no code is lost or overtakes another one."""

from hypothesis import given
from hypothesis import strategies as st

from mt.core.coded_text import Mark, coded_text, joined, restored
from mt.core.splices import Splice, apply_splices

KEYS = {"<b>": ("b", ""), "</b>": ("", "b"), "<i>": ("i", ""), "</i>": ("", "i"), "<br>": ("", ""), "<hr>": ("", "")}
PIECES = st.lists(st.sampled_from(["a", "éb", " ", *KEYS]))


def read(pieces):
    marks, length = [], 0
    for piece in pieces:
        if piece in KEYS:
            marks.append(Mark(length, length + len(piece), *KEYS[piece], ends_text=piece == "<hr>"))
        length += len(piece)
    return coded_text("".join(pieces), marks)


@st.composite
def texts_with_spans(draw):
    """A coded text, and spans of it, in order."""
    text = draw(PIECES.map(read))
    borders = sorted(draw(st.lists(st.integers(0, len(text.text)), max_size=6)))
    return text, list(zip(borders[::2], borders[1::2], strict=False))


def numbers(text):
    return [code.number for code in text.codes]


@given(PIECES)
def test_a_text_is_written_as_it_was_read(pieces):
    text = read(pieces)
    assert text.written() == "".join(pieces)
    assert text.written(str.upper) == text.mapped(str.upper).written()
    assert restored(text, text.text, [(code.number, code.position) for code in text.codes]) == text
    paired = [code for code in text.codes if code.partner is not None]
    assert all(text.codes[code.partner].partner == code.number for code in paired)


@given(PIECES.map(read))
def test_changes_of_the_text_between_codes(text):
    parts = text.parts()
    parts[::2] = (part * 2 + "x" for part in parts[::2])
    assert text.mapped(lambda part: part * 2 + "x").parts() == parts
    read_as_text = text.with_text({"<br>": "xy"}.get)
    assert read_as_text.written() == text.written().replace("<br>", "xy")
    assert numbers(read_as_text) == [code.number for code in text.codes if code.back != "<br>"]


@given(texts_with_spans(), st.booleans())
def test_the_pieces_of_a_text_make_it_up(text_with_spans, with_ends):
    text, spans = text_with_spans
    pieces = text.split(spans, with_ends)
    assert joined(pieces) == text
    assert [piece.text for piece in pieces[1::2]] == [text.text[start:end] for start, end in spans]
    for span in spans:
        assert text.cut(*span) == text.split([span], with_ends=True)[1]
    kept_and_texts = text.separate_texts()
    assert joined(kept_and_texts) == text
    assert all(piece.text.strip() and "<hr>" not in piece.written() for piece in kept_and_texts[1::2])
    assert not "".join(piece.text for piece in kept_and_texts[::2]).strip()


@given(texts_with_spans(), st.lists(st.sampled_from(["", "x", "yz"]), min_size=3, max_size=3))
def test_replaced_parts_leave_all_codes_in_order(text_with_spans, contents):
    text, spans = text_with_spans
    splices = [Splice(*span, content) for span, content in zip(spans, contents, strict=False)]
    changed = text.spliced(splices)
    assert changed.text == apply_splices(text.text, splices)
    assert numbers(changed) == numbers(text)
    assert "".join(changed.parts()[::2]) == changed.text
