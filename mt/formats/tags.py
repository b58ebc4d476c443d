"""Divides a line of HTML or XML into tokens (text, paired tags and standalone tags), and encodes and decodes entities.

A standalone tag is markup without translatable content: a comment, a processing instruction, CDATA, a doctype, a void
or self-closing element, an untranslated element with its content, or a tag without a counterpart.

``html.parser`` and XML parsers are not used, because they repair, drop or refuse malformed markup, and do not return
the original tags. Here every character of a line is in exactly one token. Malformed tags are text: ``a < b``, ``<3``,
``<!--`` without an end.

The time is linear in the length of the line: the regular expressions have possessive quantifiers, and a match that
fails ends at the next ``<`` or at an unpaired quotation mark.
"""

import html
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from mt.core.coded_text import CodedText, Mark, coded_text, nested_pairs
from mt.formats.marks import find_pairs

MarkupKind = Literal["html", "xml", "auto"]
"""``auto``: plain text with paired marks (``mt.formats.marks``)."""
Role = Literal["text", "open", "close", "standalone", "element"]
"""``element`` is an untranslated element from its opening to its closing tag (``merge_untranslated_elements``)."""


def _name_set(text: str) -> frozenset[str]:
    """Return the names in a text, which are separated by spaces."""
    return frozenset(text.split())


VOID = _name_set("area base br col embed hr img input link meta param source track wbr")
"""HTML elements without content and closing tag."""
RAW = _name_set("script style")
"""HTML elements whose content has no tags, so that ``<`` is an ordinary character."""
UNTRANSLATED = RAW | _name_set("code kbd math pre rp rt samp svg var")
"""HTML elements whose content is not translated: programs and their output, formulas, ruby annotations."""
SEPARATING = (UNTRANSLATED - RAW) | _name_set(
    "address article aside blockquote body br caption center dd details dialog dir div dl dt embed fieldset figcaption "
    "figure footer form h1 h2 h3 h4 h5 h6 head header hgroup hr html img input legend li main menu nav object ol "
    "optgroup option p pre search section select summary table tbody td tfoot th thead title tr ul video"
)
"""HTML elements that separate words without a space."""
CONTROLS = _name_set("audio button canvas iframe label noscript slot template textarea")
"""HTML elements of forms and media, which separate texts."""
BLOCKS = ((SEPARATING - UNTRANSLATED) - _name_set("embed img input object")) | CONTROLS | RAW | {"pre"}
"""HTML elements whose tags separate texts."""

_NAME = {
    # XML's specification excludes a few of these characters, which only matters for malformed XML.
    "html": r"[A-Za-z][^\s/<>\"'=]*+",
    "xml": r"[A-Za-z_:\xc0-\xd6\xd8-\xf6\xf8-\U000effff][^\s/<>\"'=]*+",
}
ATTRIBUTE = r"""([^\s/<>"'=]++)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s<>"']++)))?+"""
_TAG = {
    kind: re.compile(
        rf"<(?:/(?P<close>{name})\s*+>"
        rf"|(?P<open>{name})(?:\s++|/(?!>)|{ATTRIBUTE})*+(?P<slash>/?)>"
        r"|!(?i:doctype)\b[^<>\[]*+(?:\[[^\[\]]*+\][^<>\[]*+)?+>)",
        re.ASCII,  # \s is the whitespace of HTML and XML
    )
    for kind, name in _NAME.items()
}
_RAW_END = {name: re.compile(rf"</{name}\s*+>", re.ASCII | re.IGNORECASE) for name in RAW}
_CONSTRUCT_ENDS = {"<!--": "-->", "<?": "?>", "<![CDATA[": "]]>"}

CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_XML_REFERENCE = re.compile(
    rf"(?s:{CDATA.pattern})|&(?:(lt|gt|amp|quot|apos)|#0*+([0-9]{{1,7}})|#x0*+([0-9a-fA-F]{{1,6}}));"
)
NO_XML_CHARACTER = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": "&#10;", "\r": "&#13;"})


class MarkupToken(NamedTuple):
    """Text or markup from position ``start`` to ``end`` of a line."""

    role: Role
    name: str
    """The name of the element, in lowercase for HTML; "" for text, comments and other markup without a name."""
    start: int
    end: int


def coded_markup(line: str, kind: MarkupKind, codes: Sequence[Mark] = (), cdata_is_text: bool = False) -> CodedText:
    """Return a line of markup as a coded text: its tags are codes, and its entities are decoded (``&amp;`` → ``&``).

    Args:
        line: A line. Malformed tags in it are text.
        kind: The kind of its tags.
        codes: Further codes of the line, in order. Tags inside these are part of them.
        cdata_is_text: Whether CDATA sections are text instead of codes.
    """
    if kind == "auto":
        return coded_text(line, _drop_nested(_paired_marks(line)))
    inside = {position for code in codes for position in range(code.start, code.end)}
    if cdata_is_text:
        inside.update(section.start() for section in CDATA.finditer(line))
    tokens = [token for token in markup_tokens(line, kind) if token.start not in inside]
    marks = [  # with a space in their keys, so that they are not paired with tags
        mark._replace(opens=mark.opens and f" {mark.opens}", closes=mark.closes and f" {mark.closes}") for mark in codes
    ]
    marks += tag_marks(line, list(merge_untranslated_elements(line, tokens, kind)), kind)
    return coded_text(line, _drop_nested(marks), lambda text: decode(text, kind))


