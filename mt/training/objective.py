"""A model together with its training loss, and its distribution over the workers."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from mt.config import TrainingConfig
from mt.data.batching import Batch, collate
from mt.distributed.replication import replicate, shard
from mt.distributed.workers import Workers
from mt.models.embedding import cut_embeddings
from mt.models.seq2seq import Seq2Seq
from mt.text.subwords.tokenizer import EOS
from mt.training.losses import CrossEntropy, Loss, OutputLayer, projected_loss, r_drop, simcut


class Objective(nn.Module):
    """A model together with its training loss, as one module. The trainer holds one.

    Its ``forward`` computes the loss of a batch, because data-parallel wrappers hook only ``forward``.
    """

    def __init__(self, model: Seq2Seq, settings: TrainingConfig) -> None:
        super().__init__()
        self.model = model
        self.settings = settings
        self._training_features = torch.compile(self._features, dynamic=True) if settings.compile else self._features

    def forward(self, batch: Batch) -> Tensor:
        """Return the loss of a batch, summed over its target tokens without padding (``batch.target_tokens``).

        In evaluation mode, the loss is the cross-entropy without label smoothing.
        """
        features = self._training_features if self.training else self._features
        gold = batch.target_output.flatten().index_select(0, batch.target_positions)  # (R,)
        output = OutputLayer(self.model.output_weight, self.model.output_bias)
        # Every row has its own dropout mask, so one pass over the doubled batch suffices, and is faster than two.
        return self.loss(lambda: features(batch), lambda: features(batch.twice()).chunk(2), gold, output)

    def loss(
        self, once: Callable[[], Tensor], twice: Callable[[], Sequence[Tensor]], gold: Tensor, output: OutputLayer
    ) -> Tensor:
        """Return the loss, summed over R target tokens.

        Args:
            once: Computes decoder features (R, D).
            twice: Computes them twice, with different dropout masks.
            gold: The ids of the subwords to predict (R,). A row with PAD has no loss.
            output: The output layer.
        """
        settings = self.settings
        smoothing, alpha = settings.label_smoothing, settings.consistency
        loss: Loss
        if not self.training:
            loss, features = CrossEntropy(0.0), [once()]
        elif settings.objective == "r_drop":
            loss, features = r_drop(smoothing, alpha), [*twice()]
        elif settings.objective == "simcut":
            loss, features = simcut(smoothing, alpha), [once()]
            with cut_embeddings(self.model, settings.cutoff):
                features.append(once())
        else:
            loss, features = CrossEntropy(smoothing), [once()]
        return projected_loss(loss, output, gold, *features)

    def _features(self, batch: Batch) -> Tensor:
        """Return the decoder features (R, D) of the R target tokens that are not padding."""
        features = self.model.decode(self.model.encode(batch.source), batch.target_input)  # (B, T, D)
        return features.flatten(0, 1).index_select(0, batch.target_positions)


def data_parallel(objective: Objective, workers: Workers, precision: torch.dtype) -> nn.Module:
    """Wrap an objective for data-parallel training: sharded (FSDP2) with ``training.shard``, else replicated (DDP).

    Args:
        objective: The objective of this worker, on its device.
        workers: All of them have to call this.
        precision: The number format of the forward pass.
    """
    if objective.settings.shard:
        return shard(objective, objective.model.blocks, workers)
    example = collate([0, 1], [[EOS] * 2] * 2, [[EOS] * 2] * 2).to(workers.device)
    return replicate(objective, example, workers, precision)
