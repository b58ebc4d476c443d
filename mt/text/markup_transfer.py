"""Separates a coded text into its words and its codes, such as tags, and places the codes in the translation.

The text without codes is translated. The word alignment of text and translation tells where the codes belong. In this
example, red is linked to rouge and car to voiture::

    a <b>red</b> <i>car</i>    →    une <i>voiture</i> <b>rouge</b>

``tests/text/test_markup_transfer.py`` has a table of examples for these rules:

1.  Each code comes back exactly once, as it was written, and each element keeps its parent and all that it contains. So
    what was well-formed remains so. Siblings follow their words and may change their order.
2.  An element spans the words from the first to the last that is linked to a word in it. If it contains all words of
    its parent (or of the line), it spans all words of its parent (or of the translation).
3.  If the spans of siblings overlap, the one that begins first ends where the next one begins. Of two that begin
    together the shorter comes first. One of which nothing is left stands after the target of the linked word before it.
    The same holds for the children of an element that is cut short: they end where it ends.
4.  An element whose words have no link stands after the target of the linked word before it. If there is none within
    its parent, it stands at the beginning of its parent. There, or if rule 3 left nothing of it, it takes a word (see
    ``mt.text.repair``). Text that is passed through unchanged stays in its element.
5.  A standalone code (see ``mt.formats.tags``), or an element without words, stands at the beginning or end of its
    parent if it did. Otherwise it follows the target of the linked word before it. Only if it touched the word after it
    and not the one before it does it stand in front of the target of the word after it, if that is linked. It never
    moves into a sibling, but stands before or after it.
6.  A code at the border of a word is at the border of a word in the translation. A code inside a word may be inside
    one.
7.  Whitespace remains as it is in the translation, and codes that touched a word touch it again. There are two
    exceptions. If a standalone code had whitespace on one side and would have none, it gets a space. And HTML elements
    such as ``<br>`` and ``<p>`` separate words even if no space is written. The text to translate then has a space in
    place of the tag, and if the tag stands in front of a space of the translation, it replaces it.
8.  Whitespace at the ends of the line is not translated. It comes back at the ends, with the codes that are in it.
9.  If the translation is the text itself, the result is the line. If it is empty, all codes come back in their order.
"""

from collections.abc import Iterable, Sequence

import regex

from mt.core.coded_text import Code, CodedText, Splice, joined
from mt.text.placement import PUNCTUATION, AlignmentLink, Element, Placement, elements_and_runs
from mt.text.repair import cut_at_codes, set_parts, without_conflicts

WORDS_TOUCH = regex.compile(r"[^\s\p{Ps}\p{Pi}][^\s\p{Pe}\p{Pf},.;:!?'’]")
"""Two characters between which a word ends if an element separates them."""


def text_to_translate(coded: CodedText) -> CodedText:
    """Return a text with a space between words that only codes separate.

    Of the codes of the result, those in front of such a space separate words.
    """
    if not coded.codes:
        return coded
    *texts, end = coded.parts()[::2]
    padded = f" {coded.text} "
    # Of several codes that separate two words, only the last needs the space.
    last = {code.position: code for code in coded.codes if code.separates and WORDS_TOUCH.match(padded, code.position)}
    pieces: list[CodedText] = []
    for text, code in zip(texts, coded.codes, strict=True):
        needs_blank = last.get(code.position) is code
        own = code._replace(position=0, separates=needs_blank)
        pieces += [CodedText(text), CodedText(" " if needs_blank else "", (own,))]
    return joined([*pieces, CodedText(end)])


def text_and_elements(coded: CodedText) -> tuple[str, list[tuple[int, int]]]:
    """Return the text to translate of a coded text, without whitespace at its ends, and the spans of its elements."""
    source = text_to_translate(coded)
    start = len(source.text) - len(source.text.lstrip())
    elements = elements_and_runs(source)[0][1:] if coded.codes else ()
    return source.text.strip(), [(own.start - start, own.end - start) for own in elements if not own.is_standalone]


