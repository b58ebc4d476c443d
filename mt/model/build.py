"""Builds the model that a config describes."""

from mt.config import ModelConfig, TransformerConfig
from mt.data.tokenizer import TokenizerPair
from mt.model.rnn import RNNAttention
from mt.model.seq2seq import Seq2Seq
from mt.model.transformer import Transformer


def build_model(config: ModelConfig, tokenizers: TokenizerPair) -> Seq2Seq:
    """Returns a new model for the tokenizers' vocabularies, with weights drawn from torch's global generator."""
    source, target = tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size
    if isinstance(config, TransformerConfig):
        return Transformer(config, source, target, tokenizers.joint)
    return RNNAttention(config, source, target, tokenizers.joint)
