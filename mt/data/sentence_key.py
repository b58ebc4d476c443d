"""Compute hashes of sentences and pairs, which are equal for equal texts.

The ``sentence_key`` of two sentences is equal if they differ only in case, punctuation, symbols, white space or
compatibility forms of Unicode.
"""

import hashlib
import re
from unicodedata import category, normalize

import numpy as np

SPACING_ACCENT = re.compile(" [\u0300-\u036f]+")
"""Matches the space and the combining accent to which NFKC changes an accent that stands alone, as in l´eau."""
PUNCTUATION_IN_NUMBER = re.compile(r"\0(?<=\d\0)\0*(?=\d)")
"""Matches punctuation between two digits, after ``_Letters`` has replaced it by NUL."""


class _Letters(dict[int, int | str | None]):
    """The table for ``str.translate`` that removes white space and invisible characters, and replaces punctuation and
    symbols by NUL. A character is added when it first occurs."""

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
    """Return the normal form of a sentence. Sentences that differ only in case, punctuation, symbols, white space or
    compatibility forms have the same one.

    - The text is normalised by NFKC and case-folded. Punctuation, symbols, white space, and control and format
      characters are removed.
    - Punctuation inside a number becomes a full stop, so that 3.5 equals 3,5 but not 35.
    - A text of nothing but punctuation keeps its punctuation.
    - Accents, digits, and marks that belong to letters are kept: été differs from ete.

    Python's ``unicodedata`` has the classes of characters. Versions of Python may treat characters that are newer than
    Unicode 14 (Python 3.11) differently.
    """
    folded = _folded(text)
    form = folded.translate(_LETTERS)
    if "\0" in form:
        form = PUNCTUATION_IN_NUMBER.sub(".", form).replace("\0", "")
    return form or "".join(folded.split()) or text


def _folded(text: str) -> str:
    """Return the text after NFKC, case folding, and NFKC again, because folded text may not be normalised. Accents that
    stand alone are removed."""
    folded = normalize("NFKC", text).casefold()
    return folded if folded.isascii() else SPACING_ACCENT.sub("", normalize("NFKC", folded))


def sentence_key(text: str) -> int:
    """Return a 64-bit hash of the ``normal_form`` of a sentence, as a signed number.

    Of 370,000 corpora of ten million sentences, one has two different sentences with the same hash by chance. Such
    sentences are treated as equal: their pairs are held out together.
    """
    return text_hash(normal_form(text))


def pair_hash(source: str, target: str) -> int:
    """Return a 64-bit hash of the unnormalised text of a pair, as a signed number. Held-out pairs are chosen by it."""
    return text_hash(f"{source}\n{target}")


def text_hash(text: str) -> int:
    """Return a 64-bit hash of a text, as a signed number."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def combined_hash(hashes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return one hash for each two hashes at the same index: (N,) int64 for (N,) int64 and (N,) int64."""
    return hashes * (0x9E3779B97F4A7C15 - 2**64) + others  # the factor is odd, so that no bit of a hash is lost
