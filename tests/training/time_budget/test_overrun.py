"""The warning that a run takes longer than its minutes: in simulated runs, and in a real one with a simulated clock."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch
from safetensors.torch import load_file

from mt.config import TrainConfig, TrainingConfig
from mt.core.errors import Interrupted
from mt.training import command
from mt.training import trainer as trainer_module
from mt.training.checkpoint import Progress
from mt.training.command import train
from mt.training.time_budget import recorded_choice
from mt.training.time_budget.estimates import Speed
from mt.training.time_budget.overrun import OverrunMonitor
from mt.training.updater import Updater
from tests import toy
from tests.clock import Clock
from tests.training.runs import stop_after

MESSAGE = re.compile(r"training\.minutes=([\d.]+), but at its recent speed this run takes about ([\d.]+) minutes")


@dataclass
class SimulatedRun:
    """A run of 500 updates, a validation of 5 seconds after every 50, 30 seconds before and 20 after training. On an
    idle computer an update takes a second and the run 10 minutes."""

    slowdown: Callable[[float], float]
    """Returns how many times as long work takes that begins at a second of the run."""
    progress: Progress = field(default_factory=Progress)
    seconds: float = 0.0

    def work(self, seconds: float) -> float:
        taken = seconds * self.slowdown(self.seconds)
        self.seconds += taken
        return taken

    def warnings(self, caplog: pytest.LogCaptureFixture, minutes: float = 10.0) -> list[tuple[float, float]]:
        """Simulate the run. Return the minute of each warning, and the minutes that it tells."""
        found = []
        training = TrainingConfig(minutes=minutes, max_updates=500, validate_every=50)
        budget = OverrunMonitor(training, self.progress, 20.0, lambda: self.seconds)
        self.work(30)
        while self.progress.update < 500:
            self.progress.seconds += self.work(1)
            self.progress.update += 1
            budget.record_update(self.progress)
            if self.progress.update % 50 == 0:
                budget.record_validation(self.progress, self.work(5))
            found += [(round(self.seconds / 60, 1), float(told)) for _, told in MESSAGE.findall(caplog.text)]
            caplog.clear()
        self.work(20)
        return found


SIMULATIONS = {
    "an idle computer": (lambda second: 1, [], 10.0),
    "a load that costs less than a quarter": (lambda second: 1.2, [], 12.0),
    "a load that costs more than a quarter": (lambda second: 1.3, [(4.2, 12.9)], 13.0),
    "a load that costs half": (lambda second: 1.5, [(2.4, 13.7)], 15.0),
    "a large load": (lambda second: 3, [(3.0, 26.8)], 30.0),
    "a load from 100 s on": (lambda second: 2 if second >= 100 else 1, [(3.3, 16.7)], 18.3),
    "a load from 300 s on": (lambda second: 3 if second >= 300 else 1, [(6.6, 18.5)], 20.0),
    "a load from 480 s on": (lambda second: 3 if second >= 480 else 1, [(9.7, 12.9)], 14.0),
    "a small load from 480 s on": (lambda second: 2 if second >= 480 else 1, [], 12.0),
    "a load that comes and goes": (lambda second: 3 if second % 10 < 6 else 1, [(3.1, 15.9)], 17.5),
    "a run that becomes faster": (lambda second: 1 if second < 300 else 0.5, [], 7.5),
    # The clock of a suspended laptop goes on under some systems.
    "an interruption": (lambda second: 121 if 200 < second <= 201 else 1, [], 12.0),
    "a long interruption": (lambda second: 3601 if 200 < second <= 201 else 1, [(63.4, 70.0)], 70.0),
}
"""The slowdown, the warnings, and the minutes that the run takes."""


@pytest.mark.parametrize(("slowdown", "warnings", "minutes"), SIMULATIONS.values(), ids=SIMULATIONS)
def test_what_costs_more_than_a_quarter_causes_a_warning(caplog, slowdown, warnings, minutes):
    run = SimulatedRun(slowdown)
    assert run.warnings(caplog) == warnings
    assert run.seconds / 60 == pytest.approx(minutes, abs=0.06)


def test_a_burst_of_load_no_longer_than_a_segment_causes_no_warning(caplog):
    for begin in range(30, 570, 7):
        run = SimulatedRun(lambda second, begin=begin: 10 if begin <= second < begin + 30 else 1)
        assert run.warnings(caplog) == []


def test_a_resumed_run_counts_the_updates_of_earlier_processes(caplog):
    run = SimulatedRun(lambda second: 1, Progress(update=350, seconds=600))
    assert run.warnings(caplog) == [(2.1, 13.4)]
    assert (600 + run.seconds) / 60 == pytest.approx(13.6, abs=0.1)


def test_more_updates_than_there_are_minutes_for_cause_a_warning(caplog):
    assert SimulatedRun(lambda second: 1).warnings(caplog, minutes=5) == [(1.2, 9.2)]


@pytest.fixture
def clock(monkeypatch):
    """A clock that only updates move on, by ``clock.update_seconds`` each."""
    clock = Clock()
    clock.update_seconds = 1
    update = Updater.update

    def timed_update(*arguments):
        clock.seconds += clock.update_seconds
        return update(*arguments)

    for module in (command, recorded_choice, trainer_module):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(Updater, "update", timed_update)
    monkeypatch.setattr(
        recorded_choice, "measure_speed", lambda *_: Speed(update=1, token=1e-6, greedy=1e-3, beam=1e-3)
    )
    return clock


def _toy(folder, name: str) -> TrainConfig:
    """A run of 20 updates, for which there is a minute."""
    return toy.config(folder, name, training={"minutes": 1})


def test_a_slow_run_warns_once_and_has_the_weights_of_a_fast_one(folder, clock, caplog):
    fast, slow = _toy(folder, "fast"), _toy(folder, "slow")
    train(fast)
    assert MESSAGE.findall(caplog.text) == []
    clock.update_seconds = 6
    train(slow)
    assert MESSAGE.findall(caplog.text) == [("1", "2.1")]
    weights, other_weights = (load_file(config.folder / "model.safetensors") for config in (fast, slow))
    assert all(torch.equal(weights[name], other_weights[name]) for name in weights)


def test_the_time_between_two_processes_of_a_run_does_not_count(folder, clock, caplog, monkeypatch):
    config = _toy(folder, "stopped")
    clock.update_seconds = 6
    stop_after(monkeypatch, [2])
    with pytest.raises(Interrupted):
        train(config)
    clock.seconds += 10_000
    train(config)
    assert MESSAGE.findall(caplog.text) == [("1", "2.1")]


def test_a_run_that_asks_for_no_minutes_has_no_warning(folder, clock, caplog):
    chosen = _toy(folder, "chosen")
    train(chosen)
    clock.update_seconds = 10_000
    train(toy.config(folder, "other"))
    train(toy.config(folder, "same_choice", choice=str(chosen.folder)))
    assert MESSAGE.findall(caplog.text) == []
