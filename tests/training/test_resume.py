"""Tests of resuming stopped, killed, corrupted, changed and finished runs: bitwise, or with an error."""

import errno
import logging
import os
import shutil
import signal

import pytest
import torch

from mt.config import TrainConfig
from mt.core.errors import InputError, Interrupted, counted
from mt.data.batching.batches import evaluation_batches
from mt.distributed.workers import Workers
from mt.storage.run_folder import FILE_CHECKSUMS, read_config
from mt.storage.validation import CHECKSUM_KEY
from mt.training import command, provenance
from mt.training.checkpoint import newest_checkpoint
from mt.training.command import train
from mt.training.objective import Objective
from mt.training.provenance import read_provenance
from mt.training.updater import prefetch_updates
from mt.translation.translator import Translator
from tests import packed_attention, toy  # noqa: F401
from tests.training.runs import (
    ALONE,
    has_weights_of,
    make_trainer,
    read_metrics,
    read_results,
    read_validations,
    train_until,
)

EVERYTHING_RANDOM = {"text": {"augmentation": toy.CHANGED}, "tokenizer": {"sampling": 0.2}, "model": {"dropout": 0.2}}


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": {"kind": "adamw"}, "weights": "last", "schedule": {"kind": "plateau", "warmup": 5}, "threads": 2},
        {"optimizer": {"kind": "auto"}, "weights": "average", "average": 3, "keep_last": 3, "save_every": 6},
        pytest.param(
            {"optimizer": {"kind": "adamw", "learning_rate": 0.1}, "weights": "best", "patience": 2, "metric": "loss"},
            marks=pytest.mark.slow,
        ),
    ],
    ids=lambda settings: settings["weights"],
)
@pytest.mark.parametrize("architecture", ["transformer", pytest.param("rnn", marks=pytest.mark.slow)])
def test_resumed_run_is_bitwise_equal(folder, architecture, settings):
    """With dropout, subword sampling, augmentation and accumulation on, stopped in the middle of an epoch and of a log
    interval, and where a validation is due."""
    objective = {"last": "cross_entropy", "average": "simcut", "best": "r_drop"}[settings["weights"]]
    training = {"accumulate": 2, "max_updates": 23, "objective": objective}
    if settings["weights"] == "average" and architecture == "transformer":
        training["batching"] = "packed"  # padded to be computed, as on every device without kernels for packed rows
    changes = EVERYTHING_RANDOM | {"training": training | settings}
    whole, broken = (toy.config(folder, name, architecture, **changes) for name in ("whole", "broken"))
    train(whole)
    train_until(broken, *(update for update in (7, 10, 18) if update <= read_results(whole)["updates"]))
    train(broken)

    names = {path.relative_to(whole.folder) for path in whole.folder.rglob("*.safetensors")}
    assert names == {path.relative_to(broken.folder) for path in broken.folder.rglob("*.safetensors")}
    assert all((whole.folder / name).read_bytes() == (broken.folder / name).read_bytes() for name in names)
    assert read_metrics(whole.folder) == read_metrics(broken.folder)
    timed = {"training_minutes", "decoding_sentences_per_second", "peak_memory_bytes", FILE_CHECKSUMS, CHECKSUM_KEY}
    first, second = ({k: v for k, v in read_results(run).items() if k not in timed} for run in (whole, broken))
    assert first == second
    for name in ("source", "reference", "hypothesis"):
        path = f"scored/test.{name}"
        assert (whole.folder / path).read_bytes() == (broken.folder / path).read_bytes()


def test_packed_run_resumes_bitwise_and_equals_padded(folder, monkeypatch):
    """The updates of a GPU, without its graphs, on a CPU."""
    changes = EVERYTHING_RANDOM | {"training": {"batching": "packed", "accumulate": 2, "max_updates": 12}}
    padded, whole, broken = (toy.config(folder, name, **changes) for name in ("padded", "whole", "broken"))
    train(padded)
    monkeypatch.setattr("mt.training.updater.has_packed_kernels", lambda device, precision: True)
    train(whole)
    train_until(broken, 7)
    train(broken)
    assert has_weights_of(whole, broken)
    assert read_metrics(whole.folder) == read_metrics(broken.folder)
    losses = [[line["loss"] for line in read_metrics(run.folder) if "loss" in line] for run in (padded, whole)]
    assert losses[0] != losses[1]  # other dropout masks
    assert losses[1] == pytest.approx(losses[0], rel=0.02)


