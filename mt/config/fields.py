"""The base class of all sections of a config, and the types of their numbers and texts with their ranges."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from mt.core.wording import format_value

MAX_PATH_BYTES = 4095
"""What Linux takes."""
MAX_NAME_BYTES = 255
"""What the usual file systems take for the name of a file or folder."""

IGNORE_CONTRADICTIONS = "ignore contradictions"
"""A context for ``model_validate``, which checks each value by itself. ``all_contradictions`` finds the rest."""


class For:
    """Marks a key that is used only with some values of another key: ``Annotated[int, For("method", "sample")]``.
    Without values, with any but null."""

    def __init__(self, key: str, *values: object) -> None:
        self.key = key
        self.values = values


class Section(BaseModel):
    """A part of a config. Unknown keys are refused, and values never change once they have been checked.

    The docstring below a field is its description in ``--help`` and in ``docs/settings.md``: its first paragraph in the
    former, all of it in the latter.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

    def contradictions(self) -> Iterator[str]:
        """Yield a message for every combination of values that cannot work, though each value could by itself. The
        message names the keys."""
        yield from ()

    def differs_from_default(self, key: str) -> bool:
        """Return whether a key has another value than its default."""
        return bool(getattr(self, key) != type(self).model_fields[key].default)

    def _unused_keys(self) -> Iterator[str]:
        for key, field in type(self).model_fields.items():
            for mark in (item for item in field.metadata if isinstance(item, For) and self.differs_from_default(key)):
                actual = getattr(self, mark.key)
                wanted = " or ".join(map(format_value, mark.values))
                if mark.values and actual not in mark.values:
                    yield f"{key}={getattr(self, key)} is for {mark.key}={wanted}, not {format_value(actual)}"
                elif not mark.values and actual is None:
                    yield f"{key}={getattr(self, key)} needs {mark.key}"

    def all_contradictions(self, key: str = "") -> Iterator[str]:
        """Yield the contradictions in this section, which stands at a key, and in the sections inside it."""
        for message in (*self._unused_keys(), *self.contradictions()):
            names_key = re.match(r"[\w.]+=", message)
            yield message if not key else f"{key}.{message}" if names_key else f"{key}: {message}"
        for name, value in self:
            full = f"{key}.{name}" if key else name
            parts = [(full, value)] if isinstance(value, Section) else []
            if isinstance(value, tuple):
                parts = [(f"{full}[{number}]", item) for number, item in enumerate(value) if isinstance(item, Section)]
            for part_key, part in parts:
                yield from part.all_contradictions(part_key)

    @model_validator(mode="after")
    def _without_contradictions(self, info: ValidationInfo) -> Self:
        if info.context != IGNORE_CONTRADICTIONS and (messages := [*self._unused_keys(), *self.contradictions()]):
            raise ValueError("\n".join(messages))
        return self


def _check(is_valid: Callable[[Any], object], message: str) -> Callable[[Any], Any]:
    """Return a check that refuses values with a message."""

    def check(value: Any) -> Any:
        if not is_valid(value):
            raise ValueError(message)
        return value

    return check


def _matching(pattern: str, description: str) -> AfterValidator:
    """Return a check that refuses a text unless the whole of it matches a pattern."""
    return AfterValidator(_check(lambda text: re.fullmatch(pattern, text), f"must be {description}"))


def _fits_file_systems(path: str) -> bool:
    longest_name = max(len(name.encode()) for name in path.split("/"))
    return len(path.encode()) <= MAX_PATH_BYTES and longest_name <= MAX_NAME_BYTES


def repeated_paths(paths: Iterable[str]) -> Iterator[str]:
    """Yield a message for each path that is given more than once."""
    counts = Counter(map(os.path.abspath, paths))
    yield from (f"{path} is given twice" for path, count in sorted(counts.items()) if count > 1)


NotABool = BeforeValidator(_check(lambda value: not isinstance(value, bool), "must be a number"))
"""Python counts True as 1. A user who types training.patience=true means something else."""

# Every number has a smallest and a largest value. Most of these bounds are far beyond any use: a number beyond them
# would overflow somewhere in NumPy, PyTorch or the system, or make a command run for ever.

PositiveInt = Annotated[int, NotABool, Field(ge=1, le=2**31 - 1)]
"""A count, or a budget of tokens. The product of two such numbers still fits into 64 bits."""
NonNegativeInt = Annotated[int, NotABool, Field(ge=0, le=2**31 - 1)]
Seed = Annotated[int, NotABool, Field(ge=0, le=2**63 - 1)]
"""What a signed 64-bit integer can hold, so that every program that reads config.yaml reads the same number."""
Threads = Annotated[int, NotABool, Field(ge=0, le=1024)]
"""The system would refuse to start many more, with an error that cannot be caught."""
Processes = Annotated[int, NotABool, Field(ge=1, le=1024)]
Size = Annotated[int, NotABool, Field(ge=1, le=65_536)]
Layers = Annotated[int, NotABool, Field(ge=1, le=256)]
PositiveFloat = Annotated[float, NotABool, Field(ge=1e-20, le=1e9)]
"""In fp32, neither such a number nor its square root is zero or infinite."""
NonNegativeFloat = Annotated[float, NotABool, Field(ge=0, le=1e9)]
Probability = Annotated[float, NotABool, Field(ge=0, lt=1)]
Share = Annotated[float, NotABool, Field(gt=0, le=1)]
Weight = Annotated[float, NotABool, Field(ge=1e-4, le=1e4)]
NotNul = AfterValidator(_check(lambda text: "\0" not in text, "must not have a NUL character, as no file name has"))
TOO_LONG = f"is too long: a path has at most {MAX_PATH_BYTES:,} bytes, and a name in it {MAX_NAME_BYTES}"
NotTooLong = AfterValidator(_check(_fits_file_systems, TOO_LONG))
Text = Annotated[str, Field(min_length=1), NotNul]
PathText = Annotated[Text, NotTooLong]
"""A path, a pattern of paths, or a name on the hub. One that is too long is refused here, because
``Path.exists`` raises OSError for it in Python 3.11 and returns False in Python 3.14."""
Texts = Annotated[tuple[Text, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
"""A list of texts, in YAML, too, where nothing else is converted."""
LanguageCode = Annotated[str, _matching(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*", "a language code such as en or zh_CN")]
Licence = Annotated[
    str, _matching(r"[a-z0-9][a-z0-9.+-]{0,63}", "a licence as model cards name it, such as mit or cc-by-4.0")
]
PackageVersion = Annotated[
    str, _matching(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", "numbers with points between them, such as 1.0")
]
FolderName = _matching(r"(?!\.\.?$)[^/\x00-\x1f]+", "the name of a folder, without /")
RunName = Annotated[str, Field(min_length=1, max_length=200), FolderName, NotTooLong]
DEVICE = r"auto|cpu|mps|cuda(:(0|[1-9][0-9]?))?"
"""PyTorch counts GPUs in eight bits and takes cuda:256 for cuda:0. So the number has at most two digits here."""
Device = Annotated[str, _matching(DEVICE, "auto, cpu, mps, cuda, or cuda:N with N from 0 to 99")]
