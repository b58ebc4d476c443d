"""Small corpora that the tests write and load."""

from pathlib import Path

import datasets
from pydantic import TypeAdapter

from mt.config import DataConfig
from mt.data.corpus import Corpus, load_corpus

PAIRS = [(f"Satz Nummer {number}.", f'Sentence "number" {number}, here.') for number in range(40)]

LANGUAGES: dict[str, object] = {"source_language": "de", "target_language": "en"}


def config(**settings: object) -> DataConfig:
    return TypeAdapter(DataConfig).validate_python(LANGUAGES | settings)


def load(**settings: object) -> Corpus:
    return load_corpus(config(**settings))


def write(path: Path, lines: list[str] | list[bytes]) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines))
    return str(path)


def write_files(folder: Path, pairs: list[tuple], name: str = "train") -> tuple[str, str]:
    source, target = ([pair[side] for pair in pairs] for side in (0, 1))
    return write(folder / f"{name}.de", source), write(folder / f"{name}.en", target)


def held_out(folder: Path) -> dict[str, object]:
    """Two splits, so that nothing is held out of the training pairs."""
    return {
        "valid": write_files(folder, [("gültig", "valid")], "valid"),
        "test": write_files(folder, [("Prüfung", "test")], "test"),
    }


def texts(pairs: datasets.Dataset) -> list[tuple[str, str]]:
    return list(zip(pairs["source"][:], pairs["target"][:], strict=True))
