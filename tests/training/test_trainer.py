"""Whole runs on a toy language: learning, resuming exactly, and what a run folder holds."""

import contextlib
import errno
import json
import logging
import os
import re
import shutil
import signal
from collections import Counter
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode

from mt.config import TokenizerConfig
from mt.data.batching import collate
from mt.data.corpus import load_corpus
from mt.errors import InputError, Interrupted, RunError
from mt.json_file import CHECKSUM_KEY
from mt.model import attention
from mt.run_folder import FILES, open_model, read_config
from mt.training import delivery
from mt.training import trainer as trainer_module
from mt.training.checkpoint import Progress, checkpoint_folders, newest_checkpoint, save_checkpoint
from mt.training.command import _only_process, train
from mt.training.feed import UpdateBatches, feed
from mt.training.objective import Objective
from mt.training.validation import Validation
from mt.training.workers import Workers
from mt.translation.translator import Translator
from mt.word_counts import read_word_counts
from tests import toy
from tests.clock import Clock


@pytest.fixture
def folder(tmp_path):
    toy.write_corpus(tmp_path, "reverse", train=600)
    return tmp_path


def _metrics(run):
    """What is reproducible of metrics.jsonl: all but times."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "target_tokens_per_second")} for line in lines]


def _results(config):
    return json.loads((config.folder / "results.json").read_text())


@pytest.mark.parametrize(
    ("architecture", "model"),
    [("transformer", {"feed_forward": 128, "heads": 4}), ("rnn", {"hidden": 96, "decoder_layers": 1})],
)
def test_the_model_learns_to_reverse(tmp_path, architecture, model):
    """Which needs attention to the right word at each place; copying is easier."""
    toy.write_corpus(tmp_path, "reverse")
    config = toy.config(
        tmp_path,
        architecture=architecture,
        model=model | {"width": 64, "dropout": 0.0},
        training={
            "max_updates": 450,
            "batch_tokens": 1024,
            "validate_every": 450,
            "optimizer": {"kind": "auto", "learning_rate": 1e-2, "embedding_factor": 0.5},
            "schedule": {"kind": "linear", "warmup": 40},
        },
    )
    train(config)
    results = json.loads((config.folder / "results.json").read_text())
    assert results["bleu"] > 95


ALONE = Workers(torch.device("cpu"))


def _update_of(batches):
    tokens = sum(batch.target_tokens for batch in batches)
    return UpdateBatches(batches, 0, 1, tokens, tokens, tokens)


EVERYTHING_RANDOM = {
    "text": {"augmentation": toy.CHANGED},
    "tokenizer": {"sampling": 0.2},
    "model": {"dropout": 0.2},
}


def _stop_after(monkeypatch, updates):
    """Makes training get a SIGTERM in the middle of the given updates; returns the way back."""
    real_update = trainer_module.Trainer._update

    def update(self, ready):
        result = real_update(self, ready)
        if self.progress.update in updates:
            updates.remove(self.progress.update)
            os.kill(os.getpid(), signal.SIGTERM)
        return result

    monkeypatch.setattr(trainer_module.Trainer, "_update", update)


@pytest.mark.parametrize(
    "settings",
    [
        {"optimizer": {"kind": "adamw"}, "weights": "last"},
        {"optimizer": {"kind": "auto"}, "weights": "average", "average": 3, "keep_last": 3, "save_every": 6},
        {"optimizer": {"kind": "adamw", "learning_rate": 0.1}, "weights": "best", "patience": 2, "metric": "loss"},
    ],
    ids=lambda settings: settings["weights"],
)
@pytest.mark.parametrize("architecture", toy.MODELS)
def test_a_stopped_run_goes_on_bitwise_as_if_it_had_not(folder, architecture, settings, monkeypatch):
    """With dropout, subword sampling, augmentation and accumulation on, stopped in the middle of an epoch and of a log
    interval, and where a validation is due."""
    objective = {"last": "cross_entropy", "average": "simcut", "best": "r_drop"}[settings["weights"]]
    training = {"accumulate": 2, "max_updates": 33, "objective": objective}
    changes = EVERYTHING_RANDOM | {"training": training | settings}
    whole, broken = (toy.config(folder, name, architecture, **changes) for name in ("whole", "broken"))
    train(whole)
    updates = [7, 10, 13, 26]
    stops = len([update for update in updates if update <= _results(whole)["updates"]])
    _stop_after(monkeypatch, updates)
    for _ in range(stops):
        with pytest.raises(Interrupted) as stopped:
            train(broken)
        assert stopped.value.signal_number == signal.SIGTERM
    train(broken)

    names = {path.relative_to(whole.folder) for path in whole.folder.rglob("*.safetensors")}
    assert names == {path.relative_to(broken.folder) for path in broken.folder.rglob("*.safetensors")}
    assert all((whole.folder / name).read_bytes() == (broken.folder / name).read_bytes() for name in names)
    assert _metrics(whole.folder) == _metrics(broken.folder)
    timed = {"training_minutes", "decoding_sentences_per_second", "peak_memory_bytes", FILES, CHECKSUM_KEY}
    first, second = ({k: v for k, v in _results(run).items() if k not in timed} for run in (whole, broken))
    assert first == second
    for name in ("source", "reference", "hypothesis"):
        path = f"scored/test.{name}"
        assert (whole.folder / path).read_bytes() == (broken.folder / path).read_bytes()


def test_times_and_speeds_are_those_of_the_clock(folder, monkeypatch):
    """Updates take two seconds each, validations five, which are no training, and translating the test set eight. The
    run is stopped and goes on."""
    clock = Clock()
    update, validate, translate = (
        trainer_module.Trainer._update, trainer_module.Trainer._validate, delivery.translate_together
    )  # fmt: skip

    def taking(seconds, work):
        def timed(*arguments):
            clock.seconds += seconds
            return work(*arguments)

        return timed

    monkeypatch.setattr(trainer_module, "time", clock)
    monkeypatch.setattr(delivery, "time", clock)
    monkeypatch.setattr(trainer_module.Trainer, "_update", taking(2, update))
    monkeypatch.setattr(trainer_module.Trainer, "_validate", taking(5, validate))
    monkeypatch.setattr(delivery, "translate_together", taking(8, translate))
    config = toy.config(folder, training={"log_every": 4, "validate_every": 8, "max_updates": 18})
    _stop_after(monkeypatch, [6])
    with pytest.raises(Interrupted):
        train(config)
    train(config)
    lines = [json.loads(line) for line in (config.folder / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in lines if line["split"] == "train"]
    assert [line["step"] for line in trained] == [4, 8, 12, 16, 18]
    assert [line["seconds"] for line in trained] == [8, 16, 24, 32, 36]
    before = 0
    for line, seconds in zip(trained, [8, 8, 8, 8, 4], strict=True):
        assert line["target_tokens_per_second"] == pytest.approx((line["target_tokens"] - before) / seconds)
        before = line["target_tokens"]
    assert [line["seconds"] for line in lines if line["split"] == "valid"] == [16, 32, 36]
    results = _results(config)
    assert results["training_minutes"] == pytest.approx(36 / 60)
    assert results["decoding_sentences_per_second"] == pytest.approx(40 / 8)


def test_metrics_of_a_killed_process_are_cut_back(folder, monkeypatch):
    """Killed after lines that no checkpoint knows, resumed, and stopped again before the first new line."""
    config = toy.config(folder, training={"max_updates": 40, "log_every": 4, "validate_every": 10})
    _stop_after(monkeypatch, [13])
    with pytest.raises(Interrupted):
        train(config)
    with (config.folder / "metrics.jsonl").open("a") as metrics:
        metrics.write(json.dumps({"step": 16, "split": "train"}) + "\n")
    _stop_after(monkeypatch, [14])
    with pytest.raises(Interrupted):
        train(config)
    train(config)
    train_steps = [line["step"] for line in _metrics(config.folder) if line["split"] == "train"]
    assert train_steps == list(range(4, 41, 4))


def test_an_older_checkpoint_gets_its_name_back_and_unfinished_ones_go(folder, monkeypatch):
    config = toy.config(folder)
    _stop_after(monkeypatch, [12])
    with pytest.raises(Interrupted):
        train(config)
    checkpoints = config.folder / "checkpoints"
    (checkpoints / "step_12").rename(checkpoints / ".step_12.0123456789ab.replaced")
    (checkpoints / ".step_12.0123456789ab.partial").mkdir()
    train(config)
    assert _results(config)["updates"] == 20
    steps = [line["step"] for line in _metrics(config.folder) if line["split"] == "valid"]
    assert steps == [10, 20]
    assert [path.name for path in checkpoints.iterdir()] == ["step_20"]


def test_a_finished_run_without_its_checkpoints_is_still_finished(folder, caplog):
    config = toy.config(folder)
    train(config)
    shutil.rmtree(config.folder / "checkpoints")
    with caplog.at_level(logging.INFO):
        train(config)
    assert "is finished" in caplog.text
    with pytest.raises(InputError, match="checkpoints are gone"):
        train(toy.config(folder, training={"max_updates": 30}))


def test_a_run_that_is_being_extended_has_no_old_results(folder, monkeypatch):
    train(toy.config(folder))
    longer = toy.config(folder, training={"max_updates": 40})
    _stop_after(monkeypatch, [25])
    with pytest.raises(Interrupted):
        train(longer)
    assert not (longer.folder / "results.json").exists()


@pytest.mark.parametrize("architecture", toy.MODELS)
def test_bf16_on_the_cpu_learns_as_fp32_does(folder, architecture):
    losses = {}
    for precision in ("fp32", "bf16"):
        config = toy.config(folder, precision, architecture, training={"precision": precision, "max_updates": 60})
        train(config)
        losses[precision] = [line["loss"] for line in _metrics(config.folder) if line["split"] == "valid"][-1]
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.02)


@pytest.mark.parametrize("architecture", toy.MODELS)
def test_a_signal_during_validation_saves_and_validates_again(folder, architecture, monkeypatch):
    config = toy.config(folder, architecture=architecture)
    real_translate = Translator.translate

    def translate(self, lines, numbers=None, after_batch=None):
        os.kill(os.getpid(), signal.SIGINT)
        return real_translate(self, lines, numbers, after_batch)

    monkeypatch.setattr(Translator, "translate", translate)
    with pytest.raises(Interrupted):
        train(config)
    assert newest_checkpoint(config.folder).progress.validation_due
    monkeypatch.setattr(Translator, "translate", real_translate)
    train(config)
    assert [line["step"] for line in _metrics(config.folder) if line["split"] == "valid"] == [10, 20]


def test_a_finished_run_is_reported_and_left_alone_and_can_be_extended(folder, caplog):
    config = toy.config(folder)
    train(config)
    before = (config.folder / "model.safetensors").stat().st_mtime_ns
    with caplog.at_level(logging.INFO):
        train(config)
    assert "is finished" in caplog.text
    assert (config.folder / "model.safetensors").stat().st_mtime_ns == before
    train(toy.config(folder, training={"max_updates": 30}))
    assert newest_checkpoint(config.folder).progress.update == 30
    assert read_config(config.folder).training.max_updates == 30


def test_an_unfinished_run_of_the_same_settings_under_another_name_is_told_of(folder, monkeypatch, caplog):
    """So whoever repeats a command whose default name has changed since does not begin anew without knowing."""
    old = toy.config(folder, "old-name")
    _stop_after(monkeypatch, [12])
    with pytest.raises(Interrupted):
        train(old)
    told = f"{old.folder} is an unfinished run with the same settings: name=old-name goes on with it"
    with caplog.at_level(logging.INFO):
        train(toy.config(folder, "another", training={"batch_tokens": 128}))
        assert told not in caplog.text
        train(toy.config(folder, "new-name"))
        assert caplog.text.count(told) == 1
        train(old)
        train(toy.config(folder, "newer-name"))
    assert caplog.text.count(told) == 1


def test_a_changed_config_is_refused_with_the_keys_that_differ(folder):
    train(toy.config(folder))
    with pytest.raises(InputError, match=r"training\.batch_tokens: 256 in the run, now 128"):
        train(toy.config(folder, training={"batch_tokens": 128}))
    with pytest.raises(InputError, match=r"training\.max_updates: 20 in the run, now 15"):
        train(toy.config(folder, training={"max_updates": 15}))


def test_a_changed_corpus_is_refused(folder):
    train(toy.config(folder, training={"max_updates": 10}))
    lines = (folder / "train.xx").read_text().splitlines()
    (folder / "train.xx").write_text("\n".join(["za za za", *lines[1:]]) + "\n")
    with pytest.raises(InputError, match="the train pairs have changed since the run began"):
        train(toy.config(folder))


def test_a_run_on_many_files_goes_on_bitwise_or_tells_which_have_changed(folder, monkeypatch):
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
    with monkeypatch.context() as stopping, pytest.raises(Interrupted):
        _stop_after(stopping, [7])
        train(many)
    files = json.loads((many.folder / "provenance.json").read_text())["files"]["train"]
    assert [[path.rpartition("/")[2] for path in file["paths"]] for file in files] == [
        [f"{name}.xx", f"{name}.yy"] for name in ("0", "1", "2", "bad")
    ]
    assert [file["pairs"] for file in files] == [200, 200, 200, 0]
    assert "bad.xx has 2 lines but" in files[3]["left_out"]

    def refused(message):
        with pytest.raises(InputError, match=rf"(?s)its files are not those that the run began with.*train: {message}"):
            train(many)

    before = {path: path.read_text() for path in pile.iterdir()}
    for name, text, message in (
        ("1.yy", before[pile / "1.yy"].replace("ba", "de", 1), r".*1\.xx \+ .*1\.yy: has other pairs"),
        ("1.yy", "ba\n", r".*1\.yy: now left out: .*1\.yy has 1"),
        ("bad.yy", "ba\nde\n", r".*bad\.xx \+ .*bad\.yy: was left out and can be read now"),
    ):
        (pile / name).write_text(text)
        refused(message)
        (pile / name).write_text(before[pile / name])
    for side in ("xx", "yy"):
        (pile / f"3.{side}").write_text("za\n")
    refused(r".*3\.xx \+ .*3\.yy: new")
    for side in ("xx", "yy"):
        (pile / f"3.{side}").unlink()
        (pile / f"2.{side}").rename(folder / f"2.{side}")
    refused(r".*2\.xx \+ .*2\.yy: no longer among the files")
    for side in ("xx", "yy"):
        (folder / f"2.{side}").rename(pile / f"2.{side}")
    train(many)
    recorded = [json.loads((config.folder / "provenance.json").read_text()) for config in (one, many)]
    assert "files" not in recorded[0] and recorded[1]["files"]["train"] == files
    assert recorded[0]["data"] == recorded[1]["data"]
    assert recorded[0]["weights_sha256"] == recorded[1]["weights_sha256"]


@pytest.mark.parametrize("architecture", toy.MODELS)
def test_accumulating_small_batches_equals_the_large_one(folder, architecture):
    """An update on the same pairs in 1 batch, or in 4 of other sizes and lengths: equal gradients."""
    config = toy.config(folder, architecture=architecture, model={"dropout": 0.0}, training={"clip_norm": 0.0})
    config.folder.mkdir(parents=True)
    data = toy.prepared(config)
    rows = data.train[:40]

    def moments_after(cuts):
        training = trainer_module.Trainer(config, data, ALONE, None)
        batches = [collate(range(a, b), rows["source_ids"][a:b], rows["target_ids"][a:b]) for a, b in pairwise(cuts)]
        training._update(_update_of(batches))
        return training.optimizer.state_tensors()

    # Adam's first moment is a tenth of the gradient.
    whole, parts = moments_after([0, 40]), moments_after([0, 3, 20, 21, 40])
    assert sum(name.endswith("exp_avg") for name in whole) > 10
    for name in whole:
        assert torch.allclose(whole[name], parts[name], atol=1e-7), name


@pytest.mark.parametrize("architecture", toy.MODELS)
def test_a_batch_too_large_for_the_memory_is_done_in_parts_with_equal_gradients(
    folder, monkeypatch, caplog, architecture
):
    config = toy.config(folder, architecture=architecture, model={"dropout": 0.0}, training={"clip_norm": 0.0})
    config.folder.mkdir(parents=True)
    data = toy.prepared(config)
    rows = data.train[:40]
    batches = [collate(range(a, b), rows["source_ids"][a:b], rows["target_ids"][a:b]) for a, b in ((0, 9), (9, 40))]
    most_pairs, failed = 40, 0
    real_forward = Objective.forward

    def forward(self, batch):
        nonlocal failed
        loss = real_forward(self, batch)
        if self.training and len(batch.ids) > most_pairs:
            failed += 1
            (loss * 2).backward()  # some gradients are there already
            raise [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("can't allocate memory")][failed % 2]
        return loss

    monkeypatch.setattr(Objective, "forward", forward)

    def moments_of_two_updates():
        training = trainer_module.Trainer(config, data, ALONE, None)
        for _ in range(2):
            training._update(_update_of(batches))
        assert training.progress.target_tokens == 2 * sum(batch.target_tokens for batch in batches)
        return training.optimizer.state_tensors()

    whole = moments_of_two_updates()
    most_pairs = 8
    parts = moments_of_two_updates()
    assert failed >= 4
    for name in whole:
        assert torch.allclose(whole[name], parts[name], atol=1e-7), name
    assert sum("out of memory" in record.message for record in caplog.records) == 1
    most_pairs = 0
    with pytest.raises((RuntimeError, MemoryError), match="memory"):
        moments_of_two_updates()


@pytest.mark.parametrize("save_every", [1, 5])
@pytest.mark.parametrize("architecture", toy.MODELS)
def test_bad_gradients_never_reach_the_weights_and_end_the_run(folder, architecture, save_every, monkeypatch, caplog):
    training = {"max_bad_steps": 3, "max_updates": 20, "save_every": save_every, "log_every": 2}
    config = toy.config(folder, architecture=architecture, training=training)
    real_forward = Objective.forward
    calls = 0

    def forward(self, batch):
        nonlocal calls
        calls += self.training
        loss = real_forward(self, batch)
        return loss * float("nan") if self.training and (calls in (3, 4) or calls >= 8) else loss

    monkeypatch.setattr(Objective, "forward", forward)
    with pytest.raises(RunError, match="3 updates in a row"):
        train(config)
    assert re.findall(r"update (\d+): the gradient", caplog.text) == ["3", "8"]
    checkpoint = newest_checkpoint(config.folder)
    # Two once, and two of the last three were saved if each is.
    assert (checkpoint.progress.update, checkpoint.progress.bad_updates) == ((9, 4) if save_every == 1 else (5, 2))
    assert all(tensor.isfinite().all() for tensor in checkpoint.weights().values())
    logged = {line["step"]: line["loss"] for line in _metrics(config.folder) if line["split"] == "train"}
    assert logged.keys() == {2, 6, 8}  # 3 and 4 were bad, 8 and those after it
    assert None not in logged.values()


class _NoWaiting(TorchDispatchMode):
    """Fails what makes the CPU wait for a GPU, as far as it can be seen on a CPU: values that decide where Python goes
    on, shapes that depend on values. Copies to the CPU are none here."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.name().removeprefix("aten::").split(".")[0]
        waits = {
            "_local_scalar_dense",
            "nonzero",
            "masked_select",
            "equal",
            "_unique2",
            "repeat_interleave",
            "bincount",
        }
        assert name not in waits, function
        if name in ("index", "index_put", "index_put_"):
            assert all(index is None or index.dtype != torch.bool for index in args[1]), function
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("objective", ["cross_entropy", "simcut", "r_drop"])
@pytest.mark.parametrize("architecture", toy.MODELS)
def test_an_update_asks_nothing_that_a_gpu_would_still_be_working_out(folder, architecture, objective, monkeypatch):
    def as_on_a_gpu(query, key, value, mask, dropout):
        causal = mask is not None and mask.shape[-2] > 1
        context = scaled_dot_product_attention(query, key, value, None if causal else mask, is_causal=causal)
        return context, None, None

    monkeypatch.setattr(attention, "scaled_dot_product_attention", as_on_a_gpu)
    training = {"objective": objective, "accumulate": 2, "optimizer": {"kind": "auto"}}
    config = toy.config(folder, architecture=architecture, model={"dropout": 0.1}, training=training)
    config.folder.mkdir(parents=True)
    trainer = trainer_module.Trainer(config, toy.prepared(config), ALONE, None)
    with contextlib.closing(feed(trainer.batches, 0, 0, 2, ALONE)) as updates:
        for _ in range(3):
            ready = next(updates)
            with _NoWaiting():
                trainer._update(ready)
            trainer._count()  # else the next update would do so, as it should
    assert trainer.progress.interval_target_tokens > 0


