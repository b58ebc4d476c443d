"""Training that is killed, terminated or interrupted at random instants, and the run folder it leaves."""

import json
import random
import re
import signal
import time
from pathlib import Path
from subprocess import PIPE

import torch
from safetensors.torch import load_file

from mt.config import TrainConfig
from mt.core.errors import InputError
from mt.storage.run_folder import FILE_CHECKSUMS, WEIGHTS
from mt.storage.validation import CHECKSUM_KEY
from mt.storage.weights import read_tensors
from mt.training.checkpoint import newest_checkpoint
from tests import toy
from tests.faults.outcome import Outcome
from tests.processes import Process, finish, start, torchrun, wait_for

UPDATE = r"update (\d+)/"
PROMPT = 10.0
"""Seconds in which a signal must have been obeyed."""
TIMED = {
    "seconds", "target_tokens_per_second", "decoding_sentences_per_second", "training_minutes", "peak_memory_bytes",
    FILE_CHECKSUMS, CHECKSUM_KEY,
}  # fmt: skip


class Subject:
    """One tiny training, once undisturbed, and then over and over with faults."""

    def __init__(self, folder: Path, architecture: str, workers: int = 1) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        toy.write_corpus(folder, "reverse", train=600)
        for side in ("xx", "yy"):
            path = folder / f"train.{side}"
            path.write_text(path.read_text() + "".join(path.read_text().splitlines(keepends=True)[:40]))
        self.folder = folder
        self.architecture = architecture
        self.workers = workers
        self.config = toy.config(
            folder,
            "whole",
            architecture,
            data={"cleaning": ["copy", "duplicate"]},
            text={"augmentation": toy.CHANGED},
            tokenizer={"sampling": 0.2},
            training={"max_updates": 24, "validate_every": 8, "save_every": 2, "log_every": 1, "keep_last": 2,
                      "accumulate": 2, "batch_tokens": 128},
        )  # fmt: skip
        began = self._start("whole")
        wait_for((self.folder / "runs/whole").exists)
        seen = time.monotonic()
        status, said = finish(began)
        assert status == 0, said
        self.seconds = time.monotonic() - seen
        """From the first sight of the run folder to the end."""

    def _start(self, name: str) -> Process:
        words = toy.words(self.named(name))
        if self.workers > 1:
            return torchrun(words, self.workers, cwd=self.folder)
        return start("train.py", *words, cwd=self.folder, stdout=PIPE, stderr=PIPE)

    def named(self, name: str) -> TrainConfig:
        return self.config.model_copy(update={"name": name})

    def start(self, name: str) -> Process:
        """Starts or resumes the run. Returns once it has its folder."""
        before = self._said(name)
        process = self._start(name)
        wait_for(lambda: process.poll() is not None or self._said(name) != before)
        return process

    def _said(self, name: str) -> str:
        log = self.run(name) / "train.log"
        return log.read_text() if log.exists() else ""

    def wait_for_update(self, process: Process, name: str, update: int = 1) -> None:
        """Waits until a process that resumes the run logs this update or a later one, or ends."""
        before = self._said(name)

        def is_reached() -> bool:
            return any(int(number) >= update for number in re.findall(UPDATE, self._said(name)[len(before) :]))

        wait_for(lambda: process.poll() is not None or is_reached())

    def run(self, name: str) -> Path:
        return self.folder / "runs" / name

    def finished(self, name: str) -> bool:
        return (self.run(name) / "results.json").exists()

    def differences(self, name: str) -> list[str]:
        """Of a finished run from the undisturbed one."""
        whole, other = self.run("whole"), self.run(name)
        found = []
        first, second = (load_file(run / WEIGHTS) for run in (whole, other))
        if not all(torch.equal(first[key], second[key]) for key in first):
            found.append(f"{name}: other weights")
        if _records(whole) != _records(other):
            found.append(f"{name}: other metrics.jsonl")
        for file in ("results.json", "scored/test.hypothesis"):
            if _untimed(whole / file) != _untimed(other / file):
                found.append(f"{name}: another {file}")
        if leftovers := [path.name for path in other.rglob(".*") if path.name != ".lock"]:
            found.append(f"{name}: leftovers {leftovers}")
        return found


