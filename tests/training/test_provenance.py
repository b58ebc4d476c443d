"""Tests of provenance.json: resolved settings, starts of resumed runs, and changed code."""

import logging
import subprocess

import pytest
import torch

from mt.core.device import choose_precision, precision_name, recurrent_layers_need_fp32
from mt.core.errors import InputError
from mt.storage.validation import write_json
from mt.training import provenance
from mt.training import trainer as trainer_module
from mt.training.checkpoint import newest_checkpoint
from mt.training.command import train
from mt.training.provenance import code_checksum, read_provenance, resumed_provenance
from tests import toy
from tests.training.runs import make_trainer


def _begun(config):
    """A run that has begun, and saved a checkpoint before its first update."""
    trainer = make_trainer(config)
    trainer.begin()
    trainer._save()
    return read_provenance(config.folder)


def _gone_on(config):
    make_trainer(config, newest_checkpoint(config.folder)).begin()
    return read_provenance(config.folder)


@pytest.mark.parametrize(
    ("architecture", "kind", "expected"),
    [
        ("transformer", "auto", "Muon"),
        ("transformer", "muon", "Muon"),
        ("transformer", "adamw", "AdamW"),
        ("rnn", "auto", "AdamW"),
    ],
)
def test_provenance_records_optimizer_of_parameters(folder, architecture, kind, expected):
    optimizer = {"kind": kind, "learning_rate": 1e-3, "embedding_factor": 3.0, "weight_decay": 0.1}
    config = toy.config(folder, architecture=architecture, training={"optimizer": optimizer})
    trainer = make_trainer(config)
    trainer.begin()
    effect = read_provenance(config.folder)["starts"][0]["resolved_settings"]
    names = ["embeddings and output layer", "hidden matrices", "biases and other vectors"]
    groups = {name: effect[name] for name in names}
    assert [group["optimizer"] for group in groups.values()] == ["AdamW", expected, "AdamW"]
    assert [group["peak learning rate"] for group in groups.values()] == pytest.approx([3e-3, 1e-3, 1e-3])
    assert [group["weight decay"] for group in groups.values()] == [0.1, 0.1, 0.0]
    assert sum(group["parameters"] for group in groups.values()) == trainer.model.parameter_count
    muons = {
        "Newton-Schulz iterations": 3,
        "orthogonalized in": precision_name(choose_precision("auto", torch.device("cpu"))),
    }
    assert groups["hidden matrices"].items() >= (muons.items() if expected == "Muon" else {}.items())


def test_provenance_records_resolved_settings(folder, caplog):
    pairs = {"valid": None, "valid_pairs": 7, "test_pairs": 2000}
    data = toy.config(folder).data.model_dump() | pairs
    tokenizer = {"kind": "char", "vocabulary_size": 9000, "joint": False, "character_coverage": 0.99}
    training = {"precision": "auto", "batch_tokens": 8, "valid_bleu_pairs": 500}
    config = toy.config(folder, data=data, tokenizer=tokenizer, training=training)
    trainer = make_trainer(config)
    trainer.begin()
    effect = read_provenance(config.folder)["starts"][0]["resolved_settings"]
    arithmetic = effect["arithmetic"]
    assert arithmetic["precision"] in ("fp32", "bf16") and arithmetic["device"] == "cpu"
    assert arithmetic["sharded"] is arithmetic["compiled"] is False
    assert arithmetic["fp32 is multiplied by"] and arithmetic["bf16 is multiplied by"]
    assert effect["text"] == {
        "enabled": True,
        "slots": toy.SLOTS,
        "sentences of a line that is not cut": 1,
        "tokens of a sentence that is not cut": max(trainer.data.train["source_length"]),
        "added to lines without final punctuation": "",
        "typing errors are corrected": False,
    }
    tokenizers = trainer.data.tokenizers
    sizes = tokenizers.source.vocabulary_size, tokenizers.target.vocabulary_size
    assert (effect["tokens"]["source vocabulary"], effect["tokens"]["target vocabulary"]) == sizes and max(sizes) < 400
    assert effect["tokens"]["source normalization"] == effect["tokens"]["target normalization"] == "nmt_nfkc"
    assert effect["tokens"]["target character coverage"] == 0.99
    held_out = len(trainer.data.corpus.valid)
    assert 7 <= held_out < 20
    sides = (trainer.data.train[f"{side}_length"] for side in ("source", "target"))
    long = sum(max(lengths) + 1 > 8 for lengths in zip(*sides, strict=True))
    assert effect["pairs"] == {
        "held out for valid": held_out,
        "held out for test": 0,
        "translated at each validation": held_out,
        "longer than a batch": long,
    }
    assert long and f"{long} pairs have more tokens than training.batch_tokens=8" in caplog.text
    machine = read_provenance(config.folder)["starts"][0]["machine"]
    assert machine["processor"] and isinstance(machine["instruction sets"], str)


FIRST = {
    "update": 0,
    "code_revision": "a",
    "libraries": {"torch": "2.11"},
    "python": "3.11",
    "machine": {"gpu": None, "workers": 2},
    "resolved_settings": {"arithmetic": {"precision": "bf16", "threads": 2}},
    "origins": {"seed": "typed"},
}
NEW = {
    "data": {split: {"pairs": 9, "sha256": "0"} for split in ("train", "valid", "test")},
    "corpus": [],
    "initial_weights": None,
    "base_model": None,
    "starts": [FIRST],
}


