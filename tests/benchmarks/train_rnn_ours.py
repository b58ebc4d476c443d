"""Our training step of the LSTM with additive attention."""

from collections.abc import Callable

from torch import Tensor

from mt.model.rnn import RNNAttention
from tests.benchmarks import task
from tests.benchmarks.train_ours import step_of


def make_step(precision: str) -> Callable[[Tensor, Tensor], None]:
    """A training step on source (B, S) and target (B, T+1) ids."""
    return step_of(RNNAttention(task.RNN, task.VOCABULARY, task.VOCABULARY, joint_vocabulary=True), precision)
