"""Translates the test set with the compared models, all with the same search settings."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from tqdm import tqdm

from mt.config import DecodingConfig
from mt.config.fields import MachineConfig
from mt.core.device import choose_device, limit_kernel_caches
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.storage.weights import checksum, weights_of
from mt.text.line import Line
from mt.training.provenance import precision_of
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

LINES_PER_STEP = 512
"""Lines between two updates of the progress bar. Fewer lines would not fill the batches."""


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
            lines = [Line(number=number).with_written(text, markup) for number, text in part]
            hypotheses += translator.translate(lines)
            bar.update(len(lines))
    return hypotheses


def with_translations(evaluation: EvaluationSet, systems: Sequence[System], device: str) -> list[System]:
    """Translate the test set with every model that has no hypotheses yet, and return copies of the systems with them.

    All these models use the search settings of the first run or, without a run, of the first model; only
    ``max_source_length`` stays each model's own. They compute in the precision of the first run's test translations, or
    in fp32 if that run translates anew itself.

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
    precision = _precision(example, device)
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


def _precision(output: Output, device: str) -> str:
    """Return the precision of a run's test translations.

    It is fp32 if the output is no run, if its run has not translated the test set, or if the device lacks the
    precision.
    """
    recorded = precision_of(output.run.provenance["starts"][-1]) if output.run and output.hypotheses else "fp32"
    known = ("fp32", "bf16") if choose_device(device).type == "cpu" else ("fp32", "bf16", "fp16")
    return str(recorded) if recorded in known else "fp32"
