"""Work on several machines, of which one fails: it dies, its network is cut, it is slow, or its disk is full."""

import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import PIPE, Popen

from mt.distributed.workers import STEP_TIMEOUT
from tests import toy
from tests.faults.interruption import Subject
from tests.faults.network import Network, do
from tests.faults.outcome import Outcome
from tests.processes import finish, start, wait_for

BOUND = STEP_TIMEOUT.total_seconds() + 120
"""Seconds after which every process has ended that waits for a machine which is gone for good. torchrun takes the
second part to see that its own connection is cut, too."""
RESTARTS = "--max-restarts=3"


class Cluster:
    """One run on the machines of a network, each with torchrun and one worker."""

    def __init__(self, network: Network, subject: Subject, name: str) -> None:
        self.network, self.subject, self.name = network, subject, name
        self.machines: list[Popen[bytes]] = []

    def start(self, *options: str) -> None:
        self.machines = [self._start(machine, *options) for machine in range(len(self.network.machines))]

    def start_and_choose(self, chance: random.Random, *options: str) -> int:
        """Starts all, waits for one of the first 20 updates of 40, and returns the machine that is to fail: any but
        that where all meet, without which torchrun cannot go on."""
        self.start(*options)
        self.wait_for_update(chance.randint(1, 20))
        return self.any_but_the_first(chance)

    def any_but_the_first(self, chance: random.Random) -> int:
        return chance.randrange(1, len(self.machines))

    def bring_back(self, machine: int, *options: str) -> None:
        self.machines[machine] = self._start(machine, *options)

    def _start(self, machine: int, *options: str) -> Popen[bytes]:
        words = ["train.py", *toy.words(self.subject.named(self.name))]
        return self.network.torchrun(machine, words, *options, log=self._log(machine))

    def _log(self, machine: int) -> Path:
        return self.subject.folder / f"{self.name}-{machine}.txt"

    def said(self) -> str:
        return "\n".join(self._log(machine).read_text(errors="replace") for machine in range(len(self.machines)))

    def wait_for_update(self, update: int) -> None:
        self.subject.wait_for_update(self.machines[0], self.name, update)

    def end(self, seconds: float = 600) -> list[int]:
        """Waits for all machines; returns how each has ended."""
        wait_for(lambda: all(machine.poll() is not None for machine in self.machines), seconds)
        return [machine.returncode for machine in self.machines]


def fail(subject: Subject, times: int, seed: int) -> Outcome:
    """One of the machines fails in each of the ways in turn. Without a fault they make the same weights as workers of
    one machine."""
    outcome = Outcome(f"one of {subject.workers} machines fails")
    chance = random.Random(seed)
    figures = []
    for number in range(times):
        failure = FAILURES[number % len(FAILURES)]
        name = f"{failure.__name__.strip('_')}-{number}"
        with Network(subject.workers) as network:
            cluster = Cluster(network, subject, name)
            began = time.monotonic()
            try:
                statuses = failure(cluster, chance)
            except AssertionError as error:
                troubles = [f"{name}: {error}"]
            else:
                troubles = subject.differences(name) if not any(statuses) else [f"{name} ended with {statuses}"]
            figures.append(f"{name} {time.monotonic() - began:.0f} s")
            outcome.judge([f"{trouble}\n{cluster.said()}" for trouble in troubles])
    outcome.figures = ", ".join(figures)
    return outcome


def translate(folder: Path, times: int, seed: int, run: Path) -> Outcome:
    """One of two machines that translate a file loses its power: the other ends within the bound. The same command
    continues when the machine is back, to the lines that one process writes."""
    outcome = Outcome("one of two machines that translate fails")
    chance = random.Random(seed)
    source, whole, output = folder / "many.txt", folder / "whole.txt", folder / "out.txt"
    record = Path(f"{output}.partial.json")
    source.write_text("".join(f"{' '.join(chance.choices(toy.SYLLABLES, k=5))}\n" for _ in range(20_000)))
    status, said = finish(start(*_words(run, source, whole), stdout=PIPE, stderr=PIPE))
    assert status == 0, said
    for number in range(times):
        logs = [folder / f"{number}-{machine}.txt" for machine in range(2)]
        with Network(2) as network:
            words = _words(run, source, output)
            machines = [network.torchrun(machine, words, log=log) for machine, log in enumerate(logs)]
            wait_for(lambda: record.exists() and record.stat().st_size)
            time.sleep(chance.uniform(0, 2))
            network.switch_off(1)
            wait_for(lambda: machines[0].poll() is not None, BOUND)  # noqa: B023
            network.switch_on(1)
            again = [network.torchrun(machine, words, log=log) for machine, log in enumerate(logs)]
            statuses = [machine.wait(600) for machine in again]
        troubles = [f"ended with {statuses}"] if any(statuses) else []
        if not output.exists() or output.read_bytes() != whole.read_bytes():
            troubles.append("other lines")
        said = "\n".join(log.read_text(errors="replace") for log in logs)
        outcome.judge([f"{trouble}\n{said}" for trouble in troubles])
        output.unlink(missing_ok=True)
    return outcome


