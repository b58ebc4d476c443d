"""Workers on several machines end when one of the machines cannot be reached any more.

A process that dies closes its connections, which gloo and NCCL notice at once. A machine without power or a cut network
closes nothing: whoever waits for it would wait for STEP_PATIENCE or longer. So each worker keeps one more connection to
the leader, over which nothing is sent. Its operating system asks the other's from time to time whether it is still
there (TCP keepalive), however busy the workers are, and reports an error where no answer comes.
"""

import errno
import logging
import os
import selectors
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from torch.distributed import Store

from mt.training.process_group import Seat

SILENCE = 60
"""Seconds without an answer after which a machine counts as lost."""
PROBES = 3
"""How many questions go unanswered in that time."""
MEETING = 60
"""Seconds that a worker has to connect."""
LOST = (errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN, errno.ECONNRESET)
"""The errors of a connection to a machine that is gone, or is back but knows nothing of the connection."""

logger = logging.getLogger(__name__)


@contextmanager
def lifeline(seat: Seat | None) -> Iterator[None]:
    """Ends this process, with exit code 1 and a message, when another worker's machine has not answered for SILENCE
    seconds. Does nothing if all workers are on one machine."""
    if seat is None or seat.local_size == seat.size:
        yield
        return
    with ExitStack() as stack:
        try:
            connections = _guests(seat) if seat.rank == 0 else {_connection_to_leader(seat.store, seat.rank): 0}
        except OSError as error:
            logger.warning(
                "worker %d: no further connection between the machines can be made (%s). If one of them fails without "
                "a word, the others notice it only after half an hour or later",
                seat.rank, error,
            )  # fmt: skip
            connections = {}
        for connection in connections:
            stack.enter_context(connection)
        done, wakes = socket.socketpair()
        stack.enter_context(wakes)
        watch = threading.Thread(target=_watch, args=(connections, wakes, seat.rank), daemon=True)
        watch.start()
        try:
            yield
        finally:
            done.close()
            watch.join()


def _guests(seat: Seat) -> dict[socket.socket, int]:
    """Returns the leader's connections and the ranks of those at their other ends. A stranger, who does not know the
    name from the store, is sent away."""
    host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    with socket.create_connection((host, port), MEETING) as way:  # the address under which the store's machine sees us
        address, family = way.getsockname()[0], way.family
    name = uuid.uuid4().bytes
    guests: dict[socket.socket, int] = {}
    with socket.create_server((address, 0), family=family, backlog=seat.size) as server:
        server.settimeout(MEETING)
        seat.store.set("lifeline", f"{address} {server.getsockname()[1]} {name.hex()}")
        while len(guests) < seat.size - 1:
            guest, _ = server.accept()
            said = b""
            guest.settimeout(5)
            with suppress(OSError):
                while len(said) < len(name) + 4 and (more := guest.recv(len(name) + 4 - len(said))):
                    said += more
            rank = int.from_bytes(said[len(name) :], "big")
            if said[: len(name)] == name and 0 < rank < seat.size and rank not in guests.values():
                guests[_kept_alive(guest)] = rank
            else:
                guest.close()
    return guests


def _connection_to_leader(store: Store, rank: int) -> socket.socket:
    address, port, name = store.get("lifeline").decode().split()
    connection = socket.create_connection((address, int(port)), MEETING)
    connection.sendall(bytes.fromhex(name) + rank.to_bytes(4, "big"))
    return _kept_alive(connection)


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
    """Waits until ``wakes`` is closed at its other end, and ends the process if a connection breaks before."""
    with selectors.DefaultSelector() as selector:
        for connection in (wakes, *connections):
            selector.register(connection, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is wakes:
                    return
                broken = key.fileobj
                assert isinstance(broken, socket.socket)
                selector.unregister(broken)  # a process that ends closes it: the others notice that by themselves
                try:
                    broken.recv(1)
                except OSError as error:
                    if error.errno in LOST:
                        logger.error(
                            "worker %d: worker %d cannot be reached any more (%s): its machine or the network has "
                            "failed. The same command goes on from the newest checkpoint",
                            own, connections[broken], os.strerror(error.errno),
                        )  # fmt: skip
                        os._exit(1)
