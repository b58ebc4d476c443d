"""The text layer: what happens to a line before the tokenizer cuts it into pieces, and afterwards to its translation.

A line is cut into sentences if it has more than the lines that the model learnt from. What is not to be translated
(``mt.text.items``) is replaced by slots, a sentence in capitals or title case is lowercased, typing errors are
corrected (``mt.text.spelling``), and final punctuation is added (``mt.text.final_punctuation``). ``restore`` undoes it.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

import regex

from mt.config import TextDescription
from mt.config.text import FINAL_MARKS
from mt.core.files import UNDECODABLE
from mt.core.language import writes_spaces
from mt.text.case import (
    begun_with_capitals,
    in_capitals,
    is_in_capitals,
    is_in_small_letters,
    is_in_title_case,
    lowercased,
)
from mt.text.clauses import starts_of_parts
from mt.text.final_punctuation import missing_mark, without_mark
from mt.text.items import OF_WORDS, FamiliarCharacters, Span, find_items, own_patterns
from mt.text.placement import Link
from mt.text.sentences import sentences
from mt.text.slots import OF_NUMBERS, SLOT, missing_slots, put_slots, with_missing_slots, without_surplus
from mt.text.spelling import FEWEST_TIMES, WORD, Correction, Spelling
from mt.text.tokenizer import TokenizerPair

ENDS_SENTENCE = regex.compile(rf"(?r)[{FINAL_MARKS}]\p{{P}}*[\s{SLOT.pattern[1:-1]}]*$")
"""The end of a sentence, and nothing but slots behind it. It is searched from the end: (?r)."""
SLOTS_ALONE = regex.compile(rf"[\s{SLOT.pattern[1:-1]}]*")
LOOKED_BACK = 200
"""How many characters of a text are looked at to see whether a sentence ends, or only an abbreviation."""
LETTER = regex.compile(r"\p{L}")
NUMBER = regex.compile(r"[\p{Sc}+−±-]?\s?\d[\d.,'’٫٬．，\s]*[\p{Sc}%٪‰°]?")
BLANK_BEFORE_UNIT = regex.compile(r"(?<=\d)\s(?=[^\W\d]|°)")
DIGITS = regex.compile(r"\d+")
PLAIN_NUMBER = regex.compile(r"\d{1,3}(?:[.,'’٫٬\u00a0\u202f\u2009 ]\d{3})+(?:[.,٫]\d+)?|\d+(?:[.,٫]\d+)?")
"""A number that counts or measures what follows it: 3, 1,249.99, but neither $5 nor 10:30."""
WORDS_PER_FALSE_ALARM = 1000
"""At most one in so many words of text without typing errors may be corrected."""


class Replacement(NamedTuple):
    """A word of a source and its translation, in whose place a slot is put."""

    source: str
    target: str
    is_number: bool
    """Whether it is a slot for a number."""


@dataclass(frozen=True)
class Part:
    """A part of a line that is translated by itself, mostly a sentence."""

    text: str
    """What the tokenizer cuts. If it is empty, nothing of the part is to be translated."""
    items: tuple[str, ...]
    """What the slots of the text stand for, in their order there."""
    written: str
    """What the text was before it was lowercased, and before typing errors were corrected."""
    capitals: bool
    """Whether it was in capitals, so that the translation is put into capitals."""
    corrections: tuple[Correction, ...]
    """The words of the text that were corrected, in order."""
    added: str
    """The punctuation at the end of the text that it lacks as written; "" if nothing was added."""
    before: str
    """What stands before the text and comes back unchanged: white space and items."""
    after: str
    """What stands behind it, likewise."""
    is_continued: bool = False
    """Whether the sentence goes on in the next part, because it is longer than the model's training sources or has more
    items than there are slots."""


class TextLayer:
    """The rules of one model, for lines of its source language and for pairs."""

    def __init__(
        self,
        rules: TextDescription,
        tokenizers: TokenizerPair,
        source_language: str,
        target_language: str,
        spelling: Spelling | None = None,
    ) -> None:
        """If there is no ``spelling``, typing errors are not corrected."""
        self.rules = rules
        self.spelling = spelling
        self.tokenizers = tokenizers
        self.source_language = source_language
        self.target_language = target_language
        self.slots = min(tokenizers.source.slots, tokenizers.target.slots)
        self._patterns = own_patterns(rules.terms, rules.patterns)
        self._source_characters = FamiliarCharacters(tokenizers.source, source_language)
        self._target_characters = FamiliarCharacters(tokenizers.target, target_language)

    def __reduce__(self) -> tuple:
        return TextLayer, (self.rules, self.tokenizers, self.source_language, self.target_language, self.spelling)

    def with_rules(self, rules: TextDescription) -> "TextLayer":
        """Return a text layer with other rules and everything else as it is here."""
        return TextLayer(rules, self.tokenizers, self.source_language, self.target_language, self.spelling)

    def mark(self, line: str, split: bool = True, correct: bool = True, longest: int | None = None) -> list[Part]:
        """Returns the parts of a line. If each part's own text is restored as if it were the translation, they make up
        the line again.

        Args:
            line: The line, which is not blank. Half a surrogate pair in it is read as U+FFFD, like broken UTF-8.
            split: Whether it is cut into its sentences if it has more than the model's training text had.
            correct: Whether typing errors are corrected.
            longest: Sentences with more pieces are cut into parts. By default ``long_source`` of the rules.
        """
        if not self.rules.enabled:
            return [Part(line, (), line, False, (), "", "", "")]
        line = UNDECODABLE.sub("\ufffd", line)
        spans = find_items(line, self._patterns, self._source_characters)
        following = iter([line[start:end] for start, end in spans])
        # Items are taken out first, so that no sentence ends inside one.
        marked = put_slots(line, spans, [0] * len(spans))
        cut = sentences(marked, self.source_language) if split else []
        if len(cut) <= self.rules.most_sentences:
            cut = [marked]
        longest = longest or self.rules.long_source
        lengths = longest, min(longest, self.rules.usual_source)
        parts: list[Part] = []
        for sentence in cut:
            case = _case_of(sentence)
            small = lowercased(sentence, self.source_language) if case in ("capitals", "title") else sentence
            starts = self._starts(sentence, small, *lengths)
            for start, end in pairwise([*starts, len(sentence)]):
                items = list(islice(following, len(SLOT.findall(sentence[start:end]))))
                ends = end == len(sentence)
                parts.append(self._part(sentence[start:end], small[start:end], items, case, correct, start == 0, ends))
        return parts

    def without_surplus(self, part: Part, translation: str) -> tuple[str, int]:
        """Returns the model's translation of a part's text with none of its slots twice and no others, and how many
        slots had to be removed."""
        return without_surplus(translation, part.text) if self.rules.enabled else (translation, 0)

    def missing_slots(self, part: Part, translation: str) -> int:
        """Returns how many slots of the part's text a translation of it lacks."""
        return len(missing_slots(translation, part.text)) if self.rules.enabled else 0

    def with_missing_slots(self, part: Part, translation: str, links: Sequence[Link]) -> str:
        """Returns the translation of a part's text with the slots that it lacks, each beside the translations of the
        words beside which it stands in the text. ``links`` says which words belong together."""
        return with_missing_slots(translation, part.text, links)

    def restore(self, part: Part, translation: str) -> str:
        """Returns a part of the target line, given its translation with each of its slots once.

        If the model has copied the part's text, the result is that part of the source line, letter by letter.
        """
        if translation == part.text:
            translation = part.written
        else:
            if part.added:
                translation = translation[slice(*without_mark(translation))]
            if part.capitals:
                translation = in_capitals(translation, self.target_language)
        items = _items(part)
        if items:
            translation = SLOT.sub(lambda match: items[match.group()], translation)
        if part.text and part.is_continued and not translation:
            return part.before + part.after.lstrip()
        return part.before + translation + part.after

    def positions(self, part: Part, translation: str) -> list[int]:
        """Returns the position of every character of a translation in what ``restore`` makes of it, and that of its
        end."""
        is_copied = translation == part.text
        capitals, items = part.capitals and not is_copied, _items(part)
        lengths = [
            len(items[one]) if one in items else len(in_capitals(one, self.target_language)) if capitals else 1
            for one in translation
        ]
        for correction in part.corrections if is_copied else ():
            lengths[correction.end - 1] += len(correction.typed) - (correction.end - correction.start)
        if part.added:
            start, end = (0, len(translation) - len(part.added)) if is_copied else without_mark(translation)
            lengths[:start] = [0] * start
            lengths[end:] = [0] * (len(lengths) - end)
        return list(accumulate(lengths, initial=len(part.before)))

    def with_gaps(self, parts: Sequence[Part], translations: Sequence[str]) -> list[str]:
        """Returns the parts of a target line, as ``restore`` made them, with the white space that belongs between them.

        It is that of the source. But where only one of the two languages puts a space between its sentences, the target
        has one if it is that language.
        """
        if not parts or writes_spaces(self.source_language) == writes_spaces(self.target_language):
            return list(translations)
        if writes_spaces(self.source_language):
            return [
                text.removesuffix(" ") if part.after == " " else text
                for part, text in zip(parts, translations, strict=True)
            ]
        *others, last = zip(parts, translations, strict=True)
        return [f"{text} " if part.text and not part.after else text for part, text in others] + [last[1]]

    def mark_pair(
        self,
        source: str,
        target: str,
        more: Sequence[Replacement] = (),
        order: Sequence[int] | None = None,
    ) -> tuple[str, str]:
        """Returns the texts of a pair for training or scoring. Items that both sides share are slots. A source in
        capitals or title case is lowercased, and so is a target in capitals.

        Slots that stand in the pair already are read as U+FFFD, like half a surrogate pair: the model must not take
        them for items.

        Args:
            more: Words that are replaced by slots, too. Each must occur once on its side.
            order: The numbers of the slots of either kind, for the items in the order of the source. By default 0, 1,
                2 …
        """
        if not self.rules.enabled:
            return source, target
        source, target = (SLOT.sub("\ufffd", UNDECODABLE.sub("\ufffd", text)) for text in (source, target))
        order = range(self.slots) if order is None else order
        found = self._shared(source, target, more)[: len(order)]
        numbers = self._numbers([is_number for _, _, is_number in found], order)
        taken = [(one, other, number) for (one, other, _), number in zip(found, numbers, strict=True)]
        source = put_slots(source, [one for one, _, _ in taken], [number for _, _, number in taken])
        taken.sort(key=lambda each: each[1])
        target = put_slots(target, [other for _, other, _ in taken], [number for _, _, number in taken])
        if is_in_capitals(source) or is_in_title_case(source):
            source = self._in_usual_case(lowercased(source, self.source_language), source)
        elif is_in_small_letters(source):
            source = self._in_usual_case(source, source)
        if is_in_capitals(target):
            target = lowercased(target, self.target_language)
        return source, target

    def _in_usual_case(self, source: str, written: str, begins: bool = True) -> str:
        """Returns a source with capitals where the training text mostly has them, and where sentences begin.

        Args:
            source: The source in small letters.
            written: The source as it was written, which tells better where sentences begin.
            begins: Whether it begins with a sentence.
        """
        if not self.spelling or not self.spelling.has_capitals:
            return source
        first, *others = accumulate(map(len, sentences(written, self.source_language)), initial=0)
        starts = [first, *others[:-1]] if begins else others[:-1]
        source = begun_with_capitals(source, starts, self.source_language)
        return self.spelling.in_usual_case(source)

    def _numbers(self, are_numbers: Iterable[bool], order: Sequence[int]) -> list[int]:
        """Returns the number of each item's slot.

        Args:
            are_numbers: Whether each item gets a slot for numbers.
            order: The numbers that the items of either kind get, one after another.
        """
        following = iter(order), (OF_NUMBERS + number for number in order)
        return [next(following[is_number]) for is_number in are_numbers]

    def _shared(self, source: str, target: str, more: Sequence[Replacement]) -> list[tuple[Span, Span, bool]]:
        """Returns the places of the items that stand on both sides equally often, in the order of the source, and
        whether each gets a slot for numbers.

        ``_key`` tells which numbers are the same.
        """
        sides: list[dict[str, list[Span]]] = []
        for side, text, characters in (
            (0, source, self._source_characters),
            (1, target, self._target_characters),
        ):
            spans = [(*span, _key(text[slice(*span)])) for span in find_items(text, self._patterns, characters)]
            for number, words in enumerate(more):
                word = (words.source, words.target)[side]
                start = text.index(word)
                spans.append((start, start + len(word), f"\n{number}"))  # no item has a line break
            found: dict[str, list[Span]] = defaultdict(list)
            end = 0
            for start, after, key in sorted(spans, key=lambda span: (span[0], -span[1])):
                if start >= end:  # one of ``more`` may lie inside an item, also at its beginning
                    found[key].append((start, after))
                    end = after
            if not found:
                return []
            sides.append(found)
        both = [
            (place, other, more[int(key)].is_number if key.startswith("\n") else _is_number(source[slice(*place)]))
            for key, places in sides[0].items()
            if len(places) == len(sides[1].get(key, ()))
            for place, other in zip(places, sides[1][key], strict=True)
        ]
        return sorted(both)

    def _starts(self, sentence: str, small: str, longest: int, usual: int) -> list[int]:
        """Return where the parts of a sentence begin: none has more slots than the tokenizer has pieces for, or is
        longer than a training source.

        Args:
            sentence: The sentence.
            small: The same in small letters, if it is in capitals or title case, by which it is measured.
            longest: The most pieces of a sentence that is not cut.
            usual: The most pieces of a part of one that is.
        """
        places = [match.start() for match in SLOT.finditer(sentence)]
        few_slots = [0, *places[self.slots :: self.slots], len(sentence)]
        return [
            start + cut
            for start, end in pairwise(few_slots)
            for cut in starts_of_parts(small[start:end], self.tokenizers.source, self.source_language, longest, usual)
        ]

    def _part(
        self, text: str, small: str, items: list[str], case: str, correct: bool, begins: bool, ends: bool
    ) -> Part:
        """Return a part of a sentence.

        Args:
            text: The text with slots, all of which have number 0.
            small: The same in small letters, if its sentence is in capitals or title case.
            items: The items of the slots.
            case: The case of the sentence, by ``_case_of``.
            correct: Whether typing errors are corrected.
            begins: Whether the sentence begins with it.
            ends: Whether the sentence ends with it.
        """
        if not LETTER.search(text):  # nothing but items, numbers and punctuation
            return Part("", (), "", False, (), "", _filled_in_order(text, items), "", not ends)
        before, text, after = _without_edges(text, items, self.source_language)
        small = small[len(before) : len(before) + len(text)]
        first = len(SLOT.findall(before))
        last = first + len(SLOT.findall(text))
        before, after = _filled_in_order(before, items[:first]), _filled_in_order(after, items[last:])
        places = [match.span() for match in SLOT.finditer(text)]
        items = items[first:last]
        numbers = self._numbers(map(_is_number, items), range(self.slots))
        written, text = (put_slots(one, places, numbers) for one in (text, small))
        corrections: tuple[Correction, ...] = ()
        if case in ("capitals", "title"):
            # Typing errors are not corrected: all words look alike, so names would be taken for errors.
            text = self._in_usual_case(text, written, begins)
        else:
            if self.spelling and correct:
                text, corrections = self.spelling.corrected(text)
            if case == "small":
                text = self._in_usual_case(text, text, begins)
        marks = self.rules.final_marks
        added = missing_mark(text, marks, self.source_language) if marks and ends and text else ""
        return Part(
            text + added,
            tuple(items),
            written,
            case == "capitals",
            corrections,
            added,
            before,
            after,
            not ends,
        )


