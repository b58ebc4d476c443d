"""The settings of ``python -m mt clean``."""

from collections.abc import Iterator

from mt.config.data import DataConfig
from mt.config.fields import PathText, Section


class CleaningConfig(Section):
    """``python -m mt clean``"""

    data: DataConfig
    output: PathText
    """A folder to write into. It must not exist yet, or be empty."""

    def contradictions(self) -> Iterator[str]:
        if not self.data.cleaning_rules:
            yield "data.cleaning=false leaves nothing to do: take default, strict or a list of rules"
