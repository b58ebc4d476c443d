"""Reads and writes JSON files, and JSON that carries its own checksum."""

import hashlib
import json
import re
import sys
from pathlib import Path

from mt.errors import InputError
from mt.files import write_atomically

CHECKSUM_KEY = "sha256"
"""Key of the last entry of a sealed file, which is the checksum of the text before it."""


def write_json(path: Path, content: dict) -> None:
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, *needed: str) -> dict:
    """Returns the content of a JSON file.

    Raises:
        InputError: It cannot be read or lacks one of the ``needed`` keys. The message names the file.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object")
    if missing := set(needed) - content.keys():
        raise InputError(f"{path}: damaged or of another version: no {', '.join(sorted(missing))}")
    return content


def sealed(content: dict) -> str:
    """Returns JSON that ends with its own checksum."""
    text = json.dumps(content, indent=2, ensure_ascii=False).removesuffix("\n}")
    return f'{text},\n  "{CHECKSUM_KEY}": "{sha256(text)}"\n}}\n'


def unsealed(text: str, path: Path) -> dict:
    """Returns the content that was given to ``sealed``.

    The checksum is that of the text as it stands, blanks included, so that any changed bit is noticed, whether it
    changes the meaning or not.

    Raises:
        InputError: The text is damaged or of another version. The message names ``path``, the file that it is from.
    """
    found = re.fullmatch(rf'(.*),\n  "{CHECKSUM_KEY}": "([0-9a-f]{{64}})"\n}}\n', text, re.DOTALL)
    if not found or sha256(found[1]) != found[2]:
        raise InputError(f"{path}: damaged: its contents do not match its checksum")
    try:
        return dict(json.loads(found[1] + "\n}"))
    except (ValueError, TypeError, RecursionError):  # forged: a checksum protects from accidents only
        raise InputError(f"{path}: damaged or of another version") from None


def sha256(text: str) -> str:
    """Returns the SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def write_sealed_json(path: Path, content: dict) -> None:
    write_atomically(path, sealed(content))


def read_sealed_json(path: Path) -> dict:
    """Returns the content of a sealed JSON file, without its checksum, which is checked; raises as ``read_json`` does.

    Files of earlier formats have no checksum and are read without one.
    """
    content = read_json(path)
    return unsealed(path.read_bytes().decode(), path) if CHECKSUM_KEY in content else content


def is_number(value: object) -> bool:
    """Returns whether a value of a JSON file is a finite number that fits into a float. An integer of 400 digits does
    not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max
