"""Check format directives, such as ``%s`` and ``%(name)d``, which a program replaces by values.

A program that gets other directives than those of its own text crashes, so ``msgfmt -c`` refuses them.
"""

import re
from collections import Counter
from collections.abc import Iterable

from mt.core.errors import InputError
from mt.data.parsers.xml_elements import read_elements
from mt.text.placeholders.syntaxes import ORDERED, SYNTAXES

DIRECTIVE = re.compile(
    r"%%|%(?P<order>\([^()]+\)|\d+\$)?(?:'\D(?=\d))?[-+ #0'I]*+(?:\d+|\*)?(?:\.(?:\d+|\*)?)?"
    r"(?:(?:hh?|ll?|[Lqjztv])?[A-Za-z@]|<PRI\w+>)"
)
"""Matches the format directives that gettext knows, and two percent signs, which print one."""
NUMBERED_FORMATS = {"c-format", "objc-format", "php-format", "perl-format"}
"""The flags of the programming languages that allow numbered directives: ``%2$s`` prints the second value."""
KEYED = re.compile(r"%(?:[(<{\[%]|\d+[$:])")
"""Matches the start of a directive with a number or a name, or of one that prints a percent sign."""
SIGN = re.compile(r"[%{}~$][<>']?")
CHECKED = NUMBERED_FORMATS | {"python-format"}
"""The flags of the entries whose directives are checked, and numbered if they can be."""


def syntax_of(flags: Iterable[str]) -> str:
    """Return the syntax that the flags of an entry name, a key of SYNTAXES, whatever their order; "" if there is
    none."""
    return next((name for name in SYNTAXES if f"{name}-format" in flags), "")


def match_directives(source: str, translation: str, flags: Iterable[str]) -> str | None:
    """Return a translation that a program can use in place of its source, or None if the directives do not allow it.

    A translation with the directives of the source in another order gets numbered directives, if the programming
    language has them. In the other syntaxes (SYNTAXES), the placeholders must be those of the source. Apostrophes
    of Java are doubled, because a single one quotes placeholders.

    Args:
        source: The program's text.
        translation: The translation of ``source``.
        flags: The flags of the entry, which name the programming language.
    """
    if "java-format" in flags and "{" in source:
        if "'" not in source.replace("''", ""):
            translation = re.sub("''?", "''", translation)
        elif re.search("'[{}]|[{}]'", source) and source.count("'") != translation.count("'"):
            return None
    languages = CHECKED.intersection(flags)
    if not languages:
        is_allowed = _placeholders(source, flags) == _placeholders(translation, flags)
        return translation if is_allowed and ("kde-kuit-format" not in flags or _is_xml(source, translation)) else None
    if _is_faulty(source):  # gettext takes it for text without directives
        return translation if _chunks(source) == _chunks(translation) else None
    matches = _directives(source)
    expected, actual = (
        [match.group() for match in found_matches] for found_matches in (matches, _directives(translation))
    )
    if _is_faulty(translation) or sorted(expected) != sorted(actual):
        return None
    if expected == actual or all(match["order"] for match in matches):
        return translation
    if languages - NUMBERED_FORMATS or any(
        match["order"] or "*" in match.group() or match.group() == "%m" for match in matches
    ):
        return None
    numbers = {name: [number for number, other in enumerate(expected, 1) if other == name] for name in expected}

    def numbered(match: re.Match[str]) -> str:
        directive = match.group()
        return directive if directive[-1] == "%" else f"%{numbers[directive].pop(0)}${directive[1:]}"

    return DIRECTIVE.sub(numbered, translation)


def _placeholders(text: str, flags: Iterable[str]) -> list[str]:
    """Return the placeholders of a text in the syntax of its flags, and the signs of placeholders that are none.

    They are sorted if their order does not matter, because each has a number or a name.
    """
    syntax = syntax_of(flags)
    if not syntax:
        return []
    matches = SYNTAXES[syntax].findall(text)
    is_ordered = syntax in ORDERED and not all(KEYED.match(match) for match in matches)
    signs = SIGN.findall(SYNTAXES[syntax].sub("", text))
    return [match for match in matches if is_ordered and match != "%%"] + sorted(matches) + sorted(signs)


def _chunks(text: str) -> Counter[str]:
    return Counter(re.findall(r"%\S*", text))


def _is_xml(source: str, translation: str) -> bool:
    """Return whether a translation is well-formed as XML, or its source is not either."""
    for text in (translation, source):
        try:
            read_elements(f"<a>{text}</a>")
        except InputError:
            continue
        return text is translation
    return True


def _is_faulty(text: str) -> bool:
    """Return whether a text has a percent sign that is neither doubled nor part of a directive."""
    return "%" in DIRECTIVE.sub("", text)


def _directives(text: str) -> list[re.Match[str]]:
    """Return the directives of a text, except those that print a percent sign."""
    return [match for match in DIRECTIVE.finditer(text) if match.group()[-1] != "%"]
