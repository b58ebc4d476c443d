"""``python -m mt.translation.ctranslate2``: exports a run to a folder that CTranslate2 can load on its own."""

import logging
from pathlib import Path

from mt.config import ExportConfig
from mt.errors import InputError
from mt.files import new_folder, resolved
from mt.run_folder import open_model
from mt.translation.ctranslate2.export import obstacles, write_model
from mt.translation.ctranslate2.library import library

logger = logging.getLogger(__name__)


def export(config: ExportConfig) -> None:
    """Writes a folder with the model and its tokenizer.

    Raises:
        InputError: The run cannot be read, CTranslate2 is not installed or cannot run the model, or the output exists
            and is not an empty folder.
    """
    library()  # raises now, before any work, if it is missing
    output = resolved(config.output)
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise InputError(f"output={config.output}: exists and is not empty; give the export a folder of its own")
    trained = open_model(Path(config.run))
    if reasons := obstacles(trained):
        raise InputError(f"{config.run}: CTranslate2 cannot run this model: {'; '.join(reasons)}")
    with new_folder(output) as folder:
        write_model(trained, folder, config.quantization)
        trained.tokenizers.save(folder)
    logger.info("%s: a model for CTranslate2", config.output)
