"""Prepares the data: reads the corpus, trains or loads the tokenizer, and cuts the corpus into pieces."""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import datasets
import numpy as np

from mt.config import MAX_PIECES, RulesConfig, TextDescription, TrainConfig, TransformerConfig
from mt.core.columns import numbers, release_memory, tables
from mt.core.device import return_freed_memory
from mt.core.errors import InputError
from mt.core.language import writes_spaces
from mt.data.cleaning.findings import log_findings
from mt.data.cleaning.record import Dropped, dropped_pairs, read_dropped, without_dropped
from mt.data.cleaning.stage import find_faulty
from mt.data.corpus import Corpus, evenly_spaced, load_corpus
from mt.data.encoding import drop_long, encode_pairs
from mt.distributed.workers import Workers
from mt.storage.folders import read_description
from mt.storage.run_folder import read_scored
from mt.text.final_punctuation import learn_marks
from mt.text.layer import TextLayer, fewest_times
from mt.text.sentences import usual_most
from mt.text.slots import all_slots
from mt.text.spelling import Spelling, count_words
from mt.text.tokenizer import TokenizerPair
from mt.training.advice import advice_on_scripts, advice_on_vocabulary
from mt.training.replay import with_replay
from mt.translation.trained_model import read_spelling, read_tokenizers

logger = logging.getLogger(__name__)

LINES_COUNTED = 20_000
"""Of the training text, to learn how many sentences a line has."""
LINES_WITH_WORDS = 2_000_000
"""Of the training text, to learn its words."""
LENGTH_QUANTILES = {"long_source": 0.999, "usual_source": 0.95}
"""The shares of the training sources that have at most these lengths (docs/lab-notebook.md, "Long sentences")."""


@dataclass(frozen=True)
class PreparedData:
    """A corpus, the text layer with its tokenizers, and the pieces that they cut the corpus into."""

    corpus: Corpus
    layer: TextLayer
    train: datasets.Dataset
    valid: datasets.Dataset
    """Like ``train``, encoded and without the pairs that have more than data.max_length pieces. Validation translates
    those all the same, but computes no loss on them."""
    dropped: Dropped
    """The training pairs that cleaning drops."""

    @property
    def tokenizers(self) -> TokenizerPair:
        return self.layer.tokenizers


def read_corpus(config: TrainConfig, tokenizer_from: Path | None, workers: Workers) -> tuple[Corpus, Dropped]:
    """Reads the corpus and leaves out what cleaning drops.

    Args:
        config: What to read.
        tokenizer_from: The folder that the tokenizer comes from; that of the run itself if it goes on.
        workers: All of them have to call this. The leader does the work, and the others find what it left in the cache.

    Returns:
        The corpus without the training pairs that cleaning drops, and these.

    Raises:
        InputError: The corpus cannot be used as ``config`` says.
    """
    with workers.leader_first():
        corpus = load_corpus(config.data, tell=workers.is_leader)
    dropped = workers.from_leader(lambda: _dropped(config, corpus, resumes=tokenizer_from == config.folder))
    corpus = without_dropped(corpus, dropped, config.data)
    with workers.leader_first():
        corpus = with_replay(corpus, config).without_keys()
    for report in corpus.report:
        for line in (report, *report.file_lines()):
            logger.info("%s", line)
    # Warns before the tokenizer is trained, because that may fail for this very reason.
    for doubt in advice_on_scripts(config.data, corpus.train):
        logger.warning("%s", doubt)
    return corpus, dropped


def prepare(
    config: TrainConfig, corpus: Corpus, dropped: Dropped, tokenizer_from: Path | None, workers: Workers
) -> PreparedData:
    """Cuts the corpus into pieces.

    Args:
        config: How to cut it.
        corpus: What ``read_corpus`` returned, with the dropped pairs.
        dropped: See there.
        tokenizer_from: The folder that the tokenizer comes from; None to train one on the training pairs.
        workers: All of them have to call this. The leader does the work, and the others find what it left in the cache.

    Raises:
        InputError: The corpus cannot be used as ``config`` says.
    """
    release_memory()
    tokenizers = workers.from_leader(lambda: _tokenizers(config, corpus, tokenizer_from))
    return_freed_memory()  # training a tokenizer takes a gigabyte
    if config.training.init_from and tokenizer_from != config.folder and workers.is_leader:
        for doubt in advice_on_vocabulary(tokenizers, corpus.valid, _texts_of(Path(config.training.init_from))):
            logger.warning("%s", doubt)
    origin = tokenizer_from if tokenizer_from == config.folder or config.training.init_from else None
    rules, counts = workers.from_leader(lambda: _learnt(config, corpus, tokenizers, origin))
    languages = config.data.source_language, config.data.target_language
    spelling = Spelling(counts, languages[0], rules.fewest_times) if counts and rules.fewest_times else None
    layer = TextLayer(rules, tokenizers, *languages, spelling)
    with workers.leader_first():
        return _encode(config, corpus, layer, dropped, read_description(origin).text if origin else None)


def _dropped(config: TrainConfig, corpus: Corpus, resumes: bool) -> Dropped:
    """Returns the training pairs that cleaning drops. A run that goes on keeps to what it has recorded."""
    if not config.data.cleaning_rules:
        return {}
    if resumes:
        return read_dropped(config.folder)
    findings = find_faulty(corpus, config.data)
    log_findings(findings, corpus, config.data)
    return dropped_pairs(findings, corpus)