def _drop_nested(marks: Iterable[Mark]) -> list[Mark]:
    """Return marks in order, except those inside other marks."""
    outermost: list[Mark] = []
    for mark in sorted(marks):
        if not outermost or outermost[-1].end <= mark.start:
            outermost.append(mark)
    return outermost


def tag_marks(text: str, tokens: Sequence[MarkupToken], kind: MarkupKind) -> Iterator[Mark]:
    """Yield the tags among the tokens of a text as marks. Each tag may only be paired with another one of these."""
    cuts = _find_cuts(text, tokens) if kind == "html" else ()
    for index, token in enumerate(tokens):
        if token.role != "text":
            separates = kind == "html" and (token.role == "element" or token.name in SEPARATING)
            yield _token_mark(token)._replace(separates=separates, ends_text=index in cuts)


def _token_mark(token: MarkupToken) -> Mark:
    """Return a token as a mark, which can be paired if it is a tag."""
    opens = token.name if token.role == "open" else ""
    closes = token.name if token.role == "close" else ""
    return Mark(token.start, token.end, opens, closes)


def _paired_marks(line: str) -> Iterator[Mark]:
    """Yield the paired marks of plain text. An untranslated element is a single mark."""
    for opening, closing in find_pairs(line):
        name = opening.opens.partition(" ")[2].lower()
        if name == "xliff:g" or is_untranslated(name, line[opening.start : opening.end], "html"):
            yield Mark(opening.start, closing.end)
        else:
            yield opening._replace(closes="")
            yield closing._replace(opens="")


@dataclass
class _OpenElement:
    """An element whose closing tag has not been read yet, and the content since the last cut directly inside it."""

    opening: int = -1
    """The index of the opening tag."""
    children: list[int] = field(default_factory=list)
    """The indices of the tags of its child elements."""
    names: set[str] = field(default_factory=set)
    """The names of its child elements."""
    is_sentence: bool = False
    """Whether the child elements are parts of a sentence and not separate texts: there is text beside them, one has no
    letters, or nothing is between two of them that are not links."""
    has_gap: bool = True
    """Whether there is text after the last child element."""
    has_letters: bool = False
    has_cut: bool = False
    """Whether a text ends or begins inside the element."""


def _find_cuts(page: str, tokens: Sequence[MarkupToken]) -> set[int]:
    """Return the indices of the tokens at which HTML is cut into texts.

    These are the tags of:

    - block elements, such as ``<p>`` and ``<br>``
    - elements around these
    - elements of one name that only spaces and punctuation separate, such as the links of a menu
    """
    cuts: set[int] = set()
    stack = [_OpenElement()]

    def end_texts(content: _OpenElement) -> None:
        if len(content.children) > 2 and len(content.names) == 1 and not content.is_sentence:
            cuts.update(content.children)
            content.has_cut = True
        content.children, content.names, content.is_sentence, content.has_gap = [], set(), False, True

    closings = match_closing_tags(tokens)
    paired = closings.keys() | closings.values()
    for index, (role, name, start, end) in enumerate(tokens):
        content = page[start:end]
        is_cut = name in BLOCKS
        if is_cut:
            cuts.add(index)
            end_texts(stack[-1])
            stack[-1].has_cut = True
        if role == "text":
            stack[-1].is_sentence |= any(map(str.isalnum, content))
            stack[-1].has_letters |= any(map(str.isalpha, content))
            stack[-1].has_gap = True
        elif role == "open" and index in paired:
            stack.append(_OpenElement(index))
        elif role == "close" and index in paired:
            child, parent = stack.pop(), stack[-1]
            end_texts(child)
            parent.has_letters |= child.has_letters
            if child.has_cut or is_cut:
                cuts.update((child.opening, index))
                end_texts(parent)
                parent.has_cut = True
            else:
                parent.is_sentence |= not child.has_letters or not (parent.has_gap or name == "a")
                parent.children += [child.opening, index]
                parent.names.add(name)
                parent.has_gap = False
    end_texts(stack[0])
    return cuts


def encode(text: str) -> str:
    """Replace ``&``, ``<``, ``>``, line feeds and carriage returns by entities. The result is a single line."""
    return text.translate(_ENTITIES)


