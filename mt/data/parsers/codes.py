"""Replace the formatting codes in a text, such as those of XLIFF and Markdown, by tags while the text is translated.

The text between an opening code and its closing code becomes an element, as in HTML. ``mt.text.markup.extraction``
moves the tags of an element with its words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from mt.core.splices import Splice, apply_splices
from mt.text.markup.marks import Mark, nested_pairs
from mt.text.markup.tags import SEPARATING_PREFIX


@dataclass(frozen=True)
class TaggedText:
    """A text whose formatting codes are replaced by tags, and the codes to restore."""

    text: str
    codes: dict[str, str]
    """Maps each tag to its code."""
    tag: re.Pattern[str]
    """Matches the tags."""

    def parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """Split a translation at its tags.

        Yields (plain text, False) and (code, True) in turn: each tag is replaced by its code.
        """
        for number, part in enumerate(self.tag.split(text)):
            yield (self.codes[part], True) if number % 2 else (part, False)

    def restore(self, text: str) -> str:
        """Return a translation with the codes in place of their tags."""
        return "".join(part for part, _ in self.parts(text))


def replace_codes(text: str, codes: Sequence[Mark]) -> TaggedText:
    """Replace the codes of a text by tags. The codes must be sorted by position and must not overlap."""
    names = (f"c{number or ''}-" for number in count())
    name = next(name for name in names if f"<{name}" not in text and f"</{name}" not in text)
    openings = {closing: opening for opening, closing in nested_pairs(codes).items()}
    opened = set(openings.values())
    splices, code_of_tag = [], {}
    for number, code in enumerate(codes):
        opening = codes[openings.get(number, number)]
        tag = f"{SEPARATING_PREFIX * opening.separates}{name}{openings.get(number, number)}"
        tag = f"</{tag}>" if number in openings else f"<{tag}{'' if number in opened else '/'}>"
        splices.append(Splice(code.start, code.end, tag))
        code_of_tag[tag] = text[code.start : code.end]
    return TaggedText(
        apply_splices(text, splices), code_of_tag, re.compile(rf"(</?(?:{SEPARATING_PREFIX})?{name}\d+/?>)")
    )
