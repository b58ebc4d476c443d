"""Format directives, such as ``%s`` and ``%(name)d``, in place of which a program puts values.

A program that gets other directives than those of its own text crashes, so ``msgfmt -c`` refuses them.
"""

import re
from collections.abc import Iterable

DIRECTIVE = re.compile(
    r"%(?P<order>\(\w+\)|\d+\$)?[-+ #0'I]*+(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:(?:hh?|ll?|[Lqjzt])?[A-Za-z@%]|<PRI\w+>)"
)
"""As gettext reads them. One that ends with a percent sign stands for this sign."""
NUMBERED = {"c-format", "objc-format", "php-format", "perl-format"}
"""The flags of entries in which ``%2$s`` is the second value, whatever its place."""
CHECKED = NUMBERED | {"python-format"}


def with_directives_of(source: str, translation: str, flags: Iterable[str]) -> str | None:
    """Returns a translation that a program can take in place of its own text, or None if that is impossible.

    Args:
        source: The program's text.
        translation: Its translation. Directives in another order are numbered, where the programming language allows
            it.
        flags: The flags of the entry, which name the programming language.
    """
    language = CHECKED.intersection(flags)
    if not language or _is_faulty(source):
        return translation
    wanted, found = ([each for each in DIRECTIVE.finditer(text) if each.group()[-1] != "%"]
                     for text in (source, translation))  # fmt: skip
    order, new_order = ([each.group() for each in several] for several in (wanted, found))
    if _is_faulty(translation) or sorted(order) != sorted(new_order):
        return None
    if order == new_order or all(each["order"] for each in wanted):
        return translation
    if language - NUMBERED or any(each["order"] or "*" in each.group() for each in wanted):
        return None
    numbers = {directive: [at for at, one in enumerate(order, 1) if one == directive] for directive in order}

    def numbered(each: re.Match[str]) -> str:
        directive = each.group()
        return directive if directive[-1] == "%" else f"%{numbers[directive].pop(0)}${directive[1:]}"

    return DIRECTIVE.sub(numbered, translation)


def _is_faulty(text: str) -> bool:
    """Returns whether a percent sign is neither a directive nor doubled."""
    return "%" in DIRECTIVE.sub("", text)
