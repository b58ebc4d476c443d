"""Hypotheses, their scores and constraints, and the decoding steps that every search takes.

A score is log P(hypothesis, EOS included) / (number of tokens, EOS included)^α, both of a hypothesis that a search
finds and of a given translation. A search excludes tokens after the softmax. So a constraint does not change the scores
of the hypotheses that satisfy it. A translator first searches without constraints. If the best hypothesis of a source
violates some, the source is searched again under them.

Shapes: B sentences, K hypotheses (beams or draws) of each, N = B·K hypotheses, V tokens.
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
"""The length of the longest sequence whose repetition is detected, in tokens or words."""
DEFAULT_MAX_REPEATS = 2
"""How often in a row a sequence of tokens may occur in a translation, unless the source repeats one more often."""


class Hypothesis(NamedTuple):
    """The tokens of a translation, without BOS and EOS. The log-probability and the length include EOS."""

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
    """Return the maximum number of tokens (B,), without EOS, of the hypotheses of each source (B, S).

    The limit of a source does not depend on the other sources, so the batch does not change translations.
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


class TokenConstraint(NamedTuple):
    """Excludes some tokens, and the repetition of others."""

    excluded: Tensor
    """Ids of tokens that must not occur."""
    unrepeatable: Tensor
    """Ids of tokens that may occur at most once."""

    def exclude(self, log_p: Tensor, tokens: Tensor) -> None:
        """Set the log-probabilities of excluded next tokens to -∞, in place. EOS remains possible.

        Args:
            log_p: (K, V), of the next token of each hypothesis.
            tokens: (K, t), the tokens of each hypothesis so far, without BOS.
        """
        log_p[:, self.excluded.to(log_p.device)] = -torch.inf
        used = tokens.masked_fill(~torch.isin(tokens, self.unrepeatable.to(log_p.device)), PAD)
        log_p.scatter_(1, used, -torch.inf)


