"""Documents in tests: the codes of their lines, and of translations, are written as numbers: <0>…</0> and <2/>."""

import re
from collections.abc import Callable, Sequence

from mt.core.coded_text import CodedText, Mark, coded_text
from mt.data.parsers.document import Document, Languages
from mt.documents.formats import FORMATS

NAME = re.compile(r"</?\d+/?>")


def reader(name: str) -> Callable[..., Document]:
    """Return the reader of a format, for documents that are translated from English."""

    def read(content: str | bytes, target: str = "fr", retranslate: bool = False) -> Document:
        content = content.encode() if isinstance(content, str) else content
        return FORMATS[name].read(content, Languages("en", target), retranslate)

    return read


def lines_of(document: Document) -> list[str]:
    lines = []
    for text, _ in document.lines():
        parts = text.parts()
        parts[1::2] = _names(text)
        lines.append("".join(parts))
    return lines


def coded(source: CodedText, translation: str) -> CodedText:
    """Read a translation of a text."""
    codes = dict(zip(_names(source), source.codes, strict=True))
    text, own = coded_text(translation, [Mark(*match.span()) for match in NAME.finditer(translation)])
    return CodedText(text, tuple(codes[code.back]._replace(position=code.position) for code in own))


def _names(text: CodedText) -> list[str]:
    return [
        f"<{code.number}{'/' * (code.partner is None)}>" if code.opens or code.partner is None else f"</{code.partner}>"
        for code in text.codes
    ]


def rendered(
    document: Document, translate: Callable[[str], str] | Sequence[str], confidences: Sequence[float | None] = ()
) -> tuple[bytes, list[int]]:
    """Render a document with translations, or with the text between its codes translated by a function."""
    sources = [line.text for line in document.lines()]
    if callable(translate):
        return document.render([source.mapped(translate) for source in sources], confidences)
    return document.render(list(map(coded, sources, translate)), confidences)


def rendered_text(*arguments: object) -> str:
    """Return the text of a document that is rendered."""
    return rendered(*arguments)[0].decode()