@pytest.mark.parametrize(("precision", "rounds"), [("bf16", True), ("fp32", False)])
def test_recurrent_layers_may_round_while_training_in_less_than_fp32(folder, monkeypatch, precision, rounds):
    seen = []
    real_update = trainer_module.Trainer._update

    def update(self, ready):
        seen.append(torch.backends.cudnn.allow_tf32)
        return real_update(self, ready)

    monkeypatch.setattr(trainer_module.Trainer, "_update", update)
    train(toy.config(folder, training={"max_updates": 6, "validate_every": 6, "precision": precision}))
    assert seen == 6 * [rounds]
    assert not torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize("scale", [2.0**16, 2.0, 1.0])
@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_an_overflow_under_fp16_scaling_is_skipped_and_counted_where_the_scale_cannot_fall(
    folder, monkeypatch, kind, scale
):
    """With the real GradScaler, on the CPU: the scale falls, the weights stay, and the next update moves them."""
    config = toy.config(folder, training={"optimizer": {"kind": kind}})
    config.folder.mkdir(parents=True)
    training = trainer_module.Trainer(config, toy.prepared(config), ALONE, None)
    training.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    updates = feed(training.batches, 0, 0, 1, ALONE)
    training._update(next(updates))
    before = [parameter.detach().clone() for parameter in training.model.parameters()]

    real_forward = Objective.forward
    monkeypatch.setattr(Objective, "forward", lambda self, batch: real_forward(self, batch) * float("inf"))
    training._update(next(updates))
    training._count()
    assert training.scaler.get_scale() == scale / 2
    assert training.progress.bad_updates == (scale == 1)  # a smaller scale would not help
    assert all(torch.equal(one, other) for one, other in zip(before, training.model.parameters(), strict=True))

    monkeypatch.setattr(Objective, "forward", real_forward)
    training._update(next(updates))
    assert not all(torch.equal(one, other) for one, other in zip(before, training.model.parameters(), strict=True))
    updates.close()


