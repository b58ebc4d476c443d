"""HTML pages.

``mt.text.markup.tags`` recognises tags and untranslated elements, as for lines of HTML. A parser such as lxml would
repair the page and write all of it anew.
"""

import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

from mt.core.errors import InputError
from mt.core.language import base_language
from mt.data.parsers.document import (
    Document,
    Languages,
    Passage,
    Splice,
    apply_splices,
    decode_declared,
    is_translatable,
)
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
"""Elements that separate words but stand in the middle of a sentence."""
BORDERS = (SEPARATING - INLINE) | RAW | {
    "audio", "button", "canvas", "iframe", "label", "noscript", "slot", "template", "textarea"
}  # fmt: skip
"""Elements whose tags end a text."""
SKIPPED = {"pre"}
"""Elements that usually hold a program or its output."""
TRANSLATED = ("alt", "title", "placeholder", "aria-label")
"""Attributes that are shown or read to people."""
DESCRIPTION = re.compile(
    r"""(?:name|property)\s*=\s*["']?(?:description|(?:og|twitter):(?:title|description|site_name))\b""", re.IGNORECASE
)
"""A meta element whose attribute ``content`` is shown, too."""
CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.-]+)""", re.IGNORECASE)
BROWSER_ENCODINGS = {"iso-8859-1": "windows-1252", "latin1": "windows-1252"}
"""The encodings that browsers use in place of declared ones."""


class Attribute(NamedTuple):
    """An attribute of a tag."""

    tag: MarkupToken
    name: str
    value: str
    start: int
    """The start of the value in the document, quotation marks included."""
    end: int


def read_html(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read an HTML page. Its text, title and descriptions are translated.

    Raises:
        InputError: There is no tag in it, or it is in another encoding than it declares.
    """
    declared = CHARSET.search(content[:4096])
    encoding = declared[1].decode().lower() if declared else "utf-8"
    text, encoding = decode_declared(content, BROWSER_ENCODINGS.get(encoding, encoding))
    tokens = markup_tokens(text, "html")
    if not any(token.name for token in tokens):
        raise InputError("is no HTML: there is not one tag in it")
    passages: list[Passage] = []
    changes: list[Splice] = []
    for segment in _segments(text, tokens):
        attributes = [attribute for token in segment for attribute in _translated_attributes(text, token)]
        words = "".join(decode(text[token.start : token.end], "html") for token in segment if token.role == "text")
        if is_translatable(words):
            passages.append(_text_passage(text, segment[0].start, segment[-1].end, attributes))
        else:
            passages += [Passage((_layout(each),), partial(_splices, text, [each])) for each in attributes]
        changes += [splice for token in segment if token.name == "html" for splice in _language(text, token, languages)]
    return Document(
        text, tuple(passages), lambda changed: changed.encode(encoding, "xmlcharrefreplace"), tuple(changes)
    )


def _segments(text: str, tokens: list[MarkupToken]) -> Iterator[list[MarkupToken]]:
    """Yield each text with the tags in it, and each tag that ends a text."""
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
    """Yield the attributes of a tag that have values."""
    offset = tag.start + 1
    for match in re.finditer(ATTRIBUTE, text[offset : tag.end], re.ASCII):
        group = match.lastindex or 0
        if group > 1:
            start, end = (offset + position for position in match.span(group))
            quotes = int(group != 4)
            yield Attribute(tag, match[1].lower(), decode(match[group], "html"), start - quotes, end + quotes)


def _translated_attributes(text: str, token: MarkupToken) -> Iterator[Attribute]:
    """Yield the attributes of a tag whose values are translated."""
    if token.role in ("text", "close") or not token.name or token.name in RAW | SKIPPED:
        return
    tag = text[token.start : token.end]
    if is_untranslated(token.name, tag, "html"):  # also a tag that is merged with the content of its element
        return
    is_description = token.name == "meta" and DESCRIPTION.search(tag)
    for attribute in _read_attributes(text, token):
        is_shown = attribute.name in TRANSLATED or (is_description and attribute.name == "content")
        if is_shown and is_translatable(attribute.value) and not any(line.markup for line in _layout(attribute).lines):
            yield attribute


def _layout(attribute: Attribute) -> Layout:
    return cut_paragraphs(attribute.value, always, columns=False)


def _splices(text: str, attributes: Sequence[Attribute], values: Sequence[str]) -> list[Splice]:
    """Return the changes for the attributes whose values are new."""
    splices = []
    for attribute, value in zip(attributes, values, strict=True):
        if value != attribute.value:
            quote = text[attribute.start] if text[attribute.start] in "\"'" else '"'
            escaped = value.replace("&", "&amp;").replace(quote, "&quot;" if quote == '"' else "&#39;")
            splices.append(Splice(attribute.start, attribute.end, f"{quote}{escaped}{quote}"))
    return splices


def _text_passage(text: str, start: int, end: int, attributes: Sequence[Attribute]) -> Passage:
    """Return the passage of a text, and of the attributes in its tags."""

    def write(translations: list[str]) -> list[Splice]:
        written, *values = translations
        splices = _splices(text, attributes, values)
        for tag in dict.fromkeys(attribute.tag for attribute in attributes):
            # Every tag is in the translation once, as it was written; only its line breaks may be blanks.
            old = text[tag.start : tag.end]
            in_translation = old if old in written else re.sub(r"\s*[\n\r]\s*", " ", old)
            in_tag = [Splice(begin - tag.start, stop - tag.start, content)
                      for begin, stop, content in splices if tag.start <= begin < tag.end]  # fmt: skip
            written = written.replace(in_translation, apply_splices(old, in_tag), 1)
        return [] if written == text[start:end] else [Splice(start, end, written)]

    layout = cut_paragraphs(text[start:end], always, markup="html", columns=False)
    return Passage((layout, *map(_layout, attributes)), write)


def _language(text: str, token: MarkupToken, languages: Languages) -> Iterator[Splice]:
    """Yield the changes that declare the target language in place of the source language."""
    for attribute in _read_attributes(text, token):
        is_language = attribute.name in ("lang", "xml:lang")
        if is_language and base_language(attribute.value) == base_language(languages.source):
            yield Splice(attribute.start, attribute.end, f'"{languages.target.replace("_", "-")}"')
