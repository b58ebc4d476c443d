"""Workers on several machines end when one of the machines cannot be reached any more.

A process that dies closes its connections, which gloo and NCCL notice at once. A machine without power or a cut network
closes nothing: whoever waits for it would wait for STEP_PATIENCE or longer. So each worker keeps one more connection to
the leader, over which nothing is sent before its end. The operating systems ask each other from time to time whether
they are still there (TCP keepalive), however busy the workers are, and report an error where no answer comes. The
leader then ends, and with it all others.
"""

import logging
import os
import selectors
import socket
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from mt.core.errors import WorkerDied
from mt.distributed.process_group import Seat

SILENCE = 60
"""Seconds without an answer after which a machine counts as lost."""
PROBES = 11
"""How many questions go unanswered in that time. The more they are, the longer the network may be away and come back
without a loss: for SILENCE * PROBES / (PROBES + 1) seconds at most."""
MEETING = 60
"""Seconds that the workers have to connect."""
GRACE = 20
"""Seconds that a worker has to notice by itself that another one has died, since it can then say more about it."""
GOODBYE = b"."
"""Sent by a worker that ends as it should."""

logger = logging.getLogger(__name__)


@contextmanager
def lifeline(seat: Seat | None) -> Iterator[None]:
    """Ends this process, with exit code 1 and a message, when the leader's machine has not answered for SILENCE
    seconds, or has ended without a goodbye; on the leader, when that is so of any other machine. Does nothing if all
    workers are on one machine."""
    if seat is None or seat.local_size == seat.size:
        yield
        return
    with ExitStack() as stack:
        connections = _guests(seat) if seat.rank == 0 else _connection_to_leader(seat)
        for connection in connections:
            stack.enter_context(connection)
        done, wakes = socket.socketpair()
        stack.enter_context(wakes)
        watch = threading.Thread(target=_watch, args=(connections, wakes, seat.rank), daemon=True)
        watch.start()
        last_words = GOODBYE
        try:
            yield
        except (RuntimeError, WorkerDied):  # of gloo or NCCL, or a mistake in this program: the others have to end, too
            last_words = b""
            raise
        finally:
            for connection in connections:
                with suppress(OSError):
                    connection.sendall(last_words)
            done.close()
            watch.join()


def _guests(seat: Seat) -> dict[socket.socket, int]:
    """Returns the leader's connections and the ranks of those at their other ends. A stranger, who does not know the
    name from the store, is sent away."""
    name = uuid.uuid4().bytes
    guests: dict[socket.socket, int] = {}
    end = time.monotonic() + MEETING
    try:
        with _server(backlog=seat.size) as server:
            seat.store.set("lifeline", f"{server.getsockname()[1]} {name.hex()}")
            while len(guests) < seat.size - 1:
                server.settimeout(max(0.01, end - time.monotonic()))
                guest, _ = server.accept()
                guest.settimeout(5)
                said = b""
                with suppress(OSError):
                    while len(said) < len(name) + 4 and (more := guest.recv(len(name) + 4 - len(said))):
                        said += more
                rank = int.from_bytes(said[len(name) :], "big")
                if said[: len(name)] == name and 0 < rank < seat.size and rank not in guests.values():
                    guests[_kept_alive(guest)] = rank
                else:
                    guest.close()
    except OSError as error:
        if not guests:
            seat.store.set("lifeline", "")  # nobody is to wait for it
        for rank in sorted({*range(1, seat.size)} - {*guests.values()}):
            _warn(f"to worker {rank}", error)
    return guests


def _server(backlog: int) -> socket.socket:
    """Returns a socket that listens where the other machines may find this one, as torchrun's store does."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("::", 0), family=socket.AF_INET6, backlog=backlog, dualstack_ipv6=True)
    return socket.create_server(("", 0), backlog=backlog)


def _connection_to_leader(seat: Seat) -> dict[socket.socket, int]:
    """Returns the connection, and 0, the leader's rank; nothing if it cannot be made."""
    place = seat.store.get("lifeline").decode()
    try:
        if not place:
            raise OSError("the leader does not listen")
        port, name = place.split()
        connection = socket.create_connection((os.environ["MASTER_ADDR"], int(port)), MEETING)
        connection.sendall(bytes.fromhex(name) + seat.rank.to_bytes(4, "big"))
        return {_kept_alive(connection): 0}
    except OSError as error:
        _warn("to the leader", error)
        return {}


def _warn(whither: str, error: OSError) -> None:
    logger.warning(
        "no further connection %s can be made (%s): if that machine fails without a word, the others wait for it for "
        "half an hour or longer",
        whither, error,
    )  # fmt: skip


def _kept_alive(connection: socket.socket) -> socket.socket:
    """Returns the connection, whose other end is asked every ``SILENCE / (PROBES + 1)`` seconds whether it is there."""
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE", SILENCE // (PROBES + 1)),
        ("TCP_KEEPINTVL", SILENCE // (PROBES + 1)),
        ("TCP_KEEPCNT", PROBES),
    ):
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return connection


def _watch(connections: dict[socket.socket, int], wakes: socket.socket, own: int) -> None:
    """Waits until ``wakes`` is closed at its other end, and ends the process if another worker is lost before."""
    with selectors.DefaultSelector() as selector:
        for connection in (wakes, *connections):
            selector.register(connection, selectors.EVENT_READ)
        lost, seconds = "", None
        while ready := selector.select(seconds):
            for key, _ in ready:
                if key.fileobj is wakes:
                    return
                other = key.fileobj
                assert isinstance(other, socket.socket)
                selector.unregister(other)
                try:
                    said = other.recv(len(GOODBYE))
                except OSError as error:
                    lost = f"worker {connections[other]} cannot be reached any more ({os.strerror(error.errno or 0)})"
                    seconds = 0.0
                else:
                    if not said and seconds is None:
                        lost, seconds = f"worker {connections[other]} has died", float(GRACE)
    logger.error("worker %d: %s. The same command goes on from the newest checkpoint", own, lost)
    os._exit(1)
