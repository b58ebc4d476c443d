"""A segment of a source line: first with its values masked by placeholders, then prepared for translation without the
edges that need none; and how its translation is restored."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, pairwise

import regex

from mt.config.text import FINAL_MARKS
from mt.text.brackets import BRACKET, bracket_pairs
from mt.text.casing import Case, in_capitals, with_capital
from mt.text.final_punctuation import without_final_mark
from mt.text.placeholders import PLACEHOLDER, fill_placeholders
from mt.text.sentences import sentences
from mt.text.spelling import Correction
from mt.text.terms import Term
from mt.text.values import IN_WORD, LETTER

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


SENTENCE_START = regex.compile(rf"(?r)(?:^|[{FINAL_MARKS}][\p{{P}}\s]*\s)[^\p{{L}}\p{{N}}\p{{Co}}]*$")
"""The end of a text behind which a sentence begins, searched from the end."""


@dataclass(frozen=True)
class Segment:
    """A part of a source line that is translated by itself, mostly a sentence, with all that its restoration needs."""

    text: str
    """The prepared text, the tokenizer's input; "": the segment has nothing to translate, only ``before``."""
    values: tuple[str, ...] = ()
    """The values of the text's placeholders, in order."""
    written: str = ""
    """The text with its placeholders, before it was lowercased and corrected."""
    capitals: bool = False
    """Whether the sentence was in capitals, so that ``restore`` puts the translation into capitals."""
    corrections: tuple[Correction, ...] = ()
    """The corrected typing errors of the text, in order."""
    added: str = ""
    """The final punctuation that was added to the text; "" if none was."""
    before: str = ""
    """White space and values in front of the text, which ``restore`` returns unchanged."""
    after: str = ""
    """White space and values behind the text, which ``restore`` returns unchanged."""
    is_continued: bool = False
    """Whether the next segment continues the same sentence, which was too long or had too many values."""

    @cached_property
    def source(self) -> str:
        """The text for the tokenizer: ``masked`` with terms instead of their placeholders."""
        return self.masked.translate({ord(token): term.plain for token, term in self.terms.items()})

    @cached_property
    def masked(self) -> str:
        """``text`` without the placeholders of brackets and quotation marks, which word alignment puts back, as it does
        with tags."""
        return self.text.translate(str.maketrans("", "", "".join(self.brackets)))

    @cached_property
    def brackets(self) -> dict[str, str]:
        """The placeholders of brackets and quotation marks with their values, in the order of ``text``."""
        return {token: value for token, value in self._values.items() if BRACKET.fullmatch(value)}

    @cached_property
    def terms(self) -> dict[str, Term]:
        """The placeholders of terms with their terms, in the order of ``text``."""
        return {token: value for token, value in self._values.items() if isinstance(value, Term)}

    @property
    def has_words(self) -> bool:
        """Whether it has more than terms. Otherwise the model is not asked for a translation."""
        return not self.terms or LETTER.search(self.masked) is not None

    def with_forms(self, forms: Mapping[str, str], translation: str, language: str) -> "Segment":
        """Return the segment with target forms as the values of its terms, in the casing that a translation needs.

        Args:
            forms: The target form of each placeholder of a term.
            translation: The translation, with placeholders.
            language: The target language.
        """
        values = dict[str, str](self._values)
        for token, term in self.terms.items():
            form = forms[token]
            if self.capitals or (term.isupper() and not term.plain.isupper()):
                form = in_capitals(form, language)
            elif form.split()[0].islower() and self._is_at_start(translation, translation.find(token)):
                form = with_capital(form, language)
            values[token] = form
        return replace(self, values=tuple(values.values()))

    def _is_at_start(self, translation: str, position: int) -> bool:
        """Return whether a sentence begins at a position. The first one must not begin with a small letter in the
        source."""
        letter = LETTER.search(self.source)
        before = SENTENCE_START.search(translation[:position])
        return before is not None and (before.start() > 0 or not (letter and letter[0].islower()))

    @cached_property
    def _values(self) -> dict[str, str]:
        return dict(zip(PLACEHOLDER.findall(self.text), self.values, strict=True)) if self.values else {}

    def with_symbols_in_order(self, translation: str) -> str:
        """Return a translation with the placeholders of symbols in the order of the source."""
        symbols = [
            token for token, value in self._values.items() if not IN_WORD.search(value) and token not in self.brackets
        ]
        translated_symbols = [character for character in translation if character in symbols]
        exchanged = dict(zip(translated_symbols, symbols, strict=True))
        return PLACEHOLDER.sub(lambda match: exchanged.get(match[0], match[0]), translation)

    def restore(self, translation: str, language: str) -> str:
        """Return a translation with the values, the capitals and the edges of the source segment.

        A translation that equals ``text`` gives the source segment exactly as it was written.

        Args:
            translation: The translation of ``text``, with each placeholder of ``text`` once.
            language: The target language.
        """
        if self.text and self.is_continued and not translation:
            return self.before + self.after.lstrip()
        return "".join([self.before, *self._restored(translation, language), self.after])

    def positions(self, translation: str, language: str) -> list[int]:
        """Map the positions of a translation to positions in its restored text, with values, capitals and edges.

        Args:
            translation: The translation of ``text``, with each placeholder of ``text`` once, as for ``restore``.
            language: The target language.

        Returns:
            For each character of the translation, where it begins in the result of ``restore``; then where the last one
            ends. The length is ``len(translation) + 1``.
        """
        return list(accumulate(map(len, self._restored(translation, language)), initial=len(self.before)))

    def _restored(self, translation: str, language: str) -> list[str]:
        """Return for each character of a translation the text that replaces it, without ``before`` and ``after``."""
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
                start, end = without_final_mark(translation)
                characters = [""] * start + characters[start:end] + [""] * (len(characters) - end)
        values = self._values
        return [values.get(character, character) for character in characters]
