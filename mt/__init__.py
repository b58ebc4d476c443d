"""Train machine-translation models, translate with them and compare them.

Example::

    import mt

    model = mt.load("runs/demo")
    model.translate(["Where is the train station?"])

Importing this package loads neither PyTorch nor any model.
"""

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 11):  # noqa: UP036 — a checkout may be run by any Python of the system
    sys.exit(
        f"mt-trainer needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}; in a checkout, "
        "run make .venv/installed PYTHON=python3.11 and source .venv/bin/activate"
    )

from mt.core.errors import InputError, RunError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mt.evaluation.comparison.findings import ComparisonFindings
    from mt.evaluation.runs import learning_curve
    from mt.models.embedding import sinusoidal_positions
    from mt.storage.run_folder import Results
    from mt.training.trainer import OnValidation
    from mt.translation.translator import ScoredText, Translator

# fmt: off
__all__ = [
    "InputError", "Results", "RunError", "ScoredText", "Translator", "__version__", "compare", "learning_curve", "load",
    "sinusoidal_positions", "train",
]
# fmt: on

_LAZY = {
    "Results": "mt.storage.run_folder",
    "ScoredText": "mt.translation.translator",
    "Translator": "mt.translation.translator",
    "learning_curve": "mt.evaluation.runs",
    "sinusoidal_positions": "mt.models.embedding",
}


def load(
    run: "str | Path | Sequence[str | Path]",
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    device: str = "auto",
    precision: str = "fp32",
    **decoding: Any,
) -> "Translator":
    """Load a trained model and return its translator.

    Args:
        run: A run or model folder, or the name of a MarianMT model on the Hugging Face hub. A list of these is loaded
            as an ensemble.
        source_language: With a model of several directions: the language to translate from, unless the model translates
            from only one into ``target_language``.
        target_language: With a model of several directions: the language to translate into.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``mps``, ``cuda`` or ``cuda:N``.
        precision: The number format of the computation: ``auto``, ``fp32``, ``bf16`` or ``fp16``.
        **decoding: Settings of the section ``decoding``, such as ``beam_size=1``. Settings that are not given have the
            values in the model's own ``model.yaml``.

    Raises:
        InputError: A setting is wrong, or a file is missing or corrupted. The message names the setting or the file.
    """
    from pydantic import ValidationError

    from mt.cli.error_messages import ErrorFormatter
    from mt.config import DecodingChoice
    from mt.config.fields import IGNORE_VALIDATION_ERRORS
    from mt.core.language import AskedDirection
    from mt.translation.translator import Translator

    try:
        choice = DecodingChoice.model_validate(decoding, context=IGNORE_VALIDATION_ERRORS)
        messages = list(choice.validation_errors())
    except ValidationError as error:
        messages = [message.line for message in ErrorFormatter(DecodingChoice, {}).messages(error)]
    if messages:
        raise InputError("; ".join(messages))
    asked = AskedDirection(source_language, target_language)
    return Translator.load(run, choice, device, precision, asked=asked)


def train(settings: "Sequence[str]", *, on_validation: "OnValidation | None" = None) -> "Results":
    """Train a run to its end, or resume it, as ``train.py`` does. Return its results, also if it is finished already.

    Args:
        settings: The settings as typed for ``train.py``, such as ``["experiment=demo", "seed=2"]``.
        on_validation: A function that is called in this process after each validation, with the number of updates
            done, and a dict of the loss and the scores. The state of the run is saved before the call, so that after
            an exception, which ends the training, the same call of ``train`` resumes the run.

    Raises:
        InputError: A setting or the data cannot be used.
        RunError: Training diverged, or another process is training this run.
    """
    from mt.cli.composition import compose_job
    from mt.config import TrainConfig
    from mt.training import command
    from mt.training.trainer import ON_VALIDATION

    job = compose_job("train", TrainConfig, settings)
    token = ON_VALIDATION.set(on_validation)
    try:
        return command.train(job)
    finally:
        ON_VALIDATION.reset(token)


def compare(settings: "Sequence[str]") -> "list[ComparisonFindings]":
    """Compare runs, models or files of translations as ``python -m mt compare`` does, and write its report. Return the
    results of each direction.

    Args:
        settings: The settings as typed for the command, such as ``["first=runs/a", "second=runs/b"]``.

    Raises:
        InputError: A setting, a run or a file cannot be used.
    """
    from mt.cli.composition import compose_job
    from mt.config import CompareConfig
    from mt.core.installation import optional_packages

    with optional_packages():
        from mt.evaluation.comparison import command
    return command.compare(compose_job("compare", CompareConfig, settings).config)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("mt-trainer")
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
