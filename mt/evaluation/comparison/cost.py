"""Measures the costs of a system: parameters, training time and memory, time to a validation BLEU, and speed."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from mt.core.columns import evenly_spaced_rows
from mt.evaluation.systems import Output, System
from mt.translation.translator import Translator

ROUNDS = 2
"""Number of times that translation is timed. The fastest round counts."""


@dataclass(frozen=True)
class Cost:
    """The costs of one system.

    Training costs are means over its seeds, and None for a model without a run. Translation speed is that of the first
    output, and None if it was not measured.
    """

    parameters: int
    updates: float | None = None
    target_tokens: float | None = None
    training_minutes: float | None = None
    target_tokens_per_second: float | None = None
    peak_memory_bytes: float | None = None
    minutes_to_reach: float | None = None
    """Training time until the first validation with at least the BLEU that ``comparable_bleu`` returns. None if that is
    None, or if a run of the system never reached it."""
    target_tokens_to_reach: float | None = None
    """Target tokens until that validation."""
    sentences_per_second_batched: float | None = None
    sentences_per_second_singly: float | None = None

    @property
    def peak_memory_mib(self) -> float | None:
        return self.peak_memory_bytes and self.peak_memory_bytes / 2**20


def comparable_bleu(systems: Sequence[System], requested: float | None) -> float | None:
    """Return the validation BLEU that ends the measurement of each run's training time and target tokens.

    Returns:
        None if there is no run, or if the runs measured validation BLEU on different pairs or with different
        signatures. Otherwise ``requested`` or, without that, the highest BLEU that every run reached; None if it is 0.
    """
    runs = [run for system in systems for run in system.runs]
    measured = {
        (str(run.provenance["data"]["valid"]), run.config.training.valid_bleu_pairs, run.results["bleu_signature"])
        for run in runs
    }
    if len(measured) != 1:
        return None
    best = (max((line["bleu"] or 0.0 for line in run.validations), default=0.0) for run in runs)
    return requested or min(best) or None


def measure_costs(
    systems: Sequence[System],
    sources: Sequence[str],
    reached_bleu: float | None,
    timed_sentences: int,
    device: str,
) -> list[Cost | None]:
    """Translate some sources to measure speed, and return the costs of each system; None for files.

    Args:
        sources: The sources of the test set.
        reached_bleu: The validation BLEU of ``minutes_to_reach`` and ``target_tokens_to_reach``; None leaves them out.
        timed_sentences: The number of sources, evenly spaced, that are translated; 0 leaves the speed out.
        device: The device on which the models translate.
    """
    models = [system.first for system in systems if system.can_translate]
    timed = [sources[row] for row in evenly_spaced_rows(len(sources), timed_sentences)]
    speeds = _decoding_speeds(models, timed, device) if timed else {}
    return [
        Cost(**_training_costs(system, reached_bleu), **speeds.get(system.first.origin, {}))
        if system.can_translate
        else None
        for system in systems
    ]


def _training_costs(system: System, reached_bleu: float | None) -> dict:
    """Return the fields of ``Cost`` except for speed: field → value."""
    runs = system.runs
    if not runs:
        return {"parameters": system.first.parameters}
    results = [run.results for run in runs]
    costs = {
        key: mean(record[key] for record in results)
        for key in ("updates", "target_tokens", "training_minutes", "peak_memory_bytes")
    }
    rates = (record["target_tokens"] / max(60 * record["training_minutes"], 1e-9) for record in results)
    costs |= {"parameters": results[0]["parameters"], "target_tokens_per_second": mean(rates)}
    bleu = math.inf if reached_bleu is None else reached_bleu
    reached = [next((line for line in run.validations if (line["bleu"] or 0.0) >= bleu), None) for run in runs]
    if None not in reached:
        costs["minutes_to_reach"] = mean(line["seconds"] / 60 for line in reached if line)
        costs["target_tokens_to_reach"] = mean(line["target_tokens"] for line in reached if line)
    return costs


def _decoding_speeds(outputs: Sequence[Output], sources: Sequence[str], device: str) -> dict[Path, dict]:
    """Measure the translation speed of each model, in sentences per second.

    The models take turns, and the fastest of ROUNDS rounds counts, because other load on the machine can only slow a
    round down.

    Returns:
        Origin of the output → the two fields of ``Cost`` for speed: all sources in one call (batched), and a quarter of
        them one per call (singly).
    """
    translators = {
        output.origin: Translator.load(output.origin, output.decoding, device, asked=output.asked) for output in outputs
    }
    singles = [sources[row] for row in evenly_spaced_rows(len(sources), max(1, len(sources) // 4))]
    best: dict[Path, dict] = {}
    for origin, translator in [*translators.items()] * ROUNDS:
        translator.translate(singles[:2])
        speeds = {
            "sentences_per_second_batched": _speed(translator, [sources]),
            "sentences_per_second_singly": _speed(translator, [[line] for line in singles]),
        }
        best[origin] = {name: max(speed, best.get(origin, speeds)[name]) for name, speed in speeds.items()}
    return best


def _speed(translator: Translator, batches: Sequence[Sequence[str]]) -> float:
    start = time.perf_counter()
    for batch in batches:
        translator.translate(batch)
    return sum(map(len, batches)) / (time.perf_counter() - start)
