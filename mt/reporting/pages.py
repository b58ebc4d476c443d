"""A report in three files: a page for people, Markdown for a pull request, JSON for programs."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mt.core.files import write_atomically
from mt.core.terminal import visible

Filters = Mapping[str, Callable[..., str]]


@dataclass(frozen=True)
class Report:
    """The files of a report, and the templates of its page and Markdown: the names of the files, with ``.jinja``."""

    templates: Path
    page: str
    markdown: str
    json: str
    filters: Filters = field(default_factory=dict)
    """The report's own filters for its templates."""

    @property
    def files(self) -> tuple[str, str, str]:
        return self.page, self.markdown, self.json

    def write(self, folder: Path, values: Mapping[str, object], pictures: object, numbers: object) -> None:
        """Write the three files.

        Args:
            values: The variables of both templates.
            pictures: The variable ``pictures`` of the page.
            numbers: The content of the JSON file.
        """
        environment = template_environment(self.templates, self.filters)
        page = environment.get_template(f"{self.page}.jinja").render({**values, "pictures": pictures})
        write_atomically(folder / self.page, page)
        environment.autoescape = False
        markdown = environment.get_template(f"{self.markdown}.jinja").render(values)
        write_atomically(folder / self.markdown, visible(markdown))
        write_atomically(folder / self.json, json.dumps(_finite(numbers), indent=2, ensure_ascii=False) + "\n")


def template_environment(templates: Path, filters: Filters, autoescape: bool = True) -> Environment:
    """Return the environment for the templates of a folder and the common ones beside this module."""
    environment = Environment(
        loader=FileSystemLoader((templates, Path(__file__).parent)), autoescape=autoescape, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"number": format_signed, "plain": escape_markdown, **filters}
    return environment


def escape_markdown(text: str) -> str:
    """Escape the characters that Markdown would read as markup."""
    return re.sub(r"([\\|*_`<>\[\]])", r"\\\1", text)


def format_signed(value: float) -> str:
    """Format a number with its sign; one that is not finite (unbounded) becomes "–"."""
    return f"{value:+.2f}" if math.isfinite(value) else "–"


def _finite(value: object) -> object:
    """Replace numbers that are not finite by None, because JSON has no infinities: null stands for unbounded."""
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
