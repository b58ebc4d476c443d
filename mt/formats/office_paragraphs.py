"""Reads the paragraphs of DOCX and ODT: divides them into segments whose formatting is represented by codes.

A paragraph is a sequence of atoms: texts, codes (images, notes, fields, bookmarks), and the start and end tags of
elements around them. Tabs and line breaks divide it into segments, which are translated separately. In DOCX, each text
is in a run with formatting properties. The properties of most of a segment's text are its base formatting. All other
formatting is represented by pairs of codes, which the translator moves to the right words. Unknown elements are codes,
too.
"""

import re
import secrets
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NamedTuple
from xml.sax.saxutils import escape

from mt.core.coded_text import CodedText, Mark, Splice, apply_splices, coded_text
from mt.core.errors import InputError
from mt.formats.document import Passage, is_translatable, untranslated_passage
from mt.formats.layout import Layout, cut_paragraphs
from mt.formats.tags import NO_XML_CHARACTER, decode
from mt.formats.xml_elements import Element, read_elements

TRANSLATED_FIELD = re.compile(r"\s*(?:HYPERLINK|FORMTEXT|TOC|REF)\b")
"""The instructions of fields whose result is translated. Other fields compute it, such as page numbers or citations."""
INNER_NAME = f"inner-{secrets.token_hex(8)}"
INNER = re.compile(rf"<\?{INNER_NAME} (\d+)\?>")
"""Replaces a paragraph inside another one, such as that of a text box, by the number of its part."""
FIELD = "field"
"""The key that the start and the end of a field share."""
BREAKS = ("break", "separate", "instruction")
"""The roles of atoms between segments. They include the parts of a field that begins or ends in another paragraph."""


class OfficeDialect(NamedTuple):
    """The XML of one format."""

    name: str
    parts: str
    """A regular expression for the names of the members with text."""
    namespaces: tuple[str, ...]
    """The possible namespaces of texts. Each part declares one of them."""
    roles: dict[str, str]
    """Maps the name of an element in this namespace to its role in a paragraph. All other elements are codes.

    - ``run``: contains texts with one formatting
    - ``text``: a text in a run
    - ``wrapper``: an element around texts
    - ``break``: separates texts
    - ``field``: the start, the middle or the end of a field
    - ``instruction``: defines the result of the field
    - ``dropped``: is omitted from translated paragraphs
    - ``refused``: a paragraph that contains it stays untranslated
    - ``comment``: the paragraphs in it stay untranslated
    """
    has_runs: bool
    """Whether each text is in a run. Otherwise the text is directly in the paragraph."""


class Atom(NamedTuple):
    """An indivisible part of a paragraph."""

    role: str
    """``text``, ``code``, ``open`` or ``close`` (the start and end of an element or field), or one of BREAKS. The start
    and end of a field are ``begin`` and ``end`` until ``pair_fields`` pairs them."""
    xml: str
    """The XML of the atom, in DOCX in a separate run."""
    content: str = ""
    """The escaped text, the instruction of a field, or the key that ``open`` shares with ``close``."""
    properties: str = ""
    """The formatting of a text in DOCX, as XML."""


class Segment(NamedTuple):
    """A part of a paragraph that is translated as one text."""

    layout: Layout
    start: str
    end: str
    """The XML before and after the text."""
    empty_runs: list[str]
    """The XML of a run without text, for each formatting in the segment. Such runs are removed from translations."""

    def render(self, translation: CodedText) -> str:
        """Return the XML of a translation."""
        written = translation.written(lambda text: escape(NO_XML_CHARACTER.sub("", text)))
        xml = f"{self.start}{written}{self.end}"
        for run in self.empty_runs:
            xml = xml.replace(run, "")
        return xml


class UnsupportedParagraphError(Exception):
    """Raised for a paragraph with tracked changes, or with text in an unusual notation."""


