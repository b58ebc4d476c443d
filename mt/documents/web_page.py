"""Reads HTML pages.

``mt.text.tags`` finds the tags and the untranslated elements, as for lines of HTML. A parser such as lxml would repair
the page and rewrite all of it.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from mt.core.errors import InputError
from mt.core.language import base_language
from mt.core.splices import Splice, apply_splices
from mt.data.parsers.document import Document, Languages, Passage, decode_declared, is_translatable
from mt.data.parsers.layout import Layout, always, cut_paragraphs
from mt.text.markup.tags import (
    ATTRIBUTE,
    RAW,
    SEPARATING,
    UNTRANSLATED,
    MarkupToken,
    decode,
    is_untranslated,
    markup_tokens,
    paired_tokens,
)

INLINE = UNTRANSLATED | {"br", "embed", "img", "input", "object", "video"}
"""Elements that stand in the middle of a sentence, though they separate words."""
BORDERS = (SEPARATING - INLINE) | RAW | {
    "audio", "button", "canvas", "iframe", "label", "noscript", "slot", "template", "textarea"
}  # fmt: skip
"""Elements whose start and end tags separate texts."""
SKIPPED = {"pre"}
"""Elements that are not translated, because they usually hold a program or its output."""
TRANSLATED_ATTRIBUTES = ("alt", "title", "placeholder", "aria-label")
"""Attributes whose values people see or hear."""
DESCRIPTION = re.compile(
    r"""(?:name|property)\s*=\s*["']?(?:description|(?:og|twitter):(?:title|description|site_name))\b""", re.IGNORECASE
)
"""The mark of a meta element with a title or description in its attribute ``content``."""
CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.-]+)""", re.IGNORECASE)
BROWSER_ENCODINGS = {"iso-8859-1": "windows-1252", "latin1": "windows-1252"}
"""Declared encoding → the encoding that browsers use for it."""


class Attribute(NamedTuple):
    """An attribute of a tag, with its decoded value."""

    tag: MarkupToken
    name: str
    value: str
    start: int
    """The start of the value in the document, in characters, with its quotation marks."""
    end: int


def read_html(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read an HTML page. Its texts and the attributes that people see are passages to translate.

    If anything is translated, the target language is declared in place of the source language.

    Raises:
        InputError: The content has no tag, or is not in the encoding that it declares.
    """
    declared = CHARSET.search(content[:4096])
    encoding = declared[1].decode().lower() if declared else "utf-8"
    text, encoding = decode_declared(content, BROWSER_ENCODINGS.get(encoding, encoding))
    tokens = markup_tokens(text, "html")
    if not any(token.name for token in tokens):
        raise InputError("is no HTML, because it has no tags; set format=lines if it is plain text")
    passages: list[Passage] = []
    changes: list[Splice] = []
    for segment in _segments(text, tokens):
        attributes = [attribute for token in segment for attribute in _translated_attributes(text, token)]
        words = "".join(decode(text[token.start : token.end], "html") for token in segment if token.role == "text")
        if is_translatable(words):
            passages.append(_text_passage(text, segment[0].start, segment[-1].end, attributes))
        else:
            passages += [
                Passage((_layout(attribute),), partial(_splices, text, [attribute]), attribute.start)
                for attribute in attributes
            ]
        changes += [splice for token in segment if token.name == "html" for splice in _language(text, token, languages)]
    return Document(
        text, tuple(passages), lambda changed: changed.encode(encoding, "xmlcharrefreplace"), tuple(changes)
    )


def _segments(text: str, tokens: list[MarkupToken]) -> Iterator[list[MarkupToken]]:
    """Divide a page into texts.

    Yields:
        The tokens of a text with its inline tags, or the single token of a tag between texts, in order.
    """
    segment: list[MarkupToken] = []
    for token in paired_tokens(text, tokens, "html", SKIPPED):
        tag = text[token.start : token.end]
        if token.role != "text" and (token.name in BORDERS | SKIPPED or (tag[:2] == "<!" and tag[2:3] != "-")):
            if segment:
                yield segment
            yield [token]
            segment = []
        else:
            segment.append(token)
    if segment:
        yield segment


def _read_attributes(text: str, tag: MarkupToken) -> Iterator[Attribute]:
    """Yield the attributes of a tag, except those without a value."""
    offset = tag.start + 1
    for match in re.finditer(ATTRIBUTE, text[offset : tag.end], re.ASCII):
        group = match.lastindex or 0
        if group > 1:
            start, end = (offset + position for position in match.span(group))
            quotes = int(group != 4)
            yield Attribute(tag, match[1].lower(), decode(match[group], "html"), start - quotes, end + quotes)


def _translated_attributes(text: str, token: MarkupToken) -> Iterator[Attribute]:
    """Yield the attributes of a tag that are to be translated."""
    if token.role in ("text", "close") or not token.name or token.name in RAW | SKIPPED:
        return
    tag = text[token.start : token.end]
    if is_untranslated(token.name, tag, "html"):  # also a tag that is merged with the content of its element
        return
    is_description = token.name == "meta" and DESCRIPTION.search(tag)
    for attribute in _read_attributes(text, token):
        is_shown = attribute.name in TRANSLATED_ATTRIBUTES or (is_description and attribute.name == "content")
        if is_shown and is_translatable(attribute.value) and not any(line.markup for line in _layout(attribute).lines):
            yield attribute


def _layout(attribute: Attribute) -> Layout:
    """Return the value of an attribute, cut into lines for the translator."""
    return cut_paragraphs(attribute.value, always, columns=False)


def _splices(text: str, attributes: Sequence[Attribute], values: Sequence[str]) -> list[Splice]:
    """Return the changes to the document that set attributes to new values. Equal values need no change."""
    splices = []
    for attribute, value in zip(attributes, values, strict=True):
        if value != attribute.value:
            quote = text[attribute.start] if text[attribute.start] in "\"'" else '"'
            escaped = value.replace("&", "&amp;").replace(quote, "&quot;" if quote == '"' else "&#39;")
            splices.append(Splice(attribute.start, attribute.end, f"{quote}{escaped}{quote}"))
    return splices


def _text_passage(text: str, start: int, end: int, attributes: Sequence[Attribute]) -> Passage:
    """Return the passage for the text from ``start`` to ``end`` and for the attributes in its inline tags."""

    def write(translations: list[str]) -> list[Splice]:
        written, *values = translations
        splices = _splices(text, attributes, values)
        for tag in dict.fromkeys(attribute.tag for attribute in attributes):
            # The translation has every tag exactly once, unchanged except that line breaks may have become spaces.
            old = text[tag.start : tag.end]
            in_translation = old if old in written else re.sub(r"\s*[\n\r]\s*", " ", old)
            in_tag = [Splice(begin - tag.start, stop - tag.start, content)
                      for begin, stop, content in splices if tag.start <= begin < tag.end]  # fmt: skip
            written = written.replace(in_translation, apply_splices(old, in_tag), 1)
        return [] if written == text[start:end] else [Splice(start, end, written)]

    layout = cut_paragraphs(text[start:end], always, markup="html", columns=False)
    return Passage((layout, *map(_layout, attributes)), write, start)


def _language(text: str, token: MarkupToken, languages: Languages) -> Iterator[Splice]:
    """Yield the changes to a tag that replace the source language by the target language in its ``lang`` attributes."""
    for attribute in _read_attributes(text, token):
        is_language = attribute.name in ("lang", "xml:lang")
        if is_language and base_language(attribute.value) == base_language(languages.source):
            yield Splice(attribute.start, attribute.end, f'"{languages.target.replace("_", "-")}"')
