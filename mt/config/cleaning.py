"""The settings of ``python -m mt clean``."""

from collections.abc import Iterator

from mt.config.data import DataConfig
from mt.config.fields import PathText, Section


class CleaningConfig(Section):
    """``python -m mt clean``"""

    data: DataConfig
    output: PathText
    """Folder to write into. It must be empty or not exist yet."""

    def contradictions(self) -> Iterator[str]:
        if not self.data.cleaning_rules:
            yield "data.cleaning=false drops no pairs: set it to default, strict or a list of rules"
