"""What a run or model folder holds: writing it, opening it, checking it.

Opening a folder executes nothing it contains: YAML is read without tags or interpolation, weights are safetensors.
"""

import hashlib
import json
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pydantic
import torch
import yaml
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from mt.config import ModelConfig, ModelDescription, PiecesConfig, Section, TrainConfig
from mt.data.tokenizer import TOKENIZER_FILES, TokenizerPair
from mt.earlier_config import as_of_today
from mt.errors import InputError
from mt.files import resolved, write_atomically
from mt.model.build import build_model
from mt.model.seq2seq import Seq2Seq

Checked = TypeVar("Checked", bound=Section)

logger = logging.getLogger(__name__)

CONFIG = "config.yaml"
MODEL = "model.yaml"
WEIGHTS = "model.safetensors"
METRICS = "metrics.jsonl"
RESULTS = "results.json"
PROVENANCE = "provenance.json"
TOOK_EFFECT = "took_effect"
"""The section of provenance.json that says what the settings came to."""
LOG = "train.log"
TENSORBOARD = "tensorboard"
SCORED = "scored"
CHECKPOINTS = "checkpoints"

SEAL = "sha256"
"""Last entry of sealed JSON: the checksum of the text before it."""
CHECKSUMS = "checksums"
"""The one entry in the metadata of a safetensors file: sealed JSON, with the two entries below and one for each file of
the tokenizer."""
TENSORS = "tensors"
ARCHITECTURE = "architecture"


MISTAKES_TOLD = 10
"""Of one file."""

FORMAT = 2
"""Of model.yaml: raised whenever a key is added to it, taken away or given another meaning. Every earlier format stays
readable. Format 1 is that of folders without a model.yaml, in which config.yaml says the same among other things."""

# fmt: off
NO_PART_OF_A_RUN = (
    "name", "runs", "training.device", "training.threads", "training.workers", "training.shard",
    "training.compile", "training.log_every",
)
# fmt: on
"""Where a run lies, what it runs on and how often it speaks may change when it goes on. On another device, or with
another number of threads or workers, or compiled, its result is no longer the same to the last bit."""


@dataclass(frozen=True)
class TrainedModel:
    """All that translating needs."""

    description: ModelDescription
    tokenizers: TokenizerPair
    model: Seq2Seq


def open_model(folder: Path) -> TrainedModel:
    """Reads model.yaml, the tokenizer and model.safetensors; the model is on the CPU, in evaluation mode.

    Raises InputError that names the file which is missing, damaged or does not fit the others.
    """
    description = read_description(folder)
    weights = folder / WEIGHTS
    if (folder / CHECKPOINTS).is_dir() and not (folder / RESULTS).is_file():
        if not weights.is_file():
            raise InputError(f"{folder}: its training has not come to a validation yet: there are no weights")
        logger.warning("%s: its training is not finished; these are the best weights so far", folder)
    refuse_another_tokenizer(folder, weights)
    tokenizers = TokenizerPair.load(folder)
    if tokenizers.joint != description.tokenizer.joint:
        kinds = {True: "one tokenizer for both languages", False: "a tokenizer for each language"}
        raise InputError(
            f"{folder}: there is {kinds[tokenizers.joint]}, but the model was trained with "
            f"{kinds[description.tokenizer.joint]}"
        )
    # A description may claim any size: memory is asked for when the weights have borne it out.
    with torch.device("meta"):
        claimed = build_model(description.model, tokenizers)
    tensors = _read_fitting(claimed, description.model, weights)
    model = build_model(description.model, tokenizers)
    _copy(tensors, model)
    return TrainedModel(description, tokenizers, model.eval())


