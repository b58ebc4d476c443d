"""Translates the test set with the compared models, all with the same search settings, and measures their costs:
parameters, training time and memory, time to a validation BLEU, and speed."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Literal

import torch
from tqdm import tqdm

from mt.config import DecodingConfig, MachineConfig
from mt.core.columns import evenly_spaced_rows
from mt.core.device import choose_device, limit_kernel_caches
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.storage.weights import checksum, weights_of
from mt.text.line import Line
from mt.training.provenance import precision_of
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

LINES_PER_STEP = 512
"""Lines between two updates of the progress bar. Fewer lines would not fill the batches."""

ROUNDS = 2
"""Number of times that translation is timed. The fastest round counts."""


def prepare_device(config: MachineConfig) -> None:
    """Limit PyTorch's memory for kernels, and set its number of CPU threads unless ``config.threads`` is 0.

    Raises:
        InputError: This machine has no such device.
    """
    limit_kernel_caches()
    if config.threads:
        torch.set_num_threads(config.threads)
    choose_device(config.device)


def translate_with_progress(
    translator: Translator, sources: Sequence[str], name: str, markup: Literal["html"] | None = None
) -> list[str]:
    """Return the translation of each source, in order. Show a progress bar.

    Args:
        name: The label of the progress bar.
        markup: The kind of tags in the sources; None for plain text.
    """
    hypotheses: list[str] = []
    with tqdm(total=len(sources), desc=name, unit=" lines", disable=None, leave=False) as bar:
        for start in range(0, len(sources), LINES_PER_STEP):
            part = enumerate(sources[start : start + LINES_PER_STEP], start)
            lines = [Line(number=number).with_text(text, markup) for number, text in part]
            hypotheses += translator.translate(lines)
            bar.update(len(lines))
    return hypotheses


def with_translations(evaluation: EvaluationSet, systems: Sequence[System], device: str) -> list[System]:
    """Translate the test set with every model that has no hypotheses yet, and return copies of the systems with them.

    All these models use the search settings of the first run or, without a run, of the first model; only
    ``max_source_length`` stays each model's own. They compute in the precision of the first run's test translations, or
    in fp32 if there is none or the device lacks that precision.

    Args:
        evaluation: The test set.
        systems: The systems, as ``open_systems`` returns them.
        device: The device on which the models translate.
    """
    models = [output for system in systems for output in system.outputs if output.model]
    missing = [output for output in models if not output.hypotheses]
    if not missing:
        return list(systems)
    example = next((output for output in models if output.run), models[0])
    assert example.decoding and evaluation.sources is not None
    search = example.decoding
    recorded = precision_of(example.run.provenance["starts"][-1]) if example.run and example.hypotheses else "fp32"
    known = ("fp32", "bf16") if choose_device(device).type == "cpu" else ("fp32", "bf16", "fp16")
    precision = str(recorded) if recorded in known else "fp32"
    logger.info("translating the test set with the search settings of %s", example.origin)

    def with_hypotheses(output: Output) -> Output:
        assert output.decoding
        # Every model cuts lines at its own length.
        own_length = {"max_source_length": output.decoding.max_source_length}
        decoding = DecodingConfig.model_validate(search.model_dump() | own_length)
        translator = Translator.load(output.origin, decoding, device, precision, asked=output.asked)
        hypotheses = translate_with_progress(translator, evaluation.sources or [], str(output.origin))
        weights = None if output.run else checksum(weights_of(translator.model))
        parameters = translator.model.parameter_count
        return replace(output, hypotheses=hypotheses, decoding=decoding, parameters=parameters, weights=weights)

    return [
        replace(
            system,
            outputs=[with_hypotheses(output) if output in missing else output for output in system.outputs],
        )
        for system in systems
    ]


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
