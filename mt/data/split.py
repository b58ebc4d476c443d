"""Holds pairs out of a corpus, so that the held-out parts share no sentence, on either side, with the rest or with each
other.

Pairs that share a sentence form a group, also indirectly (a–b, c–b, c–d), and a group is never divided. Which groups
are held out depends on hashes of their text alone, not on the order of the lines or on a seed.

Two sentences are the same if they differ only in case, punctuation, symbols, white space or compatibility forms.
"""

import hashlib
import re
from collections.abc import Iterable, Sequence
from unicodedata import category, normalize

import numpy as np

from mt.core.errors import InputError

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


class _FoldedLetters(dict[int, str]):
    """A table for ``str.translate`` that does in one step what ``_folded`` and then ``_Letters`` do, for texts whose
    characters can be folded one by one. Characters that may combine with the one before them, such as combining
    accents, become COMPOSING."""

    def __missing__(self, code: int) -> str:
        folded = _folded(chr(code))
        first = normalize("NFKC", chr(code))[:1]
        composes = any(category(c)[0] == "M" or "\u1160" <= c <= "\u11ff" for c in (first, folded[:1]) if c)
        self[code] = COMPOSING if composes else folded.translate(_LETTERS)
        return self[code]


COMPOSING = "\1"
"""Shows that a text cannot be folded character by character."""
_LETTERS = _Letters()
_FOLDED_LETTERS = _FoldedLetters()


def normal_form(text: str) -> str:
    """Normalises a sentence so that duplicates can be found: sentences that differ only in case, punctuation, symbols,
    white space or compatibility forms have the same normal form.

    That is the text after NFKC and case folding, without punctuation, symbols, white space, and control and format
    characters. Punctuation inside a number becomes a full stop, so that 3.5 is the same as 3,5 but not as 35. A text of
    nothing but punctuation is returned with its punctuation. Accents, digits, and marks that belong to letters are
    kept: été is not ete.

    Python's ``unicodedata`` decides what punctuation is, so characters that are newer than Unicode 14 (Python 3.11) may
    be treated differently by another version of Python.
    """
    form = text.translate(_FOLDED_LETTERS)
    if COMPOSING in form:
        form = _folded(text).translate(_LETTERS)
    if "\0" in form:
        form = PUNCTUATION_IN_NUMBER.sub(".", form).replace("\0", "")
    return form or "".join(_folded(text).split()) or text


def _folded(text: str) -> str:
    """Returns the text after NFKC, case folding, and NFKC again, because case folding can undo it. Accents that stand
    alone are removed."""
    return SPACING_ACCENT.sub("", normalize("NFKC", normalize("NFKC", text).casefold()))


def sentence_key(text: str) -> int:
    """Returns a 64-bit hash of the normal form.

    In one of 370,000 corpora of ten million sentences, two different sentences have the same hash by chance. They then
    count as the same and are held out together.
    """
    return text_hash(normal_form(text))


def pair_hash(source: str, target: str) -> int:
    """Returns a 64-bit hash of the text of a pair. What is held out depends on it."""
    return text_hash(f"{source}\n{target}")


def text_hash(text: str) -> int:
    """Returns a 64-bit hash of a text, as a signed number."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little", signed=True)


def sentence_keys(texts: Iterable[str]) -> np.ndarray:
    """Return the ``sentence_key`` of each text, (N,) int64."""
    return np.fromiter(map(sentence_key, texts), np.int64)


def hold_out(hashes: np.ndarray, same: tuple[np.ndarray, np.ndarray], sizes: Sequence[int]) -> np.ndarray:
    """Assigns every pair to the rest or to one of the held-out parts.

    Pairs that share a sentence, directly or through other pairs, form a group, and a group is never divided. Which
    groups are held out depends on hashes of their text alone. A group that has more than 4 pairs and more than a
    twentieth of the smallest part stays in the rest: a few such groups could make up most of that part.

    It takes some 60 bytes of memory a pair.

    Args:
        hashes: (N,) int64, the ``pair_hash`` of each pair.
        same: (N,) int64 for the sources and (N,) for the targets, equal where two sentences are the same
            (``sentence_keys``).
        sizes: The number of pairs that each part has at least.

    Returns:
        (N,) int8: 0 for the rest, 1 for the first part, 2 for the second, …

    Raises:
        InputError: There are too few small groups, or nothing is left for the rest.
    """
    groups = _groups(*map(_numbered, same))
    members = np.bincount(groups)
    # Groups are ranked by the sum of their pairs' hashes. Unlike the minimum, it gives large and small groups the same
    # chance to be held out, so that the lengths of the sentences stay representative.
    rank = np.zeros(len(members), dtype=np.uint64)
    np.add.at(rank, groups, hashes.view(np.uint64))

    order = np.argsort(rank, kind="stable")
    order = order[members[order] <= max(4, min(sizes) // 20)]
    filled = np.concatenate([[0], np.cumsum(members[order])])
    part = np.zeros(len(members), dtype=np.int8)
    start = 0
    for number, size in enumerate(sizes, 1):
        end = int(np.searchsorted(filled, filled[start] + size))
        if end == len(filled):
            raise _too_few(sizes, len(groups))
        part[order[start:end]] = number
        start = end
    if part[groups].all():
        raise _too_few(sizes, len(groups))
    return part[groups]


def _too_few(sizes: Sequence[int], pairs: int) -> InputError:
    return InputError(
        f"{' + '.join(map(str, sizes))} pairs cannot be held out of {pairs}: too many share a sentence. Name "
        "validation and test data of their own (data.valid, data.test)"
    )


def _numbered(values: np.ndarray) -> np.ndarray:
    """Returns a number for each value, (N,) int32 from 0, the same for equal values."""
    order = np.argsort(values)
    values = values[order]
    is_new = np.empty(len(values), dtype=bool)
    is_new[:1] = False
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    found = np.empty(len(values), dtype=np.int32)
    found[order] = np.cumsum(is_new, dtype=np.int32)
    return found


def _groups(sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Returns the number of each pair's connected component, (N,) int32 from 0, where a pair connects its source to its
    target.

    Every sentence points to a sentence of its component with the same or a lower number. Let the two sides of a pair
    point to p and q: each round makes p and q point to the lower of the two, then halves every path (pointer jumping).
    When nothing changes any more, all sentences of a component point to the same one.
    """
    targets = targets + (sources.max() + 1)
    lowest = np.arange(targets.max() + 1, dtype=np.int32)
    while True:
        lower = np.minimum(lowest[sources], lowest[targets])
        nearer = lowest.copy()
        np.minimum.at(nearer, lowest[sources], lower)
        np.minimum.at(nearer, lowest[targets], lower)
        nearer = nearer[nearer]
        if (nearer == lowest).all():
            return _numbered(lowest[sources])
        lowest = nearer
