"""The progress bar, the log, metrics.jsonl and TensorBoard of a run, all with the same figures."""

import json
import logging
import math
import os
import time
from pathlib import Path

from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from mt.core.wording import visible
from mt.storage.run_folder import METRICS_LOG, TENSORBOARD
from mt.training.checkpoint import Progress
from mt.translation.results import SentenceAttention

logger = logging.getLogger(__name__)


class Monitor:
    """Records the figures of a run and shows its progress to the user. The leader opens one as a context manager."""

    def __init__(self, run: Path, progress: Progress, max_updates: int) -> None:
        """Open metrics.jsonl and TensorBoard, and remove all records after the checkpoint.

        Args:
            run: The run folder.
            progress: The progress at the checkpoint that the run resumes from.
            max_updates: The length of the run, for the progress bar.
        """
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

    def record(self, split: str, update: int, values: dict[str, float | int]) -> None:
        """Write one line of metrics.jsonl, and one TensorBoard point for each value.

        A value that is not finite is null in metrics.jsonl and has no point in TensorBoard.

        Args:
            split: train, valid or test.
            update: The number of updates done.
            values: The figures by name.
        """
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        self._metrics.write(json.dumps({"step": update, "split": split} | finite).encode() + b"\n")
        for name, value in finite.items():
            if value is not None:
                self._board.add_scalar(f"{split}/{name}", value, update)

    def record_training(self, progress: Progress, loss: float, learning_rate: float, gradient_norm: float) -> None:
        """Record and show the figures of the interval that ends with the last update.

        Args:
            progress: The progress, with the sums of the interval.
            loss: Mean loss per target token in the interval.
            learning_rate: Learning rate of the last update.
            gradient_norm: Norm of the last update's gradient before clipping.
        """
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

    def show_training(self, update: int, loss: float, tokens_per_second: float) -> None:
        """Show the figures beside the progress bar. Without a terminal, log them with the remaining time instead."""
        if not self._bar.disable:
            self._bar.set_postfix_str(f"loss {loss:.3f}, {tokens_per_second:,.0f} tokens/s")
            return
        seconds_per_update = (time.monotonic() - self._started) / max(1, update - self._first_update)
        logger.info(
            "update %d/%d  loss %.3f  %s target tokens/s  %.1f minutes to go",
            update,
            self._max_updates,
            loss,
            f"{tokens_per_second:,.0f}",
            seconds_per_update * (self._max_updates - update) / 60,
        )

    def show_samples(self, update: int, samples: list[tuple[str, str, str]]) -> None:
        """Log (source, reference, hypothesis) triples, and add them to TensorBoard as a table."""
        for source, reference, hypothesis in samples:
            logger.info("    source      %s\n    reference   %s\n    hypothesis  %s\n", source, reference, hypothesis)
        cells = ([visible(text).replace("|", "\\|").replace("\n", " ") for text in sample] for sample in samples)
        rows = "\n".join(f"| {' | '.join(row)} |" for row in cells)
        self._board.add_text("samples", f"| source | reference | hypothesis |\n|---|---|---|\n{rows}", update)

    def show_attention(self, update: int, attention: SentenceAttention) -> None:
        """Add heat maps of a sentence pair's cross-attention to TensorBoard, one per decoder layer, the mean of its
        heads."""
        try:
            from mt.reporting.figures import heat_map
        except ModuleNotFoundError:  # matplotlib is optional
            logger.info("no attention maps in TensorBoard: matplotlib is missing; install mt-trainer[reports]")
            return
        for layer, weights in enumerate(attention.cross(), 1):
            figure = heat_map(
                weights.mean(dim=0),
                (attention.source_tokens, attention.target_tokens),
                f"layer {layer}, update {update}",
            )
            self._board.add_figure(f"cross-attention/layer_{layer}", figure, update)

    def flush(self) -> int:
        """Write everything recorded so far to the disk. Return the length of metrics.jsonl in bytes."""
        self._metrics.flush()
        os.fsync(self._metrics.fileno())
        self._board.flush()
        return self._metrics.tell()
