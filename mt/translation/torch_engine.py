"""The PyTorch engine: beam search, greedy search and sampling. Shapes: B sentences, K rows (beams or draws) of each,
N = B·K rows, V tokens, t tokens so far."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mt.config import DecodingConfig
from mt.core.errors import RunError
from mt.core.randomness import generator
from mt.models.seq2seq import TranslationModel
from mt.tokenizer.tokenizer import BOS, EOS
from mt.translation.engine import Engine, SearchRequest
from mt.translation.hypotheses import Hypotheses, Hypothesis, SearchState
from mt.translation.trained_model import TrainedModel

BLOCK = 64
"""Elements per block in ``largest``, which starts with the largest element of each block."""


def beam_search(decoder: SearchState, beam_size: int) -> Hypotheses:
    """Search with a beam (Sutskever et al. 2014).

    A hypothesis is finished when its EOS is among the best ``beam_size`` continuations of a step. A sentence is
    finished when ``beam_size`` of its hypotheses are.
    """
    finished: Hypotheses = [[] for _ in range(decoder.batch_size)]
    sentences = list(range(decoder.batch_size))  # the B unfinished sentences
    totals = torch.zeros(len(sentences), 1, device=decoder.device)  # (B, K) log P of each beam; K is 1 at first
    tokens = torch.full((len(sentences), 1, 1), BOS, device=decoder.device)  # (B, K, t)
    while sentences:
        beams = totals.shape[1]
        log_p = decoder.advance(tokens.flatten(0, 1))
        # At most K continuations end, one per beam, so the best 2K include K that go on.
        extended, parent, choice = _best_continuations(totals, log_p, 2 * beam_size)
        ends = choice == EOS
        complete = ends[:, :beam_size] & extended[:, :beam_size].isfinite()
        row, column = complete.nonzero().unbind(1)
        written = tokens[row, parent[row, column], 1:].tolist()
        for index, hypothesis, total in zip(row.tolist(), written, extended[row, column].tolist(), strict=True):
            finished[sentences[index]].append(Hypothesis(hypothesis, total))

        totals, order = extended.masked_fill(ends, -torch.inf).topk(min(beam_size, extended.shape[1]), dim=-1)  # (B, K)
        parent, choice = parent.gather(1, order), choice.gather(1, order)
        rows = torch.arange(len(sentences), device=decoder.device)[:, None] * beams + parent  # (B, K)
        history = tokens.gather(1, parent[:, :, None].expand(-1, -1, tokens.shape[2]))
        tokens = torch.cat([history, choice[:, :, None]], dim=2)
        is_alive = totals[:, 0].isfinite().tolist()
        kept = [n for n, sentence in enumerate(sentences) if is_alive[n] and len(finished[sentence]) < beam_size]
        if len(kept) < len(sentences):
            sentences = [sentences[n] for n in kept]
            indices = torch.tensor(kept, dtype=torch.int64, device=decoder.device)
            rows, tokens, totals = rows[indices], tokens[indices], totals[indices]
        if sentences:
            decoder.select(rows)
    return finished


def _best_continuations(totals: Tensor, log_p: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best continuations of each sentence, best first.

    Args:
        totals: (B, K), log P of the beams.
        log_p: (B·K, V), of the next tokens.
        count: The number of continuations.

    Returns:
        Their log P, the beam that each continues and its token: (B, count) each.
    """
    width = min(count, log_p.shape[1])
    best, choice = largest(log_p, width)  # (N, width)
    extended = (totals.view(-1, 1) + best).view(len(totals), -1)  # (B, K·width)
    extended, index = extended.topk(min(count, extended.shape[1]), dim=-1)
    return extended, index // width, choice.view(len(totals), -1).gather(1, index)


