"""Reads results.json of a finished run: the scores on the test set, and the cost of training and translation."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from mt.core.errors import damaged_file, wrong_keys
from mt.core.json_file import is_number, read_json
from mt.storage.run_folder import RESTORE_OR_SCORE_AGAIN, RESULTS

SIGNATURE_SUFFIX = "_signature"
"""The key of a metric and this suffix are the key of the metric's signature."""
INITIAL_BLEU = "initial_bleu"
"""The key of BLEU before fine-tuning."""


class _ConfidenceFigures(BaseModel):
    """The figures of the confidence on the test set; see ``mt.training.confidence.measure_confidence``."""

    model_config = ConfigDict(strict=True)

    pairs: int
    calibration_error: FiniteFloat
    roc_area: FiniteFloat | None
    score_roc_area: FiniteFloat | None


class _Results(BaseModel):
    """The values that every results.json must have, so that commands can read them. Further values are permitted."""

    model_config = ConfigDict(strict=True, extra="allow")

    bleu: FiniteFloat
    bleu_signature: str
    chrf: FiniteFloat
    test_pairs: int
    parameters: FiniteFloat
    updates: FiniteFloat
    best_update: FiniteFloat
    target_tokens: FiniteFloat
    training_minutes: FiniteFloat
    peak_memory_bytes: FiniteFloat
    confidence: _ConfidenceFigures | None = None
    initial_bleu: FiniteFloat | None = None


def read_results(run: Path) -> dict:
    """Return the content of a run's results.json.

    Raises:
        InputError: The file is damaged, lacks a required value, or has a score that is no number.
    """
    results = read_json(run / RESULTS, remedy=RESTORE_OR_SCORE_AGAIN)
    wrong = []
    try:
        _Results.model_validate(results)
    except ValidationError as error:
        wrong = [str(mistake["loc"][0]) for mistake in error.errors()]
    for metric in _metrics(results):
        if not is_number(results.get(metric)):
            wrong.append(metric)
    if wrong:
        raise damaged_file(run / RESULTS, wrong_keys(wrong), RESTORE_OR_SCORE_AGAIN)
    return results


def scores_with_signatures(results: dict) -> dict[str, tuple[float, str]]:
    """Return key of a metric → its score on the test set and its signature, for all metrics in a results.json.

    A metric that the project got after the run was scored is missing.
    """
    return {metric: (results[metric], str(results[metric + SIGNATURE_SUFFIX])) for metric in _metrics(results)}


def _metrics(results: dict) -> list[str]:
    return [key.removesuffix(SIGNATURE_SUFFIX) for key in results if key.endswith(SIGNATURE_SUFFIX)]
