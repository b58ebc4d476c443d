"""Computes the positions of inline codes in a translation, by the rules of ``mt.text.markup_transfer``.

The time is O(n log n) for n characters, codes and linked characters. Nothing is recursive, so the depth of nested
elements is unlimited.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from mt.core.coded_text import Code, CodedText
from mt.text.word_boundaries import WordBoundaries

PUNCTUATION = ",;:.!?…/。，、；：！？"
"""Punctuation marks at the ends of an element's words that stay outside the element, unless the source has some
inside."""


class AlignmentLink(NamedTuple):
    """A link of a word alignment: a span of characters in the source, and the span in the target that translates it."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


@dataclass(eq=False)
class Element:
    """An element, a standalone code, or the whole text, in the source and in the translation."""

    index: int
    """The index in the order of the opening codes."""
    opening: Code
    """The opening or standalone code."""
    start: int
    end: int
    """The positions of its codes in the source."""
    closing: Code | None = None
    space_before: bool = False
    space_after: bool = False
    """Whether whitespace precedes or follows a standalone code. Codes of elements in between are ignored."""
    word_before: bool = False
    word_after: bool = False
    """Whether a standalone code touches a word, or punctuation before it, so that it may touch one in the
    translation."""
    children: list["Element"] = field(default_factory=list)
    """The child elements in the order of the source; after the placement, in the order of the translation."""
    span: tuple[int, int] = (0, 0)
    """The start and end of the smallest span of the translation with all words that its words are linked to. The end is
    0 if there are no links."""
    words: tuple[int, int] | None = None
    """The start and end of its words in the translation; None if it has none."""
    left: int = 0
    right: int = 0
    """The positions of its codes in the translation."""
    parts: list["Element | str"] = field(default_factory=list)
    """Its texts and child elements in the translation, in order."""

    @property
    def is_standalone(self) -> bool:
        return self.opening.partner is None


class Run(NamedTuple):
    """The text between two adjacent codes of the source."""

    start: int
    end: int
    owner: Element
    """The innermost element around it."""
    before: Element | None
    after: Element | None
    """The children of ``owner`` directly before and after the run."""


def elements_and_runs(source: CodedText) -> tuple[list[Element], list[Run]]:
    """Return the elements and standalone codes of a text, preceded by the whole text, and the runs between codes.

    If a text is a part of a longer text, the codes outside of it that close or open its elements have the number -1.
    """
    numbers = {code.number for code in source.codes}
    outside = [
        Code(0, "", -1, code.number)
        for code in reversed(source.codes)
        if code.partner is not None and not code.opens and code.partner not in numbers
    ]
    text, length = source.text, len(source.text)
    inserted = {code.position for code in source.codes if code.separates}
    spaces = {position for position in range(length) if text[position].isspace()} - inserted
    elements = [Element(0, Code(0, "", -1, 0), 0, length)]
    runs: list[Run] = []
    inside = [elements[0]]
    last_standalone: Element | None = None
    start = 0
    for code in (*outside, *source.codes, Code(length, "", -1, -2)):
        parent, end = inside[-1], code.position
        closes = code.partner is not None and not code.opens
        element = Element(len(elements), code, end, end if code.partner is None else length)
        runs.append(
            Run(start, end, parent, parent.children[-1] if parent.children else None, None if closes else element)
        )
        start = end
        if closes:
            parent.closing, parent.end = code, end
            inside.pop()
            continue
        if element.is_standalone:
            element.space_before, element.space_after = end - 1 in spaces, end in spaces
            before = text[max(end - 1, 0) : end]
            element.word_before = end - 1 in inserted or before.isalnum() or before in {*PUNCTUATION}
            element.word_after = end in inserted or text[end : end + 1].isalnum()
            if last_standalone and last_standalone.end == end:
                element.space_before = last_standalone.space_after = False
            last_standalone = element
        else:
            inside.append(element)
        elements.append(element)
        parent.children.append(element)
    return elements, runs


