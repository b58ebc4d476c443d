"""A vocabulary in which SentencePiece does not number the pieces itself: that of a MarianMT model.

There, SentencePiece only cuts, and a list for each language or for both numbers the pieces. The list may lack some
pieces of the SentencePiece model, which become UNK, and may have others: rare characters, pieces of the other language,
and names of target languages such as ``>>fr<<``. The list is kept in the SentencePiece model's own file, in a field of
the numbers that its format leaves to others, so that a tokenizer remains one file.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

from mt.text.sentencepiece_file import APPENDED, appended_field, field

PAD, UNK, BOS, EOS = SPECIAL = 0, 1, 2, 3


@dataclass(frozen=True)
class Vocabulary:
    """The pieces of a model that comes from elsewhere, and the numbers that its special pieces have there."""

    pieces: list[str]
    """In the order of their numbers there."""
    pad: int
    unk: int
    start: int
    """The piece that the decoder reads first. It may be ``pad``; then BOS is no piece, and 2 is like other numbers."""
    eos: int
    joint: bool
    """Whether the vocabulary is that of both languages, and the embeddings, too."""

    @classmethod
    def kept_in(cls, model: bytes) -> "Vocabulary | None":
        """Returns the vocabulary that a file keeps; None if SentencePiece numbers its pieces itself.

        Raises:
            ValueError: It is damaged.
        """
        content = field(model, APPENDED)
        if not content:
            return None
        try:
            found = cls(**json.loads(content))
            found.refuse_impossible_numbers()
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"its vocabulary is damaged: {error}") from None
        return found

    def appended_to(self, model: bytes) -> bytes:
        """Returns the file of a SentencePiece model with this vocabulary in it."""
        return model + appended_field(json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode())

    def removed_from(self, model: bytes) -> bytes:
        """Returns the file as it was before the vocabulary was appended."""
        return model[: -len(appended_field(field(model, APPENDED)))]

    def refuse_impossible_numbers(self) -> None:
        """Raises ValueError if pieces are the same, or special pieces have no number or the same one."""
        special = [number for _, number in self._places()]
        if not all(isinstance(piece, str) for piece in self.pieces) or len(set(self.pieces)) < len(self.pieces):
            raise ValueError("its pieces are not different texts")
        if len(set(special)) < len(special) or not all(number in range(len(self.pieces)) for number in special):
            raise ValueError("its special pieces do not have different numbers within the vocabulary")
        if len(self.pieces) <= EOS:
            raise ValueError("it has too few pieces")

    @cached_property
    def order(self) -> list[int]:
        """The number there of each of our numbers.

        The special pieces change places with those that have our numbers for them there; all others keep their numbers.
        """
        order = list(range(len(self.pieces)))
        for ours, theirs in self._places():
            place = order.index(theirs)
            order[ours], order[place] = order[place], order[ours]
        return order

    @cached_property
    def special(self) -> set[int]:
        """Our numbers of the pieces that stand for no text."""
        return {ours for ours, _ in self._places()}

    @property
    def names(self) -> list[str]:
        """The pieces in the order of our numbers."""
        return [self.pieces[number] for number in self.order]

    def _places(self) -> Iterator[tuple[int, int]]:
        """Yields our number of each special piece, and its number there."""
        yield PAD, self.pad
        yield UNK, self.unk
        if self.start != self.pad:
            yield BOS, self.start
        yield EOS, self.eos
