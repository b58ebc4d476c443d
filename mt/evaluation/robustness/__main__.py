"""Measures the robustness of runs. ``python -m mt.evaluation.robustness --help`` lists the settings."""

from mt.cli.entry_points import measure_robustness

if __name__ == "__main__":
    measure_robustness()