def _tokenizers(config: TrainConfig, corpus: Corpus, origin: Path | None) -> TokenizerPair:
    if origin is not None:
        tokenizers = read_tokenizers(origin)
        logger.info("tokenizer from %s: %d pieces", origin, tokenizers.target.vocabulary_size)
        _refuse_without_a_start(config, tokenizers, origin)
        return tokenizers
    logger.info("training the tokenizer (%s, %d pieces)", config.tokenizer.kind, config.tokenizer.vocabulary_size)
    languages = config.data.source_language, config.data.target_language
    slots = all_slots(config.text.slots) if config.text.enabled else ()
    return TokenizerPair.train(corpus.train, *languages, config.tokenizer, config.seed, slots)


def _texts_of(origin: Path) -> dict[str, list[str]] | None:
    """Returns both sides of the test set of the run in a folder; None if there is none, as in a model alone."""
    try:
        lines = read_scored(origin)
    except InputError:
        return None
    return {"source": lines["source"], "target": lines["reference"]}


def _refuse_without_a_start(config: TrainConfig, tokenizers: TokenizerPair, origin: Path) -> None:
    """Raises InputError if the decoder is to start with BOS and the tokenizer of a MarianMT model has no such piece."""
    vocabulary = tokenizers.target.vocabulary
    has_none = vocabulary is not None and vocabulary.start == vocabulary.pad
    if has_none and not (isinstance(config.model, TransformerConfig) and config.model.decoder_start == "pad"):
        raise InputError(
            f"tokenizer.reuse={origin}: this tokenizer of a MarianMT model has no piece to start with; it needs a "
            "Transformer with model.decoder_start=pad"
        )


def _learnt(
    config: TrainConfig, corpus: Corpus, tokenizers: TokenizerPair, origin: Path | None
) -> tuple[TextDescription, dict[str, int] | None]:
    """Returns the rules of a run's text layer, with what the corpus tells of them, and the words that an unknown one
    can be taken for: how often the training sources have each. They are None if typing errors are not corrected.

    Args:
        config: The run's config.
        corpus: Its corpus.
        tokenizers: Its tokenizers.
        origin: The folder of the run that is resumed or that the weights come from, whose words the model knows, too.
    """
    language = config.data.source_language
    rules = TextDescription(**{name: getattr(config.text, name) for name in RulesConfig.model_fields})
    if not rules.enabled:
        return rules, None
    some = evenly_spaced(corpus.train, LINES_COUNTED)
    rules = rules.model_copy(update={"most_sentences": usual_most(_sources(some), language)})
    if not writes_spaces(language):
        return rules, None
    sides = (part.to_pydict() for part in tables(some, ["source", "target"]))
    pairs = (pair for side in sides for pair in zip(side["source"], side["target"], strict=True))
    rules = rules.model_copy(update={"final_marks": learn_marks(pairs, language)})
    known = read_spelling(origin) if origin else None
    if known and origin == config.folder:
        return rules.model_copy(update={"fewest_times": known.fewest}), known.counts
    counts = count_words(_sources(evenly_spaced(corpus.train, LINES_WITH_WORDS)), language)
    if known:
        counts = known.counts_with(counts)
    if not counts:  # there are only numbers, for instance
        return rules, None
    layer = TextLayer(rules, tokenizers, language, config.data.target_language, Spelling(counts, language))
    return rules.model_copy(update={"fewest_times": fewest_times(layer, _sources(corpus.valid))}), counts


def _sources(pairs: datasets.Dataset) -> Iterator[str]:
    """Yields the sources of pairs, which are read from the disk in batches."""
    for table in tables(pairs, ["source"]):
        yield from table["source"].to_pylist()


def _encode(
    config: TrainConfig, corpus: Corpus, layer: TextLayer, dropped: Dropped, base: TextDescription | None
) -> PreparedData:
    """Encode the corpus, and record the lengths of its sources in the text layer's rules.

    Args:
        config: The run's config.
        corpus: Its corpus.
        layer: Its text layer.
        dropped: The training pairs that cleaning drops.
        base: The text layer of the run that is resumed or fine-tuned.
    """
    train, too_long = drop_long(encode_pairs(corpus.train, layer), config.data.max_length)
    valid, too_long_to_validate = drop_long(encode_pairs(corpus.valid, layer), config.data.max_length)
    if too_long:
        logger.info(
            "train: %s pairs dropped: more than data.max_length=%d pieces",
            f"{too_long:,}",
            config.data.max_length,
        )
    if too_long_to_validate:
        logger.info("valid: %d pairs are too long for the loss; they are still translated", too_long_to_validate)
    if len(train) == 0:
        raise InputError(f"no training pair has at most data.max_length={config.data.max_length} pieces")
    if len(valid) == 0:
        raise InputError(f"no validation pair has at most data.max_length={config.data.max_length} pieces")
    lengths = numbers(train, "source_length")
    rules = layer.rules.model_copy(
        update={
            name: min(MAX_PIECES, max(_quantile(lengths, share), getattr(base, name) if base else 1))
            for name, share in LENGTH_QUANTILES.items()
        }
    )
    return PreparedData(corpus, layer.with_rules(rules), train, valid, dropped)


def _quantile(lengths: np.ndarray, share: float) -> int:
    return int(np.quantile(lengths, share, method="inverted_cdf"))
