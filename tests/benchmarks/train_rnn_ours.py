"""Our training step of the LSTM with additive attention."""

from collections.abc import Callable

from torch import Tensor

from mt.distributed.workers import Workers
from mt.models.rnn import RNNAttention
from tests.benchmarks import task
from tests.benchmarks.train_ours import ALONE, step_of


def make_step(precision: str, workers: Workers = ALONE) -> Callable[[Tensor, Tensor], None]:
    """A training step on source (B, S) and target (B, T+1) ids, of which each worker takes a share."""
    model = RNNAttention(task.RNN, task.VOCABULARY, task.VOCABULARY, joint_vocabulary=True)
    return step_of(model, precision, workers)
