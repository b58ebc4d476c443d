"""Characters that a model cannot have learned, and marks that its training text has too seldom."""

from collections import Counter
from collections.abc import Collection, Mapping
from functools import lru_cache

import regex

from mt.core.coded_text import Span
from mt.core.language import HAN, script_of
from mt.storage.model_description import TextLayerDescription
from mt.text.placeholders import CORPUS_TAG, PLACEHOLDER
from mt.text.segment import IN_WORD, LayerState, Phenomenon, Request, Segment
from mt.tokenizer.tokenizer import Tokenizer

DOTS, ELLIPSIS = r"\.{2,}", "…"
UNIT = regex.compile(rf"{DOTS}+|\p{{Regional_Indicator}}{{2}}\p{{M}}*+|\X")
"""What a reader takes for one character: a letter with its accents, an emoji with its skin tone and joiners, or an
ellipsis. Flags are named because \\X alone takes quadratic time on many in a row."""
PICTOGRAPH = regex.compile(r"(?=\D)\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20e3")
DIGIT = regex.compile(r"[0-9]")
INSIDE_WORD = regex.compile(r"(?<=\p{L}\p{M}*)['’‐‑-](?=\p{L})")
LOOKALIKES = {"’": "'", "‐": "-", "‑": "-"}
"""Apostrophes and hyphens, and those that every corpus has."""
WORD_START, WORD_END = regex.compile(r"[\w\p{M}]*"), regex.compile(r"(?r)[\w\p{M}]*\Z")
MIN_SYMBOL_COUNT, MIN_SYMBOL_SHARE = 1000, 0.1
"""A punctuation mark or symbol with fewer occurrences, and fewer per training source, is rare. Of marks put between the
words of everyday sentences, a small model keeps those with 93 to 780 occurrences in 4 to 28 %, one with 1,090 in 57 %
(docs/lab-notebook.md, "Rare characters")."""


class Characters(Phenomenon):
    """Leaves unfamiliar characters as they are, and gives the model usual apostrophes and hyphens."""

    def __init__(self, layer: LayerState) -> None:
        super().__init__(layer)
        rare = layer.config.rare_characters
        symbols = [character for character in rare if not IN_WORD.match(character)]
        self._characters = (
            FamiliarCharacters(layer.tokenizers.source, layer.source_language, rare),
            # In targets, words with letters that sources do not have are no values.
            FamiliarCharacters(layer.tokenizers.target, layer.target_language, symbols),
        )

    def find_values(self, text: str, side: int, syntax: str) -> list[Span]:
        return self._characters[side].unfamiliar(text)

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        return [segment.evolve(text=self._characters[0].replace_lookalikes(segment.text))]

    def prepare_pair(self, source: Segment, target: str) -> tuple[Segment, str]:
        text, written = map(self._characters[0].replace_lookalikes, (source.text, source.original))
        return source.evolve(text=text, original=written), target


def find_rare_characters(counts: Mapping[str, int], sources: int, base: TextLayerDescription | None) -> dict[str, int]:
    """Return the rare characters of the vocabulary with their counts.

    A letter or digit is rare if it does not occur at all. Another character is rare if it occurs fewer times than
    MIN_SYMBOL_COUNT and MIN_SYMBOL_SHARE per source.

    Args:
        counts: How often the training sources have each lower-case character of the vocabulary. Several full stops
            count as an ellipsis.
        sources: The number of training sources.
        base: The text layer of the base run, whose counts are added; None if there is none. Only characters that were
            rare there can be rare.
    """
    total = Counter(base.rare_characters if base else ())
    total.update(counts)
    min_symbol_count = min(MIN_SYMBOL_COUNT, MIN_SYMBOL_SHARE * sources)
    return {
        character: count
        for character, count in sorted(total.items())
        if count < (1 if IN_WORD.match(character) else min_symbol_count)
        and (base is None or character in base.rare_characters)
        and not PLACEHOLDER.match(character)
    }


class FamiliarCharacters:
    """The characters that a model can have learned: those that are subwords of its tokenizer, apart from rare ones.

    All others would be spelled in bytes that the model has never seen, and would come out as noise. So they are values:
    emoji, symbols, words of another script. So are characters that normalization turns into digits, such as ² and ½,
    because 10² would become 102.
    """

    def __init__(self, tokenizer: Tokenizer, language: str, rare: Collection[str] = ()) -> None:
        """
        Args:
            tokenizer: The tokenizer.
            language: The language of the texts.
            rare: Lowercase letters and other characters that the training text has too seldom.
        """
        self._tokenizer = tokenizer
        self._rare = frozenset(rare)
        script = script_of(language)
        # Rare characters of Chinese and the like are spelled in bytes in training, too.
        self._own_script = regex.compile(f"[{script.letters}{HAN}]") if script else None
        self._familiar: set[str] = set()
        self._is_familiar = lru_cache(maxsize=65536)(self._look_up)
        self._lookalikes = str.maketrans({mark: usual for mark, usual in LOOKALIKES.items() if not self._look_up(mark)})

    def unfamiliar(self, text: str) -> list[Span]:
        """Return the spans of unfamiliar characters. A span with a letter or digit is extended to whole words."""
        if self._familiar.issuperset(text) and ".." not in text:
            return []
        spans: list[Span] = []
        for unit in UNIT.finditer(text):
            if spans and unit.end() <= spans[-1][1]:  # part of a word that is in the last span already
                continue
            is_in_word = INSIDE_WORD.match(text, unit.start()) or (unit.group() == "’" and "‘" not in text)
            if self._is_familiar(unit.group()) or is_in_word:
                if len(unit.group()) == 1 and self._is_familiar(unit.group()):
                    self._familiar.add(unit.group())
                continue
            start, end = unit.span()
            is_word = IN_WORD.match(text, start) is not None
            if is_word:
                start -= len(WORD_END.search(text, 0, start)[0])
                end = WORD_START.match(text, end).end()
            # Foreign words that follow each other are one value.
            if spans and is_word and (start <= spans[-1][1] or text[spans[-1][1] : start].isspace()):
                spans[-1] = spans[-1][0], max(end, spans[-1][1])
            else:
                spans.append((start, end))
        return spans

    def replace_lookalikes(self, text: str) -> str:
        """Return a text with usual apostrophes and hyphens in place of unfamiliar ones. It is as long as before."""
        return text.translate(self._lookalikes)

    def _look_up(self, unit: str) -> bool:
        if unit.isspace():
            return True
        if PICTOGRAPH.search(unit) or PLACEHOLDER.search(unit) or CORPUS_TAG in unit:
            return False
        characters = self._tokenizer.normalize(unit)
        if unit not in "0123456789" and DIGIT.search(characters):  # ² and ½ would become digits
            return False
        if self._own_script and self._own_script.search(unit):
            return True
        if not characters:
            return False
        if not self._rare.isdisjoint(regex.sub(DOTS, ELLIPSIS, characters.lower())):
            return False
        return all(map(self._tokenizer.has_subword, characters))
