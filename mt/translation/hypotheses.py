"""Hypotheses, their scores and constraints, and the decoding steps that every search takes.

A score is log P(hypothesis, EOS included) / (number of tokens, EOS included)^α, whether a hypothesis was searched or
given. A search excludes tokens after the softmax, so that constraints leave the scores of all other hypotheses as they
are. A translator searches freely first, and searches those sources again whose hypotheses violate a constraint.

Shapes: B sentences, K rows (beams or draws) of each, N = B·K rows, V tokens.
"""

from collections.abc import Callable, Sequence
from operator import eq
from typing import NamedTuple

import regex
import torch
from torch import Tensor

from mt.config import DecodingConfig
from mt.data.batching.batch import collate
from mt.models.attention import AttentionMap, record_attention
from mt.models.seq2seq import Seq2Seq, TranslationModel, sentences_of
from mt.text.layer import TextLayer
from mt.text.placeholders import PLACEHOLDER
from mt.tokenizer.tokenizer import EOS, PAD

NUMERIC = regex.compile(r"\p{N}")
MAX_PERIOD = 12
"""The length of the longest sequence whose repetition is noticed, in tokens or words."""
USUAL_REPEATS = 2
"""How often in a row a translation may have any sequence of tokens. The source can allow more."""


class Hypothesis(NamedTuple):
    """A translation as tokens without BOS and EOS. Its log-probability and length include the EOS."""

    tokens: list[int]
    log_probability: float

    @property
    def length(self) -> int:
        return len(self.tokens) + 1

    def score(self, length_penalty: float) -> float:
        return self.log_probability / self.length**length_penalty


Hypotheses = list[list[Hypothesis]]
"""The hypotheses of each source, best first."""
TokenRows = Sequence[list[int]]
"""The token ids of sources or targets, without BOS and EOS."""


def collate_sources(sources: TokenRows) -> Tensor:
    """Return the token ids of sources as one tensor (B, S), with EOS, padded at the end."""
    return collate(sources, [[]] * len(sources)).source


def hypothesis_limits(model: TranslationModel, source: Tensor, config: DecodingConfig) -> Tensor:
    """Return the maximum number of tokens, without EOS, of a hypothesis of each source (B, S): (B,).

    A limit depends on its own source alone, so that the batch around a sentence never changes its translation.
    """
    tokens = (source != PAD).sum(dim=1) - 1  # without EOS
    limits = (tokens * config.max_length_ratio).long() + config.max_length_extra
    return limits if model.max_length is None else limits.clamp(max=model.max_length - 1)


@torch.inference_mode()
def forced_log_probabilities(model: TranslationModel, sources: TokenRows, targets: TokenRows) -> list[float]:
    """Return log P(target | source), EOS included, of each sentence pair (forced decoding).

    Sources and targets are token ids without BOS and EOS.
    """
    pairs = collate(sources, targets).to(model.device)
    features = model.decode(model.encode(pairs.source), pairs.target_input)  # (B, T, D)
    log_p = model.log_probabilities(features).gather(-1, pairs.target_output.unsqueeze(-1)).squeeze(-1)  # (B, T)
    return (log_p * (pairs.target_output != PAD)).sum(dim=1).tolist()


def forced_attention(
    model: Seq2Seq, sources: TokenRows, targets: TokenRows, last: str | None = None
) -> dict[str, AttentionMap]:
    """Run forced decoding with a model in evaluation mode, and return its attention maps by module name.

    Sources and targets are token ids without BOS and EOS. For ``last`` see ``record_attention``.
    """
    pairs = collate(sources, targets).to(model.device)
    with torch.inference_mode(), record_attention(model, last) as maps:
        model.decode(model.encode(pairs.source), pairs.target_input)
    return {name: recorded[0] for name, recorded in maps.items() if recorded}


class WithoutTokens(NamedTuple):
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


class WithoutLoops(NamedTuple):
    """Excludes sequences of up to MAX_PERIOD tokens that are repeated too often in a row."""

    max_repeats: int
    """How often in a row a sequence may occur."""

    def exclude(self, log_p: Tensor, tokens: Tensor) -> None:
        """Set the log-probabilities of excluded next tokens to -∞, in place, as ``WithoutTokens.exclude``."""
        # On a few tokens, Python is many times faster than operators on tensors.
        for row, written in enumerate(tokens.tolist()):
            for period in range(1, min(MAX_PERIOD, (len(written) + 1) // (self.max_repeats + 1)) + 1):
                start = len(written) + 1 - period * self.max_repeats
                # With the next token, all from here on equal the token one period before.
                if written[start:] == written[start - period : -period] and written[-period] != EOS:
                    log_p[row, written[-period]] = -torch.inf


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
            if any(phenomenon.rejects(text, translation) for phenomenon in self._layer.phenomena):
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


class SearchState:
    """The decoding state of one batch during a search, with K rows (beams or draws) for each sentence, at first one."""

    def __init__(
        self,
        model: TranslationModel,
        sources: TokenRows,
        config: DecodingConfig,
        before_step: Callable[[], None],
        constraints: Sequence[Sequence[Constraint]] = (),
    ) -> None:
        source = collate_sources(sources).to(model.device)
        self._model = model
        self._limits = hypothesis_limits(model, source, config)  # (B,)
        self._before_step = before_step
        self._constraints = list(constraints)  # of each unfinished sentence; empty if there are none at all
        self._state = model.start(model.encode(source))
        self._rows = 1  # K
        self._step = 0
        self._shortest_limit = int(self._limits.min())
        self.device = source.device
        self.batch_size = len(source)
        self.max_steps = int(self._limits.max()) + 1

    def advance(self, tokens: Tensor) -> Tensor:
        """Return the log-probabilities (N, V) of the next tokens, given all earlier ones (N, t), BOS first.

        Tokens that are never written, or that a constraint excludes, get -∞. At its length limit a row can only end,
        so that its hypothesis is as complete as any other.
        """
        self._before_step()
        features, self._state = self._model.advance(tokens[:, -1], self._state)
        log_p = self._model.log_probabilities(features)
        for token in self._model.suppressed_tokens:
            log_p[:, token] = -torch.inf
        for index, constraints in enumerate(self._constraints):
            rows = slice(index * self._rows, (index + 1) * self._rows)
            for constraint in constraints:
                constraint.exclude(log_p[rows], tokens[rows, 1:])
        if self._step >= self._shortest_limit:
            at_limit = (self._limits == self._step).repeat_interleave(self._rows)
            end = log_p[:, EOS].clone()
            log_p.masked_fill_(at_limit[:, None], -torch.inf)
            log_p[:, EOS] = end
        self._step += 1
        return log_p

    def select(self, rows: Tensor) -> None:
        """Keep the rows with the indices ``rows`` (B', K'), which may repeat and drop rows; see ``State.select``."""
        sentences = sentences_of(rows, self._rows, len(self._limits))
        if sentences is not None:
            self._limits = self._limits[sentences]
            self._constraints = self._constraints and [self._constraints[index] for index in sentences.tolist()]
        self._state = self._state.select(rows)
        self._rows = rows.shape[1]
