"""A bidirectional LSTM encoder and an LSTM decoder with attention (Bahdanau et al. 2015).

Shapes: B sentences, K hypotheses per sentence, N = B·K hypotheses, S source and T target positions. Sizes: E
of embeddings, H of LSTM states, A of the space in which attention compares queries with keys, D of features.
"""

from contextlib import nullcontext
from typing import cast

import torch
from torch import Tensor, nn

from mt.config import RNNAttentionConfig
from mt.core.device import recurrent_layers_need_fp32
from mt.models.attention import AdditiveAttention, DotAttention, SingleHeadAttention, mask_bias
from mt.models.embedding import TokenEmbedding, output_layer, token_embeddings
from mt.models.layers import Dropout, Linear, SharedDropout, initialize
from mt.models.seq2seq import Memory, Seq2Seq, State
from mt.tokenizer.tokenizer import PAD


def reversed_positions(is_token: Tensor) -> Tensor:
    """Return indices (B, S) that reverse the tokens of each sentence, and keep the padding at the end.

    Args:
        is_token: (B, S), False for padding.
    """
    lengths = is_token.sum(dim=1, keepdim=True)
    positions = torch.arange(is_token.shape[1], device=is_token.device).expand_as(is_token)
    return torch.where(positions < lengths, lengths - 1 - positions, positions)


