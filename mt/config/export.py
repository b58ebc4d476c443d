"""The settings of ``python -m mt export``."""

from collections.abc import Iterator
from typing import Annotated, Literal

from mt.config.decoding import StorageType
from mt.config.fields import For, Licence, PackageVersion, PathText, Section

ExportFormat = Literal["ctranslate2", "hugging_face", "argos"]
"""The names of the exporters in ``mt.export.command``."""


class ExportConfig(Section):
    """``python -m mt export``"""

    format: ExportFormat
    """Program that is to run the exported model: CTranslate2, Hugging Face transformers, or Argos Translate, whose
    packages LibreTranslate takes, too."""
    run: PathText
    """Run or model folder to export."""
    output: PathText
    """Folder to write into. It must be empty or not exist yet. With argos: a file to write, FILE.argosmodel."""
    license: Licence | None = None
    """Licence of the model for README.md, as model cards name it: mit, cc-by-4.0 … null: README.md says that no licence
    is given."""
    quantization: Annotated[StorageType | None, For("format", "ctranslate2", "argos")] = None
    """With ctranslate2 and argos: the number format of the exported weights. null: fp32, without a loss."""
    version: Annotated[PackageVersion, For("format", "argos")] = "1.0"
    """With argos: the version of the package. Argos Translate takes a higher version for a newer package."""

    def contradictions(self) -> Iterator[str]:
        if self.format == "argos" and not self.output.endswith(".argosmodel"):
            yield f"output={self.output} is not the name of a package: let it end in .argosmodel"
