"""Word counts of a run's training targets, which training writes into the run folder.

Comparisons group words and sentences by them. Without this file they would have to open the training data at whatever
paths the config of a run names, and the run may be somebody else's.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from mt.core.errors import InputError
from mt.core.files import write_atomically
from mt.metrics.scoring import bleu_tokenizer, words

logger = logging.getLogger(__name__)

TARGET_WORDS = "target_words.txt"
FORMAT = 1
"""The format of the file."""
MOST_WORDS = 2_000_000
"""Maximum number of different words, which bounds the memory for counting to less than half a GB."""
MOST_BYTES = 64 * 2**20
"""Maximum size of the file. A larger one from elsewhere is refused and never read beyond this."""
MOST_PARTS = 250_000
"""Maximum number of different whitespace-separated parts of text that are collected before they are tokenized."""


def count_words(sentences: Iterable[str], language: str) -> Counter[str] | None:
    """Counts the words of the sentences as BLEU does; None if there are more than MOST_WORDS different ones.

    sacreBLEU's tokenizer 13a looks no further than the next character and treats whitespace as a boundary. So each
    different whitespace-separated part is tokenized once, rather than at each of its occurrences, which takes a sixth
    of the time. The other tokenizers look further and get whole sentences.
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
    """Tokenizes the parts and adds their words to ``found``, each as often as its part occurred."""
    for cut, count in zip(words(parts, language), parts.values(), strict=True):
        for word in cut:
            found[word] += count


def write_word_counts(folder: Path, sentences: Iterable[str], language: str) -> None:
    """Counts the words of the training targets and writes them into the run folder.

    The file has a line with the SHA-256 of all that follows, a line of JSON, and a line for each word with its count,
    the most frequent first. If there are more than MOST_WORDS words or the file would exceed MOST_BYTES, it contains no
    words at all and says so. Counts without the rare words could not be distinguished from those of a text that has no
    other words.
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
    """Reads the word counts from a run folder.

    Returns None, with a warning that names the reason, if there are none that can be used: with too many different
    words, and if BLEU now counts the words of this language in another way (for example with ja-mecab, which was not
    installed when the run was trained). At most MOST_BYTES are read, whatever the file contains.

    Raises:
        InputError: The file cannot be read, is damaged or is of another version.
    """
    path = folder / TARGET_WORDS
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
    except (ValueError, KeyError, TypeError, RecursionError):  # forged: the checksum protects only from accidents
        raise InputError(f"{path}: damaged or of another version") from None
    if not len(lines) == len(counts) == about["words"] or any(count < 1 for count in counts.values()):
        raise InputError(f"{path}: damaged or of another version")
    return counts


def _seal(content: bytes) -> bytes:
    """Returns the first line of the file: the SHA-256 of the content that follows it."""
    return b"sha256 " + hashlib.sha256(content).hexdigest().encode()
