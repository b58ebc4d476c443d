"""Makes text from files safe to print, by escaping the characters that control a terminal."""

import logging
import re

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed; DEL; C1
    "\u2028\u2029"  # line breaks for some programs
    "\u202a-\u202e\u2066-\u2069"  # change the direction of what follows, up to the end of the line
    "\ud800-\udfff]"  # surrogates, from file names that are not UTF-8; no stream can write them
)


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
