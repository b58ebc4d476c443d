"""Repairs placed tags: passed-through text goes back into its element, and an element that had words gets a word.

Links may cross, so that no order of tags suits them all. Then the translation's text changes a little. Text that is
passed through, such as a number, moves to its element. An element that is left without a word takes the nearest word
beside it, or from the sibling beside it. If there is none, it gets its own words, untranslated.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import regex

from mt.text.placement import PUNCTUATION, AlignmentLink, Node, PlacedTag, tags_as_they_are
from mt.text.word_boundaries import SPACELESS

_WORD = rf"[{SPACELESS}]\p{{M}}*|[^\W{SPACELESS}]+(?:['’-][^\W{SPACELESS}]+)*"
FIRST_WORD, LAST_WORD = regex.compile(_WORD), regex.compile(rf"(?r){_WORD}")


@dataclass(eq=False)
class _Piece:
    """Passed-through text of one element, and a tag that was beside it in the source."""

    source: tuple[int, int]
    target: tuple[int, int]
    owner: Node
    anchor: tuple[int, bool, bool]
    """The identity of the tag's node, whether the tag closes, and whether the text goes after the tag."""
    text: str = ""


@dataclass(eq=False)
class _Tree:
    """An element or standalone tag in the translation. Its parts are text, passed-through text and other nodes."""

    node: Node
    parts: list["_Tree | _Piece | str"] = field(default_factory=list)
    is_blank: bool = False
    """Whether it has no word, and nothing that is passed through."""


def with_kept_links(links: Iterable[AlignmentLink], kept: Sequence[AlignmentLink]) -> Iterator[AlignmentLink]:
    """Yield the links with each character of passed-through text linked to itself, and to nothing else."""
    sources, targets = set(), set()
    for link in kept:
        for position in range(link.source_end - link.source_start):
            source, target = link.source_start + position, link.target_start + position
            sources.add(source)
            targets.add(target)
            yield AlignmentLink(source, source + 1, target, target + 1)
    for link in links:
        if sources.isdisjoint(range(link.source_start, link.source_end)) and targets.isdisjoint(
            range(link.target_start, link.target_end)
        ):
            yield link


def repair_tags(
    nodes: Sequence[Node], source: str, target: str, tags: Sequence[PlacedTag], kept: Iterable[AlignmentLink]
) -> tuple[str, list[PlacedTag]]:
    """Put passed-through text into its elements, and fill elements that lost all their words.

    Args:
        nodes: The elements and standalone tags of the text; the first is the root.
        source: The text.
        target: Its translation.
        tags: The tags in the translation, in order, from ``place_tags``.
        kept: The links of passed-through text, which do not overlap. Both sides of each are equal.

    Returns:
        The translation, and the tags with their new positions.
    """
    pieces = sorted(_pieces(nodes, source, kept), key=lambda piece: piece.target)
    trees, misplaced = _trees(target, _outside(tags, pieces), pieces)
    for tree in trees if misplaced else ():
        _insert(tree, misplaced, source)
    for tree in reversed(trees):  # children come before their parents
        tree.is_blank = not any(
            not part.is_blank if isinstance(part, _Tree) else isinstance(part, _Piece) or FIRST_WORD.search(part)
            for part in tree.parts
        )
    for tree in trees:
        _fill(tree, source)
    return _flattened(trees[0])


def _pieces(nodes: Sequence[Node], source: str, kept: Iterable[AlignmentLink]) -> Iterator[_Piece]:
    """Cut passed-through text at the tags of the source."""
    runs = [(left, right) for left, right in pairwise(tags_as_they_are(nodes)) if left.position < right.position]
    index = 0
    for link in sorted(kept, key=lambda link: link.source_start):
        shift = link.target_start - link.source_start
        start = link.source_start
        while start < link.source_end:
            while runs[index][1].position <= start:
                index += 1
            (first, left, left_closes), (last, right, right_closes) = runs[index]
            end = min(last, link.source_end)
            is_first = not source[first:start].strip() and source[end:last].strip()
            owner = left if left.closing is not None and not left_closes else nodes[left.parent]
            anchor = (id(left), left_closes, True) if is_first else (id(right), right_closes, False)
            yield _Piece((start, end), (start + shift, end + shift), owner, anchor, source[start:end])
            start = end


def _outside(tags: Iterable[PlacedTag], pieces: Sequence[_Piece]) -> Iterator[PlacedTag]:
    """Move tags that are inside of passed-through text to its start, or to its end if the first of them closes."""
    index, moved = 0, -1
    for tag in tags:
        while index < len(pieces) and pieces[index].target[1] <= tag.position:
            index, moved = index + 1, -1
        if index < len(pieces) and pieces[index].target[0] < tag.position:
            moved = pieces[index].target[tag.closes] if moved < 0 else moved
            tag = tag._replace(position=moved)
        yield tag


