"""Writes, opens and checks what a run or model folder holds.

Opening a folder executes nothing in it: YAML is read without tags or interpolation, and weights are safetensors.
"""

import hashlib
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pydantic
import yaml

from mt.config import (
    KeptConfig,
    ModelConfig,
    ModelDescription,
    RulesConfig,
    Section,
    TrainConfig,
    TransformerConfig,
)
from mt.core.errors import InputError
from mt.core.files import read_lines, resolved, write_atomically
from mt.core.json_file import CHECKSUM_KEY, read_json, sha256, write_json
from mt.models.build import build_model, build_shapes
from mt.models.seq2seq import Seq2Seq
from mt.storage.marian import describe, is_marian, located, read_weights
from mt.storage.weights import copy_weights, load_weights, read_fitting, refuse_another_tokenizer
from mt.text.layer import TextLayer
from mt.text.spelling import WORD, Spelling
from mt.text.tokenizer import TokenizerPair

Checked = TypeVar("Checked", bound=Section)

logger = logging.getLogger(__name__)

CONFIG = "config.yaml"
MODEL = "model.yaml"
WEIGHTS = "model.safetensors"
METRICS = "metrics.jsonl"
CHOICE = "choice.json"
RESULTS = "results.json"
PROVENANCE = "provenance.json"
TOOK_EFFECT = "took_effect"
"""Key of the section of provenance.json that says what the settings came to in effect."""
LOG = "train.log"
TENSORBOARD = "tensorboard"
SCORED = "scored"
COMPARED = (CONFIG, METRICS, PROVENANCE, *(f"{SCORED}/test.{name}" for name in ("source", "reference", "hypothesis")))
"""The files of a finished run that a comparison reads, beside those that carry a checksum of their own."""
FILES = "files"
"""Key of results.json: the checksum of each file in COMPARED."""
CHECKPOINTS = "checkpoints"
SOURCE_WORDS = "source_words.json"
"""The words of the training sources, each with how often it occurs: what typing errors are corrected by."""


MISTAKES_TOLD = 10
"""How many mistakes in one file an error message tells."""

FORMAT = 1
"""The format of model.yaml. Raise it whenever a key is added, removed or given another meaning."""

# fmt: off
NO_PART_OF_A_RUN = (
    "name", "runs", "training.device", "training.threads", "training.workers", "training.shard",
    "training.compile", "training.log_every", "choice",
)
# fmt: on
"""Settings that may change when a run goes on: where it lies, what it runs on, how often it logs, and the run whose
choice it took. On another device, with another number of threads or workers, or compiled, its result is no longer the
same to the last bit."""


@dataclass(frozen=True)
class TrainedModel:
    """All that is needed to translate."""

    description: ModelDescription
    tokenizers: TokenizerPair
    model: Seq2Seq
    spelling: Spelling | None

    def layer_with(self, kept: KeptConfig) -> TextLayer:
        """Returns the model's text layer, for which more than its own terms and patterns are not to be translated.

        Raises:
            InputError: The model was trained without slots, or a pattern cannot be used.
        """
        described, rules = self.description, self.description.text
        if kept.terms or kept.patterns:
            if not rules.enabled:
                raise InputError("text.terms and text.patterns need slots, without which this model was trained")
            more = {"terms": rules.terms + kept.terms, "patterns": rules.patterns + kept.patterns}
            rules = rules.model_copy(update=more)
        return TextLayer(rules, self.tokenizers, described.source_language, described.target_language, self.spelling)


def open_model(folder: Path) -> TrainedModel:
    """Reads model.yaml, the tokenizer, model.safetensors and, if typing errors are corrected, source_words.json. The
    model is on the CPU, in evaluation mode.

    Raises:
        InputError: A file is missing, damaged or does not fit the others. The message names it.
    """
    folder = _found(folder)
    if is_marian(folder):
        return _open_marian(folder)
    description = read_description(folder)
    weights = folder / WEIGHTS
    if (folder / CHECKPOINTS).is_dir() and not (folder / RESULTS).is_file():
        if not weights.is_file():
            raise InputError(f"{folder}: there are no weights yet: its training has not reached the first validation")
        logger.warning("%s: its training is not finished; these are the best weights so far", folder)
    refuse_another_tokenizer(folder, weights)
    tokenizers = TokenizerPair.load(folder)
    if tokenizers.joint != description.tokenizer.joint:
        kinds = {True: "one tokenizer for both languages", False: "a tokenizer for each language"}
        raise InputError(
            f"{folder}: there is {kinds[tokenizers.joint]}, but the model was trained with "
            f"{kinds[description.tokenizer.joint]}"
        )
    if description.text.enabled and not (tokenizers.source.slots and tokenizers.target.slots):
        raise InputError(f"{folder / MODEL}: says text.enabled=true, but the tokenizer has no slots")
    spelling = read_spelling(folder, description)
    # A description may claim a model of any size, so no memory is allocated for it before the shapes of the weights
    # have confirmed it.
    claimed = build_shapes(description.model, tokenizers)
    tensors = read_fitting(claimed, description.model, weights)
    model = build_model(description.model, tokenizers)
    copy_weights(tensors, model)
    return TrainedModel(description, tokenizers, model.eval(), spelling)