def test_a_run_with_gradient_scaling_goes_on_with_its_scale(folder):
    config = toy.config(folder)
    config.folder.mkdir(parents=True)
    data = toy.prepared(config)
    training = trainer_module.Trainer(config, data, ALONE, None)
    training.begin()
    training.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=2)
    updates = feed(training.batches, 0, 0, 1, ALONE)
    for _ in range(3):
        training._update(next(updates))
    with training.monitor() as monitor:
        training._save(monitor)
    updates.close()
    before = training.scaler.state_dict()
    assert before["scale"] == 2.0**11

    again = trainer_module.Trainer(config, data, ALONE, None)
    again.scaler = torch.amp.GradScaler("cpu")
    again._restore(newest_checkpoint(config.folder))
    assert again.scaler.state_dict() == before
    updates = feed(again.batches, 0, 3, 1, ALONE)
    again._update(next(updates))
    assert again.scaler.get_scale() == 2.0**12
    updates.close()


def test_early_stopping(folder):
    config = toy.config(
        folder,
        training={
            "max_updates": 500,
            "validate_every": 2,
            "patience": 3,
            "optimizer": {"kind": "adamw", "learning_rate": 1e-12},
        },
    )
    train(config)
    results = json.loads((config.folder / "results.json").read_text())
    assert results["stopped_early"]
    assert results["updates"] == 8  # the first validation is the best, three more bring nothing
    train(config)  # finished, although max_updates is far
    longer = config.training.model_copy(update={"max_updates": 600})
    with pytest.raises(InputError, match=r"stopped early by training.patience=3, so .* \(500 before\) has no effect"):
        train(config.model_copy(update={"training": longer}))


