"""Reads and writes sealed JSON: an object whose last entry is the checksum of the text before this entry."""

import hashlib
import json
import re
import sys
from pathlib import Path

from mt.core.errors import RESTORE_OR_RETRAIN, InputError, damaged_file, wrong_keys
from mt.core.files import write_atomically

CHECKSUM_KEY = "sha256"
"""Key of the last entry."""


def write_json(path: Path, content: dict) -> None:
    """Write a sealed JSON file atomically."""
    write_atomically(path, sealed(content))


def read_json(path: Path, *needed: str, remedy: str = RESTORE_OR_RETRAIN) -> dict:
    """Return the content of a sealed JSON file without the checksum.

    Args:
        path: The file.
        needed: Keys that the file must have.
        remedy: Advice to the user if the file is missing or damaged.

    Raises:
        InputError: The file cannot be read, does not match its checksum, or lacks one of the ``needed`` keys. The
            message names the file, the reason and the remedy.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; {remedy}") from None
    except ValueError:
        raise damaged_file(path, "not UTF-8", remedy) from None
    content = unsealed(text, path, remedy)
    if missing := set(needed) - content.keys():
        raise damaged_file(path, wrong_keys(sorted(missing)), remedy)
    return content


def sealed(content: dict) -> str:
    """Return a dict as sealed JSON. ``unsealed`` reverses this."""
    text = json.dumps(content, indent=2, ensure_ascii=False).removesuffix("\n}")
    return f'{text},\n  "{CHECKSUM_KEY}": "{sha256(text)}"\n}}\n'


def unsealed(text: str, path: Path, remedy: str = RESTORE_OR_RETRAIN) -> dict:
    """Return the dict that was given to ``sealed``.

    The checksum covers every character, blanks included, so any changed bit is noticed.

    Args:
        text: The result of ``sealed``.
        path: The file that holds the text, for the message.
        remedy: Advice to the user if the text is damaged, for the message.

    Raises:
        InputError: The text has no checksum, or does not match it.
    """
    match = re.fullmatch(rf'(.*),\n  "{CHECKSUM_KEY}": "([0-9a-f]{{64}})"\n}}\n', text, re.DOTALL)
    if not match:
        raise damaged_file(path, "no checksum at its end", remedy)
    if sha256(match[1]) != match[2]:
        raise damaged_file(path, "does not match its checksum", remedy)
    try:
        return dict(json.loads(match[1] + "\n}"))
    except (ValueError, TypeError, RecursionError):  # forged: a checksum protects from accidents only
        raise damaged_file(path, "no valid JSON", remedy) from None


def sha256(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_number(value: object) -> bool:
    """Return whether a value from a JSON file is a finite number within the range of a float, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max
