"""The PyTorch engine: beam search, greedy search and sampling.

Shapes: B sentences, K hypotheses (beams or draws) of each, N = B·K hypotheses, V tokens, t tokens so far.
"""

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

BLOCK_SIZE = 64
"""The number of elements of a block in ``blockwise_topk``."""


def beam_search(state: SearchState, beam_size: int) -> Hypotheses:
    """Search with a beam (Sutskever et al. 2014).

    A hypothesis is finished when its EOS is among the best ``beam_size`` continuations of a step. A sentence is
    finished when ``beam_size`` of its hypotheses are.
    """
    finished: Hypotheses = [[] for _ in range(state.batch_size)]
    sentences = list(range(state.batch_size))  # the indices of the B unfinished sentences
    scores = torch.zeros(len(sentences), 1, device=state.device)  # (B, K) log P of each beam; K is 1 at first
    tokens = torch.full((len(sentences), 1, 1), BOS, device=state.device)  # (B, K, t)
    while sentences:
        beams = scores.shape[1]
        log_p = state.decode_step(tokens.flatten(0, 1))
        # At most K of the best 2K continuations end, because each beam has one EOS. So K unfinished ones remain.
        candidate_scores, beam_ids, token_ids = _best_continuations(scores, log_p, 2 * beam_size)  # (B, 2K) each
        ends = token_ids == EOS
        is_finished = ends[:, :beam_size] & candidate_scores[:, :beam_size].isfinite()
        rows, columns = is_finished.nonzero().unbind(1)
        finished_tokens = tokens[rows, beam_ids[rows, columns], 1:]
        new = zip(rows.tolist(), finished_tokens.tolist(), candidate_scores[rows, columns].tolist(), strict=True)
        for row, hypothesis, score in new:
            finished[sentences[row]].append(Hypothesis(hypothesis, score))

        kept_beams = min(beam_size, candidate_scores.shape[1])
        scores, order = candidate_scores.masked_fill(ends, -torch.inf).topk(kept_beams, dim=-1)  # (B, K)
        beam_ids, token_ids = beam_ids.gather(1, order), token_ids.gather(1, order)
        hypothesis_ids = torch.arange(len(sentences), device=state.device)[:, None] * beams + beam_ids  # (B, K)
        prefixes = tokens.gather(1, beam_ids[:, :, None].expand(-1, -1, tokens.shape[2]))
        tokens = torch.cat([prefixes, token_ids[:, :, None]], dim=2)
        can_continue = scores[:, 0].isfinite().tolist()
        kept = [n for n, sentence in enumerate(sentences) if can_continue[n] and len(finished[sentence]) < beam_size]
        if len(kept) < len(sentences):
            sentences = [sentences[n] for n in kept]
            indices = torch.tensor(kept, dtype=torch.int64, device=state.device)
            hypothesis_ids, tokens, scores = hypothesis_ids[indices], tokens[indices], scores[indices]
        if sentences:
            state.select(hypothesis_ids)
    return finished


