"""Reads HTML pages, which may contain constructs of template languages: Jinja, Liquid, Handlebars, Vue, Hugo, ERB, PHP
and WordPress.

``mt.formats.tags`` finds the tags and the untranslated elements, as for lines of HTML. A parser such as lxml would
repair and rewrite the whole page.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple
from xml.sax.saxutils import escape as escape_text

from mt.core.coded_text import CodedText, Mark, Span, Splice, apply_splices, coded_text
from mt.core.errors import InputError
from mt.core.language import base_language
from mt.formats.document import Document, Languages, Passage, decode_declared, is_translatable, untranslated_passage
from mt.formats.kinds import NON_TRANSLATABLE
from mt.formats.layout import Layout, cut_paragraphs, insert_breaks
from mt.formats.tags import (
    ATTRIBUTE,
    RAW,
    MarkupToken,
    decode,
    encode,
    is_untranslated,
    markup_tokens,
    merge_untranslated_elements,
    tag_marks,
)

_ATTRIBUTES = r"(?:\s+[\w-]+=(?:\"[^\"\]]*+\"|'[^'\]]*+'|[^\s\]\"']++))"
_CODE = r"(?:highlight|comment|verbatim)\b"
VALUE = "(?!)"
for _ in range(5):
    VALUE = rf"\{{(?:[^{{}}<]|<(?!/s(?:cript|tyle)\b)|{VALUE}){{0,2000}}+\}}"
"""A JSX expression as the value of an attribute: balanced braces, up to five levels deep."""
NO_PROSE = r"(?!\{[^{}\"'`=()<>?|&/*]{0,200}?\b[^\W\d]+(?:\s{1,9}[^\W\d]+){2})"
"""A lookahead before braces. It excludes three consecutive words outside strings and comments."""
EXPRESSION = (
    r"\{\s{0,99}(?:/\*(?:(?!\*/).){0,2000}+\*/|`[^`]{0,2000}+`)\s{0,99}\}"
    # Names, messages and texts in braces are excluded. JSX elements must follow an operator, and blank lines must be in
    # inner braces.
    rf"|{NO_PROSE}(?!\{{[\w.\s]*\}}|\{{\s*\w+\s*,)"
    r"(?=\{(?:[^<}&\n]|\n(?!\s{0,99}\n)){0,500}(?:=>|&&|\|\||\?|\}))" + VALUE
)
"""A JSX expression."""
TEMPLATE = re.compile(
    rf"(?<=\w=){VALUE}|\{{%-?\s*{_CODE}(?:(?!\{{%-?\s*(?:end)?{_CODE}).)*+\{{%-?\s*end{_CODE}\s*-?%\}}|"
    r"\{\{\{?(?:(?!\}\}|\{\{).)*+\}\}\}?|\{%(?:(?!%\}|\{%).)*+%\}|\{\#(?:(?!\#\}|\{\#).)*+\#\}"
    r"|<%(?:(?!%>|<%).)*+%>|<\?(?:(?!\?>|<\?).)*+\?>"
    rf"|\[[a-z][\w-]*+{_ATTRIBUTES}++\s*+/?\](?!\()|\[/[a-z][\w-]*+\](?!\()|{EXPRESSION}",
    re.DOTALL,
)
"""A construct of a template: ``{{ name }}``, ``{% if x %}``, ``{# note #}``, ``<%= x %>``, ``<?php x ?>``,
``[caption id="a"]``, ``{() => x}``. For a block of code, it includes the code."""
CONTROL = re.compile(r"\{%|\{\{\s*(?:[#/^<%]|else\b)|<%(?![=-])|<\?(?!=)|\[")
"""The start of a statement, which controls or encloses the adjacent text."""
BRANCH = re.compile(r"\{%-?\s*(?:el|when|plural)|\{\{\s*(?:else|\^)|<%-?\s*(?:\}\s*)?el")
"""The start of a statement that divides the text of another one, such as ``{% else %}``."""
_STATEMENT = re.compile(r"(?:\{\{[<%]?|\{%|\[)-?\s*(?:(?P<closes>/|end)|\#)?\s*(?P<name>\w+)")

SKIPPED = {"pre", "rp", "rt"}
"""Elements that are not translated: programs and their output, and ruby annotations."""
TRANSLATED_ATTRIBUTES = re.compile(
    r"\S+ (?:alt|title|placeholder|aria-(?:label|description|placeholder|roledescription|valuetext))"
    r"|(?:option|optgroup|track) label"
)
"""Matches the names of an element and of an attribute whose value people see or hear."""
BUTTON = re.compile(r"""\btype\s*=\s*["']?(?:submit|button|reset)\b""", re.IGNORECASE)
"""The type of an input element whose attribute ``value`` is a text."""
SVG_TEXT = {"text", "textpath", "tspan", "title", "desc"}
"""SVG elements whose text is translated."""
NO_BREAK = "&(?:nbsp|#160|#[xX][aA]0);"
GAP_OR_TEMPLATE = re.compile(
    rf"(?P<gap>(?<!\s)\s*+{NO_BREAK}(?:\s|{NO_BREAK})++|(?<!\s)\s++{NO_BREAK}"
    rf"|{NO_BREAK}(?=[|·•–—/»›])|(?<=[|·•–—/«‹]){NO_BREAK})|{TEMPLATE.pattern}",
    re.DOTALL,
)
"""No-break spaces that separate texts (group ``gap``), or a construct of a template."""
INSIDE_TEXT = re.compile(r"(?<=[^\W\d])\xa0(?=[^\W\d])")
"""A no-break space between two words."""
MALFORMED = re.compile(r"<(?:[A-Za-z/!]| \ue000)")
"""The start of a tag inside a text token: the tag is malformed."""
DESCRIPTION = re.compile(
    r"""(?:name|property)\s*=\s*["']?(?:description|(?:og|twitter):(?:title|description|site_name|image:alt))\b""",
    re.IGNORECASE,
)
"""The name of a meta element whose attribute ``content`` is a title or description."""
CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w.-]+)""", re.IGNORECASE)
BROWSER_ENCODINGS = {"iso-8859-1": "windows-1252", "latin1": "windows-1252"}
"""Maps a declared encoding to the encoding that browsers use for it."""


class Attribute(NamedTuple):
    """An attribute of a tag, or a text in an SVG image."""

    name: str
    """The name in lowercase; "" for a text."""
    value: str
    """The value, with its entities decoded."""
    start: int
    """The position of the value in the document, including its quotation marks."""
    end: int

    @property
    def layout(self) -> Layout:
        """The value, divided into lines for the translator."""
        return cut_paragraphs(self.value, flows=True)


def read_html(content: bytes, languages: Languages, retranslate: bool) -> Document:
    """Read an HTML page. Its texts, and the attributes that people see or hear, are translated.

    If anything is translated, the declared language of the page is changed from the source to the target language.

    Raises:
        InputError: The content has no tag, or is not in the encoding that it declares.
    """
    declared = CHARSET.search(content[:4096])
    encoding = declared[1].decode().lower() if declared else "utf-8"
    text, encoding = decode_declared(content, BROWSER_ENCODINGS.get(encoding, encoding))
    if not any(token.name for token in markup_tokens(text, "html")):
        raise InputError("is not HTML: it has no tags; set format=lines if it is plain text")
    passages, changes = page_passages(text, languages)
    return Document(text, passages, lambda changed: changed.encode(encoding, "xmlcharrefreplace"), changes)


def page_passages(text: str, languages: Languages) -> tuple[list[Passage], list[Splice]]:
    """Return the passages of HTML, and the changes of its declared language."""
    # Hide the constructs of templates from the reader of tags.
    masked = TEMPLATE.sub(lambda match: " " + "\ue000" * (len(match.group()) - 2) + " ", text)
    is_kept = partial(_is_kept_element, languages.source)
    tokens = list(merge_untranslated_elements(masked, markup_tokens(masked, "html"), "html", is_kept))
    marks = sorted([*tag_marks(masked, tokens, "html"), *_marks_in_texts(text, tokens)])
    malformed = [
        token.start for token in tokens if token.role == "text" and MALFORMED.search(masked, token.start, token.end)
    ]
    passages: list[Passage] = []
    attributes: dict[int, list[Attribute]] = {}
    for token in tokens:
        attributes[token.start] = []
        for attribute in _translated_attributes(text, masked, token):
            if _is_supported(attribute):
                attributes[token.start].append(attribute)
            else:
                passages.append(untranslated_passage(attribute.start))
    pieces = coded_text(text, marks, lambda part: decode(part, "html")).separate_texts()
    for before, piece, after in zip(pieces[::2], pieces[1::2], pieces[2::2], strict=False):
        previous = marks[before.codes[-1].number] if before.codes else Mark(0, 0)
        start = previous.end
        end = marks[after.codes[0].number].start if after.codes else len(text)
        if is_translatable(TEMPLATE.sub("", piece.text)):
            starts = [marks[code.number].start for code in piece.codes]
            inline = [attribute for position in starts for attribute in attributes.pop(position, ())]
            if bisect_left(malformed, start) < bisect_left(malformed, end):
                passages.append(untranslated_passage(start))
            else:
                flows = previous.opens != "textarea"
                passages.append(_text_passage(text, (start, end), piece, starts, inline, flows))
    changes: list[Splice] = []
    for token in tokens:
        for attribute in attributes.get(token.start, ()):
            passages.append(
                Passage((attribute.layout,), partial(_write_attributes, text, [attribute]), attribute.start)
            )
        is_tag = token.role in ("open", "standalone") and token.name and token.name not in RAW
        for attribute in _read_attributes(text, token) if is_tag and token.start in attributes else ():
            is_language = attribute.name in ("lang", "xml:lang")
            if is_language and base_language(attribute.value) == base_language(languages.source):
                target = languages.target.replace("_", "-")
                changes.append(Splice(attribute.start, attribute.end, f'"{target}"'))
    return sorted(passages, key=attrgetter("start")), changes


def _marks_in_texts(text: str, tokens: Sequence[MarkupToken]) -> Iterator[Mark]:
    """Yield the marks of codes other than tags.

    These are the constructs of templates, except those that the translator recognizes as placeholders, and no-break
    spaces that separate texts. Texts end at statements of templates and at these spaces.
    """
    for token in tokens:
        for match in GAP_OR_TEMPLATE.finditer(text, token.start, token.end) if token.role == "text" else ():
            ends_text = match["gap"] is not None or CONTROL.match(match[0]) is not None
            if ends_text or not is_placeholder(match[0]):
                yield Mark(*match.span(), ends_text=ends_text)


def _is_kept_element(language: str, name: str, tag: str) -> bool:
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
    """Yield the attributes of a tag that are translated, or the texts of an SVG image.

    Args:
        text: The page.
        masked: The page with hidden constructs of templates.
        token: A token of the page.
    """
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
        is_significant = shown.get(attribute.name) or TRANSLATED_ATTRIBUTES.fullmatch(f"{token.name} {attribute.name}")
        if is_significant and is_translatable(attribute.value):
            quotes = int(text[attribute.start] in "\"'")
            yield attribute._replace(value=decode(text[attribute.start + quotes : attribute.end - quotes], "html"))


def _svg_texts(text: str, image: MarkupToken) -> Iterator[Attribute]:
    """Yield the texts in an SVG image that are translated, as attributes without a name."""
    name = ""
    for token in markup_tokens(text[image.start : image.end], "html"):
        start, end = image.start + token.start, image.start + token.end
        value = decode(text[start:end], "html")
        if token.role == "text" and name in SVG_TEXT and is_translatable(value):
            yield Attribute("", value, start, end)
        elif token.role in ("open", "close"):
            name = token.name if token.role == "open" else "text" if token.name == "tspan" else ""


def _is_supported(attribute: Attribute) -> bool:
    """Return whether a value can be translated: it has no tags, and the translator recognizes the constructs in it."""
    constructs = TEMPLATE.findall(attribute.value)
    return all(map(is_placeholder, constructs)) and all(line.is_plain for line in attribute.layout.lines)


def _write_attributes(text: str, attributes: Sequence[Attribute], values: Sequence[CodedText]) -> list[Splice]:
    """Return the changes of the document that set attributes to new values. Equal values need no change."""
    splices = []
    for attribute, (value, _) in zip(attributes, values, strict=True):
        if value != attribute.value:
            quote = text[attribute.start] if text[attribute.start] in "\"'" else '"'
            escaped = value.replace("&", "&amp;").replace(quote, "&quot;" if quote == '"' else "&#39;")
            new = f"{quote}{escaped}{quote}" if attribute.name else encode(value)
            splices.append(Splice(attribute.start, attribute.end, new))
    return splices


def _text_passage(
    text: str, span: Span, piece: CodedText, starts: Sequence[int], attributes: Sequence[Attribute], flows: bool
) -> Passage:
    """Return the passage for a text of a page and the attributes in its inline tags.

    Args:
        text: The page.
        span: The position of the text.
        piece: The text, with its codes.
        starts: The position of each code in the page.
        attributes: The translated attributes in the codes.
        flows: See ``cut_paragraphs``.
    """
    content = text[slice(*span)]
    # The codes are numbered from 0 in each text, so that equal texts are recognized and translated once.
    numbers: dict[int | None, int] = {code.number: index for index, code in enumerate(piece.codes)}
    codes = (code._replace(number=numbers[code.number], partner=numbers.get(code.partner)) for code in piece.codes)
    source = CodedText(piece.text, tuple(codes))
    has_entity = re.search(NO_BREAK, content) is not None
    blanks = list(INSIDE_TEXT.finditer(source.text)) if has_entity else []
    breaks = [(blank.start() / len(source.text), "\xa0") for blank in blanks]
    layout = cut_paragraphs(source.spliced(Splice(*blank.span(), " ") for blank in blanks), flows=flows)

    def escape(part: str) -> str:
        part = escape_text(part)
        return part.replace("\xa0", "&nbsp;") if has_entity else part

    def write(translations: list[CodedText]) -> list[Splice] | None:
        written, *values = translations
        in_attributes = _write_attributes(text, attributes, values)
        if written == layout.text:
            return in_attributes
        codes = []
        written = insert_breaks(written, breaks)
        for code in written.codes:
            first = starts[code.number]
            last = first + len(code.back)
            index, stop = (bisect_left(in_attributes, position, key=attrgetter("start")) for position in (first, last))
            in_tag = [Splice(old - first, until - first, new) for old, until, new in in_attributes[index:stop]]
            codes.append(code._replace(back=apply_splices(code.back, in_tag)))
        new = CodedText(written.text, tuple(codes)).written(escape)
        return [] if new == content else [Splice(*span, new)]

    return Passage((layout, *(attribute.layout for attribute in attributes)), write, span[0])


def is_placeholder(construct: str) -> bool:
    """Return whether the translator recognizes a construct as a placeholder that needs no escaping in HTML."""
    return NON_TRANSLATABLE.fullmatch(construct) is not None and not re.search("[<>&]", construct)


def construct_keys(construct: str) -> tuple[str, str]:
    """Return the names of the construct that a statement starts, and of the one that it ends; "" for none.

    They are the ``opens`` and ``closes`` of a ``Mark``.
    """
    match = _STATEMENT.match(construct) if CONTROL.match(construct) else None
    if not match:
        return "", ""
    return ("", match["name"]) if match["closes"] else (match["name"], "")
