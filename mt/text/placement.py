"""Finds where the tags of a text belong in its translation. ``mt.text.markup`` says by which rules.

Time is in O(n log n), where n is the number of characters, tags and linked characters. Nothing is recursive, so the
depth of nested elements has no limit.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mt.text.borders import Borders


@dataclass(frozen=True)
class Link:
    """Says that the target characters from ``target_start`` to ``target_end`` come from those of the source."""

    source_start: int
    source_end: int
    target_start: int
    target_end: int


@dataclass
class Node:
    """An element or a point of a text."""

    opening: str
    """The opening tag as it was written, or the point."""
    closing: str | None
    """The closing tag; None for a point."""
    parent: int
    """The number of the element around it."""
    start: int
    end: int
    """The position of the opening and of the closing tag in the text."""
    blank_before: bool = False
    blank_after: bool = False
    """Whether white space was next to a point, if tags of elements are ignored."""
    replaces_blank: tuple[bool, bool] = (False, False)
    """Whether the opening and the closing tag stand for the blank that follows in the text."""


class Tag(NamedTuple):
    """An opening or closing tag, or a point, at its position in the translation."""

    position: int
    node: Node
    closes: bool


def place_tags(nodes: Sequence[Node], source: str, target: str, links: Iterable[Link]) -> list[Tag]:
    """Returns all tags in the order in which they stand in the translation.

    Args:
        nodes: Elements and points in the order of their opening tags. The first is the root, which is the whole text.
        source: The text.
        target: The translation, which is not blank.
        links: Which characters of the translation come from which of the text. If they connect no words, words are
            linked by their relative places.
    """
    placement = _Placement(nodes, Borders(source), Borders(target), links)
    return _in_order(nodes, placement.children, placement.places)


def tags_as_they_are(nodes: Sequence[Node]) -> list[Tag]:
    """Returns all tags in the order and at the positions that they have in the text itself."""
    return _in_order(nodes, _children(nodes), [(node.start, node.end) for node in nodes])


def _in_order(nodes: Sequence[Node], children: Sequence[Sequence[int]], places: Sequence[tuple[int, int]]) -> list[Tag]:
    tags: list[Tag] = []
    waiting = [(0, False)]
    while waiting:
        number, closes = waiting.pop()
        tags.append(Tag(places[number][closes], nodes[number], closes))
        if not closes and nodes[number].closing is not None:
            waiting.append((number, True))
            waiting.extend((child, False) for child in reversed(children[number]))
    return tags


def _children(nodes: Sequence[Node]) -> list[list[int]]:
    """Returns the numbers of each node's children, in order."""
    children: list[list[int]] = [[] for _ in nodes]
    for number, node in enumerate(nodes[1:], 1):
        children[node.parent].append(number)
    return children


