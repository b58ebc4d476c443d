"""Exports a Transformer as a model of CTranslate2: ``python -m mt export format=ctranslate2 run=RUN output=FOLDER``; or
as a package of Argos Translate, the library behind LibreTranslate: ``format=argos run=RUN output=FILE.argosmodel``.

A package is a zip archive of one folder: metadata.json, README.md, the tokenizer as sentencepiece.model, and the model
for CTranslate2 in the folder model.
"""

import json
import logging
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from mt.config import ExportConfig
from mt.core.errors import InputError
from mt.core.files import atomic_folder, make_folder, resolve_new_folder, resolved, write_atomically
from mt.core.language import argos_code, english_name
from mt.export.card import write_card
from mt.translation.ctranslate2_conversion import ctranslate2_obstacles, import_ctranslate2, write_model
from mt.translation.trained_model import open_model

logger = logging.getLogger(__name__)

CTRANSLATE2_USAGE = """\
`ctranslate2.Translator(FOLDER)` loads the model. It takes and gives the pieces of the SentencePiece models that lie
beside it: tokenizer.model, or source.model and target.model.
"""
ARGOS_VERSION = "1.11"
"""The version of Argos Translate with which the exported packages were tested."""
ARGOS_USAGE = """\
```python
import argostranslate.package, argostranslate.translate

argostranslate.package.install_from_path("FILE.argosmodel")
print(argostranslate.translate.translate("Hello.", "{source}", "{target}"))
```

LibreTranslate serves what is installed. Argos Translate cuts the text into sentences by itself. Whatever the settings
of the model are, it searches with a beam of 4 and a length penalty of 0.2, computes in the number format that is
fastest, which is mostly int8 (`ARGOS_COMPUTE_TYPE=float32` changes that), and writes blanks in place of underscores.
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
    with atomic_folder(output) as folder:
        write_model(trained, folder, config.quantization)
        trained.tokenizers.save(folder)
        write_card(folder, trained, config, CTRANSLATE2_USAGE)
    logger.info("exported the model for CTranslate2 to %s", config.output)


def export_argos(config: ExportConfig) -> None:
    """Write a package, and log a warning that names the functions of the text layer that it lacks.

    Raises:
        InputError: The run cannot be read, CTranslate2 is not installed or cannot run the model, a package cannot hold
            the model, or the output exists.
    """
    import_ctranslate2()  # raises now, before any work, if it is missing
    output = resolved(config.output)
    if output.exists():
        raise InputError(f"output={config.output}: exists; choose another name")
    trained = open_model(Path(config.run))
    languages = trained.direction(config.asked, config.run)
    own = {"source_language": languages.source, "target_language": languages.target, "directions": ()}
    described = trained.description.model_copy(update=own)
    trained = replace(trained, description=described, tokenizers=trained.tokenizers.towards(languages.target))
    reasons = ctranslate2_obstacles(trained.description.model)
    if not trained.tokenizers.is_shared:
        reasons.append("a package has one tokenizer for both languages, so train with tokenizer.joint=true")
    if reasons:
        raise InputError(f"{config.run}: Argos Translate cannot run this model: {'; '.join(reasons)}; export another")
    (source, source_name), (target, target_name) = ((argos_code(code), english_name(code)) for code in languages)
    metadata = {
        "package_version": config.version,
        "argos_version": ARGOS_VERSION,
        "from_code": source,
        "from_name": source_name,
        "to_code": target,
        "to_name": target_name,
        "links": [],
    }
    make_folder(output.parent)
    with tempfile.TemporaryDirectory(prefix=f".{output.name}.", suffix=".partial", dir=output.parent) as temporary:
        # Argos Translate unpacks all packages into one folder, in which each has a folder of its own.
        name = f"translate-{source}_{target}-{config.version.replace('.', '_')}"
        folder = Path(temporary, name)
        (folder / "model").mkdir(parents=True)
        write_model(trained, folder / "model", config.quantization)
        (folder / "sentencepiece.model").write_bytes(trained.tokenizers.source.model)
        (folder / "metadata.json").write_text(json.dumps(metadata, indent=2), encoding="utf-8")
        write_card(folder, trained, config, ARGOS_USAGE.format(source=source, target=target))
        package = shutil.make_archive(f"{temporary}/package", "zip", temporary, name)
        write_atomically(output, Path(package).read_bytes())
    logger.info("exported the model for Argos Translate to %s", config.output)
