"""The Transformer against PyTorch's with the same weights."""

import pytest
import torch
from torch import nn

from mt.config import TransformerConfig
from mt.data.batching.batch import collate
from mt.models.embedding import sinusoidal_positions
from mt.models.transformer import Residual, Transformer
from mt.tokenizer.tokenizer import EOS, PAD
from tests.models.pairs import copy_attention, decoded, three_pairs

VOCABULARY = 30


def _config(**changes):
    values = {"width": 16, "feed_forward": 24, "heads": 4, "encoder_layers": 2, "decoder_layers": 3, "dropout": 0.0}
    return TransformerConfig(architecture="transformer", **(values | changes))


def _model(**changes):
    torch.manual_seed(0)
    return Transformer(_config(**changes), VOCABULARY, VOCABULARY, joint_vocabulary=True)


def _copy_feed_forward(ours, theirs):
    theirs.linear1.load_state_dict(ours.inner.state_dict())
    theirs.linear2.load_state_dict(ours.outer.state_dict())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_transformer_equals_pytorch(norm, activation, training):
    config = _config(norm=norm, activation=activation)
    ours = _model(norm=norm, activation=activation).train(training)
    theirs = nn.Transformer(
        d_model=config.width,
        nhead=config.heads,
        num_encoder_layers=config.encoder_layers,
        num_decoder_layers=config.decoder_layers,
        dim_feedforward=config.feed_forward,
        dropout=0.0,
        activation=activation,
        batch_first=True,
        norm_first=norm == "pre",
    ).train(training)
    with torch.no_grad():
        for parameter in ours.parameters():  # biases and norms too shall differ from their first values
            parameter.add_(0.1 * torch.randn_like(parameter))
        for mine, other in zip(ours.encoder.layers, theirs.encoder.layers, strict=True):
            copy_attention(mine.self_attention, other.self_attn)
            _copy_feed_forward(mine.feed_forward, other)
            other.norm1.load_state_dict(mine.around_attention.norm.state_dict())
            other.norm2.load_state_dict(mine.around_feed_forward.norm.state_dict())
        for mine, other in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
            copy_attention(mine.self_attention, other.self_attn)
            copy_attention(mine.cross_attention, other.multihead_attn)
            _copy_feed_forward(mine.feed_forward, other)
            other.norm1.load_state_dict(mine.around_self_attention.norm.state_dict())
            other.norm2.load_state_dict(mine.around_cross_attention.norm.state_dict())
            other.norm3.load_state_dict(mine.around_feed_forward.norm.state_dict())
    if norm == "pre":
        theirs.encoder.norm.load_state_dict(ours.encoder.norm.state_dict())
        theirs.decoder.norm.load_state_dict(ours.decoder.norm.state_dict())
    else:
        theirs.encoder.norm = theirs.decoder.norm = None

    batch = three_pairs()
    padding = batch.source == PAD
    expected = theirs(
        ours.encoder.embedding(batch.source),
        ours.decoder.embedding(batch.target_input),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(batch.target_input.shape[1]),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
        tgt_is_causal=True,
    )
    actual = decoded(ours, batch)
    assert torch.allclose(actual, expected, atol=2e-5)


def test_sinusoidal_positions_equal_formula():
    table = sinusoidal_positions(50, 8)
    for position in (0, 1, 7, 49):
        for i in range(4):
            angle = torch.tensor(position / 10000 ** (2 * i / 8))
            assert torch.isclose(table[position, 2 * i], angle.sin(), atol=1e-6)
            assert torch.isclose(table[position, 2 * i + 1], angle.cos(), atol=1e-6)


def test_sinusoidal_positions_grow_with_sentence():
    model = _model().eval()
    long = collate([[5] * 700], [[6] * 700])
    assert decoded(model, long).isfinite().all()


def test_learned_positions_have_maximum_length():
    model = _model(positions="learned", max_positions=8)
    assert model.max_length == 8
    with pytest.raises(IndexError, match="9 positions, but model.max_positions=8"):
        model.encode(torch.full((1, 9), EOS))


def test_transformer_dropout_is_on_every_sublayer():
    """One that drops all leaves of a pre-norm layer the way around its sublayers."""

    class DropsAll(torch.nn.Module):
        def forward(self, x):
            return torch.zeros_like(x)

    model = _model(dropout=0.5).train()
    for part in model.modules():
        if isinstance(part, Residual):
            part.dropout = DropsAll()
    x = torch.randn(2, 3, model.output_weight.shape[1])
    seen = torch.ones(2, 1, 1, 3, dtype=torch.bool)
    assert torch.equal(model.encoder.layers[0](x, seen), x)
    decoder = model.decoder.layers[0]
    after, _ = decoder(x, decoder.cross_attention.keys_and_values(x), seen)
    assert torch.equal(after, x)
