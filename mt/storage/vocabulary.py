"""The vocabulary of a MarianMT model: a list of pieces whose positions are the token ids.

In MarianMT, SentencePiece only segments text, and a separate list gives the ids. The list may lack pieces of the
SentencePiece model, which become UNK. It may have other pieces: rare characters, pieces of the other language, and
names of target languages such as ``>>fr<<``. We store the list in the field APPENDED of the SentencePiece model's file,
so that a tokenizer is one file.

The ids of the special tokens differ: ours are PAD, UNK, BOS and EOS. "Our id" and "MarianMT's id" are distinguished
below.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property

from mt.storage.sentencepiece_file import APPENDED, appended_field, field

PAD, UNK, BOS, EOS = SPECIAL_TOKENS = 0, 1, 2, 3


@dataclass(frozen=True)
class Vocabulary:
    """The pieces of a MarianMT model, and MarianMT's ids of the special pieces."""

    pieces: list[str]
    """In the order of MarianMT's ids."""
    pad: int
    unk: int
    start: int
    """The decoder's start token. If it is ``pad``, there is no BOS, and our id 2 is an ordinary piece."""
    eos: int
    joint: bool
    """Whether both languages share the vocabulary and the embeddings."""

    @classmethod
    def from_model(cls, model: bytes) -> "Vocabulary | None":
        """Read the vocabulary that was appended to a SentencePiece model file.

        Returns:
            The vocabulary; None if nothing was appended, so that SentencePiece's own ids count.

        Raises:
            ValueError: The appended vocabulary is damaged.
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
        """Return the file of a SentencePiece model with this vocabulary appended."""
        return model + appended_field(json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":")).encode())

    def removed_from(self, model: bytes) -> bytes:
        """Return a file that ``appended_to`` made without the vocabulary."""
        return model[: -len(appended_field(field(model, APPENDED)))]

    def check(self) -> None:
        """Raise ValueError unless pieces are unique texts and special pieces have different ids in the vocabulary."""
        special = [number for _, number in self._special_numbers()]
        if not all(isinstance(piece, str) for piece in self.pieces) or len(set(self.pieces)) < len(self.pieces):
            raise ValueError("its pieces are not different texts")
        if len(set(special)) < len(special) or not all(number in range(len(self.pieces)) for number in special):
            raise ValueError("its special pieces do not have different numbers within the vocabulary")
        if len(self.pieces) <= EOS:
            raise ValueError("it has too few pieces")

    @cached_property
    def order(self) -> list[int]:
        """MarianMT's id of each of our ids: ``order[ours]`` is MarianMT's.

        Each special piece swaps ids with the piece that has our id of it; all other pieces keep their ids.
        """
        order = list(range(len(self.pieces)))
        for number, marian_number in self._special_numbers():
            index = order.index(marian_number)
            order[number], order[index] = order[index], order[number]
        return order

    @cached_property
    def special(self) -> set[int]:
        """Our ids of the special pieces."""
        return {number for number, _ in self._special_numbers()}

    @property
    def names(self) -> list[str]:
        """The pieces in the order of our ids."""
        return [self.pieces[number] for number in self.order]

    def _special_numbers(self) -> Iterator[tuple[int, int]]:
        """Yield (our id, MarianMT's id) of each special piece."""
        yield PAD, self.pad
        yield UNK, self.unk
        if self.start != self.pad:
            yield BOS, self.start
        yield EOS, self.eos
