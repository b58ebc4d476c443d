"""Adds symbols and learned pieces to a tokenizer. Its own pieces keep their ids.

The pieces are the most frequent words that the old tokenizer cuts. A BPE model needs their beginnings, too, because it
merges their tokens from left to right. Words that do not begin like a new piece are cut as before.
"""

from collections import Counter
from collections.abc import Iterable, Sequence

import regex

from mt.config import TokenizerConfig
from mt.core.direction import Direction
from mt.core.errors import InputError
from mt.storage.vocabulary import CONTROL, PIECE_TYPE, USER_DEFINED, is_unigram, with_pieces
from mt.tokenizer.tokenizer import Tokenizer, TokenizerPair

WORD = regex.compile(r"[\p{L}\p{M}]+")
UNIGRAM_BONUS = 0.1
"""How much more likely a piece of a unigram model is than its parts together, for each of them, as a logarithm."""


def with_languages(tokenizers: TokenizerPair, directions: Sequence[Direction]) -> TokenizerPair:
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


def extended(tokenizer: Tokenizer, texts: Iterable[str], config: TokenizerConfig) -> Tokenizer:
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
    pieces = learn_pieces(grown, texts, config.extend)
    if len(pieces) < config.extend:
        raise InputError(
            f"tokenizer.extend={config.extend} is more than the training text supports: it has {len(pieces)} frequent "
            f"words or beginnings of words that are cut; set tokenizer.extend={len(pieces)} or less"
        )
    return Tokenizer(with_pieces(grown.model, pieces))


def learn_pieces(tokenizer: Tokenizer, texts: Iterable[str], count: int) -> dict[str, float]:
    """Return up to ``count`` new pieces with their scores, the most frequent first. Symbols are no words."""
    words = Counter(word for text in texts for word in WORD.findall(tokenizer.hide_symbols(text)))
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
                # Merges of BPE come after all old ones. Of a unigram model, the likelier segmentation is taken.
                likelihood = sum(scores[part] for part in parts[:end]) + UNIGRAM_BONUS * end
                scores[text] = pieces[text] = likelihood if is_sum else lowest - len(pieces) - 1
    return pieces
