"""Validation during training, and the monitor of a run: progress bar, log, metrics.jsonl and TensorBoard."""

import json
import logging
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import datasets
import torch
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from mt.config import TrainConfig
from mt.core.device import autocast
from mt.core.errors import visible
from mt.data.batching.batches import evaluation_batches
from mt.data.corpus import evenly_spaced_pairs
from mt.distributed.workers import Workers
from mt.metrics.metric import TextMetric
from mt.metrics.registry import metrics_for
from mt.storage.run_folder import METRICS_LOG, TENSORBOARD
from mt.training.checkpoint import Progress
from mt.training.hints import collapse_hint, log_hints
from mt.training.objective import Objective
from mt.training.preparation import PreparedData
from mt.translation.results import SentenceAttention
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

TranslatedLines = list[tuple[str, str, str]]
"""(source, reference, hypothesis) of each translated pair."""


class Monitor:
    """Records and shows the progress of a run. The main process opens one as a context manager."""

    def __init__(self, run: Path, progress: Progress, max_updates: int) -> None:
        """Open metrics.jsonl and TensorBoard, and remove the records after the checkpoint.

        Args:
            run: The run folder.
            progress: The progress at the checkpoint to resume from.
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
        """Advance the progress bar by one update."""
        self._bar.update()

    def record(self, split: str, update: int, values: dict[str, float | int]) -> None:
        """Write one line of metrics.jsonl, and one TensorBoard point for each value.

        A non-finite value is null in metrics.jsonl and has no point in TensorBoard.

        Args:
            split: train, valid or test.
            update: The number of updates done.
            values: The values by name.
        """
        finite = {name: value if math.isfinite(value) else None for name, value in values.items()}
        self._metrics.write(json.dumps({"step": update, "split": split} | finite).encode() + b"\n")
        for name, value in finite.items():
            if value is not None:
                self._board.add_scalar(f"{split}/{name}", value, update)

    def record_training(self, progress: Progress, loss: float, learning_rate: float, gradient_norm: float) -> None:
        """Record and show the loss and speed of the interval that ends with the last update.

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
        """Show loss and speed beside the progress bar. Without a terminal, log them with the remaining time."""
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

    def show_samples(self, update: int, samples: TranslatedLines) -> None:
        """Log translated lines, and add them to TensorBoard as a table."""
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
        for layer, weights in enumerate(attention.cross_attention(), 1):
            figure = heat_map(
                weights.mean(dim=0),
                (attention.source_tokens, attention.target_tokens),
                f"layer {layer}, update {update}",
            )
            self._board.add_figure(f"cross-attention/layer_{layer}", figure, update)

    def flush(self) -> int:
        """Write all records to the disk. Return the length of metrics.jsonl in bytes."""
        self._metrics.flush()
        os.fsync(self._metrics.fileno())
        self._board.flush()
        return self._metrics.tell()


class Validation(NamedTuple):
    """The results of one validation."""

    scores: dict[str, float]
    """The loss (cross-entropy in nats per target token, without label smoothing) and the metrics' scores by key. Named
    validation sets have keys such as ``news.bleu``, and the first set also has plain keys. Several directions have keys
    such as ``en-fr.bleu``, and their means have plain keys."""
    lines: TranslatedLines