class _Placement:
    def __init__(self, nodes: Sequence[Node], source: Borders, target: Borders, links: Iterable[Link]) -> None:
        self.nodes, self.source, self.target = nodes, source, target
        self.children = _children(nodes)
        """The numbers of each node's children, which are put into the order of the translation."""
        self.places = [(0, target.length)] * len(nodes)
        """The positions of each node's opening and closing tag in the translation."""
        self.words: list[tuple[int, int] | None] = [None] * len(nodes)
        """The start and end of each element's words in the translation; None if it has none."""
        self.words[0] = (target.blank_end[0], target.blank_start[target.length])

        self.first, self.last = [target.length] * source.length, [0] * source.length
        """For each source character, the start and end of the target characters that it is linked to; without any, the
        end is 0."""
        self._link(links)
        if not any(self.last):
            self._link(_relative_links(source.words(), target.words(), source.length, target.length))
        self.linked_before = [-1]
        """The last linked character before each position; -1 if there is none."""
        for place, last in enumerate(self.last):
            self.linked_before.append(place if last else self.linked_before[-1])
        self.spans = self._spans()

        for number in range(len(nodes)):  # parents come before their children
            words = self.words[number]
            if words:
                self._place_children(number, words)
            else:
                self._keep_children(number)

    def _link(self, links: Iterable[Link]) -> None:
        for link in links:
            start, end = self.target.blank_end[link.target_start], self.target.blank_start[link.target_end]
            for place in range(link.source_start, link.source_end) if start < end else ():
                if self.source.blank_end[place] == place:  # blanks have no link
                    self.first[place] = min(self.first[place], start)
                    self.last[place] = max(self.last[place], end)

    def _spans(self) -> list[tuple[int, int]]:
        """Returns for each node the smallest span of the target that holds all links of its words. Without links, the
        span's end is 0.

        Each character is looked at only once, for the innermost element that it is in.
        """
        spans = [(self.target.length, 0)] * len(self.nodes)
        for number in range(len(self.nodes) - 1, -1, -1):
            place = self.nodes[number].start
            start, end = spans[number]
            for child in self.children[number]:
                between = slice(place, self.nodes[child].start)
                start = min(start, spans[child][0], *self.first[between])
                end = max(end, spans[child][1], *self.last[between])
                place = self.nodes[child].end
            rest = slice(place, self.nodes[number].end)
            spans[number] = min([start, *self.first[rest]]), max([end, *self.last[rest]])
        return spans

    def _keep_children(self, number: int) -> None:
        """Places the children of an element that has no words. They remain as they are, as far as there is room."""
        start, end = self.places[number]
        shift = start - self.nodes[number].start
        for child in self.children[number]:
            node = self.nodes[child]
            self.places[child] = min(end, node.start + shift), min(end, node.end + shift)

    def _place_children(self, number: int, words: tuple[int, int]) -> None:
        parent = self.nodes[number]
        start, end = self.places[number]
        spanning: list[tuple[int, int, int]] = []  # start and end of the words, and the child
        loose: list[tuple[int, bool, int]] = []  # the position, whether it is after a word, and the child
        for child in self.children[number]:
            node = self.nodes[child]
            if self._has_words(node) and self._is_all_of(node, parent):
                spanning.append((*words, child))
            elif self.spans[child][1]:
                first, last = (min(max(place, words[0]), words[1]) for place in self.spans[child])
                spanning.append((first, last, child))
            else:
                loose.append((*self._beside(node.start, parent, words), child))

        spanning, crowded_out = self._disentangle(spanning, words)
        loose += crowded_out
        taken: list[tuple[int, int]] = []
        for first, last, child in spanning:
            node = self.nodes[child]
            free = taken[-1][1] if taken else start
            place = max(self._before(first, node.start), free), min(self._after(last, node.end), end)
            taken.append(place)
            self.places[child], self.words[child] = place, (first, last)

        order = [(place[0], 1, child) for place, (_, _, child) in zip(taken, spanning, strict=True)]
        for position, after, child in loose:
            position = min(max(position, start), end)
            left = bisect_left(taken, (position,)) - 1
            if left >= 0 and position < taken[left][1]:  # inside of a sibling
                position = taken[left][after]
            order.append((position, 0, child))
        order.sort()
        self.children[number] = [child for _, _, child in order]
        self._keep_white_space(order, end)

    def _keep_white_space(self, order: list[tuple[int, int, int]], end: int) -> None:
        """Places the children that have no words in the translation. They can only hold white space."""
        following = [place for place, spans, _ in order if spans]
        free = 0
        for position, spans, child in order:
            if spans:
                continue
            node = self.nodes[child]
            position = max(position, free)
            number = bisect_left(following, position)
            limit = min([end, self.target.blank_end[position], *following[number : number + 1]])
            length = 0 if self._has_words(node) else node.end - node.start
            free = min(position + length, limit)
            self.places[child] = position, free

    def _disentangle(
        self, spanning: list[tuple[int, int, int]], words: tuple[int, int]
    ) -> tuple[list[tuple[int, int, int]], list[tuple[int, bool, int]]]:
        """Cuts the spans of siblings so that they do not overlap, and then extends them to the borders of words.

        Returns:
            The spans in order, and the places of the children whose spans are used up.
        """
        source, target = self.source, self.target
        kept: list[tuple[int, int, int]] = []
        crowded_out: list[tuple[int, bool, int]] = []
        free = words[0]
        for (first, last, child), following in _with_next(sorted(spanning), words[1]):
            first = max(first, free)
            if first < following:
                last = min(last, following)
            if target.blank_end[first] < target.blank_start[last]:
                first, last = target.blank_end[first], target.blank_start[last]
                kept.append((first, last, child))
                free = last
            else:
                crowded_out.append((first, True, child))
        extended: list[tuple[int, int, int]] = []
        free = words[0]
        for (first, last, child), following in _with_next(kept, words[1]):
            if not source.inside_word[source.blank_end[self.nodes[child].start]]:
                first = max(target.word_start[first], free)
            if not source.inside_word[source.blank_start[self.nodes[child].end]]:
                last = min(target.word_end[last], following)
            extended.append((first, last, child))
            free = last
        return extended, crowded_out

    def _beside(self, place: int, parent: Node, words: tuple[int, int]) -> tuple[int, bool]:
        """Returns the position of what has no words in the translation, and whether it is after a word.

        Args:
            place: Its position in the text.
            parent: The element around it.
            words: The start and end of the parent's words in the translation.
        """
        source, target = self.source, self.target
        start, end = source.blank_start[place], source.blank_end[place]
        if start <= parent.start:
            return self._before(words[0], place), False
        if end >= parent.end:
            return self._after(words[1], place), True
        if start < place == end and self.last[place]:
            return target.word_start[self.first[place]], False
        linked = self.linked_before[place]
        if linked < parent.start:
            return words[0], False
        position = self.last[linked]
        if not source.inside_word[linked + 1]:
            position = target.word_end[position]
        return self._after(position, place), True

    def _before(self, word: int, place: int) -> int:
        """Returns where a tag stands in front of a word that starts at ``word`` in the translation.

        Between tag and word there is the white space that was between them in the text, where the tag was at ``place``.
        If there is now less white space, that on the other side of the tag comes first.
        """
        inner = self.source.blank_end[place] - place
        outer = place - self.source.blank_start[place]
        return max(word - inner, min(word, self.target.blank_start[word] + outer))

    def _after(self, word: int, place: int) -> int:
        """Returns where a tag stands after a word that ends at ``word``; see ``_before``."""
        inner = place - self.source.blank_start[place]
        outer = self.source.blank_end[place] - place
        return min(word + inner, max(word, self.target.blank_end[word] - outer))

    def _has_words(self, node: Node) -> bool:
        return self.source.blank_end[node.start] < node.end

    def _is_all_of(self, node: Node, parent: Node) -> bool:
        """Returns whether all words of a parent are in one of its children."""
        return self.source.blank_end[parent.start] >= node.start and self.source.blank_start[parent.end] <= node.end


def _with_next(spans: list[tuple[int, int, int]], end: int) -> list[tuple[tuple[int, int, int], int]]:
    """Returns each span with the start of the next, or with ``end`` if it is the last."""
    return list(zip(spans, [*(first for first, _, _ in spans[1:]), end], strict=False))


def _relative_links(
    sources: list[tuple[int, int]], targets: list[tuple[int, int]], source_length: int, target_length: int
) -> list[Link]:
    """Links each word of the text to the words at the same relative place of the translation, to at least one."""
    starts, ends = ([target[side] for target in targets] for side in (0, 1))
    scale = target_length / max(1, source_length)
    links: list[Link] = []
    for start, end in sources:
        first = _nearest(starts, start * scale)
        last = max(first, _nearest(ends, end * scale))
        links.append(Link(start, end, starts[first], ends[last]))
    return links


def _nearest(places: list[int], wanted: float) -> int:
    """Returns the index of the place that is nearest to the one that is wanted; of two, the first."""
    right = min(bisect_right(places, wanted), len(places) - 1)
    left = max(right - 1, 0)
    return left if wanted - places[left] <= places[right] - wanted else right
