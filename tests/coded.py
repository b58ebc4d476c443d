"""Documents in tests: the codes of their lines, and of translations, are written as numbers: <0>…</0> and <2/>."""

import re

from mt.core.coded_text import CodedText, Mark, coded_text
from mt.formats.document import Languages
from mt.formats.registry import FORMATS

NAME = re.compile(r"</?\d+/?>")


def reader(name):
    """Return the reader of a format, for documents that are translated from English."""

    def read(content, target="fr", retranslate=False):
        content = content.encode() if isinstance(content, str) else content
        return FORMATS[name].read(content, Languages("en", target), retranslate)

    return read


def lines_of(document):
    return [_with_names(line.text).written() for line in document.lines()]


def coded(source: CodedText, translation: str) -> CodedText:
    """Read a translation of a text."""
    named = zip(_with_names(source).codes, source.codes, strict=True)
    codes = {name.back: code for name, code in named}
    marks = [Mark(*match.span()) for match in NAME.finditer(translation) if match[0] in codes]
    text, names = coded_text(translation, marks)
    return CodedText(text, tuple(codes[name.back]._replace(position=name.position) for name in names))


def _with_names(text: CodedText) -> CodedText:
    names = (
        f"<{code.number}{'/' * (code.partner is None)}>" if code.opens or code.partner is None else f"</{code.partner}>"
        for code in text.codes
    )
    return CodedText(text.text, tuple(code._replace(back=name) for code, name in zip(text.codes, names, strict=True)))


def rendered(document, translate):
    """Render a document with translations, or with the text between its codes translated by a function."""
    sources = [line.text for line in document.lines()]
    if callable(translate):
        return document.render([source.mapped(translate) for source in sources])
    return document.render(list(map(coded, sources, translate)))


def rendered_text(*arguments):
    return rendered(*arguments)[0].decode()
