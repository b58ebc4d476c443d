"""Translates text line by line: ``python translate.py --help`` tells what can be set."""

from mt.command_line import main
from mt.config import TranslateConfig


def run(config: TranslateConfig) -> None:
    from mt.translation.command import (
        translate,
    )  # PyTorch takes seconds to import: wrong configs are told before

    translate(config)


if __name__ == "__main__":
    main("translate", TranslateConfig, run)
