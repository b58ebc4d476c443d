"""Model folders whose weights have just learned to write something, in a second or two."""

from pathlib import Path

import torch

from mt.data.batching.batch import collate
from mt.models.build import build_model
from mt.storage.model_folder import write_description
from mt.storage.weights import weights_metadata, weights_of, write_tensors
from mt.tokenizer.tokenizer import TokenizerPair
from mt.training.objective import Objective
from tests import toy

SIZES = {"width": 32, "feed_forward": 48, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}


def train_briefly(
    folder: Path,
    tokenizers: TokenizerPair,
    architecture: str = "transformer",
    updates: int = 60,
    decoding: dict | None = None,
    **model: object,
) -> Path:
    """Trains a model to reverse sentences of the toy language, writes it into ``folder`` and returns that."""
    sizes = toy.MODELS[architecture] | (SIZES if architecture == "transformer" else {}) | model
    changes = {"model": sizes, "tokenizer": {"joint": tokenizers.joint}, "decoding": decoding or {}}
    config = toy.config(folder, architecture=architecture, **changes)
    torch.manual_seed(3)
    built = build_model(config.model, tokenizers)
    objective, optimizer = Objective(built, config.training), torch.optim.AdamW(built.parameters(), lr=5e-3)
    lines = toy.sentences(updates * 24, 6)
    for update in range(updates):
        sources = lines[update * 24 : update * 24 + 24]
        targets = [" ".join(reversed(line.split())) for line in sources]
        batch = collate(tokenizers.source.encode(sources), tokenizers.target.encode(targets))
        optimizer.zero_grad()
        (objective(batch) / batch.target_tokens).backward()
        optimizer.step()
    folder.mkdir(exist_ok=True)
    write_description(folder, toy.description(config, tokenizers))
    tokenizers.save(folder)
    write_tensors(folder / "model.safetensors", weights_of(built), weights_metadata(config.model, tokenizers.files()))
    return folder
