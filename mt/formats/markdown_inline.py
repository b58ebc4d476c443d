"""Reads the inline markup of Markdown, such as emphasis and links, as codes, and writes texts with codes."""

import re
from collections.abc import Collection

from mt.core.coded_text import CodedText, Mark, coded_text
from mt.formats.document import is_translatable
from mt.formats.marks import emphasis_keys
from mt.formats.web_page import TEMPLATE, VALUE, construct_keys, is_placeholder

URL = r"\((?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
LINE_BREAK = "\ufdd0"
"""Stands for a line break in a tag or expression of JSX."""
TAG = rf"</?(?:[A-Za-z][\w.:-]*(?:[\s/{LINE_BREAK}](?:{VALUE}|\"[^\"<]*+\"|'[^'<]*+'|[^<>{{])*+)?)?>"
INLINE_MARKUP = re.compile(
    r"(?P<math>\$\$[^$]+\$\$|(?<![\d$])\$(?![\s$])[^$]*[^\s$\\]\$(?!\d)|\\{1,2}\([^()\\]*+\\{1,2}\)"
    r"|\\@\w+\([^()\s]*\)|\\[A-Za-z]+\{[^{}\s]+(?:\s[^{}\s]+)?\})"
    r"|(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>(?<!`)(?P<ticks>`+)(?!`).*?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<attributes>\{[.\#:][^{}\n]*\}|(?<!~)~[^\s~]+~(?!~)|\^[^\s^\[]+\^)"
    rf"|(?P<template>{TEMPLATE.pattern})"
    r"|(?P<label>\A(?:\[![\w-]+\][+-]?|\*\[[^\[\]]+\]:[ \t]*|:[ \t]+))"
    r"|(?P<wiki>\[\[[^\[\]\n]+\]\](?!\())"
    r"|(?P<note>\^\[(?=[^\[\]]*\](?![(\[])))"
    r"|(?P<hard_break>(?:[ ]{2,}|\\)\n)"
    rf"|(?P<image>!\[[^\[\]]*\](?:{URL}|\[[^\[\]]*\]))"
    r"|(?P<footnote>\[\^[^\[\]\s]+\])"
    r"|(?P<open>\[(?=(?:[^\[\]]++|\[[^\[\]]*+\])*+\][(\[]))"
    rf"|(?P<close>\](?:{URL}|\[[^\[\]]*\]))"
    r"|(?P<reference>\[[^\[\]]+\])"
    r"|(?P<link><[A-Za-z][A-Za-z0-9+.-]+:[^\s<>]*>|<[^\s<>@]+@[^\s<>]+>)"
    r"|(?P<element><(?P<name>(?:code|kbd|samp|var|math|svg|script|style)(?![\w-])"
    r"|\w++(?=[^<>]*\s(?:translate=[\"']?no\b|class=(?:\"[^\"<>]*|'[^'<>]*)\bnotranslate\b)))"
    r"[^<>]*>(?:(?!<(?P=name)\b).)*?</(?P=name)>)"
    rf"|(?P<tag>{TAG}|<!--(?:(?!<!--).)*?-->)"
    r"|(?P<entity>&(?:\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});)"
    r"|(?P<emphasis>\*{1,3}|_{1,3}|~~|==)"
    r"|(?P<note_end>\])",
    re.DOTALL,
)
"""An element of inline markup. The name of its group is the kind of the element."""
COLLAPSED_REFERENCE = re.compile(r"\[([^\[\]]+)\]\[\]")
REPEATED_REFERENCE = re.compile(r"\[([^\[\]]+)\]\[\1\]")
"""A link whose text is the name of its target, which need not be repeated."""
SPECIAL = re.compile(r"\\(?![^\W_]|\s)|[`\[\]<]|(?<!\s)[*~]|[*~](?!\s)|(?<!\w)_|_(?!\w)|&(?=\#?\w+;)")
"""A character of a translation that would be read as markup, and needs a backslash."""
PUNCTUATION = re.compile(r"[!-/:-@\[-`{}~]")
"""A character that may have a backslash in front of it; without ``|``, whose spelling is chosen apart."""
EMPHASIS = re.compile(r"[*_~=]+")
BEGINS_BLOCK = re.compile(
    r"(?m)^([ \t]*)(?=\#{1,6}(?:\s|$)|>|[+*-](?:\s|$)|(?:[-_*=][ \t]*)+$|~~~|\|)|^([ \t]*\d{1,9})(?=[.)](?:\s|$))"
)
"""The start of a line that would begin a new block, such as a list item. A backslash after the match prevents that."""


