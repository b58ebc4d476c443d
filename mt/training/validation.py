"""Validation during training: the loss and the scores of the current weights."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import torch

from mt.config import TrainConfig
from mt.core.device import autocast
from mt.data.batching.batches import evaluation_batches
from mt.data.corpus import evenly_spaced
from mt.distributed.workers import Workers
from mt.metrics.registry import metrics_for
from mt.training.checkpoint import Progress
from mt.training.monitor import Monitor
from mt.training.objective import Objective
from mt.training.preparation import PreparedData
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Validation:
    """The results of one validation."""

    loss: float
    """Cross-entropy in nats per target token, without label smoothing."""
    scores: dict[str, float]
    """Score of each metric by its key."""
    lines: list[tuple[str, str, str]]
    """(source, reference, hypothesis) of each translated pair."""


@dataclass
class Validator:
    """Measures the loss of a model on all validation pairs, and scores on some of them. Each worker's trainer holds
    one."""

    objective: Objective
    data: PreparedData
    config: TrainConfig
    workers: Workers
    precision: torch.dtype

    def __post_init__(self) -> None:
        metrics = metrics_for(self.config.data.target_language)
        decisive = self.config.training.metric
        self.metrics = {key: metric for key, metric in metrics.items() if metric.in_validation or key == decisive}
        self.translator = Translator(
            model=self.objective.model, layer=self.data.layer, config=self.config.decoding, precision=self.precision
        )

    def measure(self, check_signals: Callable[[], None]) -> Validation:
        """Measure the current weights: the loss, and the scores of greedy translations. All workers have to call this.

        Args:
            check_signals: Called after the loss. A single worker also calls it after each batch, but several do not,
                because they may have different numbers of batches. It raises an exception to stop.
        """
        after_batch = check_signals if self.workers.size == 1 else None
        loss = self._loss(after_batch)
        check_signals()
        pairs = evenly_spaced(self.data.corpus.valid, self.config.training.valid_bleu_pairs)
        sources, references = list(pairs["source"]), list(pairs["target"])
        hypotheses = translate_together(self.translator, sources, self.workers, after_batch, greedy=True)
        scores = {
            key: metric.corpus_score(hypotheses, references, sources=sources) for key, metric in self.metrics.items()
        }
        return Validation(loss, scores, list(zip(sources, references, hypotheses, strict=True)))

    def decisive_score(self, validation: Validation) -> float:
        """Return the score of ``training.metric``, the higher the better: TER and the loss change their sign."""
        key = self.config.training.metric
        if key == "loss":
            return -validation.loss
        return validation.scores[key] if self.metrics[key].higher_is_better else -validation.scores[key]

    @torch.inference_mode()
    def _loss(self, after_batch: Callable[[], None] | None) -> float:
        """Return the cross-entropy in nats per target token, over all validation pairs. All workers have to call this
        and compute a share."""
        self.objective.eval()
        total = torch.zeros(2, device=self.workers.device)  # loss and target tokens
        batches = evaluation_batches(self.data.valid, self.config.training.batch_tokens)
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
        logger.info(
            "update %d  validation loss %.3f  %s%s",
            progress.update,
            validation.loss,
            "  ".join(f"{metric.name} {validation.scores[key]:.2f}" for key, metric in self.metrics.items()),
            "  (best)" if best else "",
        )
        position = {name: getattr(progress, name) for name in ("epoch", "target_tokens", "seconds")}
        monitor.record("valid", progress.update, position | {"loss": validation.loss} | validation.scores)
        lines = validation.lines
        samples = [lines[i] for i in sorted({len(lines) * sixth // 6 for sixth in (1, 3, 5)})]
        monitor.show_samples(progress.update, samples)
        monitor.show_attention(progress.update, self.translator.attention(*samples[0][:2]))


def translate_together(
    translator: Translator,
    lines: list[str],
    workers: Workers,
    after_batch: Callable[[], None] | None = None,
    greedy: bool = False,
) -> list[str]:
    """Translate lines with all workers, a share each. Every worker returns all translations, in the order of ``lines``.

    Args:
        translator: The translator of this worker.
        lines: The lines, the same on every worker.
        workers: All of them have to call this.
        after_batch: Called after each batch.
        greedy: Whether to use greedy search instead of the translator's decoding settings.
    """
    own, numbers = workers.share(lines), workers.share(range(len(lines)))
    report = None if after_batch is None else lambda done, total: after_batch()
    return workers.gather(translator.translate(own, numbers, report, greedy=greedy))
