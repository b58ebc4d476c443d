"""HTML that clients send: where it is divided, and which of its characters are entities in the translation."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.formats.tags import decode, encode, markup_tokens

pytest.importorskip("starlette")
pytest.importorskip("py3langid")

from mt.serving.models import has_markup, restore_characters, split_html  # noqa: E402

PARTS = [
    "<p>",
    "</p>",
    "<b>",
    "</b>",
    "<i title='a\n\nb'>",
    "ba",
    " ",
    "\n",
    "\r\n",
    "<",
    ">",
    "&",
    "lt",
    ";",
    "copy",
    "#62;",
    "!",
    "/",
]
PAGES = st.lists(st.sampled_from(PARTS)).map("".join)


@pytest.mark.parametrize(
    ("page", "pieces"),
    [
        ("<b>Ba</b>,\n\nde\nfi", ["", "<b>Ba</b>,", "\n\n", "de\nfi", ""]),
        ("Ba<p>de \n \r\n\n fi</p>", ["", "Ba", "<p>", "de ", "\n \r\n\n ", "fi", "</p>"]),
        ("ba <i title='a\n\nb'>de</i>", ["", "ba <i title='a\n\nb'>de</i>", ""]),
        ("ba<pre>de\n  <b>fi</b></pre>go", ["", "ba", "<pre>de\n  <b>fi</b></pre>", "go", ""]),
    ],
)
def test_blank_lines_divide_texts(page, pieces):
    assert [piece.written() for piece in split_html(page)] == pieces


@given(PAGES)
def test_the_pieces_make_up_the_whole(page):
    pieces = split_html(page)
    assert decode("".join(piece.written(encode) for piece in pieces), "html") == decode(page, "html")
    assert len(pieces) % 2 == 1


@pytest.mark.parametrize("text", ["ba\n\nde", "3 < 5 > 4", "R&D", "I <3 you", "a && b", "&", "<>", "100 %"])
def test_plain_text_has_no_markup(text):
    assert not has_markup(text)


@pytest.mark.parametrize("text", ["<b>ba", "ba</b>", "ba &amp; de", "&#62;", "<!-- -->", "<br/>", "&eacute;"])
def test_tags_and_entities_are_markup(text):
    assert has_markup(text)


@given(PAGES)
def test_characters_in_place_of_entities_make_no_tag_and_no_entity(text):
    restored = restore_characters(encode(text), "")
    assert decode(restored, "html") == text
    assert all(token.role == "text" for token in markup_tokens(restored, "html"))


def test_entities_that_the_source_has_stay():
    assert restore_characters("a &amp; b &gt; c &lt; d&#10;", "&amp; &lt;") == "a &amp; b > c &lt; d\n"


def test_dividing_takes_linear_time():
    pages = ["\n" + " " * 500_000, "ba\n\n" * 50_000, " " * 500_000 + "<b>", "\n \r\n" * 250_000, "&gt;" * 250_000]
    began = time.monotonic()
    for page in pages:
        split_html(page)
    assert time.monotonic() - began < 10
