"""Writes the README.md of an export, a Hugging Face model card, and warns of functions that an export lacks.

The card has metadata, instructions for use, missing functions, training data, scores and licence.
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import assert_never

import yaml

from mt.config import (
    FilesConfig,
    HubConfig,
    RecipeConfig,
    SingleCorpusConfig,
    TableConfig,
    TrainConfig,
    as_pairs,
    single_corpora,
)
from mt.core.errors import damaged_file, wrong_keys
from mt.core.json_file import read_json
from mt.core.language import base_language, english_name
from mt.metrics.registry import METRICS
from mt.storage.hub import HUB_NAME
from mt.storage.model_description import ModelDescription
from mt.storage.results import read_results, scores_with_signatures
from mt.storage.run_folder import CONFIG, PROVENANCE, RESULTS, read_config
from mt.translation.trained_model import TrainedModel

logger = logging.getLogger(__name__)

NO_TAGS: Mapping[str, str] = {}


def model_card(
    trained: TrainedModel,
    run: Path,
    license: str | None,
    usage: str,
    tags: Mapping[str, str] = NO_TAGS,
    cuts_sentences: bool = False,
) -> str:
    """Return the text of README.md, in Markdown with a YAML header.

    Args:
        trained: The model.
        run: The model's run or model folder.
        license: The model's licence, if the user has given one.
        usage: Instructions for the program that the model is exported to, in Markdown.
        tags: Metadata for the header besides languages and licence.
        cuts_sentences: Whether that program splits lines into sentences.
    """
    described = trained.description
    languages = [base_language(code) for code in (described.source_language, described.target_language)]
    base_model, on_the_hub = _base_model(run)
    metadata = {"language": languages} | ({"license": license} if license else {}) | dict(tags)
    if on_the_hub:
        metadata |= {"base_model": base_model, "base_model_relation": "finetune"}
    source, target = (english_name(code) for code in (described.source_language, described.target_language))
    parts = [
        f"---\n{yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)}---",
        f"# {source} to {target}",
        f"A {described.model.architecture} of {trained.model.parameter_count:,} parameters, trained with mt-trainer."
        + (f" Its training began with the model {_linked(base_model, on_the_hub)}." if base_model else ""),
        "## Use",
        usage.strip(),
        "## What it lacks",
        _missing_functions(described, cuts_sentences),
        "## Data",
        "\n".join(_data(run, base_model)),
        "## Scores",
        "\n".join(_scores(run, described)),
        "## Licence",
        license or "Whoever made this folder has not said under which licence the model may be used.",
    ]
    return "\n\n".join(parts) + "\n"


def write_card(folder: Path, card: str) -> None:
    (folder / "README.md").write_text(card, encoding="utf-8")


def losses(described: ModelDescription, cuts_sentences: bool = False) -> list[str]:
    """Return a phrase for each function of the model's text layer that is lost by an export.

    Args:
        described: The description of the model.
        cuts_sentences: Whether the program that the model is exported to splits lines into sentences.
    """
    rules = described.text
    if not rules.enabled:
        return []
    missing = [
        "links, numbers, codes, placeholders, tags and emoji are translated like words, and may come back changed",
        "lines in capitals or in title case are not put into small letters for the model",
    ]
    if rules.min_word_count is not None:
        missing += [
            "typing errors are not corrected",
            "names and beginnings of sentences in lines without capitals get none",
        ]
    if rules.final_marks:
        missing.append("lines without final punctuation stay as they are, and may be translated worse")
    if not cuts_sentences:
        most = "one sentence" if rules.max_sentences == 1 else f"{rules.max_sentences} sentences"
        missing.append(f"lines of more than {most} are not cut into sentences")
    if rules.terms or rules.patterns:
        missing.append("the model's own glossary and patterns have no effect")
    return missing


def warn_of_losses(trained: TrainedModel, output: str, cuts_sentences: bool = False) -> None:
    """Log a warning with the ``losses`` of an export, if there are any.

    Args:
        trained: The exported model.
        output: The exported file or folder, for the message.
        cuts_sentences: As for ``losses``.
    """
    if missing := losses(trained.description, cuts_sentences):
        logger.warning(
            "%s is exported without the text layer: %s. Train with text=off for a model that loses nothing",
            output,
            "; ".join(missing),
        )


def _missing_functions(described: ModelDescription, cuts_sentences: bool) -> str:
    missing = [
        *losses(described, cuts_sentences),
        f"sentences of more than {described.max_source_length} tokens are not translated in parts",
        "tags inside a line are not put where their words go, and there are no word alignments",
    ]
    lead = "mt-trainer's `translate.py` does more with a line than this folder can hold. Here:"
    return "\n".join([lead, "", *(f"- {function}" for function in missing)])


def _base_model(run: Path) -> tuple[str, str]:
    """Return the name of the model that a run was fine-tuned from, and its commit on the hub.

    The commit is empty if the base model is a local folder, and both are empty for a run without a base model. Of a
    local folder, only the last part of the path is returned, because the names of parent folders may be private.
    """
    config = _config_of(run)
    if config is None or config.training.init_from is None:
        return "", ""
    if (run / PROVENANCE).exists() and (recorded := read_json(run / PROVENANCE).get("base_model")) is not None:
        if not HUB_NAME.fullmatch(str(recorded)):
            raise damaged_file(run / PROVENANCE, wrong_keys(["base_model"]))
        name, _, commit = str(recorded).partition("@")
        return name, commit
    return Path(config.training.init_from).name, ""


def _linked(name: str, commit: str) -> str:
    return f"[{name}](https://huggingface.co/{name}), commit {commit}" if commit else f"`{name}`"


def _config_of(run: Path) -> TrainConfig | None:
    return read_config(run) if (run / CONFIG).exists() else None


def _data(run: Path, base_model: str) -> Iterator[str]:
    """Yield Markdown lines with the corpora and the number of training pairs, as far as the run folder has them.

    Args:
        run: The run folder, or a model folder, which has neither.
        base_model: The name of the base model; empty if there is none.
    """
    config = _config_of(run)
    if config is None:
        yield "Not recorded."
        return
    for corpus in single_corpora(config.data):
        yield f"- {_named(corpus)}"
    if (run / PROVENANCE).exists():
        with _reading(run / PROVENANCE) as provenance:
            yield f"- {provenance['data']['train']['pairs']:,} training pairs in all"
    if base_model:
        yield f"- and, as it was fine-tuned, whatever {base_model} was trained on"


def _named(corpus: SingleCorpusConfig) -> str:
    """Return the name of a corpus in Markdown. Of paths, only the last part is shown: parents may be private."""
    match corpus:
        case RecipeConfig():
            return f"`{corpus.recipe}`, which mt-trainer fetches"
        case HubConfig():
            path = Path(corpus.path).name if Path(corpus.path).exists() else corpus.path
            subset = "" if corpus.subset is None else f", subset {corpus.subset}"
            return f"`{path}`{subset}" + ("" if corpus.revision is None else f", revision {corpus.revision}")
        case FilesConfig():
            files = [file for pair in as_pairs(corpus.train) for file in pair]
        case TableConfig():
            files = [corpus.train] if isinstance(corpus.train, str) else list(corpus.train)
        case _:
            assert_never(corpus)
    return ", ".join(f"`{Path(file).name}`" for file in files)


def _scores(run: Path, described: ModelDescription) -> Iterator[str]:
    """Yield Markdown lines with the scores of the test set, if the run folder has them."""
    if not (run / RESULTS).is_file():
        yield "Not recorded."
        return
    decoding = described.decoding
    how = f"a beam of {decoding.beam_size} and a length penalty of {decoding.length_penalty:g}"
    lacking = ", and with what is lacking here" if described.text.enabled else ""
    results = read_results(run)
    yield f"Of {results['test_pairs']:,} test pairs, translated by mt-trainer with {how}{lacking}, by sacreBLEU:"
    yield ""
    scores = scores_with_signatures(results)
    for key in METRICS:
        if key in scores:
            score, signature = scores[key]
            yield f"- {METRICS[key].name} {score:.1f} (`{signature}`)"


@contextmanager
def _reading(path: Path) -> Iterator[dict]:
    """Context manager: yield the content of a sealed JSON file, and turn the block's errors into InputError.

    KeyError, TypeError and ValueError in the block mean that the file lacks a key, or has a value of another type.
    """
    content = read_json(path)
    try:
        yield content
    except (KeyError, TypeError, ValueError) as error:
        raise damaged_file(path, f"wrong or missing values: {error!r}") from None
