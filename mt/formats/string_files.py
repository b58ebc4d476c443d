"""Reads string files: Java's property files, Apple's string files and Android's string resources.

Their values are texts or codes, and may have escape sequences.
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
"""Matches a value that is read by a program instead of a person."""
ESCAPE = re.compile(r"\\(?:[uU]([0-9a-fA-F]{4})|(?:\r\n|[\r\n])[ \t\f]*|(.))", re.DOTALL)
"""An escape sequence: a code point, an ignored line break, or a character."""
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}


def is_text(value: str) -> bool:
    """Return whether a value is a text to translate. Codes such as colors, links, identifiers and dates are not."""
    value = value.strip()
    is_code = CODE_VALUE.fullmatch(value) or NON_TRANSLATABLE.fullmatch(value)
    return is_translatable(value) and (not is_code or MESSAGE.search(value) is not None)


def escape_table(symbols: str, letters: str) -> dict[int, str]:
    """Return a table for ``str.translate`` that writes escape sequences.

    Args:
        symbols: Characters to escape by a backslash.
        letters: Keys of ESCAPED, whose characters are written as a backslash and the letter.
    """
    escapes = {symbol: f"\\{symbol}" for symbol in symbols}
    return str.maketrans(escapes | {ESCAPED[letter]: f"\\{letter}" for letter in letters})


def unescape(text: str) -> str:
    """Replace the escape sequences of a text by their characters. A surrogate pair becomes one character."""
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
"""A comment, or a key and its value. After a backslash at the end of a line, they continue in the next one."""
PROPERTY_ESCAPES = escape_table("\\", "tnrf")
ARGUMENT = re.compile(r"\{\d+[,}]")
"""An argument of java.text.MessageFormat, such as {0}. In a text with arguments, apostrophes are doubled."""


def read_properties(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a property file. The values that are texts are translated; keys and comments are preserved.

    The file is in UTF-8 or, as before Java 9, in Latin-1 with escapes such as ``\\u20ac``. The translation has the same
    encoding. An ASCII file stays ASCII, because it can be read in both encodings.
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
"""Matches an entry, a comment or whitespace."""
APPLE_OCTAL = re.compile(r"(\\\\)|\\(?:([0-7]{1,3})|(?=[\r\n]))")
APPLE_ESCAPES = escape_table('"\\', "ntr")


def read_apple_strings(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read a string file. The values in quotation marks that are texts are translated.

    Raises:
        InputError: The content is not a string file.
    """
    text = decode_utf8(content)
    passages = []
    position = 0
    while position < len(text):
        statement = APPLE_ENTRY.match(text, position)
        if statement is None:
            shown = text[position : position + 60].split("\n")[0]
            raise InputError(f'line {line_number(text, position)} must have the form "key" = "value"; — not: {shown}')
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
STRING_PART = re.compile(r'(\\.)|"((?:[^"\\]|\\.)*+)"?|[ \t\r\n]+', re.DOTALL)
"""An escape sequence (group 1), a part in quotation marks (group 2), which are not displayed, or whitespace, which is
displayed as one space."""
COLLAPSED_SPACE = re.compile(r"\A | (?= )(?![^<>]*>)| \Z")
"""A space that is only displayed if it is written as an escape sequence."""
ANDROID_ESCAPES = escape_table("\\\"'", "nt")


def read_android_strings(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read string resources. Strings, and the items of arrays and plurals, are translated.

    The content of ``xliff:g``, and strings with ``translatable="false"``, are preserved.

    Raises:
        InputError: The content is not well-formed XML with the root element ``resources``.
    """
    text, encode = decode_xml(content)
    elements = read_elements(text)
    if elements[0].name != "resources":
        raise InputError("is not a file of string resources: it has no root element resources; choose another file")
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
            if "false" not in [owner.attributes.get("translatable") for owner in (string, string.parent) if owner]:
                yield key, string


def _android_passages(string: Element, key: str) -> list[Passage]:
    """Return the passage of a string; an empty list if it has no text to translate."""
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
    quoted = STRING_PART.fullmatch(value.text)
    parts = value.parts()
    is_quoted = quoted and value.text == f'"{quoted[2]}"' and parts[0][:1] == parts[-1][-1:] == '"'
    if is_quoted:
        value = value.split([(1, len(value.text) - 1)], with_ends=True)[1].mapped(unescape)
    else:
        value = value.mapped(_displayed_text)

    def write_text(text: str) -> str:
        text = text.translate(ANDROID_ESCAPES)
        return escape(text) if has_tags else text

    def enclose(written: str) -> str:
        if is_quoted:
            written = f'"{written}"'
        else:
            prefix = "\\" if written.startswith(("@", "?")) else ""
            written = prefix + COLLAPSED_SPACE.sub(r"\\u0020", written)
        if cdata:
            return write_cdata(written)
        return written if has_tags else escape(written)

    if not is_text(value.text):
        return []
    layout = cut_paragraphs(value if has_tags else value.text, syntax="printf")
    return [replacement_passage(*span, layout, write_text, key, "c-format", enclose)]


def _displayed_text(text: str) -> str:
    """Return a string without tags as Android displays it."""
    return unescape(STRING_PART.sub(lambda part: part[1] or part[2] if part.lastindex else " ", text))
