"""train.py and translate.py as a user starts them: exit codes, streams, files."""

import json
import os
import subprocess
import sys
from subprocess import PIPE

import pytest

from tests import toy
from tests.in_process import call
from tests.processes import PROJECT, run, start


def _command(folder, script, *arguments, stdin=b""):
    return run(script, *arguments, cwd=folder, input=stdin)


def _train_arguments(*more):
    return [
        "data=files", "data.source_language=xx", "data.target_language=yy", "data.cleaning=false",
        "data.train=[train.xx,train.yy]", "data.valid=[valid.xx,valid.yy]", "data.test=[test.xx,test.yy]",
        "model.width=32", "model.feed_forward=64", "model.heads=2", "model.encoder_layers=1", "model.decoder_layers=1",
        "tokenizer.vocabulary_size=320", "training.max_updates=20", "training.validate_every=10",
        "training.batch_tokens=256", "training.schedule.warmup=5", "training.precision=fp32", "name=toy", *more,
    ]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("commands")
    toy.write_corpus(folder, "reverse", train=600)
    done = _command(folder, "train.py", *_train_arguments())
    assert done.returncode == 0, done.stderr.decode()
    return folder, done


def test_training_logs_to_stderr_only(trained):
    folder, done = trained
    said = done.stderr.decode()
    assert done.stdout == b""
    for expected in (
        "600 pairs read",
        "parameters",
        "validation loss",
        "hypothesis",
        "test BLEU",
        "runs/toy/model.safetensors",
    ):
        assert expected in said
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {"runs"}


def test_resume_accepts_changed_machine_settings(trained, tmp_path):
    folder, _ = trained
    files = f"data.train=[{folder}/train.xx,./train.yy]"
    again = _command(folder, "train.py", *_train_arguments(files, "training.threads=1", "training.compile=true"))
    assert again.returncode == 0, again.stderr.decode()
    assert b"is finished" in again.stderr and b"test BLEU" in again.stderr


def test_lines_in_lines_out_through_pipes_and_files(trained):
    folder, _ = trained
    lines = (folder / "test.xx").read_bytes()
    hostile = lines + b"\n \n\xff\xfe\nba\xe2\x80\xa8de\r\nfi\rgo\nno newline at the end"
    piped = _command(folder, "translate.py", "run=runs/toy", stdin=hostile)
    assert piped.returncode == 0, piped.stderr
    assert piped.stdout.count(b"\n") == hostile.count(b"\n") + 1
    assert piped.stdout.startswith((folder / "runs/toy/scored/test.hypothesis").read_bytes())
    # What is not UTF-8 is nothing that could be translated, so it comes back, as replacement characters.
    assert piped.stdout.split(b"\n")[40:43] == [b"", b"", "\ufffd\ufffd".encode()]
    assert b"line 43 of the input is not UTF-8" in piped.stderr
    (folder / "in.txt").write_bytes(hostile)
    filed = _command(folder, "translate.py", "run=runs/toy", "input=in.txt", "output=out.txt")
    assert filed.returncode == 0 and filed.stdout == b""
    assert (folder / "out.txt").read_bytes() == piped.stdout


def test_closed_streams_are_reported(trained, monkeypatch):
    """Of which Python makes None, as a process of its own shows."""
    folder, _ = trained
    command = f"{sys.executable} {PROJECT / 'translate.py'} run=runs/toy >&-"
    done = subprocess.run(command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
    assert done.returncode == 2 and b"set output=FILE" in done.stderr and b"Traceback" not in done.stderr
    monkeypatch.setattr(sys, "stdin", None)
    refused = call("translate", "run=runs/toy", folder=folder)
    assert refused.returncode == 2 and "set input=FILE" in refused.stderr


def test_standard_output_and_pipes_are_written_directly(trained):
    folder, _ = trained
    plain = _command(folder, "translate.py", "run=runs/toy", "input=test.xx").stdout
    os.mkfifo(folder / "in.pipe")
    os.mkfifo(folder / "out.pipe")
    stdout = _command(folder, "translate.py", "run=runs/toy", "input=test.xx", "output=/dev/stdout")
    assert stdout.returncode == 0 and stdout.stdout == plain
    with (folder / "all.txt").open("wb", buffering=0) as file:
        file.write(b"before\n")
        words = "run=runs/toy", "input=test.xx", "output=/dev/stdout"
        assert start("translate.py", *words, cwd=folder, stdout=file).wait(60) == 0
        file.write(b"after\n")
    assert (folder / "all.txt").read_bytes() == b"before\n" + plain + b"after\n"
    (folder / "all.txt").rename(folder / "all.partial")
    with (folder / "all.partial").open("rb") as file:
        refused = start("translate.py", "run=runs/toy", "output=all", cwd=folder, stdin=file, stderr=PIPE)
        assert b"would overwrite the input" in refused.communicate(timeout=60)[1] and refused.returncode == 2
    assert (folder / "all.partial").read_bytes().startswith(b"before")
    around = subprocess.Popen("cat out.pipe > read.txt & cat test.xx > in.pipe; wait", shell=True, cwd=folder)
    assert _command(folder, "translate.py", "run=runs/toy", "input=in.pipe", "output=out.pipe").returncode == 0
    assert around.wait(60) == 0
    assert (folder / "out.pipe").is_fifo() and (folder / "read.txt").read_bytes() == plain


def test_n_best_and_forced_scores_are_one_json_line_each(trained):
    folder, _ = trained
    n_best = _command(folder, "translate.py", "run=runs/toy", "decoding.n_best=2", stdin=b"ba de\n\nfi\n")
    lines = [json.loads(line) for line in n_best.stdout.splitlines()]
    assert [line["source"] for line in lines] == ["ba de", "", "fi"]
    assert [len(line["hypotheses"]) for line in lines] == [2, 1, 2]
    assert lines[1]["hypotheses"] == [{"text": "", "score": None}]
    (folder / "reference.txt").write_text("de ba\nx\nfi\n")
    forced = _command(folder, "translate.py", "run=runs/toy", "reference=reference.txt", stdin=b"ba de\n\nfi\n")
    scores = [json.loads(line)["hypotheses"][0] for line in forced.stdout.splitlines()]
    assert [one["text"] for one in scores] == ["de ba", "x", "fi"]
    assert [one["score"] is None for one in scores] == [False, True, False]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ["data.train=[missing.xx,train.yy]", "data.test=[test.xx,runs]"],
            b"data.train: missing.xx: no such file; correct the path\ndata.test: runs: a folder; name its files\n",
        ),
        (["runs=train.xx"], b"runs=train.xx: the folder train.xx/refused cannot be created: Not a directory"),
        (["training.init_from=nowhere"], b"training.init_from=nowhere: no such folder or file"),
        (["data.max_length=1"], b"data.max_length"),
    ],
    ids=lambda value: value[0][:80] if isinstance(value, list) else "",
)
def test_bad_input_is_one_clear_message_and_leaves_nothing_half_done(trained, change, expected):
    folder, _ = trained
    refused = _command(folder, "train.py", *_train_arguments("name=refused"), *change)
    assert refused.returncode == 2, refused.stderr
    assert expected in refused.stderr
    assert b"Traceback" not in refused.stderr
    assert not (folder / "runs/refused").exists()
