"""The data of a run: the corpus is read, a tokenizer trained or loaded, and the pairs are encoded."""

import logging
from dataclasses import dataclass
from pathlib import Path

import datasets

from mt.config import TrainConfig, TransformerConfig
from mt.config.text import Terms
from mt.core.columns import release_memory
from mt.core.device import return_freed_memory
from mt.core.errors import InputError
from mt.data.cleaning.findings import log_findings
from mt.data.cleaning.record import Dropped, dropped_pairs, read_dropped, without_dropped
from mt.data.cleaning.stage import find_faulty
from mt.data.corpus import Corpus, load_corpus
from mt.data.encoding import drop_long, encode_pairs
from mt.distributed.workers import Workers
from mt.storage.folders import read_description
from mt.text.layer import TextLayer
from mt.text.placeholders.placeholders import all_placeholders
from mt.text.subwords.tokenizer import TokenizerPair
from mt.text.subwords.training import train_tokenizers
from mt.training.advice import advice_on_letters, advice_on_scripts, advice_on_vocabulary, log_advice
from mt.training.learned_text import learn_text_settings, length_limits, rare_characters, text_layer
from mt.translation.trained_model import read_tokenizers

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PreparedData:
    """The data of one run, in text and encoded. The trainer holds it."""

    corpus: Corpus
    """The training, validation and test pairs as text, after cleaning."""
    layer: TextLayer
    """The text layer, which holds the tokenizers."""
    train: datasets.Dataset
    """The encoded training pairs, without those of more than data.max_length tokens."""
    valid: datasets.Dataset
    """The encoded validation pairs, without those of more than data.max_length tokens, which have no loss. All
    validation pairs of ``corpus`` can be translated."""
    dropped: Dropped
    """The training pairs that cleaning dropped, as ids by rule."""

    @property
    def tokenizers(self) -> TokenizerPair:
        return self.layer.tokenizers


def read_corpus(config: TrainConfig, tokenizer_from: Path | None, workers: Workers) -> tuple[Corpus, Dropped]:
    """Read and clean the corpus. Log the counts of pairs.

    Args:
        config: The config of the run.
        tokenizer_from: The folder of the tokenizer, which is the run folder if the run is resumed.
        workers: All of them have to call this. The leader does the work, and the others find it in the cache.

    Returns:
        The corpus without the training pairs that cleaning dropped, and the ids of the dropped pairs by rule.

    Raises:
        InputError: The corpus cannot be read or used with these settings.
    """
    with workers.leader_first():
        corpus = load_corpus(config.data, tell=workers.is_leader)
    dropped = workers.run_on_leader(lambda: _dropped(config, corpus, resumes=tokenizer_from == config.folder))
    corpus = without_dropped(corpus, dropped, config.data).without_keys()
    for report in corpus.report:
        for line in (report, *report.file_lines()):
            logger.info("%s", line)
    # Before the tokenizer is trained, because a wrong script may make that fail.
    log_advice(*advice_on_scripts(config.data, corpus.train))
    if config.text.enabled:
        log_advice(advice_on_letters(corpus.train))
    return corpus, dropped


