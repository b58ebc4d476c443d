"""Compares finished runs: ``python -m mt.comparison --help`` tells what can be set."""

from mt.command_line import main
from mt.config import CompareConfig


def run(config: CompareConfig) -> None:
    from mt.comparison.command import compare  # PyTorch takes seconds to import: wrong configs are told before

    compare(config)


if __name__ == "__main__":
    main("compare", CompareConfig, run)
