"""Text with codes: the tags and formatting of a text, which move with its words and take no room in it.

Localization tools have this as a fragment with inline codes; see section 4.7 of XLIFF 2.1. Readers of documents and of
HTML and XML make coded texts, the translator gives each code its position in the translation, and ``written`` is the
only place where codes become characters again.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain, pairwise
from typing import NamedTuple

import regex

from mt.core.language import TOUCHING

Span = tuple[int, int]
"""The start and end of a part of a text."""


class Splice(NamedTuple):
    """A replacement for the characters of a text from ``start`` up to, but without, ``end``."""

    start: int
    end: int
    content: str


def apply_splices(text: str, splices: Iterable[Splice]) -> str:
    """Return the text with all replacements made. They must be sorted by position and must not overlap."""
    parts, done = [], 0
    for start, end, content in splices:
        parts += [text[done:start], content]
        done = end
    return "".join(parts) + text[done:]


SIGN = regex.compile(
    rf"(?<=[\p{{L}}\p{{M}}'’](?![{TOUCHING}])[\p{{L}}\p{{M}}][.,;!?'\"’”»)]{{0,2}})"
    r"\(?[\d⁰-₟¹²³]{1,3}(?:(?:, ?|[–-])\d{1,3})*+\)?"
    r"|(?<=\w[.,;!?'\"’”»)]{0,2})(?:[*†‡§¶#]+|\[(?:\p{L}+ )?(?:\d[\d, –-]*|[*†‡§¶#\p{L}])\])"
    r"|(?<=\p{L}{3})\p{Ll}"
)
"""A number or symbol that refers to a note, behind a word or its punctuation. Behind a number, or a letter of a
language without spaces between words, a plain number is text."""
MAX_SIGN_MARKS = 8
"""The largest number of codes of such an element. More would take quadratic time in nested elements."""


class Mark(NamedTuple):
    """A code as a span of the text that it is written in.

    An opening mark and a closing mark belong together if ``opens`` of the first equals ``closes`` of the second.
    """

    start: int
    end: int
    opens: str = ""
    """The key of an opening mark; "" for other marks."""
    closes: str = ""
    """The key of a closing mark; "" for other marks."""
    separates: bool = False
    """Whether words before and after it are separate words, even without a space between them."""
    ends_text: bool = False
    """Whether texts before and after it are to be translated separately."""


class Code(NamedTuple):
    """A code of a text."""

    position: int
    """The number of characters of the text before it."""
    back: str
    """What is written in its place."""
    number: int = 0
    """Its number in the source, which it keeps in the translation."""
    partner: int | None = None
    """The number of the other border of its element. An opening code has the lower number of the two."""
    separates: bool = False
    """Whether words before and after it are separate words, even without a space between them."""
    ends_text: bool = False
    """Whether texts before and after it are to be translated separately."""

    @property
    def opens(self) -> bool:
        return self.partner is not None and self.partner > self.number


class CodedText(NamedTuple):
    """A text and its codes, in order."""

    text: str
    codes: tuple[Code, ...] = ()

    def parts(self) -> list[str]:
        """Return the text before the first code, the code, the text up to the next one, and so on."""
        parts, done = [], 0
        for code in self.codes:
            parts += [self.text[done : code.position], code.back]
            done = code.position
        return [*parts, self.text[done:]]

    def written(self, escape: Callable[[str], str] = str) -> str:
        """Return the text with its codes as characters. ``escape`` writes the text between them."""
        parts = self.parts()
        parts[::2] = map(escape, parts[::2])
        return "".join(parts)

    def mapped(self, change: Callable[[str], str]) -> "CodedText":
        """Return the text with each part between codes changed."""
        parts = self.parts()
        texts = list(map(change, parts[::2]))
        positions = accumulate(map(len, texts))
        codes = (code._replace(position=position) for code, position in zip(self.codes, positions, strict=False))
        return CodedText("".join(texts), tuple(codes))

    def split(self, spans: Iterable[tuple[int, int]], with_ends: bool = False) -> "list[CodedText]":
        """Cut the text at spans, which are in order: the text before the first span, the span, the text up to the next
        one, and so on. The codes at the ends of a span go with it if ``with_ends``."""
        borders = [0, *chain.from_iterable(spans), len(self.text)]
        pieces: list[list[Code]] = [[] for _ in borders[1:]]
        index = 0
        for code in self.codes:
            while index + 1 < len(pieces) and (
                code.position > borders[index + 1]
                or (code.position == borders[index + 1] and (index % 2 == 0) == with_ends)
            ):
                index += 1
            pieces[index].append(code._replace(position=code.position - borders[index]))
        return [
            CodedText(self.text[start:end], tuple(codes))
            for start, end, codes in zip(borders, borders[1:], pieces, strict=False)
        ]

    def separate_texts(self) -> "list[CodedText]":
        """Cut the text at the codes that end texts. Texts are at odd indices, the parts between them at even ones."""
        pieces: list[CodedText] = []
        kept: list[CodedText] = []
        start = index = 0
        for end, code in [*((n, code) for n, code in enumerate(self.codes) if code.ends_text), (len(self.codes), None)]:
            position = code.position if code else len(self.text)
            own = (other._replace(position=other.position - start) for other in self.codes[index:end])
            piece = CodedText(self.text[start:position], tuple(own))
            if piece.text.strip():
                pieces += [joined(kept), piece]
                kept = []
            else:
                kept.append(piece)
            if code:
                kept.append(CodedText("", (code._replace(position=0),)))
            start, index = position, end + 1
        return [*pieces, joined(kept)]

    def spliced(self, splices: Iterable[Splice]) -> "CodedText":
        """Return the text with parts of it replaced; see ``apply_splices``.

        A code inside of a replaced part goes to its start.
        """
        splices = list(splices)
        if not splices:
            return self
        pieces = self.split((start, end) for start, end, _ in splices)
        for index, (_, _, content) in enumerate(splices):
            codes = pieces[2 * index + 1].codes
            pieces[2 * index + 1] = CodedText(content, tuple(code._replace(position=0) for code in codes))
        return joined(pieces)


def joined(texts: Iterable[CodedText]) -> CodedText:
    """Return the concatenation of texts, whose codes are of one source."""
    parts: list[str] = []
    codes: list[Code] = []
    length = 0
    for text, own in texts:
        codes += [code._replace(position=code.position + length) for code in own]
        parts.append(text)
        length += len(text)
    return CodedText("".join(parts), tuple(codes))


def coded_text(text: str, marks: Sequence[Mark], decode: Callable[[str], str] = str) -> CodedText:
    """Return a text with its marks as codes.

    An element that is a sign behind a word, as in ``house<sup>1</sup>``, is one code: in the text, the sign would be
    a part of the word. A letter is a sign in the element ``sup`` of HTML alone.

    Args:
        text: A text as it is written.
        marks: The spans of its codes, in order, without overlaps.
        decode: Reads the text between the codes: resolves entities, for example.
    """
    if not marks:
        return CodedText(decode(text))
    partners = nested_pairs(marks)
    partners |= {closing: opening for opening, closing in partners.items()}
    parts: list[str] = []
    codes: list[Code] = []
    done = length = 0
    before = ""
    for number, mark in enumerate(marks):
        if mark.start < done:  # inside of a sign
            continue
        parts.append(decode(text[done : mark.start]))
        before = (before + parts[-1])[-4:]
        length += len(parts[-1])
        partner = partners.get(number)
        if mark.separates or mark.ends_text:
            before = ""
        elif partner and number < partner < number + MAX_SIGN_MARKS:
            element = marks[number : partner + 1]
            if _is_sign(before, text, element, decode):
                mark, partner = mark._replace(end=element[-1].end), None
        opening = mark if partner is None else marks[min(number, partner)]
        back = text[mark.start : mark.end]
        codes.append(Code(length, back, number, partner, opening.separates, mark.ends_text))
        done = mark.end
    return CodedText("".join([*parts, decode(text[done:])]), tuple(codes))


def _is_sign(before: str, text: str, element: Sequence[Mark], decode: Callable[[str], str]) -> bool:
    """Return whether an element, given its marks and the characters in front of it, is a sign that no word touches."""
    content = decode("".join(text[first.end : second.start] for first, second in pairwise(element)))
    end = element[-1].end
    if text[end : end + 1].isalnum() or any(mark.separates or mark.ends_text for mark in element):
        return False
    is_word = content.isalpha() and element[0].opens != "sup"
    return not is_word and bool(SIGN.fullmatch(before + content, len(before)))


def nested_pairs(marks: Sequence[Mark]) -> dict[int, int]:
    """Map the index of each opening mark to that of its closing mark. A mark in between may remain without a pair."""
    pairs: dict[int, int] = {}
    unclosed: list[int] = []
    keys: Counter[str] = Counter()
    for index, mark in enumerate(marks):
        if mark.closes and keys[mark.closes]:
            while marks[opening := unclosed.pop()].opens != mark.closes:
                keys[marks[opening].opens] -= 1
            keys[mark.closes] -= 1
            pairs[opening] = index
        elif mark.opens:
            unclosed.append(index)
            keys[mark.opens] += 1
    return pairs


def restored(source: CodedText, text: str, positions: Iterable[tuple[int, int]]) -> CodedText:
    """Return a translation, given its text and the number and position of each of its codes, in order."""
    codes = {code.number: code for code in source.codes}
    return CodedText(text, tuple(codes[number]._replace(position=position) for number, position in positions))
