"""Workers on several machines notice that one of them is gone, and do not mistake an end for it."""

import socket
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from subprocess import PIPE, Popen

import pytest
from torch.distributed import HashStore

from mt.distributed import lifeline as lifeline_module
from mt.distributed.lifeline import lifeline
from mt.distributed.process_group import RankInfo
from tests.faults import network
from tests.processes import ENVIRONMENT, PROJECT, wait_for

WAIT = """
import sys, time
from torch.distributed import TCPStore
from mt.distributed import lifeline
from mt.distributed.process_group import RankInfo
lifeline.SILENCE_SECONDS, lifeline.PROBES = 4, 3
rank, address = int(sys.argv[1]), sys.argv[2]
store = TCPStore(address, 29500, is_master=rank == 0, wait_for_workers=False)
with lifeline.lifeline(RankInfo(rank, 2, 0, 1, store)):
    print("connected", flush=True)
    time.sleep(100)
"""
"""A worker that computes for so long that it asks nothing of the other."""


@pytest.fixture
def infos(monkeypatch):
    """Of two workers, on two machines as far as they know."""
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    store = HashStore()
    return [RankInfo(rank, 2, 0, 1, store) for rank in range(2)]


@pytest.fixture
def ended(monkeypatch):
    """Notes that the process was to end, and goes on."""
    found: list[int] = []
    monkeypatch.setattr(lifeline_module.os, "_exit", found.append)
    return found


def _together(infos, work):
    """Raises what any of them raises."""
    with ThreadPoolExecutor(len(infos)) as pool:
        for worker in [pool.submit(work, info) for info in infos]:
            worker.result(60)


def test_a_worker_that_is_done_first_leaves_the_other_alone(infos, ended, monkeypatch, caplog):
    monkeypatch.setattr(lifeline_module, "GRACE_SECONDS", 0.1)
    left = threading.Event()

    def work(info):
        with lifeline(info):
            if info.rank == 0:
                assert left.wait(30)
                time.sleep(0.5)
        left.set()

    _together(infos, work)
    assert not ended and not caplog.text


@pytest.mark.parametrize("dead", [0, 1])
def test_a_worker_that_ends_without_a_goodbye_takes_the_other_with_it(infos, ended, monkeypatch, caplog, dead):
    """Which may be waiting for a third one, of which nobody hears anything."""
    monkeypatch.setattr(lifeline_module, "GRACE_SECONDS", 0.1)

    def work(info):
        with suppress(RuntimeError), lifeline(info):
            if info.rank == dead:
                raise RuntimeError("of gloo")
            wait_for(lambda: ended, 30)

    _together(infos, work)
    assert ended == [1] and f"worker {1 - dead}: worker {dead} has died. Start the same command again" in caplog.text


def test_a_machine_that_knows_nothing_of_the_connection_any_more_is_lost(infos, ended, monkeypatch, caplog):
    """It has had a power cut and is back: it resets what it is asked about."""
    connect = lifeline_module._connect_to_leader

    def forgetful(info):
        connections = connect(info)
        for connection in connections:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return connections

    monkeypatch.setattr(lifeline_module, "_connect_to_leader", forgetful)

    def work(info):
        with suppress(RuntimeError), lifeline(info):
            if info.rank == 1:
                raise RuntimeError("without a goodbye")
            wait_for(lambda: ended, 30)

    _together(infos, work)
    assert ended == [1] and "worker 0: worker 1 cannot be reached any more" in caplog.text


def test_strangers_are_sent_away(infos, ended, caplog):
    def work(info):
        with ExitStack() as stack:
            if info.rank == 1:
                port, _ = info.store.get("lifeline").decode().split()
                stranger = stack.enter_context(socket.create_connection(("127.0.0.1", int(port)), 10))
                stranger.sendall(b"x" * 20)
                assert stranger.recv(1) == b""
            stack.enter_context(lifeline(info))

    _together(infos, work)
    assert not ended and not caplog.text


def test_workers_of_one_machine_need_none(monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    before = threading.active_count()
    for info in (None, RankInfo(0, 2, 0, 2, HashStore())):
        with lifeline(info):
            assert threading.active_count() == before


def test_without_a_connection_training_goes_on_and_says_what_is_missing(infos, ended, monkeypatch, caplog):
    def refuse(backlog):
        raise OSError("no port is free")

    monkeypatch.setattr(lifeline_module, "_server", refuse)

    def work(info):
        with lifeline(info):
            pass

    _together(infos, work)
    for whither in ("to worker 1", "to the leader"):
        assert f"no control connection {whither} can be made" in caplog.text
    assert not ended


@pytest.mark.skipif(not network.can_be_made(), reason="no network namespaces can be made here")
def test_a_cut_network_ends_the_workers_on_both_sides():
    with network.Network(2) as machines:
        address = machines.address(0)
        workers = [
            Popen(
                ["ip", "netns", "exec", machine, sys.executable, "-c", WAIT, str(rank), address],
                cwd=PROJECT,
                env=ENVIRONMENT | {"MASTER_ADDR": address, "MASTER_PORT": "29500"},
                stdout=PIPE,
                stderr=PIPE,
            )
            for rank, machine in enumerate(machines.machines)
        ]
        try:
            for worker in workers:
                assert worker.stdout is not None and worker.stdout.readline() == b"connected\n"
            machines.cut(1)
            for rank, worker in enumerate(workers):
                _, said = worker.communicate(timeout=60)
                assert worker.returncode == 1
                assert f"worker {rank}: worker {1 - rank} cannot be reached any more".encode() in said
        finally:
            for worker in workers:
                worker.kill()
                worker.communicate()
