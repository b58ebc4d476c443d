"""Fields of a SentencePiece model file.

The file is a protobuf message (``sentencepiece_model.proto`` of google/sentencepiece). The few needed fields are read
by hand, because the generated reader needs a protobuf library of a matching version.
"""

import struct
from collections.abc import Iterator

TOKENIZER_FILES = ("source.model", "target.model", "tokenizer.model")
"""The tokenizers of a run or model folder: the last one if both sides share it, otherwise the others."""
PIECES, TRAINER_SPEC, NORMALIZER_SPEC = 1, 2, 3
"""Fields of a model."""
PIECE_TEXT, PIECE_TYPE = 1, 3
"""Fields of a piece."""
UNKNOWN, CONTROL, BYTE = 2, 3, 6
"""Types of pieces without a text."""
MODEL_TYPE, CHARACTER_COVERAGE = 3, 10
"""Fields of the trainer's specification."""
UNIGRAM = 1
"""A model type."""
NAME = 1
"""Field of the normalizer's specification."""
APPENDED = 1000
"""A field of this project in a model. SentencePiece leaves numbers from 200 on to others and ignores them."""


def normalization(model: bytes) -> str:
    """Return the name of a model's normalisation, such as ``nmt_nfkc``."""
    return field(field(model, NORMALIZER_SPEC), NAME).decode()


def character_coverage(model: bytes) -> float:
    """Return the share of the training text's characters with pieces of their own."""
    stored = field(field(model, TRAINER_SPEC), CHARACTER_COVERAGE)
    (coverage,) = struct.unpack("<f", stored) if stored else (0.9995,)  # protobuf need not store the default
    return round(coverage, 6)  # back to the decimal number that was stored in 32 bits


def is_unigram(model: bytes) -> bool:
    """Return whether the model ranks segmentations by a unigram language model."""
    return _integer(field(model, TRAINER_SPEC), MODEL_TYPE, default=UNIGRAM) == UNIGRAM


def text_pieces(model: bytes) -> list[str]:
    """Return the pieces that stand for text: all but bytes, control pieces and the unknown one."""
    pieces = [content for number, content in _fields(model) if number == PIECES]
    return [
        field(piece, PIECE_TEXT).decode()
        for piece in pieces
        if _integer(piece, PIECE_TYPE, default=1) not in (UNKNOWN, CONTROL, BYTE)
    ]


def _integer(message: bytes, number: int, default: int) -> int:
    content = field(message, number)
    return _varint(content, 0)[0] if content else default


def field(message: bytes, number: int) -> bytes:
    """Return the bytes of the last field of this number, as protobuf does; no bytes if there is none."""
    return dict(_fields(message)).get(number, b"")


def appended_field(content: bytes) -> bytes:
    """Return the field APPENDED with this content, encoded for the file."""
    return _as_varint(APPENDED << 3 | 2) + _as_varint(len(content)) + content


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the number and the bytes of every field."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        match key & 7:  # the wire type: how the value is written
            case 0:  # an integer of variable length
                start = position
                _, position = _varint(message, position)
            case 1:  # 64 bits
                start, position = position, position + 8
            case 2:  # a length and so many bytes
                length, start = _varint(message, position)
                position = start + length
            case 5:  # 32 bits
                start, position = position, position + 4
            case other:
                raise ValueError(f"a SentencePiece model has no field of wire type {other}")
        yield key >> 3, message[start:position]


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Return the integer that begins at ``position``, seven bits in each byte, the lowest first, and its end."""
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
