"""The exceptions that end a command with one message instead of a traceback, and the wording of such messages.

Any other exception that escapes is a bug. Helpers for messages are suggestions for misspelled names, plurals, values as
typed, and the display of long texts and control characters.
"""

import difflib
import errno
import json
import logging
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

MAX_SHOWN_CHARACTERS = 200

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed; DEL; C1
    "\u2028\u2029"  # line breaks for some programs
    "\u202a-\u202e\u2066-\u2069"  # change the direction of what follows, up to the end of the line
    "\ud800-\udfff]"  # surrogates, from file names that are not UTF-8; no stream can write them
)


class InputError(Exception):
    """The user's input or config is wrong. The message says what is wrong and what to do (exit code 2)."""


RESTORE_OR_RETRAIN = "restore it from a backup, or train again under another name (name=…)"
"""The remedy for a corrupted file that only training writes."""


def corrupted_file(path: Path, reason: str, remedy: str = RESTORE_OR_RETRAIN) -> InputError:
    """Return the error for a file that this project wrote and can no longer read.

    Args:
        path: The file.
        reason: The fault, such as "no checksum at its end".
        remedy: A hint for the user, as the last part of the message.
    """
    return InputError(f"{path}: corrupted, or written by another version of mt-trainer ({reason}); {remedy}")


def wrong_keys(keys: Iterable[str]) -> str:
    """Return the reason for ``corrupted_file`` if values of a file are missing or wrong. Repeated keys count once."""
    return f"wrong or missing: {', '.join(dict.fromkeys(keys))}"


class RunError(Exception):
    """The input is right, but the work could not go on: disk full, diverged, out of memory (exit code 1)."""


class WorkerDiedError(RunError):
    """Another worker process has died.

    The workers that were waiting for a message of the dead worker raise this. The rest of the workers notice when those
    end.
    """


class Interrupted(BaseException):
    """SIGINT, SIGTERM or SIGHUP arrived, and all state is saved (exit code 130, 143 or 129).

    This is not a subclass of Exception, as KeyboardInterrupt is not, so libraries that catch Exception let it pass.
    """

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.signal_number = signal_number


def is_exhaustion(error: BaseException) -> bool:
    """Return whether a single error means that memory or open files are used up. No file is then at fault."""
    is_limit = isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
    return is_limit or is_out_of_memory(error)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, its cause, the cause of that, and so on: libraries wrap the errors of the system."""
    cause: BaseException | None = error
    visited: list[BaseException] = []
    while cause is not None and cause not in visited:  # a cause that was raised again leads back to itself
        yield cause
        visited.append(cause)
        cause = cause.__cause__ or cause.__context__


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error means that a GPU's memory or the main memory is full.

    PyTorch's own error counts only if torch is already imported: this function does not import it.
    """
    torch = sys.modules.get("torch")
    if isinstance(error, MemoryError) or (torch and isinstance(error, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and bool(re.search("can't allocate memory|CUDA.* out of memory", str(error)))


def nearest(word: str, choices: Sequence[str], min_similarity: float = 0.6) -> str | None:
    """Return the most similar choice, or None if none has at least ``min_similarity`` (0 to 1)."""
    return next(iter(difflib.get_close_matches(word, choices, n=1, cutoff=min_similarity)), None)


def did_you_mean(word: str, choices: Sequence[str], min_similarity: float = 0.6) -> str:
    """Return the end of a message about a wrong word: ``; did you mean CHOICE?``, or "" if no choice is similar."""
    choice = nearest(word, choices, min_similarity)
    return f"; did you mean {choice}?" if choice else ""


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 file``, ``2,000 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_value(value: object) -> str:
    """Return a value as one would type it on a command line."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{key}:{format_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(format_value(part) for part in value) + "]"
    return str(value)


def aligned(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells as lines of text, in which the cells of a column begin at the same position."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def brief(text: str) -> str:
    """Abbreviate a text of more than MAX_SHOWN_CHARACTERS characters: its middle becomes "…"."""
    if len(text) <= MAX_SHOWN_CHARACTERS:
        return text
    half = MAX_SHOWN_CHARACTERS // 2
    return f"{text[:half]} … {text[-half:]} ({len(text):,} characters)"


def shorten_words(message: str) -> str:
    """Abbreviate each word of a message, such as a path, as ``brief`` does."""
    return re.sub(rf"\S{{{MAX_SHOWN_CHARACTERS},}}", lambda word: brief(word.group()), message)


def visible(text: str) -> str:
    r"""Escape the characters of a text that control a terminal, as ``\x1b`` or ``\u202e``. Line feeds and tabs stay.

    Corpora, file names and other people's run folders can hold any character, and some sequences clear the screen,
    overwrite lines or type commands.
    """
    return _CONTROL_CHARACTERS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class VisibleFormatter(logging.Formatter):
    """Formats a log record as ``logging.Formatter`` does, then applies ``visible`` to the result."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))
