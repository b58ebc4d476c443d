"""Decides when two sentences are the same: if they differ only in case, punctuation, symbols, white space or
compatibility forms.
"""

import hashlib
import re
from collections.abc import Iterable
from unicodedata import category, normalize

import numpy as np

SPACING_ACCENT = re.compile(" [\u0300-\u036f]+")
"""Matches the space and the combining accent that NFKC makes of an accent that stands alone, as in l´eau."""
PUNCTUATION_IN_NUMBER = re.compile(r"\0(?<=\d\0)\0*(?=\d)")
"""Matches punctuation between two digits, after ``_Letters`` has replaced it by NUL."""


class _Letters(dict[int, int | str | None]):
    """A table for ``str.translate`` that removes white space and invisible characters, and replaces punctuation and
    symbols by NUL. It is filled as characters are met."""

    def __missing__(self, code: int) -> int | str | None:
        kind = category(chr(code))
        replacement: int | str | None = code
        if kind[0] == "Z" or kind in ("Cc", "Cf") or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:
            replacement = None  # the two ranges are variation selectors, which follow an emoji or an ideograph
        elif kind[0] in "PS" or code == 0x2BC:
            replacement = "\0"  # U+02BC is an apostrophe that Unicode counts as a letter
        self[code] = replacement
        return replacement


_LETTERS = _Letters()


def normal_form(text: str) -> str:
    """Normalise a sentence so that duplicates can be found: sentences that differ only in case, punctuation, symbols,
    white space or compatibility forms have the same normal form.

    That is the text after NFKC and case folding, without punctuation, symbols, white space, and control and format
    characters. Punctuation inside a number becomes a full stop, so that 3.5 is the same as 3,5 but not as 35. A text of
    nothing but punctuation is returned with its punctuation. Accents, digits, and marks that belong to letters are
    kept: été is not ete.

    Python's ``unicodedata`` decides what punctuation is, so characters that are newer than Unicode 14 (Python 3.11) may
    be treated differently by another version of Python.
    """
    folded = _folded(text)
    form = folded.translate(_LETTERS)
    if "\0" in form:
        form = PUNCTUATION_IN_NUMBER.sub(".", form).replace("\0", "")
    return form or "".join(folded.split()) or text


def _folded(text: str) -> str:
    """Return the text after NFKC, case folding, and NFKC again, because case folding can undo it. Accents that stand
    alone are removed."""
    folded = normalize("NFKC", text).casefold()
    return folded if folded.isascii() else SPACING_ACCENT.sub("", normalize("NFKC", folded))


def sentence_key(text: str) -> int:
    """Return a 64-bit hash of the normal form.

    In one of 370,000 corpora of ten million sentences, two different sentences have the same hash by chance. They then
    count as the same and are held out together.
    """
    return text_hash(normal_form(text))


def pair_hash(source: str, target: str) -> int:
    """Return a 64-bit hash of the text of a pair. It decides whether the pair is held out."""
    return text_hash(f"{source}\n{target}")


def text_hash(text: str) -> int:
    """Return a 64-bit hash of a text, as a signed number."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def sentence_keys(texts: Iterable[str]) -> np.ndarray:
    """Return the ``sentence_key`` of each text, (N,) int64."""
    return np.fromiter(map(sentence_key, texts), np.int64)
