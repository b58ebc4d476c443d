"""How often each word stands in a run's training targets, counted by training and kept in the run folder.

Comparisons group words and sentences by it. Without this file they would have to open the training data wherever the
config of a run, which may be somebody else's, says that they lie.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mt.errors import InputError
from mt.files import write_atomically
from mt.scoring import bleu_tokenizer, words

logger = logging.getLogger(__name__)

TARGET_WORDS = "target_words.txt"
FORMAT = 1
"""Raised whenever older files cannot be read."""
MOST_WORDS = 2_000_000
"""Different words: counting holds less than half a GB of them."""
MOST_BYTES = 64 * 2**20
"""Of the file. A file from elsewhere that is larger is refused before it is read."""
MOST_PARTS = 250_000
"""Different parts of text between blanks that wait to be cut into words."""


def count_words(sentences: Iterable[str], language: str) -> Counter[str] | None:
    """How often each word stands in them, as BLEU counts words; None if there are more than MOST_WORDS different ones.

    sacreBLEU's tokenizer 13a looks no further than to the next character and takes blanks for ends, so what stands
    between blanks is cut once and not at each of its occurrences, which takes a sixth of the time. The other tokenizers
    look further and get whole sentences.
    """
    found: Counter[str] = Counter()
    if bleu_tokenizer(language) != "13a":
        for cut in words(sentences, language):
            found.update(cut)
            if len(found) > MOST_WORDS:
                return None
        return found
    parts: Counter[str] = Counter()
    for sentence in sentences:
        parts.update(sentence.split())
        if len(parts) > MOST_PARTS:
            _add(found, parts, language)
            parts.clear()
            if len(found) > MOST_WORDS:
                return None
    _add(found, parts, language)
    return found if len(found) <= MOST_WORDS else None


def _add(found: Counter[str], parts: Counter[str], language: str) -> None:
    for cut, count in zip(words(parts, language), parts.values(), strict=True):
        for word in cut:
            found[word] += count


def write_word_counts(folder: Path, sentences: Iterable[str], language: str) -> None:
    """Counts the words of the training targets and writes them into the run folder.

    The file has a line with the SHA-256 of all that follows, a line of JSON, and a line for each word with its count,
    the most frequent first. If there are more words than MOST_WORDS or more text than MOST_BYTES it has none of them
    and says so: counts without the rare words could not be told from those of a text that has no other words.
    """
    counts = count_words(sentences, language)
    ordered = sorted((counts or {}).items(), key=lambda item: (-item[1], item[0]))
    body = "".join(f"{count}\t{word}\n" for word, count in ordered).encode()
    if counts is None or len(body) > MOST_BYTES - 1000:
        body, number = b"", None
    else:
        number = len(counts)
    about = {"format": FORMAT, "tokenizer": bleu_tokenizer(language), "words": number}
    content = json.dumps(about).encode() + b"\n" + body
    write_atomically(folder / TARGET_WORDS, _seal(content) + b"\n" + content)


def read_word_counts(folder: Path, language: str) -> Counter[str] | None:
    """What training has counted; None, and a warning with the reason, where it has not.

    That is so in folders of earlier versions, with too many different words, and if BLEU now counts the words of this
    language in another way (with ja-mecab, say, where the package was not installed).

    Raises:
        InputError: the file is damaged or of another version. What is read is bounded, whatever the file holds.
    """
    path = folder / TARGET_WORDS
    if not path.exists():
        logger.warning(
            "%s: an earlier version trained this run and did not count the words of its training data", folder
        )
        return None
    try:
        with path.open("rb") as file:
            seal, _, content = file.read(MOST_BYTES).partition(b"\n")
        if seal != _seal(content):
            raise InputError(f"{path}: damaged: its contents do not match its checksum")
        first, *lines = content.decode().removesuffix("\n").split("\n")
        about = json.loads(first)
        if about["format"] != FORMAT:
            raise InputError(f"{path}: format {about['format']}, but this version of the code reads format {FORMAT}")
        if about["words"] is None or about["tokenizer"] != bleu_tokenizer(language):
            reason = "they are too many" if about["words"] is None else "BLEU counted them in another way then"
            logger.warning("%s: the training data's words cannot be used: %s", path, reason)
            return None
        counted = (line.split("\t") for line in lines)
        counts = Counter({word: int(count) for count, word in counted})
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):  # forged: a checksum protects from accidents alone
        raise InputError(f"{path}: damaged or of another version") from None
    if not len(lines) == len(counts) == about["words"] or any(count < 1 for count in counts.values()):
        raise InputError(f"{path}: damaged or of another version")
    return counts


def _seal(content: bytes) -> bytes:
    return b"sha256 " + hashlib.sha256(content).hexdigest().encode()
