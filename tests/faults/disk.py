"""A disk that fills up under a running training."""

import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests import toy
from tests.faults.interruption import Subject
from tests.faults.outcome import Outcome
from tests.processes import ENVIRONMENT, PROJECT

FILL_THEN_MAKE_ROOM = """
size=$1 disk=$2; shift 2
mount -t tmpfs -o size="${size}k" tmpfs "$disk" || exit 99
"$@" 2> "$disk.first"; echo $? >> "$disk.statuses"
mount -o remount,size=1g "$disk" || exit 99
"$@" 2> "$disk.second"; echo $? >> "$disk.statuses"
cp -r "$disk/full" "$disk.run"
"""
"""The same command on a small disk and after the disk has grown; the mount is seen by nobody else and needs no
rights."""


def can_be_filled() -> bool:
    """Whether this machine lets its users mount a small disk."""
    if not shutil.which("unshare"):
        return False
    trial = ["unshare", "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(trial, capture_output=True).returncode == 0


def fill(subject: Subject, times: int, seed: int) -> Outcome:
    """There is room for some part of what the run writes: one message, then the run resumes where it can."""
    outcome = Outcome(f"disk full ({subject.architecture})")
    chance = random.Random(seed)
    needed = sum(path.stat().st_size for path in subject.run("whole").rglob("*") if path.is_file()) // 1024
    words = [word for word in toy.words(subject.config) if not word.startswith(("runs=", "name="))]
    for number in range(times):
        disk = subject.folder / f"disk-{number}"
        disk.mkdir()
        size = chance.randrange(needed)
        command = [sys.executable, str(PROJECT / "train.py"), *words, f"runs={disk}", "name=full"]
        subprocess.run(
            ["unshare", "-rm", "bash", "-c", FILL_THEN_MAKE_ROOM, "fill", str(max(4, size)), str(disk), *command],
            env=ENVIRONMENT,
            cwd=subject.folder,
            check=True,
        )
        # As if it had always been there.
        run = f"full-{number}"
        shutil.move(f"{disk}.run", subject.run(run))
        outcome.judge([f"{size} of {needed} KiB: {trouble}" for trouble in _troubles(subject, disk, run)])
    return outcome


def _troubles(subject: Subject, disk: Path, run: str) -> list[str]:
    statuses = disk.with_name(f"{disk.name}.statuses").read_text().split()
    first, second = (disk.with_name(f"{disk.name}.{name}").read_text() for name in ("first", "second"))
    if statuses[0] == "0":  # all of it fitted in
        return subject.differences(run)
    if statuses != ["1", "0"]:
        return [f"ended with {' and '.join(statuses)}\n{first}\n{second}"]
    troubles = subject.differences(run)
    if "Traceback" in first or first.count("disk is full") != 1:
        troubles.append(f"not one message\n{first}")
    saved = [int(number) for number in re.findall(r"update (\d+)/", first)]
    resumed = re.search(r"resuming after update (\d+)", second)
    allowed = subject.config.training.save_every or 0
    if saved and saved[-1] - (int(resumed[1]) if resumed else 0) > 2 * allowed:
        troubles.append(f"update {saved[-1]} was done, but it resumed from {resumed and resumed[1]}")
    return troubles