def largest(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` largest elements of each row of x (N, V), in order, and their indices: both (N, count).

    The largest elements lie in the ``count`` blocks with the largest maxima or behind the last complete block, so topk
    is applied to these elements alone. On a CPU, the maxima are computed with vector instructions, while topk looks at
    one element after the other; on 8,000 elements it would take most of the time of a decoding step.
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
    values, indices = x.gather(1, candidates).topk(count)
    return values, candidates.gather(1, indices)


def sample(
    decoder: SearchState, config: DecodingConfig, draws: int, sampling_keys: Sequence[tuple[int, ...]]
) -> Hypotheses:
    """Draw translations of each sentence.

    Tokens are drawn from the model's distribution as changed by temperature, top-k (Fan et al. 2018) and top-p
    (Holtzman et al. 2020). The log-probability of a hypothesis is the model's own, without these changes.
    """
    uniform = torch.tensor(
        [
            generator(config.seed, "sampling", *key, draw).random(decoder.max_steps).tolist()
            for key in sampling_keys
            for draw in range(draws)
        ],
        device=decoder.device,
    )  # (all rows, steps)

    def draw(log_p: Tensor, rows: Tensor, step: int) -> Tensor:
        # The maximum is subtracted so that a low temperature cannot make all logits infinite.
        logits = (log_p - log_p.amax(dim=-1, keepdim=True)) / config.temperature
        return inverse_cumulative(logits, uniform[rows, step], config.top_k, config.top_p)

    return _decode(decoder, draws, draw)


def _decode(decoder: SearchState, draws: int, choose: Callable[[Tensor, Tensor, int], Tensor]) -> Hypotheses:
    """Return ``draws`` hypotheses of each sentence.

    Args:
        decoder: At its first step.
        draws: K.
        choose: Returns the next tokens (N,), given the log-probabilities (N, V), the numbers of the rows (N,) among all
            B·K and the number of the step.
    """
    rows = torch.arange(decoder.batch_size * draws, device=decoder.device).view(-1, draws)  # (B, K) of the unfinished
    if draws > 1:
        decoder.select(rows // draws)
    alive = torch.ones_like(rows.flatten(), dtype=torch.bool)  # (N,)
    totals = torch.zeros(len(alive), device=decoder.device)
    lengths = torch.zeros_like(rows.flatten())
    history = torch.full((len(alive), decoder.max_steps + 1), BOS, device=decoder.device)
    for step in range(decoder.max_steps):
        numbers = rows.flatten()
        log_p = decoder.advance(history[numbers, : step + 1])
        last = choose(log_p, numbers, step)
        totals[numbers] += log_p.gather(1, last[:, None]).squeeze(1) * alive
        alive = alive & (last != EOS)
        lengths[numbers] += alive
        history[numbers, step + 1] = last
        unfinished = alive.view(-1, draws).any(dim=1).nonzero()  # (B', 1)
        if len(unfinished) == 0:
            break
        if len(unfinished) < len(rows):
            kept = unfinished * draws + torch.arange(draws, device=decoder.device)  # (B', K)
            decoder.select(kept)
            rows, alive = rows[unfinished.squeeze(1)], alive[kept.flatten()]
    written = zip(history[:, 1:].tolist(), lengths.tolist(), totals.tolist(), strict=True)
    hypotheses = [Hypothesis(tokens[:length], total) for tokens, length, total in written]
    return [hypotheses[first : first + draws] for first in range(0, len(hypotheses), draws)]


def inverse_cumulative(logits: Tensor, uniform: Tensor, top_k: int, top_p: float) -> Tensor:
    """Return the tokens (N,) drawn from logits (N, V) by inverse transform sampling, with top-k and top-p.

    In each row, it is the token at which the cumulative probability passes ``uniform`` (N,), between 0 and 1. Tokens
    are in the order of the vocabulary, which rounding cannot change, or most probable first with top-k or top-p.
    ``top_k=0`` keeps all tokens.
    """
    if not top_k and top_p >= 1:
        return _passing(logits.softmax(dim=-1), uniform)
    ordered, tokens = logits.sort(dim=-1, descending=True, stable=True)
    if top_k:
        ordered[:, top_k:] = -torch.inf
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # (N, V) probability of all tokens that are more probable
    probabilities = probabilities * (before < top_p)
    return tokens.gather(1, _passing(probabilities, uniform)[:, None]).squeeze(1)


def _passing(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """Return the indices (N,) at which the cumulative probabilities of (N, V) pass ``uniform`` (N,)."""
    cumulative = probabilities.cumsum(dim=-1)
    index = torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:], right=True)
    # Rounding can carry the draw past the last token that has a probability above 0.
    positions = torch.arange(probabilities.shape[-1], device=probabilities.device)
    last_possible = ((probabilities > 0) * positions).amax(dim=-1, keepdim=True)  # 0 if scores are NaN
    return index.minimum(last_possible).squeeze(1)


@dataclass(eq=False)
class TorchEngine(Engine):
    """Searches with the model on its current device and with its current weights."""

    name = "torch"
    model: TranslationModel
    config: DecodingConfig

    @classmethod
    def open(cls, model: TranslationModel, trained: TrainedModel, config: DecodingConfig) -> Engine:
        return cls(model, config)

    def rows_per_source(self, request: SearchRequest) -> int:
        if request.greedy:
            return 1
        return (request.n_best or self.config.n_best) if self.config.method == "sample" else self.config.beam_size

    @torch.inference_mode()
    def search(self, request: SearchRequest) -> Hypotheses:
        n_best = request.n_best or self.config.n_best
        all_hypotheses = self._find(request, n_best)
        if not all(hypotheses and math.isfinite(hypotheses[0].log_probability) for hypotheses in all_hypotheses):
            raise RunError("the model's scores are not finite: try precision=fp32, or bf16 instead of fp16")
        for hypotheses in all_hypotheses:
            hypotheses.sort(key=lambda hypothesis: -hypothesis.score(self.config.length_penalty))
        return [hypotheses[:n_best] for hypotheses in all_hypotheses]

    def _find(self, request: SearchRequest, n_best: int) -> Hypotheses:
        config = self.config
        decoder = SearchState(self.model, request.sources, config, request.before_step, request.constraints)
        if request.greedy or (config.method == "beam" and config.beam_size == 1):
            return _decode(decoder, 1, lambda log_p, rows, step: largest(log_p, 1)[1].squeeze(1))
        if config.method == "beam":
            return beam_search(decoder, config.beam_size)
        return sample(decoder, config, n_best, request.sampling_keys)
