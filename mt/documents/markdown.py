"""Reads Markdown: CommonMark with tables, as markdown-it-py parses it.

markdown-it-py distinguishes texts (paragraphs, headings, list items and table cells) from code. Inline markup, such as
emphasis and links, is replaced by HTML tags, which the translator moves together with their words.
"""

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from mt.core.extras import optional_packages
from mt.data.parsers.codes import TaggedText, replace_codes
from mt.data.parsers.document import Document, Languages, Passage, decode_utf8, is_translatable, replaced_passage
from mt.data.parsers.layout import always, cut_paragraphs
from mt.text.markup.marks import Mark
from mt.text.markup.tags import decode, encode
from mt.text.placeholders.values import Span

FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
"""YAML between two lines of hyphens at the start of a file."""
URL = r"\((?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
INLINE_MARKUP = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>(?<!`)(`+)(?!`).*?(?<!`)\3(?!`))"
    r"|(?P<hard_break>(?:[ ]{2,}|\\)\n)"
    rf"|(?P<image>!\[[^\[\]]*\](?:{URL}|\[[^\[\]]*\]))"
    r"|(?P<footnote>\[\^[^\[\]\s]+\])"
    r"|(?P<open>\[(?=[^\[\]]*\](?:\(|\[)|!\[))"
    rf"|(?P<close>\](?:{URL}|\[[^\[\]]*\]))"
    r"|(?P<reference>\[[^\[\]]+\])"
    r"|(?P<link><[A-Za-z][A-Za-z0-9+.-]+:[^\s<>]*>|<[^\s<>@]+@[^\s<>]+>)"
    r"|(?P<tag></?[A-Za-z][\w-]*(?:\s[^<>]*)?>|<!--.*?-->)"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<emphasis>\*{1,3}|_{1,3}|~~)",
    re.DOTALL,
)
"""An element of inline markup. The name of its group is the kind of the element."""
SPECIAL = re.compile(r"[\\`\[\]<]|(?<!\s)[*~]|[*~](?!\s)|(?<!\w)_|_(?!\w)|&(?=[#\w])")
"""A character of a translation that would be read as markup, and needs a backslash."""
EMPHASIS = re.compile(r"[*_~]+")
BEGINS_BLOCK = re.compile(
    r"(?m)^([ \t]*)(?=\#{1,6}(?:\s|$)|>|[+*-](?:\s|$)|(?:[-_*=][ \t]*)+$|~~~|\|)|^([ \t]*\d{1,9})(?=[.)](?:\s|$))"
)
"""The start of a line that would begin a new block, such as a list item. A backslash after the match prevents that."""


def read_markdown(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a Markdown file. Each paragraph, heading, list item and table cell is a passage to translate.

    Code, HTML blocks and front matter are kept.

    Raises:
        InputError: The content is not in UTF-8, or markdown-it-py is not installed.
    """
    with optional_packages():
        from markdown_it import MarkdownIt
    text = decode_utf8(content)
    front = FRONT_MATTER.match(text)
    body = re.sub(r"[^\r\n]", " ", front.group()) + text[front.end() :] if front else text
    environment: dict[str, dict] = {}
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(body, environment)
    references = {name.casefold() for name in environment.get("references", {})}
    breaks = [match.span() for match in re.finditer(r"\r\n?|\n|\Z", text)]
    lines = [(start, end) for (_, start), (end, _) in pairwise([(0, 0), *breaks])]
    passages = []
    done = 0
    for opening, token in pairwise(tokens):
        if token.type == "inline" and token.map and is_translatable(token.content):
            is_cell = opening.type in ("th_open", "td_open")
            if spans := _spans(text, lines[slice(*token.map)], token.content, done if is_cell else None):
                done = spans[-1][1]
                passages.append(_passage(text, spans, references, is_cell))
    return Document(text, tuple(passages))


def _spans(text: str, lines: Sequence[Span], content: str, done: int | None) -> list[Span]:
    """Find the text of a block, as markdown-it-py returns it, in the document.

    Args:
        text: The document.
        lines: The spans of the document's lines that hold the block.
        content: The text of the block, without the marks of quotations and lists.
        done: For a table cell, the end of the cell before it. None for other blocks, which fill their lines.

    Returns:
        The span of each line of the block. Empty if a line is blank or not literally in the document.
    """
    spans = []
    for line, (start, end) in zip(content.split("\n"), lines, strict=False):
        line = line.strip(" \t")
        position = text.rfind(line, start, end) if done is None else text.find(line, max(start, done), end)
        if position < 0 or not line:
            return []
        spans.append((position, position + len(line)))
    return spans


def _passage(text: str, spans: Sequence[Span], references: Collection[str], is_cell: bool) -> Passage:
    """Return the passage for a block.

    Args:
        text: The document.
        spans: The spans of the block's lines.
        references: The names of the link targets that the document defines, case-folded.
        is_cell: Whether the block is a table cell.
    """
    gaps = [text[end:start] for (_, end), (start, _) in pairwise(spans)]
    plain = text[slice(*spans[0])]
    for gap, span in zip(gaps, spans[1:], strict=True):
        plain += ("  \n" if gap.startswith("  ") else "\n") + text[slice(*span)]
    tagged = _tag(plain, references)

    def write(translation: str) -> str:
        parts = _flanked([part if is_code else _escape(part, is_cell) for part, is_code in tagged.parts(translation)])
        first, *others = BEGINS_BLOCK.sub(r"\1\2\\", "".join(parts)).split("\n")
        line_starts = [gap.lstrip(" \t\\") for gap in gaps]
        line_starts += line_starts[-1:] * (len(others) - len(gaps))
        return first + "".join(start + line for start, line in zip(line_starts, others, strict=False))

    layout = cut_paragraphs(tagged.text, always, markup="html", columns=False)
    return replaced_passage(spans[0][0], spans[-1][1], layout, write)


def _tag(plain: str, references: Collection[str]) -> TaggedText:
    """Convert Markdown text to HTML with a tag in place of each element of inline markup.

    Returns:
        The HTML, with what is needed to put the markup back into its translation.
    """
    html = ""
    codes: list[Mark] = []
    done = 0
    for match in INLINE_MARKUP.finditer(plain):
        html += encode(plain[done : match.start()]).replace("&#10;", "\n")
        content = match.group()
        if keys := _keys(match, references):
            codes.append(Mark(len(html), len(html) + len(content), *keys))
            html += content
        else:
            html += encode(content[1:] if match.lastgroup == "escape" else content)
        done = match.end()
    return replace_codes(html + encode(plain[done:]).replace("&#10;", "\n"), codes)


def _keys(inline: re.Match[str], references: Collection[str]) -> tuple[str, str] | None:
    """Return which element a match of INLINE_MARKUP starts and which it ends, so that starts and ends can be paired.

    Returns:
        The key of the element that starts and of the one that ends, each empty if none does. None if the match is plain
        text.
    """
    content = inline.group()
    match inline.lastgroup:
        case "escape":
            return None
        case "open":
            return "[", ""
        case "close":
            return "", "["
        case "reference" if len(content) != 3 and content[1:-1].casefold() not in references:
            return None
        case "tag":
            name = re.split(r"[\s/>]", content.lstrip("</"))[0].lower()
            return ("", name) if content.startswith("</") else (name, "")
        case "emphasis":
            return _flanking(content, inline.string[: inline.start()][-1:], inline.string[inline.end() :][:1])
    return "", ""


def _flanking(delimiter: str, before: str, after: str) -> tuple[str, str] | None:
    """Return the same keys as ``_keys`` for a delimiter of emphasis, given the characters before and after it.

    The rules are those of CommonMark for left- and right-flanking delimiters, in a simpler form.
    """
    is_underscore = delimiter.startswith("_")
    can_open = after.strip() and not (is_underscore and before.isalnum())
    can_close = before.strip() and not (is_underscore and after.isalnum())
    return (delimiter if can_open else "", delimiter if can_close else "") if can_open or can_close else None


def _flanked(parts: list[str]) -> list[str]:
    """Move delimiters of emphasis outwards to the border of a word, where CommonMark does not read them as text.

    Args:
        parts: Text at even indices, and delimiters and other codes at odd ones.
    """
    unclosed: set[str] = set()
    for index in range(1, len(parts), 2):
        delimiter, before, after = parts[index], parts[index - 1], parts[index + 1]
        if not EMPHASIS.fullmatch(delimiter):
            continue
        is_closing = delimiter in unclosed
        unclosed ^= {delimiter}
        inner, outer = (before[-1:], after[:1]) if is_closing else (after[:1], before[-1:])
        if outer.isalnum() and (delimiter[0] == "_" or not inner.isalnum()):
            word = re.match(r"\w+", after) if is_closing else re.search(r"\w+$", before)
            if word and is_closing:
                parts[index - 1 : index + 2] = before + word[0], delimiter, after[word.end() :]
            elif word:
                parts[index - 1 : index + 2] = before[: word.start()], delimiter, word[0] + after
        elif is_closing and not after and "".join(parts[index + 2 : index + 3]) not in {"", *unclosed}:
            parts[index + 1] = " "  # otherwise the delimiters of two neighbours would be read as one
    return parts


def _escape(text: str, is_cell: bool) -> str:
    """Convert a part of a translation from HTML to Markdown: decode entities, and escape characters that are markup."""
    escaped = SPECIAL.sub(r"\\\g<0>", decode(text, "html"))
    return escaped.replace("|", r"\|") if is_cell else escaped
