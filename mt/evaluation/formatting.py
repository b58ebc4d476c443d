"""How reports show numbers, p-values, and scores with their intervals."""

import math

from mt.metrics.significance import Interval
from mt.reporting.pages import Filters


def format_interval(interval: Interval, signed: bool = False, decimals: int = 2, unit: str = "") -> str:
    """Format a score with its unit and its interval. No line is broken inside the interval."""
    form = f"{'+' if signed else ''}.{decimals}f"
    ends = f"({interval.low:{form}} … {interval.high:{form}})".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{interval.score:{form}}{unit} {ends}"


def format_p(p: float | None) -> str:
    """Format a p with three decimals, or below 0.1 as an upper bound with four; None becomes "–"."""
    return "–" if p is None else f"{p:.3f}" if p >= 0.1 else format_p_bound(p)


def format_p_bound(p: float) -> str:
    """Format a p as an upper bound: rounded up to four decimals, and to at least 0.0001."""
    return f"{max(1e-4, math.ceil(round(p * 1e4, 6)) / 1e4):.4f}"


def format_number(value: float | None) -> str:
    """Format a number with three significant digits, or as a whole number from 100 on; None becomes "–"."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


FILTERS: Filters = {
    "interval": format_interval,
    "p_value": format_p,
    "p_bound": format_p_bound,
}
"""For the templates of reports."""
