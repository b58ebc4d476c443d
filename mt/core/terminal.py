"""Makes text from files safe to print: characters that would control the terminal are shown, not obeyed."""

import logging
import re

_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 except tab and line feed; DEL; C1
    "\u2028\u2029"  # line breaks for some programs
    "\u202a-\u202e\u2066-\u2069"  # change the direction of what follows, up to the end of the line
    "\ud800-\udfff]"  # surrogates, from file names that are not UTF-8; no stream can write them
)


def visible(text: str) -> str:
    r"""Return the text with escapes such as ``\x1b`` and ``\u202e`` for the characters that control a terminal.

    Corpora, names of files and other people's run folders can hold any character. Some sequences of them clear the
    screen, overwrite lines or type commands. Line feeds and tabs stay: log messages have several lines.
    """
    return _CONTROL_CHARACTERS.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class VisibleFormatter(logging.Formatter):
    """Formats log records as usual, then applies ``visible`` to all of the record, whatever the message quotes."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))
