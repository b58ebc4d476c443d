"""Prepares the data of a run: reads the corpus, trains or loads the tokenizer, and encodes the pairs.

The text layer learns word counts, usual lengths and final punctuation from the training data.

Pairs are encoded once for each corpus and tokenizer. Later runs read the token ids from the cache.
"""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow
from datasets import Dataset
from pyarrow.compute import count_substring_regex
from pyarrow.compute import sum as sum_of

from mt.config import Terms, TextLayerConfig, TrainConfig, TransformerConfig, data_directions
from mt.core.columns import numbers, release_memory, tables, texts
from mt.core.device import return_freed_memory
from mt.core.errors import InputError
from mt.core.language import Direction
from mt.data.cache import cached_table, concatenate, digest, select_rows
from mt.data.cleaning.findings import Dropped, dropped_ids, log_findings, read_dropped, remove_dropped
from mt.data.cleaning.stage import find_faulty_pairs, warn_of_shifted_lines
from mt.data.corpus import Corpus, evenly_spaced_pairs, load_corpus
from mt.data.pairs import SUBWORDS, add_subwords
from mt.data.parallel import parallel_map
from mt.distributed.workers import Workers
from mt.storage.folders import read_description
from mt.storage.model_description import TextLayerDescription
from mt.storage.model_folder import terms_checksum
from mt.text.characters import DOTS, ELLIPSIS, find_rare_characters
from mt.text.layer import TextLayer, learn_from_text
from mt.text.placeholders import all_placeholders
from mt.text.sentences import length_limits
from mt.text.spelling import Spelling, learn_spelling
from mt.tokenizer.tokenizer import Tokenizer, TokenizerPair
from mt.tokenizer.training import add_language_tokens, train_tokenizers
from mt.training.hints import log_hints, no_letters_hint, script_hints, vocabulary_hints
from mt.translation.trained_model import read_spelling, read_tokenizers

logger = logging.getLogger(__name__)

SENTENCE_LINES = 20_000
"""Number of training sources in which sentences are counted."""
WORD_LINES = 2_000_000
"""Number of training sources in which words are counted."""
ENCODING_VERSION = 8
"""A part of every cache key. Raise it when a code change gives other tokens for the same text."""


def learn_text_settings(
    config: TrainConfig, corpus: Corpus, origin: Path | None
) -> tuple[dict[str, object], Spelling | None]:
    """Learn fields of TextLayerDescription from the training data, and the word counts for correcting typing errors.

    Args:
        config: The config of the run.
        corpus: The corpus of the run.
        origin: The folder of the resumed run or of the base run, whose word counts are included; None for a new run.

    Returns:
        The learned fields by name; and the word counts, or None if typing errors are not corrected.
    """
    languages = config.data.direction
    if not config.text.enabled:
        return {}, None
    lines = evenly_spaced_pairs(corpus.train, SENTENCE_LINES)
    learned = learn_from_text(lambda: zip(texts(lines, "source"), texts(lines, "target"), strict=True), languages[0])
    spelling = read_spelling(origin, languages) if origin else None
    if not spelling or origin != config.folder:
        lines = evenly_spaced_pairs(corpus.train, WORD_LINES)
        spelling = learn_spelling(texts(lines, "source"), texts(lines, "target"), *languages, spelling)
    return learned | ({"min_word_count": spelling.min_count} if spelling else {}), spelling