def _open_marian(folder: Path) -> TrainedModel:
    description, tokenizers = describe(folder)
    assert isinstance(description.model, TransformerConfig)
    tensors = read_weights(folder, description.model, tokenizers)
    model = build_model(description.model, tokenizers)
    copy_weights(tensors, model)
    logger.info("%s: a MarianMT model, without slots: lines go to it as they are (text.enabled=false)", folder)
    return TrainedModel(description, tokenizers, model.eval(), None)


def read_tokenizers(folder: Path) -> TokenizerPair:
    """Reads the tokenizers of a run or model folder. Raises InputError if a file is missing or damaged."""
    folder = _found(folder)
    return describe(folder)[1] if is_marian(folder) else TokenizerPair.load(folder)


def load_weights_of(folder: Path, model: Seq2Seq, config: ModelConfig, tokenizers: TokenizerPair) -> None:
    """Copies the weights of a run or model folder into a model.

    Args:
        folder: The folder.
        model: The model.
        config: Its settings.
        tokenizers: Its tokenizers.

    Raises:
        InputError: They are damaged, or do not fit.
    """
    folder = _found(folder)
    if is_marian(folder):
        assert isinstance(config, TransformerConfig)
        copy_weights(read_weights(folder, config, tokenizers), model)
    else:
        load_weights(model, config, folder / WEIGHTS)


def _found(folder: Path) -> Path:
    """Returns the folder that is meant, which may be that of a model of the hub, if it may be opened.

    Raises:
        InputError: It does not exist, or see ``refuse_links_out``.
    """
    found = located(folder)
    if not found.is_dir():
        raise InputError(f"{folder}: no such run or model folder")
    if found == folder:  # what the hub's own library keeps consists of links
        refuse_links_out(found)
    return found


def open_models(folders: Sequence[Path]) -> list[TrainedModel]:
    """Opens models that shall translate together. They are on the CPU, in evaluation mode.

    Raises:
        InputError: See ``open_model``; or a model differs from the first in its languages, in its pieces or in the
            rules of its text layer. The message names every such model and what differs.
    """
    opened = [open_model(folder) for folder in folders]
    different = [
        f"{folder} ({', '.join(wrong)})"
        for folder, trained in zip(folders[1:], opened[1:], strict=True)
        if (wrong := _different_readings(opened[0], trained))
    ]
    if different:
        raise InputError(
            f"{'; '.join(different)}: cannot translate together with {folders[0]}, because an ensemble needs one "
            f"tokenizer and one text layer: train the runs on the same data, or with tokenizer.reuse={folders[0]}"
        )
    return opened


def _different_readings(first: TrainedModel, other: TrainedModel) -> list[str]:
    """Returns what two models differ in that decides which pieces they read and write."""
    described, others = first.description, other.description
    languages = [f"{one.source_language}→{one.target_language}" for one in (described, others)]
    tokenizers = [{name: one.model for name, one in each.tokenizers.by_file().items()} for each in (first, other)]
    found = [f"{languages[1]} instead of {languages[0]}"] if languages[0] != languages[1] else []
    if tokenizers[0] != tokenizers[1]:
        found.append("another tokenizer")
    rules = [name for name in RulesConfig.model_fields if getattr(described.text, name) != getattr(others.text, name)]
    return found + [f"another text.{name}" for name in rules]


def file_checksums(run: Path) -> dict[str, str]:
    """Returns the SHA-256 of each file of a finished run that a comparison reads, by its name."""
    found = {}
    for name in COMPARED:
        with (run / name).open("rb") as stream:
            found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
    return found


