"""Translates text line by line: ``python translate.py --help`` tells what can be set."""

from mt.command_line import main
from mt.config import TranslateConfig


def run(config: TranslateConfig) -> None:
    # Here and not above: PyTorch takes seconds to import, and a mistake in the config is to be told at once.
    from mt.translation.command import translate

    translate(config)


if __name__ == "__main__":
    main("translate", TranslateConfig, run)
