"""Finds the positions of a text's tags in its translation, by the rules of ``mt.text.extraction``.

Time is in O(n log n), where n is the number of characters, tags and linked characters. Nothing is recursive, so the
depth of nested elements has no limit.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from mt.core.coded_text import Code
from mt.text.word_boundaries import WordBoundaries

ROOT = Code(0, "", -1)
"""Stands for the borders of the whole text."""
PUNCTUATION = ",;:.!?…/。，、；：！？"
"""Signs at the ends of an element's words that stay outside of it, unless the source has some inside."""


class AlignmentLink(NamedTuple):
    """A link of a word alignment: a span of the source and the span of the target that translates it, in characters."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


@dataclass
class Node:
    """An element or a standalone tag, with its position in the extracted text."""

    opening: Code
    """The opening or standalone code; ROOT for the whole text."""
    closing: Code | None
    """The closing code; None for a standalone code."""
    parent: int
    """The index of the innermost element around this node."""
    start: int
    end: int
    """The positions of the opening and the closing tag in the extracted text."""
    blank_before: bool = False
    blank_after: bool = False
    """Whether a standalone tag had white space in front of it or behind it, ignoring paired tags."""
    replaces_blank: tuple[bool, bool] = (False, False)
    """Whether the extracted text has a blank in place of the opening and of the closing tag."""


class PlacedTag(NamedTuple):
    """An opening or closing tag, or a standalone tag, at its position in the translation."""

    position: int
    node: Node
    closes: bool


def place_tags(nodes: Sequence[Node], source: str, target: str, links: Iterable[AlignmentLink]) -> list[PlacedTag]:
    """Find the position of every tag in a translation, and return the tags in the order of their positions.

    Args:
        nodes: Elements and standalone tags in the order of their opening tags. The first is the root, the whole text.
        source: The text.
        target: The translation, which is not blank.
        links: The links between the characters of both. If they connect no words, words are linked by their relative
            positions.
    """
    elements = _elements(nodes)
    _Placement(elements, WordBoundaries(source), WordBoundaries(target), links).place()
    return _in_order(elements[0])


def tags_as_they_are(nodes: Sequence[Node]) -> list[PlacedTag]:
    """Return all tags in order, at their positions in the extracted text."""
    return _in_order(_elements(nodes)[0])


@dataclass
class _Element:
    """A node and its position in the translation, which ``_Placement`` sets."""

    index: int
    node: Node
    start: int
    end: int
    """The positions of the opening and of the closing tag."""
    children: list["_Element"] = field(default_factory=list)
    """In the order of the text, then in that of the translation."""
    span: tuple[int, int] = (0, 0)
    """The start and end of the smallest span of the translation that holds all links of its words. Without links, the
    end is 0."""
    words: tuple[int, int] | None = None
    """The start and end of its words in the translation; None if it has none."""


def _elements(nodes: Sequence[Node]) -> list[_Element]:
    """Make the tree of the elements of all nodes, each still at its position in the extracted text."""
    elements = [_Element(index, node, node.start, node.end) for index, node in enumerate(nodes)]
    for element in elements[1:]:
        elements[element.node.parent].children.append(element)
    return elements


def _in_order(root: _Element) -> list[PlacedTag]:
    tags: list[PlacedTag] = []
    stack = [(root, False)]
    while stack:
        element, closes = stack.pop()
        tags.append(PlacedTag(element.end if closes else element.start, element.node, closes))
        if not closes and element.node.closing is not None:
            stack += [(element, True), *((child, False) for child in reversed(element.children))]
    return tags


class _Placement:
    """Computes the positions of one text's elements in its translation, and sets them in the elements."""

    def __init__(
        self, elements: list[_Element], source: WordBoundaries, target: WordBoundaries, links: Iterable[AlignmentLink]
    ) -> None:
        self.elements, self.source, self.target = elements, source, target
        self.first, self.last = [target.length] * source.length, [0] * source.length
        """The start and end of the target characters that each source character is linked to; without any, the end is
        0."""
        self._link(links)
        if not any(self.last):
            self._link(_relative_links(source, target))
        self.linked_before = [-1]
        """The last linked character before each position; -1 if there is none."""
        for index, last in enumerate(self.last):
            self.linked_before.append(index if last else self.linked_before[-1])

    def place(self) -> None:
        for element in reversed(self.elements):  # children come before their parents
            element.span = self._span(element)
        root = self.elements[0]
        root.start, root.end = 0, self.target.length
        root.words = (self.target.blank_end[0], self.target.blank_start[self.target.length])
        for element in self.elements:
            if element.words:
                self._place_children(element, element.words)
            else:
                # Without words, the children remain as they are, as far as there is room.
                shift = element.start - element.node.start
                for child in element.children:
                    child.start, child.end = (
                        min(element.end, position + shift) for position in (child.node.start, child.node.end)
                    )

    def _link(self, links: Iterable[AlignmentLink]) -> None:
        for link in links:
            start, end = self.target.blank_end[link.target_start], self.target.blank_start[link.target_end]
            for index in range(link.source_start, link.source_end) if start < end else ():
                if self.source.blank_end[index] == index:  # blanks have no link
                    self.first[index] = min(self.first[index], start)
                    self.last[index] = max(self.last[index], end)

    def _span(self, element: _Element) -> tuple[int, int]:
        """Return the smallest target span that holds all links of an element's words; its children have theirs.

        Each character is read only once, for the innermost element around it.
        """
        children = element.children
        starts = [element.node.start, *(child.node.end for child in children)]
        ends = [*(child.node.start for child in children), element.node.end]
        own = [slice(start, end) for start, end in zip(starts, ends, strict=True)]
        return (
            min([self.target.length, *(child.span[0] for child in children), *(n for s in own for n in self.first[s])]),
            max([0, *(child.span[1] for child in children), *(n for s in own for n in self.last[s])]),
        )

    def _place_children(self, parent: _Element, words: tuple[int, int]) -> None:
        for child in parent.children:
            if self._has_words(child.node) and self._is_all_of(child.node, parent.node):
                child.words = words
            elif child.span[1]:
                child.words = _clamp(child.span[0], *words), _clamp(child.span[1], *words)
        crowded_out = self._disentangle(parent, words)
        spanning = sorted((child for child in parent.children if child.words), key=lambda child: child.words or ())
        self._extend(spanning, parent, words)
        occupied = [(child.start, child.end) for child in spanning]
        for child in parent.children:
            if child.words:
                continue
            position, is_after = self._beside(child.node.start, parent.node, words)
            if child.index in crowded_out:
                position, is_after = crowded_out[child.index], True
            child.start = _clamp(position, parent.start, parent.end)
            left = bisect_left(occupied, (child.start,)) - 1
            if left >= 0 and child.start < occupied[left][1]:  # inside of a sibling
                child.start = occupied[left][is_after]
        parent.children.sort(key=lambda child: (child.start, child.words is not None, child.index))
        self._keep_white_space(parent)

    def _keep_white_space(self, parent: _Element) -> None:
        """Set the positions of the children without words in the translation, which can only contain white space."""
        next_starts = [child.start for child in parent.children if child.words]
        free = 0
        for child in parent.children:
            if child.words:
                continue
            child.start = max(child.start, free)
            index = bisect_left(next_starts, child.start)
            limit = min([parent.end, self.target.blank_end[child.start], *next_starts[index : index + 1]])
            length = 0 if self._has_words(child.node) else child.node.end - child.node.start
            child.end = free = min(child.start + length, limit)

    def _disentangle(self, parent: _Element, words: tuple[int, int]) -> dict[int, int]:
        """Cut the words of siblings so that they do not overlap.

        Returns:
            The position of each child of which nothing is left, by its index.
        """
        blank_start, blank_end = self.target.blank_start, self.target.blank_end
        crowded_out: dict[int, int] = {}
        spans = sorted((*child.words, child.index) for child in parent.children if child.words)
        free = words[0]
        for (first, last, index), (limit, *_) in pairwise([*spans, (words[1], 0, 0)]):
            first = max(first, free)
            if first < limit:
                last = min(last, limit)
            if blank_end[first] < blank_start[last]:
                free = blank_start[last]
                self.elements[index].words = blank_end[first], free
            else:
                self.elements[index].words = None
                crowded_out[index] = first
        return crowded_out

    def _extend(self, spanning: list[_Element], parent: _Element, words: tuple[int, int]) -> None:
        """Extend the words of siblings, which are in order, to the borders of words, and place their tags."""
        source, target = self.source, self.target
        limits = [*(child.words[0] for child in spanning[1:] if child.words), words[1]]
        free, free_for_tags = words[0], parent.start
        for child, limit in zip(spanning, limits, strict=False):
            node = child.node
            first, last = child.words or words
            if not source.inside_word[source.blank_end[node.start]]:
                first = max(target.word_start[first], free)
            if not source.inside_word[source.blank_start[node.end]]:
                last = min(target.word_end[last], limit)
            if not self._is_all_of(node, parent.node):
                first, last = self._without_punctuation(first, last, node)
            child.words, free = (first, last), last
            child.start = max(self._before(first, node.start), free_for_tags)
            child.end = free_for_tags = min(self._after(last, node.end), parent.end)

    def _without_punctuation(self, first: int, last: int, node: Node) -> tuple[int, int]:
        """Leave out punctuation at the ends of an element's words in the translation, unless the source has some
        there."""
        source, target = self.source.text[node.start : node.end].strip(), self.target
        words = target.text[first:last]
        start = first if source[0] in PUNCTUATION else last - len(words.lstrip(f"{PUNCTUATION} "))
        end = last if source[-1] in PUNCTUATION else first + len(words.rstrip(f"{PUNCTUATION} "))
        return (start, end) if start < end else (first, last)

    def _beside(self, position: int, parent: Node, words: tuple[int, int]) -> tuple[int, bool]:
        """Return the position in the translation of a node without words there, and whether it is after a word.

        Args:
            position: Its position in the text.
            parent: The element around it.
            words: The start and end of the parent's words in the translation.
        """
        source, target = self.source, self.target
        start, end = source.blank_start[position], source.blank_end[position]
        if start <= parent.start:
            return self._before(words[0], position), False
        if end >= parent.end:
            return self._after(words[1], position), True
        if start < position == end and self.last[position]:
            return target.word_start[self.first[position]], False
        linked = self.linked_before[position]
        if linked < parent.start:
            return words[0], False
        word_end = self.last[linked]
        if not source.inside_word[linked + 1]:
            word_end = target.word_end[word_end]
        return self._after(word_end, position), True

    def _before(self, word: int, position: int) -> int:
        """Return the position of a tag before a word that starts at ``word`` in the translation.

        Between tag and word there is the white space that was between them in the text, where the tag was at
        ``position``. If there is now less white space, that on the other side of the tag comes first.
        """
        inner = self.source.blank_end[position] - position
        outer = position - self.source.blank_start[position]
        return max(word - inner, min(word, self.target.blank_start[word] + outer))

    def _after(self, word: int, position: int) -> int:
        """Return the position of a tag after a word that ends at ``word``; see ``_before``."""
        inner = position - self.source.blank_start[position]
        outer = self.source.blank_end[position] - position
        return min(word + inner, max(word, self.target.blank_end[word] - outer))

    def _has_words(self, node: Node) -> bool:
        return self.source.blank_end[node.start] < node.end

    def _is_all_of(self, node: Node, parent: Node) -> bool:
        """Return whether all words of a parent are in one of its children."""
        return self.source.blank_end[parent.start] >= node.start and self.source.blank_start[parent.end] <= node.end


def _relative_links(source: WordBoundaries, target: WordBoundaries) -> list[AlignmentLink]:
    """Return links from each word of the text to the words at the same relative position of the translation, at least
    one."""
    starts, ends = zip(*target.words(), strict=True)
    scale = target.length / max(1, source.length)
    links: list[AlignmentLink] = []
    for start, end in source.words():
        first = _nearest(starts, start * scale)
        last = max(first, _nearest(ends, end * scale))
        links.append(AlignmentLink(start, end, starts[first], ends[last]))
    return links


def _nearest(positions: Sequence[int], wanted: float) -> int:
    """Return the index of the position nearest to the wanted one; of two, the first."""
    right = min(bisect_right(positions, wanted), len(positions) - 1)
    left = max(right - 1, 0)
    return left if wanted - positions[left] <= positions[right] - wanted else right


def _clamp(position: int, start: int, end: int) -> int:
    return min(max(position, start), end)
