"""Finds acronyms such as NATO, which are copied to the translation.

In newspapers and manuals, nearly all uppercase words between others are acronyms. Exceptions are learned from the
training text: acronyms that are translated there, and very frequent words, whose uppercase is emphasis.
"""

from collections import Counter

import regex

from mt.core.coded_text import Span
from mt.text.segment import Pairs, Phenomenon
from mt.text.spelling import is_listed

_CAPITAL, _LETTER = r"[A-ZÀ-ÖØ-Þ]", r"[\w\p{M}]"
CAPITALS = regex.compile(rf"{_CAPITAL}{{2}}")
ACRONYM = regex.compile(
    rf"(?<!{_LETTER}|{_LETTER}['’.@/-]|{_CAPITAL}\s){_CAPITAL}{{2,6}}s?+(?!{_LETTER}|[-@/.(=<]{_LETTER}|\s{_CAPITAL}{{2}})"
)
"""A word of two to six uppercase letters without another one beside it. Consecutive ones are probably emphasis."""
LOWERCASE_WORD = regex.compile(r"(?<![^\s\p{P}]|[{<$%&])\p{L}*\p{Ll}\p{L}*(?![^\s\p{P}]|[}>;])")
LABEL = regex.compile(rf"\P{{L}}*+({_CAPITAL}{{2,6}})(?:(?<={_CAPITAL}{{4}}):|\P{{L}}*$)")
"""An uppercase word (group 1) before a colon, or alone. It counts as an acronym only if no word list has it."""
MIN_ACRONYM_COUNT, MIN_EMPHASIZED_SHARE, MIN_EMPHASIZED_LETTERS = 2, 0.015, 3
"""A learned translated acronym occurs in at least MIN_ACRONYM_COUNT training pairs. A word is frequent enough for its
uppercase to be emphasis if it occurs in MIN_EMPHASIZED_SHARE of the pairs, and has MIN_EMPHASIZED_LETTERS: two letters
are usually an acronym (IT, US)."""


class Acronyms(Phenomenon):
    """Makes acronyms values, so that they are copied."""

    @staticmethod
    def learn(pairs: Pairs, language: str) -> dict[str, object]:
        """Learn uppercase words that are not copied: translated acronyms, and frequent words in uppercase."""
        lines = 0
        words, acronyms, copied = Counter[str](), Counter[str](), Counter[str]()
        for source, target in pairs():
            lines += 1
            words.update({word for word in source.split() if word.isalpha() and word.islower()})
            names = {source[start:end] for start, end in acronym_spans(source)}
            acronyms.update(names)
            copied.update(name for name in names if name in target)
        emphasized = {
            word.upper()
            for word, count in words.items()
            if count >= MIN_EMPHASIZED_SHARE * lines and len(word) >= MIN_EMPHASIZED_LETTERS
        }
        translated = {
            name for name, count in acronyms.items() if count >= MIN_ACRONYM_COUNT and 2 * copied[name] < count
        }
        return {"translated_capitals": sorted(emphasized | translated)}

    def find_values(self, text: str, side: int, syntax: str) -> list[Span]:
        spans, known = acronym_spans(text), self.layer.config.translated_capitals
        if label := LABEL.match(text):
            is_word = is_listed(label[1].lower(), self.layer.source_language)
            spans = [span for span in (label.span(1), *spans) if not is_word or span != label.span(1)]
        return [span for span in spans if text[slice(*span)] not in known]


def acronym_spans(text: str) -> list[Span]:
    """Return the spans of the acronyms of a text; none if no word has lowercase letters."""
    if not CAPITALS.search(text) or not LOWERCASE_WORD.search(text):
        return []
    return [match.span() for match in ACRONYM.finditer(text)]