def prepare(
    config: TrainConfig, corpus: Corpus, dropped: Dropped, terms: Terms, tokenizer_from: Path | None, workers: Workers
) -> PreparedData:
    """Train or load the tokenizer, build the text layer, and encode the training and validation pairs.

    The settings of the text layer that come from the training text are learned here, too (see ``learn_text_settings``).

    Args:
        config: The config of the run.
        corpus: The corpus that ``read_corpus`` returned.
        dropped: The dropped pairs that ``read_corpus`` returned. They become a field of the result.
        terms: The glossary.
        tokenizer_from: The folder of the tokenizer; None to train one on the training pairs.
        workers: All of them have to call this. The leader does the work, and the others find it in the cache.

    Raises:
        InputError: The corpus cannot be used with these settings.
    """
    release_memory()
    tokenizers = workers.run_on_leader(lambda: _tokenizers(config, corpus, tokenizer_from))
    return_freed_memory()  # training a tokenizer takes a gigabyte of memory
    init_from = config.training.init_from
    if init_from and tokenizer_from != config.folder and workers.is_leader:
        log_advice(*advice_on_vocabulary(tokenizers, corpus.valid))
    origin = tokenizer_from if tokenizer_from == config.folder or init_from else None
    learned, spelling = workers.run_on_leader(lambda: learn_text_settings(config, corpus, origin))
    layer = text_layer(config, tokenizers, learned, spelling, terms)
    with workers.leader_first():
        train, valid = (_encode(config, split, getattr(corpus, split), layer) for split in ("train", "valid"))
        base = read_description(origin).text if origin else None
        if base and origin == config.folder and base.terms != layer.config.terms:
            raise InputError(
                f"text.terms={config.text.terms} has changed since {config.folder} was begun; restore the file, or "
                "start a new run under another name (name=…)"
            )
        learned |= length_limits(train, base)
        if config.text.enabled:
            resumed = base if origin == config.folder else None
            learned["rare_characters"] = (
                resumed.rare_characters if resumed else rare_characters(train, tokenizers.source, base)
            )
    return PreparedData(corpus, text_layer(config, tokenizers, learned, spelling, terms), train, valid, dropped)


def _dropped(config: TrainConfig, corpus: Corpus, resumes: bool) -> Dropped:
    """Return the ids of the training pairs that cleaning drops, by rule. A resumed run reads the record in its
    folder."""
    if not config.data.cleaning_rules:
        return {}
    if resumes:
        return read_dropped(config.folder)
    findings = find_faulty(corpus, config.data)
    log_findings(findings, corpus, config.data)
    return dropped_pairs(findings, corpus)


def _tokenizers(config: TrainConfig, corpus: Corpus, origin: Path | None) -> TokenizerPair:
    """Read the tokenizers of the folder ``origin``; if it is None, train them on the training pairs."""
    if origin is not None:
        tokenizers = read_tokenizers(origin)
        logger.info("tokenizer from %s: %d tokens", origin, tokenizers.target.vocabulary_size)
        _refuse_without_start_token(config, tokenizers, origin)
        return tokenizers
    logger.info("training the tokenizer (%s, %d tokens)", config.tokenizer.kind, config.tokenizer.vocabulary_size)
    languages = config.data.source_language, config.data.target_language
    placeholders = all_placeholders(config.text.slots) if config.text.enabled else ()
    return train_tokenizers(corpus.train, languages, config.tokenizer, config.seed, placeholders)


def _refuse_without_start_token(config: TrainConfig, tokenizers: TokenizerPair, origin: Path) -> None:
    """Raise InputError if the decoder starts with BOS and the tokenizer, that of a MarianMT model, has no such
    token."""
    vocabulary = tokenizers.target.vocabulary
    has_none = vocabulary is not None and vocabulary.start == vocabulary.pad
    if has_none and not (isinstance(config.model, TransformerConfig) and config.model.decoder_start == "pad"):
        raise InputError(
            f"tokenizer.reuse={origin}: this tokenizer of a MarianMT model has no BOS token; take a Transformer and "
            "set model.decoder_start=pad"
        )


def _encode(config: TrainConfig, split: str, pairs: datasets.Dataset, layer: TextLayer) -> datasets.Dataset:
    """Encode the pairs of a split ("train" or "valid"), and leave out those of more than data.max_length tokens.

    Raises:
        InputError: No pair is short enough.
    """
    max_length = config.data.max_length
    encoded, too_long = drop_long(encode_pairs(pairs, layer), max_length)
    if not len(encoded):
        raise InputError(
            f"{split}: no pair has at most data.max_length={max_length} tokens; set a larger data.max_length"
        )
    if too_long and split == "train":
        logger.info("train: %s pairs dropped: more than data.max_length=%d tokens", f"{too_long:,}", max_length)
    elif too_long:
        logger.info("valid: %d pairs are too long for the loss; they are still translated", too_long)
    return encoded
