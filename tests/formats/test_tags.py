"""HTML is divided into texts at block elements, but not inside untranslated elements."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.formats.tags import coded_markup


def pieces_of(page):
    return [piece.written() for piece in coded_markup(page, "html").separate_texts()]


@pytest.mark.parametrize(
    ("page", "texts"),
    [
        ("ba", ["ba"]),
        ("", []),
        ("<p>ba <b>de</b></p>fi", ["ba <b>de</b>", "fi"]),
        ("ba<br/>de<BR >fi", ["ba", "de", "fi"]),
        ("ba <img src='<p>'> de", ["ba <img src='<p>'> de"]),
        ("ba <code>de<br>\nfi</code> go", ["ba <code>de<br>\nfi</code> go"]),
        ("<p translate=no>ba<br>de</p>fi", ["fi"]),
        ("<span class='notranslate'>ba<br>de</span>", []),
        ("ba <!-- <p>\n --> de", ["ba <!-- <p>\n --> de"]),
        ("<style>p\n{}</style><p>ba < de", ["ba < de"]),
        ("ba<script>p</script>de", ["ba", "de"]),
        ("<b>ba<p>de</b></p>", ["ba", "de"]),
        ("ba <b>de<br>fi</b> go", ["ba ", "de", "fi", " go"]),
        ("<a>Ba</a> <a>De</a>", ["Ba", "De"]),
        ("<i><a>Ba</a> | <a><b>De</b></a></i>", ["Ba", " | ", "<b>De</b>"]),
        ("<a>Ba</a> or <a>De</a>", ["<a>Ba</a> or <a>De</a>"]),
        ("<b>Ba</b> <i>de</i>", ["<b>Ba</b> <i>de</i>"]),
        ("<b>Ba</b><b>de</b>", ["<b>Ba</b><b>de</b>"]),
        ("<a>Ba</a><a>De</a>", ["Ba", "De"]),
        ("<button>Ba</button><button>De</button>", ["Ba", "De"]),
        ("<label>Ba</label><input><label>De</label>", ["Ba", "De"]),
        ("<textarea>Ba</textarea>De", ["Ba", "De"]),
        ("<b>Ba</b> <b>12</b>", ["<b>Ba</b> <b>12</b>"]),
    ],
)  # fmt: skip
def test_separate_texts_of_html(page, texts):
    assert pieces_of(page)[1::2] == texts


PARTS = ["<p>", "</p>", "<br>", "<b>", "</b>", "<div translate=no>", "</div>", "<!--", "-->", "ba", " ", "\n", "<", "&"]


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_separate_texts_cover_html(page):
    pieces = pieces_of(page)
    assert "".join(pieces) == page and len(pieces) % 2 == 1
