"""Reads Markdown: CommonMark with tables, footnotes, admonitions and math, as markdown-it-py parses it.

markdown-it-py distinguishes texts (paragraphs, headings, list items and table cells) from code. Inline markup, such as
emphasis and links, is read as codes (``mt.formats.markdown_inline``), which the translator moves together with
their words. Each translation is parsed again. If its markup differs from the source's, the text stays untranslated.

Front matter, and the JavaScript and JSX of MDX, are hidden from the parser. The anchor of a heading is derived from its
text as on GitHub, unless the heading declares one, as in ``## Use {#use}``. Links to headings are updated to the
anchors of the translated headings.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from operator import add, attrgetter
from typing import TYPE_CHECKING
from urllib.parse import unquote

import regex

from mt.core.coded_text import CodedText, Span, Splice, apply_splices
from mt.core.installation import optional_packages
from mt.formats.document import Document, Languages, Passage, decode_utf8, is_translatable, untranslated_passage
from mt.formats.layout import cut_paragraphs
from mt.formats.markdown_inline import LINE_BREAK, PUNCTUATION, SPECIAL, TAG, coded_markdown, write_markdown
from mt.formats.web_page import BRANCH, EXPRESSION, NO_PROSE, TEMPLATE, VALUE, page_passages

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

FIXED_LINE = re.compile(rf"\[![\w-]+\][+-]?|:{{3,}}.*|\([\w:.-]+\)=|(?:{TEMPLATE.pattern})|(?:{TAG}[ \t]*)+", re.DOTALL)
"""A line without text to translate: the start of an alert or container, the end of a container, a link target, tags,
or a construct of a template."""
ABBREVIATION = re.compile(r"\*\[[^\[\]]+\]:")
BEFORE_TABLE = re.compile(r".*\n[\s>]*[|:-][-:|\t ]*\r?$", re.MULTILINE)
"""The rest of a line before the delimiter row of a table, whose header the line may become."""
FOREIGN_BLOCK = re.compile(
    r"^(?:\||\+[-=+]{2}|:?-{2,}[-:| \t]*\||[-:| \t]*\|[-:| \t]*-{2,}[-:| \t]*\r?$|===[!+]?[ \t]+\")", re.MULTILINE
)
"""A line of a table or tab in another dialect of Markdown. CommonMark parses it as a paragraph."""
CONTAINER_TITLE = re.compile(r"[ \t]*:{3,}\s*(?:\{[^{}]*\}|[\w-]++)\s*\[?(?P<title>[^\[\]{}]*[^\s\[\]{}])")
FRONT_MATTER = re.compile(
    r"\A\ufeff?(?:(?P<fence>-{3}|\+{3})[ \t]*\r?\n(?:.*?\n)??(?:(?P=fence)|\.{3})[ \t]*(?:\r?\n|\Z))?", re.DOTALL
)
"""A byte order mark, and YAML between lines of hyphens or TOML between lines of plus signs, at the start of a file."""
PROGRAM = re.compile(
    r"^(?:[ \t>*+-]|\d+[.)])*(?P<fence>`{3,}|~{3,})[^`\n]*\n(?:[^\n]*\n)*?(?:[ \t>]*(?P=fence)|\Z)"
    r"|(?<!`)(?P<ticks>`+)(?!`)(?:[^\n]|\n(?!\s*\n))+?(?<!`)(?P=ticks)(?!`)"
    rf"|(?P<module>(?<!\S\n)(?<!\S\r\n)^(?=import\s[^.\n]*?[\"'{{]|export\s(?:default\s+\w+;?\s*$|[^.\n]*?[\"'(){{}}=]))"
    rf"(?:{VALUE}|`[^`]*+`|[^\n]|\n(?![ \t\r]*\n))*+)"
    rf"|(?P<jsx>(?=</?[A-Z]\w*[a-z]|<[a-z][^<>{{}}]*={VALUE}){TAG}|^{NO_PROSE}{VALUE}|{EXPRESSION})",
    re.MULTILINE | re.DOTALL,
)
"""Code, a block of JavaScript in MDX, or a tag or expression of JSX."""
TEXT_IN_CODE = re.compile(r"\{[^{}]*<[A-Za-z][^<>]*>[^<>{}]*[^\W\d]{2}[^<>{}]*</")
"""A text in a JSX element inside an expression."""
LINK = re.compile(
    r"""(?:(?<!\\)\]\(\s*<?|^[ \t>]*\[[^\[\]]+\]:\s*<?|\bhref\s*=[{\s]*["']?)\#(?P<anchor>(?![/!:])[^\s"'<>()]+)""",
    re.MULTILINE,
)
"""The start of a link to an anchor on the same page."""
DECLARED = re.compile(
    r"""(?:<[^<>]*?\b(?:id|name)\s*=[{\s]*["']?|\{(?:/\*)?\s*\#|\[\#(?=[^\[\]]*\][ \t]*\r?$)|^\((?=[^()]*\)=))"""
    r"(?P<anchor>[\w:.-]+)",
    re.MULTILINE,
)
"""The declaration of an anchor in HTML, Pandoc, Docusaurus, Nextra or MyST."""


@dataclass(frozen=True)
class Parser:
    """A Markdown parser that knows the link targets and footnotes of a document."""

    markdown: "MarkdownIt"
    environment: dict[str, dict]

    @cached_property
    def references(self) -> set[str]:
        """The names of the link targets that the document defines, case-folded."""
        return {name.casefold() for name in self.environment.get("references", {})}

    def count_markup(self, content: str) -> Counter[tuple[str, str, str]]:
        """Count the elements of inline markup in the text of a block, by type, attributes and content."""
        children = self.markdown.parseInline(content, self.environment)[0].children or []
        return Counter(
            (child.type, f"{child.attrs}{child.meta.get('label')}", child.content)
            for child in children
            if child.type not in ("text", "softbreak", "text_special")
        )

    def is_paragraph(self, content: str) -> bool:
        """Return whether a text is a single paragraph."""
        return self._block_types(content) == ["paragraph_open", "inline", "paragraph_close"]

    def is_html(self, content: str) -> bool:
        """Return whether a text is a single block of HTML, which may be indented."""
        return self._block_types(content.lstrip()) == ["html_block"]

    def _block_types(self, content: str) -> list[str]:
        return [token.type for token in self.markdown.parse(content, {})]


def make_parser() -> Parser:
    """Return a parser of CommonMark with the supported extensions, for a document that has not been parsed yet."""
    with optional_packages():
        from markdown_it import MarkdownIt
        from mdit_py_plugins.admon import admon_plugin
        from mdit_py_plugins.anchors import anchors_plugin
        from mdit_py_plugins.container import container_plugin
        from mdit_py_plugins.deflist import deflist_plugin
        from mdit_py_plugins.dollarmath import dollarmath_plugin
        from mdit_py_plugins.footnote import footnote_plugin
    markdown = MarkdownIt("commonmark", {"maxNesting": 100}).enable(["table", "strikethrough"])
    markdown.use(footnote_plugin, move_to_end=False).use(admon_plugin).use(deflist_plugin)
    markdown.use(anchors_plugin, max_level=6, slug_func=github_anchor)
    markdown.use(dollarmath_plugin, allow_space=False, allow_digits=False, allow_blank_lines=False, double_inline=True)
    markdown.use(container_plugin, "block", validate=lambda info, *_: bool(info.strip()))
    return Parser(markdown, {})


class Page:
    """A parsed page: its blocks, links and anchors."""

    def __init__(self, text: str, markdown: "MarkdownIt", environment: dict[str, dict]) -> None:
        self._text = text
        self.body = PROGRAM.sub(_hide_program, FRONT_MATTER.sub(_replace_by_spaces, text, count=1))
        """The text that is parsed. Front matter and programs are replaced by characters of the same number."""
        self.tokens = markdown.parse(self.body, environment)
        content = PROGRAM.sub(lambda match: match[0] if match["jsx"] else _replace_by_spaces(match), text)
        self.links = [(*match.span("anchor"), unquote(match["anchor"]).lower()) for match in LINK.finditer(content)]
        """For each link to an anchor of the page: the start and end of the anchor in the text, and the anchor."""
        self._declared = {"top"} | {match["anchor"].lower() for match in DECLARED.finditer(content)}
        self._headings = [f"{token.attrGet('id')}" for token in self.tokens if token.type == "heading_open"]
        """The anchor of each heading."""

    def untranslated_positions(self) -> Iterator[int]:
        """Yield the positions of links whose anchor is not on the page, and of expressions that contain text."""
        targets = self._declared.union(self._headings)
        yield from (start for start, _, anchor in self.links if anchor not in targets)
        yield from (match.start() for match in PROGRAM.finditer(self._text) if TEXT_IN_CODE.search(match["jsx"] or ""))

    def with_updated_links(self, source: "Page") -> str:
        """Return the text of this page, a translation of ``source``, with its links to the translated headings."""
        pairs = zip(source._headings, self._headings, strict=False)
        new_anchors = {old: new for old, new in pairs if old != new and old not in source._declared}
        links = (Splice(start, end, new_anchors[anchor]) for start, end, anchor in self.links if anchor in new_anchors)
        return apply_splices(self._text, links)


def github_anchor(title: str) -> str:
    """Return the anchor of a heading on GitHub: ``how-to-water`` for "How to water"."""
    return regex.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _replace_by_spaces(match: re.Match[str]) -> str:
    """Return a space for each character of a match. Line breaks are preserved."""
    return re.sub(r"[^\r\n]", " ", match.group())


def _hide_program(match: re.Match[str]) -> str:
    """Return private-use characters in place of a match of PROGRAM, unless the parser can read it."""
    is_hidden = match["module"] or match["jsx"] and ("\n" in match[0] or match[0].startswith("<"))
    return "\ue000" * len(match[0]) if is_hidden else match[0]


def read_markdown(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a Markdown file. Paragraphs, headings, list items, titles, table cells and the texts of HTML are translated.

    Code and front matter are preserved.

    Raises:
        InputError: The content is not in UTF-8, or a package is not installed.
    """
    parser = make_parser()
    text = decode_utf8(content)
    page = Page(text, parser.markdown, parser.environment)
    breaks = [match.span() for match in re.finditer(r"\r\n?|\n|\Z", page.body)]
    lines = [(start, end) for (_, start), (end, _) in pairwise([(0, 0), *breaks])]
    tokens = page.tokens
    passages: list[Passage] = []
    done = 0
    for before, token in zip(["", *(token.type for token in tokens)], tokens, strict=False):
        if token.type == "container_block_open" and token.map:
            start, end = lines[token.map[0]]
            if (title := CONTAINER_TITLE.fullmatch(text[start:end].rstrip("] \t"))) and is_translatable(title["title"]):
                passages += _block_passages(
                    text, [(start + title.start("title"), start + title.end("title"))], parser, False
                )
        if not token.map or not is_translatable(token.content):
            continue
        own_lines = lines[token.map[0] : max(token.map[1], token.map[0] + 1)]
        if token.type == "html_block":
            passages += _html_passages(text, own_lines, languages, parser)
        elif token.type == "inline":
            is_cell = before in ("th_open", "td_open")
            quote = '"' if before == "admonition_title_open" else ""
            spans = _find_lines(page.body, own_lines, f"{quote}{token.content}{quote}", done if is_cell else None)
            done = spans[-1][1] if spans else done
            is_foreign = before == "paragraph_open" and FOREIGN_BLOCK.search(token.content)
            if spans and not is_foreign and not BRANCH.search(token.content):
                spans = [(start + len(quote), end - len(quote)) for start, end in spans]
                passages += _block_passages(text, spans, parser, is_cell)
            elif not quote:  # markdown-it-py gives an admonition without a title its type as the title
                passages.append(untranslated_passage(own_lines[0][0]))
    passages += map(untranslated_passage, page.untranslated_positions())

    def encode(translated: str) -> bytes:
        return (Page(translated, parser.markdown, {}).with_updated_links(page) if page.links else translated).encode()

    return Document(text, sorted(passages, key=attrgetter("start")), encode)


def _html_passages(text: str, lines: Sequence[Span], languages: Languages, parser: Parser) -> Iterator[Passage]:
    """Yield the passages of a block of HTML.

    A passage stays untranslated if the block is in a quotation or encloses code, or if CommonMark would no longer parse
    the block as HTML.
    """
    shift, end = lines[0][0], lines[-1][1]
    block = text[shift:end]
    is_writable = parser.is_html(block) and "```" not in block  # neither in a quotation nor around code

    for passage in page_passages(block, languages)[0]:

        def write(translations: list[CodedText], passage: Passage = passage) -> list[Splice] | None:
            splices = passage.write(translations) if is_writable else None
            # CommonMark recognizes HTML by the first line of a block.
            is_first_line = splices and "\n" not in block[: splices[0].start]
            if splices is None or (is_first_line and not parser.is_html(apply_splices(block, splices))):
                return None
            return [Splice(start + shift, end + shift, content) for start, end, content in splices]

        yield replace(passage, write=write, start=passage.start + shift)


def _find_lines(text: str, lines: Sequence[Span], content: str, done: int | None) -> list[Span]:
    """Find the lines of a block, as markdown-it-py returns them, in the document.

    Args:
        text: The document.
        lines: The spans of the document's lines that contain the block.
        content: The text of the block, without the markers of quotations and lists.
        done: For a table cell: the end of the previous cell. None for other blocks, which fill their lines.

    Returns:
        The span of each line of the block. Empty if a line is blank or does not occur literally in the document.
    """
    spans = []
    for line, (start, end) in zip(content.split("\n"), lines, strict=False):
        line = line.lstrip(" \t")
        if done is None:
            position = text.rfind(line, start, end)
        else:
            line = line.replace("|", r"\|")
            position = text.find(line, max(start, done), end)
        if position < 0 or not line:
            return []
        spans.append((position, position + len(line)))
    return spans


def _block_passages(text: str, spans: Sequence[Span], parser: Parser, is_cell: bool) -> Iterator[Passage]:
    """Yield the passages of a block.

    A block is one passage, unless it is divided by lines without text (FIXED_LINE) or defines abbreviations, each of
    which is a passage.

    Args:
        text: The document.
        spans: The spans of the block's lines.
        parser: The parser that found the block.
        is_cell: Whether the block is a table cell.
    """

    def group_key(span: Span) -> int:
        """Return -1 for a line without text, and the same number for lines of one passage."""
        line = text[slice(*span)].rstrip()
        if FIXED_LINE.fullmatch(line):
            return -1
        return span[1] if ABBREVIATION.match(line) or (line.startswith("[!") and span == spans[0]) else 0

    for key, group in groupby(spans, group_key):
        passage_spans = list(group)
        before = "" if passage_spans[0] == spans[0] else "text\n"
        if key >= 0:
            yield from _lines_passage(text, passage_spans, parser, is_cell, before)


def _lines_passage(text: str, spans: Sequence[Span], parser: Parser, is_cell: bool, before: str) -> Iterator[Passage]:
    """Yield the passage of some lines of a block, unless they have no words.

    Args:
        text, parser, is_cell: See ``_block_passages``.
        spans: The spans of the lines.
        before: "" if they are the first lines of the block, or else a placeholder for the lines before them.
    """
    gaps = ["", *(text[end:start] for (_, end), (start, _) in pairwise(spans))]
    plain = "\n".join(re.sub("\r?\n", LINE_BREAK, text[slice(*span)]) for span in spans)
    layout = cut_paragraphs(coded_markdown(plain, parser.references), flows=True)
    markup = parser.count_markup(plain)
    pipe = "&#124;" if BEFORE_TABLE.match(text, spans[-1][1]) else "|"
    if is_cell:
        pipe = r"\|"

    def write(translations: list[CodedText]) -> list[Splice] | None:
        if translations[0] == layout.text:
            return []
        for special in (SPECIAL, PUNCTUATION):
            written = write_markdown(translations[0], special, pipe).strip(" ")
            if parser.count_markup(written) == markup and (is_cell or parser.is_paragraph(before + written)):
                rows = written.split("\n")
                starts = gaps + gaps[-1:] * (len(rows) - len(gaps))
                content = "".join(map(add, starts, rows)).replace(LINE_BREAK, "\r\n" if "\r\n" in text else "\n")
                return [Splice(spans[0][0], spans[-1][1], content)]
        return None

    if is_translatable(layout.text.text):
        yield Passage((layout,), write, spans[0][0])
