"""gettext's PO files and templates (.pot).

They are read by the grammar of gettext. polib, the library for them, would write them anew: it breaks lines otherwise,
and puts obsolete entries last. Here only ``msgstr``, the mark ``fuzzy`` and, in the header, what a template leaves open
change.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from mt.core.errors import InputError
from mt.core.language import base_language
from mt.data.parsers.directives import with_directives_of
from mt.data.parsers.document import Document, Languages, Passage, Splice, is_text, line_pairs
from mt.data.parsers.layout import cut
from mt.data.parsers.plurals import PluralRule, read_rule, rule_of
from mt.text.items import ITEM

TOKEN = re.compile(
    r'(?P<space>\s+)|(?P<comment>\#[^\n]*)|(?P<string>"(?:[^"\\\n]|\\.)*+")'
    r"|(?P<keyword>msgctxt|msgid_plural|msgid|msgstr(?:\s*\[\s*(?P<form>\d{1,3})\s*\])?|domain)"
)
ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,8})|(.))", re.DOTALL)
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "\\": "\\", '"': '"', "?": "?"}
SPELT = str.maketrans({value: f"\\{key}" for key, value in ESCAPED.items() if key != "?"})
CHARSET = re.compile(rb'"Content-Type:[^"\n]*?charset=([^\s"\\;]+)', re.IGNORECASE)
WIDTH = 77
"""The most characters of a line, without the quotation marks, if it can be broken."""
FOLLOWS = {
    "msgctxt": {"", "msgstr"},
    "msgid": {"", "msgctxt", "msgstr"},
    "msgid_plural": {"msgid"},
    "msgstr": {"msgid", "msgid_plural", "msgstr"},
}
"""Which keywords may stand in front of each."""


@dataclass
class Entry:
    """An entry, and where its parts are in the text."""

    start: int
    """Where its first keyword is, or the comment with the text that it had before."""
    line: int
    flags: list[tuple[int, int]]
    """Its comments of flags, such as ``#, fuzzy, c-format``."""
    text: str
    texts: dict[str, str] = field(default_factory=dict)
    """What each keyword says: msgctxt, msgid, msgid_plural."""
    forms: list[str] = field(default_factory=list)
    """What msgstr says, or msgstr[0], msgstr[1] and so on."""
    forms_start: int = 0
    forms_end: int = 0

    @property
    def is_header(self) -> bool:
        return self.texts["msgid"] == "" and "msgctxt" not in self.texts

    @property
    def flag_names(self) -> set[str]:
        return {name for start, end in self.flags for name in re.split(r"[#,\s]+", self.text[start:end])}

    @property
    def is_fuzzy(self) -> bool:
        return "fuzzy" in self.flag_names

    def marked_fuzzy(self) -> list[Splice]:
        if self.is_fuzzy:
            return []
        if self.flags:
            place = self.flags[0][0] + len("#,")
            return [Splice(place, place, " fuzzy,")]
        return [Splice(self.start, self.start, f"#, fuzzy{_line_end(self.text)}")]

    def with_forms(self, forms: Sequence[str]) -> Splice:
        is_plural = "msgid_plural" in self.texts
        keywords = [f"msgstr[{number}]" if is_plural else "msgstr" for number in range(len(forms))]
        written = _line_end(self.text).join(
            _spelt(keyword, form, _line_end(self.text)) for keyword, form in zip(keywords, forms, strict=True)
        )
        return Splice(self.forms_start, self.forms_end, written)


