"""Exports a run for CTranslate2: ``python -m mt.translation.ctranslate2 --help`` tells what can be set."""

from mt.command_line import main
from mt.config import ExportConfig


def run(config: ExportConfig) -> None:
    from mt.translation.ctranslate2.command import (
        export,
    )  # PyTorch takes seconds to import: wrong configs are told before

    export(config)


if __name__ == "__main__":
    main("export", ExportConfig, run)
