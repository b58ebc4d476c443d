"""Helpers of the tests of models: a small batch, its features, and equal weights in PyTorch's attention."""

import torch
from torch import Tensor, nn

from mt.data.batching.batch import Batch, collate
from mt.models.attention import MultiHeadAttention
from mt.models.seq2seq import Seq2Seq

SOURCES, TARGETS = [[5, 6, 7, 8], [9], [10, 11]], [[12, 13], [14, 15, 16, 17], [18]]


def three_pairs() -> Batch:
    return collate(SOURCES, TARGETS)


def decoded(model: Seq2Seq, batch: Batch) -> Tensor:
    """The features of all targets."""
    return model.decode(model.encode(batch.source), batch.target_input)


@torch.no_grad()
def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    """Give PyTorch's attention the weights of ours."""
    theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())
