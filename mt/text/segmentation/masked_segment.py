"""A segment whose values are masked by placeholders, and its edges, which need no translation."""

from dataclasses import dataclass, replace

import regex

from mt.config.text import FINAL_MARKS
from mt.text.markup.brackets import bracket_pairs
from mt.text.normalization.casing import Case
from mt.text.placeholders.placeholders import PLACEHOLDER, fill_placeholders
from mt.text.placeholders.terms import Term
from mt.text.placeholders.values import IN_WORD, LETTER
from mt.text.segmentation.sentences import sentences

_PLACEHOLDERS_OR_BLANKS = rf"[\s{PLACEHOLDER.pattern[1:-1]}]*"
SENTENCE_END_BEFORE_PLACEHOLDERS = regex.compile(
    rf"(?r)[{FINAL_MARKS}]\p{{P}}*{_PLACEHOLDERS_OR_BLANKS}$"
)  # (?r): from the end
PLACEHOLDERS_ALONE = regex.compile(_PLACEHOLDERS_OR_BLANKS)
MAX_CONTEXT_CHARACTERS = 200
"""How many characters before a full stop are read to tell the end of a sentence from an abbreviation."""


@dataclass(frozen=True)
class MaskedSegment:
    """A sentence, or a segment of a long sentence, with ``placeholder(0)`` in place of every value and
    ``placeholder(-1)`` in place of every term.

    The text layer makes it, and then prepares a ``Segment`` from it.
    """

    text: str
    """The masked text, as it was written."""
    small: str
    """``text`` in small letters if the sentence is in capitals or title case; otherwise ``text``. Equally long."""
    values: list[str]
    """The masked values, in order."""
    case: Case | None
    """The case of the whole sentence."""
    begins: bool
    """Whether this is the first segment of its sentence."""
    ends: bool
    """Whether this is the last segment of its sentence."""

    @property
    def has_words(self) -> bool:
        """Whether the masked text has a letter or a term, so that there is something to translate."""
        return LETTER.search(self.text) is not None or any(isinstance(value, Term) for value in self.values)

    def without_edges(self, language: str) -> tuple[str, "MaskedSegment", str]:
        """Split off the edges: white space, symbols and emoji at both ends, and all values after the final punctuation,
        but no terms.

        Of a pair of brackets, either both are split off or none.

        Returns:
            The edge in front with its values filled in, the segment without edges, and the edge behind, filled in.
        """
        text, start, end = self.text, 0, len(self.text)
        positions = [match.start() for match in PLACEHOLDER.finditer(text)]
        first, last = 0, len(self.values)
        while start < end:
            if PLACEHOLDER.match(text, start) and not IN_WORD.search(self.values[first]):
                first += 1
            elif not text[start].isspace():
                break
            start += 1
        while end > start:
            if (
                PLACEHOLDER.match(text, end - 1)
                and not isinstance(self.values[last - 1], Term)
                and (not IN_WORD.search(self.values[last - 1]) or _ends_after_sentence(text[:end], language))
            ):
                last -= 1
            elif not text[end - 1].isspace():
                break
            end -= 1
        for opening, closing in bracket_pairs(self.values).items():
            if opening < first <= closing < last:
                start, first = positions[opening], opening
            elif first <= opening < last <= closing:
                end, last = positions[closing] + 1, closing + 1
        core = replace(self, text=text[start:end], small=self.small[start:end], values=self.values[first:last])
        return (
            fill_placeholders(text[:start], self.values[:first]),
            core,
            fill_placeholders(text[end:], self.values[last:]),
        )


def _ends_after_sentence(text: str, language: str) -> bool:
    """Return whether the last placeholder of a text comes after a finished sentence. In ``No. 5`` the full stop only
    abbreviates."""
    if not SENTENCE_END_BEFORE_PLACEHOLDERS.search(text[:-1]):
        return False
    return PLACEHOLDERS_ALONE.fullmatch(sentences(text[-MAX_CONTEXT_CHARACTERS:], language)[-1]) is not None
