"""What the fork server of tests/preloaded.py imports, once for all commands.

Without garbage collections, which take a quarter of the time of imports. The commands' own collections leave out what
is shared with the server, which each command would otherwise copy.
"""

import gc
import os

gc.disable()
os.register_at_fork(after_in_child=gc.enable)

from importlib import import_module  # noqa: E402

from matplotlib.figure import Figure  # noqa: E402

from mt.reporting import figures  # noqa: E402

for name in (
    "mt.cli.main", "mt.training.command", "mt.training.validation", "mt.translation.command",
    "mt.evaluation.comparison.command", "mt.data.cleaning.command", "mt.evaluation.robustness.command",
    "mt.serving.command", "datasets", "torch._dynamo", "torch.utils.tensorboard", "matplotlib.pyplot",
    "sacrebleu.tokenizers.tokenizer_13a", "sacrebleu.tokenizers.tokenizer_ter",
):  # fmt: skip
    import_module(name)
figures.heat_map = lambda *what: Figure(figsize=(1, 1))  # as in conftest.py
gc.freeze()
