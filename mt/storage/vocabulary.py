"""Reads the few needed fields of a SentencePiece model file, and the vocabulary of a MarianMT model.

A SentencePiece model file is a protobuf message (``sentencepiece_model.proto`` of google/sentencepiece). It is parsed
by hand, because the generated parser needs a protobuf library of a matching version.

In MarianMT, SentencePiece only segments text, and a separate list gives the ids. The list may lack pieces of the
SentencePiece model, which become UNK. It may have other pieces: rare characters, pieces of the other language, and
names of target languages such as ``>>fr<<``. We store the list in the field APPENDED of the SentencePiece model's file,
so that a tokenizer is one file.

The ids of the special tokens differ: ours are PAD, UNK, BOS and EOS. "Our id" and "MarianMT's id" are distinguished
below.
"""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property

TOKENIZER_FILES = ("source.model", "target.model", "tokenizer.model")
"""The tokenizers of a run or model folder: the last one if both sides share it, otherwise the others."""
PIECES, TRAINER_SPEC, NORMALIZER_SPEC = 1, 2, 3
"""Numbers of fields of a model."""
PIECE_TEXT, PIECE_SCORE, PIECE_TYPE = 1, 2, 3
"""Numbers of fields of a piece."""
UNKNOWN, CONTROL, BYTE = 2, 3, 6
"""Types of pieces that do not stand for text."""
USER_DEFINED = bytes([PIECE_TYPE << 3, 4])
"""The encoded type of a user-defined symbol, which is the last field of its piece."""
MODEL_TYPE, CHARACTER_COVERAGE = 3, 10
"""Numbers of fields of the trainer specification."""
FIRST_RESERVED = "\U0010c000"
"""The first of the private-use characters that stand for values, terms, corpus tags and symbols. A symbol has none."""
UNIGRAM = 1
"""The model type of unigram language models."""
NAME = 1
"""Number of a field of the normalizer specification."""
APPENDED = 1000
"""Number of this project's own field in a model. SentencePiece ignores fields with numbers from 200 on."""

PAD, UNK, BOS, EOS = SPECIAL_TOKENS = 0, 1, 2, 3


def normalization(model: bytes) -> str:
    """Return the name of a model's normalization, such as ``nmt_nfkc``."""
    return field(field(model, NORMALIZER_SPEC), NAME).decode()


def character_coverage(model: bytes) -> float:
    """Return the share (0–1) of the characters of the training text that the vocabulary covers."""
    stored = field(field(model, TRAINER_SPEC), CHARACTER_COVERAGE)
    (coverage,) = struct.unpack("<f", stored) if stored else (0.9995,)  # protobuf need not store the default
    return round(coverage, 6)  # back to the decimal number that was stored in 32 bits


def is_unigram(model: bytes) -> bool:
    """Return whether the model's type is unigram, and not BPE, word or char."""
    return _integer(field(model, TRAINER_SPEC), MODEL_TYPE, default=UNIGRAM) == UNIGRAM


def user_symbols(model: bytes) -> list[str]:
    """Return the user-defined symbols of a model, the longest first. Placeholders and the corpus tag are skipped."""
    symbols = [field(piece, PIECE_TEXT).decode() for piece in _pieces(model) if piece.endswith(USER_DEFINED)]
    return sorted((symbol for symbol in symbols if symbol < FIRST_RESERVED), key=len, reverse=True)


def with_names(model: bytes, names: Mapping[str, str]) -> bytes:
    """Return a model with other texts for some of its pieces."""
    changed = bytearray()
    for number, content in _fields(model):
        if number == PIECES and (name := names.get(field(content, PIECE_TEXT).decode())):
            content += encoded_field(PIECE_TEXT, name.encode())  # of a field that occurs twice, the last one counts
        changed += encoded_field(number, content)
    return bytes(changed)


def with_pieces(model: bytes, scores: Mapping[str, float], kind: bytes = b"") -> bytes:
    """Return a model with more pieces, behind its other ones, given the score of each: pieces of text, or those of the
    encoded type ``kind``."""
    for text, score in scores.items():
        number = bytes([PIECE_SCORE << 3 | 5]) + struct.pack("<f", score)
        model += encoded_field(PIECES, encoded_field(PIECE_TEXT, text.encode()) + number + kind)
    return model


def text_pieces(model: bytes) -> list[str]:
    """Return the pieces of a model in the order of their ids, without bytes, control pieces and the unknown piece."""
    return [
        field(piece, PIECE_TEXT).decode()
        for piece in _pieces(model)
        if _integer(piece, PIECE_TYPE, default=1) not in (UNKNOWN, CONTROL, BYTE)
    ]


def _pieces(model: bytes) -> Iterator[bytes]:
    return (content for number, content in _fields(model) if number == PIECES)


def _integer(message: bytes, number: int, default: int) -> int:
    content = field(message, number)
    return _varint(content, 0)[0] if content else default


def field(message: bytes, number: int) -> bytes:
    """Return the content of the last field with a number, as protobuf defines it; empty bytes if there is none."""
    return dict(_fields(message)).get(number, b"")


def encoded_field(number: int, content: bytes) -> bytes:
    """Return an encoded field with a content, to be appended to the bytes of a message."""
    return _as_varint(number << 3 | 2) + _as_varint(len(content)) + content


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the content of every field, in the order of the file."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        match key & 7:  # the wire type: how the value is written
            case 0:  # an integer of variable length
                start = position
                _, position = _varint(message, position)
            case 2:  # a length and so many bytes
                length, start = _varint(message, position)
                position = start + length
            case 5:  # 32 bits
                start, position = position, position + 4
            case other:
                raise ValueError(f"a SentencePiece model has no field of wire type {other}")
        yield key >> 3, message[start:position]


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Decode the integer at ``position``: seven bits in each byte, the lowest first.

    Returns:
        The integer and the position behind it.
    """
    value = shift = 0
    while True:
        byte = message[position]
        value |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return value, position


def _as_varint(value: int) -> bytes:
    written = bytearray()
    while value >= 128:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


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
            ValueError: The appended vocabulary is corrupted.
        """
        content = field(model, APPENDED)
        if not content:
            return None
        try:
            vocabulary = cls(**json.loads(content))
            vocabulary.check()
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"its vocabulary is corrupted: {error}") from None
        return vocabulary

    def appended_to(self, model: bytes) -> bytes:
        """Return the file of a SentencePiece model with this vocabulary appended."""
        content = json.dumps(asdict(self), ensure_ascii=False, separators=(",", ":"))
        return model + encoded_field(APPENDED, content.encode())

    def removed_from(self, model: bytes) -> bytes:
        """Return a file that ``appended_to`` made without the vocabulary."""
        return model[: -len(encoded_field(APPENDED, field(model, APPENDED)))]

    def check(self) -> None:
        """Raise ValueError unless pieces are unique texts and special pieces have different ids in the vocabulary."""
        special = list(self.special.values())
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
        for number, marian_number in self.special.items():
            index = order.index(marian_number)
            order[number], order[index] = order[index], order[number]
        return order

    @cached_property
    def special(self) -> dict[int, int]:
        """Our id of each special piece → MarianMT's."""
        start = {} if self.start == self.pad else {BOS: self.start}
        return {PAD: self.pad, UNK: self.unk, **start, EOS: self.eos}
