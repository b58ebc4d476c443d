"""Builds the content of placed elements: copied text moves into its element, and empty elements get a word.

Links may cross, so that no order of codes is consistent with all links. Then the text of the translation changes a
little. Copied text, such as a number, moves into its element. An element that has words in the source, but none in the
translation, gets the nearest word beside it. If there is no word beside it, it gets its source words.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeGuard

import regex

from mt.text.placement import PUNCTUATION, AlignmentLink, Element, Run
from mt.text.word_boundaries import SPACELESS

_WORD = rf"[{SPACELESS}]\p{{M}}*|[^\W{SPACELESS}]+(?:['’-][^\W{SPACELESS}]+)*"
FIRST_WORD, LAST_WORD = regex.compile(_WORD), regex.compile(rf"(?r){_WORD}")


class _CopiedText(str):
    """Text that is copied from the source. Its words are not moved into empty elements."""


class CopiedPiece(NamedTuple):
    """Copied text, or a part of it, in one run of the source."""

    link: AlignmentLink
    run: Run
    is_first: bool
    """Whether it comes before the words of its run."""


def split_at_codes(runs: Sequence[Run], source: str, kept: Iterable[AlignmentLink]) -> Iterator[CopiedPiece]:
    """Split copied text at the codes of the source."""
    index = 0
    for start, end, target, _ in sorted(kept):
        shift = target - start
        while start < end:
            while runs[index].end <= start:
                index += 1
            run = runs[index]
            last = min(run.end, end)
            is_first = not source[run.start : start].strip() and bool(source[last : run.end].strip())
            yield CopiedPiece(AlignmentLink(start, last, start + shift, last + shift), run, is_first)
            start = last


def remove_conflicts(links: Iterable[AlignmentLink], pieces: Sequence[CopiedPiece]) -> list[AlignmentLink]:
    """Link copied text to itself alone: replace all other links of its characters, and return the links."""
    kept = [piece.link for piece in pieces]
    sources = {position for link in kept for position in range(link.source_start, link.source_end)}
    targets = {position for link in kept for position in range(link.target_start, link.target_end)}
    return kept + [
        link
        for link in links
        if sources.isdisjoint(range(link.source_start, link.source_end))
        and targets.isdisjoint(range(link.target_start, link.target_end))
    ]


def set_parts(elements: Sequence[Element], source: str, target: str, pieces: Iterable[CopiedPiece]) -> None:
    """Set the ``parts`` of placed elements. The first element is the whole text."""
    pieces = sorted(pieces, key=lambda piece: piece.link.target_start)
    starts = [piece.link.target_start for piece in pieces]
    # Codes move out of copied text, to its start.
    inside = {
        position: start for _, _, start, end in (piece.link for piece in pieces) for position in range(start, end)
    }
    misplaced: list[CopiedPiece] = []

    def text_parts(owner: Element, start: int, end: int) -> Iterator[str]:
        """Yield the target text between two positions, without the copied text of other elements."""
        done = start
        for piece in pieces[bisect_left(starts, start) : bisect_left(starts, end)]:
            link, run = piece.link, piece.run
            text = _CopiedText(source[link.source_start : link.source_end])
            yield target[done : link.target_start]
            done = link.target_end
            if run.owner is owner:
                yield text
                continue
            misplaced.append(piece)
            before = target[max(0, link.target_start - 1) : link.target_start]
            if done < end and target[done] == " " and not before.strip():
                done += 1  # of the spaces on both sides, one stays
        yield target[done:end]

    for element in elements:
        done = element.left
        for child in element.children:
            child.left, child.right = (inside.get(side, side) for side in (child.left, child.right))
            element.parts += [*text_parts(element, done, child.left), child]
            done = child.right
        element.parts = [part for part in (*element.parts, *text_parts(element, done, element.right)) if part]
    if misplaced:
        _insert_misplaced(elements, source, misplaced)
    empty: set[Element | str] = set()
    for element in reversed(elements):  # children come before their parents
        if not any(
            part not in empty if isinstance(part, Element) else isinstance(part, _CopiedText) or FIRST_WORD.search(part)
            for part in element.parts
        ):
            empty.add(element)
    for element in elements:
        _fill_empty_children(element, empty, source)


def _insert_misplaced(elements: Iterable[Element], source: str, misplaced: Iterable[CopiedPiece]) -> None:
    """Insert copied text into its elements, beside the code that it is beside in the source."""
    insertions: dict[tuple[Element, str], list[str]] = defaultdict(list)
    for (start, end, *_), (_, _, owner, before, after), is_first in sorted(misplaced, key=lambda piece: piece.link):
        copied = _CopiedText(source[start:end])
        if is_first:
            key = (before, "after") if before else (owner, "first")
            insertions[key] += [copied, " " if source[end : end + 1].isspace() else ""]
        else:
            key = (after, "before") if after else (owner, "last")
            insertions[key] += [" " if source[start - 1 : start].isspace() else "", copied]
    for element in elements:
        parts: list[Element | str] = [*insertions.get((element, "first"), ())]
        for part in element.parts:
            if isinstance(part, Element):
                parts += [*insertions.get((part, "before"), ()), part, *insertions.get((part, "after"), ())]
            else:
                parts.append(part)
        last = insertions.get((element, "last"), [])
        if last and parts and _is_translated(text := parts[-1]):  # 3 is inserted before the full stop in "I have 3."
            words = text.rstrip(PUNCTUATION)
            parts[-1:], last = [words], [*last, text[len(words) :]]
        element.parts = [*parts, *last]


def _fill_empty_children(element: Element, empty: set[Element | str], source: str) -> None:
    """Move a word into each empty child of an element that has words in the source."""
    parts = element.parts
    done = element.parts = []
    for index, part in enumerate(parts):
        if part not in empty or isinstance(part, str) or not FIRST_WORD.search(source, part.start, part.end):
            done.append(part)
            continue
        before = done[-1] if done else ""
        after = parts[index + 1] if index + 1 < len(parts) else ""
        punctuation = "".join(child for child in part.parts if isinstance(child, str) and child.strip())
        rest = [child for child in part.parts if not isinstance(child, str) or child.isspace()]
        if _is_translated(after) and (match := FIRST_WORD.search(after)):
            done += [punctuation + after[: match.start()], part]
            part.parts = [*rest, match[0]]
            parts[index + 1] = after[match.end() :]
        elif _is_translated(before) and (match := LAST_WORD.search(before)):
            done[-1:] = [before[: match.start()], part, before[match.end() :] + punctuation]
            part.parts = [match[0], *rest]
        elif punctuation:
            done.append(part)
        else:
            is_beside = any(isinstance(child, Element) or child.strip() for child in done)
            is_apart = isinstance(before, str) and before[-1:].isspace()
            left = " " if is_beside and not is_apart else ""
            right = " " if isinstance(after, Element) or after.strip() else ""
            done += [left, part, right]
            part.parts = [source[part.start : part.end].strip(), *rest]


def _is_translated(part: Element | str) -> TypeGuard[str]:
    """Return whether a part is translated text, whose words may be moved into empty elements."""
    return isinstance(part, str) and not isinstance(part, _CopiedText)
