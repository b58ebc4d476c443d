"""HTML is cut where sentences end, and nowhere inside of what is not to be translated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.formats.tags import coded_markup


def cut(page):
    """Return the texts of a page, at even indices, and the codes between them."""
    coded = coded_markup(page, "html")
    first, *others = coded.parts()
    pieces = [first]
    for code, text in zip(coded.codes, others[1::2], strict=True):
        if code.ends_text:
            pieces += [code.back, text]
        else:
            pieces[-1] += code.back + text
    return pieces


@pytest.mark.parametrize(
    ("page", "pieces"),
    [
        ("ba", ["ba"]),
        ("", [""]),
        ("<p>ba <b>de</b></p>fi", ["", "<p>", "ba <b>de</b>", "</p>", "fi"]),
        ("ba<br/>de<BR >fi", ["ba", "<br/>", "de", "<BR >", "fi"]),
        ("ba <img src='<p>'> de", ["ba <img src='<p>'> de"]),
        ("ba <code>de<br>fi</code> go", ["ba <code>de<br>fi</code> go"]),
        ("ba <code>de\nfi</code> go", ["ba ", "<code>de\nfi</code>", " go"]),
        ("<p translate=no>ba<br>de</p>fi", ["", "<p translate=no>ba<br>de</p>", "fi"]),
        ("<span class='notranslate'>ba<br>de</span>", ["<span class='notranslate'>ba<br>de</span>"]),
        ("ba <!-- <p> --> de", ["ba <!-- <p> --> de"]),
        ("ba <!--\n--> de", ["ba ", "<!--\n-->", " de"]),
        ("<style>p\n{}</style><p>ba < de", ["", "<style>p\n{}</style>", "", "<p>", "ba < de"]),
        ("<b>ba<p>de</b></p>", ["", "<b>", "ba", "<p>", "de", "</b>", "", "</p>", ""]),
        ("ba <b>de<br>fi</b> go", ["ba ", "<b>", "de", "<br>", "fi", "</b>", " go"]),
        ("<a>Ba</a> <a>De</a>", ["", "<a>", "Ba", "</a>", " ", "<a>", "De", "</a>", ""]),
        ("<i><a>Ba</a> | <a><b>De</b></a></i>",
         ["", "<i>", "", "<a>", "Ba", "</a>", " | ", "<a>", "<b>De</b>", "</a>", "", "</i>", ""]),
        ("<a>Ba</a> or <a>De</a>", ["<a>Ba</a> or <a>De</a>"]),
        ("<b>Ba</b> <i>de</i>", ["<b>Ba</b> <i>de</i>"]),
        ("<b>Ba</b><b>de</b>", ["<b>Ba</b><b>de</b>"]),
        ("<a>Ba</a><a>De</a>", ["", "<a>", "Ba", "</a>", "", "<a>", "De", "</a>", ""]),
        ("<button>Ba</button><button>De</button>",
         ["", "<button>", "Ba", "</button>", "", "<button>", "De", "</button>", ""]),
        ("<label>Ba</label><input><label>De</label>",
         ["", "<label>", "Ba", "</label>", "<input>", "<label>", "De", "</label>", ""]),
        ("<textarea>Ba</textarea>De", ["", "<textarea>", "Ba", "</textarea>", "De"]),
        ("<b>Ba</b> <b>12</b>", ["<b>Ba</b> <b>12</b>"]),
    ],
)  # fmt: skip
def test_where_it_is_cut(page, pieces):
    assert cut(page) == pieces


PARTS = ["<p>", "</p>", "<br>", "<b>", "</b>", "<div translate=no>", "</div>", "<!--", "-->", "ba", " ", "\n", "<", "&"]


@given(st.lists(st.sampled_from(PARTS)).map("".join))
def test_the_pieces_make_up_the_whole(page):
    pieces = cut(page)
    assert "".join(pieces) == page and len(pieces) % 2 == 1
