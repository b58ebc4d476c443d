"""Text from files on its way to a terminal: what would steer it is shown and not obeyed."""

import logging
import re

_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but for tab and line feed, DEL, C1
    "\u2028\u2029"  # line breaks to some programs
    "\u202a-\u202e\u2066-\u2069"  # change the direction of what follows, up to the end of the line
    "\ud800-\udfff]"  # from names of files that are no UTF-8, which no stream takes
)


def visible(text: str) -> str:
    r"""The text with escapes such as ``\x1b`` and ``\u202e`` for the characters that steer a terminal.

    Corpora, names of files and other people's run folders can hold any character. Some sequences of them clear the
    screen, overwrite lines or type commands. Line feeds and tabs stay: log messages have several lines.
    """
    return _STEERING.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


class VisibleFormatter(logging.Formatter):
    """Formats log records as usual and makes the whole of each visible, whatever a message quotes."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))
