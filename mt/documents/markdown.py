"""Markdown (CommonMark with tables), by the rules of markdown-it-py.

That library tells which lines are paragraphs, headings, items and cells, and which are code. What stands inside of a
line, such as emphasis and links, are codes that go where their words go.
"""

import re
from collections.abc import Collection, Sequence

from markdown_it import MarkdownIt

from mt.data.parsers.codes import Code, Coded, coded
from mt.data.parsers.document import Document, Languages, Passage, Splice, decoded, is_text
from mt.data.parsers.layout import always, cut
from mt.text.tags import decode, encode

FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
URL = r"\((?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
INLINE = re.compile(
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
    r"|(?P<mark>\*{1,3}|_{1,3}|~~)",
    re.DOTALL,
)
SPECIAL = re.compile(r"[\\`\[\]<]|(?<!\s)[*~]|[*~](?!\s)|(?<!\w)_|_(?!\w)|&(?=[#\w])")
"""Characters of a text that would be read as markup."""
BEGINS_BLOCK = re.compile(
    r"(?m)^([ \t]*)(?=\#{1,6}(?:\s|$)|>|[+*-](?:\s|$)|(?:[-_*=][ \t]*)+$|~~~|\|)|^([ \t]*\d{1,9})(?=[.)](?:\s|$))"
)
"""The place in a line where a backslash keeps it from being something else than a part of a paragraph."""


def read_markdown(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Reads a Markdown file. Code, HTML blocks and front matter are not translated."""
    text = decoded(content)
    front = FRONT_MATTER.match(text)
    body = re.sub(r"[^\r\n]", " ", front.group()) + text[front.end() :] if front else text
    environment: dict[str, dict] = {}
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(body, environment)
    references = {name.casefold() for name in environment.get("references", {})}
    ends = [match.span() for match in re.finditer(r"\r\n?|\n|\Z", text)]
    lines = list(zip([0, *(after for _, after in ends)], (end for end, _ in ends), strict=False))
    passages = []
    is_cell, done = False, 0
    for token in tokens:
        is_cell = token.type in ("th_open", "td_open") or (is_cell and token.type == "inline")
        if token.type == "inline" and token.map and is_text(token.content):
            places = _places(text, lines[slice(*token.map)], token.content, done if is_cell else None)
            if places:
                done = places[-1][1]
                passages.append(_passage(text, places, references, is_cell))
    return Document(text, tuple(passages))


def _places(text: str, lines: Sequence[tuple[int, int]], content: str, done: int | None) -> list[tuple[int, int]]:
    """Returns where the lines of a content begin and end in the lines of the text, behind the marks of quotations and
    lists. Empty if one is not there literally.

    Args:
        done: Of a cell, the end of the one before it. None if the content is all that is in its lines.
    """
    places = []
    for one, (start, end) in zip(content.split("\n"), lines, strict=False):
        one = one.strip(" \t")
        place = text.rfind(one, start, end) if done is None else text.find(one, max(start, done), end)
        if place < 0 or not one:
            return []
        places.append((place, place + len(one)))
    return places


def _passage(text: str, places: Sequence[tuple[int, int]], references: Collection[str], is_cell: bool) -> Passage:
    start, end = places[0][0], places[-1][1]
    between = [text[one[1] : other[0]] for one, other in zip(places, places[1:], strict=False)]
    plain = text[slice(*places[0])]
    for gap, place in zip(between, places[1:], strict=True):
        plain += ("  \n" if gap.startswith("  ") else "\n") + text[slice(*place)]
    whole = _coded(plain, references)
    layout = cut(whole.text, always, markup="html", columns=False)

    def write(translations: list[str]) -> list[Splice]:
        if translations[0] == layout.text:
            return []
        parts = (part if is_code else _spelt(part, is_cell) for part, is_code in whole.parts(translations[0]))
        written = BEGINS_BLOCK.sub(r"\1\2\\", "".join(parts))
        first, *others = written.split("\n")
        gaps = [gap.lstrip(" \t\\") for gap in between]
        gaps += gaps[-1:] * (len(others) - len(gaps))
        joined = "".join(part for pair in zip(gaps, others, strict=False) for part in pair)
        return [Splice(start, end, first + joined)]

    return Passage((layout,), write)


def _coded(plain: str, references: Collection[str]) -> Coded:
    """Returns a text as HTML with tags in place of its codes."""
    parts: list[str] = []
    codes: list[Code] = []
    length = done = 0

    def add(part: str, code: tuple[str, str] | None = None) -> None:
        nonlocal length
        parts.append(part)
        if code is not None:
            codes.append(Code(length, length + len(part), *code))
        length += len(part)

    for found in INLINE.finditer(plain):
        content = found.group()
        opens = closes = ""
        is_code = True
        match found.lastgroup:
            case "escape":
                is_code, content = False, content[1:]
            case "open":
                opens = "["
            case "close":
                closes = "["
            case "reference":
                is_code = len(content) == 3 or content[1:-1].casefold() in references
            case "tag":
                name = re.split(r"[\s/>]", content.lstrip("</"))[0].lower()
                opens, closes = ("", name) if content.startswith("</") else (name, "")
            case "mark":
                before, after = plain[found.start() - 1 : found.start()], plain[found.end() : found.end() + 1]
                inside = content.startswith("_")
                can_open = after.strip() and not (inside and before.isalnum())
                can_close = before.strip() and not (inside and after.isalnum())
                opens, closes = content if can_open else "", content if can_close else ""
                is_code = bool(opens or closes)
        add(encode(plain[done : found.start()]).replace("&#10;", "\n"))
        add(content, (opens, closes)) if is_code else add(encode(content))
        done = found.end()
    add(encode(plain[done:]).replace("&#10;", "\n"))
    return coded("".join(parts), codes)


def _spelt(text: str, is_cell: bool) -> str:
    """Returns a part of a translation as Markdown writes it."""
    written = SPECIAL.sub(r"\\\g<0>", decode(text, "html"))
    return written.replace("|", r"\|") if is_cell else written
