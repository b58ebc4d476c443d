"""The commands, however they are started: ``python train.py``, ``python -m mt.evaluation.comparison``, installed as ``mt-train`` …

PyTorch takes seconds to import, but a mistake in the config should be told at once. So each command imports the code
that does its work only after its config has been checked.
"""

from mt.cli.start import end_at_once, ending_at_once, limit_spinning

end_at_once()  # before anything that takes long to import
limit_spinning()  # before torch is imported

from mt.cli.command_line import main  # noqa: E402
from mt.config import (  # noqa: E402
    ArgosExportConfig,
    CleaningConfig,
    CompareConfig,
    ExportConfig,
    HuggingFaceExportConfig,
    RobustnessConfig,
    ServingConfig,
    SynthesisConfig,
    TrainConfig,
    TranslateConfig,
)


def train() -> None:
    """Trains a translation model. ``--help`` lists the settings, for this command and those below."""

    def run(config: TrainConfig) -> None:
        with ending_at_once():
            from mt.training.command import train

        train(config)

    def explain(config: TrainConfig) -> None:
        with ending_at_once():
            from mt.training.command import explain

        explain(config)

    main("train", TrainConfig, run, explain=explain)


def translate() -> None:
    """Translates text line by line."""

    def run(config: TranslateConfig) -> None:
        with ending_at_once():
            from mt.cli.translate import translate

        translate(config)

    main("translate", TranslateConfig, run)


def compare() -> None:
    """Compares finished runs."""

    def run(config: CompareConfig) -> None:
        with ending_at_once():
            from mt.evaluation.comparison.command import compare

        compare(config)

    main("compare", CompareConfig, run)


def clean() -> None:
    """Shows and writes what cleaning drops of a corpus, and what it keeps."""

    def run(config: CleaningConfig) -> None:
        with ending_at_once():
            from mt.data.cleaning.command import clean

        clean(config)

    main("cleaning", CleaningConfig, run)


def measure_robustness() -> None:
    """Measures how runs translate what people really type."""

    def run(config: RobustnessConfig) -> None:
        with ending_at_once():
            from mt.evaluation.robustness.command import measure_robustness

        measure_robustness(config)

    main("robustness", RobustnessConfig, run)


def synthesise() -> None:
    """Makes training pairs from existing runs."""

    def run(config: SynthesisConfig) -> None:
        with ending_at_once():
            from mt.synthesis.command import synthesise

        synthesise(config)

    main("synthesis", SynthesisConfig, run)


def serve() -> None:
    """Serves models to other programs and on a page."""

    def run(config: ServingConfig) -> None:
        with ending_at_once():
            from mt.serving.command import serve

        serve(config)

    main("serving", ServingConfig, run)


def export_for_ctranslate2() -> None:
    """Exports a model for CTranslate2."""

    def run(config: ExportConfig) -> None:
        with ending_at_once():
            from mt.export.ctranslate2 import export

        export(config)

    main("export", ExportConfig, run)


def export_for_hugging_face() -> None:
    """Exports a model for Hugging Face's transformers."""

    def run(config: HuggingFaceExportConfig) -> None:
        with ending_at_once():
            from mt.export.hugging_face import export

        export(config)

    main("export_hugging_face", HuggingFaceExportConfig, run)


def export_for_argos() -> None:
    """Exports a model as a package of Argos Translate."""

    def run(config: ArgosExportConfig) -> None:
        with ending_at_once():
            from mt.export.argos import export

        export(config)

    main("export_argos", ArgosExportConfig, run)
