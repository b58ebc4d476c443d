"""Make batches of encoded pairs: plan an epoch, draw samples of its pairs, and pad them to tensors."""

from mt.data.batching.batch import Batch, collate, empty_batch
from mt.data.batching.batches import TrainingBatches, evaluation_batches
from mt.data.batching.samples import BatchSettings

__all__ = ["Batch", "BatchSettings", "TrainingBatches", "collate", "empty_batch", "evaluation_batches"]
