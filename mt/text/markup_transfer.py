"""Removes inline codes, such as tags, from a text, and inserts them into its translation by word alignment.

In this example, red is linked to rouge and car to voiture::

    a <b>red</b> <i>car</i>    →    une <i>voiture</i> <b>rouge</b>

``tests/text/test_markup_transfer.py`` has a table of examples for these rules:

1.  The translation has each code exactly once and unchanged. Each element keeps its parent and its children, so that
    well-formed markup stays well-formed. Siblings follow their words and may change their order.
2.  An element spans the words of the translation from the first to the last one that is linked to one of its words. If
    it has all words of its parent (or of the line), it spans all words of its parent (or of the translation).
3.  If the spans of siblings overlap, the one that starts first ends at the start of the next one. If two start at the
    same word, the shorter one comes first. An element whose span becomes empty is placed after the target of the linked
    word before it. If an element is shortened, its children end where it ends.
4.  An element whose words have no link is placed after the target of the linked word before it, or at the start of its
    parent if there is no such word in the parent. An element without words there, also because of rule 3, gets a word
    (``mt.text.repair``). Copied text, such as numbers, stays in its element.
5.  A standalone code (see ``mt.formats.tags``), or an element without words, stays at the start or end of its parent.
    Elsewhere, it is placed after the target of the linked word before it; or before the target of the linked word after
    it, if it touches that word and not the word before it. It is never placed inside a sibling.
6.  A code at the start or end of a word is at the start or end of a word in the translation. A code inside a word may
    be inside one.
7.  The whitespace of the translation does not change, and codes that touch a word touch it in the translation. There
    are two exceptions. A standalone code with whitespace on one side gets a space if it would have none. And HTML
    elements such as ``<br>`` and ``<p>`` separate words without a space. The text to translate then has a space in
    place of the tag, and a tag in front of a space of the translation replaces it.
8.  Whitespace at the ends of the line is not translated. It is copied, with the codes in it.
9.  If the translation equals the text, the result is the line. If it is empty, the result has all codes in their order.
"""

from collections.abc import Iterable, Sequence

import regex

from mt.core.coded_text import Code, CodedText, Splice, joined
from mt.text.placement import PUNCTUATION, AlignmentLink, Element, Placement, elements_and_runs
from mt.text.repair import remove_conflicts, set_parts, split_at_codes

WORDS_TOUCH = regex.compile(r"[^\s\p{Ps}\p{Pi}][^\s\p{Pe}\p{Pf},.;:!?'’]")
"""Two characters that belong to different words if an element such as ``<br>`` is between them."""


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
        needs_space = last.get(code.position) is code
        own = code._replace(position=0, separates=needs_space)
        pieces += [CodedText(text), CodedText(" " if needs_space else "", (own,))]
    return joined([*pieces, CodedText(end)])


def text_and_elements(coded: CodedText) -> tuple[str, list[tuple[int, int]]]:
    """Return the stripped text to translate of a coded text, and the spans of its elements."""
    source = text_to_translate(coded)
    start = len(source.text) - len(source.text.lstrip())
    elements = elements_and_runs(source)[0][1:] if coded.codes else ()
    spans = [(element.start - start, element.end - start) for element in elements if not element.is_standalone]
    return source.text.strip(), spans


def transfer_markup(
    coded: CodedText, translation: str, links: Sequence[AlignmentLink], kept: Sequence[AlignmentLink] = ()
) -> CodedText:
    """Return the translation of a text with the codes of the text.

    Args:
        coded: The text.
        translation: The translation of ``text_to_translate(coded).text.strip()``.
        links: The word alignment of both, in any order. Links may overlap, and characters may have no link. Whitespace
            at the ends of a link is ignored.
        kept: The links of copied text, such as numbers, which stays in its element. They do not overlap.
    """
    source = text_to_translate(coded)
    text = source.text.strip()
    start = len(source.text) - len(source.text.lstrip())
    end = start + len(text)
    if translation == text:
        return coded
    if not translation.strip():
        return source.spliced([Splice(start, end, "")])
    links, kept = ([AlignmentLink(*(n + start for n in link)) for link in side] for side in (links, kept))
    return transfer_markup_untrimmed(source, source.text[:start] + translation + source.text[end:], links, kept)


def transfer_markup_untrimmed(
    source: CodedText, target: str, links: Iterable[AlignmentLink], kept: Iterable[AlignmentLink]
) -> CodedText:
    """Do the same as ``transfer_markup`` for the result of ``text_to_translate``, with the whitespace at its ends."""
    if not target.strip():
        return source.spliced([Splice(0, len(source.text), target)])
    elements, runs = elements_and_runs(source)
    pieces = list(split_at_codes(runs, source.text, kept))
    Placement(elements, runs, source.text, target, remove_conflicts(links, pieces)).place()
    set_parts(elements, source.text, target, pieces)
    return _assemble(elements[0])


def _assemble(root: Element) -> CodedText:
    """Return the text of placed elements with their codes, and the spaces that standalone codes need (rule 7)."""
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
    done = 0  # the number of characters of the text that are among the parts, or replaced by a code
    is_after_space = True  # whether the line starts here or whitespace precedes; codes of elements are ignored
    after_closing = False  # whether the last code closed an element
    is_space_due = False  # whether the preceding standalone code needs whitespace after it
    is_apart = False  # whether the preceding standalone code touches no word after it

    def add(part: str) -> None:
        nonlocal length
        parts.append(part)
        length += len(part)

    for position, element, closes in tags:
        # The space after a standalone code comes after closing codes, because it is not a part of their elements.
        following = text[done : done + 1]
        needs_space = (is_apart and following.isalnum()) or (
            is_space_due and not following.isspace() and following not in PUNCTUATION
        )
        if needs_space and (done < position or not closes):
            add(" ")
            is_space_due, is_apart, is_after_space = False, False, True
        if done < position:
            add(text[done:position])
            done, is_after_space, is_space_due, is_apart = position, text[position - 1].isspace(), False, False
        if element.is_standalone:
            touches = not element.word_before and bool(parts) and parts[-1][-1:].isalnum()
            if is_space_due or (not is_after_space and (element.space_before or touches)):
                add(" ")
            is_after_space, is_space_due, is_apart = False, element.space_after, not element.word_after
        code = element.closing if closes else element.opening
        if code is None or code.number < 0:  # the start or end of the whole text, or a code outside of it
            continue
        is_beside = after_closing and not closes and codes[-1].position == length
        if is_beside and code.back.startswith(("*", "_", "~")) and codes[-1].back.endswith(code.back[0]):
            add(" ")  # otherwise ** and ** would be read as ****
        after_closing = closes
        codes.append(code._replace(position=length))
        if code.separates and text.startswith(" ", done):
            done += 1
    return CodedText("".join(parts), tuple(codes))
