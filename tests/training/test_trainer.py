"""Tests of whole runs on a toy language: learning, gradients, early stopping and records."""

import contextlib
import dataclasses
import re
from itertools import pairwise

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode

from mt.core.errors import InputError, RunError
from mt.data.batching.batch import collate
from mt.distributed.workers import Workers
from mt.models import attention
from mt.storage.run_folder import WEIGHTS, checkpoint_folders
from mt.storage.weights import read_tensors
from mt.training import final_outputs
from mt.training import trainer as trainer_module
from mt.training.checkpoint import Progress, newest_checkpoint
from mt.training.command import train
from mt.training.objective import Objective
from mt.training.updater import UpdateBatches, Updater, feed_process_count, prefetch_updates
from tests import toy
from tests.clock import Clock
from tests.training.runs import (
    ALONE,
    make_trainer,
    read_lines,
    read_metrics,
    read_results,
    read_validations,
    train_until,
)


@pytest.mark.parametrize(
    ("architecture", "model"),
    [
        ("transformer", {"feed_forward": 128, "heads": 4}),
        pytest.param("rnn", {"hidden": 96, "decoder_layers": 1}, marks=pytest.mark.slow),
    ],
)
def test_model_learns_to_reverse(tmp_path, architecture, model):
    """Which needs attention to the right word at each place; copying is easier."""
    toy.write_corpus(tmp_path, "reverse", train=2000, longest=5)
    config = toy.config(
        tmp_path,
        architecture=architecture,
        model=model | {"width": 64, "dropout": 0.0},
        training={
            "max_updates": 250,
            "batch_tokens": 512,
            "validate_every": 250,
            "optimizer": {"kind": "auto", "learning_rate": 1e-2, "embedding_factor": 0.5},
            "schedule": {"kind": "linear", "warmup": 25},
        },
    )
    train(config)
    results = read_results(config)
    assert results["bleu"] > 85


def _update_of(batches):
    tokens = sum(batch.target_tokens for batch in batches)
    return UpdateBatches(batches, 0, 1, tokens, tokens, tokens)


def test_recorded_times_and_speeds(folder, monkeypatch):
    """Updates take two seconds each, validations five, which do not count as training, and translating the test set
    eight. The run is stopped and resumed."""
    clock = Clock()
    update, validate, translate = (
        Updater.train_step, trainer_module.Trainer._validate, final_outputs.translate_together
    )  # fmt: skip

    def taking(seconds, work):
        def timed(*arguments):
            clock.seconds += seconds
            return work(*arguments)

        return timed

    monkeypatch.setattr(trainer_module, "time", clock)
    monkeypatch.setattr(final_outputs, "time", clock)
    monkeypatch.setattr(Updater, "train_step", taking(2, update))
    monkeypatch.setattr(trainer_module.Trainer, "_validate", taking(5, validate))
    monkeypatch.setattr(final_outputs, "translate_together", taking(8, translate))
    config = toy.config(folder, training={"log_every": 4, "validate_every": 8, "max_updates": 18})
    train_until(config, 6)
    train(config)
    lines = read_lines(config.folder)
    trained = [line for line in lines if line["split"] == "train"]
    assert [line["step"] for line in trained] == [4, 8, 12, 16, 18]
    assert [line["seconds"] for line in trained] == [8, 16, 24, 32, 36]
    before = 0
    for line, seconds in zip(trained, [8, 8, 8, 8, 4], strict=True):
        assert line["target_tokens_per_second"] == pytest.approx((line["target_tokens"] - before) / seconds)
        before = line["target_tokens"]
    assert [line["seconds"] for line in lines if line["split"] == "valid"] == [16, 32, 36]
    results = read_results(config)
    assert results["training_minutes"] == pytest.approx(36 / 60)
    assert results["decoding_sentences_per_second"] == pytest.approx(40 / 8)


@pytest.mark.parametrize("architecture", ["transformer", pytest.param("rnn", marks=pytest.mark.slow)])
def test_bf16_loss_is_close_to_fp32(folder, architecture):
    losses = {}
    for precision in ("fp32", "bf16"):
        config = toy.config(folder, precision, architecture, training={"precision": precision, "max_updates": 30})
        train(config)
        losses[precision] = [line["loss"] for line in read_validations(config.folder)][-1]
    assert losses["bf16"] == pytest.approx(losses["fp32"], rel=0.02)


@pytest.mark.parametrize("architecture", toy.MODELS)
def test_initial_embeddings_setting_changes_only_embeddings(folder, architecture):
    first = []
    for start in ("random", "co_occurrence"):
        config = toy.config(folder, start, architecture, training={"initial_embeddings": start})
        training = make_trainer(config)
        first.append(dict(training.model.named_parameters()))
    differing = {name for name in first[0] if not torch.equal(first[0][name], first[1][name])}
    assert differing and all("embedding" in name or "tokens" in name for name in differing)


