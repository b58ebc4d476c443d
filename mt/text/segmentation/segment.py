"""A segment of a line that is translated by itself, and how its translation becomes part of the target line."""

from dataclasses import dataclass
from itertools import accumulate, pairwise

from mt.text.normalization.casing import in_capitals
from mt.text.normalization.final_punctuation import without_mark
from mt.text.normalization.spelling import Correction
from mt.text.placeholders.placeholders import PLACEHOLDER


@dataclass(frozen=True)
class Segment:
    """A segment of a line, mostly a sentence."""

    text: str
    """The text for the tokenizer. If it is empty, nothing of the segment is to be translated."""
    values: tuple[str, ...] = ()
    """The values of the text's placeholders, in order."""
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
    """Whether the sentence goes on in the next segment, because it is longer than the model's training sources or has
    more values than there are placeholders."""

    def restore(self, translation: str, language: str) -> str:
        """Return a segment of the target line. If the model has copied the text, it is that segment of the source line.

        Args:
            translation: The translation of the text, with each of its placeholders once.
            language: The target language.
        """
        if self.text and self.is_continued and not translation:
            return self.before + self.after.lstrip()
        return "".join([self.before, *self._restored(translation, language), self.after])

    def positions(self, translation: str, language: str) -> list[int]:
        """Return the position of every character of a translation in the text that ``restore`` makes of it, and the
        position of its end."""
        return list(accumulate(map(len, self._restored(translation, language)), initial=len(self.before)))

    def _restored(self, translation: str, language: str) -> list[str]:
        """Return the restored text of each character of a translation."""
        if translation == self.text:
            end = len(translation) - len(self.added)
            lengths = [1] * end + [0] * len(self.added)
            for correction in self.corrections:
                lengths[correction.end - 1] += len(correction.typed) - (correction.end - correction.start)
            characters = [self.written[start:end] for start, end in pairwise(accumulate(lengths, initial=0))]
        else:
            characters = list(translation)
            if self.capitals:
                characters = [in_capitals(character, language) for character in characters]
            if self.added:
                start, end = without_mark(translation)
                characters = [""] * start + characters[start:end] + [""] * (len(characters) - end)
        values = dict(zip(PLACEHOLDER.findall(self.text), self.values, strict=True)) if self.values else {}
        return [values.get(character, character) for character in characters]
