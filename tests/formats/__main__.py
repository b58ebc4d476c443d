"""Make the fixtures of format 1.0.0, in the folder of this name: ``python -m tests.formats``.

Two finished runs with what they translate, one of them with a glossary and confidences, and an unfinished one with its
corpus; all on made-up text, and as small as they can be. Nothing in them names the machine.

Once a version is released, its folder stays as it is. A later format is written into a folder of its own, and the tests
read both.
"""

import os
import shutil
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import torch

from mt.config import TrainConfig, TranslateConfig
from mt.core.errors import Interrupted
from mt.core.json_file import read_json, write_json
from mt.documents.command import translate
from mt.storage.run_folder import FILE_CHECKSUMS, PROVENANCE, RESULTS, file_checksums
from mt.training.command import train
from mt.training.trainer import Trainer
from tests import toy

HERE = Path(__file__).resolve().parent
FIXTURES = HERE / "1.0.0"
LEFT_OUT = shutil.ignore_patterns("tensorboard", "train.log", ".lock")

SMALL = {"encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
TRANSFORMER = {**SMALL, "width": 16, "feed_forward": 32}
RNN = {**SMALL, "width": 8, "hidden": 16, "attention": "dot"}


def main() -> None:
    """Work in a folder of its own, for the paths in a config to be relative."""
    if sys.argv[1:]:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    shutil.rmtree(FIXTURES, ignore_errors=True)
    FIXTURES.mkdir()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for corpus in ("large", "checked", "corpus"):
            Path(corpus).mkdir()
        toy.write_corpus(Path("large"), "reverse", train=2500)
        toy.write_corpus(Path("checked"), "reverse", train=2500, valid=600)
        toy.write_corpus(Path("corpus"), "copy", train=240)
        shutil.copytree("corpus", FIXTURES / "corpus")
        Path("checked/terms.tsv").write_text("ba\tkura\nde fi\tmolo|solo\n")
        transformer = _config(
            "transformer", "large", {"max_updates": 1800, "validate_every": 300}, model=TRANSFORMER,
            tokenizer={"vocabulary_size": 290},
            decoding={"beam_size": 3, "length_penalty": 0.6, "max_source_length": 24},
        )  # fmt: skip
        rnn = _config(
            "rnn", "checked", {"max_updates": 1500, "validate_every": 250}, model=RNN,
            tokenizer={"kind": "unigram", "vocabulary_size": 290, "joint": False}, text={"terms": "checked/terms.tsv"},
        )  # fmt: skip
        for config in (transformer, rnn):
            train(config)
            task = TranslateConfig(run=str(config.folder), input=str(HERE / "lines.txt"))
            translate(task.model_copy(update={"output": str(FIXTURES / f"{config.name}.txt")}))
            _keep(config, "checkpoints")
        confidences = {"confidence": True, "output": str(FIXTURES / "rnn.jsonl")}
        translate(task.model_copy(update=confidences))
        unfinished = _config(
            "unfinished", "corpus",
            {"max_updates": 40, "validate_every": 10, "batch_tokens": 256, "valid_bleu_pairs": 10,
             "schedule": {"kind": "linear", "warmup": 5}},
            model={**TRANSFORMER, "width": 8, "feed_forward": 8, "dropout": 0.1},
            tokenizer={"vocabulary_size": 290, "sampling": 0.1},
            text={"augmentation": toy.CHANGED},
        )  # fmt: skip
        with suppress(Interrupted):
            _train_to(unfinished, 20)
        _keep(unfinished)


def _config(name: str, corpus: str, training: dict, tokenizer: dict, **sections: dict) -> TrainConfig:
    usual = {
        "log_every": training["validate_every"], "batch_tokens": 512, "valid_bleu_pairs": 40, "label_smoothing": 0.0,
        "threads": 1, "device": "cpu", "schedule": {"kind": "linear", "warmup": 30},
        "optimizer": {"learning_rate": 1e-2, "embedding_factor": 1.0},
    }  # fmt: skip
    return toy.config(
        Path("."),
        name,
        "rnn" if name == "rnn" else "transformer",
        runs="runs",
        data={split: (f"{corpus}/{split}.xx", f"{corpus}/{split}.yy") for split in ("train", "valid", "test")},
        # The table of another normalisation is larger than everything else.
        tokenizer={"normalization": "identity", **tokenizer},
        training=usual | training,
        **sections,
    )


def _train_to(config: TrainConfig, update: int) -> None:
    """Trains and raises Interrupted after the validation of an update, with the state saved."""
    validate = Trainer._validate

    def validate_and_stop(self: Trainer) -> None:
        validate(self)
        if self.progress.update == update:
            os.kill(os.getpid(), signal.SIGTERM)

    Trainer._validate = validate_and_stop  # type: ignore[method-assign]
    train(config)


def _keep(config: TrainConfig, *left_out: str) -> None:
    """The run folder without what only looks at it, and without the machine's name."""

    def ignored(folder: str, names: list[str]) -> set[str]:
        return {*LEFT_OUT(folder, names), *left_out}

    kept = Path(shutil.copytree(config.folder, FIXTURES / config.name, ignore=ignored))
    made = read_json(kept / PROVENANCE)
    for start in made["starts"]:
        start["machine"] |= {"system": "Linux", "processor": "a processor", "instruction sets": ""}
    write_json(kept / PROVENANCE, made)
    if (kept / RESULTS).exists():
        write_json(kept / RESULTS, read_json(kept / RESULTS) | {FILE_CHECKSUMS: file_checksums(kept)})


if __name__ == "__main__":
    main()
