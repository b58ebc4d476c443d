"""Measuring the weights on the validation pairs, and showing what was found."""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import torch

from mt.config import DecodingConfig, TrainConfig
from mt.core.device import autocast
from mt.data.batching import evaluation_batches
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
    """What was found of the weights at one time."""

    loss: float
    """Cross-entropy in nats a target token, without label smoothing."""
    scores: dict[str, float]
    """By the key of the metric."""
    sources: list[str]
    references: list[str]
    hypotheses: list[str]


class Validator:
    """Measures a model that is being trained: its loss on all validation pairs, BLEU and chrF on some of them."""

    def __init__(
        self,
        objective: Objective,
        data: PreparedData,
        config: TrainConfig,
        workers: Workers,
        precision: torch.dtype,
    ) -> None:
        self.objective = objective
        self.data = data
        self.config = config
        self.workers = workers
        self.precision = precision
        metrics = metrics_for(config.data.target_language)
        self.metrics = {key: metric for key, metric in metrics.items() if metric.in_validation}
        self.translator = translator_of(objective, data, config, config.decoding, precision)

    @torch.inference_mode()
    def loss(self, after_batch: Callable[[], None]) -> float:
        """Returns the cross-entropy in nats a target token, over the validation pairs of all workers.

        Args:
            after_batch: Is called after each batch and may raise, to stop.
        """
        self.objective.eval()
        total = torch.zeros(2, device=self.workers.device)  # loss and target tokens
        batches = evaluation_batches(self.data.valid, self.config.training.batch_tokens)
        for batch in islice(batches, self.workers.rank, None, self.workers.size):
            with autocast(self.workers.device, self.precision):
                total[0] += self.objective(batch.to(self.workers.device))
            total[1] += batch.target_tokens
            after_batch()
        self.objective.train()
        loss, tokens = self.workers.sum(total).tolist()
        return loss / tokens

    def translations(self, loss: float, after_batch: Callable[[], None]) -> Validation:
        """Translates some of the validation pairs greedily, and returns everything that was found.

        Args:
            loss: What ``loss`` returned for the same weights.
            after_batch: Is called after each batch and may raise, to stop.
        """
        pairs = evenly_spaced(self.data.corpus.valid, self.config.training.valid_bleu_pairs)
        sources, references = list(pairs["source"]), list(pairs["target"])
        hypotheses = translate_together(self.translator, sources, self.workers, after_batch, greedy=True)
        scores = {key: metric.corpus_score(hypotheses, references, sources) for key, metric in self.metrics.items()}
        return Validation(loss, scores, sources, references, hypotheses)

    def show(self, found: Validation, best: bool, progress: Progress, monitor: Monitor) -> None:
        """Logs and records the loss and the scores, three sample translations, and the attention map of one of them."""
        logger.info(
            "update %d  validation loss %.3f  %s%s",
            progress.update,
            found.loss,
            "  ".join(f"{metric.name} {found.scores[key]:.2f}" for key, metric in self.metrics.items()),
            "  (best)" if best else "",
        )
        values = {
            "epoch": progress.epoch,
            "loss": found.loss,
            **found.scores,
            "target_tokens": progress.target_tokens,
            "seconds": progress.seconds,
        }
        monitor.record("valid", progress.update, values)
        count = len(found.sources)
        samples = sorted({count // 6, count // 2, count * 5 // 6})
        monitor.show_samples(
            progress.update, [(found.sources[i], found.references[i], found.hypotheses[i]) for i in samples]
        )
        attention = self.translator.attention(found.sources[samples[0]], found.references[samples[0]])
        monitor.show_attention(progress.update, attention)


def translator_of(
    objective: Objective, data: PreparedData, config: TrainConfig, decoding: DecodingConfig, precision: torch.dtype
) -> Translator:
    """Returns a translator that always has the weights that the model has by then."""
    return Translator(objective.model, data.layer, decoding, precision)


def translate_together(
    translator: Translator,
    lines: list[str],
    workers: Workers,
    after_batch: Callable[[], None] | None = None,
    greedy: bool = False,
) -> list[str]:
    """Returns the translations of all lines on every worker. Each translates its share."""
    own, numbers = workers.share(lines), workers.share(range(len(lines)))
    report = None if after_batch is None else lambda done, total: after_batch()
    return workers.gather(translator.translate(own, numbers, report, greedy=greedy))
