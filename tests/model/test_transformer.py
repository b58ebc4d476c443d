"""The Transformer against PyTorch's, its own cache, and what masks and padding must never do."""

import pytest
import torch
from torch import nn

from mt.config import TransformerConfig
from mt.data.batching import collate
from mt.data.tokenizer import BOS, EOS, PAD
from mt.model.embedding import sinusoidal_positions
from mt.model.transformer import Transformer

VOCABULARY = 30


def _config(**changes):
    values = {
        "width": 16,
        "feed_forward": 24,
        "heads": 4,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "dropout": 0.0,
    }
    return TransformerConfig(architecture="transformer", **(values | changes))


def _model(**changes):
    torch.manual_seed(0)
    return Transformer(_config(**changes), VOCABULARY, VOCABULARY, joint_vocabulary=True)


def _batch():
    return collate([0, 1, 2], [[5, 6, 7, 8], [9], [10, 11]], [[12, 13], [14, 15, 16, 17], [18]])


def _copy_attention(ours, theirs):
    theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key.weight, ours.value.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key.bias, ours.value.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())


def _copy_feed_forward(ours, theirs):
    theirs.linear1.load_state_dict(ours.inner.state_dict())
    theirs.linear2.load_state_dict(ours.outer.state_dict())


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_encoder_and_decoder_equal_pytorchs_with_the_same_weights(norm, activation, training):
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
            _copy_attention(mine.self_attention, other.self_attn)
            _copy_feed_forward(mine.feed_forward, other)
            other.norm1.load_state_dict(mine.around_attention.norm.state_dict())
            other.norm2.load_state_dict(mine.around_feed_forward.norm.state_dict())
        for mine, other in zip(ours.decoder.layers, theirs.decoder.layers, strict=True):
            _copy_attention(mine.self_attention, other.self_attn)
            _copy_attention(mine.cross_attention, other.multihead_attn)
            _copy_feed_forward(mine.feed_forward, other)
            other.norm1.load_state_dict(mine.around_self_attention.norm.state_dict())
            other.norm2.load_state_dict(mine.around_cross_attention.norm.state_dict())
            other.norm3.load_state_dict(mine.around_feed_forward.norm.state_dict())
    if norm == "pre":
        theirs.encoder.norm.load_state_dict(ours.encoder.norm.state_dict())
        theirs.decoder.norm.load_state_dict(ours.decoder.norm.state_dict())
    else:
        theirs.encoder.norm = theirs.decoder.norm = None

    batch = _batch()
    padding = batch.source == PAD
    expected = theirs(
        ours.encoder.embedding(batch.source),
        ours.decoder.embedding(batch.target_input),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(batch.target_input.shape[1]),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
        tgt_is_causal=True,
    )
    actual = ours.decode(ours.encode(batch.source), batch.target_input)
    assert torch.allclose(actual, expected, atol=2e-5)


def test_positions_follow_the_papers_formula():
    table = sinusoidal_positions(50, 8)
    for position in (0, 1, 7, 49):
        for i in range(4):
            angle = torch.tensor(position / 10000 ** (2 * i / 8))
            assert torch.isclose(table[position, 2 * i], angle.sin(), atol=1e-6)
            assert torch.isclose(table[position, 2 * i + 1], angle.cos(), atol=1e-6)


def test_sinusoidal_positions_grow_with_the_sentence():
    model = _model().eval()
    long = collate([0], [[5] * 700], [[6] * 700])
    assert model.decode(model.encode(long.source), long.target_input).isfinite().all()


@pytest.mark.parametrize("training", [True, False])
def test_no_output_depends_on_later_targets(training):
    model = _model().train(training)
    batch = _batch()
    embedded = []
    model.decoder.embedding.register_forward_hook(lambda module, inputs, output: embedded.append(output))
    features = model.decode(model.encode(batch.source), batch.target_input)
    for t in range(features.shape[1]):
        (gradient,) = torch.autograd.grad(features[1, t].square().sum(), embedded[0], retain_graph=True)
        assert (gradient[1, : t + 1].abs().sum(dim=-1) > 0).all()
        assert (gradient[1, t + 1 :] == 0).all()
        assert (gradient[[0, 2]] == 0).all()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_padding_changes_nothing(norm, training):
    model = _model(norm=norm).train(training)
    sources, targets = [[5, 6, 7, 8], [9], [10, 11]], [[12, 13], [14, 15, 16, 17], [18]]
    together = collate([0, 1, 2], sources, targets)
    logits = model.project(model.decode(model.encode(together.source), together.target_input))
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = collate([0], [source], [target])
        expected = model.project(model.decode(model.encode(alone.source), alone.target_input))
        assert torch.allclose(logits[row, : len(target) + 1], expected[0], atol=1e-5)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize("norm", ["pre", "post"])
def test_step_by_step_equals_teacher_forcing(norm, positions):
    model = _model(norm=norm, positions=positions).eval()
    batch = _batch()
    memory = model.encode(batch.source)
    expected = model.decode(memory, batch.target_input)
    state = model.start(memory)
    for t in range(batch.target_input.shape[1]):
        features, state = model.advance(batch.target_input[:, t], state)
        assert torch.allclose(features, expected[:, t], atol=1e-5)


def test_selected_rows_go_on_as_themselves():
    model = _model().eval()
    source = _batch().source
    memory = model.encode(source)
    # Two beams each for sentences 2 and 0 (sentence 1 is finished), then the beams of the first change places.
    state = model.start(memory)
    _, state = model.advance(torch.full((3,), BOS), state)
    state = state.select(torch.tensor([[2, 2], [0, 0]]))
    _, state = model.advance(torch.tensor([20, 21, 22, 23]), state)
    state = state.select(torch.tensor([[1, 0], [2, 3]]))
    features, _ = model.advance(torch.tensor([24, 25, 26, 27]), state)
    for row, (sentence, prefix) in enumerate([(2, [21, 24]), (2, [20, 25]), (0, [22, 26]), (0, [23, 27])]):
        alone = model.encode(source[[sentence]])
        expected = model.decode(alone, torch.tensor([[BOS, *prefix]]))[0, -1]
        assert torch.allclose(features[row], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("tied", "joint", "matrices"), [(True, True, 1), (True, False, 2), (False, True, 3), (False, False, 3)]
)
def test_embeddings_are_tied_as_the_config_says(tied, joint, matrices):
    model = Transformer(_config(tie_embeddings=tied), VOCABULARY, VOCABULARY, joint)
    weights = {
        id(model.encoder.embedding.tokens.weight),
        id(model.decoder.embedding.tokens.weight),
        id(model.output_weight),
    }
    assert len(weights) == matrices


def test_learned_positions_end():
    model = _model(positions="learned", max_positions=8)
    assert model.max_length == 8
    with pytest.raises(IndexError, match="position 9 of 8"):
        model.encode(torch.full((1, 9), EOS))