def learn_from_tokens(
    train: Dataset, tokenizer: Tokenizer, base: TextLayerDescription | None, is_enabled: bool
) -> dict[str, object]:
    """Learn fields of TextLayerDescription from the encoded training pairs.

    Args:
        train: The encoded training pairs.
        tokenizer: The tokenizer of the sources.
        base: The text layer of the base run; None if there is none.
        is_enabled: Whether the text layer is on. Without it, only the lengths of sources are learned.
    """
    learned = length_limits(numbers(train, "source_length"), base)
    if not is_enabled:
        return learned
    times = np.zeros(tokenizer.vocabulary_size, dtype=np.int64)
    ellipses = 0
    for table in tables(train, ["source", "source_ids"]):
        tokens = table["source_ids"].combine_chunks().flatten().to_numpy()
        times += np.bincount(tokens, minlength=len(times))
        ellipses += sum_of(count_substring_regex(table["source"], rf"{DOTS}|{ELLIPSIS}")).as_py()
    counts: Counter[str] = Counter()
    for subword, count in zip(tokenizer.subwords(range(len(times))), times.tolist(), strict=True):
        if tokenizer.has_subword(subword):
            for character in subword.lower():
                counts[character] += count
    counts[ELLIPSIS] = ellipses
    return learned | {"rare_characters": find_rare_characters(counts, len(train), base)}


@dataclass(frozen=True)
class PreparedData:
    """The data of one run, in text and encoded. The trainer holds it."""

    corpus: Corpus
    """The training, validation and test pairs as text, after cleaning."""
    layers: dict[Direction, TextLayer]
    """The text layer of each direction, with its tokenizers."""
    train: Dataset
    """The encoded training pairs with at most data.max_length tokens, grouped by direction."""
    sizes: list[int]
    """The number of these pairs in each direction."""
    valid: dict[str, Dataset]
    """The encoded pairs of each validation set by its prefix, for the loss: only those with at most data.max_length
    tokens. Longer validation pairs in ``corpus`` are translated, too."""
    dropped: Dropped
    """The ids of the training pairs that cleaning filtered, by rule."""

    @property
    def layer(self) -> TextLayer:
        """The text layer of the first direction."""
        return next(iter(self.layers.values()))

    @property
    def tokenizers(self) -> TokenizerPair:
        return self.layer.tokenizers

    @property
    def has_language_tokens(self) -> bool:
        return self.tokenizers.source.language is not None


def read_corpus(config: TrainConfig, tokenizer_from: Path | None, workers: Workers) -> tuple[Corpus, Dropped]:
    """Read and clean the corpus, and log the numbers of pairs.

    Args:
        config: The config of the run.
        tokenizer_from: The folder of the tokenizer, which is the run folder if the run is resumed.
        workers: All of them have to call this. The main process does the work, and the others read the cache.

    Returns:
        The cleaned corpus, and the ids of the filtered training pairs by rule.

    Raises:
        InputError: The corpus cannot be read or used with these settings.
    """
    with workers.main_first():
        corpus = load_corpus(config.data, warn=workers.is_main)
    dropped = workers.run_on_main(lambda: _find_dropped(config, corpus, resumes=tokenizer_from == config.folder))
    corpus = remove_dropped(corpus, dropped, config.data).drop_key_columns()
    # Before the tokenizer is trained, because a wrong script may make that fail.
    for direction, part in corpus.split_by_direction().items():
        if part is not corpus:
            logger.info("%s:", direction)
        for report in part.report:
            for line in (report, *report.file_lines()):
                logger.info("%s", line)
        log_hints(*script_hints(config.data.towards(direction), part.train))
        if config.text.enabled:
            log_hints(no_letters_hint(part.train))
    return corpus, dropped