def test_average_is_the_mean_of_the_last_checkpoints(folder):
    config = toy.config(
        folder,
        training={"weights": "average", "average": 3, "keep_last": 3, "save_every": 5, "max_updates": 20},
    )
    train(config)
    folders = list(checkpoint_folders(config.folder).values())
    assert [path.name for path in folders] == ["step_10", "step_15", "step_20"]
    several = [load_file(path / "model.safetensors") for path in folders]
    for name, tensor in load_file(config.folder / "model.safetensors").items():
        assert torch.allclose(tensor, sum(weights[name] for weights in several) / 3, atol=1e-7)


def test_a_mean_of_fewer_checkpoints_than_were_asked_for_is_told(folder, caplog):
    """The run stopped before there were so many."""
    optimizer = {"kind": "adamw", "learning_rate": 1e-12}
    training = {"weights": "average", "average": 9, "keep_last": 9, "validate_every": 2, "patience": 2}
    config = toy.config(folder, training=training | {"optimizer": optimizer, "metric": "loss"})
    train(config)
    saved = len(checkpoint_folders(config.folder))
    assert saved < 9 and _results(config)["averaged_checkpoints"] == saved
    assert f"the mean of its {saved} checkpoints" in caplog.text


def test_fine_tuning_starts_from_the_other_runs_weights_and_tokenizer(folder):
    base = toy.config(folder, "base")
    train(base)
    tuned = toy.config(
        folder,
        "tuned",
        training={"init_from": str(base.folder), "optimizer": {"kind": "adamw", "learning_rate": 1e-12}},
    )
    train(tuned)
    assert (tuned.folder / "tokenizer.model").read_bytes() == (base.folder / "tokenizer.model").read_bytes()
    first, second = (
        load_file(base.folder / "model.safetensors"),
        load_file(tuned.folder / "model.safetensors"),
    )
    assert all(torch.allclose(first[name], second[name], atol=1e-6) for name in first)


