"""Safetensors files with checksums, and the checks that weights fit a model and its tokenizer."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from mt.config import ModelConfig
from mt.core.errors import InputError, damaged_file
from mt.core.files import read_file, write_atomically
from mt.core.json_file import sealed, unsealed
from mt.storage.sentencepiece_file import TOKENIZER_FILES
from mt.storage.validation import open_safetensors, read_safetensors

CHECKSUMS = "checksums"
"""Key of the only entry in the metadata of our safetensors files: sealed JSON with the keys TENSORS and, for weights,
ARCHITECTURE and the name of each tokenizer file."""
TENSORS = "tensors"
ARCHITECTURE = "architecture"
NUMBER_FORMATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
"""The number formats of stored weights."""


def weights_of(model: nn.Module) -> dict[str, Tensor]:
    """Return every weight by name. Tied weights occur once, under their first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def weight_shapes(model: nn.Module) -> dict[str, torch.Size]:
    """Return the shape of every weight by name."""
    return {name: weight.shape for name, weight in weights_of(model).items()}


def checksum(tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of the names, shapes, types and contents of tensors."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        # A copy, because a sharded model could not free storage that NumPy has had access to.
        tensor = tensors[name].detach().to("cpu", copy=True).contiguous()
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} ".encode())
        digest.update(tensor.view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def architecture_settings(config: ModelConfig) -> dict[str, object]:
    """Return the model settings that decide which function the weights compute: all but dropout rates.

    Weights of the same shapes fit other models, too: with another number of heads, another activation or another
    placement of LayerNorm they would translate to rubbish. So these settings are stored in the weights' own file, and
    a different config is refused. They are stored in full, not as a digest, so that the message can name the key.
    """
    settings = config.model_dump(mode="json")
    return {name: value for name, value in settings.items() if not name.endswith("dropout")}


def weights_metadata(config: ModelConfig, tokenizer_files: Mapping[str, bytes]) -> dict[str, object]:
    """Return the metadata of weights: the architecture's settings and the SHA-256 of each tokenizer file."""
    files: dict[str, object] = {name: hashlib.sha256(model).hexdigest() for name, model in tokenizer_files.items()}
    return files | {ARCHITECTURE: architecture_settings(config)}


def refuse_other_tokenizer(folder: Path, weights: Path) -> None:
    """Check a folder's tokenizer against the metadata of a file of weights.

    Raises:
        InputError: A tokenizer file is damaged or missing, or the weights were trained with another one.
    """
    recorded = read_metadata(weights)
    for path in (folder / name for name in TOKENIZER_FILES):
        digest = hashlib.sha256(read_file(path)).hexdigest() if path.exists() else None
        if digest != recorded.get(path.name):
            reason = f"damaged, or not the tokenizer that {weights} was trained with" if digest else "no such file"
            raise InputError(f"{path}: {reason}")


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, object] | None = None) -> None:
    """Write a safetensors file with a checksum of its tensors.

    Args:
        path: The file.
        tensors: The tensors, on any device.
        metadata: For weights, the result of ``weights_metadata``.
    """
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = {TENSORS: checksum(on_cpu), **(metadata or {})}
    # A single entry, because safetensors writes several in an order that changes from process to process.
    write_atomically(path, save(on_cpu, metadata={CHECKSUMS: sealed(content)}))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of one of our files to the CPU. Raise InputError if it is missing, truncated or changed."""
    recorded = read_metadata(path)
    tensors = read_safetensors(path)
    if recorded.get(TENSORS) != checksum(tensors):
        raise InputError(f"{path}: damaged: its contents do not match its checksum")
    return tensors


def read_metadata(path: Path) -> dict[str, object]:
    """Return the sealed metadata of one of our safetensors files.

    Raises:
        InputError: The file is missing or damaged, or was not written by this project.
    """
    with open_safetensors(path) as file:
        metadata = file.metadata() or {}
    if metadata.keys() != {CHECKSUMS}:
        raise InputError(f"{path}: damaged: its metadata are not those of this project")
    return unsealed(metadata[CHECKSUMS], path)


def read_weights(path: Path, config: ModelConfig, shapes: Mapping[str, torch.Size]) -> dict[str, Tensor]:
    """Read a file of weights.

    Args:
        path: The file.
        config: The settings of the model.
        shapes: The shape of each of its weights.

    Raises:
        InputError: The file is missing or damaged, or does not fit the model.
    """
    tensors = read_tensors(path)
    trained = read_metadata(path).get(ARCHITECTURE)
    if not isinstance(trained, dict):
        raise damaged_file(path, ARCHITECTURE)
    settings = architecture_settings(config)
    problems = [
        *(f"{name} is missing" for name in shapes.keys() - tensors.keys()),
        *(f"{name} is not part of the model" for name in tensors.keys() - shapes.keys()),
        *(
            f"{name} has shape {tuple(tensors[name].shape)} instead of {tuple(shapes[name])}"
            for name in shapes.keys() & tensors.keys()
            if tensors[name].shape != shapes[name]
        ),
        *(f"{name} is {tensor.dtype}" for name, tensor in tensors.items() if tensor.dtype not in NUMBER_FORMATS),
        *(
            f"model.{name} is {settings[name]} there, but {trained[name]} in training"
            for name in settings.keys() & trained.keys()
            if settings[name] != trained[name]
        ),
    ]
    if problems:
        raise InputError(f"{path}: does not fit the model that is described beside it: {short_list(sorted(problems))}")
    return tensors


def short_list(problems: list[str]) -> str:
    """Join the first problems for a message."""
    return "; ".join(problems[:3]) + (f" and {len(problems) - 3} more" if len(problems) > 3 else "")


def load_weights(model: nn.Module, config: ModelConfig, path: Path) -> None:
    """Copy a file of weights into the model built from ``config``. Raise InputError if they do not fit."""
    copy_weights(read_weights(path, config, weight_shapes(model)), model)


def copy_weights(tensors: Mapping[str, Tensor], model: nn.Module) -> None:
    with torch.no_grad():
        for name, weight in weights_of(model).items():
            weight.copy_(tensors[name])
