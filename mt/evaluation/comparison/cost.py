"""Costs of a system: parameters, training time and memory, translation speed, and time to a given validation BLEU."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean

from mt.evaluation.systems import Output, Run, System, evenly_spaced
from mt.models.build import build_shapes
from mt.storage.folders import read_description
from mt.translation.trained_model import read_tokenizers
from mt.translation.translator import Translator

ROUNDS = 2
"""How often translation is timed; the best round counts."""


@dataclass(frozen=True)
class Cost:
    """Costs of a system: means over its seeds, but the translation speed is that of its first output. What a model's
    training cost is None where the model comes alone."""

    parameters: int
    updates: float | None = None
    target_tokens: float | None = None
    training_minutes: float | None = None
    target_tokens_per_second: float | None = None
    peak_memory_bytes: float | None = None
    minutes_to_reach: float | None = None
    """Training time until the first validation with at least a given BLEU. None if there is no BLEU that can be
    compared, or if a run never reached it."""
    target_tokens_to_reach: float | None = None
    """The same in target tokens."""
    sentences_per_second_batched: float | None = None
    sentences_per_second_singly: float | None = None


def common_bleu(systems: Sequence[System]) -> float | None:
    """Returns the highest validation BLEU that every run reached, or None if BLEU stayed 0 or there is no run."""
    runs = [run for system in systems for run in system.runs]
    best = (max((line["bleu"] or 0.0 for line in run.validations()), default=0.0) for run in runs)
    return min(best, default=0.0) or None


def budget(systems: Sequence[System]) -> str:
    """Returns a sentence on what the runs were given alike: updates or minutes. Empty if there are fewer than two."""
    settings = [run.config.training for system in systems for run in system.runs]
    if len(settings) < 2:
        return ""
    updates, minutes = ({getattr(one, key) for one in settings} for key in ("max_updates", "minutes"))
    asked = f"training.minutes={settings[0].minutes:g}" if len(minutes) == 1 and settings[0].minutes else None
    if len(updates) == 1:
        chosen = f", for {asked}" if asked else ""
        return f"Equal updates: each run was given {settings[0].max_updates:,}{chosen}."
    if asked:
        return f"Equal minutes: each run was given {asked}, which on its machine came to the updates above."
    return "Neither updates nor minutes are equal."


def same_validation(systems: Sequence[System]) -> bool:
    """Returns whether all runs measured their validation BLEU on the same pairs."""
    runs = [run for system in systems for run in system.runs]
    return len({(str(run.provenance["data"]["valid"]), run.config.training.valid_bleu_pairs) for run in runs}) == 1


def measure_costs(
    systems: Sequence[System],
    sources: Sequence[str],
    reached_bleu: float | None,
    timed_sentences: int,
    device: str,
) -> list[Cost | None]:
    """Returns the cost of each system, None for files.

    Args:
        sources: The test set's sources, of which some are translated to measure the speed.
        reached_bleu: The validation BLEU to which training is measured; None leaves that out.
        timed_sentences: How many sources are translated; 0 leaves the speed out.
    """
    models = [system for system in systems if system.can_translate]
    speeds: Sequence[tuple[float | None, float | None]]
    if timed_sentences:
        speeds = _decoding_speeds([system.first for system in models], evenly_spaced(sources, timed_sentences), device)
    else:
        speeds = [(None, None)] * len(models)
    costs = {system.name: _cost(system, reached_bleu, *speed) for system, speed in zip(models, speeds, strict=True)}
    return [costs.get(system.name) for system in systems]


def _cost(system: System, reached_bleu: float | None, batched: float | None, singly: float | None) -> Cost:
    if not system.runs:
        model, tokenizers = read_description(system.first.origin).model, read_tokenizers(system.first.origin)
        return Cost(
            build_shapes(model, tokenizers).parameter_count,
            sentences_per_second_batched=batched,
            sentences_per_second_singly=singly,
        )
    results = [run.results for run in system.runs]
    first = [_first_reaching(run, reached_bleu) for run in system.runs] if reached_bleu else []
    reached = [line for line in first if line is not None]
    all_reached = len(reached) == len(system.runs)
    return Cost(
        parameters=results[0]["parameters"],
        updates=mean(one["updates"] for one in results),
        target_tokens=mean(one["target_tokens"] for one in results),
        training_minutes=mean(one["training_minutes"] for one in results),
        target_tokens_per_second=mean(
            one["target_tokens"] / max(60 * one["training_minutes"], 1e-9) for one in results
        ),
        peak_memory_bytes=mean(one["peak_memory_bytes"] for one in results),
        minutes_to_reach=mean(line["seconds"] / 60 for line in reached) if all_reached else None,
        target_tokens_to_reach=mean(line["target_tokens"] for line in reached) if all_reached else None,
        sentences_per_second_batched=batched,
        sentences_per_second_singly=singly,
    )


def _first_reaching(run: Run, bleu: float) -> dict | None:
    return next((line for line in run.validations() if (line["bleu"] or 0.0) >= bleu), None)


def _decoding_speeds(outputs: Sequence[Output], sources: Sequence[str], device: str) -> list[tuple[float, float]]:
    """Returns the sentences per second of each model, translated all at once and one at a time.

    The models take turns, and the best of ROUNDS rounds counts, because other load on the machine can only make a round
    slower.
    """
    translators = [Translator.load(output.origin, output.model.decoding, device) for output in outputs if output.model]
    singles = evenly_spaced(sources, max(1, len(sources) // 4))
    fastest = [(0.0, 0.0) for _ in outputs]
    for _ in range(ROUNDS):
        for number, translator in enumerate(translators):
            translator.translate(singles[:2])
            started = time.perf_counter()
            translator.translate(sources)
            batched = len(sources) / (time.perf_counter() - started)
            started = time.perf_counter()
            for line in singles:
                translator.translate([line])
            singly = len(singles) / (time.perf_counter() - started)
            fastest[number] = max(fastest[number][0], batched), max(fastest[number][1], singly)
    return fastest
