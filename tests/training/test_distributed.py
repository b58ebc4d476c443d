"""Two real workers under torchrun train what one would."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

from mt.data.batching import no_pairs
from mt.training.checkpoint import checkpoint_folders
from mt.training.distributed import Workers
from mt.training.objective import smoothed_cross_entropy
from tests import toy

NOT_THE_SAME = {"split", "seconds", "target_tokens_per_second", "padding_share", "bleu", "chrf", "ter"}
"""Of metrics.jsonl: what is timed, what padding a share needs, and scores, where a rounding may turn a word."""
PROJECT = Path(__file__).parents[2]
MODELS = {
    "transformer": ["model.feed_forward=64", "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1"],
    "rnn": ["model=rnn_attention", "model.hidden=48", "model.encoder_layers=1"],
}


@pytest.fixture
def folder(tmp_path):
    toy.write_corpus(tmp_path, "reverse", train=200)
    return tmp_path


def _words(architecture, *more):
    return [
        "data=files", "data.source_language=xx", "data.target_language=yy",
        "data.train=[train.xx,train.yy]", "data.valid=[valid.xx,valid.yy]", "data.test=[test.xx,test.yy]",
        *MODELS[architecture], "model.width=32", "model.dropout=0", "tokenizer.vocabulary_size=320",
        "training.max_updates=30", "training.validate_every=10", "training.log_every=5",
        "training.schedule.warmup=5", "training.precision=fp32", "training.optimizer.kind=adamw",
        # Adam makes whole steps of rounding errors where a gradient is next to nothing.
        "training.optimizer.epsilon=1e-4", *more,
    ]  # fmt: skip


def _start(folder, workers, words, *torchrun):
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(PROJECT)}
    launcher = [sys.executable, str(PROJECT / "train.py")]
    if workers > 1:
        launch = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={workers}", "--standalone"]
        launcher = [*launch, *torchrun, str(PROJECT / "train.py")]
    return subprocess.Popen(
        [*launcher, *words], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _run(folder, workers, words, *torchrun):
    process = _start(folder, workers, words, *torchrun)
    _, said = process.communicate(timeout=300)
    return process.returncode, said.decode()


def _metrics(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def _assert_alike(one, two):
    first, second = (load_file(run / "model.safetensors") for run in (one, two))
    for name in first:
        assert torch.allclose(first[name], second[name], atol=1e-4), name
    for ours, theirs in zip(_metrics(one), _metrics(two), strict=True):
        assert (ours["step"], ours["split"]) == (theirs["step"], theirs["split"])
        for name in ours.keys() - NOT_THE_SAME:
            assert ours[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-4), name


# 10 tokens a batch: often one pair alone, so that the second worker has none.
@pytest.mark.parametrize(
    ("architecture", "settings"),
    [
        ("transformer", ["training.batch_tokens=60", "training.accumulate=2", "tokenizer.sampling=0.2"]),
        ("rnn", ["training.batch_tokens=10"]),
    ],
)
def test_two_workers_learn_what_one_learns(folder, architecture, settings):
    words = _words(architecture, *settings)
    for name, workers, how in (("one", 1, []), ("two", 2, []), ("sharded", 2, ["training.shard=true"])):
        status, said = _run(folder, workers, [*words, f"name={name}", *how])
        assert status == 0, said
        assert said.count("test BLEU") == 1 and said.count("pairs read") == 3
    _assert_alike(folder / "runs/one", folder / "runs/two")
    _assert_alike(folder / "runs/one", folder / "runs/sharded")
    assert json.loads((folder / "runs/two/provenance.json").read_text())["machine"]["workers"] == 2


def _workers_of(launcher):
    return [child for child in psutil.Process(launcher.pid).children() if "train.py" in " ".join(child.cmdline())]


def _wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def test_a_signal_to_one_worker_stops_all_and_any_number_goes_on(folder):
    words = _words("transformer", "training.batch_tokens=60", "training.max_updates=3000", "training.log_every=10")
    process = _start(folder, 2, [*words, "name=stopped"])
    _wait_for(lambda: (folder / "runs/stopped/checkpoints/step_10").exists())
    _workers_of(process)[1].send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=120)
    assert process.returncode != 0
    assert said.decode().count("stopped at update") == 1, said.decode()
    assert "Traceback" not in said.decode().partition("stopped at update")[0]
    update = max(checkpoint_folders(folder / "runs/stopped"))
    assert 10 <= update < 3000
    going_on = _start(folder, 2, [*words, "name=stopped", "training.shard=true"])
    _wait_for(lambda: (folder / f"runs/stopped/checkpoints/step_{update // 10 * 10 + 10}").exists())
    _workers_of(going_on)[0].send_signal(signal.SIGINT)
    _, said = going_on.communicate(timeout=120)
    assert f"going on from update {update}" in said.decode() and "stopped at update" in said.decode(), said.decode()
    update = max(checkpoint_folders(folder / "runs/stopped"))
    going_on = _start(folder, 1, [*words, "name=stopped"])
    _wait_for(lambda: (folder / f"runs/stopped/checkpoints/step_{update // 10 * 10 + 10}").exists())
    going_on.send_signal(signal.SIGTERM)
    _, said = going_on.communicate(timeout=120)
    assert going_on.returncode == 143 and f"going on from update {update}" in said.decode()


def test_killed_workers_are_brought_back_by_torchrun_and_the_run_ends_as_if_nothing_had_been(folder):
    words = _words("transformer", "training.batch_tokens=60", "training.max_updates=100")
    status, said = _run(folder, 1, [*words, "name=whole"])
    assert status == 0, said
    process = _start(folder, 2, [*words, "name=killed", "training.shard=true"], "--max-restarts=2")
    for rank, update in ((0, 10), (1, 40)):
        checkpoint = folder / f"runs/killed/checkpoints/step_{update}"
        _wait_for(checkpoint.exists)
        _workers_of(process)[rank].kill()
    _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said.decode()
    assert said.decode().count("going on from update") == 2
    _assert_alike(folder / "runs/whole", folder / "runs/killed")


def test_a_mistake_is_told_once(folder):
    status, said = _run(folder, 2, _words("transformer", "training.max_updats=3"))
    assert status != 0 and said.count("nearest: training.max_updates") == 1
    status, said = _run(folder, 2, [*_words("transformer"), "data.train=[gone.xx,train.yy]"])
    assert status != 0 and said.count("gone.xx: no such file") == 1


def test_an_empty_share_has_no_loss_and_gradients_of_zero():
    batch = no_pairs()
    features, weight = torch.randn(0, 4, requires_grad=True), torch.randn(9, 4, requires_grad=True)
    loss = smoothed_cross_entropy(features, weight, torch.empty(0, dtype=torch.long), 0.1)
    loss.backward()
    assert loss == 0 and not weight.grad.any() and batch.target_tokens == 0


def test_shares_are_put_together_in_their_order():
    alone = Workers(torch.device("cpu"))
    assert alone.gather(alone.share("abc")) == ["a", "b", "c"]
    assert alone.agree(None) is None and alone.agree(15) == 15
