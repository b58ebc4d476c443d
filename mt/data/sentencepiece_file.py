"""What a SentencePiece model file says of its own training.

The file is a protobuf message (``sentencepiece_model.proto`` of google/sentencepiece). The few fields that are wanted
are read here by hand, because the generated reader needs a protobuf library of a fitting version.
"""

import struct
from collections.abc import Iterator

TRAINER_SPEC, NORMALIZER_SPEC = 2, 3
"""Fields of a model."""
CHARACTER_COVERAGE = 10
"""Field of the trainer's specification, a float."""
NAME = 1
"""Field of the normalizer's specification, a string."""


def normalization(model: bytes) -> str:
    """The name of the normalisation, such as ``nmt_nfkc``."""
    return _field(_field(model, NORMALIZER_SPEC), NAME).decode()


def character_coverage(model: bytes) -> float:
    """The share of the training text's characters that was to get pieces of its own."""
    (coverage,) = struct.unpack("<f", _field(_field(model, TRAINER_SPEC), CHARACTER_COVERAGE))
    return round(coverage, 6)  # what was a decimal before it was stored in 32 bits


def _field(message: bytes, number: int) -> bytes:
    """The bytes of the last field of this number, which is the one that counts; none if there is no such field."""
    return dict(_fields(message)).get(number, b"")


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The number and the bytes of every field."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        match key & 7:  # how the value is written
            case 0:  # a number of any length
                start = place
                _, place = _varint(message, place)
            case 1:
                start, place = place, place + 8
            case 2:  # so many bytes
                length, start = _varint(message, place)
                place = start + length
            case 5:
                start, place = place, place + 4
            case other:
                raise ValueError(f"a SentencePiece model has no field of wire type {other}")
        yield key >> 3, message[start:place]


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """A number, seven bits in each byte and the lowest first, and where it ends."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place
