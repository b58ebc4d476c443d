"""The progress bar, the log, metrics.jsonl and TensorBoard of a run, all with the same numbers."""

import json
import logging
import math
import os
import time
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from mt.core.terminal import visible
from mt.storage.run_folder import METRICS_LOG, TENSORBOARD
from mt.training.checkpoint import Progress
from mt.translation.results import SentenceAttention

logger = logging.getLogger(__name__)


class Monitor:
    """Records the numbers of a run and shows its progress to the user. The leader opens one as a context manager."""

    def __init__(self, run: Path, progress: Progress, max_updates: int) -> None:
        """Open the files of a run, and cut them back to its progress."""
        self._metrics = (run / METRICS_LOG).open("ab")
        self._metrics.truncate(min(progress.metrics_bytes, self._metrics.tell()))
        self._metrics.seek(0, os.SEEK_END)
        self._board = SummaryWriter(str(run / TENSORBOARD), purge_step=progress.update + 1)
        self._bar = tqdm(
            total=max_updates, initial=progress.update, unit="update", dynamic_ncols=True, disable=None, smoothing=0.05
        )
        self._started = time.monotonic()
        self._first_update = progress.update
        self._max_updates = max_updates

    def __enter__(self) -> "Monitor":
        return self

    def __exit__(self, *exception: object) -> None:
        self._bar.close()
        self._board.close()
        self._metrics.close()

    def advance(self) -> None:
        """Move the progress bar on by one update."""
        self._bar.update()

    def record(self, split: str, step: int, values: dict[str, float | int]) -> None:
        """Write one line of metrics.jsonl, and one TensorBoard point for each value.

        A value that is not finite is null in metrics.jsonl and has no point in TensorBoard.
        """
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        self._metrics.write(json.dumps({"step": step, "split": split} | finite).encode() + b"\n")
        for name, value in finite.items():
            if value is not None:
                self._board.add_scalar(f"{split}/{name}", value, step)

    def record_training(self, progress: Progress, loss: float, learning_rate: float, gradient_norm: float) -> None:
        """Record and show the means of the interval that ends with the last update."""
        speed = progress.interval_target_tokens / progress.interval_seconds
        values = {
            "epoch": progress.epoch,
            "loss": loss,
            "learning_rate": learning_rate,
            "gradient_norm": gradient_norm,
            "target_tokens_per_second": speed,
            "padding_share": 1 - progress.interval_target_tokens / progress.interval_padded_tokens,
            "source_tokens": progress.source_tokens,
            "target_tokens": progress.target_tokens,
            "bad_updates": progress.bad_updates,
            "seconds": progress.seconds,
        }
        self.record("train", progress.update, values)
        self.show_training(progress.update, loss, speed)

    def show_training(self, step: int, loss: float, tokens_per_second: float) -> None:
        """Show the figures next to the progress bar; without a terminal, log them with the remaining time."""
        if not self._bar.disable:
            self._bar.set_postfix_str(f"loss {loss:.3f}, {tokens_per_second:,.0f} tokens/s")
            return
        seconds_per_update = (time.monotonic() - self._started) / max(1, step - self._first_update)
        logger.info(
            "update %d/%d  loss %.3f  %s target tokens/s  %.1f minutes to go",
            step,
            self._max_updates,
            loss,
            f"{tokens_per_second:,.0f}",
            seconds_per_update * (self._max_updates - step) / 60,
        )

    def show_samples(self, step: int, samples: list[tuple[str, str, str]]) -> None:
        """Show (source, reference, hypothesis) triples in the log and as TensorBoard text."""
        for source, reference, hypothesis in samples:
            logger.info("    source      %s\n    reference   %s\n    hypothesis  %s\n", source, reference, hypothesis)
        cells = ([visible(text).replace("|", "\\|").replace("\n", " ") for text in sample] for sample in samples)
        rows = "\n".join(f"| {' | '.join(row)} |" for row in cells)
        self._board.add_text("samples", f"| source | reference | hypothesis |\n|---|---|---|\n{rows}", step)

    def show_attention(self, step: int, attention: SentenceAttention) -> None:
        """Add a heat map of each decoder layer's attention to the source, the mean over its heads, to TensorBoard."""
        try:
            from mt.reporting.heat_map import heat_map
        except ModuleNotFoundError:  # matplotlib is optional
            logger.info("no attention maps in TensorBoard: matplotlib is not installed (mt-trainer[reports])")
            return
        for layer, weights in enumerate(attention.cross()):
            figure = heat_map(
                weights.mean(dim=0),
                (attention.source_tokens, attention.target_tokens),
                f"layer {layer}, update {step}",
            )
            self._board.add_figure(f"cross-attention/layer_{layer}", figure, step)

    def show_hyperparameters(self, values: dict[str, object], scores: dict[str, float]) -> None:
        """Add the run to TensorBoard's table of runs, with its settings and its final scores."""
        plain = {name: value if isinstance(value, str | int | float) else str(value) for name, value in values.items()}
        self._board.add_hparams(plain, {f"final/{name}": value for name, value in scores.items()}, run_name=".")

    def flush(self) -> int:
        """Write everything recorded so far to the disk. Return the length of metrics.jsonl."""
        self._metrics.flush()
        os.fsync(self._metrics.fileno())
        self._board.flush()
        return self._metrics.tell()
