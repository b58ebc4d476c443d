"""gettext's PO files and templates (.pot).

They are parsed by the grammar of gettext. The library polib would write them anew: it breaks lines differently and
moves obsolete entries to the end. Here only ``msgstr``, the flag ``fuzzy`` and the gaps in a template's header change.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from mt.core.errors import InputError
from mt.core.language import base_language
from mt.data.parsers.directives import match_directives
from mt.data.parsers.document import Document, Languages, Passage, Splice, decode_declared, is_translatable, line_pairs
from mt.data.parsers.layout import cut_paragraphs
from mt.data.parsers.plurals import PluralRule, parse_plural_rule, plural_rule
from mt.text.placeholders.values import NON_TRANSLATABLE

STRING = r'"((?:[^"\\\n]|\\.)*+)"'
STRING_OR_COMMENT = re.compile(rf"{STRING}|\#[^\n]*")
STATEMENT = re.compile(
    r"\s+|(?P<comment>\#[^\n]*)"
    r"|(?P<keyword>msgctxt|msgid_plural|msgid|msgstr|domain)(?:\s*\[\s*(?P<form>\d{1,3})\s*\])?"
    rf"(?P<strings>(?:(?:\s|\#[^\n]*\n)*+{STRING})*+)"
)
"""White space, a comment, or a keyword with its text."""
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,8})|(.))", re.DOTALL)
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "\\": "\\", '"': '"', "?": "?"}
ESCAPES = str.maketrans({value: f"\\{key}" for key, value in ESCAPED.items() if key != "?"})
CHARSET = re.compile(rb'"Content-Type:[^"\n]*?charset=([^\s"\\;]+)', re.IGNORECASE)
MAX_LINE_CHARACTERS = 77
"""Maximum length of a line that can be broken, without its quotation marks."""
PREDECESSORS = {
    "msgctxt": {"", "msgstr", "domain"},
    "msgid": {"", "msgctxt", "msgstr", "domain"},
    "msgid_plural": {"msgid"},
    "msgstr": {"msgid", "msgid_plural", "msgstr"},
    "domain": {"", "msgstr", "domain"},
}
"""The keywords that may stand before each keyword."""

COMPLETE_FIELDS = {"Content-Type": "charset=(?!CHARSET)", "Language": ".", "Plural-Forms": "^(?!.*nplurals=INTEGER)."}
"""Match the fields of a header that need not be filled in."""


@dataclass
class Entry:
    """An entry, and the positions of its parts in the document."""

    start: int
    """The position of its first keyword, or of the comment with its previous msgid."""
    line_end: str
    """The line end of the document."""
    flags: list[re.Match[str]]
    """Its comments with flags, such as ``#, fuzzy, c-format``."""
    texts: dict[str, str] = field(default_factory=dict)
    """The texts of msgctxt, msgid and msgid_plural."""
    forms: list[str] = field(default_factory=list)
    """The text of msgstr, or those of msgstr[0], msgstr[1] and so on."""
    forms_start: int = 0
    forms_end: int = 0

    @property
    def is_header(self) -> bool:
        return self.texts["msgid"] == "" and "msgctxt" not in self.texts

    @property
    def is_plural(self) -> bool:
        return "msgid_plural" in self.texts

    @property
    def sources(self) -> list[str]:
        """The text to translate, singular and plural."""
        return [self.texts[key] for key in ("msgid", "msgid_plural") if key in self.texts]

    @property
    def flag_names(self) -> set[str]:
        return {name for comment in self.flags for name in re.split(r"[#,\s]+", comment.group())}

    @property
    def is_fuzzy(self) -> bool:
        return "fuzzy" in self.flag_names

    def set_fuzzy(self) -> list[Splice]:
        if self.is_fuzzy:
            return []
        if self.flags:
            position = self.flags[0].start() + len("#,")
            return [Splice(position, position, " fuzzy,")]
        return [Splice(self.start, self.start, f"#, fuzzy{self.line_end}")]

    def set_forms(self, forms: Sequence[str]) -> Splice:
        keywords = [f"msgstr[{number}]" if self.is_plural else "msgstr" for number in range(len(forms))]
        statements = (_format(*statement, self.line_end) for statement in zip(keywords, forms, strict=True))
        return Splice(self.forms_start, self.forms_end, self.line_end.join(statements))


