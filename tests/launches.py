"""Counts what a GPU would be asked to do, on any device."""

from collections import Counter

from torch.utils._python_dispatch import TorchDispatchMode

VIEWS = (
    "view", "transpose", "aten.t.", "expand", "slice", "select", "squeeze", "detach", "alias", "split", "as_strided",
    "permute", "unbind", "flatten", "chunk", "reshape", "empty",
)  # fmt: skip


class Launches(TorchDispatchMode):
    """Counts the operators that are not views: on a GPU, each is about one kernel."""

    def __init__(self):
        super().__init__()
        self.counts = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if not any(view in str(function) for view in VIEWS):
            self.counts[str(function)] += 1
        return function(*args, **(kwargs or {}))
