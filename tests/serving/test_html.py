"""HTML in requests: it is divided into texts, and characters are not escaped needlessly."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.formats.tags import decode, encode, markup_tokens

pytest.importorskip("starlette")
pytest.importorskip("py3langid")

from mt.serving.models import has_markup, restore_characters, split_html  # noqa: E402

PARTS = ["<p>", "</p>", "<b>", "</b>", "<i title='a\n\nb'>", "\r\n", "copy", "#62;", *"<>&;!/ \n", "lt", "ba"]
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
def test_split_html_at_blocks_and_blank_lines(page, pieces):
    assert [piece.written() for piece in split_html(page)] == pieces


@pytest.mark.parametrize("text", ["ba\n\nde", "3 < 5 > 4", "R&D", "I <3 you", "a && b", "&", "<>", "100 %"])
def test_has_markup_rejects_plain_text(text):
    assert not has_markup(text)


@pytest.mark.parametrize("text", ["<b>ba", "ba</b>", "ba &amp; de", "&#62;", "<!-- -->", "<br/>", "&eacute;"])
def test_has_markup_accepts_tags_and_entities(text):
    assert has_markup(text)


@given(PAGES)
def test_restore_characters_adds_no_markup(text):
    restored = restore_characters(encode(text), "")
    assert decode(restored, "html") == text
    assert all(token.role == "text" for token in markup_tokens(restored, "html"))


def test_restore_characters_preserves_entities_of_source():
    assert restore_characters("a &amp; b &gt; c &lt; d&#10;", "&amp; &lt;") == "a &amp; b > c &lt; d\n"


def test_split_html_takes_linear_time():
    pages = ["\n" + " " * 500_000, "ba\n\n" * 50_000, " " * 500_000 + "<b>", "\n \r\n" * 250_000, "&gt;" * 250_000]
    began = time.monotonic()
    for page in pages:
        split_html(page)
    assert time.monotonic() - began < 10