def test_fine_tuning_another_model_names_the_settings_to_add(folder):
    base = toy.config(folder, "base")
    train(base)
    tuned = toy.config(folder, "tuned", model={"width": 64, "dropout": 0.3}, training={"init_from": str(base.folder)})
    with pytest.raises(InputError, match=r"add: model\.width=32$"):
        train(tuned)


def test_fine_tuning_another_architecture_names_the_models_to_take(folder):
    base = toy.config(folder, "base")
    train(base)
    tuned = toy.config(folder, "tuned", "rnn", training={"init_from": str(base.folder)})
    with pytest.raises(InputError, match=r"is a transformer, this run a rnn_attention: take one of model=transformer_"):
        train(tuned)


def test_settings_of_a_tokenizer_that_another_run_brings_are_that_runs_own(folder, monkeypatch):
    base = toy.config(folder, "base", tokenizer={"joint": False, "vocabulary_size": 310})
    train(base)
    tuned = toy.config(folder, "tuned", tokenizer={"vocabulary_size": 5000}, training={"init_from": str(base.folder)})
    with pytest.raises(InputError, match=r"^tokenizer.vocabulary_size=5000: .* or set tokenizer.vocabulary_size=310$"):
        train(tuned)
    tuned = tuned.model_copy(update={"tokenizer": TokenizerConfig(sampling=0.1)})
    _stop_after(monkeypatch, [7])
    with pytest.raises(Interrupted):
        train(tuned)
    # Before the first update, the weights that it began with are the best so far.
    begun = [load_file(run.folder / "model.safetensors") for run in (base, tuned)]
    assert all(torch.equal(begun[0][name], begun[1][name]) for name in begun[0])
    recorded = read_config(tuned.folder).tokenizer
    assert (recorded.joint, recorded.vocabulary_size, recorded.sampling) == (False, 310, 0.1)
    shutil.rmtree(base.folder)  # what a run needs to go on lies in its own folder
    train(tuned)
    assert _results(tuned)["updates"] == 20


