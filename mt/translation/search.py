"""Greedy search, beam search, sampling, and the scoring of a given translation, for every model.

All of them define a score in the same way: log P(hypothesis, end included) / (number of pieces, end included)^α.
Shapes: B sentences, K beams, N = B·K rows, V pieces.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mt.config import DecodingConfig
from mt.core.errors import RunError
from mt.core.randomness import generator
from mt.models.seq2seq import TranslationModel
from mt.text.tokenizer import BOS, EOS, PAD

BLOCK = 64
"""Elements per block in ``largest``, which starts with the largest element of each block."""


@dataclass(frozen=True)
class Hypothesis:
    """A translation, as pieces without BOS and EOS. Its log-probability and its length include the EOS."""

    pieces: list[int]
    log_probability: float

    @property
    def length(self) -> int:
        return len(self.pieces) + 1

    def score(self, length_penalty: float) -> float:
        return self.log_probability / self.length**length_penalty


def longest_hypotheses(model: TranslationModel, source: Tensor, config: DecodingConfig) -> Tensor:
    """Returns the most pieces, EOS not counted, that a hypothesis of each source (B, S) may have: (B,).

    A limit depends on its own source alone, so that the batch around a sentence never changes its translation.
    """
    pieces = (source != PAD).sum(dim=1) - 1  # without EOS
    limits = (pieces * config.max_length_ratio).long() + config.max_length_extra
    return limits if model.max_length is None else limits.clamp(max=model.max_length - 1)


@torch.inference_mode()
def search(
    model: TranslationModel,
    source: Tensor,
    config: DecodingConfig,
    sampling_keys: Sequence[tuple[int, ...]],
    before_step: Callable[[], None] = lambda: None,
) -> list[list[Hypothesis]]:
    """Translates source (B, S). The model must be in evaluation mode.

    Args:
        sampling_keys: One key for each sentence, (B). The same key draws the same random numbers in any batch.
        before_step: Called before each decoding step. It may do other work, such as another search.

    Returns:
        For each sentence, its n_best translations, best first, or as many as there are.

    Raises:
        RunError: The model's scores are not finite.
    """
    limits = longest_hypotheses(model, source, config)
    if config.method == "sample":
        found = _draw(model, source, limits, config, sampling_keys, before_step)
    elif config.beam_size == 1:
        found = _greedy(model, source, limits, before_step)
    else:
        found = _beam(model, source, limits, config, before_step)
    if not all(hypotheses and math.isfinite(hypotheses[0].log_probability) for hypotheses in found):
        raise RunError("the model's scores are not finite: try precision=fp32, or bf16 instead of fp16")
    for hypotheses in found:
        hypotheses.sort(key=lambda hypothesis: -hypothesis.score(config.length_penalty))
    return [hypotheses[: config.n_best] for hypotheses in found]


@torch.inference_mode()
def forced_log_probabilities(
    model: TranslationModel, source: Tensor, target_input: Tensor, target_output: Tensor
) -> Tensor:
    """Returns log P(target | source), the end included, of given translations: (B,).

    Args:
        source: (B, S).
        target_input: (B, T), what the decoder reads: BOS and the pieces.
        target_output: (B, T), what it is to predict: the pieces and EOS.
    """
    features = model.decode(model.encode(source), target_input)  # (B, T, D)
    log_p = model.log_probabilities(features).gather(-1, target_output.unsqueeze(-1)).squeeze(-1)  # (B, T)
    return (log_p * (target_output != PAD)).sum(dim=1)


def _next_log_p(model: TranslationModel, features: Any, at_limit: Tensor | None) -> Tensor:
    """Returns the log-probabilities (N, V) of the next pieces, given features (N, D). Pieces never written get -∞.

    Args:
        at_limit: Which rows have reached their length limit, (N,); None if none has. Such a row can only end, so that
            its hypothesis is as complete as any other.
    """
    log_p = model.log_probabilities(features)
    for piece in model.never_written:
        log_p[:, piece] = -torch.inf
    if at_limit is not None:
        end = log_p[:, EOS].clone()
        log_p.masked_fill_(at_limit[:, None], -torch.inf)
        log_p[:, EOS] = end
    return log_p


def largest(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Returns the ``count`` largest elements of each row of x (N, V), in order, and their indices: both (N, count).

    The largest elements lie in the ``count`` blocks with the largest maxima or behind the last whole block, so topk is
    applied to these elements alone. On a CPU, the maxima are computed with vector instructions, while topk looks at one
    element after the other; on 8,000 elements it would take most of the time of a decoding step.
    """
    rows, elements = x.shape
    blocks = elements // BLOCK
    if blocks <= count:
        return x.topk(count)
    in_blocks = blocks * BLOCK
    chosen = x[:, :in_blocks].unflatten(1, (blocks, BLOCK)).amax(dim=-1).topk(count).indices  # (N, count)
    candidates = (chosen[:, :, None] * BLOCK + torch.arange(BLOCK, device=x.device)).flatten(1)
    others = torch.arange(in_blocks, elements, device=x.device).expand(rows, -1)
    candidates = torch.cat([candidates, others], dim=1)
    values, places = x.gather(1, candidates).topk(count)
    return values, candidates.gather(1, places)


