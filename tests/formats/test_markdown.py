"""Markdown: texts are translated, and markdown-it-py finds the same blocks before and after."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.formats.markdown import Page, make_parser
from mt.formats.registry import detect_format
from tests.coded import lines_of, reader, rendered, rendered_text

read_markdown = reader("markdown")
TEXT = """---
title: kept
---
# A *title* #

> - A first **bold
>   line** and `code` here\\
>   after [a link](http://x.y "t") and [ref][r]  
>   end &amp; & 5 * 3 snake_case <b>x</b>.

1. one
2. [ ] two

| a | b\\|c |
|---|---|
| *x* y | yes |

    code

```
code
```
Setext
===

<div>
html
</div>

[r]: http://e.x
"""  # noqa: W291


PARSER = make_parser().markdown


def blocks(content):
    return [token.type for token in Page(content, PARSER, {}).tokens]


def count_inline_elements(content):
    """Count the inline elements of a document."""
    tokens = PARSER.parse(content)
    kept = {"text", "softbreak", "text_special"}
    return Counter(
        (child.type, str(child.attrs), child.content)
        for token in tokens for child in token.children or [] if child.type not in kept
    )  # fmt: skip


def test_read_markdown_translates_texts():
    document = read_markdown(TEXT)
    assert lines_of(document) == [
        "A <0>title</0>",
        "A first <0>bold line</0> and <2/> here<3/>after <4>a link</4> and <6>ref</6><8/>"
        "end <9/> & 5 * 3 snake_case <10>x</10>.",
        "one", "<0/> two", "a", "b|c", "<0>x</0> y", "yes", "Setext", "html",
    ]  # fmt: skip
    assert rendered_text(document, str) == TEXT
    written = rendered_text(document, lambda text: text.replace("e", "E"))
    assert blocks(written) == blocks(TEXT) and count_inline_elements(written) == count_inline_elements(TEXT)
    assert "> - A first **bold\n>   linE** and `code` hErE\\\n>   aftEr [a link](http://x.y" in written
    assert "1. onE\n2. [ ] two\n" in written and "title: kept" in written and "SEtExt\n===" in written
    assert "<div>\nhtml\n</div>" in written and "| a | b\\|c |" in written


@pytest.mark.parametrize(
    ("content", "lines", "translations", "written"),
    [
        ("---\r\na: b\r\n---\r\nc\r\n", ["c"], ["x"], "---\r\na: b\r\n---\r\nx\r\n"),
        ('+++\na = "b"\n+++\nc\n', ["c"], ["x"], '+++\na = "b"\n+++\nx\n'),
        ("\ufeff# a\n", ["a"], ["x"], "\ufeff# x\n"),
        ("a[^1]\n\n[^1]: b\n[^n]: c\n", ["a<0/>", "b", "c"], ["x<0/>", "y", "z"], "x[^1]\n\n[^1]: y\n[^n]: z\n"),
        ("> [!NOTE]\n> a\n> b\n", ["a b"], ["x y"], "> [!NOTE]\n> x\n> y\n"),
        ("> [!tip]- a\n> b\n", ["<0/> a", "b"], ["<0/> x", "y"], "> [!tip]- x\n> y\n"),
        ('!!! note "a"\n    b\n', ["a", "b"], ["x", "y"], '!!! note "x"\n    y\n'),
        ("!!! note\n    b\n", ["b"], ["y"], "!!! note\n    y\n"),
        ("??? Note\n    b\n", ["b"], ["y"], "??? Note\n    y\n"),
        (":::note\na\n:::\n", ["a"], ["x"], ":::note\nx\n:::\n"),
        ("::: tip a b\nc\n:::\n", ["a b", "c"], ["x", "y"], "::: tip x\ny\n:::\n"),
        ("a $x_1$ b\n\n$$\ny = 2\n$$\n", ["a <0/> b"], ["x <0/> y"], "x $x_1$ y\n\n$$\ny = 2\n$$\n"),
        ("a \\(x\\) b H~2~O\n", ["a <0/> b H<1/>O"], ["x H<1/>O <0/>"], "x H~2~O \\(x\\)\n"),
        ("(a)=\n# b & c\n", ["b & c"], ["x&y z"], "(a)=\n# x&y z\n"),
        ("[a ![b](c) d](e)\n", ["<0>a <1/> d</0>"], ["<0><1/> x</0>"], "[![b](c) x](e)\n"),
        ("press <kbd>a b</kbd>\n", ["press <0/>"], ["<0/> x"], "<kbd>a b</kbd> x\n"),
        ("a <i translate='no'>b</i> <i class=\"x notranslate\">c</i> <i title='translate=no'>d</i> e\n",
         ["a <0/> <1/> <2>d</2> e"], ["<2>x</2> <1/> <0/>"],
         "<i title='translate=no'>x</i> <i class=\"x notranslate\">c</i> <i translate='no'>b</i>\n"),
        ("a [[b|c]] d\n", ["a <0/> d"], ["<0/> x"], "[[b|c]] x\n"),
        ("{{< n >}}a{{< /n >}}\n", ["<0>a</0>"], ["<0>x</0>"], "{{< n >}}x{{< /n >}}\n"),
        ('{% i a="b" %}\n\nc\n', ["c"], ["x"], '{% i a="b" %}\n\nx\n'),
        ("{% raw %}\na\n{% endraw %}\n", ["a"], ["x"], "{% raw %}\nx\n{% endraw %}\n"),
        ("---\na: b\n---\nimport A from '@a';\nexport const b = {\n  c,\n\n  d\n}\n\ne\n", ["e"], ["x"],
         "---\na: b\n---\nimport A from '@a';\nexport const b = {\n  c,\n\n  d\n}\n\nx\n"),
        ("<Ab c d='>'\n  e={() => f > {g: 1}}\n>\n  h *i*\n</Ab>\n", ["h <0>i</0>"], ["<0>x</0>"],
         "<Ab c d='>'\n  e={() => f > {g: 1}}\n>\n  *x*\n</Ab>\n"),
        ("<>a<B.C d={<E />}>b</B.C></>\n", ["<0/>a<1>b</1><3/>"], ["<0/><1>x</1><3/>"],
         "<><B.C d={<E />}>x</B.C></>\n"),
        ("{/* a\n\n- b\n*/}\n\nc {/* d */}\n", ["c <0/>"], ["x <0/>"], "{/* a\n\n- b\n*/}\n\nx {/* d */}\n"),
        ("a {b} {c[0]} {d && (\n<li>e</li>\n)} \\{f\\}\n", ["a {b} <0/> <1/> <2/>f<3/>"], ["x {b} <0/> <1/> <2/>y<3/>"],
         "x {b} {c[0]} {d && (\n<li>e</li>\n)} \\{y\\}\n"),
        ("<Ab>{`c\n\nd`}</Ab>\n\n{an open gate}\n", ["{an open gate}"], ["{x y z}"],
         "<Ab>{`c\n\nd`}</Ab>\n\n{x y z}\n"),
        ("```{r, a=F}\n#| b: c\n```\n\nd [@e, p. 3]\n", ["d <0/>"], ["x <0/>"],
         "```{r, a=F}\n#| b: c\n```\n\nx [@e, p. 3]\n"),
        ("# a {#b .c}\n", ["a <0/>"], ["x <0/>"], "# x {#b .c}\n"),
        ("a\n: b\n", ["a", "b"], ["x", "y"], "x\n: y\n"),
        ("*[A]: b\n*[C]: d\n", ["<0/>b", "<0/>d"], ["<0/>x", "<0/>y"], "*[A]: x\n*[C]: y\n"),
        ("[a][], [b\nc]\n\n[a]: /a\n[b c]: /b\n", ["<0>a</0>, <2>b c</2>"], ["<0>x</0> <2>b c</2>"],
         "[x][a] [b\nc][b c]\n\n[a]: /a\n[b c]: /b\n"),
        ("| a |\n|---|\n| b\\|c |\n", ["a", "b|c"], ["x", "y|z"], "| x |\n|---|\n| y\\|z |\n"),
        ('<p align="center">a <b>b</b></p>\n\nc\n', ["a <0>b</0>", "c"], ["<0>x</0> y", "z"],
         '<p align="center"><b>x</b> y</p>\n\nz\n'),
        ("**a**<br/>\n", ["<0>a</0><2/>"], ["<0>x</0><2/>"], "**x**<br/>\n"),
        ("**a**  \n*b*\\\nc\n", ["<0>a</0><2/><3>b</3><5/>c"], ["<0>x</0><2/><3>y</3><5/>z"], "**x**  \n*y*\\\nz\n"),
        ("a \\@ref(b) \\index{c!d}\n", ["a <0/> <1/>"], ["x <0/> <1/>"], "x \\@ref(b) \\index{c!d}\n"),
        ("a|\n-|-\n-|-\n", ["a|"], ["x|y"], "x&#124;y\n-|-\n-|-\n"),
        ("a\n---\n", ["a"], ["x|y"], "x&#124;y\n---\n"),
        ("- *a*\n\n  b\n", ["<0>a</0>", "b"], ["<0> x</0>", "y"], "- *x*\n\n  y\n"),
        ("a *b* c\n", ["a <0>b</0> c"], ["x<0> y </0>z"], "x *y* z\n"),
        ("> " * 25 + "a\n", ["a"], ["x"], "> " * 25 + "x\n"),
        ("{a b c\nd}\n", ["{a b c d}"], ["{x y z z}"], "{x y z z}\n"),
        ("a {b ?\r\n 'c' : d} e\r\n", ["a {b ?\ufdd0 'c' : d} e"], ["{b ?\ufdd0 'c' : d} x"],
         "{b ?\r\n 'c' : d} x\r\n"),
    ],
)  # fmt: skip
def test_markdown_extensions(content, lines, translations, written):
    document = read_markdown(content)
    assert lines_of(document) == lines
    assert rendered(document, translations) == (written.encode(), [])


@pytest.mark.parametrize(
    ("content", "translation"),
    [
        ("a *b* c\n", "<0></0> x"),  # no emphasis
        ("<p>\n```js\na\n```\n</p>\n", "x"),  # code in HTML
        ("> <p>a</p>\n", "x"),  # HTML whose lines begin with the mark of a quotation
        ("<a>\nb</a>\n", "<0>x\ny</0>"),  # no block of HTML any more
        ("{% if a %}b{% else %}c{% endif %}\n", None),  # two texts in one
        ("| a | b |\n| c | d |\n", None),  # tables of other dialects
        ("a | b\n--- | --- | ---\nc | d\n", None),
        ("+---+\n| a |\n+---+\n", None),
        ("| a\n| b\n", None),
        ('=== "a"\n', None),
        ("{a && <p>bc</p>}\n", None),  # a text in an expression
    ],
)
def test_text_with_unsupported_markup_stays_untranslated(content, translation):
    document = read_markdown(f"a\n\n{content}")
    translations = ["x", translation] if translation else ["x"]
    assert rendered(document, translations) == (f"x\n\n{content}".encode(), [3])


def test_hard_line_break_ends_text():
    content = "> a   \n> b\\\n> c<br>d\n> e\n"
    document = read_markdown(content)
    (line,) = document.lines()
    assert [text.text for text in line.text.separate_texts()[1::2]] == ["a", "b", "c", "d e"]
    assert rendered_text(document, lambda text: text.replace("b", "x")) == content.replace("> b", "> x")


def test_links_follow_translated_headings():
    content = """# A *b* `c`!

Ö Xk 如何
---

# K
# K

# H *i*

# Use {#k}
# Use [#n]
# d

[a](#a-b-c) [o](<#ö-xk-如何>) <a b=">" href='#%C3%B6-xk-如何'>l</a> [k](#k) [n](#n) [k](#K-1 "#k-1") [h][r]
`[k](#k-1)` [o](o.md#k-1)
<a id="d">e</a> [d](#d)

```
[k](#k-1)
```

[r]: #h-i
"""
    document = read_markdown(content)
    written = rendered_text(document, lambda text: text.replace("A ", "Y ").replace("K", "Zé").replace("i", "j"))
    expected = content.replace("A ", "Y ").replace("# K", "# Zé").replace("#a-", "#y-").replace("H *i", "H *j")
    assert written == expected.replace("#K-1", "#zé-1").replace("#h-i", "#h-j")
    assert rendered(document, str) == (content.encode(), [])


@pytest.mark.parametrize("suffix", ["markdown", "mdown", "mdx", "mkd", "qmd", "Rmd"])
def test_markdown_suffixes_are_detected(suffix):
    assert detect_format(Path(f"a.{suffix}")) == "markdown"


def test_links_without_heading_are_counted():
    content = "# A\n\n[a](#a) [b](#b) [t](#top) [e](#) [r](#/r)\n\n- `[c](#c)` <a href='#d'>d</a>\n\n(b) d=c\n"
    assert rendered(read_markdown(content), str) == (content.encode(), [3, 5])


def test_markup_characters_of_translation_are_escaped():
    document = read_markdown(b"one\n\n- two\n\n| three |\n|---|\n")
    written = rendered_text(document, ["# a *b* [c](d) `e` <f> _g_", "1. x", "a|b"])
    assert written == ("\\# a \\*b\\* \\[c\\](d) \\`e\\` \\<f> \\_g\\_\n\n- 1\\. x\n\n| a\\|b |\n|---|\n")
    assert blocks(written) == blocks("one\n\n- two\n\n| three |\n|---|\n") and not count_inline_elements(written)


LINES = st.lists(
    st.text(st.sampled_from("ab *_`[]()<>#-+1.!|~\\&;:\"é \t"), max_size=20)
    | st.sampled_from(["", "- a", "  b", "> c", "```", "    d", "| a | b |", "|---|---|",
                       "a\\", "b  ", "[a](b)", "**c", "d**", "===", "1. x",
                       "> [!NOTE]", ":::x y", ":::", "!!! a \"b\"", "$$", "a $b$ c", "[^a]: b", "c[^a]", ": d",
                       "{{< a >}}", "{% b %}c{% endb %}", "<p>a</p>", "<a>b", "*[a]: b", "[a]: /b", "[a][]",
                       "<Ab c={", "}>", "{/*", "*/}", "</Ab>", "[a](#b)", "[b]: #b", "# b"]),
    max_size=8,
)  # fmt: skip


@given(LINES, st.sampled_from(["\n", "\r\n"]))
def test_copied_markdown_equals_document(lines, end):
    content = end.join(lines)
    document = read_markdown(content)
    assert rendered_text(document, str) == content


@given(LINES, st.data())
def test_translation_preserves_blocks(lines, data):
    content = "\n".join(lines)
    document = read_markdown(content)
    words = st.text(st.sampled_from('ab *_`[]()#-+1.!|~\\:"é=>'), max_size=12).map(lambda text: " ".join(text.split()))

    def translate(text):
        return f"{data.draw(words)} x".strip() if text.isalpha() else f"{text} x" if text.strip() else text

    written = rendered_text(document, translate)
    assert blocks(written) == blocks(content)
