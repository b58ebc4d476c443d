"""Reads and writes safetensors files with checksums, and checks that weights fit a model and its tokenizer."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from mt.config import ModelConfig
from mt.core.errors import InputError
from mt.core.files import write_atomically
from mt.core.json_file import sealed, unsealed
from mt.text.tokenizer import TOKENIZER_FILES, TokenizerPair

CHECKSUMS = "checksums"
"""Key of the only entry in the metadata of our safetensors files. The entry is sealed JSON with the key TENSORS and,
for weights, also ARCHITECTURE and the name of each file of the tokenizer."""
TENSORS = "tensors"
ARCHITECTURE = "architecture"
NUMBER_FORMATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
"""The number formats in which weights may be stored."""


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Returns every weight by name. Tied weights are there once, under their first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def checksum(tensors: dict[str, Tensor]) -> str:
    """Returns the SHA-256 of the names, shapes, types and contents of tensors."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        # A copy, because a sharded model can no longer free storage that NumPy has had access to.
        tensor = tensors[name].detach().to("cpu", copy=True).contiguous()
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} ".encode())
        digest.update(tensor.view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def deciding_settings(config: ModelConfig) -> dict[str, object]:
    """Returns the settings of a model that decide which function its weights compute: all but the rates of dropout.

    Weights of the same shapes can be read as different models: with another number of heads, another activation or the
    norm in another place they still fit, but translate to rubbish. So these settings are kept in the weights' own file,
    under its checksum, and a config that says something else is refused. They are stored as they are and not as a
    digest, so that the error message can name the key.
    """
    settings = config.model_dump(mode="json")
    return {name: value for name, value in settings.items() if not name.endswith("dropout")}


def what_belongs_to(config: ModelConfig, tokenizers: TokenizerPair) -> dict[str, object]:
    """Returns what is recorded with the weights because they are useless without it.

    That is the settings of ``deciding_settings`` and the SHA-256 of each file of the tokenizer.
    """
    files: dict[str, object] = {
        name: hashlib.sha256(one.model).hexdigest() for name, one in tokenizers.by_file().items()
    }
    return files | {ARCHITECTURE: deciding_settings(config)}


def refuse_another_tokenizer(folder: Path, weights: Path) -> None:
    """Checks the tokenizer in a folder against what a file of weights records of it, without loading either.

    Raises:
        InputError: A file of the tokenizer is damaged or missing, or it is not the one that the weights were trained
            with.
    """
    recorded = read_metadata(weights)
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
        belonging: For weights, what ``what_belongs_to`` returns. It is stored in the weights' own file, so that a
            config, a tokenizer and weights are enough to tell whether they belong together.
    """
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = {TENSORS: checksum(on_cpu), **(belonging or {})}
    # Only one entry, because safetensors writes several in an order that changes from process to process, and the file
    # would change with it.
    write_atomically(path, save(on_cpu, metadata={CHECKSUMS: sealed(content)}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Reads the tensors of a safetensors file to the CPU. Raises InputError if it is missing, cut short or changed."""
    recorded = read_metadata(path)
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except (OSError, SafetensorError, NotImplementedError) as error:  # the last: number formats that PyTorch lacks
        raise InputError(f"{path}: damaged or not a safetensors file: {error}") from None
    if recorded.get(TENSORS) != checksum(tensors):
        raise InputError(f"{path}: damaged: its contents do not match its checksum")
    return tensors


def read_metadata(path: Path) -> dict[str, object]:
    """Return what the metadata of a safetensors file record of its tensors and of what belongs to them.

    Raises:
        InputError: The file is missing or damaged, or its metadata are not those that this project writes.
    """
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except (OSError, SafetensorError) as error:
        raise InputError(f"{path}: damaged or not a safetensors file: {error}") from None
    if metadata.keys() != {CHECKSUMS}:
        raise InputError(f"{path}: damaged: its metadata are not those of this project")
    return unsealed(metadata[CHECKSUMS], path)


def load_weights(model: nn.Module, config: ModelConfig, path: Path) -> None:
    """Copies a file of weights into the model that was built from ``config``. Raises InputError if they do not fit."""
    copy_weights(read_fitting(model, config, path), model)


def read_fitting(model: nn.Module, config: ModelConfig, path: Path) -> dict[str, Tensor]:
    tensors = read_tensors(path)
    own = weights_of(model)
    trained = read_metadata(path).get(ARCHITECTURE)
    if not isinstance(trained, dict):
        raise InputError(f"{path}: damaged or of another version: {ARCHITECTURE}")
    given = deciding_settings(config)
    wrong = [
        *(f"{name} is missing" for name in own.keys() - tensors.keys()),
        *(f"{name} is not part of the model" for name in tensors.keys() - own.keys()),
        *(
            f"{name} has shape {tuple(tensors[name].shape)} instead of {tuple(own[name].shape)}"
            for name in own.keys() & tensors.keys()
            if tensors[name].shape != own[name].shape
        ),
        *(f"{name} is {tensor.dtype}" for name, tensor in tensors.items() if tensor.dtype not in NUMBER_FORMATS),
        *(
            f"model.{name} is {given[name]} there, but {trained[name]} in training"
            for name in given.keys() & trained.keys()
            if given[name] != trained[name]
        ),
    ]
    if wrong:
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise InputError(
            f"{path}: does not fit the model that is described beside it: {'; '.join(sorted(wrong)[:3])}{more}"
        )
    return tensors


def copy_weights(tensors: dict[str, Tensor], model: nn.Module) -> None:
    with torch.no_grad():
        for name, weight in weights_of(model).items():
            weight.copy_(tensors[name])
