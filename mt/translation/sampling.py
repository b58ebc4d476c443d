"""Ancestral sampling of translations. Shapes: B sentences, K draws, N = B·K rows, V tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mt.config import DecodingConfig
from mt.core.randomness import generator
from mt.text.tokenizer import BOS, EOS
from mt.translation.hypotheses import Decoder, Hypothesis


def sample(
    decoder: Decoder, config: DecodingConfig, draws: int, sampling_keys: Sequence[tuple[int, ...]]
) -> list[list[Hypothesis]]:
    """Draw translations of each sentence.

    Tokens are drawn from the model's distribution as changed by temperature, top-k (Fan et al. 2018) and top-p
    (Holtzman et al. 2020). The log-probability of a hypothesis is the model's own, without these changes.
    """
    device = decoder.device
    uniform = torch.tensor(
        [
            generator(config.seed, "sampling", *key, draw).random(decoder.max_steps).tolist()
            for key in sampling_keys
            for draw in range(draws)
        ],
        device=device,
    )  # (all rows, steps)
    totals = torch.zeros(len(uniform), device=device)
    written: list[list[int]] = [[] for _ in uniform]
    rows = torch.arange(len(uniform), device=device).view(-1, draws)  # (B, K) the rows of the unfinished sentences
    decoder.select(rows // draws)
    last = rows.new_full((len(uniform),), BOS)
    alive = torch.ones_like(last, dtype=torch.bool)  # (N,)
    for step in range(decoder.max_steps):
        number = rows.flatten()
        log_p = decoder.advance(last)
        # The maximum is subtracted so that a low temperature cannot make all logits infinite.
        logits = (log_p - log_p.amax(dim=-1, keepdim=True)) / config.temperature
        last = inverse_cumulative(logits, uniform[number, step], config.top_k, config.top_p)
        totals[number] += log_p.gather(1, last[:, None]).squeeze(1) * alive
        alive = alive & (last != EOS)
        for row, token, is_alive in zip(number.tolist(), last.tolist(), alive.tolist(), strict=True):
            if is_alive:
                written[row].append(token)
        unfinished = alive.view(-1, draws).any(dim=1)  # (B,)
        if not unfinished.all():
            kept = torch.arange(len(number), device=device).view(-1, draws)[unfinished]  # (B', K)
            if len(kept) == 0:
                break
            decoder.select(kept)
            rows, last, alive = rows[unfinished], last[kept.flatten()], alive[kept.flatten()]
    hypotheses = [Hypothesis(tokens, total) for tokens, total in zip(written, totals.tolist(), strict=True)]
    return [hypotheses[first : first + draws] for first in range(0, len(hypotheses), draws)]


def inverse_cumulative(logits: Tensor, uniform: Tensor, top_k: int, top_p: float) -> Tensor:
    """Return the tokens (N,) drawn from logits (N, V) by inverse transform sampling, with top-k and top-p.

    In each row, it is the token at which the cumulative probability, most probable token first, passes ``uniform``
    (N,), between 0 and 1. ``top_k=0`` keeps all tokens.
    """
    ordered, tokens = logits.sort(dim=-1, descending=True, stable=True)
    if top_k:
        ordered[:, top_k:] = -torch.inf
    probabilities = ordered.softmax(dim=-1)
    before = probabilities.cumsum(dim=-1) - probabilities  # (N, V) probability of all tokens that are more probable
    probabilities = probabilities * (before < top_p)
    cumulative = probabilities.cumsum(dim=-1)
    index = torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:], right=True)
    # Rounding can carry the draw past the last token that has a probability above 0.
    last_possible = ((probabilities > 0).sum(dim=-1, keepdim=True) - 1).clamp(min=0)  # none has, if scores are NaN
    return tokens.gather(1, index.minimum(last_possible)).squeeze(1)
