"""Markdown keeps its blocks: markdown-it-py finds the same before and after."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from mt.data.parsers.document import Languages
from mt.documents.markdown import read_markdown

FRENCH = Languages("en", "fr")
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


def blocks(content: str) -> list[str]:
    return [token.type for token in MarkdownIt("commonmark").enable("table").parse(content)]


def spans(content: str) -> Counter:
    """Counts what stands inside of lines."""
    tokens = MarkdownIt("commonmark").enable("table").parse(content)
    kept = {"text", "softbreak", "text_special"}
    return Counter(
        (child.type, str(child.attrs), child.content)
        for token in tokens for child in token.children or [] if child.type not in kept
    )  # fmt: skip


def test_what_is_translated():
    document = read_markdown(TEXT.encode(), FRENCH, False)
    assert [line.text for line in document.lines()] == [
        "A <c-0>title</c-0>",
        "A first <c-0>bold line</c-0> and <c-2/> here<c-3/>after <c-4>a link</c-4> and <c-6>ref</c-6><c-8/>"
        "end <c-9/> &amp; 5 * 3 snake_case <c-10>x</c-10>.",
        "one", "<c-0/> two", "a", "<c-0>x</c-0> y", "yes", "Setext",
    ]  # fmt: skip
    assert document.render([line.text for line in document.lines()])[0].decode() == TEXT
    changed = [line.text.replace("e", "E") for line in document.lines()]
    written = document.render(changed)[0].decode()
    assert blocks(written) == blocks(TEXT) and spans(written) == spans(TEXT)
    assert "> - A first **bold\n>   linE** and `code` hErE\\\n>   aftEr [a link](http://x.y" in written
    assert "1. onE\n2. [ ] two\n" in written and "title: kept" in written and "SEtExt\n===" in written


def test_what_would_be_markup_is_escaped():
    document = read_markdown(b"one\n\n- two\n\n| three |\n|---|\n", FRENCH, False)
    translations = ["# a *b* [c](d) `e` &lt;f&gt; _g_", "1. x", "a|b"]
    written = document.render(translations)[0].decode()
    assert written == ("\\# a \\*b\\* \\[c\\](d) \\`e\\` \\<f> \\_g\\_\n\n- 1\\. x\n\n| a\\|b |\n|---|\n")
    assert blocks(written) == blocks("one\n\n- two\n\n| three |\n|---|\n") and not spans(written)


LINES = st.lists(
    st.text(st.sampled_from("ab *_`[]()<>#-+1.!|~\\&;:\"é \t"), max_size=20)
    | st.sampled_from(["", "- a", "  b", "> c", "```", "    d", "| a | b |", "|---|---|",
                       "a\\", "b  ", "[a](b)", "**c", "d**", "===", "1. x"]),
    max_size=8,
)  # fmt: skip


@given(LINES, st.sampled_from(["\n", "\r\n"]))
def test_what_is_copied_is_the_document(lines, end):
    content = end.join(lines)
    document = read_markdown(content.encode(), FRENCH, False)
    assert document.render([line.text for line in document.lines()])[0].decode() == content


@given(LINES, st.data())
def test_blocks_stay_whatever_the_translation(lines, data):
    content = "\n".join(lines)
    document = read_markdown(content.encode(), FRENCH, False)
    words = st.text(st.sampled_from('ab *_`[]()#-+1.!|~\\:"é=>'), max_size=12).map(lambda text: " ".join(text.split()))
    translations = [f"{data.draw(words)} x" if line.text.isalpha() else f"{line.text} x" for line in document.lines()]
    written = document.render(translations)[0].decode()
    assert blocks(written) == blocks(content)