def test_resume_recovers_renamed_checkpoint(folder):
    config = toy.config(folder)
    train_until(config, 12)
    checkpoints = config.folder / "checkpoints"
    (checkpoints / "step_12").rename(checkpoints / ".step_12.0123456789ab.replaced")
    (checkpoints / ".step_12.0123456789ab.partial").mkdir()
    train(config)
    assert read_results(config)["updates"] == 20
    steps = [line["step"] for line in read_validations(config.folder)]
    assert steps == [10, 20]
    assert [path.name for path in checkpoints.iterdir()] == ["step_20"]


@pytest.mark.parametrize("architecture", toy.MODELS)
@pytest.mark.parametrize("ending", ["signal", "kill"])
def test_interrupted_validation_is_repeated(folder, architecture, ending, monkeypatch):
    config = toy.config(folder, architecture=architecture)
    real_translate = Translator.translate

    def cut_short(*arguments, **options):
        if ending == "kill":
            raise SystemExit
        os.kill(os.getpid(), signal.SIGINT)
        return real_translate(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(Translator, "translate", cut_short)
        with pytest.raises((Interrupted, SystemExit)):
            train(config)
    progress = newest_checkpoint(config.folder).progress
    assert progress.update == 10 and progress.validation_due
    train(config)
    assert [line["step"] for line in read_validations(config.folder)] == [10, 20]


def test_plateau_schedule_in_resumed_run(folder):
    schedule = {"kind": "plateau", "warmup": 0, "plateau_patience": 2}
    training = {"schedule": schedule, "validate_every": 2, "log_every": 2, "max_updates": 12}
    training["optimizer"] = {"kind": "adamw", "learning_rate": 1e-12}  # the first validation stays the best
    config = toy.config(folder, training=training)
    train_until(config, 5, 9)
    train(config)
    rates = [line["learning_rate"] for line in read_metrics(config.folder) if line["split"] == "train"]
    assert rates == [1e-12, 1e-12, 1e-12, 5e-13, 5e-13, 2.5e-13]


def test_finished_run_is_unchanged_unless_extended(folder, caplog):
    config, longer = toy.config(folder), toy.config(folder, training={"max_updates": 30})
    train(config)
    before = (config.folder / "model.safetensors").stat().st_mtime_ns
    (config.folder / "checkpoints").rename(folder / "checkpoints")
    with caplog.at_level(logging.INFO):
        train(config)
    assert "is finished" in caplog.text
    assert (config.folder / "model.safetensors").stat().st_mtime_ns == before
    with pytest.raises(InputError, match="checkpoints are deleted"):
        train(longer)
    (folder / "checkpoints").rename(config.folder / "checkpoints")
    train_until(longer, 25)
    assert not (longer.folder / "results.json").exists()
    train(longer)
    assert newest_checkpoint(config.folder).progress.update == 30
    assert read_config(config.folder).training.max_updates == 30


def test_resume_refuses_changed_settings(folder):
    train(toy.config(folder))
    with pytest.raises(InputError, match=r"training\.batch_tokens: 256 in the run, now 128"):
        train(toy.config(folder, training={"batch_tokens": 128}))
    with pytest.raises(InputError, match=r"training\.max_updates: 20 in the run, now 15"):
        train(toy.config(folder, training={"max_updates": 15}))


def test_finished_run_warns_of_changed_corpus(folder, caplog, monkeypatch):
    path = folder / "train.yy"
    before, config = path.read_text(), toy.config(folder, training={"max_updates": 10})
    real_prepare = command.prepare

    def change_what_was_read(*arguments):
        path.write_text(before.replace("ba", "ga"))
        return real_prepare(*arguments)

    def warnings():
        caplog.clear()
        train(config)
        return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]

    monkeypatch.setattr(command, "prepare", change_what_was_read)
    train(config)
    *unchanged, changed = warnings()
    assert "have changed since" in changed and "name=" in changed
    path.write_text(before)  # the same again
    assert warnings() == unchanged

    def fill_the_disk(config, warn):
        raise OSError(errno.ENOSPC, "No space left on device", "/cache")

    with monkeypatch.context() as patched:
        patched.setattr(provenance, "load_corpus", fill_the_disk)
        *others, unknown = warnings()
    assert others == unchanged and "cannot be checked" in unknown and "'/cache'" in unknown
    path.unlink()
    *others, changed = warnings()
    assert others == unchanged and "train.yy: no such file" in changed