class Part:
    """A text in XML: a member of the archive, or a paragraph that was inside another one.

    Args:
        text: The text.
        dialect: The dialect of the document.
        outer: The part that contained this paragraph; None for a member of the archive.
        number: The number of the first part that is taken out of this one.

    Raises:
        InputError: The text is not well-formed XML of this dialect.
    """

    def __init__(self, text: str, dialect: OfficeDialect, outer: "Part | None", number: int) -> None:
        self._dialect, self.text = dialect, text
        self._elements = read_elements(text)
        self._prefixes: tuple[str, ...] = outer._prefixes if outer else self._declared_prefixes()
        inner = list(self._paragraphs(level=1))
        self.inner = [element.xml for element in inner]
        """The paragraphs inside other paragraphs. Each becomes a separate part."""
        splices = (
            Splice(part.start, part.end, f"<?{INNER_NAME} {index}?>") for index, part in enumerate(inner, number)
        )
        self.text = apply_splices(text, splices)
        if inner:
            self._elements = read_elements(self.text)
        self._plain_styles: set[str] = (
            outer._plain_styles
            if outer
            else {
                style.attributes.get("style:name", "")
                for style in self._elements
                if len(style.children) == 1 and all(name.endswith("rsid") for name in style.children[0].attributes)
            }
        )
        """The names of ODT styles without formatting, which only mark editing sessions."""

    def passages(self, offset: int) -> Iterator[Passage]:
        """Yield the passages of a part whose text begins at ``offset`` in the document."""
        for paragraph in self._paragraphs(level=0):
            start = self._content_start(paragraph) + offset
            try:
                parts = self._split_paragraph(paragraph)
            except (UnsupportedParagraphError, RecursionError):
                yield untranslated_passage(start)
                continue
            layouts = tuple(part.layout for part in parts if isinstance(part, Segment))
            if layouts:
                yield Passage(layouts, partial(write_paragraph, start, paragraph.content_end + offset, parts), start)

    def _declared_prefixes(self) -> tuple[str, ...]:
        """Return the prefixes of the namespace of texts, with their colons; "" for the default namespace."""
        root = self._elements[0]
        names = [name for name, uri in root.attributes.items() if uri in self._dialect.namespaces]
        if names:
            return tuple(f"{name.partition(':')[2]}:".removeprefix(":") for name in names)
        raise InputError(f"its element {root.name} does not declare the namespace of texts; save the file again")

    def _paragraphs(self, level: int) -> Iterator[Element]:
        """Yield the paragraphs that are nested in exactly ``level`` other paragraphs and not in a comment."""
        levels = {id(None): 0}
        for element in self._elements:
            role, outer = self._role(element), levels[id(element.parent)]
            levels[id(element)] = -1 if role == "comment" or outer < 0 else outer + (role == "paragraph")
            if role == "paragraph" and outer == level:
                yield element

    def _role(self, element: Element) -> str:
        """Return the role of an element; see ``OfficeDialect.roles``."""
        if element.name == "annotation":
            return "comment"
        if element.tag_name.removesuffix(element.name) not in self._prefixes:
            return "code"
        instructions = (element.attributes.get(f"{prefix}instr", "") for prefix in self._prefixes)
        if element.name == "fldSimple" and any(map(TRANSLATED_FIELD.match, instructions)):
            return "wrapper"
        return self._dialect.roles.get(element.name, "code")

    def _content_start(self, element: Element) -> int:
        """Return the start of an element's content after its properties."""
        properties = [child.end for child in element.children if child.name.endswith("Pr")]
        return max([element.content_start, *properties])

    def _run_tags(self, properties: str) -> tuple[str, str]:
        """Return the XML before and after the text of a run with these properties; "" and "" without runs."""
        prefix = self._prefixes[0]
        if not self._dialect.has_runs:
            return "", ""
        return f'<{prefix}r>{properties}<{prefix}t xml:space="preserve">', f"</{prefix}t></{prefix}r>"

    def _split_paragraph(self, paragraph: Element) -> list[str | Segment]:
        """Divide the content of a paragraph into segments to translate and the XML between them."""
        parts: list[str | Segment] = []
        atoms = pair_fields(self._content_atoms(paragraph, None if self._dialect.has_runs else ""))
        for is_break, group in groupby(atoms, lambda atom: atom.role in BREAKS):
            members = list(group)
            words = "".join(atom.content for atom in members if atom.role == "text")
            is_kept = is_break or not is_translatable(decode(words, "xml"))
            parts.append(join_xml(members) if is_kept else self._make_segment(members))
        return parts

    def _content_atoms(self, element: Element, text_properties: str | None, run: str | None = None) -> Iterator[Atom]:
        """Yield the atoms of the content of an element.

        Args:
            element: A paragraph or an element in it.
            text_properties: The formatting of the text directly in the element; None if it can only be whitespace.
            run: The formatting of the run, if the element is a run.
        """
        position = self._content_start(element)
        for child in [*element.children, None]:
            end = child.start if child else element.content_end
            if end < position:
                continue
            text = self.text[position:end]
            if text and text_properties is not None:
                if "<" in text:
                    raise UnsupportedParagraphError
                start_tags, end_tags = self._run_tags(text_properties)
                yield Atom("text", f"{start_tags}{text}{end_tags}", text, text_properties)
            if child:
                position = child.end
                yield from self._element_atoms(child, text_properties, run)

    def _element_atoms(self, element: Element, text_properties: str | None, run: str | None) -> Iterator[Atom]:
        """Yield the atoms of one element. See ``_content_atoms``, which is called for its parent, for the arguments."""
        role, prefix = self._role(element), self._prefixes[0]
        xml = element.xml
        if run is not None:
            xml = f"<{prefix}r>{run}{xml}</{prefix}r>"
        if role == "refused":
            raise UnsupportedParagraphError
        if role == "run":
            properties = self.text[element.content_start : self._content_start(element)]
            properties = re.sub(rf"<{prefix}(?:lang|noProof)\b[^>]*/>", "", properties)
            yield from self._content_atoms(element, None, properties if properties.count("<") > 2 else "")
        elif role == "text":
            yield from self._content_atoms(element, run or "")
        elif element.name == "span" and element.attributes.get("text:style-name") in self._plain_styles:
            yield from self._content_atoms(element, text_properties)
        elif role == "wrapper":
            # A content control, sdt, may only contain its properties and sdtContent, so their tags stay together.
            inner = next((child for child in element.children if child.name == "sdtContent"), element)
            yield from enclose_atoms(
                self.text[element.start : self._content_start(inner)],
                pair_fields(self._content_atoms(inner, text_properties)),
                self.text[inner.content_end : element.end],
                element.name,
            )
        elif role == "field":
            border = element.attributes.get(f"{prefix}fldCharType", "")
            yield Atom(border if border in ("begin", "end") else "separate", xml)
        elif role == "instruction":
            yield Atom(role, xml, element.content)
        elif role != "dropped":
            yield Atom("break" if role == "break" else "code", xml)

    def _make_segment(self, atoms: Sequence[Atom]) -> Segment:
        """Return a segment whose codes are the code atoms, and the changes from and to its base formatting."""
        weights: Counter[str] = Counter()
        for atom in atoms:
            weights[atom.properties] += len(atom.content) if atom.role == "text" else 0
        base = current = weights.most_common(1)[0][0]
        run_end = self._run_tags(base)[1]
        text = ""
        marks: list[Mark] = []

        def add_code(xml: str, opens: str = "", closes: str = "") -> None:
            nonlocal text
            xml = f"{run_end}{xml}{self._run_tags(current)[0]}"
            marks.append(Mark(len(text), len(text) + len(xml), opens, closes))
            text += xml

        def set_format(properties: str) -> None:
            nonlocal current
            if current not in (base, properties):
                current = base
                add_code("", closes="run")
            if current != properties:
                current = properties
                add_code("", opens="run")

        for atom in atoms:
            if atom.role == "text":
                set_format(atom.properties if atom.content.strip() else current)
                text += atom.content
            elif atom.role == "code":
                add_code(atom.xml)
            else:
                set_format(base)
                add_code(atom.xml, *((atom.content, "") if atom.role == "open" else ("", atom.content)))
        set_format(base)
        layout = cut_paragraphs(coded_text(text, marks, lambda part: decode(part, "xml")), flows=True)
        return Segment(layout, *self._run_tags(base), ["".join(self._run_tags(properties)) for properties in weights])