def test_a_run_from_before_there_were_versions_of_the_split_keeps_its_own(folder, monkeypatch, caplog):
    caplog.set_level("INFO")
    # Every sentence again, in other spelling, so that the versions hold other pairs out.
    for language in ("xx", "yy"):
        lines = (folder / f"train.{language}").read_text()
        (folder / f"train.{language}").write_text(lines + lines.upper())

    def config(name, **data):
        return toy.config(folder, name, data={"valid": None, "test": None, "valid_pairs": 20, "test_pairs": 20} | data)

    older, newer = config("older", split_version=1), config("older")
    held_out = [load_corpus(each.data).test["source"][:] for each in (older, newer)]
    assert held_out[0] != held_out[1]

    _stop_after(monkeypatch, [7])
    with pytest.raises(Interrupted):
        train(older)
    with pytest.raises(InputError, match="there are no weights"):
        open_model(older.folder)
    recorded = older.folder / "config.yaml"
    recorded.write_text(recorded.read_text().replace("  split_version: 1\n", ""))
    toy.change_json(older.folder / "provenance.json", lambda made: (made.pop("took_effect"), made.pop("resumed")))
    assert read_config(older.folder) == older
    train(newer)
    assert "keeps it: data.split_version=1" in caplog.text
    assert (older.folder / "scored" / "test.source").read_text().splitlines() == held_out[0]
    assert read_config(older.folder) == older

    for version in (1, 2):
        assert "learnt from data.split_version" not in caplog.text
        tuned = config(f"tuned {version}", split_version=version)
        training = tuned.training.model_copy(update={"init_from": str(older.folder)})
        _stop_after(monkeypatch, [1])
        with pytest.raises(Interrupted):
            train(tuned.model_copy(update={"training": training}))
    assert f"init_from={older.folder} learnt from data.split_version=1" in caplog.text

    # The other way round it is not the default that differs.
    recorded.write_text(recorded.read_text().replace("  split_version: 1\n", "  split_version: 2\n"))
    with pytest.raises(InputError, match=r"data\.split_version: 2 in the run, now 1"):
        train(older)


def test_sampling_from_a_tokenizer_of_characters_is_refused(folder):
    base = toy.config(folder, "base", tokenizer={"kind": "char"})
    train(base)
    tuned = toy.config(folder, "tuned", tokenizer={"sampling": 0.1}, training={"init_from": str(base.folder)})
    with pytest.raises(InputError, match=r"tokenizer\.sampling=0\.1: the tokenizer of .* has kind=char"):
        train(tuned)
    assert not tuned.folder.exists()


