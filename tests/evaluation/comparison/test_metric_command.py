"""Programs that score translations: run as typed, read strictly, ended in every case, and never started by a run."""

import json
import os
import signal
import sys
import tempfile
import threading
import time

import pytest

from mt.cli.composition import compose_jobs
from mt.config import CompareConfig
from tests import toy
from tests.in_process import call
from tests.processes import wait_until_ended

REFERENCES = toy.sentences(30, 3)
FIRST = [f"za {line}" if number % 2 else line for number, line in enumerate(REFERENCES)]
SECOND = [f"za {line}" if number == 5 else line for number, line in enumerate(REFERENCES)]
PROGRAM = """
import subprocess, sys, time
from pathlib import Path

def scores():
    texts = [Path(path).read_text(encoding="utf-8").splitlines() for path in sys.argv[1:4]]
    assert len(texts[0]) == len(texts[1]) == len(texts[2]) == 30
    return [0.5 if hypothesis.startswith("za ") else 1.0 for hypothesis in texts[1]]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with texts, and an empty one for temporary files, which has to be empty again at the end."""
    for name, lines in (("a", FIRST), ("b", SECOND), ("ref", REFERENCES), ("src", REFERENCES)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    yield tmp_path
    assert list(temporary.iterdir()) == []


def _program(folder, code, name="score"):
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{PROGRAM}{code}\n")
    path.chmod(0o755)


def _compare(folder, *words, command="./score {source} {hypothesis} {reference}"):
    usual = "first=a second=b references=ref source=src target_language=yy output=o bootstrap_samples=100"
    return call(
        "compare", *usual.split(), "randomization_trials=1000", f"metric.command={command}", *words, folder=folder
    )


def _paired(folder):
    return json.loads((folder / "o/comparison.json").read_text())["verdicts"][0]["over_sentences"][-1]


NUMBERS = "for score in scores(): print(score)"
AS_COMET = """
values = scores()
for number, score in enumerate(values): print(f"{sys.argv[2]}\\tSegment {number}\\tscore: {score:.4f}")
print(f"{sys.argv[2]}\\tscore: {sum(values) / len(values):.4f}")
"""
AS_OLD_COMET = """
for number, score in enumerate(scores()): print(f"Segment {number}\\tscore: {score:.4f}")
print("System score: 0.9")
"""


@pytest.mark.parametrize("code", [NUMBERS, AS_COMET, AS_OLD_COMET], ids=["numbers", "COMET", "COMET 1.0"])
def test_a_program_is_a_metric_of_the_report(folder, code):
    _program(folder, code)
    _program(folder, "print('\\nName: score'); print('Version: 1.2')", "version")
    done = _compare(folder, "metric.version=./version --all", "metric.name=overlap")
    assert done.returncode == 0, done.stderr
    paired = _paired(folder)
    assert paired["metric"] == "overlap" and paired["higher_is_better"] and paired["decimals"] == 4
    assert (paired["baseline"]["score"], paired["system"]["score"]) == pytest.approx((0.75, 1 - 1 / 60))
    assert paired["differing_blocks"] == 14 and paired["p"] == 2 / 2**14
    text = (folder / "o/comparison.md").read_text()
    signature = (
        "mean of the segment scores of ./score {source} {hypothesis} {reference}; version: Name: score Version: 1.2"
    )
    assert paired["signature"] == signature and f"overlap {signature}." in text
    assert "one family of 4 tests, BLEU, chrF2, TER, overlap of b." in text


def test_a_program_has_its_own_name_and_may_count_errors(folder):
    _program(folder, "for score in scores(): print(1 - score)\nprint('model loaded', file=sys.stderr)")
    done = _compare(folder, "better=lower")
    assert done.returncode == 0, done.stderr
    paired = _paired(folder)
    assert paired["metric"] == "score" and not paired["higher_is_better"]
    assert paired["signature"].endswith("; version: not asked (metric.version)")
    assert "metric.command on b; it wrote to standard error: “model loaded”" in done.stderr


def test_no_character_of_a_text_shifts_its_lines(folder):
    breaking = ["\r", "\N{LINE SEPARATOR}", "\x0b", "\x85", "\x1c"]
    for name in ("src", "b", "ref"):
        lines = (folder / name).read_text().splitlines()
        lines[2:7] = [f"{line} x{mark}y" for line, mark in zip(lines[2:7], breaking, strict=True)]
        (folder / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
    _program(folder, NUMBERS)
    done = _compare(folder)
    assert done.returncode == 0, done.stderr
    assert _paired(folder)["system"]["score"] == pytest.approx(1 - 1 / 60)


def test_the_first_of_several_references_is_scored(folder):
    _program(folder, NUMBERS)
    done = _compare(
        folder, "references=[ref,src]", "source=null", command="./score {reference} {hypothesis} {reference}"
    )
    assert done.returncode == 0, done.stderr
    assert _paired(folder)["signature"].endswith("; of the first reference")


@pytest.mark.parametrize(
    ("code", "status", "told"),
    [
        ("print('no model', file=sys.stderr); sys.exit(3)", 1,
         "metric.command on a: ended with exit status 3; it wrote to standard error: “no model”"),
        ("import os; os.abort()", 1, "ended with exit status -6"),
        ("for score in scores()[1:]: print(score)\nprint('cut', file=sys.stderr)", 2,
         "printed 29 scores for 30 sentences; it wrote to standard error: “cut”"),
        ("for score in [*scores(), 1]: print(score)", 2, "printed 31 scores for 30 sentences"),
        ("pass", 2, "printed 0 scores for 30 sentences"),
        ("print('Loading…')", 2, "line 1 of its output is “Loading…”; it is to print one number"),
        ("for score in scores(): print(score)\nprint()", 2, "line 31 of its output is “”"),
        ("for score in scores(): print(score, score)", 2, "line 1 of its output is “1.0 1.0”"),
        ("for score in scores(): print('nan')", 2, "line 1 of its output is “nan”"),
        ("for score in scores(): print('x' * 900)", 2, "(900 characters)”"),
        ("print('Segment 0\\tscore: 1')\nprint(1)", 2, "line 2 of its output is “1”"),
        ("print(1)\nprint('Segment 1\\tscore: 1')", 2, "line 2 of its output is “Segment 1\tscore: 1”"),
        ("print('Segment 0\\tscore: 1')\nprint('Segment 2\\tscore: 1')", 2, "line 2 of its output is “Segment 2"),
        ("print('Segment 0\\tscore: 1\\tvariance: 1')", 2, "line 1 of its output is “Segment 0"),
        ("print('score: 1')", 2, "line 1 of its output is “score: 1”"),
    ],
)  # fmt: skip
def test_a_program_that_fails_or_prints_something_else_is_quoted(folder, code, status, told):
    _program(folder, code)
    done = _compare(folder)
    assert (done.returncode, told in done.stderr, "Traceback" in done.stderr) == (status, True, False), done.stderr
    assert not list((folder / "o").iterdir())


WITH_A_CHILD = """
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
Path("written").write_text(str(child.pid))
Path("written").rename("child")
"""


@pytest.mark.parametrize("code", ["time.sleep(600)", "while True: print('0.5 ' * 2**20)", NUMBERS], ids=str.split)
def test_nothing_goes_on_that_a_program_has_started(folder, code, monkeypatch):
    """It hangs, floods, or leaves a child behind."""
    monkeypatch.setattr("mt.evaluation.comparison.metric_command.MAX_OUTPUT_BYTES", 2**22)
    _program(folder, WITH_A_CHILD + code)
    done = _compare(folder, "metric.minutes=0.05")
    told = {"time": "not done after 0.05 minutes; set metric.minutes", "whil": "prints more than 4,194,304 bytes"}
    assert told.get(code[:4], "report: ") in done.stderr
    assert done.returncode == {"time": 1, "whil": 2}.get(code[:4], 0)
    wait_until_ended(int((folder / "child").read_text()))


def test_ctrl_c_ends_the_program_too(folder):
    _program(folder, f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN){WITH_A_CHILD}time.sleep(600)")

    def interrupt():
        end = time.monotonic() + 60
        while not (folder / "child").exists() and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    done = _compare(folder)
    thread.join()
    assert (done.returncode, done.stderr.splitlines()[-1]) == (130, "interrupted")
    wait_until_ended(int((folder / "child").read_text()))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["metric.command=nosuch {hypothesis}"], "metric.command: nosuch: no such program; install it, or"),
        (["metric.version=nosuch -v"], "metric.version: nosuch: no such program"),
        (["metric.command=./score {hypotheses} {hypothesis}"], "has {hypotheses}, which is none of source, hypothesis"),
        (["metric.command=./score {reference}"], "has no {hypothesis}, where the path of the translations belongs"),
        (["metric.command=./score '{hypothesis}"], "No closing quotation"),
        (["metric.command= "], "metric.command=[]: must have at least 1 item"),
        (["source=null"], "metric.command has {source}, and the sources are not known: add source=FILE"),
        (["metric.name=TER"], "TER is computed by the comparison itself"),
        (["scores.score=[a,b]"], "metric.name=score is also a name in scores"),
        (["better.scor=lower"], "better.scor is not a name in scores or metric.name; did you mean score?"),
        (["metric.minutes=0"], "must be greater than 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_mistakes_are_found_before_anything_runs(folder, words, told):
    _program(folder, "Path('started').touch()")
    done = _compare(folder, *words)
    assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr, done.stderr
    assert not (folder / "started").exists() and not (folder / "o").exists()


def test_a_name_without_a_program_is_refused(folder):
    done = call("compare", "first=a", "second=b", "metric.name=x", folder=folder)
    assert done.returncode == 2 and "metric.name=x needs command" in done.stderr


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("score {hypothesis}", ["score", "{hypothesis}"]),
        ("'my score' --layers 1,2 {hypothesis}", ["my score", "--layers", "1,2", "{hypothesis}"]),
        ('score "a \\"b" \'{"x": 1}\' é#= {hypothesis}', ["score", 'a "b', '{"x": 1}', "é#=", "{hypothesis}"]),
        ("score [a] $HOME ; {hypothesis}", ["score", "[a]", "$HOME", ";", "{hypothesis}"]),
    ],
)
def test_a_command_is_split_as_a_shell_would(typed, words):
    (job,) = compose_jobs("compare", CompareConfig, ["first=a", "second=b", f"metric.command={typed}"], False)
    assert list(job.config.metric.command) == words


