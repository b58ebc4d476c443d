"""Word counts of a run's training targets.

Training writes them into the run folder, and comparisons group words and sentences by them. Without this file they
would have to open the training data at whatever paths the config of a run names, and the run may be somebody else's.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mt.core.errors import InputError, damaged_file
from mt.core.files import write_atomically
from mt.metrics.bleu import bleu_tokenizer, words

logger = logging.getLogger(__name__)

TARGET_WORDS = "target_words.txt"
MAX_WORDS = 2_000_000
"""Different words, which bounds the memory for counting to less than half a GB."""
MAX_BYTES = 64 * 2**20
"""Size of the file. A larger one from elsewhere is refused and never read beyond this."""
MAX_PARTS = 250_000
"""Different parts of text that are collected before they are tokenized."""


def count_words(sentences: Iterable[str], language: str) -> Counter[str] | None:
    """Count the words of the sentences as BLEU does; None if there are more than MAX_WORDS different ones.

    sacreBLEU's tokenizer 13a considers no more than the next character and treats whitespace as a boundary. So each
    different whitespace-separated part is tokenized once, rather than at each of its occurrences, which takes a sixth
    of the time. The other tokenizers need whole sentences.
    """
    counts: Counter[str] = Counter()
    for parts in _parts(sentences, str.split if bleu_tokenizer(language) == "13a" else lambda line: [line]):
        _add(counts, parts, language)
        if len(counts) > MAX_WORDS:
            return None
    return counts


def _parts(sentences: Iterable[str], cut: Callable[[str], list[str]]) -> Iterator[Counter[str]]:
    """Yield the parts that sentences are cut into, each with its count, in bounded portions."""
    parts: Counter[str] = Counter()
    for sentence in sentences:
        parts.update(cut(sentence))
        if len(parts) > MAX_PARTS:
            yield parts
            parts = Counter()
    yield parts


def _add(counts: Counter[str], parts: Counter[str], language: str) -> None:
    """Tokenize the parts and add their words to ``counts``, each as often as its part occurred."""
    for tokens, count in zip(words(parts, language), parts.values(), strict=True):
        for word in tokens:
            counts[word] += count


def write_word_counts(folder: Path, sentences: Iterable[str], language: str) -> None:
    """Count the words of the training targets and write them into the run folder.

    The file has a line with the SHA-256 of all that follows, a line of JSON, and a line for each word with its count,
    the most frequent first. With more than MAX_WORDS words or MAX_BYTES, it contains no words at all, because counts
    without the rare words could not be distinguished from those of a text that has no other words.
    """
    counts = count_words(sentences, language)
    ordered = sorted((counts or {}).items(), key=lambda item: (-item[1], item[0]))
    body = "".join(f"{count}\t{word}\n" for word, count in ordered).encode()
    if counts is None or len(body) > MAX_BYTES - 1000:
        counts, body = None, b""
    header = {"tokenizer": bleu_tokenizer(language), "words": None if counts is None else len(counts)}
    content = json.dumps(header).encode() + b"\n" + body
    write_atomically(folder / TARGET_WORDS, _seal(content) + b"\n" + content)


def read_word_counts(folder: Path, language: str) -> Counter[str] | None:
    """Read the word counts from a run folder.

    Return None, with a warning that names the reason, if there are too many different words, or if BLEU now counts the
    words of this language in another way (for example with ja-mecab, which was not installed when the run was trained).
    At most MAX_BYTES are read.

    Raises:
        InputError: The file cannot be read or is damaged.
    """
    path = folder / TARGET_WORDS
    try:
        with path.open("rb") as file:
            seal, _, content = file.read(MAX_BYTES).partition(b"\n")
        if seal != _seal(content):
            raise InputError(f"{path}: damaged: its contents do not match its checksum")
        first, *lines = content.decode().removesuffix("\n").split("\n")
        header = json.loads(first)
        if header["words"] is None or header["tokenizer"] != bleu_tokenizer(language):
            reason = "they are too many" if header["words"] is None else "BLEU counted them in another way then"
            logger.warning("%s: the training data's words cannot be used: %s", path, reason)
            return None
        pairs = (line.split("\t") for line in lines)
        counts = Counter({word: int(count) for count, word in pairs})
        if not len(lines) == len(counts) == header["words"] or any(count < 1 for count in counts.values()):
            raise ValueError
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):  # forged: the checksum protects only from accidents
        raise damaged_file(path) from None
    return counts


def _seal(content: bytes) -> bytes:
    """Return the first line of the file: the SHA-256 of the content that follows it."""
    return b"sha256 " + hashlib.sha256(content).hexdigest().encode()
