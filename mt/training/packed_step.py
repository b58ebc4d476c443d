"""Train steps on packed batches: forward and backward pass, clipping and optimizer as CUDA graphs.

Every step launches the same kernels on the same addresses: one graph for the gradients of a batch, and one for clipping
and the optimizer.
"""

import gc
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from mt.core.device import autocast, has_triton
from mt.core.errors import RunError
from mt.data.batching.batch import PackedBatch, PackedShape
from mt.data.samples import SAMPLES
from mt.distributed.workers import Workers
from mt.models.packed_transformer import PackedTransformer
from mt.models.transformer import Transformer
from mt.training.objective import Objective, OutputLayer
from mt.training.optimizer import Optimizer

WARM_UP_CALLS = 3
"""Number of calls before the capture, in which libraries allocate buffers and load kernels."""

MAX_GRADIENT_DEVIATION = 0.05
"""Maximum norm of the difference between packed and padded gradients, relative to the norm of the padded ones. In bf16,
each of them deviates by 0.006 to 0.016 from fp32."""
MAX_LOSS_DEVIATION = 0.002
"""Maximum relative difference between packed and padded loss."""


def capture_graph(function: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Capture a function as a CUDA graph after a few warm-up calls. Return a function that replays the graph.

    Each replay reads and writes the same addresses, and draws random numbers from the current state of the default
    generator. On a CPU, ``function`` itself is returned and not called.

    Args:
        function: Must not wait for the GPU, and launch the same kernels in each call.
        device: The device of its tensors.
    """
    if device.type != "cuda":
        return function
    stream, graph = torch.cuda.Stream(device), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):  # a capture that fails does not restore the stream by itself
        for _ in range(WARM_UP_CALLS):
            function()
        _call_without_waiting(function)
        gc.collect()  # tensors that are freed during the capture would break it
        # thread_local: meanwhile, the thread that prepares batches pins memory.
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
            function()
    return graph.replay


def _call_without_waiting(function: Callable[[], None]) -> None:
    """Call a function, and raise RuntimeError if it waits for the GPU, which would break a capture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch warns that this mode is a prototype
        torch.cuda.set_sync_debug_mode("error")
    try:
        function()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def has_packed_kernels(device: torch.device, precision: torch.dtype) -> bool:
    """Return whether packed batches can be computed: on a CUDA GPU with bf16 and Triton."""
    return device.type == "cuda" and precision == torch.bfloat16 and has_triton(device)


@dataclass
class PackedStep:
    """Makes train steps on packed batches. The updater holds one."""

    objective: Objective
    """The objective of a Transformer."""
    optimizer: Optimizer
    """Its optimizer; ``capturable`` on a GPU."""
    clip_norm: float
    """The maximum norm of the gradient."""
    workers: Workers
    precision: torch.dtype
    """The number format of matrix products."""
    shape: PackedShape
    """The shape of the batches."""

    def __post_init__(self) -> None:
        """Copy the parameters into stacks, and allocate the tensors that the graphs read and write."""
        model, device = self.objective.model, self.workers.device
        assert isinstance(model, Transformer)
        self.transformer = PackedTransformer(model, self.precision)
        self.stacks = self.transformer.stacks
        self._features = self.transformer.features
        if self.objective.settings.compile:
            self._features = torch.compile(self._features, dynamic=False)
        rows = torch.zeros(sum(self.shape.sizes), dtype=torch.int32, device=device)
        self._inputs = PackedBatch(SAMPLES.empty_table(), rows, self.shape, 0, 0)
        self._scale = torch.zeros((), device=device)
        self._enabled = torch.zeros((), dtype=torch.bool, device=device)
        self.loss, self.norm = torch.zeros((), device=device), torch.zeros((), device=device)
        """The loss of the last step, summed over this worker's batches, and the norm of its gradient before
        clipping."""
        self.is_prepared = False
        self.deviations: tuple[float, float] | None = None
        """The relative deviations of loss and gradient from those of padded batches; None before ``prepare``."""
        self._add: Callable[[], None] = partial(self._add_gradients, self._inputs)
        self._finish = self._clip_and_step
        self._buffers: list[Tensor] = []
        """References to the tables that the graphs read, because a model may replace them by larger ones."""

    def prepare(self, batch: PackedBatch) -> str | None:
        """Compare loss and gradients of a batch with those of padded batches, and capture the graphs.

        Weights and optimizer state do not change.

        Returns:
            The reason why packed batches cannot be used on this machine; None if they can.

        Raises:
            RunError: A kernel failed in a way that makes the GPU unusable for this process.
        """
        self.is_prepared = True
        device = self.workers.device
        try:
            reason = self._deviation(batch)
            self._enabled.fill_(False)
            if reason is None:
                self._add = capture_graph(self._add, device)
                self._finish = capture_graph(self._clip_and_step, device)
            self._buffers = list(self.objective.buffers())
        except Exception as error:  # drivers, compilers and memory can fail in many ways
            reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        self.objective.train()
        try:
            torch._foreach_zero_(self.stacks.gradients)
            self.optimizer.zero_grad()
            self._enabled.fill_(True)
        except RuntimeError as error:  # a kernel's invalid access ends all use of the GPU
            raise RunError(f"packed batches do not work on this GPU; set training.batching=padded: {reason}") from error
        return reason

    def train_step(self, batches: Sequence[PackedBatch], target_tokens: int) -> None:
        """Make one train step on the mean loss per target token, and set ``loss`` and ``norm``. All workers have to
        call this.

        The weights do not change if the norm is not finite.

        Args:
            batches: This worker's batches, in CPU memory.
            target_tokens: Target tokens of the update, over all workers.
        """
        self._scale.fill_(1 / target_tokens)
        self.loss.zero_()
        for batch in batches:
            if batch.shape != self.shape:
                self._add_gradients(batch.to(self.workers.device))
                continue
            self._inputs.rows.copy_(batch.rows, non_blocking=True)
            self._add()
        for gradient in self.stacks.gradients:
            self.workers.sum(gradient)
        self._finish()
        self.optimizer.broadcast_shares()

    def _add_gradients(self, batch: PackedBatch) -> None:
        """Add the gradients of a batch, times ``_scale``, to the stacked gradients, and its loss to ``loss``."""
        stacked = self.stacks.stacked_parameters()
        output = OutputLayer(*self.transformer.use(stacked))
        source, target, labels = batch.unpack()

        def predict() -> Tensor:
            return self._features(source, target)

        loss = self.objective.loss(predict, lambda: (predict(), predict()), labels.long(), output)
        gradients = torch.autograd.grad(loss * self._scale, stacked)
        torch._foreach_add_(self.stacks.gradients, gradients)
        self.loss += loss.detach()

    def _clip_and_step(self) -> None:
        for parameter, gradient in self.stacks.parameter_gradients:
            parameter.grad = gradient
        self.norm.copy_(self.optimizer.clip_and_step(self.clip_norm, self._enabled))
        torch._foreach_zero_(self.stacks.gradients)

    def _deviation(self, batch: PackedBatch) -> str | None:
        """Compare loss and gradients of a batch, without dropout, with those of padded batches, and set ``deviations``.

        Returns:
            A description of the deviations; None if they are rounding errors.
        """
        objective, device = self.objective, self.workers.device
        if not batch.target_tokens:
            return None
        objective.eval()
        self._scale.fill_(1 / batch.target_tokens)
        self.loss.zero_()
        self._add_gradients(batch.to(device))
        padded_loss = torch.zeros((), device=device)
        for part in batch.to_padded(self.shape.target):
            with autocast(device, self.precision):
                loss = objective(part.to(device))
            (loss * self._scale).backward()
            padded_loss += loss.detach()
        padded: list = [parameter.grad for parameter, _ in self.stacks.parameter_gradients]
        packed = [gradient for _, gradient in self.stacks.parameter_gradients]
        loss_deviation = ((self.loss - padded_loss) / padded_loss).abs().item()
        gradient_deviation = (get_total_norm(torch._foreach_sub(packed, padded)) / get_total_norm(padded)).item()
        self.deviations = loss_deviation, gradient_deviation
        if loss_deviation <= MAX_LOSS_DEVIATION and gradient_deviation <= MAX_GRADIENT_DEVIATION:
            return None
        return (
            f"the loss differs by {loss_deviation:.2g} and the gradient by {gradient_deviation:.2g}, relative to "
            "padded batches"
        )