def _best_continuations(scores: Tensor, log_p: Tensor, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the best continuations of each sentence, best first.

    Args:
        scores: (B, K), log P of the beams.
        log_p: (B·K, V), of the next tokens.
        count: The number of continuations.

    Returns:
        Their log P, the beam that each continues, and its token: (B, count) each.
    """
    width = min(count, log_p.shape[1])
    best, token_ids = blockwise_topk(log_p, width)  # (N, width)
    candidate_scores = (scores.view(-1, 1) + best).view(len(scores), -1)  # (B, K·width)
    candidate_scores, index = candidate_scores.topk(min(count, candidate_scores.shape[1]), dim=-1)
    return candidate_scores, index // width, token_ids.view(len(scores), -1).gather(1, index)


def blockwise_topk(x: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the same as ``x.topk(count)`` for x (N, V), faster on a CPU: values and indices (N, count), in order.

    The largest elements are in the ``count`` blocks with the largest maxima, or behind the last complete block. So topk
    is applied to these elements alone. Maxima are computed with vector instructions, while topk looks at one element
    after the other. On 8,000 elements, it would take most of the time of a decoding step.
    """
    rows, elements = x.shape
    blocks = elements // BLOCK_SIZE
    if blocks <= count:
        return x.topk(count)
    in_blocks = blocks * BLOCK_SIZE
    best_blocks = x[:, :in_blocks].unflatten(1, (blocks, BLOCK_SIZE)).amax(dim=-1).topk(count).indices  # (N, count)
    candidates = (best_blocks[:, :, None] * BLOCK_SIZE + torch.arange(BLOCK_SIZE, device=x.device)).flatten(1)
    remainder = torch.arange(in_blocks, elements, device=x.device).expand(rows, -1)
    candidates = torch.cat([candidates, remainder], dim=1)
    values, indices = x.gather(1, candidates).topk(count)
    return values, candidates.gather(1, indices)


def sample(
    state: SearchState, config: DecodingConfig, draws: int, sampling_keys: Sequence[tuple[int, ...]]
) -> Hypotheses:
    """Draw translations of each sentence.

    Tokens are drawn from the model's distribution as changed by temperature, top-k (Fan et al. 2018) and top-p
    (Holtzman et al. 2020). The log-probability of a hypothesis is the model's own, without these changes.
    """
    uniform = torch.tensor(
        [
            generator(config.seed, "sampling", *key, draw).random(state.max_steps).tolist()
            for key in sampling_keys
            for draw in range(draws)
        ],
        device=state.device,
    )  # (all hypotheses, steps)

    def draw_tokens(log_p: Tensor, hypothesis_ids: Tensor, step: int) -> Tensor:
        # The maximum is subtracted so that a low temperature cannot make all logits infinite.
        logits = (log_p - log_p.amax(dim=-1, keepdim=True)) / config.temperature
        return inverse_transform_sample(logits, uniform[hypothesis_ids, step], config.top_k, config.top_p)

    return _generate(state, draws, draw_tokens)


def _generate(state: SearchState, draws: int, choose_tokens: Callable[[Tensor, Tensor, int], Tensor]) -> Hypotheses:
    """Return ``draws`` hypotheses of each sentence, which grow independently of each other.

    Args:
        state: The state before the first step.
        draws: K.
        choose_tokens: A function that returns the next token of each unfinished hypothesis (N,), given the
            log-probabilities (N, V), the indices of the hypotheses among all of the batch (N,), and the step.
    """
    hypothesis_ids = torch.arange(state.batch_size * draws, device=state.device).view(-1, draws)  # (B, K)
    if draws > 1:
        state.select(hypothesis_ids // draws)
    is_unfinished = torch.ones_like(hypothesis_ids.flatten(), dtype=torch.bool)  # (N,)
    scores = torch.zeros(len(is_unfinished), device=state.device)
    lengths = torch.zeros_like(hypothesis_ids.flatten())
    tokens = torch.full((len(is_unfinished), state.max_steps + 1), BOS, device=state.device)
    for step in range(state.max_steps):
        flat_ids = hypothesis_ids.flatten()
        log_p = state.decode_step(tokens[flat_ids, : step + 1])
        next_tokens = choose_tokens(log_p, flat_ids, step)
        scores[flat_ids] += log_p.gather(1, next_tokens[:, None]).squeeze(1) * is_unfinished
        is_unfinished &= next_tokens != EOS
        lengths[flat_ids] += is_unfinished
        tokens[flat_ids, step + 1] = next_tokens
        unfinished = is_unfinished.view(-1, draws).any(dim=1).nonzero()  # (B', 1) sentences
        if len(unfinished) == 0:
            break
        if len(unfinished) < len(hypothesis_ids):
            kept = unfinished * draws + torch.arange(draws, device=state.device)  # (B', K)
            state.select(kept)
            hypothesis_ids, is_unfinished = hypothesis_ids[unfinished.squeeze(1)], is_unfinished[kept.flatten()]
    results = zip(tokens[:, 1:].tolist(), lengths.tolist(), scores.tolist(), strict=True)
    hypotheses = [Hypothesis(row[:length], score) for row, length, score in results]
    return [hypotheses[first : first + draws] for first in range(0, len(hypotheses), draws)]


def inverse_transform_sample(logits: Tensor, uniform: Tensor, top_k: int, top_p: float) -> Tensor:
    """Return tokens (N,) drawn from logits (N, V) by inverse transform sampling, with top-k and top-p.

    The drawn token of a row is the one at which the cumulative probability passes ``uniform`` (N,), between 0 and 1.
    Tokens are in the order of the vocabulary, which rounding cannot change, or most probable first with top-k or top-p.
    ``top_k=0`` keeps all tokens.
    """
    if not top_k and top_p >= 1:
        return _inverse_cdf(logits.softmax(dim=-1), uniform)
    sorted_logits, tokens = logits.sort(dim=-1, descending=True, stable=True)
    if top_k:
        sorted_logits[:, top_k:] = -torch.inf
    probabilities = sorted_logits.softmax(dim=-1)
    mass_before = probabilities.cumsum(dim=-1) - probabilities  # (N, V) probability of all more probable tokens
    probabilities = probabilities * (mass_before < top_p)
    return tokens.gather(1, _inverse_cdf(probabilities, uniform)[:, None]).squeeze(1)


def _inverse_cdf(probabilities: Tensor, uniform: Tensor) -> Tensor:
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
        all_hypotheses = self._search(request, n_best)
        if not all(hypotheses and math.isfinite(hypotheses[0].log_probability) for hypotheses in all_hypotheses):
            raise RunError("the model's scores are not finite: try precision=fp32, or bf16 instead of fp16")
        for hypotheses in all_hypotheses:
            hypotheses.sort(key=lambda hypothesis: -hypothesis.score(self.config.length_penalty))
        return [hypotheses[:n_best] for hypotheses in all_hypotheses]

    def _search(self, request: SearchRequest, n_best: int) -> Hypotheses:
        config = self.config
        state = SearchState(self.model, request.sources, config, request.before_step, request.constraints)
        if request.greedy or (config.method == "beam" and config.beam_size == 1):
            return _generate(state, 1, lambda log_p, *_: blockwise_topk(log_p, 1)[1].squeeze(1))
        if config.method == "beam":
            return beam_search(state, config.beam_size)
        return sample(state, config, n_best, request.sampling_keys)