def coded_markdown(plain: str, references: Collection[str]) -> CodedText:
    """Return Markdown text with its inline markup as codes."""
    plain = COLLAPSED_REFERENCE.sub(r"[\1][\1]", plain)
    plain = INLINE_MARKUP.sub(lambda match: _repeat_target(match, references), plain)
    text = ""
    marks: list[Mark] = []
    done = 0
    for match in INLINE_MARKUP.finditer(plain):
        text += plain[done : match.start()]
        content = match.group()
        if keys := _element_keys(match, references):
            is_break = match.lastgroup == "hard_break" or keys[0] == "br"
            marks.append(Mark(len(text), len(text) + len(content), *keys, ends_text=is_break))
        text += content[match.lastgroup == "escape" and not keys :]
        done = match.end()
    return coded_text(text + plain[done:], marks)


def write_markdown(coded: CodedText, special: re.Pattern[str], pipe: str) -> str:
    """Return a translation in Markdown.

    Args:
        coded: The translation of a text from ``coded_markdown``.
        special: Characters to escape: SPECIAL or PUNCTUATION.
        pipe: The spelling of ``|``.
    """
    parts = coded.parts()
    parts[::2] = (special.sub(r"\\\g<0>", part).replace("|", pipe) for part in parts[::2])
    return REPEATED_REFERENCE.sub(r"[\1]", BEGINS_BLOCK.sub(r"\1\2\\", "".join(_attach_delimiters(parts))))


def _repeat_target(inline: re.Match[str], references: Collection[str]) -> str:
    """Return a match of INLINE_MARKUP. If it is a link whose text is the name of its target, the name is repeated."""
    name = " ".join(inline.group()[1:-1].split())
    is_link = inline.lastgroup == "reference" and name.casefold() in references and is_translatable(name)
    return f"{inline.group()}[{name}]" if is_link and len(name) > 1 else inline.group()


def _element_keys(inline: re.Match[str], references: Collection[str]) -> tuple[str, str] | None:
    """Return which element a match of INLINE_MARKUP starts and which it ends, so that starts and ends can be paired.

    Returns:
        The key of the element that starts and of the one that ends, each empty if none does. None if the match is plain
        text.
    """
    content = inline.group()
    match inline.lastgroup:
        case "escape" if content[1] not in "{}":
            return None
        case "template":
            if content[1] not in "{%" and is_placeholder(content) and not SPECIAL.search(content):
                return None
            return construct_keys(content)
        case "open":
            return "[", ""
        case "note":
            return "[^", ""
        case "note_end":
            return "", "[^"
        case "close":
            return "", "["
        case "reference" if (
            len(content) != 3
            and not re.match(r"\[(?:\#|.*@)", content)
            and " ".join(content[1:-1].casefold().split()) not in references
        ):
            return None
        case "tag":
            name = re.split(r"[\s/>]", content.lstrip("</"))[0].lower()
            return ("", name) if content.startswith("</") else (name, "")
        case "emphasis":
            keys = emphasis_keys(inline, in_words=not content.startswith("_"))
            return keys if any(keys) else None
    return "", ""


def _attach_delimiters(parts: list[str]) -> list[str]:
    """Move delimiters of emphasis to the border of a word, where CommonMark does not read them as text.

    Args:
        parts: Text at even indices, and delimiters and other codes at odd ones.
    """
    unclosed: set[str] = set()
    for index in range(1, len(parts), 2):
        before, delimiter, after = parts[index - 1 : index + 2]
        if not EMPHASIS.fullmatch(delimiter):
            continue
        is_closing = delimiter in unclosed
        unclosed ^= {delimiter}
        if is_closing:
            parts[index - 1], parts[index + 1] = _move_outward(delimiter, before, after)
            following = EMPHASIS.match("".join(parts[index + 2 : index + 3]))
            if not after and following and following[0] not in unclosed:
                parts[index + 1] = " "  # otherwise the delimiters of two neighbors would be read as one
        else:
            inner, outer = _move_outward(delimiter, after[::-1], before[::-1])
            parts[index - 1], parts[index + 1] = outer[::-1], inner[::-1]
    return parts


def _move_outward(delimiter: str, inner: str, outer: str) -> tuple[str, str]:
    """Return the texts inside and outside of a closing delimiter after moving it before blanks, or behind the word that
    it divides.

    For an opening delimiter, the texts are reversed.
    """
    stripped = inner.rstrip(" ")
    inner, outer = stripped, inner[len(stripped) :] + outer
    word = re.match(r"[^\W_]\w*", outer)
    if word and (delimiter[0] == "_" or not inner[-1:].isalnum()):
        return inner + word[0], outer[word.end() :]
    return inner, outer
