"""What a run was made from and with: code, libraries, machine, data."""

import hashlib
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

import datasets
import torch

from mt.installation import IS_INSTALLED
from mt.training.distributed import Workers
from mt.training.preparation import PreparedData


def provenance(data: PreparedData, workers: Workers) -> dict:
    """The content of provenance.json, but for the checksum of the weights."""
    packages = ("torch", "sentencepiece", "datasets", "sacrebleu", "hydra-core", "numpy")
    return {
        "code_revision": _code_revision(),
        "libraries": {package: version(package) for package in packages},
        "python": platform.python_version(),
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "gpu": torch.cuda.get_device_name(workers.device) if workers.device.type == "cuda" else None,
            "threads": torch.get_num_threads(),
            "workers": workers.size,
        },
        "data": {
            split: {"pairs": len(pairs), "sha256": fingerprint(pairs)}
            for split, pairs in (
                ("train", data.train),
                ("valid", data.corpus.valid),
                ("test", data.corpus.test),
            )
        },
    }


def _code_revision() -> str | None:
    """The commit; of an installed wheel its version, for the repository around it, if there is one, is another's."""
    if IS_INSTALLED:
        return f"mt-trainer {version('mt-trainer')}"
    try:
        return subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def fingerprint(pairs: datasets.Dataset) -> str:
    """Of their sentences, in their order."""
    digest = hashlib.sha256()
    for batch in pairs.select_columns(["source", "target"]).iter(batch_size=10_000):
        digest.update("\n".join(batch["source"] + batch["target"]).encode())
    return digest.hexdigest()
