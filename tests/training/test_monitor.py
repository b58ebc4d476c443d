"""Tests of the monitor: records, also of a run that resumes from an earlier checkpoint, and the progress bar."""

import json
import os
import select
import termios

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.summary.writer import event_file_writer

from mt.training import validation as monitor_module
from mt.training.checkpoint import Progress
from mt.training.validation import Monitor
from tests.clock import Clock


@pytest.fixture(autouse=True)
def _first_event_files(monkeypatch):
    """TensorBoard reads the files of one second in the order of their names, in which the tenth precedes the ninth."""
    monkeypatch.setattr(event_file_writer, "_global_uid", event_file_writer.AtomicCounter(0))


def _record(run, update, metrics_bytes, steps):
    with Monitor(run, Progress(update=update, metrics_bytes=metrics_bytes), max_updates=100) as monitor:
        begun = monitor.flush()
        for step in steps:
            monitor.record("train", step, {"loss": 1.0 / step})
        return begun, monitor.flush()


def _board(run):
    board = EventAccumulator(str(run / "tensorboard"))
    board.Reload()
    return board


def _board_steps(run):
    return [point.step for point in _board(run).Scalars("train/loss")]


def test_monitor_truncates_records_to_checkpoint(tmp_path):
    _, at_10 = _record(tmp_path, 0, 0, [5, 10])
    _record(tmp_path, 10, at_10, [15, 20, 25])  # killed here: no checkpoint knows of these
    begun, _ = _record(tmp_path, 10, at_10, [15])
    assert begun == at_10
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == _board_steps(tmp_path) == [5, 10, 15]


def test_monitor_of_restarted_run_removes_first_attempt(tmp_path):
    _record(tmp_path, 0, 0, [5, 10, 15])
    _record(tmp_path, 0, 0, [5])
    assert _board_steps(tmp_path) == [5]


def test_monitor_records_non_finite_values_as_null(tmp_path):
    with Monitor(tmp_path, Progress(), max_updates=1) as monitor:
        monitor.record("train", 1, {"loss": float("nan"), "gradient_norm": float("inf"), "epoch": 0})
        monitor.flush()
    line = json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=lambda constant: 1 / 0)
    assert line == {"step": 1, "split": "train", "loss": None, "gradient_norm": None, "epoch": 0}


def test_show_samples_escapes_control_characters(tmp_path):
    with Monitor(tmp_path, Progress(), max_updates=1) as monitor:
        monitor.show_samples(1, [("a\x1b[2Jb", "c|d", "e\nf")])
        monitor.flush()
    text = _board(tmp_path).Tensors("samples/text_summary")[0].tensor_proto.string_val[0].decode()
    assert text.splitlines()[-1] == "| a\\x1b[2Jb | c\\|d | e f |"


def test_show_training_logs_remaining_time(tmp_path, monkeypatch, caplog):
    clock = Clock()
    monkeypatch.setattr(monitor_module, "time", clock)
    with caplog.at_level("INFO"), Monitor(tmp_path, Progress(update=10), max_updates=100) as monitor:
        clock.seconds += 60  # for 20 updates of this process
        monitor.show_training(30, 1.5, 1234.4)
    assert "update 30/100  loss 1.500  1,234 target tokens/s  3.5 minutes to go" in caplog.text


def test_show_training_uses_progress_bar_in_terminal(tmp_path, monkeypatch, caplog):
    master, slave = os.openpty()
    termios.tcsetwinsize(slave, (24, 100))
    with open(slave, "w") as terminal, open(master, "rb", buffering=0) as screen:
        monkeypatch.setattr("sys.stderr", terminal)
        with Monitor(tmp_path, Progress(update=10), max_updates=100) as monitor:
            monitor.advance()
            monitor.show_training(11, 1.2344, 5678.9)
        terminal.flush()
        shown = ""
        while "5,679 tokens/s" not in shown and select.select([screen], [], [], 5)[0]:
            shown += screen.read(10_000).decode()
    assert "10/100" in shown and "loss 1.234, 5,679 tokens/s" in shown
    assert not caplog.messages
