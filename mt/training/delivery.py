"""The end of a run: writes the weights that it delivers, its translations of the test set and their scores."""

import dataclasses
import logging
import math
import time
from collections.abc import Iterator
from pathlib import Path

from mt.device import peak_memory_bytes
from mt.errors import InputError
from mt.files import make_folder, write_atomically
from mt.installation import as_typed_here
from mt.json_file import is_number, read_json, write_json
from mt.run_folder import PROVENANCE, RESULTS, SCORED, TENSORBOARD, WEIGHTS, flat_config
from mt.scoring import corpus_scores
from mt.training.advice import advice_on_score
from mt.training.checkpoint import average_weights, checkpoint_folders
from mt.training.replication import unsharded
from mt.training.trainer import Trainer
from mt.training.validation import translate_together, translator_of
from mt.weights import checksum, load_weights, read_tensors, weights_of, write_tensors
from mt.word_counts import write_word_counts

# fmt: off
SHOWN = (
    "bleu", "bleu_signature", "chrf", "chrf_signature", "ter", "ter_signature",
    "parameters", "updates", "best_update", "training_minutes", "target_tokens",
)
# fmt: on

logger = logging.getLogger(__name__)


def deliver(trainer: Trainer) -> None:
    """Writes the weights that the run delivers, translates the test set with them and writes the scores."""
    with unsharded(trainer.replica):
        averaged = len(_settle_weights(trainer)) if trainer.workers.is_leader else 0
        trainer.workers.barrier()
        load_weights(trainer.model, trainer.config.model, trainer.run / WEIGHTS)
        _translate_and_score(trainer, averaged)


def _settle_weights(trainer: Trainer) -> list[Path]:
    """Writes the weights that the run delivers. Returns the checkpoints whose mean they are; an empty
    list if they are no mean."""
    settings = trainer.config.training
    if settings.weights == "last":
        write_tensors(trainer.run / WEIGHTS, weights_of(trainer.model), trainer.belonging)
    elif settings.weights == "average":
        folders = [
            checkpoint_folders(trainer.run)[update] for update in trainer.scheduled_checkpoints()[-settings.average :]
        ]
        if len(folders) < settings.average:  # the run stopped early
            logger.warning(
                "the run stopped early: the weights are the mean of its %d checkpoints, not of training.average=%d",
                len(folders),
                settings.average,
            )
        write_tensors(trainer.run / WEIGHTS, average_weights(folders), trainer.belonging)
        return folders
    if settings.weights == "best":
        # Written again, because an earlier version may have written them without recording what belongs to them.
        write_tensors(trainer.run / WEIGHTS, read_tensors(trainer.run / WEIGHTS), trainer.belonging)
    return []


def _translate_and_score(trainer: Trainer, averaged: int) -> None:
    workers = trainer.workers
    test = trainer.data.corpus.test
    sources, references = list(test["source"]), list(test["target"])
    logger.info("translating %s test sentences", f"{len(sources):,}")
    started = time.perf_counter()
    translator = translator_of(
        trainer.objective, trainer.data, trainer.config, trainer.config.decoding, trainer.precision
    )
    hypotheses = translate_together(translator, sources, workers)
    seconds = time.perf_counter() - started
    if workers.is_leader:
        _write_results(trainer, sources, references, hypotheses, seconds, averaged)
    workers.barrier()


def _write_results(
    trainer: Trainer,
    sources: list[str],
    references: list[str],
    hypotheses: list[str],
    seconds: float,
    averaged: int,
) -> None:
    settings, progress = trainer.config.training, trainer.progress
    scores = corpus_scores(hypotheses, references, trainer.config.data.target_language)
    folder = trainer.run / SCORED
    make_folder(folder)
    for name, lines in (("source", sources), ("reference", references), ("hypothesis", hypotheses)):
        write_atomically(folder / f"test.{name}", "".join(f"{line}\n" for line in lines))
    write_word_counts(trainer.run, _targets(trainer), trainer.config.data.target_language)
    provenance = read_json(trainer.run / PROVENANCE)
    provenance["weights_sha256"] = checksum(weights_of(trainer.model))
    write_json(trainer.run / PROVENANCE, provenance)
    results = dataclasses.asdict(scores) | {
        "test_pairs": len(sources),
        "decoding_sentences_per_second": len(sources) / seconds,
        "parameters": trainer.model.parameter_count,
        "weights": settings.weights,
        "averaged_checkpoints": averaged or None,
        "best_valid_score": progress.best_score if math.isfinite(progress.best_score or 0.0) else None,
        "best_update": progress.best_update,
        "updates": progress.update,
        "max_updates": settings.max_updates,
        "stopped_early": progress.update < settings.max_updates,
        "source_tokens": progress.source_tokens,
        "target_tokens": progress.target_tokens,
        "training_minutes": progress.seconds / 60,
        "peak_memory_bytes": peak_memory_bytes(trainer.device),
    }
    with trainer.monitor() as monitor:
        final = {"bleu": scores.bleu, "chrf": scores.chrf, "ter": scores.ter}
        monitor.record("test", progress.update, final)
        monitor.show_hyperparameters(flat_config(trainer.config), final)
        monitor.flush()
    write_json(trainer.run / RESULTS, results)
    show_results(trainer.run)


def _targets(trainer: Trainer) -> Iterator[str]:
    """Yields the targets of the training pairs, which are read from the disk in batches."""
    for batch in trainer.data.train.select_columns(["target"]).iter(batch_size=10_000):
        yield from batch["target"]


def show_results(run: Path) -> None:
    """Logs the results of a finished run. Raises InputError if its results.json is damaged."""
    results = read_json(run / RESULTS, *SHOWN)
    signatures = {name for name in SHOWN if name.endswith("_signature")}
    if wrong := [name for name in SHOWN if name not in signatures and not is_number(results[name])]:
        raise InputError(f"{run / RESULTS}: damaged or of another version: {', '.join(wrong)}")
    rows = [
        ("test BLEU", f"{results['bleu']:.2f}", results["bleu_signature"]),
        ("test chrF2", f"{results['chrf']:.2f}", results["chrf_signature"]),
        ("test TER", f"{results['ter']:.2f}", results["ter_signature"]),
        ("parameters", f"{results['parameters']:,}", ""),
        ("updates", f"{results['updates']:,}", f"best on validation at {results['best_update']:,}"),
        ("training", f"{results['training_minutes']:.1f} min", f"{results['target_tokens']:,} target tokens"),
        ("model", str(run / WEIGHTS), as_typed_here(f"translate with: python translate.py run={run}")),
        ("scored lines", str(run / SCORED), ""),
        ("curves", str(run / TENSORBOARD), f"watch with: tensorboard --logdir {run.parent}"),
    ]
    width = max(len(value) for _, value, _ in rows)
    logger.info("\n%s", "\n".join(f"  {name:<14}{value:<{width}}  {note}".rstrip() for name, value, note in rows))
    if advice := advice_on_score(results["bleu"], results["chrf"]):
        logger.warning("%s", advice)