def test_a_program_and_files_score_the_outputs_of_runs_alike(runs, tmp_path):
    """Several seeds, listed in another order than that of the seeds."""
    _program(tmp_path, "for line in open(sys.argv[1]): print(len(line) % 9)")
    names = [["transformer-2", "transformer-1"], ["rnn-1", "rnn-2"]]
    for name in (name for system in names for name in system):
        lines = (runs[name] / "scored/test.hypothesis").read_text().splitlines()
        (tmp_path / name).write_text("".join(f"{(len(line) + 1) % 9}\n" for line in lines))
    first, second = ([str(runs[name]) for name in system] for system in names)
    settings = {"studied_sentences": 0, "timed_sentences": 0, "bootstrap_samples": 100, "randomization_trials": 1000}
    words = [f"{key}={value}" for key, value in settings.items()]
    done = call(
        "compare", f"first=[{','.join(first)}]", f"second=[{','.join(second)}]", "output=o",
        "metric.command=./score {hypothesis} {source}", "scores.files=[[transformer-2,transformer-1],[rnn-1,rnn-2]]",
        *words, folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "o/comparison.json").read_text())
    for system in found["systems"]:
        assert system["scores"]["files"]["outputs"] == system["scores"]["score"]["outputs"]
        assert len(set(system["scores"]["files"]["outputs"])) == 2
    tests = {test["metric"]: (test["p"], test["difference"]) for test in found["verdicts"][0]["over_sentences"]}
    assert tests["files"] == tests["score"] and len(tests) == len(found["verdicts"][0]["over_seeds"]) == 5


def test_no_run_can_name_a_program(runs, tmp_path):
    _program(tmp_path, "Path('started').touch()")
    run = toy.copy_to_change(runs["rnn-1"], tmp_path / "run")
    config = run / "config.yaml"
    config.write_text(config.read_text() + "metric:\n  command: ./score {hypothesis}\n")
    toy.record_checksums(run)
    done = call("compare", f"first={runs['rnn-2']}", "second=run", "output=o", folder=tmp_path)
    assert done.returncode == 2 and "metric: Extra inputs are not permitted" in done.stderr
    assert not (tmp_path / "started").exists()
