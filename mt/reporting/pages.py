"""Writes a report as three files: an HTML page for people, Markdown for a pull request, JSON for programs."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from pydantic import TypeAdapter

from mt.core.errors import InputError, visible
from mt.core.files import resolved, write_atomically

MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Report:
    """A kind of report: the names of its three files, and the folder of its templates."""

    templates: Path
    """The folder with the templates of the page and of the Markdown. A template has the name of the file, and the
    suffix ``.jinja``."""
    page: str
    markdown: str
    json: str

    def write(self, folder: Path, values: Mapping[str, object], pictures: object, numbers: object) -> None:
        """Write the three files into an existing folder.

        Args:
            folder: The folder.
            values: The variables of both templates.
            pictures: The variable ``pictures`` of the page's template.
            numbers: The content of the JSON file: dataclasses, dicts, lists, numbers, texts. Infinities and NaN become
                null.
        """
        environment = template_environment(self.templates)
        page = environment.get_template(f"{self.page}.jinja").render({**values, "pictures": pictures})
        write_atomically(folder / self.page, page)
        environment = template_environment(self.templates, autoescape=False)
        markdown = environment.get_template(f"{self.markdown}.jinja").render(values)
        write_atomically(folder / self.markdown, visible(markdown))
        write_atomically(folder / self.json, TypeAdapter(object).dump_json(numbers, indent=2) + b"\n")


def report_folder(output: str | None, default: Path, inner: str) -> Path:
    """Return the folder for a report: the folder ``inner`` of the setting ``output`` or, if that is None, of
    ``default``. It is not created.

    Raises:
        InputError: The path is a file, or its symbolic links lead in a circle.
    """
    folder = Path(output) if output else default
    resolved(folder)  # raises InputError if links lead in a circle
    if folder.exists() and not folder.is_dir():
        raise InputError(f"output={folder} is a file, but a report needs a folder; set output=FOLDER")
    return folder / inner


def template_environment(templates: Path, autoescape: bool = True) -> Environment:
    """Return the Jinja environment for the templates of a folder, and for the common templates in this folder.

    Args:
        templates: The folder.
        autoescape: Escape values for HTML.
    """
    environment = Environment(
        loader=FileSystemLoader((templates, Path(__file__).parent)), autoescape=autoescape, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= FILTERS
    return environment


def escape_markdown(text: str) -> str:
    r"""Return a text with a backslash before each of the characters ``\ | * _ ` < > [ ]``, which are markup in a line.

    Characters that are markup only at the beginning of a line, such as # and -, stay as they are.
    """
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)


def format_signed(value: float, decimals: int = 2) -> str:
    """Format a number with its sign and, by default, two decimals. An infinite number, which stands for no bound,
    becomes "–"."""
    return f"{value:+z.{decimals}f}".replace("-", MINUS) if math.isfinite(value) else "–"


def format_interval(interval: Any, signed: bool = False, decimals: int = 2) -> str:
    """Format a score and its confidence interval: ``1.69 (0.95 … 2.42)``.

    Args:
        interval: An ``Interval``.
        signed: Whether positive numbers get a plus sign.
    """
    form = f"{'+' if signed else ''}z.{decimals}f"
    # No-break spaces keep the interval on one line.
    ends = f"({interval.low:{form}} … {interval.high:{form}})".replace(" ", "\N{NO-BREAK SPACE}")
    return f"{interval.score:{form}} {ends}".replace("-", MINUS)


def format_p(p: float | None) -> str:
    """Format a p-value with three decimals, as in ``0.312`` or, below 0.1, as an upper bound with four decimals, as in
    ``≤ 0.0051``. None becomes "–"."""
    if p is None:
        return "–"
    return f"{p:.3f}" if p >= 0.1 else f"≤ {max(1e-4, math.ceil(round(p * 1e4, 6)) / 1e4):.4f}"


FILTERS = {
    "number": format_signed,
    "plain": escape_markdown,
    "interval": format_interval,
    "p_value": format_p,
}
"""The Jinja filters of the templates: name in the template → function."""
