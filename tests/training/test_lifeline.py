"""Workers on several machines notice that one of them is gone, and do not mistake an end for it."""

import socket
import struct
import sys
import threading
import time
from contextlib import ExitStack
from subprocess import PIPE, Popen

import pytest
from torch.distributed import HashStore

from mt.training import lifeline as lifeline_module
from mt.training.lifeline import lifeline
from mt.training.process_group import Seat
from tests.faults import network
from tests.processes import ENVIRONMENT, PROJECT, wait_for

WAIT = """
import sys, time
from torch.distributed import TCPStore
from mt.training import lifeline
from mt.training.process_group import Seat
lifeline.SILENCE = 4
rank, address = int(sys.argv[1]), sys.argv[2]
store = TCPStore(address, 29500, is_master=rank == 0, wait_for_workers=False)
with lifeline.lifeline(Seat(rank, 2, 0, 1, store)):
    print("connected", flush=True)
    time.sleep(100)
"""
"""A worker that computes for so long that it asks nothing of the other."""


@pytest.fixture
def meeting(monkeypatch):
    """What torchrun says of the place where the workers meet; returns the seats of two of them, on two machines."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
        monkeypatch.setenv("MASTER_PORT", str(server.getsockname()[1]))
        store = HashStore()
        yield [Seat(rank, 2, 0, 1, store) for rank in range(2)]


@pytest.fixture
def ended(monkeypatch):
    """Notes that the process was to end, and goes on."""
    found: list[int] = []
    monkeypatch.setattr(lifeline_module.os, "_exit", found.append)
    return found


def _together(seats, work):
    threads = [threading.Thread(target=work, args=(seat,)) for seat in seats]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_worker_that_is_done_first_leaves_the_other_alone(meeting, ended):
    left = threading.Event()

    def work(seat):
        with lifeline(seat):
            if seat.rank == 0:
                left.wait(30)
                time.sleep(0.2)
        left.set()

    _together(meeting, work)
    assert not ended


def test_a_machine_that_knows_nothing_of_the_connection_any_more_is_lost(meeting, ended, monkeypatch, caplog):
    """It has had a power cut and is back: it resets what it is asked about."""
    keep = lifeline_module._connection_to_leader

    def forgetful(store, rank):
        connection = keep(store, rank)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return connection

    monkeypatch.setattr(lifeline_module, "_connection_to_leader", forgetful)

    def work(seat):
        with lifeline(seat):
            if seat.rank == 0:
                wait_for(lambda: ended, 30)

    _together(meeting, work)
    assert ended == [1] and "worker 0: worker 1 cannot be reached any more" in caplog.text


def test_strangers_are_sent_away(meeting, ended):
    leader, guest = meeting

    def work(seat):
        with ExitStack() as stack:
            if seat is guest:
                address, port, _ = seat.store.get("lifeline").decode().split()
                stranger = stack.enter_context(socket.create_connection((address, int(port)), 10))
                stranger.sendall(b"x" * 20)
                assert stranger.recv(1) == b""
            stack.enter_context(lifeline(seat))

    _together(meeting, work)
    assert not ended


def test_workers_of_one_machine_need_none(monkeypatch):
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    before = threading.active_count()
    for seat in (None, Seat(0, 2, 0, 2, HashStore())):
        with lifeline(seat):
            assert threading.active_count() == before


def test_without_a_connection_training_goes_on_and_says_what_is_missing(meeting, ended, monkeypatch, caplog):
    monkeypatch.setenv("MASTER_PORT", "1")
    with lifeline(meeting[0]):
        pass
    assert "no further connection between the machines can be made" in caplog.text and not ended


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
