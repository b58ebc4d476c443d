"""The commands, however they are started: ``python train.py``, ``python -m mt.comparison``, installed as ``mt-train`` …

PyTorch takes seconds to import, but a mistake in the config should be told at once. So each command imports the code
that does its work only after its config has been checked.
"""

from mt.command_line import main
from mt.config import CompareConfig, ExportConfig, TrainConfig, TranslateConfig


def train() -> None:
    """Trains a translation model. ``--help`` lists the settings, for this command and those below."""

    def run(config: TrainConfig) -> None:
        from mt.training.command import train

        train(config)

    main("train", TrainConfig, run)


def translate() -> None:
    """Translates text line by line."""

    def run(config: TranslateConfig) -> None:
        from mt.translation.command import translate

        translate(config)

    main("translate", TranslateConfig, run)


def compare() -> None:
    """Compares finished runs."""

    def run(config: CompareConfig) -> None:
        from mt.comparison.command import compare

        compare(config)

    main("compare", CompareConfig, run)


def export_for_ctranslate2() -> None:
    """Exports a model for CTranslate2."""

    def run(config: ExportConfig) -> None:
        from mt.exchange.ctranslate2 import export

        export(config)

    main("export", ExportConfig, run)
