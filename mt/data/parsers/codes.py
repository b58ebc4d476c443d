"""Replace codes inside of a text, such as the formatting of XLIFF and Markdown, by tags while it is translated.

What stands between a code and its counterpart is an element then, and moves with its words, as in HTML
(``mt.text.markup.extraction``).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple


class Code(NamedTuple):
    """A code, from ``start`` to ``end`` of its text."""

    start: int
    end: int
    opens: str = ""
    """The ``closes`` of the code that ends this one; "" if it opens nothing."""
    closes: str = ""


@dataclass(frozen=True)
class TaggedText:
    """A text with tags in place of its codes."""

    text: str
    codes: dict[str, str]
    """The code of each tag."""
    tag: re.Pattern[str]

    def parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """Yield the parts of a translation, each with whether it is a code, which is restored."""
        for number, part in enumerate(self.tag.split(text)):
            yield (self.codes[part], True) if number % 2 else (part, False)

    def restore(self, text: str) -> str:
        """Return a translation with the codes in place of their tags."""
        return "".join(part for part, _ in self.parts(text))


def replace_codes(text: str, codes: Sequence[Code]) -> TaggedText:
    """Put tags in place of the codes of a text, which are sorted and do not overlap."""
    names = (f"c{number or ''}-" for number in count())
    name = next(name for name in names if f"<{name}" not in text and f"</{name}" not in text)
    unclosed: dict[str, list[int]] = {}
    openings: dict[int, int] = {}
    for number, code in enumerate(codes):
        if unclosed.get(code.closes):
            openings[number] = unclosed[code.closes].pop()
        elif code.opens:
            unclosed.setdefault(code.opens, []).append(number)
    parts, code_of_tag, done = [], {}, 0
    for number, code in enumerate(codes):
        if number in openings:
            tag = f"</{name}{openings[number]}>"
        else:
            tag = f"<{name}{number}{'' if number in openings.values() else '/'}>"
        parts += [text[done : code.start], tag]
        code_of_tag[tag] = text[code.start : code.end]
        done = code.end
    return TaggedText("".join(parts) + text[done:], code_of_tag, re.compile(rf"(</?{name}\d+/?>)"))
