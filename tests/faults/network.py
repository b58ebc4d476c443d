"""Machines with addresses, links and disks of their own on this one: Linux network namespaces.

They reach each other through a bridge that stands in a namespace, too, and nothing else; this machine's own network is
neither used nor changed. Needs root and iproute2.
"""

import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

from tests.processes import ENVIRONMENT, PROJECT

PORT = 29500
INTERFACE = "eth0"
RETRIES = 8
"""How often a machine sends a packet again before it gives up the connection: for some 100 seconds, as is advised in
docs/several-gpus.md. With Linux's own 15, torchrun waits for its store for 15 minutes."""


def can_be_made() -> bool:
    """Whether this process may make network namespaces."""
    if os.name != "posix" or os.geteuid() or not shutil.which("ip"):
        return False
    name = f"mt-{uuid.uuid4().hex[:6]}"
    made = _is_done("ip", "netns", "add", name)
    linked = made and _is_done("ip", "-n", name, "link", "add", "br0", "type", "bridge")
    if made:
        do("ip", "netns", "del", name)
    return linked


def _is_done(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def do(*command: str) -> None:
    """Runs a command of the system. Raises CalledProcessError if it fails."""
    subprocess.run(command, check=True, capture_output=True)


class Network:
    """A bridge and so many machines on it. A context manager: at its end processes and namespaces are gone.

    Args:
        machines: How many.
    """

    def __init__(self, machines: int) -> None:
        self.name = f"mt{uuid.uuid4().hex[:6]}"
        self.machines = [f"{self.name}-{number}" for number in range(machines)]
        self.bridge = f"{self.name}-bridge"
        self._started: list[Popen[bytes]] = []

    def __enter__(self) -> "Network":
        try:
            do("ip", "netns", "add", self.bridge)
            do("ip", "-n", self.bridge, "link", "add", "br0", "type", "bridge")
            do("ip", "-n", self.bridge, "link", "set", "br0", "up")
            for number in range(len(self.machines)):
                self._add(number)
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._remove()

    def _add(self, machine: int) -> None:
        name, plug = self.machines[machine], f"to{machine}"
        do("ip", "netns", "add", name)
        do("ip", "-n", name, "link", "set", "lo", "up")
        do(
            *("ip", "link", "add", INTERFACE, "netns", name),
            *("type", "veth", "peer", "name", plug, "netns", self.bridge),
        )
        do("ip", "-n", self.bridge, "link", "set", plug, "master", "br0", "up")
        do("ip", "-n", name, "address", "add", f"{self.address(machine)}/24", "dev", INTERFACE)
        do("ip", "-n", name, "link", "set", INTERFACE, "up")
        do("ip", "netns", "exec", name, "sh", "-c", f"echo {RETRIES} > /proc/sys/net/ipv4/tcp_retries2")

    def _remove(self) -> None:
        for namespace in [*self.machines, self.bridge]:
            _end(namespace)
        for process in self._started:
            process.wait()

    @staticmethod
    def address(machine: int) -> str:
        return f"10.77.0.{10 + machine}"

    def cut(self, machine: int) -> None:
        """Pulls the machine's plug at the bridge. Its own interface stays up, and packets are lost."""
        do("ip", "-n", self.bridge, "link", "set", f"to{machine}", "down")

    def switch_off(self, machine: int) -> None:
        """Ends everything there at once. Nothing is reported, since the connections are forgotten with the machine."""
        self.cut(machine)
        _end(self.machines[machine])
        _is_done("ip", "-n", self.bridge, "link", "del", f"to{machine}")  # the system does so, too, but takes its time

    def switch_on(self, machine: int) -> None:
        """Starts a machine that was switched off, with the address that it had."""
        self._add(machine)

    def heal(self, machine: int) -> None:
        do("ip", "-n", self.bridge, "link", "set", f"to{machine}", "up")

    def limit(self, machine: int, megabits: float) -> None:
        """Lets a machine send, and be sent, so many megabits a second."""
        for namespace, interface in ((self.machines[machine], INTERFACE), (self.bridge, f"to{machine}")):
            do(
                *("tc", "-n", namespace, "qdisc", "replace", "dev", interface, "root", "tbf"),
                *("rate", f"{megabits}mbit", "burst", f"{max(16, int(megabits))}kb", "latency", "400ms"),
            )

    def torchrun(self, machine: int, words: Sequence[str], *options: str, log: Path) -> Popen[bytes]:
        """Starts torchrun on a machine, with one worker there.

        Args:
            machine: The number of the machine. They meet at that of number 0.
            words: The script and what is given to it.
            options: Further options of torchrun.
            log: The file behind which everything is written that it says.
        """
        environment: Mapping[str, str] = ENVIRONMENT | {
            "GLOO_SOCKET_IFNAME": INTERFACE,
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # otherwise a machine cannot come back: pytorch/pytorch#147064
        }
        command = [
            *("ip", "netns", "exec", self.machines[machine], sys.executable, "-m", "torch.distributed.run"),
            *(f"--nnodes={len(self.machines)}", "--nproc-per-node=1", "--rdzv-id=training", "--rdzv-backend=c10d"),
            *(f"--rdzv-endpoint={self.address(0)}:{PORT}", f"--local-addr={self.address(machine)}"),
            f"--rdzv-conf=is_host={int(machine == 0)}",  # the machines share one name, by which torchrun would ask
            *options,
            *words,
        ]
        with log.open("ab") as said:
            process = Popen(command, cwd=PROJECT, env=environment, stdout=said, stderr=subprocess.STDOUT)
        self._started.append(process)
        return process


def _end(namespace: str) -> None:
    """Kills what runs in a namespace, and removes it."""
    found = subprocess.run(["ip", "netns", "pids", namespace], capture_output=True, text=True, check=False)
    for process in map(int, found.stdout.split()):
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    _is_done("ip", "netns", "del", namespace)