def test_resume_reports_changed_files(folder):
    """Three pairs of files with the lines of the one pair, and a bad pair, of which nothing is used."""
    pile = folder / "pile"
    pile.mkdir()
    for side in ("xx", "yy"):
        lines = (folder / f"train.{side}").read_text().splitlines(keepends=True)
        for number in range(3):
            (pile / f"{number}.{side}").write_text("".join(lines[200 * number : 200 * number + 200]))
    (pile / "bad.xx").write_text("ba\nde\n")
    (pile / "bad.yy").write_text("ba\n")
    named = {"train": (f"{pile}/*.xx", f"{pile}/*.yy"), "on_bad_file": "skip"}
    one, many = toy.config(folder, "one"), toy.config(folder, "many", data=named)
    train(one)
    train_until(many, 7)
    files = read_provenance(many.folder)["files"]["train"]
    assert [[path.rpartition("/")[2] for path in file["paths"]] for file in files] == [
        [f"{name}.xx", f"{name}.yy"] for name in ("0", "1", "2", "bad")
    ]
    assert [file["pairs"] for file in files] == [200, 200, 200, 0]
    assert "bad.xx has 2 lines but" in files[3]["left_out"]

    def refused(*names):
        with pytest.raises(InputError, match="the train pairs have changed since the run began") as changed:
            train(many)
        listed = ", ".join(f"{pile}/{name}.xx + {pile}/{name}.yy" for name in names)
        assert f"in {counted(len(names), 'file')}: {listed}; restore them" in str(changed.value)

    before = {path: path.read_text() for path in pile.iterdir()}
    for name, text in (
        ("1.yy", before[pile / "1.yy"].replace("ba", "de", 1)),
        ("1.yy", "ba\n"),  # is skipped now
        ("bad.yy", "ba\nde\n"),  # can be read now
    ):
        (pile / name).write_text(text)
        refused(name.removesuffix(".yy"))
        (pile / name).write_text(before[pile / name])
    for side in ("xx", "yy"):
        (pile / f"3.{side}").write_text("za\n")
        (pile / f"2.{side}").rename(folder / f"2.{side}")
    refused("2", "3")
    for side in ("xx", "yy"):
        (pile / f"3.{side}").unlink()
        (folder / f"2.{side}").rename(pile / f"2.{side}")
        shutil.copy(folder / f"valid.{side}", folder / f"moved.{side}")
    # The same files resume elsewhere, under other names, too.
    pile = pile.rename(folder / "elsewhere")
    for side in ("xx", "yy"):
        (pile / f"2.{side}").rename(pile / f"4.{side}")
    named |= {"train": (f"{pile}/*.xx", f"{pile}/*.yy"), "valid": (f"{folder}/moved.xx", f"{folder}/moved.yy")}
    many = toy.config(folder, "many", data=named)
    (folder / "moved.xx").write_text("ba\n" * 40)
    with pytest.raises(InputError, match="the valid pairs have changed"):
        train(many)
    shutil.copy(folder / "valid.xx", folder / "moved.xx")
    train(many)
    files = read_provenance(many.folder)["files"]["train"]
    assert [path for file in files for path in file["paths"]][-4] == f"{pile}/4.xx"
    assert read_config(many.folder).data.train == many.data.train
    with pytest.raises(InputError, match=r"data.valid: .*valid.* in the run, now .*moved"):
        train(toy.config(folder, "one", data={"valid": named["valid"]}))
    recorded = [read_provenance(config.folder) for config in (one, many)]
    assert "files" not in recorded[0] and recorded[1]["files"]["train"] == files
    assert recorded[0]["data"] == recorded[1]["data"]
    assert recorded[0]["weights_sha256"] == recorded[1]["weights_sha256"]