def fewest_times(layer: TextLayer, lines: Iterable[str]) -> int:
    """Returns how often the training text must have a word that an unknown one is taken for.

    Args:
        layer: The text layer, whose ``spelling`` knows the words of the training text.
        lines: Other lines, in which few typing errors are expected.

    Returns:
        The smallest number, from FEWEST_TIMES on, by which at most one in WORDS_PER_FALSE_ALARM of their words would be
        corrected.
    """
    assert layer.spelling is not None
    parts = [part for line in lines if line.strip() for part in layer.mark(line)]
    words = sum(len(WORD.findall(part.text)) for part in parts)
    times = [layer.spelling.times(part.text[one.start : one.end]) for part in parts for one in part.corrections]
    others = sorted(times, reverse=True)[words // WORDS_PER_FALSE_ALARM :]
    return max([FEWEST_TIMES, *(count + 1 for count in others[:1])])


def _is_behind_a_sentence(text: str, language: str) -> bool:
    """Returns whether the slot at the end of a text stands behind the end of a sentence, and not of an abbreviation, as
    in No. 5."""
    if not ENDS_SENTENCE.search(text[:-1]):
        return False
    return SLOTS_ALONE.fullmatch(sentences(text[-LOOKED_BACK:], language)[-1]) is not None


def _case_of(sentence: str) -> str:
    """Return how a sentence is written: in capitals, title or small letters; "" if in none of these."""
    if is_in_capitals(sentence):
        return "capitals"
    if is_in_title_case(sentence):
        return "title"
    return "small" if is_in_small_letters(sentence) else ""


def _without_edges(text: str, items: Sequence[str], language: str) -> tuple[str, str, str]:
    """Returns what stands before a sentence, the sentence, and what stands behind it: white space and items that are no
    part of the sentence.

    These are symbols and emoji, and whatever stands behind the end of the sentence.
    """
    start, end = 0, len(text)
    first, last = 0, len(items)
    while start < end:
        if SLOT.match(text, start) and not OF_WORDS.search(items[first]):
            first += 1
        elif not text[start].isspace():
            break
        start += 1
    while end > start:
        is_slot = SLOT.match(text, end - 1)
        if is_slot and (not OF_WORDS.search(items[last - 1]) or _is_behind_a_sentence(text[:end], language)):
            last -= 1
        elif not text[end - 1].isspace():
            break
        end -= 1
    return text[:start], text[start:end], text[end:]


def _is_number(item: str) -> bool:
    """Return whether an item's slot is one for numbers."""
    return PLAIN_NUMBER.fullmatch(item) is not None


def _items(part: Part) -> dict[str, str]:
    """Returns what each slot of a part's text stands for."""
    return dict(zip(SLOT.findall(part.text), part.items, strict=True)) if part.items else {}


def _filled_in_order(text: str, items: Sequence[str]) -> str:
    """Returns a text with the first item in place of the first slot, whatever its number, and so on."""
    following = iter(items)
    return SLOT.sub(lambda _: next(following), text)


def _key(item: str) -> str:
    """Returns what two items have in common if they are the same.

    Numbers are the same if their digits are, whatever stands between the groups of three: 1,249.99 and 1 249,99. But
    1.5 is not 15. A currency may stand before or behind a number, and a blank may stand in front of a unit or not.
    """
    if not NUMBER.fullmatch(item):
        return BLANK_BEFORE_UNIT.sub("", item)
    item = item.replace("−", "-").replace("٪", "%")
    groups = DIGITS.findall(item)
    decimals = len(groups[-1]) if len(groups) > 1 and len(groups[-1]) != 3 else 0
    signs = sorted(one for one in item if unicodedata.category(one) in ("Sc", "So", "Sm") or one in "%‰-")
    return "".join([*(str(unicodedata.decimal(one)) for group in groups for one in group), f":{decimals}", *signs])
