"""Check format directives, such as ``%s`` and ``%(name)d``, which a program replaces by values.

A program that gets other directives than those of its own text crashes, so ``msgfmt -c`` refuses them.
"""

import re
from collections.abc import Iterable

DIRECTIVE = re.compile(
    r"%(?P<order>\(\w+\)|\d+\$)?[-+ #0'I]*+(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:(?:hh?|ll?|[Lqjzt])?[A-Za-z@%]|<PRI\w+>)"
)
"""Matches the format directives that gettext knows. One that ends with a percent sign prints this sign."""
NUMBERED = {"c-format", "objc-format", "php-format", "perl-format"}
"""The flags of the programming languages that allow numbered directives: ``%2$s`` prints the second value."""
CHECKED = NUMBERED | {"python-format"}
"""The flags of the entries whose directives are checked."""


def match_directives(source: str, translation: str, flags: Iterable[str]) -> str | None:
    """Return a translation that a program can use in place of its source, or None if the directives do not allow it.

    A translation with the directives of the source in another order gets numbered directives, if the programming
    language has them. Entries without a flag of CHECKED are not checked.

    Args:
        source: The program's text.
        translation: The translation of ``source``.
        flags: The flags of the entry, which name the programming language.
    """
    languages = CHECKED.intersection(flags)
    if not languages or _is_faulty(source):
        return translation
    matches = _directives(source)
    expected, actual = ([match.group() for match in each] for each in (matches, _directives(translation)))
    if _is_faulty(translation) or sorted(expected) != sorted(actual):
        return None
    if expected == actual or all(match["order"] for match in matches):
        return translation
    if languages - NUMBERED or any(match["order"] or "*" in match.group() for match in matches):
        return None
    numbers = {name: [number for number, other in enumerate(expected, 1) if other == name] for name in expected}

    def numbered(match: re.Match[str]) -> str:
        directive = match.group()
        return directive if directive[-1] == "%" else f"%{numbers[directive].pop(0)}${directive[1:]}"

    return DIRECTIVE.sub(numbered, translation)


def _is_faulty(text: str) -> bool:
    """Return whether a text has a percent sign that is neither doubled nor part of a directive."""
    return "%" in DIRECTIVE.sub("", text)


def _directives(text: str) -> list[re.Match[str]]:
    """Return the directives of a text, except those that print a percent sign."""
    return [match for match in DIRECTIVE.finditer(text) if match.group()[-1] != "%"]