def refuse_links_out(folder: Path) -> None:
    """Raises InputError if something in a run or model folder lies elsewhere: folders are handed on, and a link could
    show, or change, the reader's own files."""
    home = folder.resolve()
    if home == home.parent:
        raise InputError(f"{folder}: not a run or model folder")  # and all disks would be looked through
    for place, folders, files in os.walk(folder):
        for path in (Path(place, name) for name in folders + files):
            if path.is_symlink() and not resolved(path).is_relative_to(home):
                raise InputError(f"{path}: a link that leads out of the folder; put what it points to in its place")
            if path.exists() and not path.is_file() and not path.is_dir():
                raise InputError(f"{path}: neither a file nor a folder")


def read_description(folder: Path) -> ModelDescription:
    """What model.yaml says; where there is none, as in folders of format 1, what config.yaml says of the same things.

    The rest of config.yaml is not looked at: that a setting of training has since been renamed or dropped makes no
    model useless. Raises InputError naming the file that is missing, damaged or of a newer format.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such run or model folder")
    refuse_links_out(folder)
    path = folder / MODEL
    if not path.exists():
        return _read_description_of_format_1(folder)
    values = _read_mapping(path)
    version = values.pop("format", None)
    if not isinstance(version, int) or isinstance(version, bool) or version < 2:
        raise InputError(f"{path}: damaged: it does not say its format, a number from 2 on")
    if version > FORMAT:
        raise InputError(f"{path}: written by a newer version: format {version}, this code reads up to {FORMAT}")
    return _checked(path, f"not a model description of format {version}", ModelDescription, values, strict=True)


def _read_description_of_format_1(folder: Path) -> ModelDescription:
    path = folder / CONFIG
    if not path.exists():
        raise InputError(
            f"{folder / MODEL}: no such file; a run or model folder holds {MODEL}, a tokenizer and {WEIGHTS}"
        )
    values = _read_mapping(path)
    data, tokenizer = _part(values, "data"), _part(values, "tokenizer")
    described = {
        **{name: data[name] for name in ("source_language", "target_language") if name in data},
        **{name: values[name] for name in ("model", "decoding") if name in values},
        "tokenizer": {
            **{name: value for name, value in tokenizer.items() if name in PiecesConfig.model_fields},
            "joint": not (folder / "source.model").exists(),
        },
    }
    return _checked(path, "describes no model that this version knows", ModelDescription, described)


def _printable(key: str) -> str:
    """A key that someone else's file made up, as a terminal may show it."""
    return key[:80].encode("unicode_escape").decode()


def _part(values: dict, name: str) -> dict:
    part = values.get(name)
    return part if isinstance(part, dict) else {}


def write_description(folder: Path, description: ModelDescription) -> None:
    """model.yaml: complete, in the newest format."""
    _write_yaml(folder / MODEL, {"format": FORMAT} | description.model_dump(mode="json"))


def read_config(folder: Path) -> TrainConfig:
    """The config of a run, checked anew; of an older run, put into today's terms. Raises InputError naming the file."""
    path = folder / CONFIG
    values = _read_mapping(path)
    if not _tells_what_took_effect(folder):
        values = as_of_today(values)
    return _checked(path, "not a config of this version", TrainConfig, values)


def _tells_what_took_effect(folder: Path) -> bool:
    """Whether a run was begun, or gone on with, since provenance.json says so: its config is then one of today's."""
    try:
        return TOOK_EFFECT in read_json(folder / PROVENANCE)
    except InputError:  # a model folder may lack it
        return False


def write_config(folder: Path, config: TrainConfig) -> None:
    """config.yaml: resolved and complete."""
    _write_yaml(folder / CONFIG, config.model_dump(mode="json"))


def _write_yaml(path: Path, values: dict) -> None:
    write_atomically(path, yaml.safe_dump(values, sort_keys=False, allow_unicode=True))


def _read_mapping(path: Path) -> dict:
    """A YAML file that holds keys and values, without tags. Raises InputError naming it."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, yaml.YAMLError, RecursionError, ValueError, TypeError, KeyError, AttributeError) as error:
        # YAML's own dates and numbers may be none.
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path}: cannot be read: it does not consist of keys and values")
    return values


def _checked(path: Path, otherwise: str, schema: type[Checked], values: dict, strict: bool = False) -> Checked:
    """The values of a file as what they shall be. Raises InputError with every mistake, after the words ``otherwise``.

    ``strict``: no value is converted, such as the text "16" to a number.
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
    """The keys under which two runs' configs, or the same section of both, differ in what the runs are, with both
    values; two ways to write a path are equal."""
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
    return old == new


