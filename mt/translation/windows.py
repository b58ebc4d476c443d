"""Cuts a stream of lines into windows that fit in memory."""

from collections.abc import Iterable, Iterator

WINDOW_LINES = 4096
"""How many lines of a stream are read, sorted by length and translated together. The limit bounds the memory."""
WINDOW_CHARACTERS = 2_000_000


def windows(lines: Iterable[str], one_by_one: bool = False) -> Iterator[list[str]]:
    """Cut a stream of lines into windows of bounded size, or into single lines if a person waits for each answer."""
    window: list[str] = []
    characters = 0
    for line in lines:
        window.append(line)
        characters += len(line)
        if one_by_one or len(window) == WINDOW_LINES or characters >= WINDOW_CHARACTERS:
            yield window
            window, characters = [], 0
    if window:
        yield window
