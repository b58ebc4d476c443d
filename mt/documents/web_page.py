"""HTML pages.

What is a tag and what an element that is not translated, ``mt.text.tags`` decides, as for lines of HTML. A parser such
as lxml would repair the page and write all of it anew.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mt.core.errors import InputError
from mt.core.language import base_language
from mt.data.parsers.document import Document, Languages, Passage, Splice, decoded, in_place, is_text
from mt.data.parsers.layout import Layout, always, cut
from mt.text.tags import (
    ATTRIBUTE,
    RAW,
    SEPARATING,
    UNTRANSLATED,
    Token,
    closings_of,
    decode,
    is_untranslated,
    tokens_of,
)

INLINE = UNTRANSLATED | {"br", "embed", "img", "input", "object", "video"}
"""Elements that separate words but stand in the middle of a sentence."""
BORDERS = (SEPARATING - INLINE) | RAW | {
    "audio", "button", "canvas", "iframe", "label", "noscript", "slot", "template", "textarea"
}  # fmt: skip
"""Elements at whose tags a text ends."""
SKIPPED = {"pre"}
"""Elements that hold a program or its output, as a rule."""
TRANSLATED = ("alt", "title", "placeholder", "aria-label")
"""Attributes that are shown or read to people."""
DESCRIBING = re.compile(
    r"""(?:name|property)\s*=\s*["']?(?:description|(?:og|twitter):(?:title|description|site_name))\b""", re.IGNORECASE
)
"""A meta element whose attribute ``content`` is, too."""
CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.-]+)""", re.IGNORECASE)


class Value(NamedTuple):
    """The value of an attribute, from ``start`` up to ``end`` of the page, with its quotation marks."""

    tag: Token
    start: int
    end: int
    layout: Layout

    def spelt(self, text: str, page: str) -> str:
        """Returns the value as HTML writes it; as it was if it is still the same."""
        if text == self.layout.text:
            return page[self.start : self.end]
        quote = page[self.start] if page[self.start] in "\"'" else '"'
        written = text.replace("&", "&amp;").replace(quote, "&quot;" if quote == '"' else "&#39;")
        return f"{quote}{written}{quote}"


def read_html(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Reads an HTML page, of which the text, its title and its descriptions are translated.

    Raises:
        InputError: There is no tag in it, or it is in another encoding than it says.
    """
    text, encoding = _decoded(content)
    tokens = tokens_of(text, "html")
    if not any(token.name for token in tokens):
        raise InputError("is no HTML: there is not one tag in it")
    passages: list[Passage] = []
    changes: list[Splice] = []
    for run in _runs(text, tokens):
        start, end = run[0].start, run[-1].end
        values = [value for token in run for value in _values(text, token)]
        words = "".join(decode(text[token.start : token.end], "html") for token in run if token.role == "text")
        if is_text(words):
            layout = cut(text[start:end], always, markup="html", columns=False)
            passages.append(_with_values(text, start, end, layout, values))
        else:
            passages += [_value_alone(text, value) for value in values]
        changes += [splice for token in run if token.name == "html" for splice in _language(text, token, languages)]
    return Document(
        text, tuple(passages), lambda written: written.encode(encoding, "xmlcharrefreplace"), tuple(changes)
    )


def _decoded(content: bytes) -> tuple[str, str]:
    by_mark = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(content[:2])
    found = CHARSET.search(content[:4096])
    encoding = by_mark or (found[1].decode() if found else "utf-8")
    encoding = {"iso-8859-1": "windows-1252", "latin1": "windows-1252"}.get(
        encoding.lower(), encoding
    )  # as browsers do
    if encoding.lower().replace("-", "") == "utf8":
        return decoded(content), "utf-8"
    try:
        return content.decode(encoding), encoding
    except LookupError:
        raise InputError(f"says that it is in {encoding}, an unknown encoding") from None
    except UnicodeError as error:
        raise InputError(f"is not in {encoding}, as it says: {error}") from None


def _runs(text: str, tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """Yields what belongs together: a text with the tags in it, or a tag at which a text ends."""
    closings = closings_of(list(tokens))
    run: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        tag = text[token.start : token.end]
        if place in closings and (token.name in SKIPPED or is_untranslated(token.name, tag, "html")):
            place = closings[place]
            token = token._replace(role="point", end=tokens[place].end)
        if token.role != "text" and (token.name in BORDERS | SKIPPED or tag[:2] == "<!" and tag[2:3] != "-"):
            if run:
                yield run
            yield [token]
            run = []
        else:
            run.append(token)
        place += 1
    if run:
        yield run


def _values(text: str, token: Token) -> Iterator[Value]:
    """Yields the values of a tag's attributes that are translated."""
    if token.role in ("text", "close") or not token.name or token.name in RAW | SKIPPED:
        return
    tag = text[token.start : token.end]
    if is_untranslated(token.name, tag, "html"):  # also one that is merged with all in it
        return
    names = {*TRANSLATED, "content"} if token.name == "meta" and DESCRIBING.search(tag) else set(TRANSLATED)
    for name, value, start, end in _attributes(text, token):
        layout = cut(value, always, columns=False)
        if name in names and is_text(value) and all(line.markup is None for line in layout.lines):
            yield Value(token, start, end, layout)


def _value_alone(text: str, value: Value) -> Passage:
    return in_place(value.start, value.end, value.layout, lambda one: value.spelt(one, text))


def _with_values(text: str, start: int, end: int, layout: Layout, values: Sequence[Value]) -> Passage:
    """Returns the passage of a text, and of the attributes in its tags."""

    def write(translations: list[str]) -> list[Splice]:
        written, *others = translations
        by_tag: dict[Token, list[tuple[Value, str]]] = {}
        for value, translation in zip(values, others, strict=True):
            by_tag.setdefault(value.tag, []).append((value, translation))
        for tag, changed in by_tag.items():
            parts, done = [], tag.start
            for value, translation in changed:
                parts += [text[done : value.start], value.spelt(translation, text)]
                done = value.end
            # Every tag is in the translation once, as it was written; only its line breaks may be blanks.
            old = text[tag.start : tag.end]
            new = "".join(parts) + text[done : tag.end]
            written = written.replace(old if old in written else re.sub(r"\s*[\n\r]\s*", " ", old), new, 1)
        return [] if written == text[start:end] else [Splice(start, end, written)]

    return Passage((layout, *(value.layout for value in values)), write)


def _language(text: str, token: Token, languages: Languages) -> Iterator[Splice]:
    """Yields what makes the page's language the target language."""
    for name, value, start, end in _attributes(text, token):
        if name in ("lang", "xml:lang") and base_language(value) == base_language(languages.source):
            yield Splice(start, end, f'"{languages.target.replace("_", "-")}"')


def _attributes(text: str, token: Token) -> Iterator[tuple[str, str, int, int]]:
    """Yields the name of each attribute that has a value, the value, and where this is, with its quotation marks."""
    for found in re.finditer(ATTRIBUTE, text[token.start + 1 : token.end], re.ASCII):
        group = next((number for number in (2, 3, 4) if found[number] is not None), 0)
        if group:
            start, end = (token.start + 1 + position for position in found.span(group))
            quotes = int(group != 4)
            yield found[1].lower(), decode(found[group], "html"), start - quotes, end + quotes