def flat_config(config: TrainConfig) -> dict[str, object]:
    """Every value under its full key, ``training.schedule.kind``."""
    return dict(_leaves(config.model_dump(mode="json")))


def _leaves(values: dict, prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def weights_of(model: Seq2Seq) -> dict[str, Tensor]:
    """Every weight once, tied ones under their first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def checksum(tensors: dict[str, Tensor]) -> str:
    """SHA-256 over names, shapes and contents."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        # A copy: storage that NumPy has seen cannot be freed by a sharded model any more.
        tensor = tensors[name].detach().to("cpu", copy=True).contiguous()
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} ".encode())
        digest.update(tensor.view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def deciding_settings(config: ModelConfig) -> dict[str, object]:
    """The settings of a model that decide which function its weights compute: all but the rates of dropout.

    Weights of the same shapes can be read as different models: with another number of heads, another activation or the
    norm in another place they still fit, and translate to rubbish. So these settings are kept in the weights' own file,
    under its checksum, and a config that says something else is refused. They are kept as they are and not as a digest,
    so that the message can name the key, and a key that a later version adds can be told from one that was changed.
    """
    settings = config.model_dump(mode="json")
    return {name: value for name, value in settings.items() if not name.endswith("dropout")}


def what_belongs_to(config: ModelConfig, tokenizers: TokenizerPair) -> dict[str, object]:
    """What weights mean nothing without: the deciding settings, and the SHA-256 of each file of the tokenizer."""
    files: dict[str, object] = {
        name: hashlib.sha256(one.model).hexdigest() for name, one in tokenizers.by_file().items()
    }
    return files | {ARCHITECTURE: deciding_settings(config)}


def refuse_another_tokenizer(folder: Path, weights: Path) -> None:
    """Checks the tokenizer in a folder against what a file of weights says of it, and loads neither.

    Weights of earlier formats say nothing of it, and any tokenizer passes.

    Raises:
        InputError: a file of the tokenizer is damaged or missing, or another one than the weights were trained with.
    """
    recorded = read_metadata(weights)
    if not recorded.keys() & TOKENIZER_FILES:
        return
    for path in (folder / name for name in sorted(TOKENIZER_FILES)):
        try:
            found = hashlib.sha256(path.read_bytes()).hexdigest()
        except FileNotFoundError:
            found = None
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}") from None
        if found != recorded.get(path.name):
            reason = f"damaged, or not the tokenizer that {weights} was trained with" if found else "no such file"
            raise InputError(f"{path}: {reason}")