def _trees(
    target: str, tags: Iterable[PlacedTag], pieces: Sequence[_Piece]
) -> tuple[list[_Tree], dict[tuple[int, bool, bool], list[_Piece]]]:
    """Return all nodes, parents first, and the misplaced passed-through text by the tag that it goes beside."""
    trees: list[_Tree] = []
    inside: list[_Tree] = []
    misplaced: dict[tuple[int, bool, bool], list[_Piece]] = defaultdict(list)
    remaining = iter([*pieces, None])
    piece = next(remaining)
    done = 0
    for position, node, closes in tags:
        while done < position:
            if piece and piece.target[0] == done:
                done = piece.target[1]
                if piece.owner is inside[-1].node:
                    inside[-1].parts.append(piece)
                else:
                    misplaced[piece.anchor].append(piece)
                    start, end = piece.target
                    done += target[end : end + 1] == " " and end < position and not target[:start][-1:].strip()
                piece = next(remaining)
            else:
                end = min(position, piece.target[0]) if piece else position
                inside[-1].parts.append(target[done:end])
                done = end
        if closes:
            inside.pop()
            continue
        trees.append(_Tree(node))
        if inside:
            inside[-1].parts.append(trees[-1])
        if node.closing is not None:
            inside.append(trees[-1])
    return trees, misplaced


def _insert(tree: _Tree, misplaced: dict[tuple[int, bool, bool], list[_Piece]], source: str) -> None:
    """Insert the misplaced text that belongs to an element."""

    def spaced(piece: _Piece, is_after: bool) -> Iterator[_Piece | str]:
        start, end = piece.source
        yield from (" ",) if not is_after and source[start - 1 : start].isspace() else ()
        yield piece
        yield from (" ",) if is_after and source[end : end + 1].isspace() else ()

    def pieces_at(node: Node, closes: bool, is_after: bool) -> list[_Tree | _Piece | str]:
        own = misplaced.get((id(node), closes, is_after), ())
        return [part for piece in own for part in spaced(piece, is_after)]

    parts = pieces_at(tree.node, False, True) if tree.node.closing is not None else []
    for part in tree.parts:
        if isinstance(part, _Tree):
            parts += [
                *pieces_at(part.node, False, False),
                part,
                *pieces_at(part.node, part.node.closing is not None, True),
            ]
        else:
            parts.append(part)
    last_pieces = pieces_at(tree.node, True, False)
    if last_pieces and parts and isinstance(last := parts[-1], str):  # 3 goes in front of the full stop in "I have 3."
        words = last.rstrip(PUNCTUATION)
        parts[-1:], last_pieces = [words], [*last_pieces, last[len(words) :]]
    tree.parts = parts + last_pieces


def _fill(tree: _Tree, source: str) -> None:
    """Give a word to each child of an element that had words and has none."""
    parts = tree.parts
    done = tree.parts = []
    for index, part in enumerate(parts):
        if not isinstance(part, _Tree) or not part.is_blank or not _has_words(part.node, source):
            done.append(part)
            continue
        before = done[-1] if done else ""
        after = parts[index + 1] if index + 1 < len(parts) else ""
        neighbour = next((child for child in reversed(done) if not isinstance(child, str) or child.strip()), None)
        marks = "".join(child for child in part.parts if isinstance(child, str) and child.strip())
        left, right, is_last = "", marks, False
        if isinstance(after, str) and (match := FIRST_WORD.search(after)):
            left, right, is_last, word = marks + after[: match.start()], "", True, match.group()
            parts[index + 1] = after[match.end() :]
        elif isinstance(before, str) and (match := LAST_WORD.search(before)):
            done[-1], word, right = before[: match.start()], match.group(), before[match.end() :] + marks
        elif isinstance(neighbour, _Tree) and (match := _take_last(neighbour)):
            left, word = match
        elif marks:
            done.append(part)
            continue
        else:
            left = " " * (neighbour is not None and not (isinstance(before, str) and before[-1:].isspace()))
            right = " " * (not isinstance(after, str) or bool(after.strip()))
            word = source[part.node.start : part.node.end].strip()
        rest = [child for child in part.parts if not isinstance(child, str) or child.isspace()]
        part.parts = [*rest, word] if is_last else [word, *rest]
        part.is_blank = False
        done += [left, part, right]


def _has_words(node: Node, source: str) -> bool:
    return FIRST_WORD.search(source, node.start, node.end) is not None


def _take_last(tree: _Tree) -> tuple[str, str] | None:
    """Remove the last word of an element and the blank before it, and return both; None if little would be left."""
    text: _Tree | _Piece | str = tree
    while isinstance(text, _Tree):
        tree, text = text, text.parts[-1] if text.parts else ""
    match = LAST_WORD.search(text) if isinstance(text, str) else None
    if not isinstance(text, str) or not match or not text[: match.start()].strip():
        return None
    rest = tree.parts[-1] = text[: match.start()].rstrip()
    return text[len(rest) : match.start()], text[match.start() :]


def _flattened(root: _Tree) -> tuple[str, list[PlacedTag]]:
    length, texts, tags = 0, [], []
    stack: list[_Tree | _Piece | str | PlacedTag] = [root]
    while stack:
        part = stack.pop()
        if isinstance(part, PlacedTag):
            tags.append(part._replace(position=length))
        elif isinstance(part, _Tree):
            tags.append(PlacedTag(length, part.node, False))
            if part.node.closing is not None:
                stack += [PlacedTag(0, part.node, True), *reversed(part.parts)]
        else:
            texts.append(part if isinstance(part, str) else part.text)
            length += len(texts[-1])
    return "".join(texts), tags