def _greedy(
    model: TranslationModel, source: Tensor, limits: Tensor, before_step: Callable[[], None]
) -> list[list[Hypothesis]]:
    """Greedy search: takes the most probable piece at every step, until it is EOS."""
    state = model.start(model.encode(source))
    sentences = torch.arange(len(source), device=source.device)  # (N,) which sentence a row belongs to
    last = torch.full_like(sentences, BOS)
    history = last.new_empty(len(source), int(limits.max()) + 1)
    totals = torch.zeros(len(source), device=source.device)
    lengths = torch.zeros_like(sentences)
    shortest_limit = int(limits.min())
    for step in range(history.shape[1]):
        before_step()
        features, state = model.advance(last, state)
        at_limit = limits[sentences] == step if step >= shortest_limit else None
        best, choice = largest(_next_log_p(model, features, at_limit), 1)  # (N, 1)
        last = choice.squeeze(1)
        alive = last != EOS
        totals[sentences] += best.squeeze(1)
        lengths[sentences] += alive
        history[sentences, step] = last
        rows = alive.nonzero()  # (N', 1)
        if len(rows) == 0:
            break
        if len(rows) < len(last):
            living = rows.squeeze(1)
            state, last, sentences = state.select(rows), last[living], sentences[living]
    pieces = history.tolist()
    return [
        [Hypothesis(row[:length], total)]
        for row, length, total in zip(pieces, lengths.tolist(), totals.tolist(), strict=True)
    ]


def _beam(
    model: TranslationModel, source: Tensor, limits: Tensor, config: DecodingConfig, before_step: Callable[[], None]
) -> list[list[Hypothesis]]:
    """Beam search (Sutskever et al. 2014).

    A hypothesis is finished when its EOS is among the best ``beam_size`` continuations of a step. A sentence is
    finished when ``beam_size`` of its hypotheses are.
    """
    beam_size = config.beam_size
    finished: list[list[Hypothesis]] = [[] for _ in range(len(source))]
    state = model.start(model.encode(source))
    sentences = list(range(len(source)))  # the B sentences that are still searched
    totals = torch.zeros(len(source), 1, device=source.device)  # (B, K) log P of each beam; there is one at first
    pieces = source.new_full((len(source), 1, 1), BOS)  # (B, K, t)
    shortest_limit = int(limits.min())
    step = 0
    while sentences:
        before_step()
        features, state = model.advance(pieces[:, :, -1].flatten(), state)
        beams = totals.shape[1]
        at_limit = (limits == step).repeat_interleave(beams) if step >= shortest_limit else None
        log_p = _next_log_p(model, features, at_limit)
        # At most K continuations end, one per beam, so the best 2K include K that go on.
        width = min(2 * beam_size, log_p.shape[1])
        best, choice = largest(log_p, width)  # (N, 2K)
        extended = (totals.view(-1, 1) + best).view(len(sentences), -1)  # (B, K·2K)
        extended, index = extended.topk(min(2 * beam_size, extended.shape[1]), dim=-1)  # (B, 2K)
        choice = choice.view(len(sentences), -1).gather(1, index)
        parent = index // width  # (B, 2K) the beam that each continues

        ends = choice == EOS
        complete = ends[:, :beam_size] & extended[:, :beam_size].isfinite()
        row, column = complete.nonzero().unbind(1)
        written = pieces[row, parent[row, column], 1:].tolist()
        for place, hypothesis, total in zip(row.tolist(), written, extended[row, column].tolist(), strict=True):
            finished[sentences[place]].append(Hypothesis(hypothesis, total))

        totals, order = extended.masked_fill(ends, -torch.inf).topk(min(beam_size, extended.shape[1]), dim=-1)  # (B, K)
        parent, choice = parent.gather(1, order), choice.gather(1, order)
        rows = torch.arange(len(sentences), device=source.device)[:, None] * beams + parent  # (B, K)
        pieces = torch.cat([pieces.gather(1, parent[:, :, None].expand(-1, -1, step + 1)), choice[:, :, None]], dim=2)
        goes_on = totals[:, 0].isfinite().tolist()
        kept = [place for place, n in enumerate(sentences) if goes_on[place] and len(finished[n]) < beam_size]
        if len(kept) < len(sentences):
            sentences = [sentences[place] for place in kept]
            living = torch.tensor(kept, dtype=torch.int64, device=source.device)
            rows, pieces, totals, limits = rows[living], pieces[living], totals[living], limits[living]
        if sentences:
            state = state.select(rows)
        step += 1
    return finished