def refuse_changed_files(run: Path, results: dict) -> None:
    """Raises InputError if a file is no longer the one that a finished run was scored with.

    Args:
        run: The run's folder.
        results: The content of its results.json.
    """
    recorded = results.get(FILES)
    if not isinstance(recorded, dict):
        raise InputError(f"{run / RESULTS}: damaged or of another version: {FILES}")
    try:
        found = file_checksums(run)
    except OSError as error:
        raise InputError(f"{error.filename}: {error.strerror}") from None
    if changed := [name for name in COMPARED if recorded.get(name) != found[name]]:
        raise InputError(f"{run / changed[0]}: damaged or changed since the run was scored")


def read_scored(run: Path) -> dict[str, list[str]]:
    """Returns the test set of a finished run as it was scored: the lines of source, reference and hypothesis.

    Raises:
        InputError: A file is missing, or they have different numbers of lines, or none.
    """
    lines = {
        name: [line.decode("utf-8", errors="replace") for line in read_lines(run / SCORED / f"test.{name}")]
        for name in ("source", "reference", "hypothesis")
    }
    if len({len(part) for part in lines.values()}) != 1:
        counts = ", ".join(f"{name} {len(part)}" for name, part in lines.items())
        raise InputError(f"{run / SCORED}: the files have different numbers of lines: {counts}")
    if not lines["source"]:
        raise InputError(f"{run / SCORED}: there is not one test sentence in it")
    return lines


def refuse_links_out(folder: Path) -> None:
    """Raises InputError if a symbolic link leads out of a run or model folder, or if the folder holds special files,
    such as pipes or devices.

    A folder may come from somebody else. Through a link it could show or change files of the user's own.
    """
    home = folder.resolve()
    if home == home.parent:
        raise InputError(f"{folder}: not a run or model folder")  # the root, under which all disks would be searched
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in folders + files):
            if path.is_symlink() and not resolved(path).is_relative_to(home):
                raise InputError(
                    f"{path}: a link that leads out of the folder; replace it by a copy of what it points to"
                )
            if path.exists() and not path.is_file() and not path.is_dir():
                raise InputError(f"{path}: neither a file nor a folder")


def read_description(folder: Path) -> ModelDescription:
    """Reads model.yaml.

    Raises:
        InputError: The file is missing, damaged or of another format. The message names it.
    """
    folder = _found(folder)
    if is_marian(folder):
        return describe(folder)[0]
    path = folder / MODEL
    if not path.exists():
        raise InputError(f"{path}: no such file; a run or model folder holds {MODEL}, a tokenizer and {WEIGHTS}")
    values = _read_mapping(path)
    _warn_of_a_change(path, values.pop(CHECKSUM_KEY, None))
    version = values.pop("format", None)
    if type(version) is not int or version != FORMAT:
        raise InputError(f"{path}: written by another version: its format is not {FORMAT}")
    return _checked(path, f"not a model description of format {FORMAT}", ModelDescription, values, strict=True)


def _printable(key: str) -> str:
    """Returns a key, which may be anything in someone else's file, in a form that is safe to print."""
    return key[:80].encode("unicode_escape").decode()


def write_description(folder: Path, description: ModelDescription) -> None:
    """Writes model.yaml: complete, with a last line that holds the checksum of the others."""
    text = _as_yaml({"format": FORMAT} | description.model_dump(mode="json"))
    write_atomically(folder / MODEL, f"{text}{CHECKSUM_KEY}: {sha256(text)}\n")


def write_spelling(folder: Path, spelling: Spelling | None) -> None:
    """Writes the words of the training sources, or removes those of an earlier training that had any."""
    if spelling is None:
        (folder / SOURCE_WORDS).unlink(missing_ok=True)
    else:
        write_json(folder / SOURCE_WORDS, {"words": spelling.counts})


def read_spelling(folder: Path, description: ModelDescription) -> Spelling | None:
    """Reads what a model's typing errors are corrected by; None if its text layer corrects none.

    Args:
        folder: The run or model folder.
        description: What its model.yaml says.

    Raises:
        InputError: A file is missing or damaged. The message names it.
    """
    if description.text.fewest_times is None:
        return None
    counts = read_json(folder / SOURCE_WORDS, "words")["words"]
    if not isinstance(counts, dict) or not all(
        WORD.fullmatch(word) and type(times) is int for word, times in counts.items()
    ):
        raise InputError(f"{folder / SOURCE_WORDS}: damaged or of another version")
    return Spelling(counts, description.source_language, description.text.fewest_times)


