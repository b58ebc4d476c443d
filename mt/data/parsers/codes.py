"""Codes inside of a text, such as the formatting of XLIFF and Markdown, are taken for tags while it is translated.

What is between a code and its counterpart is an element then, and goes where its words go, as in HTML
(``mt.text.markup``).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple


class Code(NamedTuple):
    """A code, from ``start`` up to ``end`` of its text."""

    start: int
    end: int
    opens: str = ""
    """A key that the code which ends what this one begins has as its ``closes``; "" if it begins nothing."""
    closes: str = ""


@dataclass(frozen=True)
class Coded:
    """A text with tags in place of its codes."""

    text: str
    codes: dict[str, str]
    """What each tag stands for."""
    tag: re.Pattern[str]

    def parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yields the parts of a text with tags: what is between them; and the codes that they stand for, with True."""
        for place, part in enumerate(self.tag.split(text)):
            yield (self.codes[part], True) if place % 2 else (part, False)

    def restored(self, text: str) -> str:
        """Returns a text with the codes in place of their tags."""
        return "".join(part for part, _ in self.parts(text))


def coded(text: str, codes: Sequence[Code]) -> Coded:
    """Puts tags in place of the codes of a text, which are in their order and do not overlap."""
    names = (f"c{number or ''}-" for number in count())
    name = next(name for name in names if f"<{name}" not in text and f"</{name}" not in text)
    waiting: dict[str, list[int]] = {}
    opening: dict[int, int] = {}
    for number, code in enumerate(codes):
        if waiting.get(code.closes):
            opening[number] = waiting[code.closes].pop()
        elif code.opens:
            waiting.setdefault(code.opens, []).append(number)
    opened = set(opening.values())
    parts, meant, done = [], {}, 0
    for number, code in enumerate(codes):
        closes = number in opening
        tag = f"</{name}{opening[number]}>" if closes else f"<{name}{number}{'' if number in opened else '/'}>"
        parts += [text[done : code.start], tag]
        meant[tag] = text[code.start : code.end]
        done = code.end
    return Coded("".join(parts) + text[done:], meant, re.compile(rf"(</?{name}\d+/?>)"))
