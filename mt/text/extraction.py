"""Separates a coded text into its words and its codes, such as tags, and inserts the codes into the translation.

The text without tags is translated. The word alignment of text and translation tells where the tags belong. In this
example, red is linked to rouge and car to voiture::

    a <b>red</b> <i>car</i>    →    une <i>voiture</i> <b>rouge</b>

``tests/text/test_extraction.py`` has a table of examples for these rules:

1.  Each tag comes back exactly once, as it was written, and each element keeps its parent and all that it contains. So
    what was well-formed remains so. Siblings follow their words and may change their order.
2.  An element spans the words from the first to the last that is linked to a word in it. If it contains all words of
    its parent (or of the line), it spans all words of its parent (or of the translation).
3.  If the spans of siblings overlap, the one that begins first ends where the next one begins. Of two that begin
    together the shorter comes first. One of which nothing is left stands after the one before it. The same
    holds for the children of an element that is cut short: they end where it ends.
4.  An element whose words have no link stands after the target of the linked word before it. If there is none within
    its parent, it stands at the beginning of its parent. There, or if rule 3 left nothing of it, it takes a word (see
    ``mt.text.repair``). Text that is passed through unchanged stays in its element.
5.  A standalone tag (see ``mt.formats.tags``), or an element without words, stands at the beginning or end of its
    parent if it did. Otherwise it follows the target of the linked word before it. Only if it touched the word after it
    and not the one before it does it stand in front of the target of the word after it, if that is linked. It never
    moves into a sibling, but stands before or after it.
6.  A tag at the border of a word is at the border of a word in the translation. A tag inside a word may be inside one.
7.  White space remains as it is in the translation, and tags that touched a word touch it again. There are two
    exceptions. If a standalone tag had white space on one side and would have none, it gets a blank. And HTML elements
    such as ``<br>`` and ``<p>`` separate words even if no blank is written. The text to translate then has a blank in
    place of the tag, and if the tag stands in front of a blank of the translation, it replaces it.
8.  White space at the ends of the line is not translated. It comes back at the ends, with the tags that are in it.
9.  Entities are decoded once and encoded once. In HTML they are those that browsers know (``html.unescape``), in XML
    the five predefined ones and numbers. In the result the text's ``&``, ``<``, ``>``, line feed and carriage return
    are written ``&amp;``, ``&lt;``, ``&gt;``, ``&#10;`` and ``&#13;``, and all other characters as themselves.
10. If the translation is the text itself and each character is linked to itself, the result is the line, except for
    the spelling of characters (rule 9). Without links, words are linked to those at the same relative place. If the
    translation is empty, all tags come back in their order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter

from mt.core.coded_text import Code, CodedText
from mt.text.placement import ROOT, AlignmentLink, Node, PlacedTag, place_tags, tags_as_they_are
from mt.text.repair import repair_tags, with_kept_links


@dataclass(frozen=True)
class Markup:
    """A coded text, separated into the text to translate and the tree of its codes."""

    text: str
    """The text to translate, without the white space at its ends."""
    before: str
    after: str
    """The white space at the ends of the line."""
    nodes: list[Node]
    """Elements and standalone codes in the order of their opening codes, and in front of them the line itself, their
    root. Their positions are those in ``before + text + after``."""

    @property
    def has_tags(self) -> bool:
        """Whether there are codes, whose places in a translation depend on its word alignment."""
        return len(self.nodes) > 1

    @property
    def elements(self) -> list[tuple[int, int]]:
        """The start and end of each element in ``text``."""
        shift, end = len(self.before), len(self.text)
        return [
            (min(max(node.start - shift, 0), end), min(max(node.end - shift, 0), end))
            for node in self.nodes[1:]
            if node.closing is not None
        ]


def extract_markup(coded: CodedText) -> Markup:
    """Separate a coded text into its text and its codes."""
    nodes = [Node(ROOT, ROOT, 0, 0, 0)]
    inside = [0]
    parts: list[str] = []
    done = length = 0
    for position, group in groupby(_with_all_borders(coded), attrgetter("position")):
        own = list(group)
        parts.append(coded.text[done:position])
        length += len(parts[-1])
        done = position
        before = coded.text[max(0, position - 1) : position].isspace()
        after = coded.text[position : position + 1].isspace()
        is_between_words = 0 < position < len(coded.text) and not (before or after)
        # Of several codes that separate two words, only the last needs the blank.
        blank = max((n for n, code in enumerate(own) if code.separates and is_between_words), default=-1)
        standalone = [n for n, code in enumerate(own) if code.partner is None]
        for index, code in enumerate(own):
            missing = index == blank
            if code.partner is None:
                sides = before and index == standalone[0], after and index == standalone[-1]
                nodes.append(Node(code, None, inside[-1], length, length, *sides, (missing, False)))
            elif code.opens:
                nodes.append(Node(code, None, inside[-1], length, length, replaces_blank=(missing, False)))
                inside.append(len(nodes) - 1)
            else:
                node = nodes[inside.pop()]
                node.closing, node.end = code, length
                node.replaces_blank = (node.replaces_blank[0], missing)
            if missing:
                parts.append(" ")
                length += 1
    full_text = "".join([*parts, coded.text[done:]])
    nodes[0].end = len(full_text)
    text = full_text.strip()
    start = len(full_text) - len(full_text.lstrip())
    return Markup(text, full_text[:start], full_text[start + len(text) :], nodes)


def insert_markup(
    markup: Markup, translation: str, links: Sequence[AlignmentLink], kept: Sequence[AlignmentLink] = ()
) -> CodedText:
    """Insert the codes of a text into its translation.

    Args:
        markup: The text, from ``extract_markup``.
        translation: The translation of ``markup.text``.
        links: The word alignment of ``markup.text`` and the translation, in any order. Links may overlap, and
            characters may have no link. White space at the ends of a link is ignored.
        kept: The links of text that is passed through unchanged, such as numbers. They do not overlap. Such text stays
            in its element.

    Raises:
        ValueError: A link ends after the text or the translation, or begins before it.
    """
    for link in chain(links, kept):
        if not (
            0 <= link.source_start <= link.source_end <= len(markup.text)
            and 0 <= link.target_start <= link.target_end <= len(translation)
        ):
            raise ValueError(
                f"{link} in a text of {len(markup.text)} and a translation of {len(translation)} characters"
            )
    start, end = len(markup.before), len(markup.before) + len(markup.text)
    if translation.strip():
        source, target = (markup.before + text + markup.after for text in (markup.text, translation))
        if not markup.has_tags:
            return CodedText(target)
        links, kept = (
            [AlignmentLink(*(n + start for n in link)) for link in some_links] for some_links in (links, kept)
        )
        tags = place_tags(markup.nodes, source, target, with_kept_links(links, kept))
        return _assemble(*repair_tags(markup.nodes, source, target, tags, kept))
    # Without words, each code keeps its place in the white space that is left, at the ends of the line.
    remaining = [
        PlacedTag(min(position, start) + max(0, position - end), node, closes)
        for position, node, closes in tags_as_they_are(markup.nodes)
    ]
    return _assemble(markup.before + markup.after, remaining)


def _with_all_borders(coded: CodedText) -> list[Code]:
    """Return the codes of a text that was cut out of a longer one, with codes of number -1 for the borders of elements
    that are outside of it."""
    numbers = {code.number for code in coded.codes}
    cut = [code for code in reversed(coded.codes) if code.partner is not None and code.partner not in numbers]
    before = [Code(0, "", -1, code.number) for code in cut if not code.opens]
    after = [Code(len(coded.text), "", -1, -2) for code in cut if code.opens]  # which closes
    return [*before, *coded.codes, *after]


def _assemble(text: str, tags: Sequence[PlacedTag]) -> CodedText:
    """Return a text with codes at their positions, which ascend. The first and the last tag are those of the root."""
    parts: list[str] = []
    codes: list[Code] = []
    length = 0
    written = 0  # how much of the text is among the parts, or replaced by a code
    blank = True  # whether the line begins here or white space was last; codes of elements do not count
    after_closing = False  # whether the last code closed an element
    owed = False  # whether a standalone code was last that needs white space after it

    def add(part: str) -> None:
        nonlocal length
        parts.append(part)
        length += len(part)

    for position, node, closes in tags:
        # The blank after a standalone code comes after closing codes, because it is not part of their elements.
        if owed and not text[written : written + 1].isspace() and (written < position or not closes):
            add(" ")
            owed, blank = False, True
        if written < position:
            add(text[written:position])
            written, blank, owed = position, text[position - 1].isspace(), False
        if node.closing is None:
            if owed or (node.blank_before and not blank):
                add(" ")
            blank, owed = False, node.blank_after
        code = node.closing if closes and node.closing else node.opening
        if code.number < 0:  # a border of the whole text, or one outside of it
            continue
        is_beside = after_closing and not closes and codes[-1].position == length
        if is_beside and code.back.startswith(("*", "_", "~")) and codes[-1].back.endswith(code.back[0]):
            add(" ")  # otherwise the marks of two neighbours would be read as one
        codes.append(code._replace(position=length))
        after_closing = closes
        if node.replaces_blank[closes] and text.startswith(" ", written):
            written += 1
    return CodedText("".join(parts), tuple(codes))