def test_when_bleu_ties_the_smaller_loss_is_better(folder, monkeypatch):
    monkeypatch.setattr("mt.training.validation.corpus_bleu", lambda *arguments: 0.0)
    config = toy.config(folder)
    train(config)
    assert _results(config)["best_update"] == 20


@pytest.mark.parametrize("metric", ["loss", "bleu"])
def test_a_loss_that_is_no_number_is_worse_than_any(metric):
    """Also as the first one, with which all later ones are compared; BLEU is the same each time."""
    nan = float("nan")
    trainer = SimpleNamespace(progress=Progress(), config=SimpleNamespace(training=SimpleNamespace(metric=metric)))
    best = []
    for loss in (nan, nan, 9.0, nan, 8.0, 8.0):
        trainer.progress.update += 1
        found = Validation(loss, 0.0, 0.0, [], [], [])
        best.append(trainer_module.Trainer._is_best(trainer, found))
    assert best == [True, False, True, False, True, False]
    assert (trainer.progress.best_update, trainer.progress.best_loss) == (5, 8.0)


def test_a_first_score_that_is_no_number_does_not_stay_the_best_of_a_resumed_run(tmp_path):
    """As a checkpoint that an earlier version wrote has it."""
    save_checkpoint(tmp_path, Progress(update=1, best_score=float("nan"), best_loss=float("nan")), {}, {}, {})
    training = SimpleNamespace(training=SimpleNamespace(metric="loss"))
    trainer = SimpleNamespace(progress=newest_checkpoint(tmp_path).progress, config=training)
    assert trainer_module.Trainer._is_best(trainer, Validation(9.0, 0.0, 0.0, [], [], []))


def test_damage_is_told_before_a_run_goes_on(folder, monkeypatch):
    """Whatever the rest of the run needs, be it only at its end."""
    config = toy.config(folder)
    _stop_after(monkeypatch, [12])
    with pytest.raises(Interrupted):
        train(config)
    for name in (
        "tokenizer.model", "model.safetensors", "checkpoints/step_12/model.safetensors",
        "checkpoints/step_12/optimizer.safetensors", "checkpoints/step_12/progress.json",
    ):  # fmt: skip
        path = config.folder / name
        content = path.read_bytes()
        path.write_bytes(content[:-40] + bytes([content[-40] ^ 1]) + content[-39:])
        with pytest.raises(InputError, match=f"{name}: damaged"):
            train(config)
        path.write_bytes(content)
    leftovers = [config.folder / ".model.safetensors.0123456789ab.partial", config.folder / "scored/.x.partial"]
    leftovers[1].parent.mkdir()
    for leftover in leftovers:
        leftover.touch()
    train(config)
    assert _results(config)["updates"] == 20 and not any(leftover.exists() for leftover in leftovers)


def test_a_run_counts_the_words_of_its_training_targets(folder):
    config = toy.config(folder)
    train(config)
    counted = read_word_counts(config.folder, "yy")
    assert counted == Counter((folder / "train.yy").read_text().split())


def test_separate_vocabularies(folder):
    config = toy.config(folder, tokenizer={"joint": False, "vocabulary_size": 310})
    train(config)
    assert not open_model(config.folder).tokenizers.joint
    assert len(Translator.load(config.folder, device="cpu").translate(["ba de", "fi"])) == 2


def test_two_processes_cannot_train_one_run(folder):
    config = toy.config(folder)
    config.folder.mkdir(parents=True)
    with _only_process(config.folder), pytest.raises(RunError, match="another process"):
        train(config)


def test_a_disk_without_locks_is_warned_of(folder, monkeypatch, caplog):
    def lockless(*arguments):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", lockless)
    config = toy.config(folder)
    train(config)
    assert _results(config)["updates"] == 20 and "this file system has no locks" in caplog.text


def test_a_validation_cut_short_by_a_kill_is_made_anew_of_the_same_weights(folder, monkeypatch):
    config = toy.config(folder)

    def killed(*arguments):
        raise SystemExit

    with monkeypatch.context() as patched:
        patched.setattr("mt.training.validation.Validator.translations", killed)
        with pytest.raises(SystemExit):
            train(config)
    checkpoint = newest_checkpoint(config.folder)
    assert checkpoint.progress.update == 10 and checkpoint.progress.validation_due
    train(config)
    assert [line["step"] for line in _metrics(config.folder) if line["split"] == "valid"] == [10, 20]


@pytest.mark.parametrize("place", [".lock", "train.log", "checkpoints", "tensorboard"])
def test_nothing_is_written_through_a_link_out_of_the_folder(folder, place):
    config = toy.config(folder)
    config.folder.mkdir(parents=True)
    mine = folder / "mine"
    if "." in place:
        mine.write_text("mine")
    else:
        (mine / ".unfinished.partial").mkdir(parents=True)
    (config.folder / place).symlink_to(mine)
    with pytest.raises(InputError, match=f"{place}: a link that leads out of the folder"):
        train(config)
    assert mine.read_text() == "mine" if mine.is_file() else len(list(mine.iterdir())) == 1


