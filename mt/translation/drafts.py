"""Drafts: translations of segments before their values, casing and tags are restored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from mt.text.placement import AlignmentLink
from mt.text.segment import Segment

LinkFunction = Callable[[Sequence[str], Sequence[str]], list[list[AlignmentLink]]]
"""Returns the links between the words of each source and target, in characters."""


@dataclass
class SegmentDraft:
    """A translation of one segment, with placeholders, and its word alignment to the segment's text."""

    segment: Segment
    text: str
    links: list[AlignmentLink] = field(default_factory=list)
    forms: dict[str, tuple[str, ...]] = field(init=False)
    """The possible target forms of terms, by their placeholders."""
    filled: Segment = field(init=False)
    """The segment with the values of the translation: target forms in place of terms."""
    has_inserted_term: bool = field(init=False)
    """Whether the model did not write the target form of a term itself."""

    def __post_init__(self) -> None:
        self.forms = {token: term.forms for token, term in self.segment.terms.items()}
        self.filled = self.segment
        self.has_inserted_term = bool(self.forms)

    @property
    def first_forms(self) -> dict[str, str]:
        return {token: forms[0] for token, forms in self.forms.items()}


def set_links(drafts: Sequence[SegmentDraft], kind: Literal["masked", "text"], align: LinkFunction) -> None:
    """Set the word alignment between this text of each segment and its draft. Terms are aligned as words, and the links
    of these are those of the placeholder."""
    sources = [
        with_words(getattr(draft.segment, kind), {token: term.plain for token, term in draft.segment.terms.items()})
        for draft in drafts
    ]
    targets = [with_words(draft.text, draft.first_forms) for draft in drafts]
    texts = ([text for text, _ in side] for side in (sources, targets))
    for draft, (_, source), (_, target), links in zip(drafts, sources, targets, align(*texts), strict=True):
        draft.links = [
            AlignmentLink(
                source[link.source_start],
                source[link.source_end - 1] + 1,
                target[link.target_start],
                target[link.target_end - 1] + 1,
            )
            for link in links
        ]


def with_words(text: str, words: Mapping[str, str]) -> tuple[str, Sequence[int]]:
    """Return a text with words in place of placeholders, and the position in ``text`` that each character is from."""
    parts = [words.get(character, character) for character in text]
    return "".join(parts), [position for position, part in enumerate(parts) for _ in part]
