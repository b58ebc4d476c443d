"""Tags in front of sources, such as ``<2fr>``, which tell a multilingual model the target language.

The model reads a tag as text; it is not a value. The text layer removes it, and adds it to each segment.
"""

from collections import Counter
from collections.abc import Collection, Iterable

import regex

TAG = regex.compile(r"(?=.*\p{L}).*[\p{P}\p{S}\p{N}].*")
"""Matches a first word that can be a tag."""
MIN_TAG_SHARE, MIN_TAGGED_SHARE = 0.001, 0.5
"""Minimum share of the sources that begin with one tag, and of those that begin with any tag."""


def learn_tags(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return the tags of training pairs, sorted: first words that many sources share and no target has."""
    sources: Counter[str] = Counter()
    target_words: set[str] = set()
    for source, target in pairs:
        sources[source.partition(" ")[0]] += 1
        target_words.update(target.split())
    min_count = MIN_TAG_SHARE * sources.total()
    tags = {word for word, count in sources.items() if count > min_count and TAG.fullmatch(word)} - target_words
    return sorted(tags) if sum(map(sources.__getitem__, tags)) >= MIN_TAGGED_SHARE * sources.total() else []


def split_tag(text: str, tags: Collection[str]) -> tuple[str, str]:
    """Return the tag in front of a text, with its space, and the text without it."""
    tag, space, rest = text.partition(" ")
    return (tag + space, rest) if tag in tags else ("", text)