def write_paragraph(
    start: int, end: int, parts: Sequence[str | Segment], translations: Sequence[CodedText]
) -> list[Splice]:
    """Return the change that writes the translations of the segments among the parts of a paragraph.

    Args:
        start, end: The position of the paragraph's content in the document.
        parts: The segments, and the XML between them.
        translations: The translation of each segment.
    """
    if list(translations) == [part.layout.text for part in parts if isinstance(part, Segment)]:
        return []
    remaining = iter(translations)
    xml = [part if isinstance(part, str) else part.render(next(remaining)) for part in parts]
    return [Splice(start, end, "".join(xml))]


def pair_fields(atoms: Iterable[Atom]) -> list[Atom]:
    """Pair the starts and ends of fields among the atoms of an element.

    The start and end of a field become ``open`` and ``close`` if its result is translated. Otherwise the whole field
    becomes a code. A start or end without a counterpart in the element becomes a break.
    """
    paired: list[Atom] = []
    unclosed: list[int] = []
    for atom in atoms:
        if atom.role == "end" and unclosed:
            start = unclosed.pop()
            field = paired[start:]
            roles = [part.role for part in field]
            size = roles.index("separate") + 1 if "separate" in roles else 0
            opening, content = field[:size], field[size:]
            instruction = "".join(part.content for part in opening if part.role == "instruction")
            is_translated = TRANSLATED_FIELD.match(instruction)
            code = [Atom("code", join_xml([*field, atom]))]
            paired[start:] = enclose_atoms(join_xml(opening), content, atom.xml, FIELD) if is_translated else code
            continue
        if atom.role == "begin":
            unclosed.append(len(paired))
        paired.append(atom)
    return [atom._replace(role="break") if atom.role in ("begin", "end") else atom for atom in paired]


def enclose_atoms(opening: str, content: Sequence[Atom], closing: str, key: str) -> list[Atom]:
    """Return the atoms of an element or field: its start, content and end.

    If the content has a break, the start and end are breaks, too.
    """
    has_break = any(atom.role in BREAKS for atom in content)
    first, last = ("break", "break") if has_break else ("open", "close")
    return [Atom(first, opening, key), *content, Atom(last, closing, key)]


def join_xml(atoms: Iterable[Atom]) -> str:
    return "".join(atom.xml for atom in atoms)
