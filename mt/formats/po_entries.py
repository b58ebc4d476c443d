"""Parses the entries of gettext's PO files by the grammar of gettext.

The library polib rewrites the whole file: it wraps lines differently and moves obsolete entries to the end.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from mt.core.coded_text import Splice
from mt.core.errors import InputError
from mt.formats.document import line_number

PO_STRING = r'"((?:[^"\\\n]|\\.)*+)"'
STRING_OR_COMMENT = re.compile(rf"{PO_STRING}|\#[^\n]*")
STATEMENT = re.compile(
    r"\s+|(?P<comment>\#[^\n]*)"
    r"|(?P<keyword>msgctxt|msgid_plural|msgid|msgstr|domain)(?:\s*\[\s*(?P<form>\d{1,3})\s*\])?"
    rf"(?P<strings>(?:(?:\s|\#[^\n]*\n)*+{PO_STRING})*+)"
)
"""Matches whitespace, a comment, or a keyword with its strings."""
PO_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,8})|(.))", re.DOTALL)
PO_ESCAPED = dict(zip('ntrbfva\\"?', '\n\t\r\b\f\v\a\\"?', strict=True))
PO_ESCAPES = str.maketrans({value: f"\\{key}" for key, value in PO_ESCAPED.items() if key != "?"})
MAX_LINE_CHARACTERS = 77
"""The maximum length of a line without its quotation marks. Only a longer word makes a longer line."""
PREDECESSORS = {
    "msgctxt": {"", "msgstr", "domain"},
    "msgid": {"", "msgctxt", "msgstr", "domain"},
    "msgid_plural": {"msgid"},
    "msgstr": {"msgid", "msgid_plural", "msgstr"},
    "domain": {"", "msgstr", "domain"},
}
"""Maps each keyword to the keywords that may precede it. "" is the beginning of the file."""


@dataclass
class Entry:
    """An entry of a PO file: a text of a program and its translation, and their positions in the file."""

    start: int
    """The position of the first keyword, or of the comment ``#|`` with the previous msgid."""
    line_end: str
    """The line end of the file."""
    comments: list[re.Match[str]]
    """The comments before the entry."""
    texts: dict[str, str] = field(default_factory=dict)
    """Maps msgctxt, msgid and msgid_plural to their texts, if the entry has them."""
    forms: list[str] = field(default_factory=list)
    """The text of msgstr, or the texts of msgstr[0], msgstr[1], …; "" for a missing translation."""
    forms_start: int = 0
    """The position of the first msgstr."""
    forms_end: int = 0
    """The position after the last msgstr."""

    @property
    def is_header(self) -> bool:
        return self.texts["msgid"] == "" and "msgctxt" not in self.texts

    @property
    def is_plural(self) -> bool:
        return "msgid_plural" in self.texts

    @property
    def sources(self) -> list[str]:
        """The texts to translate: msgid and, if the entry has plural forms, msgid_plural."""
        return [self.texts[key] for key in ("msgid", "msgid_plural") if key in self.texts]

    @property
    def flags(self) -> list[re.Match[str]]:
        """The comments with flags, such as ``#, fuzzy, c-format``."""
        return [comment for comment in self.comments if comment.group().startswith("#,")]

    @property
    def flag_names(self) -> set[str]:
        return {name for comment in self.flags for name in re.split(r"[#,\s]+", comment.group())}

    @property
    def is_fuzzy(self) -> bool:
        """Whether the translation has not been reviewed by a person."""
        return "fuzzy" in self.flag_names

    def add_fuzzy_flag(self) -> list[Splice]:
        """Return the change that adds the flag ``fuzzy``. Return no change if the entry already has it."""
        if self.is_fuzzy:
            return []
        if flags := self.flags:
            position = flags[0].start() + len("#,")
            return [Splice(position, position, " fuzzy,")]
        return [Splice(self.start, self.start, f"#, fuzzy{self.line_end}")]

    def replace_forms(self, forms: Sequence[str]) -> Splice:
        """Return the change that replaces the translation by the plural forms ``forms``, or by a single one."""
        statements = (
            format_statement(f"msgstr[{number}]" if self.is_plural else "msgstr", form, self.line_end)
            for number, form in enumerate(forms)
        )
        return Splice(self.forms_start, self.forms_end, self.line_end.join(statements))


