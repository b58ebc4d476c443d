"""Drafts: translations of segments before their values, casing and tags are restored."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mt.text.markup.placement import AlignmentLink
from mt.text.segmentation.segment import Segment

LinkFunction = Callable[[Sequence[str], Sequence[str]], list[list[AlignmentLink]]]
"""Returns the links between the words of each source and target, in characters."""


@dataclass
class SegmentDraft:
    """A translation of one segment, with placeholders, and its word alignment to the segment's text."""

    segment: Segment
    text: str
    links: list[AlignmentLink] = field(default_factory=list)
    forms: dict[str, str] = field(default_factory=dict)
    """The target forms of terms, by their placeholders."""

    def filled(self, language: str) -> Segment:
        """Return the segment with the values that its translation into a language has."""
        return self.segment.with_forms(self.forms, self.text, language) if self.forms else self.segment

    def set_links(self, links: list[AlignmentLink], source: str) -> None:
        """Set the word alignment to the text ``source`` of the segment. The placeholder of a term is linked to itself
        alone."""
        terms = [
            AlignmentLink(start := source.index(token), start + 1, begin := self.text.index(token), begin + 1)
            for token in self.segment.terms
            if token in self.text and token in source
        ]
        self.links = terms + [
            link
            for link in links
            if not any(
                link.source_start <= term.source_start < link.source_end
                or link.target_start <= term.target_start < link.target_end
                for term in terms
            )
        ]
