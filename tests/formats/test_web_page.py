"""HTML: texts are translated, and lxml, an independent parser, finds the same elements before and after."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import html

from mt.core.errors import InputError
from tests.coded import lines_of, reader, rendered, rendered_text

read_html = reader("html")
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>My page</title>
<meta name="description" content="Some text &amp; more"><meta name="viewport" content="width">
<style>p > b {}</style></head>
<body><p>Hello <b>red
  car</b>, see <a href="x" title="a title">here</a>.<br>New <code>x</code> line</p>
<pre>a <b>b</b></pre><ul><li>one</li><li>two <img alt="pic" src=x></li></ul>
<div translate=no>keep <p title="keep">this</p></div><img alt=logo><script>if (a < b) c("d")</script>
<button>Yes</button><button>No &nbsp;</button><!-- a comment --></body></html>
"""


def tree(content):
    """Count the elements by their path and the attributes that are not translated."""
    root = html.fromstring(content)
    names = ("href", "src", "class", "translate", "name")
    return Counter(
        (root.getroottree().getpath(node), *map(node.get, names)) for node in root.iter() if isinstance(node.tag, str)
    )


def test_read_html_translates_texts_and_attributes():
    document = read_html(PAGE)
    assert lines_of(document) == [
        "My page", "Some text & more",
        "Hello <0>red car</0>, see <2>here</2>.", "a title", "New <0/> line",
        "one", "two <0/>", "pic", "logo", "Yes", "No",
    ]  # fmt: skip
    translations = [text.replace("e", "E") for text in lines_of(document)]
    translations[1] = 'Un "texte" & plus'
    translations[2:5] = "<2>Ici</2>, salut <0>voiture rouge</0>", "un <titre>", "<0/> ligne"
    written = rendered_text(document, translations)
    assert '<html lang="fr">' in written
    assert 'content="Un &quot;texte&quot; &amp; plus"' in written
    paragraph = '<p><a href="x" title="un <titre>">Ici</a>, salut <b>voiture rouge</b><br><code>x</code> ligne</p>'
    assert paragraph in " ".join(written.split())
    assert "<pre>a <b>b</b></pre>" in written and 'keep <p title="keep">this' in written and 'c("d")' in written
    assert "<button>No &nbsp;</button>" in written
    assert tree(written.encode()) == tree(PAGE.encode())


@pytest.mark.parametrize(
    ("page", "lines", "translations", "written"),
    [
        ('<p lang="de">a</p><p lang="en">b</p>', ["b"], ["x"], '<p lang="de">a</p><p lang="fr">x</p>'),
        ('<p>a lang="en"</p><pre>lang="en"</pre><script>lang="en"</script>', ['a lang="en"'], ['a lang="en" x'],
         '<p>a lang="en" x</p><pre>lang="en"</pre><script>lang="en"</script>'),
        ("<p>a <i lang=es>b c</i></p>", ["a <0/>"], ["x <0/>"], "<p>x <i lang=es>b c</i></p>"),
        ("<input type=submit value=a><input value=b>", ["a"], ["x y"],
         '<input type=submit value="x y"><input value=b>'),
        ("<select><optgroup label=a><option>b<option label=c>d</select>", ["a", "b", "c", "d"], ["1", "2", "3", "4"],
         '<select><optgroup label="1"><option>2<option label="3">4</select>'),
        ("<label>a<textarea>b</textarea></label>", ["a", "b"], ["x", "y"], "<label>x<textarea>y</textarea></label>"),
        ("<textarea>a\n\n  b\nc\n</textarea>", ["a", "b", "c"], ["x", "y", "z"], "<textarea>x\n\n  y\nz\n</textarea>"),
        ("<ruby>a<rp>(</rp><rt>b</rt><rp>)</rp></ruby>", ["<0>a<1/><2/><3/></0>"], ["<0>x<1/><2/><3/></0>"],
         "<ruby>x<rp>(</rp><rt>b</rt><rp>)</rp></ruby>"),
        ('<p title="a\n b">c</p>', ["a b", "c"], ["x", "y"], '<p title="x">y</p>'),
        ('<meta property="og:image:alt" content=a>', ["a"], ["x"], '<meta property="og:image:alt" content="x">'),
        ("<svg><title>a &amp; b</title><text>c<tspan>d</tspan></text><g>e</g></svg>", ["a & b", "c", "d"],
         ["x < y", '"y"', "z"], '<svg><title>x &lt; y</title><text>"y"<tspan>z</tspan></text><g>e</g></svg>'),
        ('<p>a <svg\n><desc>b</desc></svg></p>', ["a <0/>", "b"], ["<0/> x", "y"],
         '<p><svg\n><desc>y</desc></svg> x</p>'),
        ("<p>&nbsp;a&nbsp;b&nbsp;</p>", ["a b"], ["x y"], "<p>&nbsp;x&nbsp;y&nbsp;</p>"),
        ("<p>a&nbsp;|&nbsp;b &nbsp; c</p>", ["a", "b", "c"], ["x", "y", "z"], "<p>x&nbsp;|&nbsp;y &nbsp; z</p>"),
        ("<p>5&nbsp;km a</p>", ["5\xa0km a"], ["x 5\xa0km"], "<p>x 5&nbsp;km</p>"),
        ('<p><a\n href="a">b</a> c</p>', ["<0>b</0> c"], ["x <0>y</0>"], '<p>x <a\n href="a">y</a></p>'),
        ("<p>a <!--\nb--> c</p>", ["a <0/> c"], ["x <0/> y"], "<p>x <!--\nb--> y</p>"),
        ("<p><b>a</b\n> <i>b</i></p>", ["<0>a</0> <2>b</2>"], ["<2>x</2> <0>y</0>"], "<p><i>x</i> <b>y</b\n></p>"),
        ('<p><a href="{{ f("a") }}">b</a></p>', ["<0>b</0>"], ["<0>x</0>"], '<p><a href="{{ f("a") }}">x</a></p>'),
        ("<p{% if a %} title='b'{% endif %}>c</p>", ["b", "c"], ["x", "y"], "<p{% if a %} title='x'{% endif %}>y</p>"),
        ('<p><img alt=b><img alt=b\n> a <img alt=b></p>', ["<0/><1/> a <2/>", "b", "b", "b"],
         ["<1/> x <0/><2/>", "y", "z", "b"], '<p><img alt="z"\n> x <img alt="y"><img alt=b></p>'),
        ('<p>a&nbsp;b <img alt=c></p>', ["a b <0/>", "c"], ["a b <0/>", "z"], '<p>a&nbsp;b <img alt="z"></p>'),
        ("<p>a {% if b > 1 %}c{% else %}d{% endif %}</p>", ["a", "c", "d"], ["x", "y", "z"],
         "<p>x {% if b > 1 %}y{% else %}z{% endif %}</p>"),
        ("<p>a {{ b < c }} {{ e.f }}</p>", ["a <0/> {{ e.f }}"], ["{{ e.f }} <0/> x"],
         "<p>{{ e.f }} {{ b < c }} x</p>"),
        ("<p>{{#if a}}b{{else}}c{{/if}}<%= d %> <% e %>f</p>", ["b", "c", "f"], ["x", "y", "z"],
         "<p>{{#if a}}x{{else}}y{{/if}}<%= d %> <% e %>z</p>"),
        ('<p>[a b="c"]d[/a]</p><p>{% highlight x %}e{% endhighlight %}</p>', ["d"], ["x"],
         '<p>[a b="c"]x[/a]</p><p>{% highlight x %}e{% endhighlight %}</p>'),
    ],
)  # fmt: skip
def test_html_controls_languages_and_templates(page, lines, translations, written):
    document = read_html(page)
    assert lines_of(document) == lines
    assert rendered(document, translations) == (written.encode(), [])


