"""Reads files of strings: Java's property files, Apple's string files and Android's string resources.

A value of such a file is a text or a code, and has escape sequences.
"""

import codecs
import re
from collections.abc import Iterator
from xml.sax.saxutils import escape

import regex

from mt.core.coded_text import CodedText, Mark
from mt.core.errors import InputError
from mt.formats.document import (
    Document,
    Languages,
    Passage,
    decode_utf8,
    decode_xml,
    is_translatable,
    line_number,
    replacement_passage,
    untranslated_passage,
)
from mt.formats.kinds import NON_TRANSLATABLE
from mt.formats.layout import cut_paragraphs
from mt.formats.messages import MESSAGE
from mt.formats.tags import CDATA, coded_markup
from mt.formats.xml_elements import Element, read_elements, write_cdata

CODE_VALUE = regex.compile(
    r"(?:rgb|hsl)a?\([^()]*\)|(?:url|var|calc)\(.*\)"  # CSS
    r"|(?:text|image|application|audio|video|font|multipart|message)/[\w.+*-]+"  # a media type
    r"|[a-z]{2,3}(?:[-_][A-Z][a-z]{3})?[-_][A-Z]{2}|[a-z]{2,3}[-_](?:Hans|Hant|Latn|Cyrl|Arab)"  # a locale
    # user.name, utf-8, @string/app_name, :year
    r"|[a-z]\w*+(?:[.:]\w++(?:-\w++)*+)++|[a-z]++(?:-\d++)++|[@?]\+?[\w.:]++/[\w.]++|:[a-z_]\w*+"
    r"|[\d.]+\s?(?:r?em|px|pt|v[hw]|m?s|deg)|\#[0-9A-Fa-f]{3,8}"
)
"""A value that a program reads."""
ESCAPE = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|(?:\r\n|[\r\n])[ \t\f]*|(.))", re.DOTALL)
"""An escape sequence: a code point, a line break that is ignored, or a character."""
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def is_text(value: str) -> bool:
    """Return whether a value is a text to translate, and not a code such as a color, a link, a name or a date."""
    value = value.strip()
    is_code = CODE_VALUE.fullmatch(value) or NON_TRANSLATABLE.fullmatch(value)
    return is_translatable(value) and (not is_code or MESSAGE.search(value) is not None)


def escape_table(signs: str, letters: str) -> dict[int, str]:
    """Return the table for ``str.translate`` that puts a backslash before each sign, and writes letters of ESCAPED."""
    return str.maketrans({sign: f"\\{sign}" for sign in signs} | {ESCAPED[letter]: f"\\{letter}" for letter in letters})


def unescape(text: str) -> str:
    """Return a text with its escape sequences replaced, and with each surrogate pair as one character."""
    text = ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else ESCAPED.get(match[2], match[2] or ""), text)
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


_CONTINUATION = r"\\(?:\r\n|[\r\n])[ \t\f]*+"
_GAP = rf"(?:[ \t\f]|{_CONTINUATION})*+"
PROPERTY = re.compile(
    r"\ufeff?[ \t\f]*+(?:[#!][^\r\n]*+"
    rf"|(?P<key>(?:{_CONTINUATION}|[^ \t\f\r\n\\:=]|\\.|\\\Z)*+){_GAP}[:=]?{_GAP}"
    rf"(?P<value>(?:[^\r\n\\]|{_CONTINUATION}|\\.|\\\Z)*+)"
    r")(?:\r\n|[\r\n]|\Z)",
    re.DOTALL,
)
"""A comment, or a key and its value. Key and value may continue in the next line after a backslash."""
PROPERTY_ESCAPES = escape_table("\\", "tnrf")
ARGUMENT = re.compile(r"\{\d+[,}]")
"""An argument of java.text.MessageFormat, such as {0}. A text with arguments writes an apostrophe twice."""


