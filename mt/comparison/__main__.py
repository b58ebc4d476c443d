"""Compares finished runs: ``python -m mt.comparison --help`` tells what can be set."""

from mt.command_line import main
from mt.config import CompareConfig


def run(config: CompareConfig) -> None:
    # Here and not above: PyTorch takes seconds to import, and a mistake in the config is to be told at once.
    from mt.comparison.command import compare

    compare(config)


if __name__ == "__main__":
    main("compare", CompareConfig, run)
