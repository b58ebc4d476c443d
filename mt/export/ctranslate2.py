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
```python
import ctranslate2
import sentencepiece

folder = "FOLDER"
source = sentencepiece.SentencePieceProcessor(model_file=f"{{folder}}/{}")
target = sentencepiece.SentencePieceProcessor(model_file=f"{{folder}}/{}")
translator = ctranslate2.Translator(folder)
tokens = [source.encode(line, out_type=str) for line in ["Hello."]]
results = translator.translate_batch(tokens, beam_size={decoding.beam_size}, length_penalty={decoding.length_penalty})
print([target.decode(result.hypotheses[0]) for result in results])
```
"""
ARGOS_VERSION = "1.11"
"""The version of Argos Translate with which the exported packages were tested."""
ARGOS_USAGE = """\
```python
import argostranslate.package, argostranslate.translate

argostranslate.package.install_from_path("FILE.argosmodel")
print(argostranslate.translate.translate("Hello.", "{source}", "{target}"))
```

LibreTranslate serves the installed packages. Argos Translate splits the text into sentences. It always uses a beam size
of 4 and a length penalty of 0.2, and computes in the fastest number format, usually int8
(`ARGOS_COMPUTE_TYPE=float32` changes this). In translations, it replaces underscores by spaces.
"""


def export_ctranslate2(config: ExportConfig) -> None:
    """Write a folder with the model, its tokenizer and a model card, and warn of lost functions of the text layer.

    Raises:
        InputError: The run cannot be read, CTranslate2 is not installed or cannot run the model, or the output exists
            and is not an empty folder.
    """
    import_ctranslate2()  # raises InputError before any work if it is not installed
    output = resolve_new_folder(config.output)
    trained = open_model(Path(config.run))
    if reasons := ctranslate2_obstacles(trained.description.model):
        raise InputError(f"{config.run}: CTranslate2 cannot run this model: {'; '.join(reasons)}; export another")
    with atomic_folder(output) as folder:
        write_model(trained, folder, config.quantization)
        trained.tokenizers.save(folder)
        files = list(trained.tokenizers.files())
        usage = CTRANSLATE2_USAGE.format(files[0], files[-1], decoding=trained.description.decoding)
        write_card(folder, trained, config, usage)
    logger.info("exported the model for CTranslate2 to %s", config.output)


def export_argos(config: ExportConfig) -> None:
    """Write a package with the model, its tokenizer and a model card, and warn of lost functions of the text layer.

    Raises:
        InputError: The run cannot be read, CTranslate2 is not installed or cannot run the model, a package cannot hold
            the model, or the output exists.
    """
    import_ctranslate2()  # raises InputError before any work if it is not installed
    output = resolved(config.output)
    if output.exists():
        raise InputError(f"output={config.output}: exists; choose another name")
    trained = open_model(Path(config.run))
    direction = trained.resolve_direction(config.asked, config.run)
    changes = {"source_language": direction.source, "target_language": direction.target, "directions": ()}
    description = trained.description.model_copy(update=changes)
    trained = replace(trained, description=description, tokenizers=trained.tokenizers.towards(direction.target))
    reasons = ctranslate2_obstacles(trained.description.model)
    if not trained.tokenizers.is_shared:
        reasons.append("a package has one tokenizer for both languages; train with tokenizer.joint=true")
    if reasons:
        raise InputError(f"{config.run}: Argos Translate cannot run this model: {'; '.join(reasons)}; export another")
    (source, source_name), (target, target_name) = ((argos_code(code), english_name(code)) for code in direction)
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
        # Argos Translate unpacks all packages into the same folder, so each needs a folder with its own name.
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
