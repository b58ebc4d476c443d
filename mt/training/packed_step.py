"""Updates on packed rows: forward and backward pass, clipping and optimizer as CUDA graphs.

Every update launches the same kernels on the same addresses. They are one graph for the gradients of a batch, and one
for clipping and the optimizer.
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
"""Calls before the capture, in which libraries allocate their buffers and load their kernels."""

MAX_GRADIENT_DEVIATION = 0.05
"""The norm of the difference between packed and padded gradients, as a share of theirs. In bf16, each of them deviates
by 0.006 to 0.016 from fp32."""
MAX_LOSS_DEVIATION = 0.002
"""The difference between packed and padded loss, as a share."""


def capture(function: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Call a function a few times, and return a function that repeats its last call on a GPU.

    The kernels read and write the same addresses in every call, and random numbers come from the present state of the
    default generator. On a CPU, ``function`` itself is returned and not called.

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
    """Call a function. If it waits for the GPU, raise RuntimeError, which harms less than an error in a capture."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a prototype that does not detect everything, says PyTorch
        torch.cuda.set_sync_debug_mode("error")
    try:
        function()
    finally:
        torch.cuda.set_sync_debug_mode("default")


def has_packed_kernels(device: torch.device, precision: torch.dtype) -> bool:
    """Return whether updates can be computed on packed rows: with Triton, on a CUDA GPU with bf16."""
    return device.type == "cuda" and precision == torch.bfloat16 and has_triton(device)


@dataclass
class PackedStep:
    """Makes updates on packed rows. The updater holds one."""

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
        """The sum of the losses of an update's batches on this worker, and the norm of the gradient before clipping."""
        self.is_prepared = False
        self.deviations: tuple[float, float] | None = None
        """The deviations of loss and gradient from those of padded batches, as shares; None before ``prepare``."""
        self._add: Callable[[], None] = partial(self._add_gradients, self._inputs)
        self._finish = self._clip_and_step
        self._buffers: list[Tensor] = []
        """The tables that the graphs read. A model may replace its own by larger ones."""

    def prepare(self, batch: PackedBatch) -> str | None:
        """Compare loss and gradients of a batch with those of padded batches, and capture the graphs.

        The weights and the state of the optimizer stay as they are.

        Returns:
            The reason why packed rows cannot be used on this machine; None if they can.

        Raises:
            RunError: The GPU no longer works after this.
        """
        self.is_prepared = True
        device = self.workers.device
        try:
            reason = self._deviation(batch)
            self._enabled.fill_(False)
            if reason is None:
                self._add = capture(self._add, device)
                self._finish = capture(self._clip_and_step, device)
            self._buffers = list(self.objective.buffers())
        except Exception as error:  # whatever a driver, a compiler or the memory of a card lacks
            reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        self.objective.train()
        try:
            torch._foreach_zero_(self.stacks.gradients)
            self.optimizer.zero_grad()
            self._enabled.fill_(True)
        except RuntimeError as error:  # a kernel's invalid access ends all use of the GPU
            raise RunError(f"packed batches do not work on this GPU; set training.batching=padded: {reason}") from error
        return reason

    def update(self, batches: Sequence[PackedBatch], target_tokens: int) -> None:
        """Make one update on the mean loss per target token, and set ``loss`` and ``norm``. All workers have to call
        this.

        The weights stay as they are if the norm is not finite.

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
        self.optimizer.exchange()

    def _add_gradients(self, batch: PackedBatch) -> None:
        leaves = self.stacks.leaves()
        output = OutputLayer(*self.transformer.use(leaves))
        source, target, labels = batch.unpack()

        def once() -> Tensor:
            return self._features(source, target)

        loss = self.objective.loss(once, lambda: (once(), once()), labels.long(), output)
        gradients = torch.autograd.grad(loss * self._scale, leaves)
        torch._foreach_add_(self.stacks.gradients, gradients)
        self.loss += loss.detach()

    def _clip_and_step(self) -> None:
        for parameter, gradient in self.stacks.parameter_gradients:
            parameter.grad = gradient
        self.norm.copy_(self.optimizer.clip_and_step(self.clip_norm, self._enabled))
        torch._foreach_zero_(self.stacks.gradients)

    def _deviation(self, batch: PackedBatch) -> str | None:
        """Return how loss and gradients of a batch, without dropout, differ from those of padded batches; None if only
        by rounding."""
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
        of_loss = ((self.loss - padded_loss) / padded_loss).abs().item()
        of_gradient = (get_total_norm(torch._foreach_sub(packed, padded)) / get_total_norm(padded)).item()
        self.deviations = of_loss, of_gradient
        if of_loss <= MAX_LOSS_DEVIATION and of_gradient <= MAX_GRADIENT_DEVIATION:
            return None
        return f"the loss differs by {of_loss:.2g} and the gradient by {of_gradient:.2g} of those of padded batches"
