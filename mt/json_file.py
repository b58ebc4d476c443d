"""JSON files, and JSON that carries its own checksum."""

import hashlib
import json
import re
import sys
from pathlib import Path

from mt.errors import InputError
from mt.files import write_atomically

SEAL = "sha256"
"""Last entry of a sealed file: the checksum of the text before it."""


def write_json(path: Path, content: dict) -> None:
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, *needed: str) -> dict:
    """Raises InputError naming the file, if it cannot be read or lacks one of the ``needed`` keys."""
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
    """JSON that ends with its own checksum."""
    text = json.dumps(content, indent=2, ensure_ascii=False).removesuffix("\n}")
    return f'{text},\n  "{SEAL}": "{sha256(text)}"\n}}\n'


def unsealed(text: str, path: Path) -> dict:
    """What was sealed.

    The checksum is that of the text as it stands, blanks included, so that any other bit is noticed, whether it changes
    the meaning or not. Raises InputError naming ``path``, the file that the text is from.
    """
    found = re.fullmatch(rf'(.*),\n  "{SEAL}": "([0-9a-f]{{64}})"\n}}\n', text, re.DOTALL)
    if not found or sha256(found[1]) != found[2]:
        raise InputError(f"{path}: damaged: its contents do not match its checksum")
    try:
        return dict(json.loads(found[1] + "\n}"))
    except (ValueError, TypeError, RecursionError):  # forged: a checksum protects from accidents alone
        raise InputError(f"{path}: damaged or of another version") from None


def sha256(text: str) -> str:
    """In hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def write_sealed_json(path: Path, content: dict) -> None:
    write_atomically(path, sealed(content))


def read_sealed_json(path: Path) -> dict:
    """As ``read_json``; the checksum, which files of earlier formats do not have, is checked and left out."""
    content = read_json(path)
    return unsealed(path.read_bytes().decode(), path) if SEAL in content else content


def is_number(value: object) -> bool:
    """Whether a value of a JSON file is a finite number that can be computed with; an integer of 400 digits cannot."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max
