"""Workers as processes: training, resumption, signals, deaths and connection errors."""

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from subprocess import PIPE

import psutil
import pytest
import torch
from safetensors.torch import load_file

from mt.config import TrainingConfig
from mt.core.errors import RunError, WorkerDiedError
from mt.data.batching.batch import collate
from mt.distributed.launch import local_workers
from mt.distributed.replication import shard
from mt.distributed.workers import RankInfo, Workers, interleave, worker_group
from mt.storage.run_folder import checkpoint_folders
from mt.training.command import train
from mt.training.objective import Objective
from mt.training.provenance import read_provenance
from tests import toy
from tests.processes import (
    Together,
    finish,
    local_workers_of,
    start,
    start_waiting_main_process,
    torchrun,
    wait_for,
    wait_until_ended,
    workers_of,
)
from tests.training.runs import has_weights_of, read_metrics

NOT_THE_SAME = {"split", "padding_share", "bleu", "chrf", "ter"}
"""Keys of metrics.jsonl that depend on the number of workers or, by the rounding of a single word, may do so."""


@pytest.fixture
def folder(tmp_path):
    toy.write_corpus(tmp_path, "reverse", train=200)
    return tmp_path


def _config(folder, name, architecture="transformer", **training):
    settings = {
        "max_updates": 20,
        "batch_tokens": 60,
        # Adam makes whole steps of rounding errors where a gradient is next to nothing.
        "optimizer": {"kind": "adamw", "epsilon": 1e-4},
    }
    sampling = {"sampling": 0.2 if architecture == "transformer" else 0.0}
    text = {"augmentation": toy.CHANGED}
    return toy.config(
        folder, name, architecture, model={"dropout": 0.0}, text=text, tokenizer=sampling, training=settings | training
    )


def _start(config, *more):
    return start("train.py", *toy.words(config), *more, stdout=PIPE, stderr=PIPE)


def _run(config, workers):
    return finish(Together(toy.words(config), workers))


def _assert_alike(run, other_run):
    lines = [(folder / "scored/test.hypothesis").read_text().splitlines() for folder in (run, other_run)]
    same = sum(ours == theirs for ours, theirs in zip(*lines, strict=True))
    assert same > 0.9 * len(lines[0])  # a rounding may turn a word
    first, second = (load_file(folder / "model.safetensors") for folder in (run, other_run))
    for name in first:
        assert torch.allclose(first[name], second[name], atol=1e-4), name
    for ours, theirs in zip(read_metrics(run), read_metrics(other_run), strict=True):
        assert (ours["step"], ours["split"]) == (theirs["step"], theirs["split"])
        for name in ours.keys() - NOT_THE_SAME:
            assert ours[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-4), name


def _wait_for_checkpoint(config, update):
    wait_for(lambda: max(checkpoint_folders(config.folder), default=0) >= update)


@pytest.mark.parametrize(
    ("architecture", "settings"),
    [
        ("transformer", {"accumulate": 2, "initial_embeddings": "co_occurrence"}),
        pytest.param("transformer", {"freeze": ["encoder.layers", "embeddings"]}, marks=pytest.mark.slow),
        # Often one pair alone, so that the second worker has none; and two passes a batch.
        pytest.param("rnn", {"batch_tokens": 10, "objective": "simcut", "cutoff": 0.0}, marks=pytest.mark.slow),
    ],
)
def test_two_workers_train_same_model_as_one(folder, architecture, settings):
    one, two, sharded = (
        _config(folder, name, architecture, **settings, shard=name == "sharded") for name in ("one", "two", "sharded")
    )
    train(one)
    for config in (two, sharded):
        status, output = _run(config, 2)
        assert status == 0, output
        assert output.count("test BLEU") == 1 and output.count("pairs read") == 3
    _assert_alike(one.folder, two.folder)
    _assert_alike(one.folder, sharded.folder)
    assert read_provenance(two.folder)["starts"][0]["machine"]["workers"] == 2


@pytest.mark.slow
def test_signal_to_worker_stops_all_and_any_number_resumes(folder):
    sharded, single = (_config(folder, "stopped", max_updates=60, shard=shard) for shard in (True, False))
    process = torchrun(toy.words(sharded), 2)
    _wait_for_checkpoint(sharded, 10)
    workers_of(process)[-1].send_signal(signal.SIGTERM)
    status, output = finish(process)
    assert status != 0 and output.count("stopped at update") == 1, output
    assert "Traceback" not in output.partition("stopped at update")[0]
    status, output = _run(single, 1)
    assert status == 0 and "resuming after update" in output, output


