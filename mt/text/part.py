"""A part of a line that is translated by itself, and how its translation becomes part of the target line."""

from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from mt.text.case import in_capitals
from mt.text.final_punctuation import without_mark
from mt.text.slots import SLOT
from mt.text.spelling import Correction


@dataclass(frozen=True)
class Part:
    """A part of a line, mostly a sentence."""

    text: str
    """The text for the tokenizer. If it is empty, nothing of the part is to be translated."""
    values: tuple[str, ...] = ()
    """The values of the text's slots, in order."""
    written: str = ""
    """The text before it was lowercased, and before typing errors were corrected."""
    capitals: bool = False
    """Whether it was in capitals, so that the translation is put into capitals."""
    corrections: tuple[Correction, ...] = ()
    """The corrected words of the text, in order."""
    added: str = ""
    """The punctuation at the end of the text that it lacks as written; "" if nothing was added."""
    before: str = ""
    """White space and values before the text, which come back unchanged."""
    after: str = ""
    """White space and values after it, likewise."""
    is_continued: bool = False
    """Whether the sentence goes on in the next part, because it is longer than the model's training sources or has more
    values than there are slots."""

    def restore(self, translation: str, language: str) -> str:
        """Return a part of the target line. If the model has copied the text, it is that part of the source line.

        Args:
            translation: The translation of the text, with each of its slots once.
            language: The target language.
        """
        if translation == self.text:
            translation = self.written
        else:
            if self.added:
                translation = translation[slice(*without_mark(translation))]
            if self.capitals:
                translation = in_capitals(translation, language)
        if self.values:
            translation = SLOT.sub(lambda match: self._value_of[match.group()], translation)
        if self.text and self.is_continued and not translation:
            return self.before + self.after.lstrip()
        return self.before + translation + self.after

    def positions(self, translation: str, language: str) -> list[int]:
        """Return the position of every character of a translation in the text that ``restore`` makes of it, and the
        position of its end."""
        is_copied = translation == self.text
        lengths = [
            len(self._value_of.get(character) or in_capitals(character, language))
            if character in self._value_of or (self.capitals and not is_copied)
            else 1
            for character in translation
        ]
        for correction in self.corrections if is_copied else ():
            lengths[correction.end - 1] += len(correction.typed) - (correction.end - correction.start)
        if self.added:
            start, end = (0, len(translation) - len(self.added)) if is_copied else without_mark(translation)
            lengths[:start] = [0] * start
            lengths[end:] = [0] * (len(lengths) - end)
        return list(accumulate(lengths, initial=len(self.before)))

    @cached_property
    def _value_of(self) -> dict[str, str]:
        return dict(zip(SLOT.findall(self.text), self.values, strict=True)) if self.values else {}