@pytest.mark.parametrize(
    "content", ['<p><a href="b"c">d</a></p>', '<img alt="d {{ a < b }}">', '<img title="d <b>e</b>">']
)
def test_malformed_html_text_stays_untranslated(content):
    document = read_html(f"<p>a</p>\n{content}")
    assert rendered(document, ["x"]) == (f"<p>x</p>\n{content}".encode(), [2])


def test_copied_html_has_target_language():
    document = read_html(PAGE)
    assert rendered_text(document, str) == PAGE.replace('lang="en"', 'lang="fr"')


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no html at all, 1 < 2", "is not HTML: it has no tags; set format=lines"),
        (b"\0\1\2", "is not HTML"),
        (b'<meta charset="ascii"><p>\xff</p>', "line 1 is not in ascii, the encoding that it declares"),
    ],
)
def test_read_html_reports_errors(content, message):
    with pytest.raises(InputError, match=message):
        read_html(content)


TEXT = st.text(st.sampled_from("ab <>&\"'\n/=é"), max_size=8) | st.text(st.characters(codec="utf-8"), max_size=5)
BROKEN = st.lists(
    TEXT | st.sampled_from(["<p>", "</p>", "<b>", "</b>", "<a title='x y'>", "</a>", "<br>", "<img alt=z>",
                            "<!--", "-->",
                            "<script>", "</script>", "<pre>", "</pre>", "<p translate=no>",
                            "&amp;", "<li", ">", "<html lang=en>"]),
    max_size=12,
).map(lambda parts: "<div>" + "".join(parts))  # fmt: skip


@given(BROKEN)
def test_copied_html_equals_page(page):
    document = read_html(page)
    copied = rendered_text(document, str)
    assert copied == page or copied.replace('lang="fr"', "lang=en") == page


WELL_FORMED = st.recursive(
    TEXT.map(lambda text: text.replace("&", "&amp;").replace("<", "&lt;")),
    lambda inner: st.tuples(
        st.sampled_from(["p", "div", "b", "a title='x y'", "span class=c", "li", "code", "h1"]),
        st.lists(inner, max_size=3),
    ).map(lambda pair: f"<{pair[0]}>{''.join(pair[1])}</{pair[0].split()[0]}>"),
    max_leaves=8,
)  # fmt: skip


@given(st.lists(WELL_FORMED, max_size=4).map(lambda parts: f"<section>{''.join(parts)}</section>"), st.data())
def test_translation_preserves_html_tree(page, data):
    document = read_html(page)
    written = rendered(document, lambda text: " ".join((data.draw(TEXT) + text).split()))[0]
    before, after = map(html.fromstring, (page, written.decode()))
    assert [element.tag for element in before.iter()] == [element.tag for element in after.iter()]


@pytest.mark.parametrize(
    ("content", "translation", "expected"),
    [
        (b'<meta charset="ISO-8859-1"><p>caf\xe9 \x92</p>', "é漢", b'<meta charset="ISO-8859-1"><p>\xe9&#28450;</p>'),
        ("\ufeff<p>a</p>".encode("utf-16-le"), "b", "\ufeff<p>b</p>".encode("utf-16-le")),
    ],
    ids=["windows-1252", "UTF-16"],
)
def test_encoding_of_html_is_preserved(content, translation, expected):
    document = read_html(content)
    assert rendered(document, [translation])[0] == expected
