"""Messages with several texts, one for each number or case: plural and select of ICU.

The texts are translated one by one, and everything else comes back unchanged. Other such messages are recognized, and
not translated: the choice of Java, and the alternatives of vue-i18n (``car | cars``), Laravel and Symfony.

A message may have format directives, such as ``%s`` and ``%(name)d``, which a program replaces by values. A program
that gets other directives than those of its own text crashes, so ``msgfmt -c`` refuses them.
"""

import re
from collections.abc import Iterable
from itertools import chain
from typing import NamedTuple

import regex
from pyicumessageformat import Parser

from mt.core.coded_text import Span, Splice, apply_splices
from mt.formats.kinds import DIRECTIVE, KINDS, SYNTAXES

MESSAGE = regex.compile(r"\{\s*[\w.]{1,60}\s*,\s*(?:plural|selectordinal|select|(?P<choice>choice))\s*,")
"""The start of an argument with several texts."""
MAX_BRACE_DEPTH = 20
LANGUAGES = {
    "printf": {
        "awk", "c", "d", "elisp", "gcc-internal", "gfc-internal", "go", "java-printf", "javascript", "kde", "librep",
        "lua", "modula2", "object-pascal", "objc", "ocaml", "perl", "php", "python", "qt", "qt-plural", "ruby",
        "sh-printf", "tcl",
    },
    "braces": {"c++", "csharp", "java", "perl-brace", "python-brace", "rust"},
}  # fmt: skip
"""Maps keys of SYNTAXES to the names that gettext's flags have for their languages: ``c`` in ``c-format``."""
NUMBERED = {"c", "objc", "php", "perl"}
"""The languages that allow numbered directives: ``%2$s`` prints the second value."""
ITEM = regex.compile(rf"%%|{DIRECTIVE}|%\s*\S?")
"""Matches a directive, two percent signs, or a percent sign that is part of neither."""
KEYED = regex.compile(r"%(?:[(\[{]|<(?!PRI)|\d+[$:]|L?(?:\d+%?|n)$)")
"""Matches a directive with a number or a name, whose position in the text does not matter."""
NOT_NUMBERED = regex.compile(rf"{KEYED.pattern}|%m$|%\s|.*\*|%[^\w@]*$")
"""Matches an item that cannot get a number."""
SPECIAL_CHARACTER = re.compile(r"[%~${}<&]")
"""Matches a character that placeholders of other languages may have."""
PROGRAM_PLACEHOLDER = regex.compile(
    rf"'[{{}}]'|{KINDS['placeholder in braces']}|{KINDS['name between signs']}|{KINDS['name behind a sign']}"
    rf"|(?!%%?(?![\w(<*@.+\#-])){KINDS['directive']}"
)
"""A placeholder of some program. A lone percent sign is none."""


class Argument(NamedTuple):
    """An argument of a message, such as ``{n, plural, one {# dog} other {# dogs}}``."""

    start: int
    end: int
    parts: list[Span]
    """The spans of its texts in the message, without whitespace at their ends."""


def has_alternatives(text: str) -> bool:
    """Return whether a text has a vertical bar outside of braces, which separates the alternatives of a message."""
    return not MESSAGE.search(text) and "|" in regex.sub(r"\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}", "", text)


def message_arguments(text: str) -> list[Argument]:
    """Return the arguments of a message that have several texts, in order; none if a line is no such message.

    An argument inside another one is part of its text.

    Raises:
        ValueError: The line has such an argument, but it is a choice or cannot be parsed, or braces are nested too
            deeply.
    """
    if not MESSAGE.search(text):
        return []
    if any(match["choice"] for match in MESSAGE.finditer(text)):
        raise ValueError("Java's choice is not translated")
    arguments: list[Argument] = []
    tokens: list[dict[str, str]] = []
    try:
        Parser({"require_other": False}).parse(text, tokens)  # Angular writes messages without it
    except SyntaxError as error:
        raise ValueError(str(error)) from None
    position, openings, parts = 0, list[int](), list[Span]()
    for token in tokens:
        if token["type"] == "syntax" and token["text"] == "{":
            openings.append(position)
            if len(openings) > MAX_BRACE_DEPTH:
                raise ValueError(f"braces are nested more than {MAX_BRACE_DEPTH} deep")
        elif token["type"] == "syntax" and token["text"] == "}":
            start = openings.pop()
            if len(openings) == 1:  # a text of the outermost argument
                content = text[start + 1 : position].strip()
                first = text.index(content, start + 1)
                parts.append((first, first + len(content)))
            elif not openings and parts:
                arguments.append(Argument(start, position + 1, [part for part in parts if part[0] < part[1]]))
                parts = []
        position += len(token["text"])
    if position != len(text):
        raise ValueError("the tokens are not the message")
    return arguments