class LoopConstraint(NamedTuple):
    """Excludes the repetition of a sequence of up to MAX_PERIOD tokens more than ``max_repeats`` times in a row."""

    max_repeats: int
    """How often in a row a sequence may occur."""

    def exclude(self, log_p: Tensor, tokens: Tensor) -> None:
        """Set the log-probabilities of excluded next tokens to -∞, in place; see ``TokenConstraint.exclude``."""
        # On a few tokens, Python is many times faster than operators on tensors.
        for row, prefix in enumerate(tokens.tolist()):
            for period in range(1, min(MAX_PERIOD, (len(prefix) + 1) // (self.max_repeats + 1)) + 1):
                start = len(prefix) + 1 - period * self.max_repeats
                # A next token equal to that of one period before would complete a repetition too many.
                if prefix[start:] == prefix[start - period : -period] and prefix[-period] != EOS:
                    log_p[row, prefix[-period]] = -torch.inf


Constraint = TokenConstraint | LoopConstraint
"""A rule that excludes tokens from the hypotheses of one source, applied at each step of a search."""


class HypothesisChecker:
    """Finds the constraints that hypotheses violate. The translator of a model with a text layer holds it.

    - A number in digits must have a counterpart in the source (``mt.text.numbers``).
    - A placeholder must be in the source, and must occur at most once.
    - A sequence of tokens may occur at most DEFAULT_MAX_REPEATS times in a row, or as often as one of the source does.
    """

    def __init__(self, layer: TextLayer) -> None:
        tokenizer = layer.tokenizers.target
        self._layer = layer
        names = tokenizer.all_subwords()
        self._placeholders = {token: name for token, name in enumerate(names) if PLACEHOLDER.fullmatch(name)}
        # These include all bytes, which can spell any number, because their names have digits: <0x0A>.
        numeric = {token for token, name in enumerate(names) if NUMERIC.search(name)}
        self._checked_tokens = numeric | self._placeholders.keys()

    def violated_constraints(self, source: list[int], hypothesis: list[int]) -> list[Constraint]:
        """Return the constraints that a hypothesis of a source violates. Both are token ids without BOS and EOS."""
        constraints: list[Constraint] = []
        if not self._checked_tokens.isdisjoint(hypothesis):
            tokenizers = self._layer.tokenizers
            (text,), (translation,) = tokenizers.source.decode([source]), tokenizers.target.decode([hypothesis])
            if any(phenomenon.rejects(text, translation) for phenomenon in self._layer.phenomena):
                placeholders = {token for token, name in self._placeholders.items() if name in text}
                excluded = sorted(self._checked_tokens - placeholders)
                constraints.append(TokenConstraint(torch.tensor(excluded), torch.tensor(sorted(placeholders))))
        # Each occurrence of a sequence after the first repeats at least one token, so few repeated tokens mean no loop.
        may_loop = len(hypothesis) - len(set(hypothesis)) >= DEFAULT_MAX_REPEATS
        repeats = max_repeats(hypothesis) if may_loop else 1
        if repeats > DEFAULT_MAX_REPEATS and repeats > (source_repeats := max_repeats(source)):
            constraints.append(LoopConstraint(max(source_repeats, DEFAULT_MAX_REPEATS)))
        return constraints


def max_repeats(tokens: Sequence[int] | Sequence[str]) -> int:
    """Return the maximum number of times in a row that a sequence of up to MAX_PERIOD tokens or words occurs.

    For a b a b a b, this is 3.
    """
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
    """The state of a search in one batch: K hypotheses (beams or draws) of each unfinished sentence, at first one."""

    def __init__(
        self,
        model: TranslationModel,
        sources: TokenRows,
        config: DecodingConfig,
        before_step: Callable[[], None],
        constraints: Sequence[Sequence[Constraint]] = (),
    ) -> None:
        """
        Args:
            model: The model, in evaluation mode.
            sources: The token ids of the sources, without EOS.
            config: The decoding settings.
            before_step: Called before each decoding step.
            constraints: The constraints on the hypotheses of each source; empty: there are none.
        """
        source = collate_sources(sources).to(model.device)
        self._model = model
        self._limits = hypothesis_limits(model, source, config)  # (B,)
        self._before_step = before_step
        self._constraints = list(constraints)  # of each unfinished sentence; empty if no sentence has any
        self._state = model.init_state(model.encode(source))
        self._hypotheses_per_sentence = 1  # K
        self._step = 0
        self._shortest_limit = int(self._limits.min())
        self.device = source.device
        self.batch_size = len(source)
        self.max_steps = int(self._limits.max()) + 1

    def decode_step(self, tokens: Tensor) -> Tensor:
        """Return the log-probabilities (N, V) of the next tokens, given all earlier ones (N, t), BOS first.

        Suppressed tokens and those that a constraint excludes get -∞. At the length limit, all tokens except EOS do, so
        that every hypothesis ends with EOS.
        """
        self._before_step()
        features, self._state = self._model.decode_step(tokens[:, -1], self._state)
        log_p = self._model.log_probabilities(features)
        for token in self._model.suppressed_tokens:
            log_p[:, token] = -torch.inf
        for index, constraints in enumerate(self._constraints):
            count = self._hypotheses_per_sentence
            hypotheses = slice(index * count, (index + 1) * count)
            for constraint in constraints:
                constraint.exclude(log_p[hypotheses], tokens[hypotheses, 1:])
        if self._step >= self._shortest_limit:
            at_limit = (self._limits == self._step).repeat_interleave(self._hypotheses_per_sentence)
            end = log_p[:, EOS].clone()
            log_p.masked_fill_(at_limit[:, None], -torch.inf)
            log_p[:, EOS] = end
        self._step += 1
        return log_p

    def select(self, hypothesis_ids: Tensor) -> None:
        """Keep the hypotheses with the given indices (B', K'), which may repeat and omit some; see ``State.select``."""
        sentences = sentences_of(hypothesis_ids, self._hypotheses_per_sentence, len(self._limits))
        if sentences is not None:
            self._limits = self._limits[sentences]
            self._constraints = self._constraints and [self._constraints[index] for index in sentences.tolist()]
        self._state = self._state.select(hypothesis_ids)
        self._hypotheses_per_sentence = hypothesis_ids.shape[1]
