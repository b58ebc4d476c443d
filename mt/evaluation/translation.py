"""Lets the compared models translate a test set that they have not translated yet, all by the same search."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from tqdm import tqdm

from mt.config import DecodingConfig
from mt.core.device import choose_device
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.storage.weights import checksum, weights_of
from mt.training.provenance import precision_of
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)

LINES_AT_ONCE = 512
"""The progress bar moves after so many lines. Fewer would not fill the batches."""


def translated(translator: Translator, sources: Sequence[str], name: str) -> list[str]:
    """Returns the translation of each source, and shows the progress under a name."""
    found: list[str] = []
    with tqdm(total=len(sources), desc=name, unit=" lines", disable=None, leave=False) as bar:
        for start in range(0, len(sources), LINES_AT_ONCE):
            part = sources[start : start + LINES_AT_ONCE]
            found += translator.translate(part, range(start, start + len(part)))
            bar.update(len(part))
    return found


def with_translations(evaluation: EvaluationSet, systems: Sequence[System], device: str) -> list[System]:
    """Returns the systems with all translations.

    Runs whose test set is compared on have translated it when they were scored. Models that come alone translate it as
    the first of these runs did: by its search, in its number format. On a test set of the user's own, every model
    searches as the first run does or, if there is none, as the first model does. The settings of each output then say
    how it was translated.

    Args:
        evaluation: The test set.
        systems: The systems, as ``open_systems`` returns them.
        device: Where the models translate.
    """
    missing = [output for system in systems for output in system.outputs if output.model and not output.hypotheses]
    if not missing:
        return list(systems)
    outputs = [output for system in systems for output in system.outputs if output.model]
    example = next((output for output in outputs if output.run), outputs[0])
    assert example.model and evaluation.sources is not None
    search = example.run.config.decoding if example.run else example.model.decoding
    precision = _precision_of(example, device)
    logger.info(
        "%s translate%s the test set of %s sentences: beam of %d, length penalty %g, %s",
        " and ".join(str(output.origin) for output in missing),
        "s" if len(missing) == 1 else "",
        f"{len(evaluation.references):,}",
        search.beam_size,
        search.length_penalty,
        precision,
    )
    return [
        replace(
            system,
            outputs=[
                _translated_by(output, evaluation.sources, search, device, precision) if output in missing else output
                for output in system.outputs
            ],
        )
        for system in systems
    ]


def _translated_by(
    output: Output, sources: Sequence[str], search: DecodingConfig, device: str, precision: str
) -> Output:
    assert output.model
    # How long the parts are that lines are cut into depends on what a model can read.
    own = search.model_copy(update={"max_source_length": output.model.decoding.max_source_length})
    translator = Translator.load(output.origin, own, device, precision)
    hypotheses = translated(translator, sources, str(output.origin))
    model = output.model.model_copy(update={"decoding": own})
    if output.run is None:
        return replace(output, hypotheses=hypotheses, model=model, weights=checksum(weights_of(translator.model)))
    config = output.run.config.model_copy(update={"decoding": own})
    return replace(output, hypotheses=hypotheses, model=model, run=replace(output.run, config=config))


def _precision_of(output: Output, device: str) -> str:
    """Returns the number format that a run's test set was translated in, if it is recorded and this device has it;
    otherwise fp32."""
    recorded = precision_of(output.run.provenance) if output.run and output.hypotheses else "fp32"
    known = ("fp32", "bf16") if choose_device(device).type == "cpu" else ("fp32", "bf16", "fp16")
    return str(recorded) if recorded in known else "fp32"