def prepare(
    config: TrainConfig, corpus: Corpus, dropped: Dropped, terms: Terms, tokenizer_from: Path | None, workers: Workers
) -> PreparedData:
    """Train or load the tokenizer, build the text layer, and encode the training and validation pairs.

    The text layer also learns settings from the training data (see ``learn_text_settings``).

    Args:
        config: The config of the run.
        corpus: The corpus that ``read_corpus`` returned.
        dropped: The ids of the filtered pairs that ``read_corpus`` returned, for the result.
        terms: The glossary.
        tokenizer_from: The folder of the tokenizer; None to train one on the training pairs.
        workers: All of them have to call this. The main process does the work, and the others read the cache.

    Raises:
        InputError: The corpus cannot be used with these settings.
    """
    release_memory()
    tokenizers = workers.run_on_main(lambda: _load_or_train_tokenizers(config, corpus, tokenizer_from))
    return_freed_memory()  # training a tokenizer takes a gigabyte of memory
    init_from = config.training.init_from
    has_base = init_from or config.training.continue_from
    if init_from and tokenizer_from != config.folder and workers.is_main:
        log_hints(*vocabulary_hints(tokenizers, corpus.valid))
    origin = tokenizer_from if tokenizer_from == config.folder or has_base else None
    layers: dict[Direction, TextLayer] = {}
    train: list[Dataset] = []
    valid: dict[str, Dataset] = {}
    for direction, part in corpus.split_by_direction().items():
        own = config.model_copy(update={"data": config.data.towards(direction)})
        layers[direction], encoded, sets = _prepare_direction(own, part, tokenizers, terms, origin, workers)
        train.append(encoded)
        valid |= sets
    return PreparedData(corpus, layers, concatenate(train), list(map(len, train)), valid, dropped)


def _prepare_direction(
    config: TrainConfig,
    corpus: Corpus,
    tokenizers: TokenizerPair,
    terms: Terms,
    origin: Path | None,
    workers: Workers,
) -> tuple[TextLayer, Dataset, dict[str, Dataset]]:
    """Build the text layer of a direction, and encode its training pairs and validation sets.

    Args:
        config: The config of the run, with the languages of the direction.
        corpus: The pairs of the direction.
        tokenizers: The tokenizers of the run.
        terms: The glossary.
        origin: See ``learn_text_settings``.
        workers: All of them have to call this.
    """
    settings = {name: getattr(config.text, name) for name in TextLayerConfig.model_fields}
    learned, spelling = workers.run_on_main(lambda: learn_text_settings(config, corpus, origin))
    tokenizers = tokenizers.towards(config.data.target_language)

    def text_layer() -> TextLayer:
        rules = TextLayerDescription(**settings | learned | {"terms": terms_checksum(terms)})
        return TextLayer(rules, tokenizers, *config.data.direction, spelling, terms)

    layer = text_layer()
    with workers.main_first():
        train = _encode(config, "train", corpus.train, layer)
        valid = {prefix: _encode(config, "valid", pairs, layer) for prefix, pairs in corpus.validation_sets().items()}
        base = None
        if origin:
            description = read_description(origin)
            closest = description.closest(config.data.direction)
            base = closest and description.layers[closest]
        if base and origin == config.folder and base.terms != layer.config.terms:
            raise InputError(
                f"text.terms={config.text.terms} has changed since {config.folder} was begun; restore the file, or "
                "start a new run under another name (name=…)"
            )
        learned |= learn_from_tokens(train, tokenizers.source, base, config.text.enabled)
        if base and origin == config.folder:
            learned["rare_characters"] = base.rare_characters
    return text_layer(), train, valid


def _find_dropped(config: TrainConfig, corpus: Corpus, resumes: bool) -> Dropped:
    """Return the ids of the training pairs that cleaning filters, by rule. A resumed run reads them from its folder."""
    if resumes:
        return read_dropped(config.folder) if config.data.cleaning_rules else {}
    dropped: dict[str, list[np.ndarray]] = {}
    for direction, part in corpus.split_by_direction().items():
        data = config.data.towards(direction)
        warn_of_shifted_lines(part)
        if data.cleaning_rules:
            findings = find_faulty_pairs(part, data, config.tokenizer.symbols)
            log_findings(findings, part, data)
            for rule, ids in dropped_ids(findings, part).items():
                dropped.setdefault(rule, []).append(ids)
    return {rule: np.concatenate(ids) for rule, ids in dropped.items()}


