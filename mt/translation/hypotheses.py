"""Hypotheses, their scores, and the decoding steps that every search takes.

A score is log P(hypothesis, EOS included) / (number of tokens, EOS included)^α, whether a hypothesis was searched or
given. Shapes: B sentences, K rows (beams or draws) of each, N = B·K rows, V tokens.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mt.config import DecodingConfig
from mt.data.batching.batch import collate
from mt.distributed.workers import Workers
from mt.models.attention import AttentionMap, record_attention
from mt.models.seq2seq import Seq2Seq, TranslationModel, sentences_of
from mt.tokenizer.tokenizer import EOS, PAD
from mt.translation.batches import BatchRunner
from mt.translation.constraints import Constraint


@dataclass(frozen=True)
class Hypothesis:
    """A translation as tokens without BOS and EOS. Its log-probability and length include the EOS."""

    tokens: list[int]
    log_probability: float

    @property
    def length(self) -> int:
        return len(self.tokens) + 1

    def score(self, length_penalty: float) -> float:
        return self.log_probability / self.length**length_penalty


def collate_sources(sources: Sequence[list[int]]) -> Tensor:
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
def forced_log_probabilities(
    model: TranslationModel, sources: Sequence[list[int]], targets: Sequence[list[int]]
) -> list[float]:
    """Return log P(target | source), EOS included, of each sentence pair (forced decoding).

    Sources and targets are token ids without BOS and EOS.
    """
    pairs = collate(sources, targets).to(model.device)
    features = model.decode(model.encode(pairs.source), pairs.target_input)  # (B, T, D)
    log_p = model.log_probabilities(features).gather(-1, pairs.target_output.unsqueeze(-1)).squeeze(-1)  # (B, T)
    return (log_p * (pairs.target_output != PAD)).sum(dim=1).tolist()


def forced_scores(
    runner: BatchRunner,
    pairs: Sequence[tuple[list[int], list[int]]],
    length_penalty: float,
    workers: Workers | None = None,
) -> list[float]:
    """Return the score of the target of each pair of source and target, in batches. For ``workers`` see
    ``BatchRunner.run``."""

    def score_batch(batch: list[int]) -> list[float]:
        return forced_log_probabilities(runner.model, *zip(*(pairs[n] for n in batch), strict=True))

    totals = runner.run(score_batch, [max(map(len, pair)) + 1 for pair in pairs], workers=workers)
    hypotheses = map(Hypothesis, (target for _, target in pairs), totals)
    return [hypothesis.score(length_penalty) for hypothesis in hypotheses]


def forced_attention(
    model: Seq2Seq, sources: Sequence[list[int]], targets: Sequence[list[int]], last: str | None = None
) -> dict[str, AttentionMap]:
    """Run forced decoding with a model in evaluation mode, and return its attention maps by module name.

    Sources and targets are token ids without BOS and EOS. For ``last`` see ``record_attention``.
    """
    pairs = collate(sources, targets).to(model.device)
    with torch.inference_mode(), record_attention(model, last) as maps:
        model.decode(model.encode(pairs.source), pairs.target_input)
    return {name: recorded[0] for name, recorded in maps.items() if recorded}


class SearchState:
    """The decoding state of one batch during a search, with K rows (beams or draws) for each sentence, at first one."""

    def __init__(
        self,
        model: TranslationModel,
        sources: Sequence[list[int]],
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
        for token in self._model.never_written:
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