def kill(subject: Subject, times: int, seed: int) -> Outcome:
    """SIGKILL, from the first sight of the run folder on: corpus, tokenizer, updates, saves, validation, scoring."""
    outcome = Outcome(f"SIGKILL at any instant ({subject.architecture})")
    chance = random.Random(seed)
    worst, run = 0, 0
    while outcome.injected < times:
        name = f"killed-{run}"
        process = subject.start(name)
        time.sleep(chance.uniform(0, subject.seconds))
        process.kill()
        _, said = finish(process)
        if subject.finished(name):
            run += 1
            outcome.lost += subject.differences(name)
        else:
            troubles, lost = _state_after_kill(subject, name)
            worst = max(worst, lost)
            outcome.judge([f"{trouble}\n{said}" for trouble in troubles])
    outcome.figures = f"at most {worst} updates to do again; {run} disturbed runs ended"
    return _end(subject, f"killed-{run}", outcome)


def stop(subject: Subject, times: int, seed: int, prompt: float = PROMPT) -> Outcome:
    """SIGTERM, SIGINT and SIGHUP in turn from the first update on, every fourth time again and again."""
    outcome = Outcome(f"SIGTERM, SIGINT, SIGHUP from the first update on ({subject.architecture})")
    chance = random.Random(seed)
    slowest, run = 0.0, 0
    while outcome.injected < times:
        name = f"stopped-{run}"
        process = subject.start(name)
        subject.wait_for_update(process, name)
        time.sleep(chance.uniform(0, subject.seconds / 2))
        number = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)[outcome.injected % 3]
        sent = time.monotonic()
        for _ in range(3 if outcome.injected % 4 == 3 else 1):
            process.send_signal(number)
            time.sleep(0.05)
        status, said = finish(process)
        if subject.finished(name):
            run += 1
            outcome.lost += subject.differences(name)
            if status not in (0, 128 + number):
                outcome.lost.append(f"{name} was finished, but ended with {status} after signal {number}\n{said}")
            continue
        took = time.monotonic() - sent
        slowest = max(slowest, took)
        troubles = [f"ended after {took:.1f} s"] if took > prompt else []
        if status != 128 + number:
            troubles.append(f"ended with {status} after signal {number}")
        if "Traceback" in said:
            troubles.append("a traceback")
        stopped = re.search(r"stopped at update (\d+), state saved", said)
        checkpoint = newest_checkpoint(subject.run(name))
        stands = checkpoint.progress.update if checkpoint else 0
        # A signal that comes when the last update is done finds nothing to save.
        if stands != (int(stopped[1]) if stopped else subject.config.training.max_updates):
            troubles.append(f"stopped at {stopped and stopped[1]}, but the state is that of update {stands}")
        outcome.judge([f"{trouble}\n{said}" for trouble in troubles])
    outcome.figures = f"state saved in at most {slowest:.1f} s; {run} disturbed runs ended"
    return _end(subject, f"stopped-{run}", outcome)


def _state_after_kill(subject: Subject, name: str) -> tuple[list[str], int]:
    """What is wrong with the folder of a killed run, and how many updates have to be done again."""
    run = subject.run(name)
    text = (run / "train.log").read_text(errors="replace")
    done = max((int(number) for number in re.findall(UPDATE, text)), default=0)
    try:
        checkpoint = newest_checkpoint(run)
        stands = checkpoint.progress.update if checkpoint else 0
        if checkpoint:
            read_tensors(checkpoint.folder / WEIGHTS), read_tensors(checkpoint.folder / "optimizer.safetensors")
    except (InputError, OSError) as error:
        return [f"unreadable: {error}"], 0
    allowed = subject.config.training.save_every or 0
    # What was logged before an earlier kill may stand behind the checkpoint from which the run resumed.
    lost = max(0, done - stands)
    return ([f"{lost} updates lost"] if lost > allowed else []), lost


def _end(subject: Subject, name: str, outcome: Outcome) -> Outcome:
    """Lets the last run come to its end."""
    status, said = finish(subject.start(name))
    outcome.lost += subject.differences(name) if status == 0 else [f"{name} ended with {status}\n{said}"]
    return outcome


def _records(run: Path) -> list[dict]:
    return [_without_times(json.loads(line)) for line in (run / "metrics.jsonl").read_text().splitlines()]


def _untimed(path: Path) -> object:
    text = path.read_text()
    return _without_times(json.loads(text)) if path.suffix == ".json" else text


def _without_times(values: dict) -> dict:
    return {name: value for name, value in values.items() if name not in TIMED}
