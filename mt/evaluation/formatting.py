"""Formats numbers, p-values, and scores with confidence intervals for reports."""

import math

from mt.metrics.significance import Interval
from mt.reporting.pages import Filters


def format_interval(interval: Interval, signed: bool = False, decimals: int = 2, unit: str = "") -> str:
    """Format a score and its confidence interval: ``1.69 BLEU (0.95 … 2.42)``.

    Args:
        signed: Whether positive numbers get a plus sign.
        unit: Text between score and interval, with its leading space.
    """
    form = f"{'+' if signed else ''}.{decimals}f"
    # No-break spaces keep the interval on one line.
    ends = f"({interval.low:{form}} … {interval.high:{form}})".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{interval.score:{form}}{unit} {ends}"


def format_p(p: float | None) -> str:
    """Format a p-value: from 0.1 on with three decimals, below as by ``format_p_bound``. None becomes "–"."""
    return "–" if p is None else f"{p:.3f}" if p >= 0.1 else format_p_bound(p)


def format_p_bound(p: float) -> str:
    """Format a p-value for use after "p ≤": rounded up to four decimals, never below 0.0001."""
    return f"{max(1e-4, math.ceil(round(p * 1e4, 6)) / 1e4):.4f}"


def format_number(value: float | None) -> str:
    """Format a number: from 100 on without decimals, as in "1,234", below with three significant digits. None becomes
    "–"."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


FILTERS: Filters = {
    "interval": format_interval,
    "p_value": format_p,
    "p_bound": format_p_bound,
}
"""The Jinja filters of the report templates: name in the template → function."""