def transfer_markup(
    coded: CodedText, translation: str, links: Sequence[AlignmentLink], kept: Sequence[AlignmentLink] = ()
) -> CodedText:
    """Return the translation of a text with the codes of the text.

    Args:
        coded: The text.
        translation: The translation of ``text_to_translate(coded).text.strip()``.
        links: The word alignment of both, in any order. Links may overlap, and characters may have no link. White
            space at the ends of a link is ignored.
        kept: The links of text that is passed through unchanged, such as numbers. They do not overlap. Such text stays
            in its element.
    """
    source = text_to_translate(coded)
    text = source.text.strip()
    start = len(source.text) - len(source.text.lstrip())
    end = start + len(text)
    if translation == text:
        return coded
    if not translation.strip():
        return source.spliced([Splice(start, end, "")])
    links, kept = ([AlignmentLink(*(n + start for n in link)) for link in own] for own in (links, kept))
    return transfer_markup_untrimmed(source, source.text[:start] + translation + source.text[end:], links, kept)


def transfer_markup_untrimmed(
    source: CodedText, target: str, links: Iterable[AlignmentLink], kept: Iterable[AlignmentLink]
) -> CodedText:
    """Do the same as ``transfer_markup`` for the result of ``text_to_translate``, with the whitespace at its ends."""
    if not target.strip():
        return source.spliced([Splice(0, len(source.text), target)])
    elements, runs = elements_and_runs(source)
    pieces = list(cut_at_codes(runs, source.text, kept))
    Placement(elements, runs, source.text, target, without_conflicts(links, pieces)).place()
    set_parts(elements, source.text, target, pieces)
    return _assembled(elements[0])


def _assembled(root: Element) -> CodedText:
    texts: list[str] = []
    tags: list[tuple[int, Element, bool]] = []
    length = 0
    stack: list[tuple[Element | str, bool]] = [(root, False)]
    while stack:
        part, closes = stack.pop()
        if isinstance(part, str):
            texts.append(part)
            length += len(part)
            continue
        tags.append((length, part, closes))
        if not closes and not part.is_standalone:
            stack += [(part, True), *((child, False) for child in reversed(part.parts))]
    text = "".join(texts)
    parts: list[str] = []
    codes: list[Code] = []
    length = 0
    written = 0  # how much of the text is among the parts, or replaced by a code
    blank = True  # whether the line begins here or whitespace was last; codes of elements do not count
    after_closing = False  # whether the last code closed an element
    owed = False  # whether a standalone code was last that needs whitespace after it
    is_apart = False  # whether a standalone code was last that touches no word after it

    def add(part: str) -> None:
        nonlocal length
        parts.append(part)
        length += len(part)

    for position, element, closes in tags:
        # The blank after a standalone code comes after closing codes, because it is not part of their elements.
        following = text[written : written + 1]
        needs_blank = (
            is_apart and following.isalnum() or owed and not following.isspace() and following not in PUNCTUATION
        )
        if needs_blank and (written < position or not closes):
            add(" ")
            owed, is_apart, blank = False, False, True
        if written < position:
            add(text[written:position])
            written, blank, owed, is_apart = position, text[position - 1].isspace(), False, False
        if element.is_standalone:
            touches = not element.word_before and bool(parts) and parts[-1][-1:].isalnum()
            if owed or (not blank and (element.blank_before or touches)):
                add(" ")
            blank, owed, is_apart = False, element.blank_after, not element.word_after
        code = element.closing if closes else element.opening
        if code is None or code.number < 0:  # a border of the whole text, or one outside of it
            continue
        is_beside = after_closing and not closes and codes[-1].position == length
        if is_beside and code.back.startswith(("*", "_", "~")) and codes[-1].back.endswith(code.back[0]):
            add(" ")  # otherwise the marks of two neighbors would be read as one
        after_closing = closes
        codes.append(code._replace(position=length))
        if code.separates and text.startswith(" ", written):
            written += 1
    return CodedText("".join(parts), tuple(codes))
