"""The benchmark for GPUs, at toy size on the CPU: ``python -m tests.benchmarks.gpu``."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests import toy
from tests.benchmarks.gpu.__main__ import PARTS, PROJECT, Options, run_process
from tests.processes import wait_until_ended

HANGS_WITH_A_CHILD = """
import json, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("no figure")
print(json.dumps({"figure": 1, "child": child.pid}), flush=True)
time.sleep(600)
"""


def _run(code: str, limit: float, folder: Path) -> tuple[str | None, list[dict]]:
    figures: list[dict] = []
    return run_process([sys.executable, "-c", code], limit, folder / "log", figures.append), figures


def test_hanging_part_is_killed_with_its_processes(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.benchmarks.gpu.__main__.GRACE_SECONDS", 0.5)
    failure, figures = _run(HANGS_WITH_A_CHILD, 2, tmp_path)
    assert failure == "ended after 2 s"
    assert [figure["figure"] for figure in figures] == [1]
    wait_until_ended(figures[0]["child"])


def test_failed_part_reports_its_error(tmp_path):
    failure, figures = _run("print('[1]'); print('{\"a\": 2}'); 1 / 0", 60, tmp_path)
    assert figures == [{"a": 2}]
    assert failure and failure.startswith("exit code 1") and "ZeroDivisionError" in failure
    assert _run("print('{}')", 60, tmp_path) == (None, [{}])


def test_selected_parts_include_their_dependencies():
    assert [part.name for part in Options(parts="decoding,small").selected()] == [
        "preparation", "base_run", "small", "decoding",
    ]  # fmt: skip
    assert [part.name for part in Options(parts="multi30k").selected()] == ["multi30k"]
    assert Options().selected() == list(PARTS) and sum(part.seconds for part in PARTS) <= 350
    with pytest.raises(SystemExit, match="parts=smal: unknown; there are preparation, "):
        Options(parts="smal,big").selected()


def test_benchmark_skips_parts_without_time(tmp_path):
    """A part may not take the time of later ones. The process that waits for them has not imported PyTorch."""
    words = ["toy=true", "parts=plain,multi30k", "seconds=78", f"data={tmp_path}/none", f"output={tmp_path}/out"]
    code = f"import sys; sys.argv[1:] = {words}; from tests.benchmarks.gpu.__main__ import main; import atexit; "
    code += "atexit.register(lambda: print('torch' in sys.modules)); main()"
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=False)
    *lines, has_torch = done.stdout.splitlines()
    assert done.returncode == 1 and has_torch == "False", done.stderr
    assert lines == (tmp_path / "out").read_text().splitlines()
    outcomes = [{name: value for name, value in json.loads(line).items() if name != "at"} for line in lines]
    assert outcomes[-4] | {"seconds": 0} == {"part": "preparation", "seconds": 0, "failed": "ended after 1 s"}
    assert outcomes[-3:] == [
        {"part": "plain", "skipped": "preparation failed"},
        {"part": "multi30k", "skipped": f"there is no folder {tmp_path}/none; set data=…"},
        {"parts": "done", "complete": False},
    ]


@pytest.mark.slow
def test_benchmark_parts_print_their_figures(tmp_path):
    sentences = iter(toy.sentences(180, seed=3))
    for split, count in (("train", 60), ("val", 8), ("test_2016_flickr", 8)):
        for language in ("en", "de"):
            (tmp_path / f"{split}.{language}").write_text("".join(f"{next(sentences)}\n" for _ in range(count)))
    words = ["toy=true", "seconds=3000", f"data={tmp_path}", f"output={tmp_path}/out"]
    command = [sys.executable, "-m", "tests.benchmarks.gpu", *words]
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line for line in lines if "failed" in line or "warning" in line] == []
    assert done.returncode == 0 and lines[-1]["complete"]
    figures: dict[str, dict] = {}
    for line in lines[:-1]:
        figures.setdefault(line.pop("part"), {}).update(line)
    assert figures.keys() == {part.name for part in PARTS}
    assert all("done" in values for name, values in figures.items() if name != "base_compiled"), figures
    steps = ["base_packed", "base_without_graphs", "base_padded", "marian", "plain", "small", "lstm", "big"]
    measured = {"target_tokens_per_second", "ms_per_update", "share_of_products", "launches", "padding_share"}
    for name in steps:
        assert measured | {"first_update_seconds"} <= figures[name].keys(), name
    for name in ("base_packed", "base_without_graphs", "small", "big"):
        values = figures[name]
        assert values["check"] == "passed" and max(values["loss_deviation"], values["gradient_deviation"]) < 0.05, name
        assert values["same_seed_same_loss"] and values["other_seed_other_loss"], name
    assert "check" not in figures["base_padded"]
    assert figures["base_run"]["batching"] == "padded" and figures["base_run"]["target_tokens_per_second"] > 0
    assert {"sentences_per_second"} <= figures["decoding"].keys()
    assert {"test_bleu", "run_seconds", "best_validation_bleu"} <= figures["multi30k"].keys()
    resumed = [line for line in lines if "same_bytes" in line]
    assert [(line["batching"], line["stopped"], line["same_bytes"]) for line in resumed] == [
        ("padded", True, True), ("packed", True, True),
    ]  # fmt: skip
