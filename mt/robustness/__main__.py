"""Measures how runs translate what people really type. ``python -m mt.robustness --help`` lists the settings."""

from mt.entry_points import measure_robustness

if __name__ == "__main__":
    measure_robustness()
