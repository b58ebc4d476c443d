"""Word counts of a run's training targets, in the file target_words.txt.

Training writes the file into the run folder, and comparisons group words by their frequency. Without the file,
comparisons would have to open the training data at the paths in the config of a run, which may be somebody else's.
"""

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mt.core.errors import RESTORE_OR_RETRAIN, InputError, damaged_file
from mt.core.files import write_atomically
from mt.metrics.sacrebleu import bleu_tokenizer, bleu_words

logger = logging.getLogger(__name__)

TARGET_WORDS = "target_words.txt"
MAX_COUNTED_WORDS = 2_000_000
"""Maximum number of different words, which limits the memory for counting to less than half a GB."""
MAX_FILE_BYTES = 64 * 2**20
"""Maximum size of the file. Of a larger file from elsewhere, only this much is read, which then fails its checksum."""
MAX_PARTS = 250_000
"""Number of different parts of text that are collected before they are tokenized."""


def count_words(sentences: Iterable[str], language: str) -> Counter[str] | None:
    """Count words, tokenized as BLEU does. Return word → count, or None for more than MAX_COUNTED_WORDS different
    words.

    sacreBLEU's tokenizer 13a never looks across whitespace. So for languages with this tokenizer, sentences are cut at
    whitespace and each different part is tokenized once, which takes a sixth of the time. Other tokenizers need whole
    sentences.
    """
    counts: Counter[str] = Counter()
    for parts in _parts(sentences, str.split if bleu_tokenizer(language) == "13a" else lambda line: [line]):
        for tokens, count in zip(bleu_words(parts, language), parts.values(), strict=True):
            for word in tokens:
                counts[word] += count
        if len(counts) > MAX_COUNTED_WORDS:
            return None
    return counts


def _parts(sentences: Iterable[str], split: Callable[[str], list[str]]) -> Iterator[Counter[str]]:
    """Split sentences into parts and count them. Yield part → count, in portions of about MAX_PARTS different parts."""
    parts: Counter[str] = Counter()
    for sentence in sentences:
        parts.update(split(sentence))
        if len(parts) > MAX_PARTS:
            yield parts
            parts = Counter()
    yield parts


def write_word_counts(folder: Path, sentences: Iterable[str], language: str) -> None:
    """Count the words of the training targets and write target_words.txt into the run folder.

    The file has a line with the SHA-256 of the rest, a line of JSON (tokenizer and number of words), and a line "count,
    tab, word" for each word, the most frequent first. If there are more than MAX_COUNTED_WORDS words or MAX_FILE_BYTES,
    it has no words at all, because without rare words it would look like the counts of a smaller vocabulary.
    """
    counts = count_words(sentences, language)
    ordered = sorted((counts or {}).items(), key=lambda item: (-item[1], item[0]))
    body = "".join(f"{count}\t{word}\n" for word, count in ordered).encode()
    if counts is None or len(body) > MAX_FILE_BYTES - 1000:
        counts, body = None, b""
    header = {"tokenizer": bleu_tokenizer(language), "words": None if counts is None else len(counts)}
    content = json.dumps(header).encode() + b"\n" + body
    write_atomically(folder / TARGET_WORDS, _seal(content) + b"\n" + content)


def read_word_counts(folder: Path, language: str) -> Counter[str] | None:
    """Read target_words.txt of a run folder.

    Returns:
        Word → count. None, with a warning, if the training targets had too many different words, or if BLEU now uses
        another tokenizer for this language, for example because ja-mecab was not installed when the run was trained.

    Raises:
        InputError: The file cannot be read or is damaged.
    """
    path = folder / TARGET_WORDS
    try:
        with path.open("rb") as file:
            seal, _, content = file.read(MAX_FILE_BYTES).partition(b"\n")
        if seal != _seal(content):
            raise damaged_file(path, "does not match its checksum")
        first, *lines = content.decode().removesuffix("\n").split("\n")
        header = json.loads(first)
        if header["words"] is None or header["tokenizer"] != bleu_tokenizer(language):
            reason = (
                f"training counts at most {MAX_COUNTED_WORDS:,} different words, and the training targets have more; "
                "only a run with fewer words has these scores"
                if header["words"] is None
                else f"they were made with BLEU's tokenizer {header['tokenizer']}, and now it is "
                f"{bleu_tokenizer(language)}; to count anew, delete results.json and start the training command again"
            )
            logger.warning("%s: no scores by word frequency, because these counts cannot be used: %s", path, reason)
            return None
        pairs = (line.split("\t") for line in lines)
        counts = Counter({word: int(count) for count, word in pairs})
        if not len(lines) == len(counts) == header["words"] or any(count < 1 for count in counts.values()):
            raise ValueError
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}; {RESTORE_OR_RETRAIN}") from None
    except (ValueError, KeyError, TypeError, RecursionError):  # forged: the checksum protects only from accidents
        raise damaged_file(path, "not a list of words with their counts") from None
    return counts


def _seal(content: bytes) -> bytes:
    """Return the first line of the file: the SHA-256 of the content that follows it."""
    return b"sha256 " + hashlib.sha256(content).hexdigest().encode()
