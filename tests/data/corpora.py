"""Small corpora that the tests write and load."""

from pydantic import TypeAdapter

from mt.config import DataConfig
from mt.data.corpus import load_corpus

PAIRS = [(f"Satz Nummer {number}.", f'Sentence "number" {number}, here.') for number in range(40)]

FILES: dict[str, object] = {"kind": "files", "source_language": "de", "target_language": "en"}


def config(**settings):
    return TypeAdapter(DataConfig).validate_python(FILES | settings)


def load(**settings):
    return load_corpus(config(**settings))


def write(path, lines):
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines))
    return str(path)


def write_files(folder, pairs, name="train"):
    source, target = ([pair[side] for pair in pairs] for side in (0, 1))
    return write(folder / f"{name}.de", source), write(folder / f"{name}.en", target)


def held_out(folder):
    """Two splits, so that nothing is held out of the training pairs."""
    return {
        "valid": write_files(folder, [("gültig", "valid")], "valid"),
        "test": write_files(folder, [("Prüfung", "test")], "test"),
    }


def texts(pairs):
    return list(zip(pairs["source"][:], pairs["target"][:], strict=True))
