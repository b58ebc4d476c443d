"""Trains a translation model: ``python train.py --help`` tells what can be set."""

from mt.command_line import main
from mt.config import TrainConfig


def run(config: TrainConfig) -> None:
    # Here and not above: PyTorch takes seconds to import, and a mistake in the config is to be told at once.
    from mt.training.command import train

    train(config)


if __name__ == "__main__":
    main("train", TrainConfig, run)