class _File:
    """A PO file: its entries, and the fields of its header."""

    def __init__(self, content: bytes) -> None:
        declared = CHARSET.search(content)
        encoding = declared[1].decode("ascii", "replace") if declared else "CHARSET"
        self.text, self.encoding = decode_declared(content, "UTF-8" if encoding == "CHARSET" else encoding)
        self.line_end = "\r\n" if "\r\n" in self.text else "\n"
        self.entries = _parse(self.text, self.line_end)
        self.header = next((entry for entry in self.entries if entry.is_header), None)
        lines = self.header.forms[0].split("\n") if self.header else []
        self.fields = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        self.language = self.fields.get("language", "")

    def plural_rule(self, target: str) -> PluralRule | None:
        """Return the plural rule of the header or, if it has none, that of a language."""
        try:
            return parse_plural_rule(self.fields.get("plural-forms", "")) or plural_rule(target)
        except ValueError as error:
            raise InputError(f"Plural-Forms in its header cannot be computed: {error}") from None

    def encode(self, text: str) -> bytes:
        try:
            return text.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise InputError(
                f"is in {self.encoding}, which has no {error.object[error.start]}: msgconv -t UTF-8 makes UTF-8 of it"
            ) from None


def read_po(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a PO file.

    Args:
        content: The file.
        languages: The languages of the model.
        retranslate: Whether entries that have a translation are translated, too.

    Raises:
        InputError: It is no PO file, or one of another language.
    """
    file = _File(content)
    if file.language and not languages.match(languages.source, file.language):
        raise InputError(
            f"is a translation into {file.language} by its header, and the model translates into {languages.target}"
        )
    rule = file.plural_rule(languages.target)
    passages, translated = [], 0
    for entry in file.entries:
        if entry.is_header or not all(map(is_translatable, entry.sources)):
            continue
        if all(entry.forms) and not retranslate:
            translated += 1
            continue
        layouts = tuple(cut_paragraphs(source, accelerators=True) for source in entry.sources)
        passages.append(Passage(layouts, partial(_translate_entry, entry, rule, retranslate)))
    is_plural = any(entry.is_plural for entry in file.entries)
    changes = _complete_header(file, languages, rule if is_plural else None)
    return Document(file.text, tuple(passages), file.encode, changes, translated)


def po_pairs(content: bytes, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yield the texts of a PO file with their translations, line by line where both have as many.

    Fuzzy entries, which nobody has reviewed yet, are left out.

    Raises:
        InputError: It is no PO file, or one of another language.
    """
    file = _File(content)
    codes = [base_language(code) for code in (source, target)]
    if file.language and base_language(file.language) not in codes:
        raise InputError(f"is a translation into {file.language} by its header, not into {target}")
    is_reversed = bool(file.language) and base_language(file.language) == codes[0]
    rule = file.plural_rule(source if is_reversed else target)
    for entry in file.entries:
        if entry.is_header or entry.is_fuzzy or not all(entry.forms):
            continue
        pairs = [(entry.sources[-1], entry.forms[-1])]
        singular = rule.singular if rule else 0
        if entry.is_plural and singular is not None:
            pairs.insert(0, (entry.sources[0], entry.forms[singular]))
        for pair in pairs:
            for text, translation in line_pairs(*pair):
                yield (translation, text) if is_reversed else (text, translation)


def _parse(text: str, line_end: str) -> list[Entry]:
    entries: list[Entry] = []
    comments: list[re.Match[str]] = []
    position, keyword = 0, ""
    while position < len(text):
        statement = STATEMENT.match(text, position)
        if statement is None:
            shown = repr(text[position : position + 60].splitlines()[0])
            raise _error(text, position, "a text without a keyword" if text[position] == '"' else shown)
        if statement["comment"]:
            comments.append(statement)
            if statement["comment"].startswith("#~"):  # an obsolete entry, which the comments before it belong to
                comments.clear()
        elif statement["keyword"]:
            previous, keyword = keyword, statement["keyword"]
            if previous not in PREDECESSORS[keyword]:
                raise _error(text, position, f"{keyword} behind {previous or 'no msgid'}")
            if keyword == "msgctxt" or (keyword == "msgid" and previous != "msgctxt"):
                flags = [comment for comment in comments if comment["comment"].startswith("#,")]
                previous_msgids = (comment.start() for comment in comments if comment["comment"].startswith("#|"))
                entries.append(Entry(next(previous_msgids, position), line_end, flags))
                comments.clear()
            if keyword != "domain":
                _add_text(entries[-1], statement)
        position = statement.end()
    if keyword not in ("", "domain", "msgstr"):
        raise _error(text, position, f"the entry of line {_line(text, entries[-1].start)} has no msgstr")
    if not entries and text.strip():
        raise InputError("is no PO: there is no msgid in it")
    return entries


def _add_text(entry: Entry, statement: re.Match[str]) -> None:
    """Add the text of a statement to its entry."""
    keyword = statement["keyword"]
    matches = STRING_OR_COMMENT.finditer(statement.string, *statement.span("strings"))
    strings = [_unescape(match) for match in matches if match[1] is not None]
    if not strings:
        raise _error(statement.string, statement.start(), f"{keyword} without a text in quotation marks")
    if keyword != "msgstr":
        entry.texts[keyword] = "".join(strings)
        return
    expected_form = str(len(entry.forms)) if entry.is_plural else None
    if statement["form"] != expected_form or (entry.forms and not entry.is_plural):
        name = statement.group().removesuffix(statement["strings"])
        reason = f"{name} is one translation too many, or of another form"
        raise _error(statement.string, statement.start(), reason)
    if not entry.forms:
        entry.forms_start = statement.start()
    entry.forms_end = statement.end()
    entry.forms.append("".join(strings))


def _unescape(string: re.Match[str]) -> str:
    """Return the meaning of a text in quotation marks."""

    def character(escape: re.Match[str]) -> str:
        octal, hexadecimal, letter = escape.groups()
        if octal or hexadecimal:
            return chr(int(octal or hexadecimal, 8 if octal else 16) & 0xFF)
        if letter not in ESCAPED:
            raise _error(string.string, string.start(), f"\\{letter} means nothing")
        return ESCAPED[letter]

    return ESCAPE.sub(character, string[1])


def _error(text: str, position: int, reason: str) -> InputError:
    return InputError(f"line {_line(text, position)} is no PO: {reason}")


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1


def _format(keyword: str, text: str, line_end: str) -> str:
    """Return a statement as gettext writes it: broken after every line feed, and where it is long."""
    lines = [""]
    for word in re.findall(r"\S+[^\S\n]*\n?|[^\S\n]+\n?|\n", text):
        word = word.translate(ESCAPES)
        if lines[-1].endswith("\\n") or (lines[-1] and len(lines[-1]) + len(word.rstrip()) > MAX_LINE_CHARACTERS):
            lines.append("")
        lines[-1] += word
    if len(lines) > 1 or len(keyword) + len(lines[0]) > MAX_LINE_CHARACTERS:
        lines.insert(0, "")
    return f"{keyword} " + line_end.join(f'"{line}"' for line in lines)


def _translate_entry(
    entry: Entry, rule: PluralRule | None, retranslate: bool, translations: list[str]
) -> list[Splice] | None:
    """Return the changes for a translation of each source, or None if the directives do not allow it."""
    texts = []
    for source, translation in zip(entry.sources, translations, strict=True):
        text = match_directives(source, translation, entry.flag_names)
        if text is None:
            return None
        texts.append(text)
    forms = _plural_forms(entry, rule, *texts) if entry.is_plural else texts
    if entry.is_plural and not retranslate:
        forms[: len(entry.forms)] = [old or new for old, new in zip(entry.forms, forms, strict=False)]
    return [entry.set_forms(forms), *entry.set_fuzzy()]


def _plural_forms(entry: Entry, rule: PluralRule | None, singular: str, plural: str) -> list[str]:
    forms = [plural] * (rule.forms if rule else max(2, len(entry.forms)))
    number = rule.singular if rule else 0
    items = [sorted(NON_TRANSLATABLE.findall(source)) for source in entry.sources]
    if number is not None and (rule is None or rule.singular_is_rare or items[0] == items[1]):
        forms[number] = singular
    return forms


def _complete_header(file: _File, languages: Languages, rule: PluralRule | None) -> tuple[Splice, ...]:
    """Return the changes that add missing fields to the header: encoding, language and, if there is a rule, plurals."""
    header = file.header
    fields = {
        "Content-Type": "text/plain; charset=UTF-8",
        "Language": languages.target.replace("-", "_"),
        "Plural-Forms": rule.header if rule else "",
    }
    text = header.forms[0] if header else "MIME-Version: 1.0\nContent-Transfer-Encoding: 8bit\n"
    for name, value in fields.items():
        line = re.search(rf"(?im)^{name}:(.*)$\n?", text)
        if not value or (line and re.search(COMPLETE_FIELDS[name], line[1].strip())):
            continue
        if line:
            text = f"{text[: line.start()]}{name}: {value}\n{text[line.end() :]}"
        else:
            text = f"{text.rstrip()}\n{name}: {value}\n".lstrip()
    if header is None:
        start = len(file.text) - len(file.text.removeprefix("\ufeff"))
        return (Splice(start, start, file.line_end.join(('msgid ""', _format("msgstr", text, file.line_end), "", ""))),)
    if text == header.forms[0]:
        return ()
    # gettext ignores a fuzzy header, its encoding and plural rule included.
    unset_fuzzy = [
        Splice(*comment.span(), re.sub(r"\s*fuzzy(,|$)|, fuzzy", "", comment.group())) for comment in header.flags
    ]
    return header.set_forms([text]), *unset_fuzzy