class Placement:
    """Computes the positions of the elements of one text in its translation, and sets ``left`` and ``right`` of
    each."""

    def __init__(
        self, elements: Sequence[Element], runs: Iterable[Run], source: str, target: str, links: Iterable[AlignmentLink]
    ) -> None:
        """
        Args:
            elements: The elements and standalone codes in order, after the whole text.
            runs: The runs of the text.
            source: The text.
            target: The translation. It is not blank.
            links: The links between characters of both.
        """
        self.elements, self.source, self.target = elements, WordBoundaries(source), WordBoundaries(target)
        self.first, self.last = [len(target)] * len(source), [0] * len(source)
        """The start and the end of the target characters that each source character is linked to. The end is 0 if there
        are none."""
        for link in links:
            start, end = self.target.space_end[link.target_start], self.target.space_start[link.target_end]
            for index in range(link.source_start, link.source_end) if start < end else ():
                if self.source.space_end[index] == index:  # links of spaces are ignored
                    self.first[index] = min(self.first[index], start)
                    self.last[index] = max(self.last[index], end)
        self.linked_before = [-1]
        """The last linked character before each position; -1 if there is none."""
        for index, last in enumerate(self.last):
            self.linked_before.append(index if last else self.linked_before[-1])
        for element in elements:
            element.span = len(target), 0
        for start, end, owner, _, _ in runs:
            owner.span = min([owner.span[0], *self.first[start:end]]), max([owner.span[1], *self.last[start:end]])
        for element in reversed(elements):  # children come before their parents
            starts, ends = zip(element.span, *(child.span for child in element.children), strict=True)
            element.span = min(starts), max(ends)

    def place(self) -> None:
        """Set the positions of all elements, parents before their children."""
        root = self.elements[0]
        root.left, root.right = 0, self.target.length
        root.words = (self.target.space_end[0], self.target.space_start[self.target.length])
        for element in self.elements:
            if element.words:
                self._place_children(element, element.words)
            else:
                # Without words, the children keep their distances, as far as there is room.
                shift = element.left - element.start
                for child in element.children:
                    child.left, child.right = (min(element.right, side + shift) for side in (child.start, child.end))

    def _place_children(self, parent: Element, words: tuple[int, int]) -> None:
        """Set the positions of the children of an element, whose own words in the translation are ``words``."""
        for child in parent.children:
            if self._has_words(child) and self._is_all_of(child, parent):
                child.words = words
            elif child.span[1]:
                child.words = _clamp(child.span[0], *words), _clamp(child.span[1], *words)
        self._resolve_overlaps(parent, words)
        spanning = sorted((child for child in parent.children if child.words), key=lambda child: child.words or ())
        self._extend_to_words(spanning, parent, words)
        occupied = [(child.left, child.right) for child in spanning]
        for child in parent.children:
            if child.words:
                continue
            position, is_after = self._position_without_words(child, parent, words)
            child.left = _clamp(position, parent.left, parent.right)
            before = bisect_left(occupied, (child.left,)) - 1
            if before >= 0 and child.left < occupied[before][1]:  # inside a sibling
                left, right = occupied[before]
                child.left = right if is_after else left
        parent.children.sort(key=lambda child: (child.left, child.words is not None, child.index))
        free = parent.left
        for child in parent.children:
            child.left = max(child.left, free)
            if not child.words:  # its content is whitespace
                length = 0 if self._has_words(child) else child.end - child.start
                child.right = min(child.left + length, self.target.space_end[child.left], parent.right)
            free = child.right

    def _resolve_overlaps(self, parent: Element, words: tuple[int, int]) -> None:
        """Shorten the words of siblings so that they do not overlap. Some may have none left."""
        space_start, space_end = self.target.space_start, self.target.space_end
        spans = sorted((*child.words, child.index) for child in parent.children if child.words)
        free = words[0]
        for (first, last, index), (limit, *_) in pairwise([*spans, (words[1], 0, 0)]):
            first = max(first, free)
            if first < limit:
                last = min(last, limit)
            if space_end[first] < space_start[last]:
                free = space_start[last]
                self.elements[index].words = space_end[first], free
            else:
                self.elements[index].words = None

    def _extend_to_words(self, spanning: list[Element], parent: Element, words: tuple[int, int]) -> None:
        """Extend the words of siblings, which are in order, to whole words, and place their codes."""
        source, target = self.source, self.target
        limits = [*(child.words[0] for child in spanning[1:] if child.words), words[1]]
        free, free_for_codes = words[0], parent.left
        for child, limit in zip(spanning, limits, strict=False):
            first, last = child.words or words
            if not source.inside_word[source.space_end[child.start]]:
                first = max(target.word_start[first], free)
            if not source.inside_word[source.space_start[child.end]]:
                last = min(target.word_end[last], limit)
            if not self._is_all_of(child, parent):
                first, last = self._without_punctuation(first, last, child)
            child.words, free = (first, last), last
            child.left = max(self._position_before(first, child.start), free_for_codes)
            child.right = free_for_codes = min(self._position_after(last, child.end), parent.right)

    def _without_punctuation(self, first: int, last: int, element: Element) -> tuple[int, int]:
        """Exclude punctuation at the ends of an element's words in the translation, unless the source has some
        there."""
        source, words = self.source.text[element.start : element.end].strip(), self.target.text[first:last]
        start = first if source[0] in PUNCTUATION else last - len(words.lstrip(f"{PUNCTUATION} "))
        end = last if source[-1] in PUNCTUATION else first + len(words.rstrip(f"{PUNCTUATION} "))
        return (start, end) if start < end else (first, last)

    def _position_without_words(self, child: Element, parent: Element, words: tuple[int, int]) -> tuple[int, bool]:
        """Return the position of a child without words in the translation, and whether it is after a word.

        Args:
            child: A standalone code, or an element whose words are not linked, or linked only to words of siblings.
            parent: Its parent.
            words: The start and end of the parent's words in the translation.
        """
        source, target, position = self.source, self.target, child.start
        start, end = source.space_start[position], source.space_end[position]
        if start <= parent.start:
            return self._position_before(words[0], position), False
        if end >= parent.end:
            return self._position_after(words[1], position), True
        if start < position == end and self.last[position] and not child.span[1]:
            return target.word_start[self.first[position]], False
        linked = self.linked_before[position]
        if linked < parent.start:
            return words[0], False
        word_end = self.last[linked]
        if not source.inside_word[linked + 1]:
            word_end = target.word_end[word_end]
        return self._position_after(word_end, position), True

    def _position_before(self, word: int, position: int) -> int:
        """Return the position of a code before a word that starts at ``word`` in the translation.

        The whitespace between code and word is that of the source, where the code is at ``position``. If the
        translation has too little, the whitespace on the other side of the code takes precedence.
        """
        inner = self.source.space_end[position] - position
        outer = position - self.source.space_start[position]
        return max(word - inner, min(word, self.target.space_start[word] + outer))

    def _position_after(self, word: int, position: int) -> int:
        """Return the position of a code after a word that ends at ``word`` in the translation; see
        ``_position_before``."""
        inner = position - self.source.space_start[position]
        outer = self.source.space_end[position] - position
        return min(word + inner, max(word, self.target.space_end[word] - outer))

    def _has_words(self, element: Element) -> bool:
        return self.source.space_end[element.start] < element.end

    def _is_all_of(self, element: Element, parent: Element) -> bool:
        """Return whether an element has all words of its parent."""
        return (
            self.source.space_end[parent.start] >= element.start and self.source.space_start[parent.end] <= element.end
        )


def _clamp(position: int, start: int, end: int) -> int:
    return min(max(position, start), end)
