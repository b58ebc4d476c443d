"""Builds the model that a config describes."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.nn import init
from torch.overrides import TorchFunctionMode

from mt.config import ModelConfig, TransformerConfig
from mt.models.rnn import RNNAttention
from mt.models.seq2seq import Seq2Seq
from mt.models.transformer import Transformer
from mt.text.tokenizer import TokenizerPair


def build_model(config: ModelConfig, tokenizers: TokenizerPair) -> Seq2Seq:
    """Returns a new model for the tokenizers' vocabularies, with weights drawn from torch's global generator."""
    source, target = tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size
    return build_of_sizes(config, source, target, tokenizers.joint)


def build_of_sizes(config: ModelConfig, source: int, target: int, joint: bool) -> Seq2Seq:
    """Returns the same for vocabularies of ``source`` and ``target`` pieces, which are one vocabulary if ``joint``."""
    if isinstance(config, TransformerConfig):
        return Transformer(config, source, target, joint)
    return RNNAttention(config, source, target, joint)


def build_shapes(config: ModelConfig, tokenizers: TokenizerPair) -> Seq2Seq:
    """Returns the same model on the meta device: it has the shapes of its weights, but no weights, and takes no
    memory."""
    with torch.device("meta"), _NothingIsDrawn():
        return build_model(config, tokenizers)


class _NothingIsDrawn(TorchFunctionMode):
    """Leaves out the drawing of first weights. On the meta device that has no effect but that it imports torch's
    compiler, which takes longer than reading a small model."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if getattr(func, "__module__", None) == init.__name__:
            return args[0] if args else (kwargs or {})["tensor"]
        return func(*args, **(kwargs or {}))