def _draw(
    model: TranslationModel,
    source: Tensor,
    limits: Tensor,
    config: DecodingConfig,
    sampling_keys: Sequence[tuple[int, ...]],
    before_step: Callable[[], None],
) -> list[list[Hypothesis]]:
    """Ancestral sampling: draws ``n_best`` translations of each sentence.

    Pieces are drawn from the model's distribution as changed by temperature, top-k (Fan et al. 2018) and top-p
    (Holtzman et al. 2020). The log-probability of a hypothesis is the model's own, without these changes.
    """
    draws = config.n_best
    longest = int(limits.max()) + 1
    uniform = torch.tensor(
        [
            generator(config.seed, "sampling", *key, draw).random(longest).tolist()
            for key in sampling_keys
            for draw in range(draws)
        ],
        device=source.device,
    )  # (B·K, longest)
    totals = torch.zeros(len(uniform), device=source.device)
    written: list[list[int]] = [[] for _ in uniform]
    sentences = torch.arange(len(source), device=source.device)  # (B,) the sentences still in the batch
    state = model.start(model.encode(source)).select(sentences[:, None].expand(-1, draws))
    last = sentences.new_full((len(uniform),), BOS)
    alive = torch.ones_like(last, dtype=torch.bool)  # (N,)
    shortest_limit = int(limits.min())
    for step in range(longest):
        # (N,) which of the B·K draws each row is
        number = (sentences[:, None] * draws + torch.arange(draws, device=source.device)).flatten()
        before_step()
        features, state = model.advance(last, state)
        at_limit = limits[number // draws] == step if step >= shortest_limit else None
        log_p = _next_log_p(model, features, at_limit)
        # The largest is subtracted so that a low temperature cannot make all of them infinite.
        logits = (log_p - log_p.amax(dim=-1, keepdim=True)) / config.temperature
        last = _inverse_cumulative(logits, uniform[number, step], config.top_k, config.top_p)
        totals[number] += log_p.gather(1, last[:, None]).squeeze(1) * alive
        alive = alive & (last != EOS)
        for place, piece, lives in zip(number.tolist(), last.tolist(), alive.tolist(), strict=True):
            if lives:
                written[place].append(piece)
        going_on = alive.view(-1, draws).any(dim=1)
        if not going_on.all():
            rows = torch.arange(len(number), device=source.device).view(-1, draws)[going_on]  # (B', K)
            if len(rows) == 0:
                break
            state, sentences = state.select(rows), sentences[going_on]
            last, alive = last[rows.flatten()], alive[rows.flatten()]
    hypotheses = [Hypothesis(pieces, total) for pieces, total in zip(written, totals.tolist(), strict=True)]
    return [hypotheses[first : first + draws] for first in range(0, len(hypotheses), draws)]


def _inverse_cumulative(logits: Tensor, uniform: Tensor, top_k: int, top_p: float) -> Tensor:
    """Returns the pieces (N,) drawn from logits (N, V) by inverse transform sampling, with top-k and top-p.

    In each row, that is the piece at which the cumulative probability, most probable piece first, passes ``uniform``
    (N,), between 0 and 1. ``top_k=0`` keeps all pieces.
    """
    ordered, pieces = logits.sort(dim=-1, descending=True, stable=True)
    if top_k:
        ordered[:, top_k:] = -torch.inf
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # (N, V) probability of all pieces that are more probable
    probabilities = probabilities * (before < top_p)
    cumulative = probabilities.cumsum(dim=-1)
    place = torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:], right=True)
    # Rounding can carry the draw past the last piece that has a probability above 0.
    last_possible = ((probabilities > 0).sum(dim=-1, keepdim=True) - 1).clamp(min=0)  # none has, if scores are NaN
    return pieces.gather(1, place.minimum(last_possible)).squeeze(1)