def test_resumed_provenance_appends_start(folder):
    config = toy.config(folder, "resumed")
    config.folder.mkdir(parents=True)

    def resumed(recorded, current, update):
        write_json(config.folder / "provenance.json", recorded)
        return resumed_provenance(config, current, update)

    second = resumed(NEW | {"weights_sha256": "0"}, NEW, 5)
    assert second == NEW | {"starts": [FIRST, FIRST | {"update": 5}]}
    moved = {"files": {"train": []}}
    assert resumed(second, NEW | moved, 1500) == NEW | moved | {
        "starts": [FIRST, FIRST | {"update": 5}, FIRST | {"update": 1500}]
    }


@pytest.mark.parametrize(
    "change",
    [
        {"starts": []},
        {"starts": [{name: value for name, value in FIRST.items() if name != "machine"}]},
        {"starts": [FIRST | {"update": -1}]},
        {"starts": [FIRST | {"resolved_settings": {"arithmetic": "bf16"}}]},
        {"data": {"train": NEW["data"]["train"], "test": NEW["data"]["test"]}},
        {"data": NEW["data"] | {"test": {"pairs": 9, "sha256": None}}},
        {"base_model": 3},
    ],
)
def test_read_provenance_refuses_corrupted_file(tmp_path, change):
    path = tmp_path / "provenance.json"
    write_json(path, NEW | change)
    with pytest.raises(InputError, match=f"provenance.json: corrupted, .*wrong or missing: {next(iter(change))}"):
        read_provenance(tmp_path)
    write_json(path, {name: value for name, value in NEW.items() if name not in change})
    with pytest.raises(InputError, match=f"provenance.json: corrupted, .*wrong or missing: {next(iter(change))}"):
        read_provenance(tmp_path)


def _warnings_of_precision(caplog):
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    return [message for message in warnings if "precision" in message]


def test_resumed_provenance_warns_of_another_precision(folder, monkeypatch, caplog):
    config = toy.config(folder, training={"precision": "auto"})
    monkeypatch.setattr(trainer_module, "choose_precision", lambda wanted, device: torch.bfloat16)
    assert provenance.precision_of(_begun(config)["starts"][0]) == "bf16"
    assert len(_gone_on(config)["starts"]) == 2 and not _warnings_of_precision(caplog)
    monkeypatch.setattr(trainer_module, "choose_precision", lambda wanted, device: torch.float32)
    first, resumed = _gone_on(config)["starts"]
    assert _warnings_of_precision(caplog) == [
        "training.precision=auto means fp32 here, but meant bf16 up to update 0, so the results will differ. To avoid "
        "that, resume the run on a machine like the one before"
    ]
    assert provenance.precision_of(first) == "bf16"
    # An LSTM's layers are in fp32 before, too, on processors where they have to be.
    lstm = {} if recurrent_layers_need_fp32(torch.device("cpu")) else {"precision of LSTM layers": "fp32"}
    settings = first["resolved_settings"]
    arithmetic = settings["arithmetic"] | {"precision": "fp32"} | lstm
    assert resumed == first | {"resolved_settings": settings | {"arithmetic": arithmetic}}


def test_code_checksum_depends_on_python_files(tmp_path):
    (tmp_path / "inner").mkdir()
    for name, text in (("a.py", "x = 1\n"), ("inner/b.py", "y = 2\n"), ("notes.txt", "z")):
        (tmp_path / name).write_text(text)
    found = {code_checksum(tmp_path)}
    for name, text in (("inner/b.py", "y = 3\n"), ("c.py", "")):
        (tmp_path / name).write_text(text)
        found.add(code_checksum(tmp_path))
    (tmp_path / "notes.txt").write_text("another")
    assert len(found) == 3 and code_checksum(tmp_path) in found


def test_provenance_records_initial_weights(folder, shared_runs):
    base = read_provenance(shared_runs["transformer-1"])
    tuned = toy.config(folder, "tuned", training={"init_from": str(shared_runs["transformer-1"]), "max_updates": 10})
    train(tuned)
    assert base["initial_weights"] is None
    assert read_provenance(tuned.folder)["initial_weights"] == base["weights_sha256"]
    longer = tuned.training.model_copy(update={"max_updates": 12})
    train(tuned.model_copy(update={"training": longer}))  # from its own checkpoint
    assert read_provenance(tuned.folder)["initial_weights"] == base["weights_sha256"]


def test_code_revision_of_changed_code(tmp_path, monkeypatch):
    def git(*words):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x", *words], cwd=tmp_path, check=True)

    (tmp_path / "a.py").write_text("x = 1")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message=x")
    monkeypatch.setattr(provenance, "PACKAGE", tmp_path)
    found = [provenance.code_revision()]
    assert len(found[0]) == 40
    for text in ("x = 2", "x = 3"):
        (tmp_path / "a.py").write_text(text)
        found.append(provenance.code_revision())
    assert len(set(found)) == 3 and all(revision.startswith(f"{found[0]}-dirty-") for revision in found[1:])
