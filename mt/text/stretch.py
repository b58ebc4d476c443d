"""A stretch of a sentence with slots, and its edges, which need no translation."""

from dataclasses import dataclass, replace

import regex

from mt.config.text import FINAL_MARKS
from mt.text.case import Case
from mt.text.non_translatables import IN_WORD
from mt.text.sentences import sentences
from mt.text.slots import SLOT, fill_slots

_SLOTS_OR_BLANKS = rf"[\s{SLOT.pattern[1:-1]}]*"
SENTENCE_END_BEFORE_SLOTS = regex.compile(rf"(?r)[{FINAL_MARKS}]\p{{P}}*{_SLOTS_OR_BLANKS}$")  # (?r): from the end
SLOTS_ALONE = regex.compile(_SLOTS_OR_BLANKS)
MAX_CONTEXT_CHARACTERS = 200
"""Length of the text that tells whether a sentence ends, or only an abbreviation."""
LETTER = regex.compile(r"\p{L}")


@dataclass(frozen=True)
class Stretch:
    """A sentence, or a part of one that is too long. All its slots have number 0."""

    text: str
    small: str
    """The text in small letters if its sentence is in capitals or title case; otherwise the text."""
    values: list[str]
    """The values of the slots."""
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

    def without_edges(self, language: str) -> tuple[str, "Stretch", str]:
        """Return the line's text before a sentence, the sentence, and the line's text after it.

        The text before and after consists of white space and of values that are no part of the sentence: symbols,
        emoji, and any value after the end of the sentence.
        """
        text, start, end = self.text, 0, len(self.text)
        first, last = 0, len(self.values)
        while start < end:
            if SLOT.match(text, start) and not IN_WORD.search(self.values[first]):
                first += 1
            elif not text[start].isspace():
                break
            start += 1
        while end > start:
            if SLOT.match(text, end - 1) and (
                not IN_WORD.search(self.values[last - 1]) or _ends_after_sentence(text[:end], language)
            ):
                last -= 1
            elif not text[end - 1].isspace():
                break
            end -= 1
        core = replace(self, text=text[start:end], small=self.small[start:end], values=self.values[first:last])
        return fill_slots(text[:start], self.values[:first]), core, fill_slots(text[end:], self.values[last:])


def _ends_after_sentence(text: str, language: str) -> bool:
    """Return whether the slot at the end of a text stands after the end of a sentence, and not of an abbreviation, as
    in No. 5."""
    if not SENTENCE_END_BEFORE_SLOTS.search(text[:-1]):
        return False
    return SLOTS_ALONE.fullmatch(sentences(text[-MAX_CONTEXT_CHARACTERS:], language)[-1]) is not None
