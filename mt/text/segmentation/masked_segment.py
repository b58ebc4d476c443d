"""A segment of a sentence with placeholders, and its edges, which need no translation."""

from dataclasses import dataclass, replace

import regex

from mt.config.text import FINAL_MARKS
from mt.text.normalization.casing import Case
from mt.text.placeholders.placeholders import PLACEHOLDER, fill_placeholders
from mt.text.placeholders.values import IN_WORD
from mt.text.segmentation.sentences import sentences

_PLACEHOLDERS_OR_BLANKS = rf"[\s{PLACEHOLDER.pattern[1:-1]}]*"
SENTENCE_END_BEFORE_PLACEHOLDERS = regex.compile(
    rf"(?r)[{FINAL_MARKS}]\p{{P}}*{_PLACEHOLDERS_OR_BLANKS}$"
)  # (?r): from the end
PLACEHOLDERS_ALONE = regex.compile(_PLACEHOLDERS_OR_BLANKS)
MAX_CONTEXT_CHARACTERS = 200
"""Length of the text that tells whether a sentence ends, or only an abbreviation."""
LETTER = regex.compile(r"\p{L}")


@dataclass(frozen=True)
class MaskedSegment:
    """A sentence, or a segment of one that is too long. All its placeholders have number 0."""

    text: str
    small: str
    """The text in small letters if its sentence is in capitals or title case; otherwise the text."""
    values: list[str]
    """The values of the placeholders."""
    case: Case | None
    """The case of the whole sentence."""
    begins: bool
    """Whether the sentence begins with it."""
    ends: bool
    """Whether the sentence ends with it."""

    @property
    def has_words(self) -> bool:
        """Whether there is more than values, numbers and punctuation."""
        return LETTER.search(self.text) is not None

    def without_edges(self, language: str) -> tuple[str, "MaskedSegment", str]:
        """Return the line's text before a sentence, the sentence, and the line's text after it.

        The text before and after consists of white space and of values that are no part of the sentence: symbols,
        emoji, and any value after the end of the sentence.
        """
        text, start, end = self.text, 0, len(self.text)
        first, last = 0, len(self.values)
        while start < end:
            if PLACEHOLDER.match(text, start) and not IN_WORD.search(self.values[first]):
                first += 1
            elif not text[start].isspace():
                break
            start += 1
        while end > start:
            if PLACEHOLDER.match(text, end - 1) and (
                not IN_WORD.search(self.values[last - 1]) or _ends_after_sentence(text[:end], language)
            ):
                last -= 1
            elif not text[end - 1].isspace():
                break
            end -= 1
        core = replace(self, text=text[start:end], small=self.small[start:end], values=self.values[first:last])
        return (
            fill_placeholders(text[:start], self.values[:first]),
            core,
            fill_placeholders(text[end:], self.values[last:]),
        )


def _ends_after_sentence(text: str, language: str) -> bool:
    """Return whether the placeholder at the end of a text stands after the end of a sentence, and not of an
    abbreviation, as in No. 5."""
    if not SENTENCE_END_BEFORE_PLACEHOLDERS.search(text[:-1]):
        return False
    return PLACEHOLDERS_ALONE.fullmatch(sentences(text[-MAX_CONTEXT_CHARACTERS:], language)[-1]) is not None
