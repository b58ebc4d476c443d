"""Check format directives, such as ``%s`` and ``%(name)d``, which a program replaces by values.

A program that gets other directives than those of its own text crashes, so ``msgfmt -c`` refuses them.
"""

import re
from collections.abc import Iterable

from mt.text.placeholders.syntaxes import ORDERED, SYNTAXES

DIRECTIVE = re.compile(
    r"%(?P<order>\(\w+\)|\d+\$)?[-+ #0'I]*+(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:(?:hh?|ll?|[Lqjzt])?[A-Za-z@%]|<PRI\w+>)"
)
"""Matches the format directives that gettext knows. One that ends with a percent sign prints this sign."""
NUMBERED_FORMATS = {"c-format", "objc-format", "php-format", "perl-format"}
"""The flags of the programming languages that allow numbered directives: ``%2$s`` prints the second value."""
CHECKED = NUMBERED_FORMATS | {"python-format"}
"""The flags of the entries whose directives are checked, and numbered if they can be."""


def syntax_of(flags: Iterable[str]) -> str:
    """Return the syntax that the flags of an entry name, a key of SYNTAXES; "" if there is none."""
    return next((name for flag in flags if (name := flag.removesuffix("-format")) != flag and name in SYNTAXES), "")


def match_directives(source: str, translation: str, flags: Iterable[str]) -> str | None:
    """Return a translation that a program can use in place of its source, or None if the directives do not allow it.

    A translation with the directives of the source in another order gets numbered directives, if the programming
    language has them. In the other syntaxes (SYNTAXES), the placeholders must be those of the source.

    Args:
        source: The program's text.
        translation: The translation of ``source``.
        flags: The flags of the entry, which name the programming language.
    """
    languages = CHECKED.intersection(flags)
    if not languages:
        return translation if _placeholders(source, flags) == _placeholders(translation, flags) else None
    if _is_faulty(source):
        return translation
    matches = _directives(source)
    expected, actual = (
        [match.group() for match in found_matches] for found_matches in (matches, _directives(translation))
    )
    if _is_faulty(translation) or sorted(expected) != sorted(actual):
        return None
    if expected == actual or all(match["order"] for match in matches):
        return translation
    if languages - NUMBERED_FORMATS or any(match["order"] or "*" in match.group() for match in matches):
        return None
    numbers = {name: [number for number, other in enumerate(expected, 1) if other == name] for name in expected}

    def numbered(match: re.Match[str]) -> str:
        directive = match.group()
        return directive if directive[-1] == "%" else f"%{numbers[directive].pop(0)}${directive[1:]}"

    return DIRECTIVE.sub(numbered, translation)


def _placeholders(text: str, flags: Iterable[str]) -> list[str]:
    """Return the placeholders of a text in the syntax of its flags, sorted if their order does not matter."""
    syntax = syntax_of(flags)
    matches = SYNTAXES[syntax].findall(text) if syntax else []
    in_order = [match for match in matches if syntax in ORDERED and not re.match(r"%(?:\(|<|\{|\d+\$|%)", match)]
    return in_order + sorted(matches)


def _is_faulty(text: str) -> bool:
    """Return whether a text has a percent sign that is neither doubled nor part of a directive."""
    return "%" in DIRECTIVE.sub("", text)


def _directives(text: str) -> list[re.Match[str]]:
    """Return the directives of a text, except those that print a percent sign."""
    return [match for match in DIRECTIVE.finditer(text) if match.group()[-1] != "%"]
