"""How a report becomes files: a page for people, Markdown for a pull request, JSON for programs."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from matplotlib.figure import Figure

from mt.core.files import write_atomically
from mt.core.terminal import visible
from mt.metrics.scoring import Interval
from mt.metrics.significance import shown_p
from mt.reporting.figures import as_data_uri

PIXELS_PER_INCH = 90


@dataclass(frozen=True)
class Picture:
    """An image of the page with its alternative text."""

    uri: str
    alternative: str
    width: int
    """Width in pixels on the page."""


@dataclass(frozen=True)
class Names:
    """The names of a report's files, in its folder."""

    page: str
    markdown: str
    json: str


def write_pages(
    folder: Path, names: Names, templates: Path, values: Mapping[str, object], pictures: object, numbers: object
) -> None:
    """Write the three files of a report.

    Args:
        templates: The folder with the templates of page and Markdown. They are called as the files, and ``.jinja``.
        values: What the templates show.
        pictures: What only the page shows, under the name ``pictures``.
        numbers: The content of the JSON file.
    """
    environment = Environment(
        loader=FileSystemLoader((templates, Path(__file__).parent)), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"p_value": shown_p, "number": _signed, "interval": shown_interval, "plain": escape_markdown}
    page = environment.get_template(f"{names.page}.jinja").render({**values, "pictures": pictures})
    write_atomically(folder / names.page, page)
    environment.autoescape = False
    markdown = environment.get_template(f"{names.markdown}.jinja").render(values)
    write_atomically(folder / names.markdown, visible(markdown))
    write_atomically(folder / names.json, json.dumps(_finite(numbers), indent=2, ensure_ascii=False) + "\n")


def as_picture(figure: Figure, alternative: str) -> Picture:
    """Return a figure as an image of the page."""
    return Picture(as_data_uri(figure), alternative, round(figure.get_figwidth() * PIXELS_PER_INCH))


def escape_markdown(text: str) -> str:
    """Escape what Markdown would read as markup, because names may contain it."""
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)


def shown_interval(interval: Interval, signed: bool = False, decimals: int = 2, unit: str = "") -> str:
    """Format a score with its unit and its interval, inside of which no line is broken."""
    form = f"{'+' if signed else ''}.{decimals}f"
    ends = f"({interval.low:{form}} … {interval.high:{form}})".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{interval.score:{form}}{unit} {ends}"


def _signed(value: float) -> str:
    """Format a number with its sign; one that is not finite (unbounded) becomes "–"."""
    return f"{value:+.2f}" if math.isfinite(value) else "–"


def _finite(value: object) -> object:
    """Replace numbers that are not finite by None, because JSON has no infinities: null stands for unbounded."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
