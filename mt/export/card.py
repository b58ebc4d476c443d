"""The README.md of an export: what the model was trained on, how good it is, how it is used, and what of the text layer
its new home lacks. Its first lines are the metadata of a Hugging Face model card."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from mt.config import (
    FilesConfig,
    HubConfig,
    MixtureConfig,
    ModelDescription,
    RecipeConfig,
    SingleCorpusConfig,
    TableConfig,
    TrainConfig,
    as_pairs,
)
from mt.core.errors import InputError
from mt.core.json_file import read_json
from mt.core.language import base_language, english_name
from mt.storage.hub import HUB_NAME
from mt.storage.run_folder import CONFIG, PROVENANCE, RESULTS, read_config
from mt.translation.trained_model import TrainedModel

logger = logging.getLogger(__name__)

NO_TAGS: Mapping[str, str] = {}
METRICS = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}
"""The scores in results.json, and their names."""


def model_card(
    trained: TrainedModel,
    run: Path,
    license: str | None,
    usage: str,
    tags: Mapping[str, str] = NO_TAGS,
    cuts_sentences: bool = False,
) -> str:
    """Returns the text of README.md.

    Args:
        trained: The model.
        run: The run or model folder that it is from.
        license: Its licence, if the user has given one.
        usage: How it is used where it goes, in Markdown.
        tags: Metadata beside its languages and its licence.
        cuts_sentences: Whether the program that it goes to cuts lines into sentences itself.
    """
    described = trained.description
    languages = [base_language(code) for code in (described.source_language, described.target_language)]
    began_with, on_the_hub = _beginning(run)
    metadata = {"language": languages} | ({"license": license} if license else {}) | dict(tags)
    if on_the_hub:
        metadata |= {"base_model": began_with, "base_model_relation": "finetune"}
    source, target = (english_name(code) for code in (described.source_language, described.target_language))
    parts = [
        f"---\n{yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)}---",
        f"# {source} to {target}",
        f"A {described.model.architecture} of {trained.model.parameter_count:,} parameters, trained with mt-trainer."
        + (f" Its training began with the model {_linked(began_with, on_the_hub)}." if began_with else ""),
        "## Use",
        usage.strip(),
        "## What it lacks",
        _what_it_lacks(described, cuts_sentences),
        "## Data",
        "\n".join(_data(run, began_with)),
        "## Scores",
        "\n".join(_scores(run, described)),
        "## Licence",
        license or "Whoever made this folder has not said under which licence the model may be used.",
    ]
    return "\n\n".join(parts) + "\n"


def write_card(folder: Path, card: str) -> None:
    (folder / "README.md").write_text(card, encoding="utf-8")


def losses(described: ModelDescription, cuts_sentences: bool = False) -> list[str]:
    """Returns what the text layer does here, and what is not done where a model's weights and tokenizer go alone.

    Args:
        described: The model.
        cuts_sentences: Whether the program that it goes to cuts lines into sentences itself.
    """
    rules = described.text
    if not rules.enabled:
        return []
    found = [
        "links, numbers, codes, placeholders, tags and emoji are translated like words, and may come back changed",
        "lines in capitals or in title case are not put into small letters for the model",
    ]
    if rules.fewest_times is not None:
        found.append("typing errors are not corrected")
        found.append("names and beginnings of sentences in lines without capitals get none")
    if rules.final_marks:
        found.append("lines without final punctuation stay as they are, and may be translated worse")
    if not cuts_sentences:
        most = "one sentence" if rules.most_sentences == 1 else f"{rules.most_sentences} sentences"
        found.append(f"lines of more than {most} are not cut into sentences")
    if own := len(rules.terms) + len(rules.patterns):
        found.append(f"the model's own terms and patterns, {own} of them, are translated")
    return found


def warn_of_losses(trained: TrainedModel, output: str, cuts_sentences: bool = False) -> None:
    """Logs a warning if the text layer of a model does things that are not done where the export goes."""
    if found := losses(trained.description, cuts_sentences):
        logger.warning(
            "%s goes without the text layer: %s. A model trained with text=off has nothing to lose",
            output,
            "; ".join(found),
        )


def _what_it_lacks(described: ModelDescription, cuts_sentences: bool) -> str:
    found = [
        *losses(described, cuts_sentences),
        f"sentences of more than {described.max_source_length} pieces are not translated in parts",
        "tags inside a line are not put where their words go, and there are no word alignments",
    ]
    lead = "mt-trainer's `translate.py` does more with a line than this folder can hold. Here:"
    return "\n".join([lead, "", *(f"- {one}" for one in found)])


def _beginning(run: Path) -> tuple[str, str]:
    """Returns the name of the model that a run was fine-tuned from, and its commit on the hub; both empty if there is
    none. A folder comes without the folders that it lies in, whose names may be private, and has no commit."""
    config = _config_of(run)
    if config is None or config.training.init_from is None:
        return "", ""
    if (run / PROVENANCE).exists() and (recorded := read_json(run / PROVENANCE).get("base_model")) is not None:
        if not HUB_NAME.fullmatch(str(recorded)):
            raise InputError(f"{run / PROVENANCE}: damaged or of another version: base_model")
        name, _, commit = str(recorded).partition("@")
        return name, commit
    return Path(config.training.init_from).name, ""


def _linked(name: str, commit: str) -> str:
    return f"[{name}](https://huggingface.co/{name}), commit {commit}" if commit else f"`{name}`"


def _config_of(run: Path) -> TrainConfig | None:
    return read_config(run) if (run / CONFIG).exists() else None


def _data(run: Path, began_with: str) -> Iterator[str]:
    """Yields lines that name the corpora and count the training pairs, as far as the folder says so."""
    config = _config_of(run)
    if config is None:
        yield "Not recorded."
        return
    for corpus in config.data.corpora if isinstance(config.data, MixtureConfig) else (config.data,):
        yield f"- {_named(corpus)}"
    if (run / PROVENANCE).exists():
        with _reading(run / PROVENANCE) as provenance:
            yield f"- {provenance['data']['train']['pairs']:,} training pairs in all"
    if began_with:
        yield f"- and, as it was fine-tuned, whatever {began_with} was trained on"


def _named(corpus: SingleCorpusConfig) -> str:
    """Returns what a corpus is called. Files and folders come without the folders that they lie in, whose names may be
    private."""
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
    return ", ".join(f"`{Path(file).name}`" for file in files)


def _scores(run: Path, described: ModelDescription) -> Iterator[str]:
    """Yields the scores of the test set, if there are any."""
    if not (run / RESULTS).is_file():
        yield "Not recorded."
        return
    decoding = described.decoding
    how = f"a beam of {decoding.beam_size} and a length penalty of {decoding.length_penalty:g}"
    lacking = ", and with what is lacking here" if described.text.enabled else ""
    with _reading(run / RESULTS) as results:
        yield f"Of {results['test_pairs']:,} test pairs, translated by mt-trainer with {how}{lacking}, by sacreBLEU:"
        yield ""
        for key, name in METRICS.items():
            yield f"- {name} {results[key]:.1f} (`{results[f'{key}_signature']}`)"


@contextmanager
def _reading(path: Path) -> Iterator[dict]:
    """Yields the content of a JSON file, and raises InputError if the block does not find in it what it looks for."""
    content = read_json(path)
    try:
        yield content
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"{path}: damaged or of another version: {error!r}") from None
