"""Trains SentencePiece tokenizers on a corpus."""

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import sentencepiece
from pyarrow import compute

from mt.config import TokenizerConfig
from mt.core.columns import tables, texts
from mt.core.errors import InputError
from mt.core.language import has_many_characters, writes_spaces
from mt.core.randomness import generator
from mt.storage.vocabulary import BOS, EOS, PAD, UNK
from mt.tokenizer.extension import extended
from mt.tokenizer.tokenizer import Tokenizer, TokenizerPair

if TYPE_CHECKING:
    import datasets  # takes a second to import

MAX_TRAINING_SENTENCES = 1_000_000
"""Maximum number of sentences that a tokenizer is trained on. More hardly change a vocabulary, so that many of a larger
corpus are drawn."""
MAX_TRAINING_CHARACTERS = 100_000_000
"""Maximum number of characters of these sentences, both sides together."""
MAX_CHARACTERS_WITHOUT_SPACES = 10_000_000
"""The same if one of the languages has no spaces between words. To SentencePiece a sentence is one word then, and it
takes up to 100 bytes of memory for each character."""


def train_tokenizers(
    pairs: "datasets.Dataset",
    directions: Sequence[tuple[str, str]],
    config: TokenizerConfig,
    seed: int,
    placeholders: Sequence[str] = (),
    base: TokenizerPair | None = None,
) -> TokenizerPair:
    """Train one tokenizer on both sides of the training pairs, or one on each side, as ``config.joint`` says; or extend
    those of ``base`` in the same way.

    The target languages of several ``directions`` get tokens. ``seed`` determines the sample of a corpus with more than
    MAX_TRAINING_SENTENCES sentences or MAX_TRAINING_CHARACTERS characters. For the other arguments and errors see
    ``train_tokenizer``.
    """
    sources, targets = (list(dict.fromkeys(side)) for side in zip(*directions, strict=True))
    both, told = sources + targets, targets if len(directions) > 1 else ()
    max_characters = MAX_TRAINING_CHARACTERS if base or all(map(writes_spaces, both)) else MAX_CHARACTERS_WITHOUT_SPACES
    rows = _sample(pairs, MAX_TRAINING_SENTENCES // 2 if config.joint else MAX_TRAINING_SENTENCES, max_characters, seed)
    source, target = (texts(pairs, side, rows) for side in ("source", "target"))
    if config.joint:
        sentences = chain(source, target)
        if base:
            tokenizer = extended(base.source, sentences, config)
        else:
            tokenizer = train_tokenizer(sentences, both, config, placeholders, told)
        return TokenizerPair(tokenizer, tokenizer)
    if base:
        return TokenizerPair(extended(base.source, source, config), extended(base.target, target, config))
    return TokenizerPair(
        train_tokenizer(source, sources, config, placeholders, told),
        train_tokenizer(target, targets, config, placeholders),
    )


def train_tokenizer(
    sentences: Iterable[str],
    languages: Sequence[str],
    config: TokenizerConfig,
    placeholders: Sequence[str] = (),
    targets: Sequence[str] = (),
) -> Tokenizer:
    """Train a tokenizer on some text.

    Args:
        sentences: The training text, read once.
        languages: The codes of its languages. They decide the share of characters that get a subword of their own, and
            the normalisation, unless ``config`` does.
        config: Kind, size and normalisation.
        placeholders: The placeholders (see ``mt.text.placeholders``), which become subwords. If there are
            any, every digit is a subword of its own, so that a model can copy any number.
        targets: The target languages that get a token, which no text is cut into.

    Raises:
        InputError: The text has too little variety for the size of the vocabulary, or too many characters.
    """
    wide = any(map(has_many_characters, languages))
    model = io.BytesIO()
    failures: list[BaseException] = []
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_keeping_failures(sentences, failures),
            model_writer=model,
            model_type=config.kind,
            vocab_size=config.vocabulary_size,
            # Every character is a subword, so the size can only be an upper bound.
            hard_vocab_limit=config.kind != "char",
            character_coverage=config.character_coverage or (0.9995 if wide else 1.0),
            byte_fallback=True,
            user_defined_symbols=[*placeholders, *config.symbols],
            control_symbols=[f">>{language}<<" for language in targets],
            split_digits=bool(placeholders),
            normalization_rule_name=config.normalization or ("identity" if wide else "nmt_nfkc"),
            remove_extra_whitespaces=config.normalization != "identity",
            shuffle_input_sentence=False,
            # This limit is in bytes. SentencePiece skips longer sentences silently.
            max_sentence_length=2**30,
            pad_id=PAD,
            unk_id=UNK,
            bos_id=BOS,
            eos_id=EOS,
            minloglevel=2,
        )
    except RuntimeError as error:
        if failures:
            raise failures[0] from None
        raise InputError(_explanation(str(error), config.vocabulary_size)) from error
    return Tokenizer(model.getvalue())


def _sample(pairs: "datasets.Dataset", max_pairs: int, max_characters: int, seed: int) -> np.ndarray | None:
    """Return the rows of a sample of the pairs, ascending; None for all rows."""
    rows = None
    if len(pairs) > max_pairs:
        rows = np.sort(generator(seed, "tokenizer").choice(len(pairs), max_pairs, replace=False))
    lengths = [
        compute.add(*(compute.utf8_length(table[side]) for side in ("source", "target"))).to_numpy()
        for table in tables(pairs, ["source", "target"], rows)
    ]
    characters = np.concatenate(lengths).astype(np.int64)
    if characters.sum() <= max_characters:
        return rows
    order = generator(seed, "characters of the tokenizer").permutation(len(characters))
    count = max(1, int(np.searchsorted(np.cumsum(characters[order]), max_characters, side="right")))
    kept = np.sort(order[:count])
    return kept if rows is None else rows[kept]


def _keeping_failures(sentences: Iterable[str], failures: list[BaseException]) -> Iterator[str]:
    """Yield the sentences. Add the exception that stops them, such as an interruption or a full disk, to ``failures``,
    because SentencePiece turns it into a RuntimeError."""
    try:
        yield from sentences
    except GeneratorExit:
        raise
    except BaseException as error:
        failures.append(error)
        raise


def _explanation(message: str, size: int) -> str:
    """Return SentencePiece's error message in terms of our config."""
    if too_high := re.search(r"Vocabulary size too high .*<= (\d+)", message):
        return (
            f"tokenizer.vocabulary_size={size} is more than the training text supports: "
            f"it gives at most {too_high[1]} tokens; set tokenizer.vocabulary_size={too_high[1]} or less"
        )
    if too_low := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return (
            f"tokenizer.vocabulary_size={size} is too small for the characters of the training text: set "
            f"tokenizer.vocabulary_size={too_low[1]} or more, or lower tokenizer.character_coverage"
        )
    return (
        f"SentencePiece could not train a tokenizer on this text: {message}; check data.train, or change "
        "tokenizer.kind or tokenizer.vocabulary_size"
    )
