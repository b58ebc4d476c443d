"""End the workers on all machines when one machine cannot be reached any more.

When a process dies, the system closes its connections, and gloo and NCCL notice at once. A machine without power or
network closes nothing, and workers that wait for its messages would wait for STEP_TIMEOUT or longer. So each worker
keeps one idle connection to the leader, with TCP keepalive: the operating systems probe each other however busy the
workers are, and report an error when no answer comes. Then the leader ends, and the other workers end with it.
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
from mt.distributed.process_group import RankInfo

SILENCE_SECONDS = 60
"""A machine that has not answered for this long is lost."""
PROBES = 11
"""Number of unanswered keepalive probes after which a connection is lost, at even distances within SILENCE_SECONDS."""
CONNECT_SECONDS = 60
"""Time limit for all connections to be made."""
GRACE_SECONDS = 20
"""Time for a worker to notice by itself that another worker has died, since gloo and NCCL report the reason."""
GOODBYE = b"."
"""Last message of a worker that ends without a crash."""

logger = logging.getLogger(__name__)


@contextmanager
def lifeline(info: RankInfo | None) -> Iterator[None]:
    """Context manager: end this process with exit code 1 and a message if another machine is lost meanwhile.

    The leader watches the machines of all workers, and a worker watches the leader's. A machine is lost if it has not
    answered for SILENCE_SECONDS, or if its worker closed the connection without GOODBYE. Nothing is watched if all
    workers are on one machine, or if there is no rank (``info`` is None).
    """
    if info is None or info.local_world_size == info.world_size:
        yield
        return
    with ExitStack() as stack:
        connections = _accept_workers(info) if info.rank == 0 else _connect_to_leader(info)
        for connection in connections:
            stack.enter_context(connection)
        done, wakes = socket.socketpair()
        stack.enter_context(wakes)
        watch = threading.Thread(target=_watch, args=(connections, wakes, info.rank), daemon=True)
        watch.start()
        last_message = GOODBYE
        try:
            yield
        except (RuntimeError, WorkerDied):  # of gloo or NCCL, or a bug: the other workers have to end, too
            last_message = b""
            raise
        finally:
            for connection in connections:
                with suppress(OSError):
                    connection.sendall(last_message)
            done.close()
            watch.join()


def _accept_workers(info: RankInfo) -> dict[socket.socket, int]:
    """Wait for the connections of all other workers, on the leader, and return connection → rank of the worker.

    The leader publishes its port and a random secret in the store. A worker greets with this secret and its rank, and
    connections with another greeting are closed. After CONNECT_SECONDS, a warning names the workers that are missing.
    """
    secret = uuid.uuid4().bytes
    ranks: dict[socket.socket, int] = {}
    end = time.monotonic() + CONNECT_SECONDS
    try:
        with _server(backlog=info.world_size) as server:
            info.store.set("lifeline", f"{server.getsockname()[1]} {secret.hex()}")
            while len(ranks) < info.world_size - 1:
                server.settimeout(max(0.01, end - time.monotonic()))
                connection, _ = server.accept()
                greeting = _receive(connection, len(secret) + 4)
                rank = int.from_bytes(greeting[len(secret) :], "big")
                if greeting.startswith(secret) and 0 < rank < info.world_size and rank not in ranks.values():
                    ranks[_keep_alive(connection)] = rank
                else:
                    connection.close()
    except OSError as error:
        if not ranks:
            info.store.set("lifeline", "")  # so that no worker waits for the port
        for rank in sorted({*range(1, info.world_size)} - {*ranks.values()}):
            _warn(f"to worker {rank}", error)
    return ranks


def _server(backlog: int) -> socket.socket:
    """Return a socket that listens on a free port at all addresses of this machine."""
    if socket.has_dualstack_ipv6():
        return socket.create_server(("::", 0), family=socket.AF_INET6, backlog=backlog, dualstack_ipv6=True)
    return socket.create_server(("", 0), backlog=backlog)


def _receive(connection: socket.socket, size: int) -> bytes:
    """Read ``size`` bytes from a connection. Return fewer if it is closed, or silent for five seconds."""
    connection.settimeout(5)
    received = b""
    with suppress(OSError):
        while len(received) < size and (more := connection.recv(size - len(received))):
            received += more
    return received


def _connect_to_leader(info: RankInfo) -> dict[socket.socket, int]:
    """Connect to the leader. Return connection → 0, the leader's rank, or log a warning and return nothing."""
    try:
        port, _, secret = info.store.get("lifeline").decode().partition(" ")
        if not port:
            raise OSError("the leader does not listen")
        connection = socket.create_connection((os.environ["MASTER_ADDR"], int(port)), CONNECT_SECONDS)
        connection.sendall(bytes.fromhex(secret) + info.rank.to_bytes(4, "big"))
        return {_keep_alive(connection): 0}
    except OSError as error:
        _warn("to the leader", error)
        return {}


def _warn(destination: str, error: OSError) -> None:
    logger.warning(
        "no control connection %s can be made (%s). The work goes on, but if that machine loses power or network, the "
        "others wait for half an hour or longer; let the machines' firewalls open all ports to each other",
        destination,
        error,
    )


def _keep_alive(connection: socket.socket) -> socket.socket:
    """Switch on TCP keepalive, with a probe every SILENCE_SECONDS / (PROBES + 1). Return the connection."""
    interval = SILENCE_SECONDS // (PROBES + 1)
    connection.settimeout(None)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    idle = "TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE"
    for option, value in ((idle, interval), ("TCP_KEEPINTVL", interval), ("TCP_KEEPCNT", PROBES)):
        connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return connection


def _watch(connections: dict[socket.socket, int], wakes: socket.socket, own_rank: int) -> None:
    """End this process if a connection breaks. Return when ``wakes`` becomes readable, which ends the watch.

    Args:
        connections: Connection → rank of the worker at its other end.
        wakes: One end of a socket pair; the main thread closes the other end.
        own_rank: The rank of this process, for the message.
    """
    with selectors.DefaultSelector() as selector:
        for connection in (wakes, *connections):
            selector.register(connection, selectors.EVENT_READ)
        loss, timeout = "", None
        while ready := selector.select(timeout):
            for key, _ in ready:
                if key.fileobj is wakes:
                    return
                other = key.fileobj
                assert isinstance(other, socket.socket)
                selector.unregister(other)
                rank = connections[other]
                try:
                    message = other.recv(len(GOODBYE))
                except OSError as error:
                    loss, timeout = f"worker {rank} cannot be reached any more ({os.strerror(error.errno or 0)})", 0.0
                else:
                    if not message and timeout is None:
                        loss, timeout = f"worker {rank} has died", float(GRACE_SECONDS)
    logger.error("worker %d: %s. Start the same command again: it resumes", own_rank, loss)
    os._exit(1)