@pytest.mark.parametrize(
    ("workers", "settings"),
    [
        # Each moves its share of the matrices, and a checkpoint holds the momentum of all.
        (2, {"optimizer": {"kind": "muon"}}),
        # From three workers on, the order in which their gradients are added decides about the last bit.
        pytest.param(3, {}, marks=pytest.mark.slow),
    ],
)
def test_several_workers_resume_bitwise(folder, workers, settings):
    whole, stopped = (_config(folder, name, max_updates=50, **settings) for name in ("whole", "stopped"))
    assert _run(whole, workers)[0] == 0
    together = Together(toy.words(stopped), workers)
    _wait_for_checkpoint(stopped, 10)
    together.workers[1].terminate()
    assert "stopped at update" in finish(together)[1]
    status, output = _run(stopped, workers)
    assert status == 0 and "resuming after update" in output, output
    assert has_weights_of(whole, stopped)


@pytest.mark.slow
def test_local_workers_end_together_and_resume(folder):
    one, two = (_config(folder, name, max_updates=70, workers=workers) for name, workers in (("one", 1), ("two", 2)))
    train(one)
    deaths = [
        (lambda main, other: other.send_signal(signal.SIGTERM), 143, "stopped at update"),
        (lambda main, other: other.kill(), 1, "another worker has died"),
        (lambda main, other: main.kill(), -signal.SIGKILL, ""),
    ]
    for number, (death, expected, message) in enumerate(deaths, 1):
        main = _start(two)
        _wait_for_checkpoint(two, 10 * number)
        (other,) = local_workers_of(main)
        addresses = [*_listening_addresses(main.pid), *_listening_addresses(other.pid)]
        assert addresses and all(address in ("127.0.0.1", "::1", "::ffff:127.0.0.1") for address in addresses)
        death(main, other)
        status, output = finish(main)
        assert status == expected and message in output and "Traceback" not in output, output
        wait_until_ended(other.pid)
    status, output = finish(_start(two))
    assert status == 0 and "on 2 workers" in output, output
    assert output.count("test BLEU") == 1 and output.count("pairs read") == 3
    _assert_alike(one.folder, two.folder)


def _listening_addresses(pid):
    """Return the addresses at which a process listens."""
    connections = psutil.Process(pid).net_connections("inet")
    return [connection.laddr.ip for connection in connections if connection.status == psutil.CONN_LISTEN]


def test_worker_that_dies_at_start_is_reported(folder):
    main = _start(_config(folder, "died", workers=2))
    wait_for(lambda: local_workers_of(main))
    local_workers_of(main)[0].kill()
    status, output = finish(main, 60)
    assert status == 1 and "worker 1 ended before it began" in output and "Traceback" not in output, output


def test_blocked_main_process_ends_after_death_of_worker():
    status, output = finish(start_waiting_main_process("die"), 60)
    assert status == 1 and "worker 1 has died (exit code 7)" in output, output


@pytest.mark.parametrize("seconds", [0, pytest.param(8, marks=pytest.mark.slow)])  # while it starts, and at work
def test_worker_ends_when_main_process_is_killed(seconds):
    main = start_waiting_main_process("sleep")
    wait_for(lambda: local_workers_of(main))
    (worker,) = local_workers_of(main)
    time.sleep(seconds)
    main.kill()
    main.wait()
    wait_until_ended(worker.pid)


def test_workers_setting_is_refused_with_torchrun(folder):
    status, output = _run(_config(folder, "both", workers=3), 2)
    assert status != 0 and output.count("torchrun sets the number of workers") == 1


@pytest.mark.slow
def test_torchrun_restarts_killed_worker(folder):
    whole, killed = _config(folder, "whole", max_updates=50), _config(folder, "killed", max_updates=50, shard=True)
    train(whole)
    process = torchrun(toy.words(killed), 2, "--max-restarts=1")
    _wait_for_checkpoint(killed, 10)
    workers_of(process)[0].kill()
    status, output = finish(process)
    assert status == 0, output
    assert output.count("resuming after update") == 1
    _assert_alike(whole.folder, killed.folder)