def _moments_after(folder, architecture):
    """Return a function from the borders of batches to the optimizer's state after updates on them."""
    config = toy.config(folder, architecture=architecture, model={"dropout": 0.0}, training={"clip_norm": 0.0})
    data = toy.prepared(config)
    rows = data.train[:40]

    def moments_after(borders, updates=1):
        training = make_trainer(config, data=data)
        batches = [collate(rows["source_ids"][a:b], rows["target_ids"][a:b]) for a, b in pairwise(borders)]
        for _ in range(updates):
            training.updater.train_step(_update_of(batches))
        assert training.progress.target_tokens == updates * sum(batch.target_tokens for batch in batches)
        return training.updater.optimizer.state_tensors()

    return moments_after


@pytest.mark.parametrize("architecture", toy.MODELS)
def test_gradient_accumulation_equals_large_batch(folder, architecture):
    """An update on the same pairs in 1 batch, or in 4 of other sizes and lengths: equal gradients."""
    moments_after = _moments_after(folder, architecture)
    # Adam's first moment is a tenth of the gradient.
    whole, parts = moments_after([0, 40]), moments_after([0, 3, 20, 21, 40])
    assert sum(name.endswith("exp_avg") for name in whole) > 10
    for name in whole:
        assert torch.allclose(whole[name], parts[name], atol=1e-7), name


@pytest.mark.parametrize("architecture", toy.MODELS)
def test_out_of_memory_halves_batches(folder, monkeypatch, caplog, architecture):
    moments_after = _moments_after(folder, architecture)
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

    whole = moments_after([0, 9, 40], updates=2)
    most_pairs = 8
    parts = moments_after([0, 9, 40], updates=2)
    assert failed >= 4
    for name in whole:
        assert torch.allclose(whole[name], parts[name], atol=1e-7), name
    assert sum("out of memory" in record.message for record in caplog.records) == 1
    most_pairs = 0
    with pytest.raises((RuntimeError, MemoryError), match="memory"):
        moments_after([0, 9, 40], updates=2)


@pytest.mark.parametrize("save_every", [1, 5])
@pytest.mark.parametrize("architecture", toy.MODELS)
def test_non_finite_gradients_are_skipped_and_end_run(folder, architecture, save_every, monkeypatch, caplog):
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
    kept = r"checkpoint of update \d is kept. .*continue_from=\S+ with a lower training.optimizer.learning_rate$"
    with pytest.raises(RunError, match=f"3 updates in a row had no finite gradient. The {kept}"):
        train(config)
    assert re.findall(r"update (\d+): the gradient", caplog.text) == ["3", "8"]
    checkpoint = newest_checkpoint(config.folder)
    # Two once, and two of the last three were saved if each is.
    assert (checkpoint.progress.update, checkpoint.progress.bad_updates) == ((9, 4) if save_every == 1 else (5, 2))
    assert all(tensor.isfinite().all() for tensor in read_tensors(checkpoint.folder / WEIGHTS).values())
    logged = {line["step"]: line["loss"] for line in read_metrics(config.folder) if line["split"] == "train"}
    assert logged.keys() == {2, 6, 8}  # 3 and 4 were bad, 8 and those after it
    assert None not in logged.values()


WAITS = (
    "_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2", "repeat_interleave", "bincount",
)  # fmt: skip


