"""Trains a translation model: ``python train.py --help`` tells what can be set."""

from mt.cli.main import train

if __name__ == "__main__":
    train()
