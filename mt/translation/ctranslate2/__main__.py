"""Exports a run for CTranslate2: ``python -m mt.translation.ctranslate2 --help`` tells what can be set."""

from mt.command_line import main
from mt.config import ExportConfig


def run(config: ExportConfig) -> None:
    # Here and not above: PyTorch takes seconds to import, and a mistake in the config is to be told at once.
    from mt.translation.ctranslate2.command import export

    export(config)


if __name__ == "__main__":
    main("export", ExportConfig, run)
