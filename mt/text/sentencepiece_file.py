"""Reads from a SentencePiece model file how the model was trained, and what was appended to it.

The file is a protobuf message (``sentencepiece_model.proto`` of google/sentencepiece). The few fields that are needed
are read here by hand, because the generated reader needs a protobuf library of a matching version.
"""

import struct
from collections.abc import Iterator

TRAINER_SPEC, NORMALIZER_SPEC = 2, 3
"""Numbers of two fields of a model."""
CHARACTER_COVERAGE = 10
"""Number of a field of the trainer's specification, a float."""
NAME = 1
"""Number of a field of the normalizer's specification, a string."""
APPENDED = 1000
"""Number of a field of a model that is not SentencePiece's: its format leaves those from 200 on to others, and it reads
a file that has one as if it had none."""


def normalization(model: bytes) -> str:
    """Returns the name of a model's normalisation, such as ``nmt_nfkc``."""
    return field(field(model, NORMALIZER_SPEC), NAME).decode()


def character_coverage(model: bytes) -> float:
    """Returns the share of the training text's characters for which the training was to make pieces."""
    stored = field(field(model, TRAINER_SPEC), CHARACTER_COVERAGE)
    (coverage,) = struct.unpack("<f", stored) if stored else (0.9995,)  # protobuf need not store the default
    return round(coverage, 6)  # back to the decimal number that was stored in 32 bits


def field(message: bytes, number: int) -> bytes:
    """Returns the bytes of the last field of this number, the one that counts in protobuf; no bytes if there is no such
    field."""
    return dict(_fields(message)).get(number, b"")


def appended_field(content: bytes) -> bytes:
    """Returns the field APPENDED with this content, as it stands in a file."""
    return _as_varint(APPENDED << 3 | 2) + _as_varint(len(content)) + content


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the number and the bytes of every field."""
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        match key & 7:  # the wire type: how the value is written
            case 0:  # an integer of variable length
                start = place
                _, place = _varint(message, place)
            case 1:  # 64 bits
                start, place = place, place + 8
            case 2:  # a length and so many bytes
                length, start = _varint(message, place)
                place = start + length
            case 5:  # 32 bits
                start, place = place, place + 4
            case other:
                raise ValueError(f"a SentencePiece model has no field of wire type {other}")
        yield key >> 3, message[start:place]


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """Reads an integer, seven bits in each byte and the lowest first. Returns it and where it ends."""
    value = shift = 0
    while True:
        byte = message[place]
        value |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return value, place


def _as_varint(value: int) -> bytes:
    written = bytearray()
    while value >= 128:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])
