"""Trains a translation model: ``python train.py --help`` tells what can be set."""

from mt.command_line import main
from mt.config import TrainConfig


def run(config: TrainConfig) -> None:
    from mt.training.command import train  # PyTorch takes seconds to import: wrong configs are told before

    train(config)


if __name__ == "__main__":
    main("train", TrainConfig, run)
