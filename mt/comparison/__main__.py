"""Compares finished runs. ``python -m mt.comparison --help`` lists the settings."""

from mt.entry_points import compare

if __name__ == "__main__":
    compare()