def _words(run: Path, source: Path, output: Path) -> list[str]:
    greedy = ["decoding.beam_size=1", "decoding.max_length_ratio=1", "decoding.max_length_extra=3"]
    return ["translate.py", f"run={run}", f"input={source}", f"output={output}", *greedy]


def _undisturbed(cluster: Cluster, chance: random.Random) -> Sequence[int]:
    cluster.start()
    return cluster.end()


def _power_cut(cluster: Cluster, chance: random.Random) -> Sequence[int]:
    """A machine is gone from one moment to the next, with its connections, and comes back."""
    victim = cluster.start_and_choose(chance, RESTARTS)
    cluster.network.switch_off(victim)
    time.sleep(chance.uniform(0, 30))
    cluster.network.switch_on(victim)
    cluster.bring_back(victim, RESTARTS)
    return cluster.end()


def _short_cut(cluster: Cluster, chance: random.Random) -> Sequence[int]:
    """The network is away for less time than the system resumes sending (``network.RETRIES``): nobody notices."""
    victim = cluster.start_and_choose(chance)
    cluster.network.cut(victim)
    time.sleep(chance.uniform(1, 45))
    cluster.network.heal(victim)
    return cluster.end()


def _long_cut(cluster: Cluster, chance: random.Random) -> Sequence[int]:
    """torchrun ends where the network is away; the others wait for that machine until it comes back."""
    victim = cluster.start_and_choose(chance, RESTARTS)
    cluster.network.cut(victim)
    wait_for(lambda: cluster.machines[victim].poll() is not None, BOUND)
    cluster.network.heal(victim)
    cluster.bring_back(victim, RESTARTS)
    return cluster.end()


def _cut_for_good(cluster: Cluster, chance: random.Random) -> Sequence[int]:
    """Everything ends within the bound. The same command resumes when there is a network again."""
    victim = cluster.start_and_choose(chance)
    cluster.network.cut(victim)
    statuses = cluster.end(BOUND)
    assert all(statuses), f"ended with {statuses} without a network"
    cluster.network.heal(victim)
    cluster.start()
    return cluster.end()


def _slow_network(cluster: Cluster, chance: random.Random) -> Sequence[int]:
    """Waiting is all that it costs."""
    cluster.start()
    cluster.wait_for_update(1)
    cluster.network.limit(cluster.any_but_the_first(chance), megabits=chance.uniform(0.5, 5))
    return cluster.end()


def _full_disk(cluster: Cluster, chance: random.Random) -> Sequence[int]:
    """The disk of the run fills up: the main process says so, and everything ends. The same command resumes."""
    run = cluster.subject.run(cluster.name)
    run.mkdir()
    needed = sum(path.stat().st_size for path in cluster.subject.run("whole").rglob("*") if path.is_file()) // 1024
    do("mount", "-t", "tmpfs", "-o", f"size={chance.randrange(needed // 4, needed // 2)}k", "tmpfs", str(run))
    try:
        cluster.start()
        statuses = cluster.end(BOUND)
        assert all(statuses), f"ended with {statuses} though the disk is full"
        count = cluster.said().count("disk is full")
        assert count == 1, f"reported {count} times that the disk is full"
        do("mount", "-o", "remount,size=1g", str(run))
        cluster.start()
        statuses = cluster.end()
        shutil.copytree(run, run.with_name("copied"), symlinks=True)
    finally:
        do("umount", str(run))
    run.rmdir()
    run.with_name("copied").rename(run)  # as if it had always been there
    return statuses


FAILURES: list[Callable[[Cluster, random.Random], Sequence[int]]] = [
    _undisturbed, _power_cut, _short_cut, _long_cut, _cut_for_good, _slow_network, _full_disk,
]  # fmt: skip
