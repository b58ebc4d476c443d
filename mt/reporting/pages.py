"""Writes a report as three files: an HTML page for people, Markdown for a pull request, JSON for programs."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mt.core.files import write_atomically
from mt.core.wording import visible

Filters = Mapping[str, Callable[..., str]]


@dataclass(frozen=True)
class Report:
    """A kind of report: the names of its three files, and the folder of its templates."""

    templates: Path
    """The folder with the templates of the page and of the Markdown. A template has the name of the file, and the
    suffix ``.jinja``."""
    page: str
    markdown: str
    json: str
    filters: Filters = field(default_factory=dict)
    """Jinja filters for the templates, by name, besides those of ``template_environment``."""

    def write(self, folder: Path, values: Mapping[str, object], pictures: object, numbers: object) -> None:
        """Write the three files into an existing folder.

        Args:
            folder: The folder.
            values: The variables of both templates.
            pictures: The variable ``pictures`` of the page's template.
            numbers: The content of the JSON file: dicts, lists, numbers, texts. Infinities and NaN become null.
        """
        environment = template_environment(self.templates, self.filters)
        page = environment.get_template(f"{self.page}.jinja").render({**values, "pictures": pictures})
        write_atomically(folder / self.page, page)
        environment = template_environment(self.templates, self.filters, autoescape=False)
        markdown = environment.get_template(f"{self.markdown}.jinja").render(values)
        write_atomically(folder / self.markdown, visible(markdown))
        write_atomically(folder / self.json, json.dumps(_finite(numbers), indent=2, ensure_ascii=False) + "\n")


def template_environment(templates: Path, filters: Filters, autoescape: bool = True) -> Environment:
    """Return the Jinja environment for the templates of a folder, and for the common templates in this folder.

    Args:
        templates: The folder.
        filters: Filters by name, in addition to ``number`` (``format_signed``) and ``plain`` (``escape_markdown``).
        autoescape: Escape values for HTML.
    """
    environment = Environment(
        loader=FileSystemLoader((templates, Path(__file__).parent)), autoescape=autoescape, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"number": format_signed, "plain": escape_markdown, **filters}
    return environment


def escape_markdown(text: str) -> str:
    r"""Return a text with a backslash before each of the characters ``\ | * _ ` < > [ ]``, which are markup in a line.

    Characters that are markup only at the beginning of a line, such as # and -, stay as they are.
    """
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)


def format_signed(value: float, decimals: int = 2) -> str:
    """Format a number with its sign and, by default, two decimals. An infinite number, which stands for no bound,
    becomes "–"."""
    return f"{value:+.{decimals}f}" if math.isfinite(value) else "–"


def _finite(value: object) -> object:
    """Copy nested dicts and lists, with None in place of numbers that are not finite, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