def markup_tokens(line: str, kind: MarkupKind) -> list[MarkupToken]:
    """Divide a text into text and markup tokens. Their spans cover the text without gaps. Tags are not paired yet."""
    tokens: list[MarkupToken] = []
    # After the last end of a construct, no end is searched for, because each search would read the rest of the line.
    last = {start: line.rfind(end) for start, end in _CONSTRUCT_ENDS.items()}
    text_start = 0
    position = line.find("<")
    while position >= 0:
        token = _read_markup(line, position, kind, last)
        if token:
            if text_start < position:
                tokens.append(MarkupToken("text", "", text_start, position))
            tokens.append(token)
            text_start = token.end
        position = line.find("<", token.end if token else position + 1)
    if text_start < len(line):
        tokens.append(MarkupToken("text", "", text_start, len(line)))
    return tokens


def merge_untranslated_elements(
    text: str,
    tokens: Sequence[MarkupToken],
    kind: MarkupKind,
    is_kept: Callable[[str, str], bool] = lambda name, tag: False,
) -> Iterator[MarkupToken]:
    """Yield markup tokens. Each untranslated element becomes a single token, with the role ``element``.

    Args:
        text: The text.
        tokens: The tokens of the text from ``markup_tokens``.
        kind: The kind of the tags.
        is_kept: Returns whether an element, given its name and its opening tag, is untranslated, although
            ``is_untranslated`` is false.
    """
    closings = match_closing_tags(tokens)
    index = 0
    while index < len(tokens):
        token = tokens[index]
        tag = text[token.start : token.end]
        if index in closings and (is_kept(token.name, tag) or is_untranslated(token.name, tag, kind)):
            index = closings[index]
            yield token._replace(role="element", end=tokens[index].end)
        else:
            yield token
        index += 1


def _read_markup(line: str, position: int, kind: MarkupKind, last: dict[str, int]) -> MarkupToken | None:
    """Return the markup token that begins with the ``<`` at a position; None if this ``<`` is text.

    Args:
        line: The line.
        position: The position of the ``<``.
        kind: The kind of the tags.
        last: The position of the last end of each construct of _CONSTRUCT_ENDS in the line; -1 if there is none.
    """
    for start, end in _CONSTRUCT_ENDS.items():
        if line.startswith(start, position):
            # In HTML <!--> and <!---> are whole comments.
            content = position + (2 if kind == "html" and start == "<!--" else len(start))
            if last[start] < content:
                return None
            return MarkupToken("standalone", "", position, line.index(end, content) + len(end))
    match = _TAG[kind].match(line, position)
    if match is None:
        return None
    name = match["close"] or match["open"] or ""
    name = name.lower() if kind == "html" else name
    if match["close"]:
        return MarkupToken("close", name, position, match.end())
    if not match["open"] or match["slash"] or (kind == "html" and name in VOID):
        return MarkupToken("standalone", name, position, match.end())
    if kind == "html" and name in RAW:
        closing = _RAW_END[name].search(line, match.end())
        return MarkupToken("standalone", name, position, closing.end() if closing else len(line))
    return MarkupToken("open", name, position, match.end())


def match_closing_tags(tokens: Sequence[MarkupToken]) -> dict[int, int]:
    """Map the index of each paired opening tag to the index of its closing tag.

    A closing tag belongs to the last unclosed opening tag of its name. Tags that were opened after that one and not
    closed have no closing tag.
    """
    return nested_pairs(list(map(_token_mark, tokens)))


def is_untranslated(name: str, tag: str, kind: MarkupKind) -> bool:
    """Return whether an element's name or an attribute of its opening tag forbids the translation of its content."""
    if kind == "html" and name in UNTRANSLATED:
        return True
    tag = tag.lower() if kind == "html" else tag
    if "translate" not in tag:
        return False
    for key, *values in re.findall(ATTRIBUTE, tag[1:-1], re.ASCII):  # also matches the name of the element
        value = "".join(values)
        if (key, value) == ("translate", "no") or (
            kind == "html" and key == "class" and "notranslate" in value.split()
        ):
            return True
    return False


def decode(text: str, kind: MarkupKind) -> str:
    """Return a text with its entities and CDATA sections decoded."""
    if kind == "xml":
        return _XML_REFERENCE.sub(_decode_reference, text)
    # html.unescape fails for numbers of more than 4,300 digits. Without leading zeros, 8 digits are already too many.
    text = re.sub("(?<=&#)0++(?=[0-9])", "", text)
    return html.unescape(re.sub("&#[0-9]{8,}+;?", "\ufffd", text))


def _decode_reference(reference: re.Match[str]) -> str:
    """Return the text of a match of _XML_REFERENCE: a character, or the content of a CDATA section.

    A reference to a character that XML does not allow is returned unchanged.
    """
    section, name, decimal, hexadecimal = reference.groups()
    if section is not None:
        return section
    if name:
        return html.unescape(reference[0])
    number = int(decimal) if decimal else int(hexadecimal, 16)
    if number > 0x10FFFF or NO_XML_CHARACTER.match(chr(number)):
        return reference[0]
    return chr(number)
