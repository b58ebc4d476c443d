"""A function as a CUDA graph: its kernels are launched once, and then replayed without Python."""

import gc
import warnings
from collections.abc import Callable

import torch

WARM_UP_CALLS = 3
"""Calls before the capture, in which libraries allocate their buffers and load their kernels."""


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
