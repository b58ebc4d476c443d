"""Compares finished runs: ``python -m mt.comparison --help`` tells what can be set."""

from mt.entry_points import compare

if __name__ == "__main__":
    compare()
