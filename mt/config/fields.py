"""The base class of all sections of a config, and the types of their numbers and texts with their ranges."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator

MAX_PATH_BYTES = 4095
"""What Linux takes."""
MAX_NAME_BYTES = 255
"""What the usual file systems take for the name of a file or folder."""


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

    @model_validator(mode="after")
    def _without_contradictions(self) -> Self:
        if messages := list(self.contradictions()):
            raise ValueError("\n".join(messages))
        return self


def _not_a_switch(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("must be a number")
    return value


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("must not have a NUL character, which no file name can have")
    return text


def _fits_file_systems(path: str) -> str:
    if len(path.encode()) > MAX_PATH_BYTES or any(len(name.encode()) > MAX_NAME_BYTES for name in path.split("/")):
        raise ValueError(f"is too long: a path has at most {MAX_PATH_BYTES:,} bytes, and a name in it {MAX_NAME_BYTES}")
    return path


def _matching(pattern: str, what: str) -> Callable[[str], str]:
    """Return a check that refuses a text with the message "must be …" unless the whole of it matches a pattern."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"must be {what}")
        return text

    return check


def repeated_paths(paths: Iterable[str]) -> Iterator[str]:
    """Yield a message for each path that is given more than once."""
    counts = Counter(map(os.path.abspath, paths))
    yield from (f"{path} is given twice" for path, count in sorted(counts.items()) if count > 1)


NotABool = BeforeValidator(_not_a_switch)
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
Text = Annotated[str, Field(min_length=1), AfterValidator(_without_nul)]
PathText = Annotated[Text, AfterValidator(_fits_file_systems)]
"""A path, a pattern of paths, or a name on the hub. One that is too long is refused here, because
``Path.exists`` raises OSError for it in Python 3.11 and returns False in Python 3.14."""
Texts = Annotated[tuple[Text, ...], BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)]
"""A list of texts, in YAML, too, where nothing else is converted."""
LanguageCode = Annotated[
    str, AfterValidator(_matching(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8})*", "a language code such as en or zh_CN"))
]
Licence = Annotated[
    str,
    AfterValidator(
        _matching(r"[a-z0-9][a-z0-9.+-]{0,63}", "a licence as model cards name it, such as mit or cc-by-4.0")
    ),
]
PackageVersion = Annotated[
    str, AfterValidator(_matching(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", "numbers with points between them, such as 1.0"))
]
RunName = Annotated[
    str,
    Field(min_length=1, max_length=200),
    AfterValidator(_matching(r"(?!\.\.?$)[^/\x00-\x1f]+", "the name of a folder, without /")),
    AfterValidator(_fits_file_systems),
]
DEVICE = r"auto|cpu|mps|cuda(:(0|[1-9][0-9]?))?"
"""PyTorch counts GPUs in eight bits and takes cuda:256 for cuda:0. So the number has at most two digits here."""
Device = Annotated[str, AfterValidator(_matching(DEVICE, "auto, cpu, mps, cuda, or cuda:N with N from 0 to 99"))]
