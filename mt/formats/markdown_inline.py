"""Reads the inline markup of Markdown, such as emphasis and links, as codes, and writes coded texts as Markdown."""

import re
from collections.abc import Collection

from mt.core.coded_text import CodedText, Mark, coded_text
from mt.formats.document import is_translatable
from mt.formats.marks import emphasis_keys
from mt.formats.web_page import TEMPLATE, VALUE, construct_keys, is_placeholder

URL = r"\((?:<[^<>\n]*>|[^\s()<]*(?:\([^\s()]*\)[^\s()]*)*)(?:\s+(?:\"[^\"]*\"|'[^']*'))?\s*\)"
LINE_BREAK = "\ufdd0"
"""Replaces a line break in a tag or expression of JSX."""
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
"""A reference link whose label equals its text, so that the label can be omitted."""
SPECIAL = re.compile(r"\\(?![^\W_]|\s)|[`\[\]<]|(?<!\s)[*~]|[*~](?!\s)|(?<!\w)_|_(?!\w)|&(?=\#?\w+;)")
"""A character of a translation that needs a backslash because it would be parsed as markup."""
PUNCTUATION = re.compile(r"[!-/:-@\[-`{}~]")
"""A character that may be escaped by a backslash, except ``|``, which has a parameter of ``write_markdown``."""
EMPHASIS = re.compile(r"[*_~=]+")
BEGINS_BLOCK = re.compile(
    r"(?m)^([ \t]*)(?=\#{1,6}(?:\s|$)|>|[+*-](?:\s|$)|(?:[-_*=][ \t]*)+$|~~~|\|)|^([ \t]*\d{1,9})(?=[.)](?:\s|$))"
)
"""The start of a line that would begin a new block, such as a list item. A backslash after the match prevents that."""


def coded_markdown(plain: str, references: Collection[str]) -> CodedText:
    """Return a Markdown text with its inline markup as codes.

    Args:
        plain: The text of a block.
        references: The names of the link targets that the document defines, case-folded.
    """
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
        text += content[1:] if match.lastgroup == "escape" and not keys else content
        done = match.end()
    return coded_text(text + plain[done:], marks)


def write_markdown(coded: CodedText, special: re.Pattern[str], pipe: str) -> str:
    """Write a translated text as Markdown.

    Args:
        coded: The translation of a text from ``coded_markdown``.
        special: The characters to escape: SPECIAL or PUNCTUATION.
        pipe: The notation of ``|``, which depends on whether the text is in or before a table.
    """
    parts = coded.parts()
    parts[::2] = (special.sub(r"\\\g<0>", part).replace("|", pipe) for part in parts[::2])
    return REPEATED_REFERENCE.sub(r"[\1]", BEGINS_BLOCK.sub(r"\1\2\\", "".join(_attach_delimiters(parts))))


def _repeat_target(inline: re.Match[str], references: Collection[str]) -> str:
    """Return a match of INLINE_MARKUP, with the label added to a reference link without one: ``[name][name]``."""
    name = " ".join(inline.group()[1:-1].split())
    is_link = inline.lastgroup == "reference" and name.casefold() in references and is_translatable(name)
    return f"{inline.group()}[{name}]" if is_link and len(name) > 1 else inline.group()


def _element_keys(inline: re.Match[str], references: Collection[str]) -> tuple[str, str] | None:
    """Return the keys by which the starts and ends of elements are paired, for a match of INLINE_MARKUP.

    Returns:
        The key of the element that the match starts, and the key of the element that it ends. Each is "" if there is no
        such element. None if the match is plain text.
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
    """Move the delimiters of emphasis next to words, because CommonMark reads a delimiter between spaces as text.

    Args:
        parts: Text at even indices, and codes, such as delimiters, at odd ones. Changed in place and returned.
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
                parts[index + 1] = " "  # otherwise two adjacent delimiters would be parsed as one
        else:
            inner, outer = _move_outward(delimiter, after[::-1], before[::-1])
            parts[index - 1], parts[index + 1] = outer[::-1], inner[::-1]
    return parts


def _move_outward(delimiter: str, inner: str, outer: str) -> tuple[str, str]:
    """Move a closing delimiter before the spaces that precede it, or to the end of a word that it divides.

    For an opening delimiter, pass the texts reversed.

    Args:
        delimiter: The delimiter.
        inner: The text before it, inside the emphasis.
        outer: The text after it.

    Returns:
        The new texts before and after the delimiter.
    """
    stripped = inner.rstrip(" ")
    inner, outer = stripped, inner[len(stripped) :] + outer
    word = re.match(r"[^\W_]\w*", outer)
    if word and (delimiter[0] == "_" or not inner[-1:].isalnum()):
        return inner + word[0], outer[word.end() :]
    return inner, outer