def test_mixture_resumes_with_moved_files(folder):
    place = folder / "first"
    toy.write_corpus(folder, "reverse", train=200)

    def mixture(**second):
        first = {split: (f"{place}/{split}.xx", f"{place}/{split}.yy") for split in ("train", "valid", "test")}
        other = {"kind": "files", "train": (f"{place}/valid.xx", f"{place}/test.yy")} | second
        data = {"kind": "mixture", "cleaning": False, "corpora": [{"kind": "files"} | first, other]}
        languages = {"source_language": "xx", "target_language": "yy"}
        return TrainConfig.model_validate(toy.config(folder).model_dump() | {"data": data | languages})

    place.mkdir()
    for path in folder.glob("*.??"):
        path.rename(place / path.name)
    train_until(mixture(), 3)
    place = place.rename(folder / "second")
    with pytest.raises(InputError, match=r"data\.corpora: .*weight:1"):
        train(mixture(weight=2))
    train(mixture())
    assert read_config(mixture().folder).data == mixture().data


def test_resume_restores_gradient_scale(folder):
    config = toy.config(folder)
    training = make_trainer(config)
    training.begin()
    training.updater.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    updates = prefetch_updates(training.batches, 0, 0, 1, ALONE)
    for _ in range(3):
        training.updater.train_step(next(updates))
    training._save()
    updates.close()
    before = training.updater.scaler.state_dict()
    assert before["scale"] == 2.0**11

    checkpoint = newest_checkpoint(config.folder)
    again = make_trainer(config, checkpoint)
    again.updater.scaler = torch.amp.GradScaler("cpu")
    again.updater.restore(checkpoint)
    assert again.updater.scaler.state_dict() == before
    updates = prefetch_updates(again.batches, 0, 3, 1, ALONE)
    again.updater.train_step(next(updates))
    assert again.updater.scaler.get_scale() == 2.0**12
    updates.close()


def test_resume_refuses_corrupted_files(folder):
    """Whatever the rest of the run needs, be it only at its end."""
    config = toy.config(folder)
    train_until(config, 12)
    for name in (
        "tokenizer.model", "model.safetensors", "checkpoints/step_12/model.safetensors",
        "checkpoints/step_12/optimizer.safetensors", "checkpoints/step_12/progress.json",
    ):  # fmt: skip
        path = config.folder / name
        content = path.read_bytes()
        path.write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])
        with pytest.raises(InputError, match=f"{name}: corrupted"):
            train(config)
        path.write_bytes(content)
    leftovers = [config.folder / ".model.safetensors.0123456789ab.partial", config.folder / "scored/.x.partial"]
    leftovers[1].parent.mkdir()
    for leftover in leftovers:
        leftover.touch()
    train(config)
    assert read_results(config)["updates"] == 20 and not any(leftover.exists() for leftover in leftovers)


def test_signal_interrupts_validation(folder, monkeypatch):
    config = toy.config(folder, training={"batch_tokens": 32})
    training = make_trainer(config)
    training.begin()
    training._interrupt_if_asked()  # no signal has come
    training.stop.signal_number = signal.SIGTERM
    with pytest.raises(Interrupted, match="stopped at update 0, state saved in"):
        training.validator.measure(training._interrupt_if_asked)
    assert newest_checkpoint(config.folder).progress.update == 0
    monkeypatch.setattr(Workers, "sum", lambda workers, tensor: tensor)
    batches, real_forward = 0, Objective.forward

    def forward(self, batch):
        nonlocal batches
        batches += 1
        return real_forward(self, batch)

    def stop():
        raise Interrupted(signal.SIGTERM, "")

    monkeypatch.setattr(Objective, "forward", forward)
    share = len(list(evaluation_batches(training.data.valid[""], 32))[::2])
    for workers, expected in ((1, 1), (2, share)):
        monkeypatch.setattr(ALONE, "size", workers)
        batches = 0
        with pytest.raises(Interrupted):
            training.validator.measure(stop)
        assert batches == expected
    assert share > 1
