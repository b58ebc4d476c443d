"""``python -m mt.translation.ctranslate2``: from a run to a folder that CTranslate2 loads by itself."""

import logging
import os
from pathlib import Path

from mt.config import ExportConfig
from mt.errors import InputError
from mt.files import new_folder
from mt.run_folder import open_model
from mt.translation.ctranslate2.export import obstacles, write_model
from mt.translation.ctranslate2.library import library

logger = logging.getLogger(__name__)


def export(config: ExportConfig) -> None:
    """Writes the model and, beside it, the tokenizer that cuts text into its pieces.

    Raises InputError for a run that cannot be read or that CTranslate2 cannot run, and for an output that is taken.
    """
    library()  # to say that it is missing before any work
    output = Path(os.path.abspath(config.output))
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise InputError(f"output={config.output}: exists and is not empty; give the export a folder of its own")
    trained = open_model(Path(config.run))
    if reasons := obstacles(trained):
        raise InputError(f"{config.run}: CTranslate2 cannot run this model: {'; '.join(reasons)}")
    with new_folder(output) as folder:
        write_model(trained, folder, config.quantization)
        trained.tokenizers.save(folder)
    logger.info("%s: a model for CTranslate2", config.output)
