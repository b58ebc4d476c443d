"""Exports a Transformer as a model of CTranslate2: ``python -m mt export format=ctranslate2 run=RUN output=FOLDER``."""

import logging
from pathlib import Path

from mt.config import ExportConfig
from mt.core.errors import InputError
from mt.core.files import new_folder, resolve_new_folder
from mt.export.card import write_card
from mt.translation.ctranslate2_conversion import ctranslate2_obstacles, import_ctranslate2, write_model
from mt.translation.trained_model import open_model

logger = logging.getLogger(__name__)

CTRANSLATE2_USAGE = """\
`ctranslate2.Translator(FOLDER)` loads the model. It takes and gives the pieces of the SentencePiece models that lie
beside it: tokenizer.model, or source.model and target.model.
"""


def export_ctranslate2(config: ExportConfig) -> None:
    """Write a folder with the model, its tokenizer and a model card, and warn of functions that are lost.

    Raises:
        InputError: The run cannot be read, CTranslate2 is not installed or cannot run the model, or the output exists
            and is not an empty folder.
    """
    import_ctranslate2()  # raises now, before any work, if it is missing
    output = resolve_new_folder(config.output)
    trained = open_model(Path(config.run))
    if reasons := ctranslate2_obstacles(trained.description.model):
        raise InputError(f"{config.run}: CTranslate2 cannot run this model: {'; '.join(reasons)}; export another")
    with new_folder(output) as folder:
        write_model(trained, folder, config.quantization)
        trained.tokenizers.save(folder)
        write_card(folder, trained, config, CTRANSLATE2_USAGE)
    logger.info("exported the model for CTranslate2 to %s", config.output)
