"""Reads YAML, JSON and safetensors files of any origin: any damage is an InputError that names the file.

Files that this project writes are sealed JSON: an object whose last entry is the checksum of the text before this
entry.
"""

import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pydantic
import yaml
from safetensors import SafetensorError, safe_open

from mt.core.errors import RESTORE_OR_RETRAIN, InputError, corrupted_file, wrong_keys
from mt.core.files import read_file, write_atomically

if TYPE_CHECKING:  # paths are checked before PyTorch is imported
    from torch import Tensor

MAX_ERRORS = 10
"""Number of errors in one file that an error message lists."""
GET_AGAIN = "copy or download the folder again"
"""The remedy for a corrupted file of another program."""
CORRECT_OR_RESTORE = "correct the file, or restore it from a backup"
CHECKSUM_KEY = "sha256"
"""Key of the last entry of sealed JSON."""

Schema = TypeVar("Schema", bound=pydantic.BaseModel)
Record = TypeVar("Record")


class StrictRecord(pydantic.BaseModel):
    """A record in a file of this project: its values have exactly the declared types, and there may be more values."""

    model_config = pydantic.ConfigDict(strict=True, extra="allow")


class _WithoutMerges(yaml.SafeLoader):
    """Refuses merge keys (``<<``): a few hundred bytes of nested merges expand to more keys than fit into memory."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
            raise yaml.constructor.ConstructorError(None, None, "merge keys (<<) are not allowed", node.start_mark)


def read_yaml_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file that consists of keys and values. Tags and merge keys are refused; ``${…}`` is plain text."""
    return _read_mapping(path, lambda content: yaml.load(content, _WithoutMerges))


def read_json_mapping(path: Path) -> dict[str, Any]:
    """Read a JSON file that is an object of keys and values."""

    def parse(content: str) -> object:
        values = json.loads(content)
        json.dumps(values, ensure_ascii=False).encode()  # refuses lone surrogates
        return values

    return _read_mapping(path, parse)


def _read_mapping(path: Path, parse: Callable[[str], object]) -> dict[str, Any]:
    content = read_file(path)
    try:
        values = parse(content.decode())
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, LookupError, AttributeError) as error:
        # An invalid YAML date or number raises errors other than YAMLError.
        raise InputError(f"{path}: cannot be read: {error}; {CORRECT_OR_RESTORE}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: cannot be read: it does not consist of keys and values; {CORRECT_OR_RESTORE}")
    return values


@contextmanager
def open_safetensors(path: Path) -> Iterator[Any]:
    """Context manager: open a safetensors file for reading to the CPU. Raise InputError if it is missing or
    corrupted."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path") from None
    except (OSError, SafetensorError, NotImplementedError) as error:  # the last: number formats that PyTorch lacks
        raise InputError(
            f"{path}: corrupted or not a safetensors file; restore it from a backup or {GET_AGAIN}: {error}"
        ) from None


def read_safetensors(path: Path) -> "dict[str, Tensor]":
    """Read all tensors of a safetensors file to the CPU. Raise InputError if it is missing or corrupted."""
    with open_safetensors(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)


def validate(
    path: Path,
    schema: type[Schema],
    values: Mapping[str, Any],
    summary: str = "",
    strict: bool | None = None,
    keys: Mapping[str, str] | None = None,
    context: object = None,
) -> Schema:
    """Validate the content of a file, and return it as an instance of the schema.

    Args:
        path: The file, for the message.
        schema: The expected keys and types.
        values: The content of the file.
        summary: Beginning of the message, before the errors.
        strict: Whether to refuse values that would have to be converted, such as the text "16" to a number. None
            leaves this to the schema.
        keys: Key of the schema → its name in the file, for the message, where they differ.
        context: Context of the schema's validators.

    Raises:
        InputError: The content does not follow the schema. The message lists up to MAX_ERRORS errors.
    """
    try:
        return schema.model_validate(values, strict=strict, context=context)
    except pydantic.ValidationError as error:
        errors = []
        for details in error.errors():
            reason = "; ".join(details["msg"].removeprefix("Value error, ").splitlines())
            key = ".".join((keys or {}).get(str(part), str(part)) for part in details["loc"])
            key = key[:80].encode("unicode_escape").decode()  # any text may be a key, control characters included
            errors.append(f"{key}: {reason}" if key else reason)
        start = f"{path}: {summary}: " if summary else f"{path}: "
        raise InputError(f"{start}{short_list(errors, MAX_ERRORS)}; {CORRECT_OR_RESTORE}") from None
    except (RecursionError, ValueError, TypeError) as error:
        raise InputError(f"{path}: cannot be read: {error}; {CORRECT_OR_RESTORE}") from None


def short_list(problems: Sequence[str], count: int) -> str:
    """Return the first ``count`` problems for a message, and the number of the others."""
    return "; ".join(problems[:count]) + (f" and {len(problems) - count} more" if len(problems) > count else "")


def validate_recorded(path: Path, kind: type[Record], values: object, remedy: str = RESTORE_OR_RETRAIN) -> Record:
    """Convert the content of a file that this project wrote to a dataclass or pydantic model.

    Args:
        path: The file, for the message.
        kind: The dataclass or model.
        values: The content of the file.
        remedy: A hint for the user, as the last part of the message.

    Raises:
        InputError: The values have other types or keys. The message names the file and the wrong keys.
    """
    try:
        return pydantic.TypeAdapter(kind).validate_python(values)
    except pydantic.ValidationError as error:
        keys = wrong_keys(".".join(map(str, details["loc"])) for details in error.errors())
        raise corrupted_file(path, keys, remedy) from None


def write_json(path: Path, content: dict) -> None:
    """Write a sealed JSON file atomically."""
    write_atomically(path, sealed(content))


def read_json(path: Path, *needed: str, remedy: str = RESTORE_OR_RETRAIN) -> dict:
    """Return the content of a sealed JSON file without the checksum.

    Args:
        path: The file.
        needed: Keys that the file must have.
        remedy: A hint for the user if the file is missing or corrupted.

    Raises:
        InputError: The file cannot be read, does not match its checksum, or lacks one of the ``needed`` keys. The
            message names the file, the reason and the remedy.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; {remedy}") from None
    except ValueError:
        raise corrupted_file(path, "not UTF-8", remedy) from None
    content = unsealed(text, path, remedy)
    if missing := set(needed) - content.keys():
        raise corrupted_file(path, wrong_keys(sorted(missing)), remedy)
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
        remedy: A hint for the user if the text is corrupted, for the message.

    Raises:
        InputError: The text has no checksum, or does not match it.
    """
    match = re.fullmatch(rf'(.*),\n  "{CHECKSUM_KEY}": "([0-9a-f]{{64}})"\n}}\n', text, re.DOTALL)
    if not match:
        raise corrupted_file(path, "no checksum at its end", remedy)
    if sha256(match[1]) != match[2]:
        raise corrupted_file(path, "does not match its checksum", remedy)
    try:
        return dict(json.loads(match[1] + "\n}"))
    except (ValueError, TypeError, RecursionError):  # forged: a checksum protects from accidents only
        raise corrupted_file(path, "no valid JSON", remedy) from None


def sha256(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def is_number(value: object) -> bool:
    """Return whether a value from a JSON file is a finite number within the range of a float, and not a bool."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max
