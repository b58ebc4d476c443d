"""Reads and writes JSON files, and JSON that carries its own checksum."""

import hashlib
import json
import re
import sys
from pathlib import Path

from mt.core.errors import InputError, damaged_file
from mt.core.files import write_atomically

CHECKSUM_KEY = "sha256"
"""Key of the last entry of a sealed file, which is the checksum of the text before it."""


def write_json(path: Path, content: dict) -> None:
    """Write a sealed JSON file: its last entry is the checksum of the text before it."""
    write_atomically(path, sealed(content))


def read_json(path: Path, *needed: str) -> dict:
    """Return the content of a sealed JSON file without its checksum.

    Raises:
        InputError: The file cannot be read, does not match its checksum, or lacks one of the ``needed`` keys. The
            message names the file.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    content = unsealed(text, path)
    if missing := set(needed) - content.keys():
        raise damaged_file(path, f"no {', '.join(sorted(missing))}")
    return content


def sealed(content: dict) -> str:
    """Return JSON that ends with its own checksum."""
    text = json.dumps(content, indent=2, ensure_ascii=False).removesuffix("\n}")
    return f'{text},\n  "{CHECKSUM_KEY}": "{sha256(text)}"\n}}\n'


def unsealed(text: str, path: Path) -> dict:
    """Return the content that was given to ``sealed``.

    The checksum is that of the text as it stands, blanks included, so that any changed bit is noticed, whether it
    changes the meaning or not.

    Raises:
        InputError: The text is damaged or of another version. The message names its file, ``path``.
    """
    match = re.fullmatch(rf'(.*),\n  "{CHECKSUM_KEY}": "([0-9a-f]{{64}})"\n}}\n', text, re.DOTALL)
    if not match or sha256(match[1]) != match[2]:
        raise InputError(f"{path}: damaged: its contents do not match its checksum")
    try:
        return dict(json.loads(match[1] + "\n}"))
    except (ValueError, TypeError, RecursionError):  # forged: a checksum protects from accidents only
        raise damaged_file(path) from None


def sha256(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_number(value: object) -> bool:
    """Return whether a value of a JSON file is a finite number that fits into a float. An integer of 400 digits does
    not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max
