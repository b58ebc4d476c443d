"""Machines with addresses, links and disks of their own on this one: Linux network namespaces.

They reach each other through a bridge that stands in a namespace, too, and nothing else; this machine's own network is
neither used nor changed. Needs root and iproute2.
"""

import os
import shutil
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import Popen

import psutil

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
            for number, machine in enumerate(self.machines):
                do("ip", "netns", "add", machine)
                do("ip", "-n", machine, "link", "set", "lo", "up")
                plug = f"to{number}"
                do(
                    *("ip", "link", "add", INTERFACE, "netns", machine),
                    *("type", "veth", "peer", "name", plug, "netns", self.bridge),
                )
                do("ip", "-n", self.bridge, "link", "set", plug, "master", "br0", "up")
                do("ip", "-n", machine, "address", "add", f"{self.address(number)}/24", "dev", INTERFACE)
                do("ip", "-n", machine, "link", "set", INTERFACE, "up")
                do("ip", "netns", "exec", machine, "sh", "-c", f"echo {RETRIES} > /proc/sys/net/ipv4/tcp_retries2")
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._remove()

    def _remove(self) -> None:
        for process in self._started:
            end_at_once(process)
        for namespace in [*self.machines, self.bridge]:
            _is_done("ip", "netns", "del", namespace)

    @staticmethod
    def address(machine: int) -> str:
        return f"10.77.0.{10 + machine}"

    def cut(self, machine: int) -> None:
        """Pulls the machine's plug at the bridge. Its own interface stays up, so nobody is told: packets are lost."""
        do("ip", "-n", self.bridge, "link", "set", f"to{machine}", "down")

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
            words: What is given to ``train.py``.
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
            *(str(PROJECT / "train.py"), *words),
        ]
        with log.open("ab") as said:
            process = Popen(command, cwd=PROJECT, env=environment, stdout=said, stderr=subprocess.STDOUT)
        self._started.append(process)
        return process


def end_at_once(process: Popen[bytes]) -> None:
    """Ends a machine's torchrun and its workers at once, as a power cut does."""
    with suppress(psutil.Error):
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for one in family:
            with suppress(psutil.Error):
                one.kill()
    process.wait()
