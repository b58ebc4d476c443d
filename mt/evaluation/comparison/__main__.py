"""Compares finished runs. ``python -m mt.evaluation.comparison --help`` lists the settings."""

from mt.cli.entry_points import compare

if __name__ == "__main__":
    compare()