@dataclass
class Validator:
    """Measures the loss of a model on all validation pairs, and scores on a sample of them. Each worker's trainer holds
    one."""

    objective: Objective
    data: PreparedData
    config: TrainConfig
    workers: Workers
    precision: torch.dtype
    has_warned: bool = False
    """Whether the hint on collapse was logged, which happens only once."""

    def __post_init__(self) -> None:
        self.translators = {
            direction: Translator(
                model=self.objective.model, layer=layer, config=self.config.decoding, precision=self.precision
            )
            for direction, layer in self.data.layers.items()
        }
        self.metrics = self._metrics(self.config.data.target_language)

    def _metrics(self, language: str) -> dict[str, TextMetric]:
        early_stopping_metric = self.config.training.metric.rpartition(".")[2]
        metrics = metrics_for(language)
        return {key: metric for key, metric in metrics.items() if metric.in_validation or key == early_stopping_metric}

    def measure(self, check_signals: Callable[[], None]) -> Validation:
        """Measure the loss of the current weights, and the scores of greedy translations. All workers have to call
        this.

        Args:
            check_signals: Raises an exception to stop. It is called after the loss. A single worker also calls it after
                each batch; several workers do not, because they may have different numbers of batches.
        """
        after_batch = check_signals if self.workers.size == 1 else None
        by_prefix: dict[str, dict[str, float]] = {}
        lines: TranslatedLines = []
        for direction, part in self.data.corpus.split_by_direction().items():
            translator, metrics = self.translators[direction], self._metrics(direction.target)
            for prefix, set_pairs in part.validation_sets().items():
                scores = {"loss": self._loss(self.data.valid[prefix], after_batch)}
                check_signals()
                pairs = evenly_spaced_pairs(
                    set_pairs, max(1, self.config.training.valid_bleu_pairs // len(self.data.valid))
                )
                sources, references = list(pairs["source"]), list(pairs["target"])
                hypotheses = translate_together(translator, sources, self.workers, after_batch, greedy=True)
                scores |= {key: metric.corpus_score(hypotheses, references) for key, metric in metrics.items()}
                by_prefix[prefix] = scores
                lines += zip(sources, references, hypotheses, strict=True)
        sets = list(by_prefix.values())
        means = sets[0] if len(self.translators) == 1 else {key: mean(s[key] for s in sets) for key in sets[0]}
        prefixed = {prefix + key: value for prefix, scores in by_prefix.items() for key, value in scores.items()}
        return Validation(means | prefixed, lines)

    def early_stopping_scores(self, validation: Validation) -> tuple[float, float, float]:
        """Return the score of the early-stopping metric (``training.metric``), and chrF2 and loss of the same set for
        ties.

        Higher scores are better: TER and the loss are negated.
        """
        name, dot, key = self.config.training.metric.rpartition(".")
        score, chrf, loss = (validation.scores[f"{name}{dot}{part}"] for part in (key, "chrf", "loss"))
        return score if key != "loss" and self.metrics[key].higher_is_better else -score, chrf, loss

    @torch.inference_mode()
    def _loss(self, pairs: datasets.Dataset, after_batch: Callable[[], None] | None) -> float:
        """Return the cross-entropy in nats per target token, over encoded pairs. All workers have to call this and
        compute a share."""
        self.objective.eval()
        total = torch.zeros(2, device=self.workers.device)  # loss and target tokens
        batches = evaluation_batches(pairs, self.config.training.batch_tokens)
        for batch in islice(batches, self.workers.rank, None, self.workers.size):
            with autocast(self.workers.device, self.precision):
                total[0] += self.objective(batch.to(self.workers.device))
            total[1] += batch.target_tokens
            if after_batch:
                after_batch()
        self.objective.train()
        loss, tokens = self.workers.sum(total).tolist()
        return loss / tokens

    def show(self, validation: Validation, best: bool, progress: Progress, monitor: Monitor) -> None:
        """Log a validation, and record it in metrics.jsonl and TensorBoard, with three samples and an attention map.

        Args:
            validation: The results.
            best: Whether the weights are the best so far.
            progress: The progress at the validation.
            monitor: The monitor of the run.
        """
        scores = validation.scores
        means = {"": "mean "} if len(self.translators) > 1 else {}
        for prefix, name in ({prefix: prefix for prefix in self.data.valid} | means).items():
            logger.info(
                "update %d  validation %sloss %.3f  %s%s",
                progress.update,
                name,
                scores[prefix + "loss"],
                "  ".join(f"{metric.name} {scores[prefix + key]:.2f}" for key, metric in self.metrics.items()),
                "  (best)" if best else "",
            )
        _, references, hypotheses = zip(*validation.lines, strict=True)
        hint = collapse_hint(hypotheses, references, self.metrics["chrf"])
        if hint and not self.has_warned:
            log_hints(hint)
            self.has_warned = True
        position = {name: getattr(progress, name) for name in ("epoch", "target_tokens", "seconds")}
        monitor.record("valid", progress.update, position | scores)
        lines = validation.lines
        samples = [lines[i] for i in sorted({len(lines) * sixth // 6 for sixth in (1, 3, 5)})]
        monitor.show_samples(progress.update, samples)
        first = (lines if means else samples)[0]  # a line of the first direction
        translator = next(iter(self.translators.values()))
        monitor.show_attention(progress.update, translator.attention(*first[:2]))


def translate_together(
    translator: Translator,
    lines: list[str],
    workers: Workers,
    after_batch: Callable[[], None] | None = None,
    greedy: bool = False,
) -> list[str]:
    """Translate lines with all workers, one share each. Every worker returns all translations, in the order of
    ``lines``.

    Args:
        translator: The translator of this worker.
        lines: The lines, the same on every worker.
        workers: All of them have to call this.
        after_batch: Called after each batch.
        greedy: Whether to use greedy search instead of the translator's decoding settings.
    """
    share, numbers = workers.share(lines), workers.share(range(len(lines)))
    report = None if after_batch is None else lambda done, total: after_batch()
    return workers.gather(translator.translate(share, numbers, report, greedy=greedy))