class BidirectionalLSTM(nn.Module):
    """An encoder layer: a forward and a backward LSTM of H / 2 units each.

    The backward LSTM reads the reversed tokens, with the padding at the end, so padding affects neither LSTM.
    """

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.forward_lstm = nn.LSTM(width, hidden // 2, batch_first=True)
        self.backward_lstm = nn.LSTM(width, hidden // 2, batch_first=True)
        for lstm in (self.forward_lstm, self.backward_lstm):
            initialize_gates(lstm.get_parameter("weight_ih_l0"), width, lstm.get_parameter("bias_ih_l0"))
            initialize_gates(lstm.get_parameter("weight_hh_l0"), recurrent_from=0)
            nn.init.zeros_(lstm.get_parameter("bias_hh_l0"))

    def forward(self, x: Tensor, reversal: Tensor) -> Tensor:
        """Return the concatenated states of both directions (B, S, H).

        Args:
            x: Input vectors (B, S, ·).
            reversal: The indices (B, S) of ``reversed_positions``.
        """
        in_fp32 = recurrent_layers_need_fp32(x.device)
        with torch.autocast(x.device.type, enabled=False) if in_fp32 else nullcontext():
            x = x.float() if in_fp32 else x
            forward, _ = self.forward_lstm(x)
            backward, _ = self.backward_lstm(_gather_positions(x, reversal))
        return torch.cat([forward, _gather_positions(backward, reversal)], dim=-1)


def _gather_positions(x: Tensor, positions: Tensor) -> Tensor:
    return x.gather(1, positions[:, :, None].expand_as(x))


def initialize_gates(weight: Tensor, recurrent_from: int, bias: Tensor | None = None) -> None:
    """Initialize the weight and the bias of an LSTM in place, gate by gate.

    Columns that multiply the previous state become orthogonal; the others are drawn after Glorot & Bengio (2010).
    The bias becomes 1 for the forget gate, so that training begins with a long memory (Jozefowicz et al. 2015), and 0
    for the other gates.

    Args:
        weight: (4H, ·), with the gates in PyTorch's order; the forget gate is the second.
        recurrent_from: Index of the first column that multiplies the previous state.
        bias: (4H,), or None.
    """
    for gate in weight.detach().chunk(4):
        if recurrent_from > 0:
            nn.init.xavier_uniform_(gate[:, :recurrent_from])
        if recurrent_from < gate.shape[1]:
            nn.init.orthogonal_(gate[:, recurrent_from:])
    if bias is not None:
        nn.init.zeros_(bias)
        bias.detach().chunk(4)[1].fill_(1.0)


class RNNEncoder(nn.Module):
    """Token embedding and a stack of bidirectional LSTM layers."""

    def __init__(self, config: RNNAttentionConfig, tokens: TokenEmbedding) -> None:
        super().__init__()
        widths = [config.width, *[config.hidden] * (config.encoder_layers - 1)]
        self.tokens = tokens
        self.layers = nn.ModuleList(BidirectionalLSTM(width, config.hidden) for width in widths)
        self.norms = nn.ModuleList(_build_norm(config, config.hidden) for _ in widths)
        self.dropout = _build_dropout(config)
        self.residual = config.residual

    def forward(self, source: Tensor) -> Tensor:
        """Encode source tokens (B, S) as features (B, S, H)."""
        reversal = reversed_positions(source != PAD)
        x = self.dropout(self.tokens(source))
        for depth, (layer, norm) in enumerate(zip(self.layers, self.norms, strict=True)):
            y = layer(x, reversal)
            x = self.dropout(norm(x + y if self.residual and depth else y))
        return x


LayerState = tuple[Tensor, ...]
"""Hidden state h and cell c of one decoder layer, both (N, H)."""


class LSTMCell(nn.Module):
    """One step of one LSTM layer (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000)."""

    def __init__(self, width: int, hidden: int, bias: bool) -> None:
        super().__init__()
        self.hidden = hidden
        self.gates = Linear(width + hidden, 4 * hidden, bias=bias)
        initialize_gates(self.gates.weight, width, self.gates.bias)

    def forward(self, x: Tensor, before: LayerState, extra_gates: Tensor | None = None) -> LayerState:
        """Return the state after one input.

        Args:
            x: The input (N, ·).
            before: The previous state.
            extra_gates: Values (N, 4H) that are added to the gates before their activation functions.
        """
        hidden, cell = before
        gates = self.gates(torch.cat([x, hidden.to(x.dtype)], dim=-1)).float()
        gates = gates if extra_gates is None else gates + extra_gates
        input_gate, forget_gate, candidate, output_gate = gates.chunk(4, dim=-1)
        cell = forget_gate.sigmoid() * cell + input_gate.sigmoid() * candidate.tanh()
        return output_gate.sigmoid() * cell.tanh(), cell


ATTENTIONS: dict[str, type[SingleHeadAttention]] = {"additive": AdditiveAttention, "dot": DotAttention}
"""Value of ``model.attention`` → class of the attention."""


class RNNDecoder(nn.Module):
    """LSTM decoder with attention to the source.

    At step i, attention with the top layer's state sᵢ₋₁ as query gives the context cᵢ. The new state is
    sᵢ = LSTM([yᵢ₋₁; cᵢ], sᵢ₋₁), and the next token is predicted from [sᵢ; cᵢ; yᵢ₋₁], or from sᵢ alone if there is no
    readout layer. With residual connections, the prediction uses the sum of all layers' states instead of sᵢ.
    """

    def __init__(self, config: RNNAttentionConfig, tokens: TokenEmbedding) -> None:
        super().__init__()
        hidden = config.hidden
        self.tokens = tokens
        self.first_state = Linear(hidden, 2 * hidden * config.decoder_layers)
        self.cross_attention = ATTENTIONS[config.attention](hidden, hidden, config.width)
        self.from_embedding = Linear(config.width, 4 * hidden)
        layers = [LSTMCell(hidden, hidden, bias=depth > 0) for depth in range(config.decoder_layers)]
        self.layers = cast("list[LSTMCell]", nn.ModuleList(layers))
        self.readout = Linear(2 * hidden + config.width, config.width) if config.readout else None
        self.norm = _build_norm(config, config.width if config.readout else hidden)
        self.dropout = _build_dropout(config)
        self.residual = config.residual
        initialize(self.first_state, *filter(None, [self.readout]))
        initialize_gates(self.from_embedding.weight, config.width, self.from_embedding.bias)

    def init_state(self, memory: Memory) -> State:
        """Return the state before the first token, with one hypothesis per sentence.

        It holds h₀ and c₀ of each layer, and for the attention, keys (B, S, A), values (B, S, H) and bias (B, 1, S).
        h₀ = tanh(W_s [→h_S; ←h₁]), as in appendix A.2.2 but from both directions, and c₀ has the same form.
        """
        features, mask = memory.features, memory.mask
        last = features[torch.arange(len(mask), device=mask.device), mask.sum(dim=1) - 1]  # (B, H)
        half = features.shape[-1] // 2
        ends = torch.cat([last[:, :half], features[:, 0, half:]], dim=-1)
        parts = self.first_state(ends).float().tanh().chunk(2 * len(self.layers), dim=-1)
        keys = self.cross_attention.key(features)
        bias = mask_bias(mask, torch.float32)[:, None]
        layers = list(zip(parts[::2], parts[1::2], strict=True))
        return State(len(mask), layers, [(keys, features.to(keys.dtype))], bias)

    def forward(self, target: Tensor, state: State) -> tuple[Tensor, State]:
        """Read the next tokens (N, T). Return features (N, T, D), which predict the token after each, and the state."""
        embedded = self.dropout(self.tokens(target))  # (N, T, E)
        # unbind splits all steps at once. Indexing them one by one would create T gradients (N, T, 4H) of mostly zeros.
        from_embedding = self.from_embedding(embedded).unbind(dim=1)  # T of (N, 4H)
        masks: list[Tensor] = []  # (N, T, H) for the output of each layer except the top one
        if self.training:
            masks = [self.dropout(embedded.new_ones(*target.shape, layer.hidden)) for layer in self.layers[:-1]]
        layers = list(state.layer_states)
        ((keys, values),) = state.memory
        outputs: list[Tensor] = []
        contexts: list[Tensor] = []
        attended: list[tuple[Tensor, Tensor]] = []
        for step in range(target.shape[1]):
            hidden, _ = layers[-1]
            query = hidden.view(len(keys), -1, hidden.shape[-1])  # (B, K, H)
            context, weights, scores = self.cross_attention(query, keys, values, state.padding)
            context = context.flatten(0, 1)  # (N, H)
            output, layers = self._step(context, layers, from_embedding[step], [mask[:, step] for mask in masks])
            outputs.append(output)
            contexts.append(context)
            attended.append((weights, scores))
        if (recorder := self.cross_attention.active_recorder()) is not None:
            weights, scores = (torch.cat(steps, dim=1)[:, None] for steps in zip(*attended, strict=True))
            recorder.record(weights, scores)
        features = torch.stack(outputs, dim=1)  # (N, T, H)
        if self.readout is not None:
            parts = [features.to(embedded.dtype), torch.stack(contexts, dim=1).to(embedded.dtype), embedded]
            features = self.readout(torch.cat(parts, dim=-1)).tanh()
        return self.dropout(self.norm(features)), state._replace(layer_states=layers)

    def _step(
        self, context: Tensor, before: list[LayerState], from_embedding: Tensor, masks: list[Tensor]
    ) -> tuple[Tensor, list[LayerState]]:
        """Run one step through all layers.

        Args:
            context: The attention's context (N, H).
            before: The previous state of each layer.
            from_embedding: The contribution (N, 4H) of the last token's embedding to the gates of the first layer.
            masks: Dropout masks (N, H) for the input of each layer except the first; empty without dropout.

        Returns:
            The output (N, H) and the new state (h, c) of each layer. The output is the top layer's h or, with residual
            connections, the sum of all layers' h.
        """
        first, *others = self.layers
        after = [first(context, before[0], from_embedding)]
        output, _ = after[0]
        for depth, layer in enumerate(others, 1):
            below = output * masks[depth - 1] if masks else output
            after.append(layer(below, before[depth]))
            hidden, _ = after[-1]
            output = output + hidden if self.residual else hidden
        return output, after


class RNNAttention(Seq2Seq):
    """The attention LSTM: encoder, decoder, token embeddings and output layer.

    With ``config.tie_embeddings``, the output layer has the same weight as the target embedding and, if the vocabulary
    is joint, as the source embedding.
    """

    def __init__(
        self, config: RNNAttentionConfig, source_vocabulary: int, target_vocabulary: int, joint_vocabulary: bool
    ) -> None:
        super().__init__()
        shared = joint_vocabulary and config.tie_embeddings
        source_tokens, target_tokens = token_embeddings(source_vocabulary, target_vocabulary, config.width, shared)
        self.encoder = RNNEncoder(config, source_tokens)
        self.decoder = RNNDecoder(config, target_tokens)
        width = config.width if config.readout else config.hidden
        self.output = output_layer(width, target_vocabulary, target_tokens if config.tie_embeddings else None)


def _build_norm(config: RNNAttentionConfig, width: int) -> nn.Module:
    return nn.LayerNorm(width) if config.layer_norm else nn.Identity()


def _build_dropout(config: RNNAttentionConfig) -> Dropout:
    return SharedDropout(config.dropout) if config.variational_dropout else Dropout(config.dropout)
