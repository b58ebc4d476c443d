"""Reports on a run in a progress bar, the log, metrics.jsonl and TensorBoard, all with the same numbers."""

import json
import logging
import math
import os
import time
from pathlib import Path
from types import TracebackType

from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from mt.core.terminal import visible
from mt.reporting.heat_map import heat_map
from mt.storage.run_folder import METRICS, TENSORBOARD
from mt.translation.results import SentenceAttention

logger = logging.getLogger(__name__)


class Monitor:
    """Records the numbers of a run (``record``) and shows people how it goes (``show_…``). Use as a context manager."""

    def __init__(self, run: Path, update: int, max_updates: int, metrics_bytes: int) -> None:
        """Opens the files of a run, and cuts off of metrics.jsonl what was written after the last update that counts.

        Args:
            run: The run folder.
            update: How many updates are done.
            max_updates: How many there will be.
            metrics_bytes: The length of metrics.jsonl after these updates.
        """
        self._metrics = (run / METRICS).open("ab")
        self._metrics.truncate(min(metrics_bytes, self._metrics.tell()))
        self._metrics.seek(0, os.SEEK_END)
        self._board = SummaryWriter(str(run / TENSORBOARD), purge_step=update + 1)
        self._bar = tqdm(
            total=max_updates, initial=update, unit="update", dynamic_ncols=True, disable=None, smoothing=0.05
        )
        self._started = time.monotonic()
        self._first_update = update
        self._max_updates = max_updates

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.close()
        self._board.close()
        self._metrics.close()

    def advance(self) -> None:
        """Moves the progress bar on by one update."""
        self._bar.update()

    def record(self, split: str, step: int, values: dict[str, float | int]) -> None:
        """Writes one line of metrics.jsonl, and one TensorBoard point for each value. A value that is not finite is
        null in metrics.jsonl and has no point in TensorBoard."""
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        self._metrics.write(json.dumps({"step": step, "split": split} | finite).encode() + b"\n")
        for name, value in finite.items():
            if value is not None:
                self._board.add_scalar(f"{split}/{name}", value, step)

    def show_training(self, step: int, loss: float, tokens_per_second: float) -> None:
        """Shows the figures beside the progress bar; without a terminal, logs them with the time still needed."""
        if not self._bar.disable:
            self._bar.set_postfix_str(f"loss {loss:.3f}, {tokens_per_second:,.0f} tokens/s")
            return
        each = (time.monotonic() - self._started) / max(1, step - self._first_update)
        minutes = each * (self._max_updates - step) / 60
        logger.info(
            "update %d/%d  loss %.3f  %s target tokens/s  %.1f minutes to go",
            step,
            self._max_updates,
            loss,
            f"{tokens_per_second:,.0f}",
            minutes,
        )

    def show_samples(self, step: int, samples: list[tuple[str, str, str]]) -> None:
        """Shows (source, reference, hypothesis) triples in the log and as TensorBoard text."""
        for source, reference, hypothesis in samples:
            logger.info("    source      %s\n    reference   %s\n    hypothesis  %s\n", source, reference, hypothesis)
        cells = ([visible(text).replace("|", "\\|").replace("\n", " ") for text in sample] for sample in samples)
        rows = "\n".join(f"| {' | '.join(row)} |" for row in cells)
        self._board.add_text("samples", f"| source | reference | hypothesis |\n|---|---|---|\n{rows}", step)

    def show_attention(self, step: int, attention: SentenceAttention) -> None:
        """Adds a heat map of each decoder layer's attention to the source, the mean over its heads, to TensorBoard."""
        for layer, weights in enumerate(attention.cross()):
            figure = heat_map(
                weights.mean(dim=0),
                (attention.source_pieces, attention.target_pieces),
                f"layer {layer}, update {step}",
            )
            self._board.add_figure(f"cross-attention/layer_{layer}", figure, step)

    def show_hyperparameters(self, values: dict[str, object], scores: dict[str, float]) -> None:
        """Adds the run to TensorBoard's table of runs, with its settings and its final scores."""
        plain = {name: value if isinstance(value, str | int | float) else str(value) for name, value in values.items()}
        self._board.add_hparams(plain, {f"final/{name}": value for name, value in scores.items()}, run_name=".")

    def flush(self) -> int:
        """Writes everything recorded so far to the disk. Returns the length of metrics.jsonl."""
        self._metrics.flush()
        os.fsync(self._metrics.fileno())
        self._board.flush()
        return self._metrics.tell()


class NoMonitor(Monitor):
    """A monitor that does nothing, for the workers that leave reporting and writing to the leader."""

    def __init__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def advance(self) -> None:
        pass

    def record(self, split: str, step: int, values: dict[str, float | int]) -> None:
        pass

    def show_training(self, step: int, loss: float, tokens_per_second: float) -> None:
        pass

    def show_samples(self, step: int, samples: list[tuple[str, str, str]]) -> None:
        pass

    def show_attention(self, step: int, attention: SentenceAttention) -> None:
        pass

    def show_hyperparameters(self, values: dict[str, object], scores: dict[str, float]) -> None:
        pass

    def flush(self) -> int:
        return 0
