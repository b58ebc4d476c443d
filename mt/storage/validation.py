"""Reading of other people's YAML, JSON and safetensors files: any damage is an InputError that names the file."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pydantic
import yaml
from safetensors import SafetensorError, safe_open
from torch import Tensor

from mt.core.errors import InputError, damaged_file
from mt.core.files import read_file

MAX_MISTAKES = 10
"""Number of mistakes in one file that an error message lists."""

Schema = TypeVar("Schema", bound=pydantic.BaseModel)
Record = TypeVar("Record")


class _WithoutMerges(yaml.SafeLoader):
    """Refuses merge keys (``<<``): a few hundred bytes of nested merges expand to more keys than fit into memory."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
            raise yaml.constructor.ConstructorError(None, None, "merge keys (<<) are not allowed", node.start_mark)


def read_yaml_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML file of keys and values, without tags or interpolation."""
    return _read_mapping(path, lambda content: yaml.load(content, _WithoutMerges))


def read_json_mapping(path: Path) -> dict[str, Any]:
    """Read a JSON file of keys and values."""

    def parse(content: str) -> object:
        values = json.loads(content)
        json.dumps(values, ensure_ascii=False).encode()  # refuses lone surrogates
        return values

    return _read_mapping(path, parse)


def _read_mapping(path: Path, parse: Callable[[str], object]) -> dict[str, Any]:
    content = read_file(path)
    try:
        values = parse(content.decode())
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, KeyError, AttributeError) as error:
        # An invalid YAML date or number raises errors other than YAMLError.
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: cannot be read: it does not consist of keys and values")
    return values


@contextmanager
def open_safetensors(path: Path) -> Iterator[Any]:
    """Open a safetensors file for reading to the CPU."""
    try:
        with safe_open(path, framework="pt") as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, SafetensorError, NotImplementedError) as error:  # the last: number formats that PyTorch lacks
        raise InputError(f"{path}: damaged or not a safetensors file: {error}") from None


def read_safetensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file to the CPU."""
    with open_safetensors(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)


def validate(
    path: Path,
    schema: type[Schema],
    values: Mapping[str, Any],
    summary: str = "",
    strict: bool | None = None,
    keys: Mapping[str, str] | None = None,
) -> Schema:
    """Validate the values of a file.

    Args:
        path: The file, for the message.
        schema: The expected keys and types.
        values: The content of the file.
        summary: Beginning of the message, before the mistakes.
        strict: Convert no value, such as the text "16" to a number. None: as the schema says.
        keys: The file's names of keys that the schema names differently.

    Raises:
        InputError: The values do not follow the schema. The message lists up to MAX_MISTAKES mistakes.
    """
    try:
        return schema.model_validate(values, strict=strict)
    except pydantic.ValidationError as error:
        mistakes = [_mistake(details["loc"], details["msg"], keys or {}) for details in error.errors()]
        more = f" and {len(mistakes) - MAX_MISTAKES} more" if len(mistakes) > MAX_MISTAKES else ""
        start = f"{path}: {summary}: " if summary else f"{path}: "
        raise InputError(start + "; ".join(mistakes[:MAX_MISTAKES]) + more) from None
    except (RecursionError, ValueError, TypeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def validate_recorded(path: Path, kind: type[Record], values: object) -> Record:
    """Convert the content of a file that this project wrote to a dataclass or pydantic model.

    Raises:
        InputError: The values have other types or keys. The message names the file and the wrong keys.
    """
    try:
        return pydantic.TypeAdapter(kind).validate_python(values)
    except pydantic.ValidationError as error:
        keys = dict.fromkeys(".".join(map(str, details["loc"])) for details in error.errors())
        raise damaged_file(path, ", ".join(keys)) from None


def _mistake(location: tuple[int | str, ...], message: str, keys: Mapping[str, str]) -> str:
    reason = "; ".join(message.removeprefix("Value error, ").splitlines())
    key = ".".join(keys.get(str(part), str(part)) for part in location)
    key = key[:80].encode("unicode_escape").decode()  # any text may be a key, control characters included
    return f"{key}: {reason}" if key else reason