def placeholder_syntax(flags: Iterable[str]) -> str:
    """Return the syntax of the flags of an entry, a key of SYNTAXES, whatever their order; "" if there is none."""
    languages = _flag_languages(flags)
    return next((syntax for syntax, names in LANGUAGES.items() if names & languages), "")


def has_ordered_directives(text: str) -> bool:
    """Return whether a text has directives that take values in their order, because they have no number or name."""
    return not all(map(KEYED.match, regex.findall(DIRECTIVE, text)))


def directive_changes(source: str, translation: str, flags: Iterable[str]) -> list[Splice] | None:
    """Return the changes of a translation that let a program use it in place of its source, or None if the directives
    do not allow it.

    Directives in another order than in the source get numbers, if the programming language has them. If a flag names a
    language that LANGUAGES lacks, neither text may have a special character. Apostrophes of Java are doubled, because a
    single one quotes placeholders.

    Args:
        source: The program's text.
        translation: The translation of ``source``. It has the same placeholders in braces.
        flags: The flags of the entry, which name the programming language.
    """
    languages = _flag_languages(flags)
    if not languages:
        return []
    changes: list[Splice] = []
    if "java" in languages and "{" in source:
        if "'" not in source.replace("''", ""):
            changes = [Splice(*match.span(), "''") for match in re.finditer("''?", translation)]
        elif re.search("'[{}]|[{}]'", source) and source.count("'") != translation.count("'"):
            return None
    if languages.difference(*LANGUAGES.values()) and SPECIAL_CHARACTER.search(source + translation):
        return None
    languages &= LANGUAGES["printf"]
    expected, actual = ([item for item in ITEM.findall(text) if item != "%%"] for text in (source, translation))
    if not languages or expected == actual:
        return changes
    if sorted(expected) != sorted(actual):
        return None
    if all(map(KEYED.match, expected)):
        return changes
    if not languages <= NUMBERED or any(map(NOT_NUMBERED.match, expected)):
        return None
    numbers = {item: [number for number, other in enumerate(expected, 1) if other == item] for item in expected}
    items = (match for match in ITEM.finditer(translation) if match.group() != "%%")
    numbered = [Splice(match.start() + 1, match.start() + 1, f"{numbers[match[0]].pop(0)}$") for match in items]
    return sorted(changes + numbered)


def _flag_languages(flags: Iterable[str]) -> set[str]:
    return {flag.removesuffix("-format") for flag in flags if flag.endswith("-format") and not flag.startswith("no-")}


def has_same_placeholders(source: str, translation: str, syntax: str = "") -> bool:
    """Return whether a program can use a translation: it has the placeholders of its source, in any order.

    Of a message with several texts, each is compared with its translation.

    Args:
        syntax: See ``LayoutLine``.
    """
    try:
        (frame, texts), (other_frame, others) = _split_message(source), _split_message(translation)
    except ValueError:
        return False
    if len(texts) > 1 or len(others) > 1:
        pairs = zip(texts, others, strict=False)
        return frame == other_frame and all(has_same_placeholders(*pair, syntax) for pair in pairs)
    patterns = (PROGRAM_PLACEHOLDER, SYNTAXES.get(syntax, PROGRAM_PLACEHOLDER))
    return all(sorted(pattern.findall(source)) == sorted(pattern.findall(translation)) for pattern in patterns)


def _split_message(text: str) -> tuple[list[list[str]], list[str]]:
    """Divide a message. Return the frame of each argument, which is its code between the texts, and the texts: first
    the one around the arguments."""
    arguments = message_arguments(text)
    around = apply_splices(text, [Splice(own.start, own.end, "{}") for own in arguments])
    borders = [[own.start, *chain.from_iterable(own.parts), own.end] for own in arguments]
    frame = [
        ["".join(text[start:end].split()) for start, end in zip(own[::2], own[1::2], strict=True)] for own in borders
    ]
    return frame, [around, *(text[start:end] for own in arguments for start, end in own.parts)]
