"""``python -m mt runs``: the table of the runs in a folder."""

import os
import re
import subprocess
import sys

import pytest

from mt.storage.run_folder import CONFIG, RESULTS
from tests import toy
from tests.in_process import call
from tests.processes import PROJECT

RELEASES = PROJECT / "tests/releases/1.0.0"
TABLE = r"""started           languages  model            state            BLEU   chrF2  validation  metric  run
YYYY-MM-DD hh:mm  xx→pt-BR   rnn_attention 8  finished         85.25  87.44  80.66       bleu    finished
YYYY-MM-DD hh:mm  xx→yy      transformer 16   stopped early    92.80  93.04              bleu    早停 \x1b[2J
YYYY-MM-DD hh:mm  xx→yy      transformer 8    update 20 of 40                0.00        bleu    unfinished
YYYY-MM-DD hh:mm  xx→yy      transformer 8    no checkpoint                              bleu    begun
YYYY-MM-DD hh:mm                              corrupted                                          corrupted
"""
NAMES = {
    "finished": "rnn",
    "早停\n\x1b[2J": "transformer",
    "unfinished": "unfinished",
    "begun": "unfinished",
    "corrupted": "rnn",
}


def test_each_run_has_its_state_and_scores(tmp_path):
    runs = [toy.copy_to_change(RELEASES / release, tmp_path / name) for name, release in NAMES.items()]
    finished, stopped, _, begun, corrupted = runs
    config = (finished / CONFIG).read_text()
    (finished / CONFIG).write_text(config.replace("target_language: yy", "target_language: pt-BR"))
    toy.change_json(stopped / RESULTS, lambda results: results.update(stopped_early=True, best_valid_score=None))
    (begun / "checkpoints").rename(begun / "elsewhere")
    (corrupted / CONFIG).write_bytes(b"\xff")
    for day, run in enumerate(runs, 1):
        os.utime(run / CONFIG, (0, day * 86400))
    done = call("runs", "runs=.", folder=tmp_path)
    assert re.sub(r"1970-01-0\d \d\d:\d\d", "YYYY-MM-DD hh:mm", done.stdout) == TABLE


@pytest.mark.parametrize("name", ["missing", "."])  # the second is empty
def test_a_folder_without_runs_is_refused(tmp_path, name):
    done = call("runs", f"runs={name}", folder=tmp_path)
    assert done.returncode == 2
    assert f"runs={name}: no such folder, or no runs in it" in done.stderr


def test_a_hundred_runs_are_listed_without_pytorch(tmp_path):
    for number in range(100):
        toy.copy_to_change(RELEASES / "unfinished", tmp_path / str(number))
    program = "import sys; sys.modules['torch'] = None; from mt.cli.command_line import run; run(['runs', sys.argv[1]])"
    words = [sys.executable, "-c", program, f"runs={tmp_path}"]
    assert subprocess.check_output(words, cwd=PROJECT).count(b"update 20 of 40") == 100