def test_fine_tuning_reads_nothing_through_a_link(folder):
    (folder / "secret").write_text("password: [")
    (folder / "origin").mkdir()
    (folder / "origin/model.yaml").symlink_to(folder / "secret")
    with pytest.raises(InputError, match="leads out of the folder") as refused:
        train(toy.config(folder, training={"init_from": str(folder / "origin")}))
    assert "password" not in str(refused.value)


def test_a_pipe_in_a_folder_is_refused_and_not_waited_for(folder):
    (folder / "model").mkdir()
    os.mkfifo(folder / "model/model.yaml")
    with pytest.raises(InputError, match="neither a file nor a folder"):
        open_model(folder / "model")


def test_a_run_folder_holds_what_it_promises(folder):
    config = toy.config(folder)
    train(config)
    run = config.folder
    names = {path.name for path in run.iterdir()}
    assert names >= {
        "config.yaml", "model.yaml", "tokenizer.model", "model.safetensors", "checkpoints", "metrics.jsonl",
        "results.json", "scored", "provenance.json", "tensorboard", "train.log",
    }  # fmt: skip
    assert read_config(run) == config
    results = json.loads((run / "results.json").read_text())
    assert {"bleu", "bleu_signature", "chrf", "chrf_signature", "ter", "ter_signature"} <= results.keys()
    assert (run / "scored/test.source").read_text() == (folder / "test.xx").read_text()
    assert (run / "scored/test.reference").read_text() == (folder / "test.yy").read_text()
    assert (
        Translator.load(run, device="cpu").translate((folder / "test.xx").read_text().splitlines())
        == (run / "scored/test.hypothesis").read_text().splitlines()
    )


def test_tensorboard_reads_back_what_metrics_jsonl_says(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    config = toy.config(folder)
    train(config)
    board = EventAccumulator(str(config.folder / "tensorboard"))
    board.Reload()
    tags = board.Tags()
    for split, name in (
        ("train", "loss"), ("train", "learning_rate"), ("train", "gradient_norm"), ("train", "padding_share"),
        ("valid", "loss"), ("valid", "bleu"), ("valid", "chrf"),
    ):  # fmt: skip
        lines = [line for line in _metrics(config.folder) if line["split"] == split]
        points = board.Scalars(f"{split}/{name}")
        assert [point.step for point in points] == [line["step"] for line in lines]
        assert [point.value for point in points] == pytest.approx([line[name] for line in lines], rel=1e-5)
    assert tags["images"] == ["cross-attention/layer_0"]
    assert any("samples" in tag for tag in tags["tensors"])
    assert "train/target_tokens_per_second" in tags["scalars"]


def test_a_refused_run_takes_no_file_of_the_user_with_it(folder):
    config = toy.config(folder, tokenizer={"vocabulary_size": 100_000})
    for mine in (["notes.txt"], []):
        config.folder.mkdir(parents=True)
        for name in mine:
            (config.folder / name).write_text("mine")
        with pytest.raises(InputError, match="more than the training text supports"):
            train(config)
        assert config.folder.exists() == bool(mine)
        if mine:
            assert (config.folder / "notes.txt").read_text() == "mine"
            shutil.rmtree(config.folder)


def test_a_signal_ends_a_validation_between_two_batches_unless_workers_have_to_agree(folder):
    config = toy.config(folder)
    config.folder.mkdir(parents=True)
    training = trainer_module.Trainer(config, toy.prepared(config), Workers(torch.device("cpu")), None)
    training.begin()
    with training.monitor() as monitor:
        training._interrupt_between_batches(monitor)  # no signal has come
        training.stop.signal_number = signal.SIGTERM
        training.workers.size = 2
        training._interrupt_between_batches(monitor)
        training.workers.size = 1
        with pytest.raises(Interrupted, match="stopped at update 0, state saved in"):
            training._interrupt_between_batches(monitor)
    assert newest_checkpoint(config.folder).progress.update == 0


def test_what_is_recorded_of_an_interval_is_of_its_batches(folder):
    config = toy.config(folder, training={"accumulate": 2, "max_updates": 10, "log_every": 5})
    train(config)
    data = toy.prepared(config)
    training = trainer_module.Trainer(config, data, ALONE, None)
    with contextlib.closing(feed(training.batches, 0, 0, 2, ALONE)) as updates:
        taken = [next(updates) for _ in range(10)]
    recorded = [line for line in _metrics(config.folder) if line["split"] == "train"]
    for number, line in enumerate(recorded, 1):
        so_far, interval = taken[: 5 * number], taken[5 * (number - 1) : 5 * number]
        padded = sum(one.padded_tokens for one in interval)
        assert line["padding_share"] == pytest.approx(1 - sum(one.target_tokens for one in interval) / padded)
        assert 0 < line["padding_share"] < 0.5
        assert line["source_tokens"] == sum(one.source_tokens for one in so_far)
        assert line["target_tokens"] == sum(one.target_tokens for one in so_far)
        assert (line["step"], line["epoch"], line["bad_updates"]) == (5 * number, so_far[-1].epoch, 0)
    assert len(recorded) == 2