class _NoWaiting(TorchDispatchMode):
    """Fails operations that make the CPU wait for a GPU, as far as a CPU shows them: values that control Python's flow,
    and shapes that depend on values. Copies to the CPU are not noticed."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function.name().removeprefix("aten::").split(".")[0]
        assert name not in WAITS, function
        if name in ("index", "index_put", "index_put_"):
            assert all(index is None or index.dtype != torch.bool for index in args[1]), function
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("objective", ["cross_entropy", "simcut", "r_drop"])
@pytest.mark.parametrize("architecture", toy.MODELS)
def test_train_step_never_waits_for_gpu(folder, architecture, objective, monkeypatch):
    def as_on_a_gpu(query, key, value, mask, dropout):
        causal = mask is not None and mask.shape[-2] > 1
        context = scaled_dot_product_attention(query, key, value, None if causal else mask, is_causal=causal)
        return context, None, None

    monkeypatch.setattr(attention, "scaled_dot_product_attention", as_on_a_gpu)
    training = {"objective": objective, "accumulate": 2, "optimizer": {"kind": "auto"}}
    config = toy.config(folder, architecture=architecture, model={"dropout": 0.1}, training=training)
    trainer = make_trainer(config)
    with contextlib.closing(prefetch_updates(trainer.batches, 0, 0, 2, ALONE)) as updates:
        for _ in range(3):
            ready = next(updates)
            with _NoWaiting():
                trainer.updater.train_step(ready)
            trainer.updater.finish_pending_step()  # else the next update would do so, as it should
    assert trainer.progress.interval_target_tokens > 0


@pytest.mark.parametrize(("precision", "rounds"), [("bf16", True), ("fp32", False)])
def test_tf32_of_recurrent_layers_by_precision(folder, monkeypatch, precision, rounds):
    seen = []
    real_update = Updater.train_step

    def update(self, ready):
        seen.append(torch.backends.cudnn.allow_tf32)
        return real_update(self, ready)

    monkeypatch.setattr(Updater, "train_step", update)
    train(toy.config(folder, training={"max_updates": 6, "validate_every": 6, "precision": precision}))
    assert seen == 6 * [rounds]
    assert not torch.backends.cudnn.allow_tf32


@pytest.mark.parametrize("scale", [2.0**16, 2.0, 1.0])
@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_fp16_overflow_is_skipped(folder, monkeypatch, kind, scale):
    """With the real GradScaler, on the CPU: the scale falls, the weights stay, and the next update moves them."""
    config = toy.config(folder, training={"optimizer": {"kind": kind}})
    training = make_trainer(config)
    training.updater.scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    updates = prefetch_updates(training.batches, 0, 0, 1, ALONE)
    training.updater.train_step(next(updates))
    before = [parameter.detach().clone() for parameter in training.model.parameters()]

    real_forward = Objective.forward
    monkeypatch.setattr(Objective, "forward", lambda self, batch: real_forward(self, batch) * float("inf"))
    training.updater.train_step(next(updates))
    training.updater.finish_pending_step()
    assert training.updater.scaler.get_scale() == scale / 2
    assert training.progress.bad_updates == (scale == 1)  # a smaller scale would not help
    assert all(torch.equal(one, other) for one, other in zip(before, training.model.parameters(), strict=True))

    monkeypatch.setattr(Objective, "forward", real_forward)
    training.updater.train_step(next(updates))
    assert not all(torch.equal(one, other) for one, other in zip(before, training.model.parameters(), strict=True))
    updates.close()


@pytest.mark.parametrize(("metric", "sign"), [("chrf", 1), ("ter", -1)])
def test_patience_stops_at_best_weights(folder, metric, sign):
    optimizer = {"kind": "adamw", "learning_rate": 0.03}
    training = {"max_updates": 60, "validate_every": 2, "patience": 3, "metric": metric, "optimizer": optimizer}
    config = toy.config(folder, training=training)
    train(config)
    results = read_results(config)
    validations = read_validations(config.folder)
    best = max(validations, key=lambda line: (sign * line[metric], line["chrf"], -line["loss"]))
    assert results["best_valid_score"] == best[metric] and results["best_update"] == best["step"]
    assert len({line[metric] for line in validations}) > 2
    assert results["stopped_early"] and len(validations) - 1 - validations.index(best) == 3
    train(config)
    assert read_results(config) == results  # finished, although max_updates is far
    for change, message in (
        ({"metric": "bleu"}, rf"training\.metric: {metric} in the run, now bleu"),
        ({"max_updates": 70}, r"stopped early by training\.patience=3 with another config"),
    ):
        with pytest.raises(InputError, match=message):
            train(toy.config(folder, training=training | change))


def test_average_of_fewer_checkpoints_warns(folder, caplog):
    """The run stopped before there were so many."""
    optimizer = {"kind": "adamw", "learning_rate": 1e-12}
    training = {"weights": "average", "average": 9, "keep_last": 9, "validate_every": 2, "patience": 2}
    config = toy.config(folder, training=training | {"optimizer": optimizer, "metric": "loss"})
    train(config)
    saved = len(checkpoint_folders(config.folder))
    assert saved < 9 and read_results(config)["averaged_checkpoints"] == saved
    assert f"the mean of its {saved} checkpoints" in caplog.text


def test_sampling_refuses_tokenizer_without_merges(folder):
    base = toy.config(folder, "base", tokenizer={"kind": "char"})
    train(base)
    tuned = toy.config(folder, "tuned", tokenizer={"sampling": 0.1}, training={"init_from": str(base.folder)})
    with pytest.raises(InputError, match=r"sampling=0\.1 needs a tokenizer of kind=bpe, but that of .* has kind=char"):
        train(tuned)
    assert not tuned.folder.exists()


@pytest.mark.parametrize("scores", [(-float("nan"), -float("nan"), -9.0, -float("nan"), -8.0, -8.0), 6 * (0.0,)])
def test_record_validation_ranks_nan_last(scores):
    """Also as the first one, with which all later ones are compared, and where BLEU is the same each time."""
    progress = Progress()
    assert not any(dataclasses.astuple(progress)), "a run begins with nothing done, and nothing due"
    best = []
    for score, loss in zip(scores, (float("nan"), float("nan"), 9.0, float("nan"), 8.0, 8.0), strict=True):
        progress.update += 1
        best.append(progress.record_validation(score, 0.0, loss))
    assert best == [True, False, True, False, True, False]
    assert (progress.best_update, progress.best_loss) == (5, 8.0)


def test_record_validation_breaks_ties_by_chrf_then_loss():
    progress = Progress()
    validations = (3.0, 2.4), (7.0, 2.5), (7.0, 1.5), (6.0, 0.8), (7.0, 1.5)
    best = [progress.record_validation(0.0, chrf, loss) for chrf, loss in validations]
    assert best == [True, True, True, False, False] and progress.validations_without_gain == 2
    assert progress.record_validation(1.0, 5.0, 3.0) and progress.validations_without_gain == 0
    recorded_by_1_0 = Progress(best_score=0.0, best_loss=2.0)
    assert not recorded_by_1_0.record_validation(0.0, 9.0, 2.1)


def test_patience_uses_chrf_when_bleu_is_zero(tmp_path, caplog):
    toy.write_corpus(tmp_path, "copy", train=500, longest=3)
    config = toy.config(tmp_path, training={"max_updates": 40, "validate_every": 4, "patience": 2})
    train(config)
    validations = read_validations(config.folder)
    assert {line["bleu"] for line in validations} == {0.0}
    best = max(validations, key=lambda line: (line["chrf"], -line["loss"]))
    assert read_results(config)["best_update"] == best["step"] > 4
    assert caplog.text.count("BLEU stays 0 if no line has four words: set training.metric=chrf") == 1


def test_recorded_intervals_count_their_batches(folder):
    config = toy.config(folder, training={"accumulate": 2, "max_updates": 10, "log_every": 5})
    train(config)
    training = make_trainer(config)
    with contextlib.closing(prefetch_updates(training.batches, 0, 0, 2, ALONE)) as updates:
        taken = [next(updates) for _ in range(10)]
    recorded = [line for line in read_metrics(config.folder) if line["split"] == "train"]
    for number, line in enumerate(recorded, 1):
        so_far, interval = taken[: 5 * number], taken[5 * (number - 1) : 5 * number]
        padded = sum(one.padded_tokens for one in interval)
        assert line["padding_share"] == pytest.approx(1 - sum(one.target_tokens for one in interval) / padded)
        assert 0 < line["padding_share"] < 0.5
        assert line["source_tokens"] == sum(one.source_tokens for one in so_far)
        assert line["target_tokens"] == sum(one.target_tokens for one in so_far)
        assert (line["step"], line["epoch"], line["bad_updates"]) == (5 * number, so_far[-1].epoch, 0)
    assert len(recorded) == 2


@pytest.mark.parametrize(
    ("setting", "device", "cores", "local_size", "sampling", "expected"),
    [
        ("auto", "cpu", 16, 1, 0.1, 0),
        ("auto", "cuda", 1, 1, 0.1, 1),
        ("auto", "cuda", 2, 1, 0.1, 2),
        ("auto", "cuda", 4, 1, 0.1, 3),
        ("auto", "cuda", 64, 1, 0.1, 8),
        ("auto", "cuda", 16, 4, 0.1, 3),
        ("auto", "cuda", 2, 4, 0.1, 1),
        ("auto", "cuda", 16, 1, 0.0, 0),
        (3, "cpu", 2, 1, 0.1, 3),
        (0, "cuda", 16, 1, 0.1, 0),
        (3, "cuda", 16, 1, 0.0, 0),
    ],
)
def test_feed_process_count(tmp_path, monkeypatch, setting, device, cores, local_size, sampling, expected):
    monkeypatch.setattr("mt.training.updater.available_cores", lambda: cores)
    config = toy.config(tmp_path, training={"feed_processes": setting}, tokenizer={"sampling": sampling})
    workers = Workers(torch.device(device))
    workers.local_size = local_size
    assert feed_process_count(config, workers) == expected


def test_feed_process_count_with_augmentation(tmp_path):
    config = toy.config(tmp_path, training={"feed_processes": 2}, text={"augmentation": toy.CHANGED})
    assert feed_process_count(config, Workers(torch.device("cpu"))) == 2
