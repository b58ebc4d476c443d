"""Cuts a line of HTML or XML into text, paired tags and points, and writes text with entities.

A point is a piece of markup that stands between words and has no words of its own inside: a comment, a processing
instruction, CDATA, a doctype, a void or self-closing element, an element that is not to be translated, and a tag whose
counterpart is missing.

What is a tag is decided here and not by ``html.parser`` or an XML parser. Those repair, drop or refuse what is
malformed, and they do not return the tags as they were written. Here every character of a line ends up in exactly one
unit, whatever the line holds. What is no proper tag is text: ``a < b``, ``<3``, ``<!--`` without an end.

Time is linear in the length of the line. The regular expressions never give back what they have matched (possessive
quantifiers). A match that fails was stopped by the next ``<``, or by a quotation mark without a partner.
"""

import html
import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["html", "xml"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


VOID = _names("area base br col embed hr img input link meta param source track wbr")
"""HTML elements that never have content and have no closing tag."""
RAW = _names("script style")
"""HTML elements in which ``<`` begins no tag."""
UNTRANSLATED = RAW | _names("code kbd math samp svg var")
"""HTML elements whose content is not to be translated."""
SEPARATING = (UNTRANSLATED - RAW) | _names(
    "address article aside blockquote body br caption center dd details dialog dir div dl dt embed fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html img input legend li main menu nav object ol "
    "optgroup option p pre search section select summary table tbody td tfoot th thead title tr ul video"
)
"""HTML elements before and after which a word ends, even where no blank is written."""
BLOCKS = (SEPARATING - UNTRANSLATED) - _names("embed img input object option optgroup select")
"""HTML elements at whose tags a sentence ends."""

_NAME = {
    # In XML a few characters more than its specification names, which only matters for lines that are no XML.
    "html": r"[A-Za-z][^\s/<>\"'=]*+",
    "xml": r"[A-Za-z_:\xc0-\xd6\xd8-\xf6\xf8-\U000effff][^\s/<>\"'=]*+",
}
ATTRIBUTE = r"""([^\s/<>"'=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s<>"']++)))?+"""
_TAG = {
    kind: re.compile(
        rf"<(?:/(?P<close>{name})\s*+>"
        rf"|(?P<open>{name})(?:\s++|/(?!>)|{ATTRIBUTE})*+(?P<slash>/?)>"
        r"|!(?i:doctype)\b[^<>\[]*+(?:\[[^\[\]]*+\][^<>\[]*+)?+>)",
        re.ASCII,  # \s is the white space of HTML and XML
    )
    for kind, name in _NAME.items()
}
_RAW_END = {name: re.compile(rf"</{name}\s*+>", re.ASCII | re.IGNORECASE) for name in RAW}
_ENDS = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>"}

_XML_REFERENCE = re.compile("&(?:(lt|gt|amp|quot|apos)|#0*+([0-9]{1,7})|#x0*+([0-9a-fA-F]{1,6}));")
_XML_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_NO_XML_CHARACTER = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_CODES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": "&#10;", "\r": "&#13;"})


@dataclass
class Unit:
    """A piece of a line. Opening and closing tags come in pairs that are properly nested."""

    role: Literal["text", "open", "close", "point"]
    content: str
    """Text with its entities decoded, or markup as it was written."""
    separates: bool = False
    """Whether a word ends here even if no blank is written."""


class Token(NamedTuple):
    """A piece of a line from ``start`` to ``end``, before tags are paired."""

    role: Literal["text", "open", "close", "point"]
    name: str
    """The name of the element; empty if the token is no tag."""
    start: int
    end: int


def read_units(line: str, kind: Kind) -> list[Unit]:
    """Cuts a line into units. Their contents, with the text not yet decoded, make up the line."""
    tokens = tokens_of(line, kind)
    closings = closings_of(tokens)
    opened = {closing: opening for opening, closing in closings.items()}
    units: list[Unit] = []
    place = 0
    while place < len(tokens):
        role, name, start, end = tokens[place]
        separates = kind == "html" and name in SEPARATING
        if role == "text":
            units.append(Unit("text", decode(line[start:end], kind)))
        elif place in closings and is_untranslated(name, line[start:end], kind):
            place = closings[place]
            units.append(Unit("point", line[start : tokens[place].end], separates=kind == "html"))
        else:
            paired = place in closings or place in opened
            units.append(Unit(role if paired else "point", line[start:end], separates))
        place += 1
    return [unit for unit in units if unit.content]  # decoded text can be empty in HTML, for example &#1;


def cut_into_blocks(page: str) -> list[str]:
    """Cuts a piece of HTML, which may have line breaks, at the tags between which sentences stand.

    Returns:
        Pieces that make up the whole. Those at even places are to be translated, each by itself. Those at odd places
        are not: tags such as ``<p>`` and ``<br>``, and comments and untranslated elements that have line breaks.
    """
    tokens = tokens_of(page, "html")
    closings = closings_of(tokens)
    pieces: list[str] = []
    done = place = 0
    while place < len(tokens):
        role, name, start, end = tokens[place]
        stands = name in BLOCKS
        if place in closings and is_untranslated(name, page[start:end], "html"):
            place = closings[place]
            role, end = "point", tokens[place].end
        if role == "point" and not stands:
            stands = any(character in page[start:end] for character in "\r\n")
        if stands:
            pieces += [page[done:start], page[start:end]]
            done = end
        place += 1
    return [*pieces, page[done:]]


def encode(text: str) -> str:
    """Writes ``&``, ``<`` and ``>`` as entities, and line breaks too, so that a line remains one line."""
    return text.translate(_CODES)


def tokens_of(line: str, kind: Kind) -> list[Token]:
    """Cuts a text into tokens, which make up the text."""
    tokens: list[Token] = []
    # Where each construct ends for the last time. No end is searched for after it: each search would read all the rest.
    last = {start: line.rfind(end) for start, end in _ENDS.items()}
    text = 0  # where the text begins that is not yet among the tokens
    place = line.find("<")
    while place >= 0:
        found = _markup_at(line, place, kind, last)
        if found:
            if text < place:
                tokens.append(Token("text", "", text, place))
            tokens.append(found)
            text = found.end
        place = line.find("<", found.end if found else place + 1)
    if text < len(line):
        tokens.append(Token("text", "", text, len(line)))
    return tokens


def _markup_at(line: str, place: int, kind: Kind, last: dict[str, int]) -> Token | None:
    """Returns the markup that begins at ``place``, where a ``<`` is, or None if this ``<`` is text."""
    for start, end in _ENDS.items():
        if line.startswith(start, place):
            # In HTML <!--> and <!---> are whole comments.
            content = place + (2 if kind == "html" and start == "<!--" else len(start))
            if last[start] < content:
                return None
            return Token("point", "", place, line.index(end, content) + len(end))
    match = _TAG[kind].match(line, place)
    if match is None:
        return None
    name = match["close"] or match["open"] or ""
    name = name.lower() if kind == "html" else name
    if match["close"]:
        return Token("close", name, place, match.end())
    if not match["open"] or match["slash"] or (kind == "html" and name in VOID):
        return Token("point", name, place, match.end())
    if kind == "html" and name in RAW:
        closing = _RAW_END[name].search(line, match.end())
        return Token("point", name, place, closing.end() if closing else len(line))
    return Token("open", name, place, match.end())


def closings_of(tokens: list[Token]) -> dict[int, int]:
    """Returns the place of the closing tag of each opening tag that has one.

    A closing tag belongs to the last opening tag of its name that is still open. The tags that were opened in between
    and not closed have no closing tag.
    """
    closings: dict[int, int] = {}
    unclosed: list[int] = []
    names: Counter[str] = Counter()
    for place, token in enumerate(tokens):
        if token.role == "open":
            unclosed.append(place)
            names[token.name] += 1
        elif token.role == "close" and names[token.name]:
            opening = -1
            while opening < 0 or tokens[opening].name != token.name:
                opening = unclosed.pop()
                names[tokens[opening].name] -= 1
            closings[opening] = place
    return closings


def is_untranslated(name: str, tag: str, kind: Kind) -> bool:
    """Returns whether an element's name or an attribute of its opening tag forbids the translation of its content."""
    if kind == "html" and name in UNTRANSLATED:
        return True
    if "translate" not in tag.lower():
        return False
    for key, *values in re.findall(ATTRIBUTE, tag[1:-1], re.ASCII):  # the tag's name is found, too, without a value
        value = "".join(values)
        if kind == "html":
            key, value = key.lower(), value.lower()
        if key == "translate" and value == "no":
            return True
        if kind == "html" and key == "class" and "notranslate" in value.split():
            return True
    return False


def decode(text: str, kind: Kind) -> str:
    """Returns what a text with entities means."""
    if kind == "xml":
        return _XML_REFERENCE.sub(_xml_character, text)
    # html.unescape fails for numbers of more than 4,300 digits. Without zeros in front, 8 digits are too many already.
    text = re.sub("(?<=&#)0++(?=[0-9])", "", text)
    return html.unescape(re.sub("&#[0-9]{8,}+;?", "\ufffd", text))


def _xml_character(reference: re.Match[str]) -> str:
    """Returns the character that a reference means, or the reference itself if XML allows no such character."""
    name, decimal, hexadecimal = reference.groups()
    if name:
        return _XML_ENTITIES[name]
    number = int(decimal) if decimal else int(hexadecimal, 16)
    if number > 0x10FFFF or _NO_XML_CHARACTER.match(chr(number)):
        return reference[0]
    return chr(number)