def read_properties(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a property file. The values that are texts are passages to translate; keys and comments are kept.

    The file is in UTF-8 or, as before Java 9, in Latin-1 with escapes such as ``\\u20ac``. The translation has the same
    encoding; that of an ASCII file is ASCII, which can be read as either.
    """
    try:
        text, encoding = content.decode("utf-8"), "utf-8"
    except UnicodeDecodeError:
        text, encoding = content.decode("latin-1"), "latin-1"
    if text.isascii():
        encoding = "ascii"

    def escape(value: str) -> str:
        value = value.translate(PROPERTY_ESCAPES)
        return f"\\{value}" if value.startswith(" ") else value

    def escape_message(value: str) -> str:
        return escape(value.replace("'", "''"))

    passages = []
    for line in PROPERTY.finditer(text):
        value = unescape(line["value"] or "")
        if not is_text(value):
            continue
        write, flag = escape, "java-printf-format"
        if ARGUMENT.search(value) and "'" in value.replace("''", ""):  # a single apostrophe quotes braces
            flag = "java-format"
        elif ARGUMENT.search(value):
            value, write = value.replace("''", "'"), escape_message
        layout = cut_paragraphs(value, accelerators=True)
        passages.append(replacement_passage(*line.span("value"), layout, write, unescape(line["key"]), flag))
    return Document(text, passages, lambda rendered: rendered.encode(encoding, "java_escape"))


def _escape_unencodable(error: UnicodeError) -> tuple[str, int]:
    """Return escapes such as ``\\u20ac`` for characters that an encoding lacks. This is a codecs error handler."""
    assert isinstance(error, UnicodeEncodeError)
    codes = error.object[error.start : error.end].encode("utf-16-be").hex()
    return re.sub("....", r"\\u\g<0>", codes), error.end


codecs.register_error("java_escape", _escape_unencodable)


_SPACE = r"(?:\s|/\*.*?\*/|//[^\n]*)*+"
_STRING = r'"(?:[^"\\]|\\.)*+"'
APPLE_ENTRY = re.compile(
    rf"(?P<key>{_STRING}|[\w.$/:-]++){_SPACE}=?{_SPACE}(?P<value>{_STRING}|[\w.$/:-]++)?{_SPACE};|/\*.*?\*/|//[^\n]*|\s+|\ufeff",
    re.DOTALL,
)
"""An entry, a comment or whitespace."""
APPLE_OCTAL = re.compile(r"(\\\\)|\\(?:([0-7]{1,3})|(?=[\r\n]))")
APPLE_ESCAPES = escape_table('"\\', "ntr")


def read_apple_strings(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a string file. The values in quotation marks that are texts are passages to translate.

    Raises:
        InputError: The content is no string file.
    """
    text = decode_utf8(content)
    passages = []
    position = 0
    while position < len(text):
        statement = APPLE_ENTRY.match(text, position)
        if statement is None:
            shown = text[position : position + 60].split("\n")[0]
            raise InputError(f'line {line_number(text, position)} is not like "key" = "value"; — correct it: {shown}')
        if statement["value"] and statement["value"].startswith('"'):
            value, key = _unescape_apple(statement["value"][1:-1]), _unescape_apple(statement["key"].strip('"'))
            if is_text(value):
                layout = cut_paragraphs(value, syntax="printf")
                passages.append(replacement_passage(*statement.span("value"), layout, _quote_apple, key, "objc-format"))
        position = statement.end()
    return Document(text, passages)


def _quote_apple(value: str) -> str:
    return f'"{value.translate(APPLE_ESCAPES)}"'


def _unescape_apple(text: str) -> str:
    return unescape(APPLE_OCTAL.sub(lambda match: match[1] or (match[2] and f"\\u{int(match[2], 8):04x}") or "", text))


LIST_ELEMENTS = {"string-array", "plurals"}
QUOTED_PART = re.compile(r'\\.|"((?:[^"\\]|\\.)*+)"?|[ \t\r\n]+', re.DOTALL)
"""An escape sequence, a part in quotation marks, which are not shown, or whitespace, of which one space is shown."""
COLLAPSED_SPACE = re.compile(r"\A | (?= )(?![^<>]*>)| \Z")
"""A blank that is shown only if it is an escape sequence."""
ANDROID_ESCAPES = escape_table("\\\"'", "nt")


def read_android_strings(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read string resources. Strings, and the items of arrays and plurals, are passages to translate.

    What stands in ``xliff:g`` is kept, and so are strings with ``translatable="false"``.

    Raises:
        InputError: The content is no XML of resources.
    """
    text, encode = decode_xml(content)
    elements = read_elements(text)
    if elements[0].name != "resources":
        raise InputError("is no file of string resources: it has no element resources; give the right file")
    passages = [passage for key, string in _android_strings(elements[0]) for passage in _android_passages(string, key)]
    return Document(text, passages, encode)


def _android_strings(resources: Element) -> Iterator[tuple[str, Element]]:
    """Yield the strings and items that may be translated, each with its key."""
    for element in resources.children:
        key = element.attributes.get("name", "")
        strings = []
        if element.attributes.get("type", element.name) == "string":
            strings = [(key, element)]
        elif element.name in LIST_ELEMENTS:
            items = (item for item in element.children if item.name == "item")
            strings = [(f"{key}.{item.attributes.get('quantity', index)}", item) for index, item in enumerate(items)]
        for key, string in strings:
            if "false" not in [own.attributes.get("translatable") for own in (string, string.parent) if own]:
                yield key, string


def _android_passages(string: Element, key: str) -> list[Passage]:
    """Return the passage of a string; no passage if it has no text to translate."""
    raw = string.content
    span = string.content_end - len(raw.lstrip()), string.content_start + len(raw.rstrip())
    cdata = CDATA.fullmatch(raw.strip())
    if not cdata and "<!" in raw:
        return [untranslated_passage(string.start, key)]
    kept = string.find_outermost(lambda part: part.name == "g")
    marks = [Mark(part.start - span[0], part.end - span[0]) for part in kept]
    value = coded_markup(raw.strip(), "xml", marks, cdata_is_text=True)
    has_tags = bool(value.codes)
    value = value if has_tags else CodedText(value.text.strip())
    quoted = QUOTED_PART.fullmatch(value.text)
    parts = value.parts()
    is_quoted = quoted and value.text == f'"{quoted[1]}"' and parts[0][:1] == parts[-1][-1:] == '"'
    quote = '"' if is_quoted else ""
    value = (
        value.split([(1, len(value.text) - 1)], with_ends=True)[1].mapped(unescape)
        if quote
        else value.mapped(_displayed_text)
    )

    def write_text(text: str) -> str:
        text = text.translate(ANDROID_ESCAPES)
        return escape(text) if has_tags else text

    def enclose(written: str) -> str:
        if not quote:
            sign = "\\" if written.startswith(("@", "?")) else ""
            written = sign + COLLAPSED_SPACE.sub(r"\\u0020", written)
        written = f"{quote}{written}{quote}"
        return write_cdata(written) if cdata else written if has_tags else escape(written)

    if not is_text(value.text):
        return []
    layout = cut_paragraphs(value if has_tags else value.text, syntax="printf")
    return [replacement_passage(*span, layout, write_text, key, "c-format", enclose)]


def _displayed_text(text: str) -> str:
    """Return a string without tags as Android shows it."""
    plain = QUOTED_PART.sub(lambda part: part[0] if part[0][0] == "\\" else part[1] if part[0][0] == '"' else " ", text)
    return unescape(plain)
