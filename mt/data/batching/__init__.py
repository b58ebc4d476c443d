"""Makes batches of encoded pairs: a plan for each epoch, samples of the pairs, padded tensors."""

from mt.data.batching.batch import Batch, collate, empty_batch
from mt.data.batching.batches import TrainingBatches, evaluation_batches
from mt.data.batching.samples import BatchSettings

__all__ = ["Batch", "BatchSettings", "TrainingBatches", "collate", "empty_batch", "evaluation_batches"]