def _load_or_train_tokenizers(config: TrainConfig, corpus: Corpus, origin: Path | None) -> TokenizerPair:
    """Read the tokenizers of the folder ``origin``; if it is None, train them on the training pairs."""
    directions = data_directions(config.data)
    if origin is not None:
        tokenizers = add_language_tokens(read_tokenizers(origin), directions)
        settings = config.tokenizer
        vocabulary = tokenizers.target.vocabulary
        has_no_bos = vocabulary is not None and vocabulary.start == vocabulary.pad
        if has_no_bos and not (isinstance(config.model, TransformerConfig) and config.model.decoder_start == "pad"):
            raise InputError(
                f"tokenizer.reuse={origin}: this tokenizer of a MarianMT model has no BOS token; choose a "
                "Transformer and set model.decoder_start=pad"
            )
        is_continued = origin == config.folder or config.training.continue_from
        if not is_continued and (settings.extend or settings.symbols):
            tokenizers = train_tokenizers(corpus.train, directions, settings, config.seed, base=tokenizers)
        logger.info("tokenizer from %s: %d tokens", origin, tokenizers.target.vocabulary_size)
        return tokenizers
    logger.info("training the tokenizer (%s, %d tokens)", config.tokenizer.kind, config.tokenizer.vocabulary_size)
    placeholders = all_placeholders(config.text.slots) if config.text.enabled else ()
    return train_tokenizers(corpus.train, directions, config.tokenizer, config.seed, placeholders)


def _encode(config: TrainConfig, split: str, pairs: Dataset, layer: TextLayer) -> Dataset:
    """Encode the pairs of a split ("train" or "valid"), and skip those with more than data.max_length tokens.

    Raises:
        InputError: No pair is short enough.
    """
    max_length = config.data.max_length
    encoded = drop_long_pairs(encode_pairs(pairs, layer), max_length)
    too_long = len(pairs) - len(encoded)
    if not len(encoded):
        raise InputError(
            f"{split}: no pair has at most data.max_length={max_length} tokens; set a larger data.max_length"
        )
    if too_long and split == "train":
        logger.info("train: %s pairs skipped: more than data.max_length=%d tokens", f"{too_long:,}", max_length)
    elif too_long:
        logger.info("valid: %d pairs are too long for the loss; they are still translated", too_long)
    return encoded


def encode_pairs(pairs: Dataset, layer: TextLayer) -> Dataset:
    """Encode pairs: add the columns SUBWORDS to them.

    These are ``source_ids`` and ``target_ids``, the token ids without BOS and EOS (lists of int32), and their lengths
    ``source_length`` and ``target_length``. The cache key of the result depends on the pairs, the tokenizers, and the
    settings and word counts of the text layer.
    """
    tokenizers = layer.tokenizers
    languages = (
        f"{layer.source_language} {layer.target_language}{layer.config.tags or tokenizers.source.language or ''}"
    )
    rules = layer.config.model_dump_json(include=set(TextLayerConfig.model_fields))
    models = tokenizers.source.model, tokenizers.target.model
    words = sorted(layer.spelling.counts.items()) if layer.spelling else ()  # they determine the casing of the sources
    key = digest((ENCODING_VERSION, pairs._fingerprint, models, languages, rules, words))
    schema = pyarrow.schema([*pairs.data.schema, *SUBWORDS])

    def batches() -> Iterable[pyarrow.RecordBatch]:
        parts = (table.combine_chunks().to_batches()[0] for table in tables(pairs, pairs.data.column_names))
        return parallel_map(partial(add_subwords, layer=layer), parts)

    return cached_table(key, schema, batches, "splitting sentences into subwords", len(pairs))


def drop_long_pairs(pairs: Dataset, max_length: int) -> Dataset:
    """Return the encoded pairs without those with more than ``max_length`` tokens on a side."""
    is_short = np.maximum(numbers(pairs, "source_length"), numbers(pairs, "target_length")) <= max_length
    if is_short.all():
        return pairs
    return select_rows(pairs, ("drop_long", max_length), lambda: np.flatnonzero(is_short))
