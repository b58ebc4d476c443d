"""Finds the blocks of a Markdown page, and the links to its headings, which follow the translated headings.

Front matter, and JavaScript and JSX of MDX, are hidden from the parser. A heading has the anchor that GitHub makes of
its text, unless it declares one, as in ``## Use {#use}``.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import unquote

import regex

from mt.core.coded_text import Splice, apply_splices
from mt.formats.markdown_inline import TAG
from mt.formats.web_page import EXPRESSION, NO_PROSE, VALUE

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

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
"""A text in an element of JSX inside of an expression."""
LINK = re.compile(
    r"""(?:(?<!\\)\]\(\s*<?|^[ \t>]*\[[^\[\]]+\]:\s*<?|\bhref\s*=[{\s]*["']?)\#(?P<anchor>(?![/!:])[^\s"'<>()]+)""",
    re.MULTILINE,
)
"""The start of a link to an anchor of the same page."""
DECLARED = re.compile(
    r"""(?:<[^<>]*?\b(?:id|name)\s*=[{\s]*["']?|\{(?:/\*)?\s*\#|\[\#(?=[^\[\]]*\][ \t]*\r?$)|^\((?=[^()]*\)=))"""
    r"(?P<anchor>[\w:.-]+)",
    re.MULTILINE,
)
"""The declaration of an anchor: of HTML, Pandoc, Docusaurus, Nextra and MyST."""


class Page:
    """A parsed page, with its links."""

    def __init__(self, text: str, markdown: "MarkdownIt", environment: dict[str, dict]) -> None:
        self._text = text
        self.body = PROGRAM.sub(_hidden, FRONT_MATTER.sub(_blanked, text, count=1))
        """The text that is parsed, of the same length as the page's text."""
        self.tokens = markdown.parse(self.body, environment)
        content = PROGRAM.sub(lambda match: match[0] if match["jsx"] else _blanked(match), text)
        self.links = [(*match.span("anchor"), unquote(match["anchor"]).lower()) for match in LINK.finditer(content)]
        """The start and the end of the anchor in each link, and the anchor."""
        self._declared = {"top"} | {match["anchor"].lower() for match in DECLARED.finditer(content)}
        self._headings = [f"{token.attrGet('id')}" for token in self.tokens if token.type == "heading_open"]
        """The anchor of each heading."""

    def left_positions(self) -> Iterator[int]:
        """Yield the positions of the links whose anchor is not on the page, and of expressions that hold text."""
        targets = self._declared.union(self._headings)
        yield from (start for start, _, anchor in self.links if anchor not in targets)
        yield from (match.start() for match in PROGRAM.finditer(self._text) if TEXT_IN_CODE.search(match["jsx"] or ""))

    def follow(self, source: "Page") -> str:
        """Return the text of the page, a translation of ``source``, with its links to the translated headings."""
        pairs = zip(source._headings, self._headings, strict=False)
        moved = {old: new for old, new in pairs if old != new and old not in source._declared}
        links = (Splice(start, end, moved[anchor]) for start, end, anchor in self.links if anchor in moved)
        return apply_splices(self._text, links)


def github_anchor(title: str) -> str:
    return regex.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def _blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\r\n]", " ", match.group())


def _hidden(match: re.Match[str]) -> str:
    is_hidden = match["module"] or match["jsx"] and ("\n" in match[0] or match[0].startswith("<"))
    return "\ue000" * len(match[0]) if is_hidden else match[0]
