"""What all formats share: a document is a text, in which passages are translated.

A format finds the passages, and says what is written in place of them. All else is written as it was read, to the byte:
comments, the order of entries, quotation marks and line ends. No library that reads a format into objects and writes
these again keeps all that.
"""

import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from mt.core.encodings import encoding_of_bom, other_encoding
from mt.core.errors import InputError
from mt.core.files import UNDECODABLE, read_blocks
from mt.data.parsers.layout import Layout, Line, cut

DECLARATION = re.compile(rb"""(?:\xef\xbb\xbf)?<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
MOST_BYTES = 100_000_000
"""A larger document is refused, because documents are held in memory."""


class Languages(NamedTuple):
    """What a model translates from, and into."""

    source: str
    target: str


class Splice(NamedTuple):
    """What is written in place of the characters from ``start`` up to ``end``."""

    start: int
    end: int
    content: str


@dataclass(frozen=True)
class Passage:
    """What is translated together: an entry of a file of messages, a subtitle, a paragraph."""

    texts: tuple[Layout, ...]
    write: Callable[[list[str]], list[Splice] | None]
    """Returns what to write, given the translation of each text. None: the format cannot have such a translation."""


@dataclass(frozen=True)
class Document:
    """A document that has been read."""

    text: str
    passages: tuple[Passage, ...]
    encode: Callable[[str], bytes] = str.encode
    changes: tuple[Splice, ...] = ()
    """What else is written if a passage is translated, such as the language in a header."""
    translated: int = 0
    """How many entries have a translation already and are left as they are."""

    def lines(self) -> list[Line]:
        """Returns all lines that are to be translated."""
        return [line for passage in self.passages for text in passage.texts for line in text.lines]

    def written(self, translations: Sequence[str]) -> tuple[bytes, int]:
        """Returns the document with the translations of its lines, and how many passages were left as they were
        because the translation of a line is empty, or none that the format can have."""
        following = iter(translations)
        splices = list(self.changes) if self.passages else []
        left = 0
        for passage in self.passages:
            found = [list(islice(following, len(text.lines))) for text in passage.texts]
            written = None
            if all(line.strip() for lines in found for line in lines):
                texts = [text.restored(lines) for text, lines in zip(passage.texts, found, strict=True)]
                written = passage.write(texts)
            left += written is None
            splices += written or []
        parts, done = [], 0
        for start, end, content in sorted(splices, key=lambda splice: splice[:2]):
            parts += [self.text[done:start], content]
            done = end
        return self.encode("".join(parts) + self.text[done:]), left


def in_place(start: int, end: int, text: Layout, spelt: Callable[[str], str] = str) -> Passage:
    """Returns a passage whose translation takes its place.

    Args:
        start: Where the passage begins.
        end: Where it ends.
        text: What it says.
        spelt: Returns a text as the format writes it.
    """

    def write(translations: list[str]) -> list[Splice]:
        # A text can be spelt in several ways. If it has not changed, neither does its spelling.
        return [Splice(start, end, spelt(one)) for one in translations if one != text.text]

    return Passage((text,), write)


def read_whole(path: Path) -> bytes:
    """Returns the content of a file, which may be compressed.

    Raises:
        InputError: It cannot be read, or is too large.
    """
    blocks, length = [], 0
    for block in read_blocks(path):
        blocks.append(block)
        length += len(block)
        if length > MOST_BYTES:
            raise InputError(
                f"{path}: larger than {MOST_BYTES // 1_000_000} MB, which is too much for a document: divide it "
                "(text files are translated line by line, whatever their size)"
            )
    return b"".join(blocks)


def decoded(content: bytes) -> str:
    """Returns the text of a document whose format says nothing of its encoding, with its BOM.

    Raises:
        InputError: It is not in UTF-8.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        special = b"".join(line + b"\n" for line in content.split(b"\n") if not line.isascii())
        code, name = other_encoding(special) or (encoding_of_bom(content) or "ENCODING", "in several encodings")
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"line {line} is not in UTF-8; the document seems to be {name}. This makes UTF-8 of it: "
            f"iconv -f {code} -t UTF-8"
        ) from None


def decoded_xml(content: bytes) -> tuple[str, Callable[[str], bytes]]:
    """Returns the text of an XML document, with its BOM, and what makes bytes of a changed text. A character that the
    encoding lacks becomes a reference.

    Raises:
        InputError: It is not in the encoding that it says.
    """
    declared = DECLARATION.match(content)
    by_mark = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}.get(content[:2])
    encoding = by_mark or (declared[1].decode() if declared else "utf-8")
    try:
        return content.decode(encoding), lambda text: text.encode(encoding, "xmlcharrefreplace")
    except LookupError:
        raise InputError(f"says that it is in {encoding}, an unknown encoding") from None
    except UnicodeError as error:
        raise InputError(f"is not in {encoding}, as it says: {error}") from None


def line_pairs(text: str, translation: str) -> Iterator[tuple[str, str]]:
    """Yields a text and its translation line by line, if both have as many lines, and otherwise as a whole.
    Accelerators are taken out."""
    lines = [[line.text for line in cut(side, accelerators=True).lines] for side in (text, translation)]
    yield from zip(*lines if len(lines[0]) == len(lines[1]) else ([" ".join(side)] for side in lines), strict=True)


def is_text(text: str) -> bool:
    """Returns whether there is a letter in a text, and nothing that UTF-8 cannot encode."""
    return any(map(str.isalpha, text)) and not UNDECODABLE.search(text)
