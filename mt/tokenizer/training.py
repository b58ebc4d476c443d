"""Trains SentencePiece tokenizers on a corpus, and adds symbols and learned tokens to those of a base model.

The added tokens are the most frequent words that the old tokenizer splits. A BPE model needs their prefixes, too,
because it merges tokens from left to right. Words without such a prefix are split as before. Old tokens keep their ids.
"""

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import regex
import sentencepiece
from pyarrow import compute

from mt.config import TokenizerConfig
from mt.core.columns import tables, texts
from mt.core.errors import InputError
from mt.core.language import Direction, has_many_characters, writes_spaces
from mt.core.randomness import generator
from mt.storage.vocabulary import BOS, CONTROL, EOS, PAD, PIECE_TYPE, UNK, USER_DEFINED, is_unigram, with_pieces
from mt.tokenizer.tokenizer import Tokenizer, TokenizerPair

if TYPE_CHECKING:
    import datasets  # takes a second to import

MAX_TRAINING_SENTENCES = 1_000_000
"""Maximum number of training sentences of a tokenizer, a random sample of the corpus. More hardly change a
vocabulary."""
MAX_TRAINING_CHARACTERS = 100_000_000
"""Maximum number of characters of these sentences, both sides together."""
MAX_CHARACTERS_WITHOUT_SPACES = 10_000_000
"""The same if one of the languages has no spaces between words. Then, a sentence is one word for SentencePiece, which
takes up to 100 bytes of memory per character."""

WORD = regex.compile(r"[\p{L}\p{M}]+")
UNIGRAM_BONUS = 0.1
"""The log probability of a new token of a unigram model is that of its parts plus this bonus for each part."""


