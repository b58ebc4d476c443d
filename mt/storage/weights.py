"""Reads and writes safetensors files with checksums, and checks that weights fit a model and its tokenizer."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from mt.config import ModelConfig
from mt.core.errors import RESTORE_OR_RETRAIN, InputError, corrupted_file, wrong_keys
from mt.core.files import read_file, write_atomically
from mt.storage.run_folder import CHECKPOINTS
from mt.storage.validation import open_safetensors, read_safetensors, sealed, short_list, unsealed
from mt.storage.vocabulary import TOKENIZER_FILES

Tensors = dict[str, Tensor]
"""Weights, or other tensors, by name."""
CHECKSUMS = "checksums"
"""Key of the only entry in the metadata of our safetensors files, which is sealed JSON (see ``mt.storage.validation``).
Its keys are TENSORS and, for weights, ARCHITECTURE and the name of each tokenizer file."""
TENSORS = "tensors"
"""Key of the checksum of the tensors."""
ARCHITECTURE = "architecture"
"""Key of the model settings."""
NUMBER_FORMATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
"""The number formats of stored weights."""


def weights_of(model: nn.Module) -> Tensors:
    """Return name → weight for every parameter, not copied. Tied weights occur once, under their first name."""
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def weight_shapes(model: nn.Module) -> dict[str, torch.Size]:
    """Return name → shape for every parameter. Tied weights occur once, as in ``weights_of``."""
    return {name: weight.shape for name, weight in weights_of(model).items()}


def checksum(tensors: Tensors) -> str:
    """Return the SHA-256 of the names, shapes, types and values of tensors."""
    digest = hashlib.sha256()
    for name in sorted(tensors):
        # NumPy gets a copy, because PyTorch never frees storage of a sharded model that NumPy has had access to.
        tensor = tensors[name].detach().to("cpu", copy=True).contiguous()
        digest.update(f"{name} {tuple(tensor.shape)} {tensor.dtype} ".encode())
        digest.update(tensor.view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def architecture_settings(config: ModelConfig) -> dict[str, object]:
    """Return key → value of all model settings except dropout rates. These settings determine the model's function.

    With another number of heads, another activation or another placement of LayerNorm, weights keep their shapes, but
    would translate to rubbish. So these settings are stored in the file of the weights, and a different config is
    refused. They are stored in full, not as a digest, so that the message can name the key.
    """
    settings = config.model_dump(mode="json")
    return {name: value for name, value in settings.items() if not name.endswith("dropout")}


def weights_metadata(config: ModelConfig, tokenizer_files: Mapping[str, bytes]) -> dict[str, object]:
    """Return the metadata to store with weights: the ``architecture_settings`` under the key ARCHITECTURE, and the
    SHA-256 of each tokenizer file under its name.

    Args:
        config: The model's settings.
        tokenizer_files: File name → content.
    """
    digests = {name: hashlib.sha256(model).hexdigest() for name, model in tokenizer_files.items()}
    return {**digests, ARCHITECTURE: architecture_settings(config)}


def refuse_other_tokenizer(folder: Path, weights: Path) -> None:
    """Check that the tokenizer files of a folder are those with which weights were trained.

    Args:
        folder: The folder of the tokenizer files.
        weights: The safetensors file of the weights, whose metadata have the tokenizer's checksums.

    Raises:
        InputError: A tokenizer file is corrupted or missing, or the weights were trained with another one.
    """
    recorded = read_metadata(weights)
    for path in (folder / name for name in TOKENIZER_FILES):
        digest = hashlib.sha256(read_file(path)).hexdigest() if path.exists() else None
        if digest != recorded.get(path.name):
            reason = f"corrupted, or not the tokenizer that {weights} was trained with" if digest else "no such file"
            raise InputError(f"{path}: {reason}; restore it from a backup, or copy the folder of the model again")


def write_tensors(path: Path, tensors: Tensors, metadata: Mapping[str, object] | None = None) -> None:
    """Write a safetensors file with a checksum of its tensors.

    Args:
        path: The file.
        tensors: Name → tensor, on any device.
        metadata: For a model's weights, the result of ``weights_metadata``.
    """
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    content = {TENSORS: checksum(on_cpu), **(metadata or {})}
    # A single entry, because safetensors writes several in an order that changes from process to process.
    write_atomically(path, save(on_cpu, metadata={CHECKSUMS: sealed(content)}))


def read_tensors(path: Path) -> Tensors:
    """Read a file of ``write_tensors`` to the CPU. Raise InputError if it is missing or does not match its checksum."""
    recorded = read_metadata(path)
    tensors = read_safetensors(path)
    if recorded.get(TENSORS) != checksum(tensors):
        raise corrupted_file(path, "does not match its checksum", remedy_for(path))
    return tensors


def read_metadata(path: Path) -> dict[str, object]:
    """Read the metadata of a file of ``write_tensors``: TENSORS → checksum, and the entries of ``weights_metadata``.

    Raises:
        InputError: The file is missing or corrupted, or another program wrote it.
    """
    with open_safetensors(path) as file:
        metadata = file.metadata() or {}
    if metadata.keys() != {CHECKSUMS}:
        raise corrupted_file(path, "its metadata are not those of mt-trainer", remedy_for(path))
    return unsealed(metadata[CHECKSUMS], path, remedy_for(path))


def remedy_for(path: Path) -> str:
    """Return the hint for a corrupted file of a run, as the last part of a message. A checkpoint can be deleted."""
    if path.parent.parent.name == CHECKPOINTS:
        return f"delete {path.parent}, and the same command resumes from the checkpoint before"
    return RESTORE_OR_RETRAIN


def read_weights(path: Path, config: ModelConfig, shapes: Mapping[str, torch.Size]) -> Tensors:
    """Read a file of weights to the CPU, and check that it fits a model. Return name → weight.

    Args:
        path: The safetensors file.
        config: The settings of the model.
        shapes: The shape of each weight of the model, by name.

    Raises:
        InputError: The file is missing or corrupted, or does not fit the model.
    """
    tensors = read_tensors(path)
    trained = read_metadata(path).get(ARCHITECTURE)
    if not isinstance(trained, dict):
        raise corrupted_file(path, wrong_keys([ARCHITECTURE]), remedy_for(path))
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
            f"model.{name} is {settings[name]} in the description, but was {trained[name]} in training"
            for name in settings.keys() & trained.keys()
            if settings[name] != trained[name]
        ),
    ]
    if problems:
        raise InputError(
            f"{path}: does not fit the description of the model in the same folder; undo the edits there, or copy the "
            f"folder again: {short_list(sorted(problems), 3)}"
        )
    return tensors


def load_weights(model: nn.Module, config: ModelConfig, path: Path) -> None:
    """Copy a file of weights into a model. Raise InputError as ``read_weights`` does.

    Args:
        model: The model.
        config: The settings with which it was built.
        path: The safetensors file.
    """
    copy_weights(read_weights(path, config, weight_shapes(model)), model)


def copy_weights(tensors: Tensors, model: nn.Module) -> None:
    with torch.no_grad():
        for name, weight in weights_of(model).items():
            weight.copy_(tensors[name])
