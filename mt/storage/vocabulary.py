"""The vocabulary of a MarianMT model: a list that numbers SentencePiece's pieces.

SentencePiece only segments the text. The list, one for each language or for both, may lack some of its pieces, which
become UNK, and have others: rare characters, pieces of the other language, and names of target languages such as
``>>fr<<``. It is stored in the SentencePiece model's own file, in the field APPENDED, so that a tokenizer is one file.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

from mt.storage.sentencepiece_file import APPENDED, appended_field, field

PAD, UNK, BOS, EOS = SPECIAL = 0, 1, 2, 3


@dataclass(frozen=True)
class Vocabulary:
    """The pieces of a MarianMT model, and its numbers of the special pieces."""

    pieces: list[str]
    """In the order of the MarianMT model's numbers."""
    pad: int
    unk: int
    start: int
    """The decoder's start token. It may be ``pad``; then there is no BOS, and 2 is an ordinary number."""
    eos: int
    joint: bool
    """Whether both languages share the vocabulary and the embeddings."""

    @classmethod
    def from_model(cls, model: bytes) -> "Vocabulary | None":
        """Return the vocabulary in a SentencePiece model file; None if SentencePiece numbers the pieces itself.

        Raises:
            ValueError: It is damaged.
        """
        content = field(model, APPENDED)
        if not content:
            return None
        try:
            vocabulary = cls(**json.loads(content))
            vocabulary.check()
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"its vocabulary is damaged: {error}") from None
        return vocabulary

    def appended_to(self, model: bytes) -> bytes:
        """Return the file of a SentencePiece model with this vocabulary in it."""
        return model + appended_field(json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode())

    def removed_from(self, model: bytes) -> bytes:
        """Return the file without the appended vocabulary."""
        return model[: -len(appended_field(field(model, APPENDED)))]

    def check(self) -> None:
        """Raise ValueError for duplicate pieces, and for special pieces without a number of their own."""
        special = [number for _, number in self._special_numbers()]
        if not all(isinstance(piece, str) for piece in self.pieces) or len(set(self.pieces)) < len(self.pieces):
            raise ValueError("its pieces are not different texts")
        if len(set(special)) < len(special) or not all(number in range(len(self.pieces)) for number in special):
            raise ValueError("its special pieces do not have different numbers within the vocabulary")
        if len(self.pieces) <= EOS:
            raise ValueError("it has too few pieces")

    @cached_property
    def order(self) -> list[int]:
        """The MarianMT model's number of each of our numbers.

        Each special piece swaps numbers with the piece that has our number for it; all others keep their numbers.
        """
        order = list(range(len(self.pieces)))
        for number, marian_number in self._special_numbers():
            index = order.index(marian_number)
            order[number], order[index] = order[index], order[number]
        return order

    @cached_property
    def special(self) -> set[int]:
        """Our numbers of the special pieces."""
        return {number for number, _ in self._special_numbers()}

    @property
    def names(self) -> list[str]:
        """The pieces in the order of our numbers."""
        return [self.pieces[number] for number in self.order]

    def _special_numbers(self) -> Iterator[tuple[int, int]]:
        """Yield our number of each special piece and the MarianMT model's."""
        yield PAD, self.pad
        yield UNK, self.unk
        if self.start != self.pad:
            yield BOS, self.start
        yield EOS, self.eos
