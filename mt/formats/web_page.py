"""Reads HTML pages, also those with constructs of template languages.

``mt.formats.tags`` finds the tags and the untranslated elements, as for lines of HTML. A parser such as lxml would
repair the page and rewrite all of it.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple
from xml.sax.saxutils import escape as escape_text

from mt.core.coded_text import CodedText, Mark, coded_text
from mt.core.errors import InputError
from mt.core.language import base_language
from mt.core.splices import Splice, apply_splices
from mt.formats.document import Document, Languages, Passage, decode_declared, is_translatable, kept_passage
from mt.formats.layout import Layout, cut_paragraphs, insert_breaks
from mt.formats.tags import (
    ATTRIBUTE,
    CONTROLS,
    RAW,
    SEPARATING,
    UNTRANSLATED,
    MarkupToken,
    decode,
    encode,
    is_untranslated,
    markup_tokens,
    tag_marks,
    with_whole_elements,
)
from mt.formats.templates import CONTROL, TEMPLATE, is_protected, mask_templates

INLINE = UNTRANSLATED | {"br", "embed", "img", "input", "object", "video"}
"""Elements that stand in the middle of a sentence, though they separate words."""
SKIPPED = {"pre"}
"""Elements that are not translated, because they usually hold a program or its output."""
BORDERS = (SEPARATING - INLINE) | RAW | CONTROLS | SKIPPED
"""Elements whose start and end tags separate texts."""
TRANSLATED_ATTRIBUTES = re.compile(
    r"\S+ (?:alt|title|placeholder|aria-(?:label|description|placeholder|roledescription|valuetext))"
    r"|(?:option|optgroup|track) label"
)
"""Elements and their attributes whose values people see or hear."""
BUTTON = re.compile(r"""\btype\s*=\s*["']?(?:submit|button|reset)\b""", re.IGNORECASE)
"""The mark of an input element with a text in its attribute ``value``."""
SVG_TEXT = {"text", "textpath", "tspan", "title", "desc"}
"""Elements of SVG whose text is translated."""
NO_BREAK = "&(?:nbsp|#160|#[xX][aA]0);"
GAP = re.compile(
    rf"(?<!\s)\s*+{NO_BREAK}(?:\s|{NO_BREAK})++|(?<!\s)\s++{NO_BREAK}"
    rf"|{NO_BREAK}(?=[|·•–—/»›])|(?<=[|·•–—/«‹]){NO_BREAK}"
)
"""No-break spaces that separate texts."""
STRIPPED = re.compile(rf"(?:{NO_BREAK})?(.*?)(?:{NO_BREAK})?", re.DOTALL)
"""Any text, as group 1, between no-break spaces."""
INSIDE_TEXT = re.compile(r"(?<=[^\W\d])\xa0(?=[^\W\d])")
"""A no-break space between two words."""
MALFORMED = re.compile(r"<(?:[A-Za-z/!]| \ue000)")
"""The start of a tag in what was read as text."""
DESCRIPTION = re.compile(
    r"""(?:name|property)\s*=\s*["']?(?:description|(?:og|twitter):(?:title|description|site_name))\b""", re.IGNORECASE
)
"""The mark of a meta element with a title or description in its attribute ``content``."""
CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.-]+)""", re.IGNORECASE)
BROWSER_ENCODINGS = {"iso-8859-1": "windows-1252", "latin1": "windows-1252"}
"""Declared encoding → the encoding that browsers use for it."""


class Attribute(NamedTuple):
    """An attribute of a tag, or a text in an SVG image."""

    name: str
    """In lower case; "" for a text."""
    value: str
    """The value, with its entities decoded."""
    start: int
    """The start of the value in the document, in characters, with its quotation marks."""
    end: int

    @property
    def layout(self) -> Layout:
        """The value, cut into lines for the translator."""
        return cut_paragraphs(self.value, flows=True)


def read_html(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read an HTML page. Its texts and the attributes that people see are passages to translate.

    If anything is translated, the target language is declared in place of the source language.

    Raises:
        InputError: The content has no tag, or is not in the encoding that it declares.
    """
    declared = CHARSET.search(content[:4096])
    encoding = declared[1].decode().lower() if declared else "utf-8"
    text, encoding = decode_declared(content, BROWSER_ENCODINGS.get(encoding, encoding))
    if not any(token.name for token in markup_tokens(text, "html")):
        raise InputError("is no HTML, because it has no tags; set format=lines if it is plain text")
    passages, changes = page_passages(text, languages)
    return Document(text, passages, lambda changed: changed.encode(encoding, "xmlcharrefreplace"), changes)