def _warn_of_a_change(path: Path, checksum: object) -> None:
    """Logs a warning if model.yaml no longer matches its checksum.

    It is still used, because people may edit it, for instance to set another default decoding. They are warned because
    the change may also be a flipped bit. A change that would make the weights compute something else is refused when
    the weights are read.
    """
    text = path.read_text(encoding="utf-8").rpartition(f"{CHECKSUM_KEY}: ")[0]
    if checksum is not None and checksum != sha256(text):
        logger.warning(
            "%s: edited or damaged since training wrote it; it is read as it is. If the change is yours, delete the "
            "last line, %s",
            path,
            CHECKSUM_KEY,
        )


def read_config(folder: Path) -> TrainConfig:
    """Reads the config of a run and checks it.

    Raises:
        InputError: The config is missing or wrong. The message names the file.
    """
    path = folder / CONFIG
    return _checked(path, "not a config of this version", TrainConfig, _read_mapping(path))


def write_config(folder: Path, config: TrainConfig) -> None:
    """Writes config.yaml, resolved and complete."""
    write_atomically(folder / CONFIG, _as_yaml(config.model_dump(mode="json")))


def _as_yaml(values: dict) -> str:
    return str(yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


class _WithoutMerges(yaml.SafeLoader):
    """Refuses merge keys (``<<``), which this project never writes: a few hundred bytes of nested ones stand for more
    keys than the memory can hold."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
            raise yaml.constructor.ConstructorError(None, None, "merge keys (<<) are not allowed", node.start_mark)


def _read_mapping(path: Path) -> dict:
    """Reads a YAML file of keys and values, without tags. Raises InputError, which names it, if it is anything else."""
    try:
        values = yaml.load(path.read_text(encoding="utf-8"), _WithoutMerges)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, yaml.YAMLError, RecursionError, ValueError, TypeError, KeyError, AttributeError) as error:
        # What looks like a YAML date or number may be invalid, which raises errors other than YAMLError.
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: cannot be read: it does not consist of keys and values")
    return values


def _checked(path: Path, otherwise: str, schema: type[Checked], values: dict, strict: bool = False) -> Checked:
    """Validates the values of a file against a schema.

    Args:
        otherwise: What the error message says of the file, before the mistakes, if it does not follow the schema.
        strict: Whether no value may be converted, such as the text "16" to a number.

    Raises:
        InputError: The values do not follow the schema. The message tells the mistakes, up to MISTAKES_TOLD.
    """
    try:
        return schema.model_validate(values, strict=strict)
    except pydantic.ValidationError as error:
        mistakes = [f"{_printable('.'.join(map(str, e['loc'])))}: {e['msg']}" for e in error.errors()]
        more = f" and {len(mistakes) - MISTAKES_TOLD} more" if len(mistakes) > MISTAKES_TOLD else ""
        raise InputError(f"{path}: {otherwise}: {'; '.join(mistakes[:MISTAKES_TOLD])}{more}") from None
    except (RecursionError, ValueError, TypeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None


def config_differences(old: Section, new: Section) -> dict[str, tuple[object, object]]:
    """Returns the keys under which two runs' configs, or the same section of both, differ, with both values.

    Keys of NO_PART_OF_A_RUN are left out. Two ways to write the same path are equal.
    """
    found = _differences(old.model_dump(mode="json"), new.model_dump(mode="json"))
    return {key: values for key, values in found.items() if key not in NO_PART_OF_A_RUN}


def _differences(old: object, new: object, prefix: str = "") -> dict[str, tuple[object, object]]:
    if isinstance(old, dict) and isinstance(new, dict):
        found: dict[str, tuple[object, object]] = {}
        for name in old | new:
            found |= _differences(old.get(name), new.get(name), f"{prefix}.{name}" if prefix else name)
        return found
    return {} if _are_equal(old, new) else {prefix: (old, new)}


def _are_equal(old: object, new: object) -> bool:
    if isinstance(old, str) and isinstance(new, str):
        return os.path.abspath(old) == os.path.abspath(new)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_are_equal, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(_are_equal(old[name], new[name]) for name in old)
    return old == new


def flat_config(config: TrainConfig) -> dict[str, object]:
    """Returns every value of a config under its full key, such as ``training.schedule.kind``."""
    return dict(_leaves(config.model_dump(mode="json")))


def _leaves(values: dict, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value
