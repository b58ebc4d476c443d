"""Parses ICU messages, which have a text for each number or case (plural, select), and checks format directives.

The texts of a message are translated one by one, and everything else is preserved. Similar messages are recognized but
not translated: the choice of Java, and the alternatives of vue-i18n (``car | cars``), Laravel and Symfony.

Format directives, such as ``%s`` and ``%(name)d``, are replaced by values when a program runs. If a translation has
other directives than its source, the program crashes, so ``msgfmt -c`` refuses it.
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
"""Maps keys of SYNTAXES to the programming languages with this syntax, as named by gettext's flags (``c-format``)."""
NUMBERED = {"c", "objc", "php", "perl"}
"""The programming languages that allow numbered directives: ``%2$s`` prints the second value."""
ITEM = regex.compile(rf"%%|{DIRECTIVE}|%\s*\S?")
"""Matches a directive, ``%%``, or another percent sign."""
KEYED = regex.compile(r"%(?:[(\[{]|<(?!PRI)|\d+[$:]|L?(?:\d+%?|n)$)")
"""Matches a directive with a number or a name, which may be moved within the text."""
NOT_NUMBERED = regex.compile(rf"{KEYED.pattern}|%m$|%\s|.*\*|%[^\w@]*$")
"""Matches an item to which no number can be added."""
SPECIAL_CHARACTER = re.compile(r"[%~${}<&]")
"""Matches a character that occurs in placeholders of other programming languages."""
PROGRAM_PLACEHOLDER = regex.compile(
    rf"'[{{}}]'|{KINDS['placeholder in braces']}|{KINDS['name between signs']}|{KINDS['name behind a sign']}"
    rf"|(?!%%?(?![\w(<*@.+\#-])){KINDS['directive']}"
)
"""A placeholder of any program. A lone percent sign is not a placeholder."""


class Argument(NamedTuple):
    """An argument of a message, such as ``{n, plural, one {# dog} other {# dogs}}``."""

    start: int
    end: int
    parts: list[Span]
    """The spans of its texts in the message, without surrounding whitespace."""


def has_alternatives(text: str) -> bool:
    """Return whether a text has a vertical bar outside braces, which separates the alternatives of a message."""
    return not MESSAGE.search(text) and "|" in regex.sub(r"\{(?:[^{}]++|\{(?:[^{}]++|\{[^{}]*+\})*+\})*+\}", "", text)


def message_arguments(text: str) -> list[Argument]:
    """Return the outermost plural, select and selectordinal arguments of an ICU message, in order; [] for other texts.

    An argument inside another one is part of the outer one's text.

    Raises:
        ValueError: The text has such an argument, but it is a choice, cannot be parsed, or is nested too deeply.
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
    """Return the syntax of placeholders that an entry's flags declare: a key of SYNTAXES, or "" for none.

    If the flags declare several, the first one in LANGUAGES is used, so that the order of the flags does not matter.
    """
    languages = _flag_languages(flags)
    return next((syntax for syntax, names in LANGUAGES.items() if names & languages), "")


def has_ordered_directives(text: str) -> bool:
    """Return whether a text has directives without a number or name, which take the values in order."""
    return not all(map(KEYED.match, regex.findall(DIRECTIVE, text)))


def directive_changes(source: str, translation: str, flags: Iterable[str]) -> list[Splice] | None:
    """Return the changes after which a program can use a translation in place of its source.

    Directives in another order than in the source get numbers, if the programming language has them. If a flag names a
    language that LANGUAGES lacks, neither text may have a special character. Apostrophes of Java are doubled, because a
    single one quotes placeholders.

    Args:
        source: The program's text.
        translation: The translation of ``source``. It has the same placeholders in braces.
        flags: The flags of the entry, which name the programming language.

    Returns:
        The changes, or None if the translation has other directives than its source, or an order that cannot be
        expressed.
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
    """Return whether a translation has the same placeholders as its source, in any order.

    For an ICU message, each of its texts is compared with its translation.

    Args:
        syntax: See ``LayoutLine``.
    """
    try:
        (codes, texts), (other_codes, others) = _split_message(source), _split_message(translation)
    except ValueError:
        return False
    if len(texts) > 1 or len(others) > 1:
        pairs = zip(texts, others, strict=False)
        return codes == other_codes and all(has_same_placeholders(*pair, syntax) for pair in pairs)
    patterns = (PROGRAM_PLACEHOLDER, SYNTAXES.get(syntax, PROGRAM_PLACEHOLDER))
    return all(sorted(pattern.findall(source)) == sorted(pattern.findall(translation)) for pattern in patterns)


def _split_message(text: str) -> tuple[list[list[str]], list[str]]:
    """Divide an ICU message into code and texts.

    Returns:
        The code between the texts of each argument, without whitespace; and the texts: first the text around the
        arguments, then those of the arguments.
    """
    arguments = message_arguments(text)
    around = apply_splices(text, [Splice(argument.start, argument.end, "{}") for argument in arguments])
    codes = []
    for start, end, parts in arguments:
        borders = [start, *chain.from_iterable(parts), end]
        codes.append(
            ["".join(text[left:right].split()) for left, right in zip(borders[::2], borders[1::2], strict=True)]
        )
    return codes, [around, *(text[start:end] for argument in arguments for start, end in argument.parts)]