def page_passages(text: str, languages: Languages) -> tuple[list[Passage], list[Splice]]:
    """Return the passages of HTML, and the changes of its declared language."""
    masked = mask_templates(text)
    passages: list[Passage] = []
    changes: list[Splice] = []
    for segment in _segments(text, masked, languages.source):
        attributes: list[Attribute] = []
        for attribute in (attribute for token in segment for attribute in _translated_attributes(text, masked, token)):
            if _is_understood(attribute):
                attributes.append(attribute)
            else:
                passages.append(kept_passage(attribute.start))
        own_texts = [masked[token.start : token.end] for token in segment if token.role == "text"]
        if is_translatable(decode("".join(own_texts), "html")):
            if any(map(MALFORMED.search, own_texts)):
                passages.append(kept_passage(segment[0].start))
                continue
            passages.append(_text_passage(text, segment, attributes))
        else:
            passages += [
                Passage((attribute.layout,), partial(_splices, text, [attribute]), attribute.start)
                for attribute in attributes
            ]
            if len(segment) == 1:
                changes += _language(text, segment[0], languages)
    return passages, changes


def _segments(text: str, masked: str, language: str) -> Iterator[list[MarkupToken]]:
    """Divide a page into texts.

    Args:
        text: The page.
        masked: The page without the constructs of templates.
        language: The source language. Elements in other languages are untranslated.

    Yields:
        The tokens of a text with its inline tags, or the single token of a tag between texts, in order.
    """
    segment: list[MarkupToken] = []
    tokens = with_whole_elements(masked, markup_tokens(masked, "html"), "html", partial(_is_kept, language))
    for token in _split_texts(text, tokens):
        is_unnamed = token.role == "standalone" and not token.name
        if token.name in BORDERS or (is_unnamed and not text.startswith("<!--", token.start)):
            if segment:
                yield segment
            yield [token]
            segment = []
        else:
            segment.append(token)
    if segment:
        yield segment


def _split_texts(text: str, tokens: Iterator[MarkupToken]) -> Iterator[MarkupToken]:
    """Yield markup tokens with texts cut at statements of templates and at GAP, which become standalone."""
    for token in tokens:
        start = token.start
        if token.role == "text":
            cuts = [match.span() for match in TEMPLATE.finditer(text, start, token.end) if CONTROL.match(match[0])]
            for first, last in sorted(cuts + [match.span() for match in GAP.finditer(text, start, token.end)]):
                if first < start:  # inside of a construct
                    continue
                if start < first:
                    yield token._replace(start=start, end=first)
                yield MarkupToken("standalone", "", first, last)
                start = last
        if start < token.end:
            yield token._replace(start=start)


def _is_kept(language: str, name: str, tag: str) -> bool:
    """Return whether an element is one of SKIPPED, or its opening tag declares another language than the source's."""
    declared = re.search(r"""\slang\s*=\s*["']?([A-Za-z]{2,3})\b""", tag) if name not in ("html", "body") else None
    return name in SKIPPED or bool(declared and base_language(declared[1]) != base_language(language))


def _read_attributes(text: str, tag: MarkupToken) -> Iterator[Attribute]:
    """Yield the attributes of a tag, except those without a value."""
    for match in re.compile(ATTRIBUTE, re.ASCII).finditer(text, tag.start + 1, tag.end):
        group = match.lastindex or 0
        if group > 1:
            start, end = match.span(group)
            quotes = int(group != 4)
            yield Attribute(match[1].lower(), decode(match[group], "html"), start - quotes, end + quotes)


def _translated_attributes(text: str, masked: str, token: MarkupToken) -> Iterator[Attribute]:
    """Yield the attributes of a tag that are to be translated, and the texts of an SVG image."""
    if token.role in ("text", "close") or not token.name or token.name in RAW | SKIPPED:
        return
    tag = masked[token.start : token.end]
    if token.name == "svg" and token.role == "element" and not is_untranslated("", tag[: tag.index(">") + 1], "html"):
        yield from _svg_texts(text, token)
    if token.role == "element" or is_untranslated(token.name, tag, "html"):
        return
    is_description = token.name == "meta" and DESCRIPTION.search(tag)
    is_button = token.name == "input" and BUTTON.search(tag)
    shown = {"content": is_description, "value": is_button}
    for attribute in _read_attributes(masked, token):
        is_shown = shown.get(attribute.name) or TRANSLATED_ATTRIBUTES.fullmatch(f"{token.name} {attribute.name}")
        if is_shown and is_translatable(attribute.value):
            quotes = int(text[attribute.start] in "\"'")
            yield attribute._replace(value=decode(text[attribute.start + quotes : attribute.end - quotes], "html"))


