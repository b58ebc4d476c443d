"""The recurrent model against PyTorch's own LSTM and the formulas of Bahdanau et al. 2015, written out."""

import pytest
import torch
from torch import nn

from mt.config import RNNAttentionConfig
from mt.data.batching.batch import collate
from mt.models.rnn import BidirectionalLSTM, LSTMCell, RNNAttention, reversed_positions
from mt.tokenizer.tokenizer import PAD
from tests.models.pairs import decoded, three_pairs

VOCABULARY = 30
HIDDEN = 12


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def _model(**changes):
    values = {"width": 8, "hidden": HIDDEN, "dropout": 0.0, "layer_norm": False}
    values |= {"encoder_layers": 1, "decoder_layers": 1}
    config = RNNAttentionConfig(architecture="rnn_attention", **(values | changes))
    return RNNAttention(config, VOCABULARY, VOCABULARY, joint_vocabulary=True)


def test_bidirectional_lstm_equals_pytorch():
    ours = BidirectionalLSTM(5, HIDDEN)
    theirs = nn.LSTM(5, HIDDEN // 2, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for name, parameter in ours.forward_lstm.named_parameters():
            getattr(theirs, name).copy_(parameter)
        for name, parameter in ours.backward_lstm.named_parameters():
            getattr(theirs, f"{name}_reverse").copy_(parameter)
    lengths = torch.tensor([4, 1, 3])
    real = torch.arange(4) < lengths[:, None]
    x = torch.randn(3, 4, 5)
    packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    expected, _ = nn.utils.rnn.pad_packed_sequence(theirs(packed)[0], batch_first=True)
    actual = ours(x, reversed_positions(real))
    assert torch.allclose(actual[real], expected[real], atol=1e-6)


def test_lstm_cell_equals_pytorch():
    ours, theirs = LSTMCell(5, HIDDEN, bias=True), nn.LSTMCell(5, HIDDEN)
    with torch.no_grad():
        theirs.weight_ih.copy_(ours.gates.weight[:, :5])
        theirs.weight_hh.copy_(ours.gates.weight[:, 5:])
        theirs.bias_ih.copy_(ours.gates.bias)
        theirs.bias_hh.zero_()
    x, hidden, cell = torch.randn(3, 5), torch.randn(3, HIDDEN), torch.randn(3, HIDDEN)
    after = ours(x, (hidden, cell))
    assert torch.allclose(torch.stack(after), torch.stack(theirs(x, (hidden, cell))), atol=1e-6)


def test_rnn_decoder_equals_formulas():
    """Sentence by sentence and step by step: sᵢ from yᵢ₋₁, cᵢ and sᵢ₋₁; cᵢ from sᵢ₋₁ and all of the memory."""
    model = _model()
    decoder = model.decoder
    batch = three_pairs()
    actual = decoded(model, batch)
    for row in range(3):
        source = batch.source[row][batch.source[row] != PAD]
        features = model.encode(source[None]).features[0]  # (S, H)
        forth, back = features[-1, : HIDDEN // 2], features[0, HIDDEN // 2 :]
        hidden, cell = torch.tanh(decoder.first_state(torch.cat([forth, back]))).chunk(2)
        target = batch.target_input[row][batch.target_output[row] != PAD]
        for t, piece in enumerate(target):
            attention = decoder.cross_attention
            scores = torch.stack(
                [attention.score @ torch.tanh(attention.query(hidden) + attention.key(h)) for h in features]
            )
            context = sum(a * h for a, h in zip(scores.softmax(0), features, strict=True))
            embedded = decoder.tokens(piece)
            cell_weights = decoder.layers[0].gates.weight
            gates = decoder.from_embedding(embedded) + cell_weights @ torch.cat([context, hidden])
            write, keep, new, read = gates.chunk(4)
            cell = torch.sigmoid(keep) * cell + torch.sigmoid(write) * torch.tanh(new)
            hidden = torch.sigmoid(read) * torch.tanh(cell)
            expected = torch.tanh(decoder.readout(torch.cat([hidden, context, embedded])))
            assert torch.allclose(actual[row, t], expected, atol=1e-5)


def test_rnn_residual_connections_skip_first_layer():
    plain, residual = _model(decoder_layers=2, residual=False), _model(decoder_layers=2)
    residual.load_state_dict(plain.state_dict())
    with torch.no_grad():  # the second layer's gate for reading shut: it says nothing
        for model in (plain, residual):
            model.decoder.layers[1].gates.bias.chunk(4)[3].fill_(-100)
            model.decoder.readout.weight[:, HIDDEN:] = 0
    batch = three_pairs()
    silent, passing = (decoded(model, batch) for model in (plain, residual))
    assert torch.allclose(silent, silent[:1, :1].expand_as(silent), atol=1e-6)
    assert not torch.allclose(passing, passing[:1, :1].expand_as(passing), atol=1e-2)


def test_forget_gate_biases_are_one():
    model = _model(decoder_layers=2)
    lstm = model.encoder.layers[0].forward_lstm
    for bias in (lstm.bias_ih_l0, model.decoder.from_embedding.bias, model.decoder.layers[1].gates.bias):
        write, keep, new, read = bias.chunk(4)
        assert (keep == 1).all() and not torch.cat([write, new, read]).any()


@pytest.mark.parametrize("is_variational", [True, False])
def test_variational_dropout_shares_mask_across_positions(is_variational):
    model = _model(dropout=0.5, variational_dropout=is_variational, decoder_layers=2).train()
    masks = []
    model.decoder.dropout.register_forward_hook(lambda module, inputs, output: masks.append(output != 0))
    batch = collate([[5, 6, 7]], [[12, 13, 14]])
    decoded(model, batch)
    assert is_variational or len(masks) == 3  # embeddings, between the layers, readout
    for mask in masks:
        assert bool((mask == mask[:, :1]).all()) == is_variational
        assert 0.2 < mask.float().mean() < 0.8


def test_dropout_between_rnn_decoder_layers():
    model = _model(dropout=0.5, decoder_layers=2)
    read = []
    model.decoder.layers[1].register_forward_hook(lambda module, inputs, output: read.append(inputs[0]))
    batch = three_pairs()
    for training, dropped in ((True, True), (False, False)):
        read.clear()
        model.train(training).decode(model.encode(batch.source), batch.target_input)
        assert bool((torch.stack(read) == 0).any()) == dropped


def test_rnn_encoder_normalizes_residual_sums():
    model = _model(encoder_layers=2, layer_norm=True)
    layers = []
    for layer in model.encoder.layers:
        layer.register_forward_hook(lambda module, inputs, output: layers.append((inputs[0], output)))
    features = model.encode(three_pairs().source).features
    (_, first), (between, second) = layers
    assert torch.allclose(between, nn.functional.layer_norm(first, (HIDDEN,)), atol=1e-5)
    assert torch.allclose(features, nn.functional.layer_norm(between + second, (HIDDEN,)), atol=1e-5)


def test_recurrent_gate_weights_are_orthogonal():
    model = _model()
    recurrent = [model.encoder.layers[0].forward_lstm.weight_hh_l0, model.decoder.layers[0].gates.weight[:, HIDDEN:]]
    for weight in recurrent:
        for gate in weight.chunk(4):
            assert torch.allclose(gate.T @ gate, torch.eye(gate.shape[1]), atol=1e-5)


def test_attention_query_is_previous_top_state():
    model = _model(decoder_layers=2).eval()
    queries, tops = [], []
    model.decoder.cross_attention.register_forward_hook(lambda module, inputs, output: queries.append(inputs[0][:, 0]))
    model.decoder.layers[1].register_forward_hook(lambda module, inputs, output: tops.append(output[0]))
    batch = three_pairs()
    memory = model.encode(batch.source)
    model.decode(memory, batch.target_input)
    expected = [model.init_state(memory).layer_states[1][0], *tops[:-1]]
    assert all(torch.equal(query, state) for query, state in zip(queries, expected, strict=True))
