"""Beam search. Shapes: B sentences, K beams, N = B·K rows, V tokens, t tokens so far."""

import torch
from torch import Tensor

from mt.tokenizer.tokenizer import BOS, EOS
from mt.translation.hypotheses import Hypothesis, SearchState

BLOCK = 64
"""Elements per block in ``largest``, which starts with the largest element of each block."""


def beam_search(decoder: SearchState, beam_size: int) -> list[list[Hypothesis]]:
    """Search with a beam (Sutskever et al. 2014).

    A hypothesis is finished when its EOS is among the best ``beam_size`` continuations of a step. A sentence is
    finished when ``beam_size`` of its hypotheses are.
    """
    finished: list[list[Hypothesis]] = [[] for _ in range(decoder.batch_size)]
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
