"""A function as a CUDA graph: its kernels are launched once, and then replayed without Python."""

import gc
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
    stream = torch.cuda.Stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        for _ in range(WARM_UP_CALLS):
            function()
    torch.cuda.current_stream(device).wait_stream(stream)
    torch.cuda.synchronize(device)
    gc.collect()  # tensors that are freed during the capture would break it
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        function()
    return graph.replay
