"""From a config to a model."""

from mt.config import ModelConfig
from mt.data.tokenizer import TokenizerPair
from mt.model.seq2seq import Seq2Seq
from mt.model.transformer import Transformer


def build_model(config: ModelConfig, tokenizers: TokenizerPair) -> Seq2Seq:
    """A new model over the tokenizers' vocabularies, weights drawn from torch's global generator."""
    return Transformer(config, tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size, tokenizers.joint)
