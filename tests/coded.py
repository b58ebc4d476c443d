"""Lines of documents and their translations, as strings with their codes."""

import re
from collections import defaultdict
from collections.abc import Callable, Sequence

from mt.core.coded_text import CodedText
from mt.data.parsers.document import Document


def lines_of(document: Document) -> list[str]:
    return [line.text.written() for line in document.lines()]


def numbered(text: CodedText) -> CodedText:
    """Return a text with numbers as its codes: <0>…</0> and <2/>."""
    return text._replace(
        codes=tuple(
            code._replace(
                back=f"<{code.number}{'' if code.opens else '/'}>"
                if code.partner is None or code.opens
                else f"</{code.partner}>"
            )
            for code in text.codes
        )
    )


def numbered_lines(document: Document) -> list[str]:
    return [numbered(line.text).written() for line in document.lines()]


def coded(source: CodedText, written: str) -> CodedText:
    """Return a translation that is written with the codes of its source, or with their numbers."""
    remaining = defaultdict(list)
    for names in zip(source.codes, numbered(source).codes, strict=True):
        for name in {code.back for code in names}:
            remaining[name].append(names[0])
    codes, length = [], 0

    def take(match: re.Match[str]) -> str:
        nonlocal length
        if not remaining[match[0]]:
            return match[0]
        codes.append(remaining[match[0]].pop(0)._replace(position=match.start() - length))
        length += len(match[0])
        return ""

    names = "|".join(map(re.escape, sorted(remaining, key=len, reverse=True)))
    return CodedText(re.sub(names or "(?!)", take, written), tuple(codes))


def rendered(
    document: Document, translate: Callable[[str], str] | Sequence[str], confidences: Sequence[float | None] = ()
) -> tuple[bytes, list[int]]:
    """Render a document with translations, or with the text between its codes translated by a function."""
    sources = [line.text for line in document.lines()]
    if callable(translate):
        return document.render([source.mapped(translate) for source in sources], confidences)
    return document.render(list(map(coded, sources, translate)), confidences)