def write_tensors(path: Path, tensors: dict[str, Tensor], belonging: Mapping[str, object] | None = None) -> None:
    """Writes a safetensors file with a checksum of its tensors in the metadata.

    Args:
        belonging: for weights, what ``what_belongs_to`` gives. It lies in the weights' own file, so that config,
            tokenizer and weights alone are a model whose parts are known to belong together.
    """
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = {TENSORS: checksum(on_cpu), **(belonging or {})}
    # One entry: safetensors writes several in an order that changes from process to process, and so would the file.
    write_atomically(path, save(on_cpu, metadata={CHECKSUMS: sealed(content)}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU. Raises InputError if it is missing, cut short or changed."""
    recorded = read_metadata(path)
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: damaged or not a safetensors file: {error}") from None
    if recorded and recorded.get(TENSORS) != checksum(tensors):
        raise InputError(f"{path}: damaged: its contents do not match its checksum")
    return tensors


def read_metadata(path: Path) -> dict[str, object]:
    """What the metadata of a safetensors file say of its tensors and of what belongs to them.

    Files of earlier formats have a checksum of their tensors only, and those of other programs may have no metadata.

    Raises:
        InputError: the file is missing or damaged, or its metadata are others than this project writes: a flipped bit
            in the name of the entry must not turn a file that is checked into one that is not.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: damaged or not a safetensors file: {error}") from None
    if metadata.keys() == {CHECKSUMS}:
        return unsealed(metadata[CHECKSUMS], path)
    if metadata.keys() == {"sha256"}:  # until there was more to check than the tensors
        return {TENSORS: metadata["sha256"]}
    if metadata:
        raise InputError(f"{path}: damaged: its metadata are not those of this project")
    return {}


def load_weights(model: Seq2Seq, config: ModelConfig, path: Path) -> None:
    """Copies a file of weights into the model that was built after ``config``. Raises InputError if they do not fit."""
    _copy(_read_fitting(model, config, path), model)


def _read_fitting(model: Seq2Seq, config: ModelConfig, path: Path) -> dict[str, Tensor]:
    tensors = read_tensors(path)
    own = weights_of(model)
    recorded = read_metadata(path).get(ARCHITECTURE)
    trained = recorded if isinstance(recorded, dict) else {}  # what earlier formats did not record
    given = deciding_settings(config)
    wrong = [
        *(f"{name} is missing" for name in own.keys() - tensors.keys()),
        *(f"{name} is not part of the model" for name in tensors.keys() - own.keys()),
        *(
            f"{name} has shape {tuple(tensors[name].shape)} instead of {tuple(own[name].shape)}"
            for name in own.keys() & tensors.keys()
            if tensors[name].shape != own[name].shape
        ),
        *(
            f"model.{name} is {given[name]} there, but {trained[name]} in training"
            for name in given.keys() & trained.keys()
            if given[name] != trained[name]
        ),
    ]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise InputError(
            f"{path}: does not fit what is said of the model beside it: {'; '.join(sorted(wrong)[:3])}{more}"
        )
    return tensors


def _copy(tensors: dict[str, Tensor], model: Seq2Seq) -> None:
    with torch.no_grad():
        for name, weight in weights_of(model).items():
            weight.copy_(tensors[name])


def write_json(path: Path, content: dict) -> None:
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path, *needed: str) -> dict:
    """Raises InputError naming the file, if it cannot be read or lacks one of the ``needed`` keys."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: not a JSON object")
    if missing := set(needed) - content.keys():
        raise InputError(f"{path}: damaged or of another version: no {', '.join(sorted(missing))}")
    return content


def sealed(content: dict) -> str:
    """JSON that ends with its own checksum."""
    text = json.dumps(content, indent=2, ensure_ascii=False).removesuffix("\n}")
    return f'{text},\n  "{SEAL}": "{_sha256(text)}"\n}}\n'


def unsealed(text: str, path: Path) -> dict:
    """What was sealed.

    The checksum is that of the text as it stands, blanks included, so that any other bit is noticed, whether it changes
    the meaning or not. Raises InputError naming ``path``, the file that the text is from.
    """
    found = re.fullmatch(rf'(.*),\n  "{SEAL}": "([0-9a-f]{{64}})"\n}}\n', text, re.DOTALL)
    if not found or _sha256(found[1]) != found[2]:
        raise InputError(f"{path}: damaged: its contents do not match its checksum")
    try:
        return dict(json.loads(found[1] + "\n}"))
    except (ValueError, TypeError, RecursionError):  # forged: a checksum protects from accidents alone
        raise InputError(f"{path}: damaged or of another version") from None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write_sealed_json(path: Path, content: dict) -> None:
    write_atomically(path, sealed(content))


def read_sealed_json(path: Path) -> dict:
    """As ``read_json``; the checksum, which files of earlier formats do not have, is checked and left out."""
    content = read_json(path)
    return unsealed(path.read_bytes().decode(), path) if SEAL in content else content


def is_number(value: object) -> bool:
    """Whether a value of a JSON file is a finite number that can be computed with; an integer of 400 digits cannot."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < sys.float_info.max
