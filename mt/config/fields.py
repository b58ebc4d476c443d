"""The base class of all sections of a config, the types of their numbers and texts with their ranges, and the sections
on device and number format, which many commands share.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from annotated_types import Ge, GroupedMetadata, Le
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator

from mt.core.errors import format_value

MAX_PATH_BYTES = 4095
"""Maximum length of a path in Linux."""
MAX_NAME_BYTES = 255
"""Maximum length of the name of a file or folder in the usual file systems."""

IGNORE_VALIDATION_ERRORS = "ignore validation errors"
"""Context for ``model_validate``: check each value by itself. ``all_validation_errors`` then checks combinations."""


class For:
    """Annotation of a key that has an effect only with certain values of another key of its section.

    ``Annotated[int, For("method", "sample")]`` is used with method=sample only. Without values, as in ``For("input")``,
    the other key may have any value except null. A section whose key is set in vain is refused.
    """

    def __init__(self, key: str, *values: object) -> None:
        self.key = key
        self.values = values


class Section(BaseModel):
    """A group of settings: a whole config, or a part of one. Unknown keys are refused. Instances are immutable.

    The docstring below a field is its description for users: ``--help`` shows its first paragraph, and
    ``docs/settings.md`` all of it.
    """

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        allow_inf_nan=False,
        protected_namespaces=(),
        use_attribute_docstrings=True,
    )

    def validation_errors(self) -> Iterator[str]:
        """Yield a message for each combination of values that cannot work, although each value is valid by itself.

        A message names keys relative to this section. It begins with ``key=value`` if one key is to be changed.
        """
        yield from ()

    def differs_from_default(self, key: str) -> bool:
        """Return whether a key has another value than its default."""
        return bool(getattr(self, key) != type(self).model_fields[key].default)

    def _unused_keys(self) -> Iterator[str]:
        """Yield a message for each key whose ``For`` annotation says that it has no effect here."""
        for key, field in type(self).model_fields.items():
            for rule in (item for item in field.metadata if isinstance(item, For) and self.differs_from_default(key)):
                actual = getattr(self, rule.key)
                wanted = " or ".join(map(format_value, rule.values))
                if rule.values and actual not in rule.values:
                    yield f"{key}={getattr(self, key)} is for {rule.key}={wanted}, not {format_value(actual)}"
                elif not rule.values and actual is None:
                    yield f"{key}={format_value(getattr(self, key))} needs {rule.key}"

    def all_validation_errors(self, key: str = "") -> Iterator[str]:
        """Yield the validation errors of this section and of the sections inside it, with full keys.

        Args:
            key: The key of this section in the config. "" for the whole config.
        """
        for message in (*self._unused_keys(), *self.validation_errors()):
            names_key = re.match(r"[\w.]+=", message)
            yield message if not key else f"{key}.{message}" if names_key else f"{key}: {message}"
        for name, value in self:
            full = f"{key}.{name}" if key else name
            parts = (
                {f"{full}[{n}]": item for n, item in enumerate(value)} if isinstance(value, tuple) else {full: value}
            )
            for part_key, part in parts.items():
                if isinstance(part, Section):
                    yield from part.all_validation_errors(part_key)

    @model_validator(mode="after")
    def _refuse_validation_errors(self, info: ValidationInfo) -> Self:
        if info.context != IGNORE_VALIDATION_ERRORS and (messages := [*self._unused_keys(), *self.validation_errors()]):
            raise ValueError("\n".join(messages))
        return self


def _check(is_valid: Callable[[Any], object], message: str) -> Callable[[Any], Any]:
    """Return a function for pydantic's validators that returns valid values, and raises ValueError with ``message`` for
    others."""

    def check(value: Any) -> Any:
        if not is_valid(value):
            raise ValueError(message)
        return value

    return check


def _matching(pattern: str, description: str) -> AfterValidator:
    """Return a validator that refuses a text unless all of it matches a pattern.

    Args:
        pattern: A regular expression.
        description: What a valid text is, for the message "must be …".
    """
    return AfterValidator(_check(lambda text: re.fullmatch(pattern, text), f"must be {description}"))


def _fits_file_systems(path: str) -> bool:
    longest_name = max(len(name.encode()) for name in path.split("/"))
    return len(path.encode()) <= MAX_PATH_BYTES and longest_name <= MAX_NAME_BYTES


def repeated_paths(paths: Iterable[str]) -> Iterator[str]:
    """Yield a message for each path that occurs more than once, spelled in the same way or not."""
    counts = Counter(map(os.path.abspath, paths))
    yield from (f"{path} is given twice: give each path once" for path, count in sorted(counts.items()) if count > 1)


NotABool = BeforeValidator(_check(lambda value: not isinstance(value, bool), "must be a number"))
"""Refuses true and false for numbers. Python takes True for 1, but training.patience=true is an error."""


@dataclass(frozen=True)
class Within(GroupedMetadata):
    """Annotation of a number with its smallest and its largest value."""

    ge: float
    le: float

    def __iter__(self) -> Iterator[object]:
        yield from (NotABool, Ge(self.ge), Le(self.le))


# Every number has a smallest and a largest value. Most of these bounds are far beyond any use: a number beyond them
# would overflow somewhere in NumPy, PyTorch or the system, or make a command run for ever.

PositiveInt = Annotated[int, Within(1, 2**31 - 1)]
"""A count, such as tokens or updates. The product of two such numbers fits into 64 bits."""
NonNegativeInt = Annotated[int, Within(0, 2**31 - 1)]
Seed = Annotated[int, Within(0, 2**63 - 1)]
"""A number that fits into a signed 64-bit integer, so that every program can read it from config.yaml."""
Threads = Annotated[int, Within(0, 1024)]
"""With many more threads, the process would be aborted by an error that Python cannot catch."""
Processes = Annotated[int, Within(1, 1024)]
FeedProcesses = Annotated[int, Within(0, 64)]
Size = Annotated[int, Within(1, 65_536)]
Layers = Annotated[int, Within(1, 256)]
PositiveFloat = Annotated[float, Within(1e-20, 1e9)]
"""A number that is neither zero nor infinite in fp32; nor is its square root."""
NonNegativeFloat = Annotated[float, Within(0, 1e9)]
Probability = Annotated[float, NotABool, Field(ge=0, lt=1)]
Share = Annotated[float, NotABool, Field(gt=0, le=1)]
Weight = Annotated[float, Within(1e-4, 1e4)]
NotNul = AfterValidator(_check(lambda text: "\0" not in text, "must not have a NUL character, as no file name has"))
TOO_LONG = f"is too long: a path has at most {MAX_PATH_BYTES:,} bytes, and a name in it {MAX_NAME_BYTES}"
NotTooLong = AfterValidator(_check(_fits_file_systems, TOO_LONG))
Text = Annotated[str, Field(min_length=1), NotNul]
NotAStream = AfterValidator(_check(lambda path: path != "-", "must be a path; ./- is a file with the name -"))
PathText = Annotated[Text, NotTooLong, NotAStream]
"""A path, a pattern of paths, or a name on the hub. Too long a path is refused here, because ``Path.exists`` raises
OSError for it in Python 3.11 and returns False in Python 3.14."""
TRANSFORMERS = "transformers:"
"""Begins the name of a model that the library transformers computes: transformers:FOLDER or transformers:OWNER/NAME."""
PathOrStream = Annotated[PathText | None, BeforeValidator(lambda value: None if value == "-" else value)]
"""A path, or None for standard input or output, which is also written as ``-``."""
AsTuple = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
"""Converts a list to a tuple, as is needed in pydantic's strict mode, in which model.yaml is read."""
Texts = Annotated[tuple[Text, ...], AsTuple]
"""A list of texts."""
LanguageCode = Annotated[
    str, _matching(r"[A-Za-z]{2,16}([_-][A-Za-z0-9]{1,8})*", "a language code such as en or zh_CN")
]
SetName = Annotated[str, BeforeValidator(str), _matching(r"[A-Za-z0-9_-]+", "a name of letters, digits, _ and -")]
SetMetric = Annotated[str, _matching(r"[\w-]+\.(bleu|chrf|ter|loss)", "one of these of a set, such as news.bleu")]
License = Annotated[
    str, _matching(r"[a-z0-9][a-z0-9.+-]{0,63}", "a license as model cards name it, such as mit or cc-by-4.0")
]
Delimiter = Annotated[
    str,
    BeforeValidator(lambda value: "\t" if value == r"\t" else value),
    _matching(r"[^\r\n\"]", "a single character, such as ; or |"),
]
PackageVersion = Annotated[
    str, _matching(r"[0-9]{1,6}(\.[0-9]{1,6}){0,3}", "numbers with points between them, such as 1.0")
]
FolderName = _matching(r"(?!\.\.?$)[^/\x00-\x1f]+", "the name of a folder, without /")
RunName = Annotated[str, Field(min_length=1, max_length=200), FolderName, NotTooLong]
DEVICE = r"auto|cpu|mps|cuda(:(0|[1-9][0-9]?))?"
"""Pattern of device names. The number has at most two digits, because PyTorch takes cuda:256 for cuda:0."""
Device = Annotated[str, _matching(DEVICE, "auto, cpu, mps, cuda, or cuda:N with N from 0 to 99")]
Precision = Literal["auto", "fp32", "bf16", "fp16"]


class MachineConfig(Section):
    """The settings of all commands that run a model."""

    device: Device = "auto"
    """Device to compute on: auto, cpu, mps, cuda or cuda:N. auto: a GPU if there is one."""
    threads: Threads = 0
    """Number of CPU threads of each process. 0: as many as PyTorch chooses."""


class PrecisionConfig(MachineConfig):
    """The settings of commands whose number format can be chosen."""

    precision: Precision = "fp32"
    """Number format of matrix products. auto: bf16 if the processor has instructions for it, fp16 on older GPUs,
    otherwise fp32."""

    def validation_errors(self) -> Iterator[str]:
        if self.device == "cpu" and self.precision == "fp16":
            yield "precision=fp16 needs a GPU: on device=cpu take bf16 or fp32"