def parse_entries(text: str, line_end: str) -> list[Entry]:
    """Return the entries of a PO file in order, including the header.

    Raises:
        InputError: The text does not follow the grammar. The message names the line.
    """
    entries: list[Entry] = []
    comments: list[re.Match[str]] = []
    position, keyword = int(text.startswith("\ufeff")), ""
    while position < len(text):
        statement = STATEMENT.match(text, position)
        if statement is None:
            shown = repr(text[position : position + 60].splitlines()[0])
            raise _syntax_error(text, position, "a string without a keyword" if text[position] == '"' else shown)
        if statement["comment"]:
            comments.append(statement)
            if statement["comment"].startswith("#~"):  # an obsolete entry; the comments before it belong to it
                comments.clear()
        elif statement["keyword"]:
            previous, keyword = keyword, statement["keyword"]
            if previous not in PREDECESSORS[keyword]:
                raise _syntax_error(text, position, f"{keyword} after {previous or 'no msgid'}")
            if keyword == "msgctxt" or (keyword == "msgid" and previous != "msgctxt"):
                previous_msgids = (comment.start() for comment in comments if comment["comment"].startswith("#|"))
                entries.append(Entry(next(previous_msgids, position), line_end, comments))
            if keyword != "domain":
                comments = []  # comments inside this entry do not belong to the next one
                _add_text(entries[-1], statement)
        position = statement.end()
    if keyword not in ("", "domain", "msgstr"):
        raise _syntax_error(text, position, f"the entry of line {line_number(text, entries[-1].start)} has no msgstr")
    if not entries and text.strip():
        raise InputError("is not a PO file: it has no msgid; choose another file")
    return entries


def _add_text(entry: Entry, statement: re.Match[str]) -> None:
    """Add the text of a statement, a match of STATEMENT, to its entry. Raise InputError if the grammar forbids it."""
    keyword = statement["keyword"]
    matches = STRING_OR_COMMENT.finditer(statement.string, *statement.span("strings"))
    strings = [_unescape_string(match) for match in matches if match[1] is not None]
    if not strings:
        raise _syntax_error(statement.string, statement.start(), f"{keyword} without a string in quotation marks")
    if keyword != "msgstr":
        entry.texts[keyword] = "".join(strings)
        return
    expected_form = str(len(entry.forms)) if entry.is_plural else None
    if statement["form"] != expected_form or (entry.forms and not entry.is_plural):
        name = statement.group().removesuffix(statement["strings"])
        expected = f"msgstr[{expected_form}] comes next" if entry.is_plural else "the entry needs exactly one msgstr"
        raise _syntax_error(statement.string, statement.start(), f"{name}, but {expected}")
    if not entry.forms:
        entry.forms_start = statement.start()
    entry.forms_end = statement.end()
    entry.forms.append("".join(strings))


def _unescape_string(string: re.Match[str]) -> str:
    """Return the text of a string in quotation marks, with escape sequences such as ``\\n`` replaced."""

    def character(escape: re.Match[str]) -> str:
        octal, hexadecimal, letter = escape.groups()
        if octal or hexadecimal:
            return chr(int(octal or hexadecimal, 8 if octal else 16) & 0xFF)
        if letter not in PO_ESCAPED:
            raise _syntax_error(string.string, string.start(), f"\\{letter} is not an escape sequence")
        return PO_ESCAPED[letter]

    return PO_ESCAPE.sub(character, string[1])


def _syntax_error(text: str, position: int, reason: str) -> InputError:
    return InputError(
        f"line {line_number(text, position)} is not valid PO: {reason}; correct the line (msgfmt -c checks the file)"
    )


def format_statement(keyword: str, text: str, line_end: str) -> str:
    """Return a statement as gettext writes it, wrapped after every line feed and at MAX_LINE_CHARACTERS."""
    lines = [""]
    for word in re.findall(r"\S+[^\S\n]*\n?|[^\S\n]+\n?|\n", text):
        word = word.translate(PO_ESCAPES)
        if lines[-1].endswith("\\n") or (lines[-1] and len(lines[-1]) + len(word.rstrip()) > MAX_LINE_CHARACTERS):
            lines.append("")
        lines[-1] += word
    if len(lines) > 1 or len(keyword) + len(lines[0]) > MAX_LINE_CHARACTERS:
        lines.insert(0, "")
    return f"{keyword} " + line_end.join(f'"{line}"' for line in lines)
