"""Finds characters that a model cannot have learned, because its training text has them never or too seldom."""

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
GRAPHEME = regex.compile(rf"{DOTS}+|\p{{Regional_Indicator}}{{2}}\p{{M}}*+|\X")
"""A grapheme cluster, such as a letter with its accents or an emoji with its skin tone and joiners; or an ellipsis. The
branch for flags avoids the quadratic time that \\X alone takes on a sequence of flags."""
PICTOGRAPH = regex.compile(r"(?=\D)\p{Extended_Pictographic}|\p{Regional_Indicator}|\u20e3")
DIGIT = regex.compile(r"[0-9]")
INSIDE_WORD = regex.compile(r"(?<=\p{L}\p{M}*)['’‐‑-](?=\p{L})")
LOOKALIKES = {"’": "'", "‐": "-", "‑": "-"}
"""Maps typographic apostrophes and hyphens to the ASCII characters, which every corpus has."""
WORD_START, WORD_END = regex.compile(r"[\w\p{M}]*"), regex.compile(r"(?r)[\w\p{M}]*\Z")
MIN_SYMBOL_COUNT, MIN_SYMBOL_SHARE = 1000, 0.1
"""A punctuation mark or symbol is rare if it occurs fewer than MIN_SYMBOL_COUNT times, and fewer than MIN_SYMBOL_SHARE
times per training source. A small model copied inserted symbols in 4 to 28 % of sentences if the training text had them
93 to 780 times, and in 57 % if it had them 1,090 times (docs/lab-notebook.md, "Rare characters")."""


class Characters(Phenomenon):
    """Makes unfamiliar characters values, which are copied, and replaces typographic apostrophes and hyphens."""

    def __init__(self, layer: LayerState) -> None:
        super().__init__(layer)
        rare = layer.config.rare_characters
        symbols = [character for character in rare if not IN_WORD.match(character)]
        self._characters = (
            FamiliarCharacters(layer.tokenizers.source, layer.source_language, rare),
            # Rare letters count for sources only, so that target words with them do not become values.
            FamiliarCharacters(layer.tokenizers.target, layer.target_language, symbols),
        )

    def find_values(self, text: str, side: int, syntax: str) -> list[Span]:
        return self._characters[side].find_unfamiliar(text)

    def prepare_segment(self, segment: Segment, request: Request) -> list[Segment]:
        return [segment.evolve(text=self._characters[0].replace_lookalikes(segment.text))]

    def prepare_pair(self, source: Segment, target: str) -> tuple[Segment, str]:
        text, original = map(self._characters[0].replace_lookalikes, (source.text, source.original))
        return source.evolve(text=text, original=original), target


def find_rare_characters(counts: Mapping[str, int], sources: int, base: TextLayerDescription | None) -> dict[str, int]:
    """Return the rare characters of the vocabulary with their counts.

    A letter or digit is rare if it does not occur at all. Any other character is rare if it occurs fewer than
    MIN_SYMBOL_COUNT times, and fewer than MIN_SYMBOL_SHARE times per source.

    Args:
        counts: The frequency in the training sources of each lowercase character of the vocabulary. Consecutive full
            stops count as an ellipsis.
        sources: The number of training sources.
        base: The text layer of the base run; None if there is none. Its counts are added, and a character that is not
            rare there is not rare here.
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
    """The characters that a model can have learned: the subwords of its tokenizer, except for rare characters.

    Other characters, such as emoji and letters of other scripts, would be spelled in bytes that the model has never
    seen, and would be translated as noise. So they are values, which are copied. Characters that normalization turns
    into digits, such as ² and ½, are values, too, because 10² would become 102.
    """

    def __init__(self, tokenizer: Tokenizer, language: str, rare: Collection[str] = ()) -> None:
        """
        Args:
            tokenizer: The tokenizer.
            language: The language of the texts.
            rare: Lowercase letters and other characters that are rare in the training text.
        """
        self._tokenizer = tokenizer
        self._rare = frozenset(rare)
        script = script_of(language)
        # Rare characters of this script are familiar as bytes: training text in Chinese has some, too.
        self._own_script = regex.compile(f"[{script.letters}{HAN}]") if script else None
        self._familiar: set[str] = set()
        self._is_familiar = lru_cache(maxsize=65536)(self._can_be_learned)
        self._lookalikes = str.maketrans(
            {typographic: plain for typographic, plain in LOOKALIKES.items() if not self._can_be_learned(typographic)}
        )

    def find_unfamiliar(self, text: str) -> list[Span]:
        """Return the spans of unfamiliar characters. A span with a letter or digit is extended to whole words."""
        if self._familiar.issuperset(text) and ".." not in text:
            return []
        spans: list[Span] = []
        for match in GRAPHEME.finditer(text):
            grapheme = match[0]
            if spans and match.end() <= spans[-1][1]:  # part of a word that is in the last span already
                continue
            is_familiar = self._is_familiar(grapheme)
            if len(grapheme) == 1 and is_familiar:
                self._familiar.add(grapheme)
            if is_familiar or INSIDE_WORD.match(text, match.start()) or (grapheme == "’" and "‘" not in text):
                continue
            start, end = match.span()
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
        """Replace unfamiliar apostrophes and hyphens by the ASCII characters. The length stays the same."""
        return text.translate(self._lookalikes)

    def _can_be_learned(self, grapheme: str) -> bool:
        """Return whether all characters of a grapheme are subwords that are not rare, or letters of the language."""
        if grapheme.isspace():
            return True
        if PICTOGRAPH.search(grapheme) or PLACEHOLDER.search(grapheme) or CORPUS_TAG in grapheme:
            return False
        characters = self._tokenizer.normalize(grapheme)
        if grapheme not in "0123456789" and DIGIT.search(characters):  # ² and ½ would become digits
            return False
        if self._own_script and self._own_script.search(grapheme):
            return True
        if not characters:
            return False
        if not self._rare.isdisjoint(regex.sub(DOTS, ELLIPSIS, characters.lower())):
            return False
        return all(map(self._tokenizer.has_subword, characters))