def _svg_texts(text: str, image: MarkupToken) -> Iterator[Attribute]:
    name = ""
    for token in markup_tokens(text[image.start : image.end], "html"):
        start, end = image.start + token.start, image.start + token.end
        value = decode(text[start:end], "html")
        if token.role == "text" and name in SVG_TEXT and is_translatable(value):
            yield Attribute("", value, start, end)
        elif token.role in ("open", "close"):
            name = token.name if token.role == "open" else "text" if token.name == "tspan" else ""


def _is_understood(attribute: Attribute) -> bool:
    """Return whether the value has neither tags nor constructs of templates that the translator does not recognise."""
    constructs = TEMPLATE.findall(attribute.value)
    return all(map(is_protected, constructs)) and not any(own.is_html for own in attribute.layout.paragraphs)


def _splices(text: str, attributes: Sequence[Attribute], values: Sequence[CodedText]) -> list[Splice]:
    """Return the changes to the document that set attributes to new values. Equal values need no change."""
    splices = []
    for attribute, (value, _) in zip(attributes, values, strict=True):
        if value != attribute.value:
            quote = text[attribute.start] if text[attribute.start] in "\"'" else '"'
            escaped = value.replace("&", "&amp;").replace(quote, "&quot;" if quote == '"' else "&#39;")
            new = f"{quote}{escaped}{quote}" if attribute.name else encode(value)
            splices.append(Splice(attribute.start, attribute.end, new))
    return splices


def _text_passage(text: str, segment: Sequence[MarkupToken], attributes: Sequence[Attribute]) -> Passage:
    """Return the passage for the text of a segment and for the attributes in its inline tags."""
    match = STRIPPED.fullmatch(text, segment[0].start, segment[-1].end)
    assert match, "it matches any text"
    content, (start, end) = match[1], match.span(1)
    constructs = (found for role, _, *span in segment if role == "text" for found in TEMPLATE.finditer(text, *span))
    marks = [Mark(*construct.span()) for construct in constructs if not is_protected(construct.group())]
    marks = sorted([*tag_marks(text, segment, "html"), *marks])
    shifted = [mark._replace(start=mark.start - start, end=mark.end - start) for mark in marks]
    source = coded_text(content, shifted, lambda part: decode(part, "html"))
    has_entity = re.search(NO_BREAK, content) is not None
    blanks = list(INSIDE_TEXT.finditer(source.text)) if has_entity else []
    breaks = [(blank.start() / len(source.text), "\xa0") for blank in blanks]
    layout = cut_paragraphs(source.spliced(Splice(*blank.span(), " ") for blank in blanks), flows=True)

    def escape(part: str) -> str:
        part = escape_text(part)
        return part.replace("\xa0", "&nbsp;") if has_entity else part

    def write(translations: list[CodedText]) -> list[Splice] | None:
        written, *values = translations
        in_attributes = _splices(text, attributes, values)
        if written == layout.text:
            return in_attributes
        codes = []
        written = insert_breaks(written, breaks)
        for code in written.codes:
            first, last, *_ = marks[code.number]
            index, stop = (bisect_left(in_attributes, position, key=attrgetter("start")) for position in (first, last))
            in_tag = [Splice(old - first, until - first, new) for old, until, new in in_attributes[index:stop]]
            codes.append(code._replace(back=apply_splices(code.back, in_tag)))
        new = CodedText(written.text, tuple(codes)).written(escape)
        return [] if new == content else [Splice(start, end, new)]

    return Passage((layout, *(attribute.layout for attribute in attributes)), write, start)


def _language(text: str, token: MarkupToken, languages: Languages) -> Iterator[Splice]:
    """Yield the changes to a tag that replace the source language by the target language in its ``lang`` attributes."""
    for attribute in _read_attributes(text, token):
        is_language = attribute.name in ("lang", "xml:lang")
        if is_language and base_language(attribute.value) == base_language(languages.source):
            yield Splice(attribute.start, attribute.end, f'"{languages.target.replace("_", "-")}"')
