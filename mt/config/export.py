"""The settings of ``python -m mt export``."""

from collections.abc import Iterator
from typing import Annotated, Literal

from mt.config.decoding import StorageType
from mt.config.fields import For, Licence, PackageVersion, PathText, Section

ExportFormat = Literal["ctranslate2", "hugging_face", "argos"]
"""``mt.export.command`` has their exporters."""


class ExportConfig(Section):
    """``python -m mt export``"""

    format: ExportFormat
    """The program that runs the exported model: CTranslate2, Hugging Face's transformers, or Argos Translate, whose
    packages LibreTranslate serves, too."""
    run: PathText
    """A run or model folder."""
    output: PathText
    """A folder to write, which must not exist yet, or be empty. With argos: a file to write, FILE.argosmodel."""
    license: Licence | None = None
    """The licence of the model, by the name that model cards use for it: mit, cc-by-4.0 … It goes into README.md.
    null: README.md says that none is given."""
    quantization: Annotated[StorageType | None, For("format", "ctranslate2", "argos")] = None
    """With ctranslate2 and argos: the number format in which the weights are stored. null: fp32, as they are."""
    version: Annotated[PackageVersion, For("format", "argos")] = "1.0"
    """With argos: the version of the package. Argos Translate takes the higher one for the newer."""

    def contradictions(self) -> Iterator[str]:
        if self.format == "argos" and not self.output.endswith(".argosmodel"):
            yield f"output={self.output} is no name of a package: it must end in .argosmodel"
