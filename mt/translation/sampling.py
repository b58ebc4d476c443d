"""Greedy search and ancestral sampling of translations. Shapes: B sentences, K draws, N = B·K rows, V tokens."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from mt.config import DecodingConfig
from mt.core.randomness import generator
from mt.tokenizer.tokenizer import BOS, EOS
from mt.translation.beam_search import largest
from mt.translation.hypotheses import Hypothesis, SearchState


def greedy_search(decoder: SearchState) -> list[list[Hypothesis]]:
    """Take the most probable token at every step, until it is EOS."""
    return _decode(decoder, 1, lambda log_p, rows, step: largest(log_p, 1)[1].squeeze(1))


def sample(
    decoder: SearchState, config: DecodingConfig, draws: int, sampling_keys: Sequence[tuple[int, ...]]
) -> list[list[Hypothesis]]:
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


def _decode(
    decoder: SearchState, draws: int, choose: Callable[[Tensor, Tensor, int], Tensor]
) -> list[list[Hypothesis]]:
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