def read_po(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Reads a PO file.

    Args:
        content: The file.
        languages: From what it is translated into what.
        retranslate: Whether entries that have a translation are translated, too.

    Raises:
        InputError: It is no PO file, or one of another language.
    """
    text, encoding = _decoded(content)
    entries = _entries(text)
    header = next((entry for entry in entries if entry.is_header), None)
    fields = _fields(header)
    own = fields.get("language", "")
    if own and base_language(own) != base_language(languages.target):
        raise InputError(f"is a translation into {own} by its header, and the model translates into {languages.target}")
    rule = _rule(fields) or rule_of(languages.target)
    passages, translated = [], 0
    for entry in entries:
        sources = [entry.texts[key] for key in ("msgid", "msgid_plural") if key in entry.texts]
        if entry.is_header or not all(map(is_text, sources)):
            continue
        if all(entry.forms) and not retranslate:
            translated += 1
            continue
        layouts = tuple(cut(source, accelerators=True) for source in sources)
        passages.append(Passage(layouts, partial(_written, entry, rule, retranslate)))
    is_plural = any("msgid_plural" in entry.texts for entry in entries)
    changes = _changed_header(text, header, fields, languages, rule if is_plural else None)

    def encode(written: str) -> bytes:
        try:
            return written.encode(encoding)
        except UnicodeEncodeError as error:
            raise InputError(
                f"is in {encoding}, which has no {error.object[error.start]}: msgconv -t UTF-8 makes UTF-8 of it"
            ) from None

    return Document(text, tuple(passages), encode, changes, translated)


def po_pairs(content: bytes, source: str, target: str) -> Iterator[tuple[str, str]]:
    """Yields the texts of a PO file with their translations, line by line where both have as many. Fuzzy entries, which
    nobody has read yet, are left out.

    Raises:
        InputError: It is no PO file, or one of another language.
    """
    entries = _entries(_decoded(content)[0])
    fields = _fields(next((entry for entry in entries if entry.is_header), None))
    own = fields.get("language", "")
    languages = [base_language(code) for code in (source, target)]
    if own and base_language(own) not in languages:
        raise InputError(f"is a translation into {own} by its header, not into {target}")
    is_reversed = base_language(own) == languages[0] if own else False
    rule = _rule(fields) or rule_of(source if is_reversed else target)
    for entry in entries:
        if entry.is_header or entry.is_fuzzy or not all(entry.forms):
            continue
        pairs = [(entry.texts["msgid"], entry.forms[0])]
        if "msgid_plural" in entry.texts:
            singular = rule.singular if rule else 0
            plural = (entry.texts["msgid_plural"], entry.forms[-1])
            pairs = [plural] if singular is None else [(entry.texts["msgid"], entry.forms[singular]), plural]
        for texts in pairs:
            for one, two in line_pairs(*texts):
                yield (two, one) if is_reversed else (one, two)


def _decoded(content: bytes) -> tuple[str, str]:
    """Returns the text and its encoding, which is in its header."""
    found = CHARSET.search(content)
    name = found[1].decode("ascii", "replace") if found else "UTF-8"
    encoding = "UTF-8" if name == "CHARSET" else name
    try:
        if not codecs.lookup(encoding)._is_text_encoding:
            raise LookupError
        return content.decode(encoding), encoding
    except LookupError:
        raise InputError(f"an unknown encoding in its header: charset={name}") from None
    except UnicodeError as error:
        line = content.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise InputError(f"line {line} is not in {encoding}, the encoding of its header") from None


def _entries(text: str) -> list[Entry]:
    entries: list[Entry] = []
    flags: list[tuple[int, int]] = []
    keyword, before, place, line = "", -1, 0, 1
    strings: list[str] = []

    def finish() -> None:
        """Keeps what the last keyword says."""
        if not keyword or keyword == "domain":
            return
        if not strings:
            raise InputError(f"line {line} is no PO: {keyword} without a text in quotation marks")
        if keyword == "msgstr":
            entries[-1].forms.append("".join(strings))
        else:
            entries[-1].texts[keyword] = "".join(strings)
        strings.clear()

    while place < len(text):
        token = TOKEN.match(text, place)
        if token is None:
            raise InputError(f"line {line} is no PO: {text[place:].splitlines()[0][:60]!r}")
        content, start, place = token.group(), place, token.end()
        if token["comment"]:
            if content.startswith("#~"):
                flags, before = [], -1  # those in front of it belong to an obsolete entry
            elif content.startswith("#,"):
                flags.append((start, place))
            elif content.startswith("#|") and before < 0:
                before = start
        elif token["string"]:
            if not keyword:
                raise InputError(f"line {line} is no PO: a text without a keyword")
            strings.append(_meant(content, line))
            if keyword == "msgstr":
                entries[-1].forms_end = place
        elif token["keyword"]:
            finish()
            previous, keyword = keyword, re.split(r"[\s\[]", content)[0]
            previous = "" if previous == "domain" else previous
            if keyword == "domain":
                _refuse_unfinished(entries, line)
            elif previous not in FOLLOWS[keyword]:
                raise InputError(f"line {line} is no PO: {keyword} behind {previous or 'no msgid'}")
            elif keyword == "msgctxt" or (keyword == "msgid" and previous != "msgctxt"):
                _refuse_unfinished(entries, line)
                entries.append(Entry(start if before < 0 else before, line, flags, text))
                flags, before = [], -1
            elif keyword == "msgstr":
                entry = entries[-1]
                if not entry.forms:
                    entry.forms_start = start
                is_plural = "msgid_plural" in entry.texts
                if token["form"] != (str(len(entry.forms)) if is_plural else None) or (entry.forms and not is_plural):
                    raise InputError(f"line {line} is no PO: {content} is one translation too many, or of another form")
        line += content.count("\n")
    finish()
    _refuse_unfinished(entries, line)
    if not entries and text.strip():
        raise InputError("is no PO: there is no msgid in it")
    return entries


def _refuse_unfinished(entries: Sequence[Entry], line: int) -> None:
    if entries and not entries[-1].forms:
        raise InputError(f"line {line} is no PO: the entry of line {entries[-1].line} has no msgstr")


def _meant(string: str, line: int) -> str:
    """Returns what a text in quotation marks means."""

    def character(found: re.Match[str]) -> str:
        octal, hexadecimal, letter = found.groups()
        if octal or hexadecimal:
            return chr(int(octal or hexadecimal, 8 if octal else 16) & 0xFF)
        if letter not in ESCAPED:
            raise InputError(f"line {line} is no PO: \\{letter} means nothing")
        return ESCAPED[letter]

    return ESCAPE.sub(character, string[1:-1]) if "\\" in string else string[1:-1]


def _spelt(keyword: str, text: str, line_end: str) -> str:
    """Returns a keyword with its text as gettext writes it: broken behind every line feed, and where it is long."""
    lines = [""]
    for word in re.findall(r"\S+[^\S\n]*\n?|[^\S\n]+\n?|\n", text):
        word = word.translate(SPELT)
        if lines[-1].endswith("\\n") or (lines[-1] and len(lines[-1]) + len(word.rstrip()) > WIDTH):
            lines.append("")
        lines[-1] += word
    if len(lines) > 1 or len(keyword) + len(lines[0]) > WIDTH:
        lines.insert(0, "")
    return f"{keyword} " + line_end.join(f'"{one}"' for one in lines)


def _written(entry: Entry, rule: PluralRule | None, retranslate: bool, translations: list[str]) -> list[Splice] | None:
    sources = [entry.texts[key] for key in ("msgid", "msgid_plural") if key in entry.texts]
    taken = [with_directives_of(*pair, entry.flag_names) for pair in zip(sources, translations, strict=True)]
    texts = [text for text in taken if text is not None]
    if len(texts) < len(taken):
        return None
    if "msgid_plural" not in entry.texts:
        return [entry.with_forms(texts), *entry.marked_fuzzy()]
    singular, plural = texts
    forms = [plural] * (rule.forms if rule else max(2, len(entry.forms)))
    number = rule.singular if rule else 0
    if number is not None:
        of_text = [sorted(ITEM.findall(entry.texts[key])) for key in ("msgid", "msgid_plural")]
        if rule is None or rule.singular_is_rare or of_text[0] == of_text[1]:
            forms[number] = singular
    if not retranslate:
        forms[: len(entry.forms)] = [own or new for own, new in zip(entry.forms, forms, strict=False)]
    return [entry.with_forms(forms), *entry.marked_fuzzy()]


def _fields(header: Entry | None) -> dict[str, str]:
    lines = header.forms[0].split("\n") if header else []
    return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _rule(fields: dict[str, str]) -> PluralRule | None:
    try:
        return read_rule(fields.get("plural-forms", ""))
    except ValueError as error:
        raise InputError(f"Plural-Forms in its header cannot be computed: {error}") from None


def _changed_header(
    text: str, header: Entry | None, fields: dict[str, str], languages: Languages, rule: PluralRule | None
) -> tuple[Splice, ...]:
    """Returns what fills in a header: the encoding, the language and, if there is a rule, that of the plural."""
    missing = {}
    if "charset=" not in fields.get("content-type", "") or "charset=CHARSET" in fields["content-type"]:
        missing["Content-Type"] = "text/plain; charset=UTF-8"
    if not fields.get("language"):
        missing["Language"] = languages.target.replace("-", "_")
    if rule and (not fields.get("plural-forms") or "nplurals=INTEGER" in fields["plural-forms"]):
        missing["Plural-Forms"] = rule.header
    if header is None:
        template = {"MIME-Version": "1.0", "Content-Transfer-Encoding": "8bit"} | missing
        written = _spelt("msgstr", "".join(f"{name}: {value}\n" for name, value in template.items()), _line_end(text))
        start = len(text) - len(text.removeprefix("\ufeff"))
        return (Splice(start, start, _line_end(text).join(('msgid ""', written, "", ""))),)
    if not missing:
        return ()
    lines = []
    for line in filter(None, header.forms[0].split("\n")):
        name = next((name for name in missing if line.lower().startswith(f"{name.lower()}:")), None)
        lines.append(f"{name}: {missing.pop(name)}" if name else line)
    lines += [f"{name}: {value}" for name, value in missing.items()]
    # gettext does not use a fuzzy header, and with it the encoding and the rule of the plural would be lost.
    marks = [Splice(start, end, re.sub(r"\s*fuzzy(,|$)|, fuzzy", "", text[start:end])) for start, end in header.flags]
    return header.with_forms(["".join(f"{line}\n" for line in lines)]), *marks


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
