"""Writes the model card of an export, and warns of functions of the text layer that an export lacks."""

import logging
from collections.abc import Iterator
from pathlib import Path

import yaml

from mt.config import (
    ExportConfig,
    FilesConfig,
    HubConfig,
    RecipeConfig,
    SingleCorpusConfig,
    as_folders,
    as_pairs,
    single_corpora,
)
from mt.core.errors import corrupted_file, wrong_keys
from mt.core.language import base_language, english_name
from mt.metrics.registry import METRICS
from mt.storage.model_description import ModelDescription
from mt.storage.run_folder import (
    CONFIG,
    HUB_NAME,
    PROVENANCE,
    RESULTS,
    read_config,
    read_results,
    scores_with_signatures,
)
from mt.training.provenance import read_provenance
from mt.translation.trained_model import TrainedModel

logger = logging.getLogger(__name__)

CARD = """\
---
{metadata}---

# {title}

A {architecture} of {parameters:,} parameters, trained with mt-trainer.

## Use

{usage}

## Limits

mt-trainer's `translate.py` processes lines in ways that this folder cannot contain. Here:

{losses}- sentences of more than {max_source_length} tokens are not translated in parts
- tags inside a line do not follow their words, and there are no word alignments

## Data

{data}

## Scores

{scores}

## License

{license}
"""
LOSSES = (
    "links, numbers, codes, placeholders, tags and emoji are translated like words, and may be changed",
    "casing, typing errors and missing final punctuation are left to the model",
    "lines of several sentences are not split into sentences, unless the program does so",
    "the glossary and the patterns of the model have no effect",
)
"""Consequences of the missing text layer in an export."""
TOKENS = """

Each source begins with the token of its target language: {tokens}. Write the token directly in front of the text,
without a space. If the program takes tokens instead of text, make it the first token.
"""
NOT_RECORDED = "Not recorded."


def write_card(folder: Path, trained: TrainedModel, config: ExportConfig, usage: str, **tags: str) -> None:
    """Write the model card of an export, README.md, and warn of functions of the text layer that the export lacks.

    README.md is Markdown with a YAML header, which the Hugging Face hub reads.

    Args:
        folder: The folder of the export.
        trained: The model.
        config: The settings of the export.
        usage: Instructions for the other program, in Markdown.
        tags: Metadata for the header besides languages and license.
    """
    run, license = Path(config.run), config.license
    description = trained.description
    if description.directions:
        tokenizer = trained.tokenizers.source
        tokens = dict.fromkeys(
            f"`>>{tokenizer.towards(direction.target).language}<<`" for direction in description.layers
        )
        usage = usage.strip() + TOKENS.format(tokens=", ".join(tokens))
    base_model, commit = _base_model(run)
    languages = dict.fromkeys(base_language(code) for direction in description.layers for code in direction)
    metadata: dict[str, object] = {"language": list(languages)}
    metadata |= {"license": license} if license else {}
    metadata |= tags
    metadata |= {"base_model": base_model, "base_model_relation": "finetune"} if commit else {}
    losses = LOSSES if description.text.enabled else ()
    card = CARD.format(
        metadata=yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True),
        title=", ".join(" to ".join(map(english_name, direction)) for direction in description.layers),
        architecture=description.model.architecture,
        parameters=trained.model.parameter_count,
        usage=usage.strip(),
        losses="".join(f"- {loss}\n" for loss in losses),
        max_source_length=description.max_source_length,
        data="\n".join(_data_lines(run, base_model, commit)),
        scores="\n".join(_score_lines(run, description)),
        license=license or "The license of this model is not specified.",
    )
    (folder / "README.md").write_text(card, encoding="utf-8")
    if losses:
        logger.warning(
            "%s is exported without the text layer: %s. For an export without these limits, train with text=off",
            config.output,
            "; ".join(losses),
        )


def _base_model(run: Path) -> tuple[str, str]:
    """Return the name of the base model of a run, and its commit on the hub.

    The commit is empty if the base model is a local folder, and both are empty for a run without a base model. The name
    of a local folder is the last part of its path, because the names of parent folders may be private.
    """
    if not (run / CONFIG).exists() or (init_from := read_config(run).training.init_from) is None:
        return "", ""
    if (run / PROVENANCE).exists() and (recorded := read_provenance(run)["base_model"]) is not None:
        if not HUB_NAME.fullmatch(recorded):
            raise corrupted_file(run / PROVENANCE, wrong_keys(["base_model"]))
        name, _, commit = recorded.partition("@")
        return name, commit
    return Path(init_from).name, ""


def _data_lines(run: Path, base_model: str, commit: str) -> Iterator[str]:
    """Yield Markdown lines with the corpora, the number of training pairs and the base model of a run.

    A model folder has none of these.
    """
    if not (run / CONFIG).exists():
        yield NOT_RECORDED
        return
    yield from (f"- {_corpus_name(corpus)}" for corpus in single_corpora(read_config(run).data))
    if (run / PROVENANCE).exists():
        yield f"- {read_provenance(run)['data']['train']['pairs']:,} training pairs in all"
    if commit:
        yield f"- the data of [{base_model}](https://huggingface.co/{base_model}), commit {commit}, the base model"
    elif base_model:
        yield f"- the data of `{base_model}`, the base model"


def _corpus_name(corpus: SingleCorpusConfig) -> str:
    """Return the name of a corpus in Markdown. Only the last parts of paths are shown, since parents may be private."""
    match corpus:
        case RecipeConfig():
            return f"`{corpus.recipe}`"
        case HubConfig():
            path = Path(corpus.path).name if Path(corpus.path).exists() else corpus.path
            return ", ".join(filter(None, [f"`{path}`", corpus.subset, corpus.revision]))
        case FilesConfig():
            files = [file for pair in as_pairs(corpus.train) for file in pair]
        case _:
            files = list(as_folders(corpus.train))
    return ", ".join(f"`{Path(file).name}`" for file in files)


def _score_lines(run: Path, description: ModelDescription) -> Iterator[str]:
    """Yield Markdown lines with the scores of the test set, if the run folder has them."""
    if not (run / RESULTS).is_file():
        yield NOT_RECORDED
        return
    results, decoding = read_results(run), description.decoding
    search = f"a beam size of {decoding.beam_size} and a length penalty of {decoding.length_penalty:g}"
    yield f"On {results['test_pairs']:,} test pairs, translated by `translate.py` with {search}:\n"
    for key, (score, signature) in scores_with_signatures(results).items():
        if key in METRICS:
            yield f"- {METRICS[key].name} {score:.1f} (`{signature}`)"
