"""Builds models from their configs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, assert_never

import torch
from torch.nn import init
from torch.overrides import TorchFunctionMode

from mt.config import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.models.rnn import RNNAttention
from mt.models.seq2seq import Seq2Seq
from mt.models.transformer import Transformer
from mt.tokenizer.tokenizer import TokenizerPair


def build_model(config: ModelConfig, tokenizers: TokenizerPair) -> Seq2Seq:
    """Build a model for the vocabularies of tokenizers. Weights are drawn from torch's global generator."""
    source, target = tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size
    return build_for_sizes(config, source, target, tokenizers.joint)


def build_for_sizes(config: ModelConfig, source: int, target: int, joint: bool) -> Seq2Seq:
    """Build a model for vocabularies of given sizes. Weights are drawn from torch's global generator.

    Args:
        config: The model's settings.
        source: Size of the source vocabulary.
        target: Size of the target vocabulary.
        joint: Whether both sides have the same vocabulary, so that embeddings can be shared.
    """
    match config:
        case TransformerConfig():
            return Transformer(config, source, target, joint)
        case RNNAttentionConfig():
            return RNNAttention(config, source, target, joint)
        case _:
            assert_never(config)


def build_meta_model(config: ModelConfig, tokenizers: TokenizerPair) -> Seq2Seq:
    """Build a model on the meta device: its weights have shapes, but no values, and take no memory."""
    with torch.device("meta"), _WithoutInitialization():
        return build_model(config, tokenizers)


class _WithoutInitialization(TorchFunctionMode):
    """Skips the initialization of weights inside its context.

    On the meta device, initialization has no effect except that it imports torch's compiler, which takes longer than
    reading a small model.
    """

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
