"""Constraints on the hypotheses of a source, and which of them a free search violates.

A search excludes tokens after the softmax, so that the scores of all other hypotheses stay as they are. A translator
searches freely first, and searches those sources again whose hypotheses violate a constraint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from operator import eq

import regex
import torch
from torch import Tensor

from mt.text.layer import TextLayer
from mt.text.placeholders import PLACEHOLDER
from mt.tokenizer.tokenizer import EOS, PAD

NUMERIC = regex.compile(r"\p{N}")
MAX_PERIOD = 12
"""The length of the longest sequence whose repetition is noticed, in tokens or words."""
USUAL_REPEATS = 2
"""How often in a row a translation may have any sequence of tokens. The source can allow more."""


@dataclass(frozen=True)
class WithoutTokens:
    """Excludes tokens, and the repetition of others."""

    excluded: Tensor
    """Tokens that must not occur."""
    once: Tensor
    """Tokens that may occur once."""

    def exclude(self, log_p: Tensor, tokens: Tensor) -> None:
        """Set the log-probabilities of excluded next tokens to -∞, in place. EOS remains possible.

        Args:
            log_p: (K, V), of the next token of each hypothesis.
            tokens: (K, t), the tokens of each hypothesis so far, without BOS.
        """
        log_p[:, self.excluded.to(log_p.device)] = -torch.inf
        used = tokens.masked_fill(~torch.isin(tokens, self.once.to(log_p.device)), PAD)
        log_p.scatter_(1, used, -torch.inf)


@dataclass(frozen=True)
class WithoutLoops:
    """Excludes sequences of up to MAX_PERIOD tokens that are repeated too often in a row."""

    max_repeats: int
    """How often in a row a sequence may occur."""

    def exclude(self, log_p: Tensor, tokens: Tensor) -> None:
        """Set the log-probabilities of excluded next tokens to -∞, in place, as ``WithoutTokens.exclude``."""
        for period in range(1, min(MAX_PERIOD, (tokens.shape[1] + 1) // (self.max_repeats + 1)) + 1):
            length = period * self.max_repeats - 1  # with the next token, so many equal the token one period before
            end = tokens.shape[1]
            recent, earlier = tokens[:, end - length :], tokens[:, end - length - period : end - period]
            loops = (recent == earlier).all(dim=1) & (tokens[:, -period] != EOS)
            log_p.scatter_(1, tokens[:, -period].masked_fill(~loops, PAD)[:, None], -torch.inf)


Constraint = WithoutTokens | WithoutLoops
"""A rule against some tokens in the hypotheses of one source. A search applies it before it chooses a token."""


class HypothesisChecker:
    """Finds the constraints that hypotheses violate. The translator of a model with a text layer holds it.

    - A number in digits needs a counterpart in the source (``mt.text.numbers``).
    - A placeholder must be in the source, and occurs once.
    - No sequence of tokens is repeated more than USUAL_REPEATS times in a row, or more often than one of the source.
    """

    def __init__(self, layer: TextLayer) -> None:
        tokenizer = layer.tokenizers.target
        self._layer = layer
        names = tokenizer.subwords(range(tokenizer.vocabulary_size))
        self._placeholders = {token: name for token, name in enumerate(names) if PLACEHOLDER.fullmatch(name)}
        # Bytes, which can spell any number, have digits in their names, too: <0x0A>.
        numeric = {token for token, name in enumerate(names) if NUMERIC.search(name)}
        self._to_check = numeric | self._placeholders.keys()

    def violated(self, source: list[int], hypothesis: list[int]) -> list[Constraint]:
        """Return the constraints on a source that a hypothesis violates. All are token ids without BOS and EOS."""
        constraints: list[Constraint] = []
        if not self._to_check.isdisjoint(hypothesis):
            tokenizers = self._layer.tokenizers
            text, translation = (
                tokenizer.decode([tokens])[0]
                for tokenizer, tokens in ((tokenizers.source, source), (tokenizers.target, hypothesis))
            )
            if any(phenomenon.forbids(text, translation) for phenomenon in self._layer.phenomena):
                once = {token for token, name in self._placeholders.items() if name in text}
                constraints.append(
                    WithoutTokens(*(torch.tensor(sorted(tokens)) for tokens in (self._to_check - once, once)))
                )
        # Of a sequence, each occurrence but one repeats a token at least.
        may_repeat = len(hypothesis) - len(set(hypothesis)) >= USUAL_REPEATS
        repeats = max_repeats(hypothesis) if may_repeat else 1
        if repeats > USUAL_REPEATS and repeats > (usual := max_repeats(source)):
            constraints.append(WithoutLoops(max(usual, USUAL_REPEATS)))
        return constraints


def max_repeats(tokens: Sequence[int] | Sequence[str]) -> int:
    """Return how often in a row a sequence of at most MAX_PERIOD tokens or words occurs: 3 for a b a b a b."""
    most = 1
    for period in range(1, min(MAX_PERIOD, len(tokens) // 2) + 1):
        are_equal = list(map(eq, tokens, tokens[period:]))
        streak = 0
        for is_equal in are_equal if sum(are_equal) >= most * period else ():
            streak = streak + 1 if is_equal else 0
            if streak == most * period:
                most += 1
    return most