def train_tokenizers(
    pairs: "datasets.Dataset",
    directions: Sequence[tuple[str, str]],
    config: TokenizerConfig,
    seed: int,
    placeholders: Sequence[str] = (),
    base: TokenizerPair | None = None,
) -> TokenizerPair:
    """Train one tokenizer on both sides of the training pairs if ``config.joint`` is true, else one on each side; or
    extend those of ``base`` in the same way.

    If there are several ``directions``, each target language gets a token. ``seed`` determines the sample of a corpus
    with more than MAX_TRAINING_SENTENCES sentences or MAX_TRAINING_CHARACTERS characters. For the other arguments and
    errors see ``train_tokenizer``.
    """
    sources, targets = (list(dict.fromkeys(side)) for side in zip(*directions, strict=True))
    both, with_token = sources + targets, targets if len(directions) > 1 else ()
    max_characters = MAX_TRAINING_CHARACTERS if base or all(map(writes_spaces, both)) else MAX_CHARACTERS_WITHOUT_SPACES
    rows = _sample_rows(
        pairs, MAX_TRAINING_SENTENCES // 2 if config.joint else MAX_TRAINING_SENTENCES, max_characters, seed
    )
    source, target = (texts(pairs, side, rows) for side in ("source", "target"))
    if config.joint:
        sentences = chain(source, target)
        if base:
            tokenizer = extend_tokenizer(base.source, sentences, config)
        else:
            tokenizer = train_tokenizer(sentences, both, config, placeholders, with_token)
        return TokenizerPair(tokenizer, tokenizer)
    if base:
        return TokenizerPair(
            extend_tokenizer(base.source, source, config), extend_tokenizer(base.target, target, config)
        )
    return TokenizerPair(
        train_tokenizer(source, sources, config, placeholders, with_token),
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
            the normalization, unless ``config`` does.
        config: Kind, size and normalization.
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
            sentence_iterator=_record_failures(sentences, failures),
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
        raise InputError(_explain_error(str(error), config.vocabulary_size)) from error
    return Tokenizer(model.getvalue())


def _sample_rows(pairs: "datasets.Dataset", max_pairs: int, max_characters: int, seed: int) -> np.ndarray | None:
    """Return the ascending row indices of a sample of the pairs; None for all rows."""
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


def _record_failures(sentences: Iterable[str], failures: list[BaseException]) -> Iterator[str]:
    """Yield the sentences, and append an exception that they raise, such as an interruption or a full disk, to
    ``failures``. SentencePiece turns it into a RuntimeError."""
    try:
        yield from sentences
    except GeneratorExit:
        raise
    except BaseException as error:
        failures.append(error)
        raise


def _explain_error(message: str, size: int) -> str:
    """Return an error message of SentencePiece in terms of our settings."""
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


def add_language_tokens(tokenizers: TokenizerPair, directions: Sequence[Direction]) -> TokenizerPair:
    """Return the tokenizers of a base model with tokens for all target languages of a run of several directions.

    Raises:
        InputError: A MarianMT model lacks one of the tokens.
    """
    source = tokenizers.source
    missing = {f">>{code}<<": 0.0 for _, code in directions if not source.towards(code).language}
    if len(directions) == 1 or not missing:
        return tokenizers
    if source.vocabulary:
        raise InputError(
            f"the vocabulary of this MarianMT model has no {', '.join(missing)}, and cannot grow: leave out corpora "
            "with this target language, or fine-tune another model"
        )
    grown = Tokenizer(with_pieces(source.model, missing, bytes([PIECE_TYPE << 3, CONTROL])))
    return TokenizerPair(grown, grown if tokenizers.is_shared else tokenizers.target)


def extend_tokenizer(tokenizer: Tokenizer, sentences: Iterable[str], config: TokenizerConfig) -> Tokenizer:
    """Return a tokenizer with the symbols of ``config`` that it lacks, and ``config.extend`` pieces of training texts.

    Raises:
        InputError: The tokenizer cannot be extended, or the texts have too few words that it cuts.
    """
    if tokenizer.vocabulary:
        raise InputError("a tokenizer of a MarianMT model cannot grow; leave tokenizer.extend and symbols out")
    symbols = [symbol for symbol in config.symbols if symbol not in tokenizer.symbols]
    if taken := list(filter(tokenizer.has_subword, symbols)):
        raise InputError(f"tokenizer.symbols: {taken[0]!r} is a token of the base tokenizer; choose another symbol")
    grown = Tokenizer(with_pieces(tokenizer.model, dict.fromkeys(symbols, 0.0), USER_DEFINED))
    pieces = learn_pieces(grown, sentences, config.extend)
    if len(pieces) < config.extend:
        raise InputError(
            f"tokenizer.extend={config.extend} is more than the training text supports: it has {len(pieces)} frequent "
            f"words or beginnings of words that are cut; set tokenizer.extend={len(pieces)} or less"
        )
    return Tokenizer(with_pieces(grown.model, pieces))


def learn_pieces(tokenizer: Tokenizer, sentences: Iterable[str], count: int) -> dict[str, float]:
    """Return up to ``count`` new tokens with their scores, the most frequent first. User-defined symbols are
    skipped."""
    words = Counter(word for text in sentences for word in WORD.findall(tokenizer.hide_symbols(text)))
    scores = dict(tokenizer.scores)
    pieces: dict[str, float] = {}
    lowest, is_sum = min(scores.values()), is_unigram(tokenizer.model)
    for word, times in words.most_common():
        if times == 1 or len(pieces) == count:
            break
        parts = tokenizer.subwords(tokenizer.encode([word])[0])
        for end in range(2, len(parts) + 1):
            text = "".join(parts[:end])
            if len(pieces) < count and text not in scores and WORD.fullmatch(text.lstrip("▁")):
                # BPE makes the new merges after all old ones. A unigram model chooses the likeliest segmentation.
                likelihood = sum(scores[part] for part in parts[:end]) + UNIGRAM_BONUS * end
                scores[text] = pieces[text] = likelihood if is_sum else lowest - len(pieces) - 1
    return pieces