CANNOT_REACH = "worker 1 cannot reach the others; check the network"
EXPLAINED = "[enforce fail at /gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: eth9"
DUPLICATE = "NCCL error, ncclInvalidUsage: Duplicate GPU detected"
IN_USE = "port: 29500, name: EADDRINUSE, message: address already in use"


# fmt: off
@pytest.mark.parametrize(("error", "kind", "start", "end"), [
    *((RuntimeError(words), WorkerDiedError, "worker 1: another", words) for words in (
        "[../pair.cc:534] Connection closed by peer [127.0.0.1]:4242",
        "Read error [127.0.0.1]:4242: Connection reset by peer",
        "writev [127.0.0.1]:4242: Broken pipe",
        "NCCL error: ncclRemoteError: A call failed possibly due to a network error or a remote process exiting",
    )),
    (RuntimeError(EXPLAINED), RunError, CANNOT_REACH, ": ifa != nullptr. Unable to find address for: eth9"),
    (torch.distributed.DistBackendError(f"{DUPLICATE}\nException raised from here: frame #0"), RunError, CANNOT_REACH,
     DUPLICATE),
    (torch.distributed.DistNetworkError(IN_USE), RunError, CANNOT_REACH, IN_USE),
    *((bug, type(bug), str(bug), "") for bug in (
        RuntimeError("shapes cannot be multiplied"),
        RuntimeError("disconnected graph: NCCL and gloo are not to blame, nor is a socket"),
        ValueError("gloo"),
    )),
])  # fmt: on
def test_connection_errors_are_translated(error, kind, start, end, monkeypatch):
    monkeypatch.setattr("mt.distributed.workers.Workers", lambda device, info: None)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    info = RankInfo(1, 2, 1, 2, torch.distributed.HashStore())
    with pytest.raises(kind) as caught, worker_group(torch.device("cpu"), info):
        raise error
    assert type(caught.value) is kind
    assert str(caught.value).startswith(start) and str(caught.value).endswith(end)


def _silent(info):
    with worker_group(torch.device("cpu"), info):
        time.sleep(120)


def test_silent_worker_is_reported_after_step_timeout(monkeypatch):
    monkeypatch.setattr("mt.distributed.workers.STEP_TIMEOUT", timedelta(seconds=5))
    with (
        pytest.raises(WorkerDiedError, match="worker 0: another"),
        ThreadPoolExecutor() as pool,
        local_workers(2, _silent) as info,
        worker_group(torch.device("cpu"), info) as workers,
    ):
        try:
            waits = [
                pool.submit(workers.sum, torch.ones(1)),
                pool.submit(workers.max_over_workers, 1),
                pool.submit(workers.gather_objects, 1),
            ]
            for wait in waits:
                assert "Timed out waiting" in str(wait.exception(60))
            raise wait.exception()
        finally:
            torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_config_error_is_reported_once(folder):
    words = toy.words(_config(folder, "wrong"))
    status, output = finish(torchrun([*words, "data.train=[gone.xx,train.yy]"], 2))
    assert status != 0 and output.count("gone.xx: no such file") == 1
    status, output = finish(_start(_config(folder, "here", workers=2), "tokenizer.vocabulary_size=100000"))
    assert status == 2 and output.count("is more than the training text supports") == 1 and "leaked" not in output


@pytest.mark.parametrize("size", range(1, 6))
def test_interleave_reverses_share(size):
    workers = [Workers(torch.device("cpu")) for _ in range(size)]
    for rank, worker in enumerate(workers):
        worker.rank, worker.size = rank, size
    assert interleave([worker.share("abcd") for worker in workers]) == list("abcd")


def _sharded_lstm(workers):
    model = toy.model("rnn")
    return shard(Objective(model, TrainingConfig()).train(), model.blocks, workers)


def _learn_from_a_pair(replica):
    replica(collate([[5, 6]], [[7]])).backward()


def _as_worker(info):
    torch.set_num_threads(1)  # as in conftest.py
    with worker_group(torch.device("cpu"), info) as workers:
        _learn_from_a_pair(_sharded_lstm(workers))


@pytest.mark.slow
def test_sharded_lstm_does_not_flatten_weights(monkeypatch):
    with local_workers(2, _as_worker) as info, worker_group(torch.device("cpu"), info) as workers:
        replica = _sharded_lstm(workers)
        monkeypatch.setattr(torch.nn.LSTM, "flatten_parameters", lambda lstm: pytest.fail("moved"))
        _learn_from_a_pair(replica)
