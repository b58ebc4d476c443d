"""The command ``synthesize``: pairs of the table, resumption, workers, held-out sentences and errors."""

import json
import os
import shutil
from itertools import count
from pathlib import Path

import pytest

from mt.config import SynthesisConfig, TrainConfig
from mt.core import output as output_module
from mt.core.errors import InputError
from mt.core.language import UNKNOWN_LANGUAGE
from mt.core.process import exit_status
from mt.data.corpus import load_corpus
from mt.data.pairs import sentence_key
from mt.storage.run_folder import read_config
from mt.storage.validation import read_json
from mt.synthesis import command
from mt.synthesis.command import synthesize
from mt.synthesis.source_lines import held_out_keys, load_run_corpus
from mt.text.placeholders import CORPUS_TAG
from mt.training.command import train
from mt.translation.translator import Translator
from tests import toy

PAIRS = 160


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A corpus, a run of each direction, and a text in the target language. The test data contain a training
    sentence."""
    folder = tmp_path_factory.mktemp("synthesis")
    toy.write_corpus(folder, "reverse", train=PAIRS)
    for side in ("xx", "yy"):
        lines = (folder / f"train.{side}").read_text().splitlines()
        with (folder / f"test.{side}").open("a") as test:
            test.write(f"{lines[7]}\n")
    sides = {"source_language": "yy", "target_language": "xx"} | {
        split: (str(folder / f"{split}.yy"), str(folder / f"{split}.xx")) for split in ("train", "valid", "test")
    }
    training = {"max_updates": 100, "validate_every": 100}
    train(toy.config(folder, "forward", training=training))
    train(toy.config(folder, "backward", training=training, data=sides))
    text = [" ".join(reversed(line.split())) for line in toy.sentences(60, seed=5)]
    (folder / "mono.yy").write_bytes("\n".join([*text, "", "  ", "x\u2028y ba"]).encode() + b"\nb\xffa de\n")
    return folder


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr("mt.translation.lines.WINDOW_LINES", 32)


def config(folder, output, method="back_translation", **changes):
    settings: dict[str, object] = {"method": method, "output": str(output), "threads": 1}
    settings |= {
        "back_translation": {"run": str(folder / "runs/backward"), "input": str(folder / "mono.yy")},
        "distillation": {"run": str(folder / "runs/forward")},
    }[method]
    return SynthesisConfig.model_validate(settings | changes)


def made(config):
    """Run the command. Return the rows of the table and its provenance."""
    synthesize(config)
    output = Path(config.output)
    record = json.loads(output.with_suffix(".provenance.json").read_text())
    assert not list(output.parent.glob("*.partial*"))
    return [json.loads(line) for line in output.read_bytes().split(b"\n")[:-1]], record


def test_back_translation_pairs_each_line_with_its_translation(folder, tmp_path):
    rows, record = made(config(folder, tmp_path / "back.jsonl"))
    lines = (folder / "mono.yy").read_bytes().decode("utf-8", "surrogateescape").split("\n")[:-1]
    translated = Translator.load(folder / "runs/backward").hypotheses(lines)
    (done,) = record["passes"]
    assert done["lines"] == len(lines) == 64
    assert done["pairs"] == len(rows) == len(lines) - sum(done["left_out"].values())
    assert done["left_out"]["blank line"] == 2 and done["left_out"]["not UTF-8"] == 1
    assert len(rows) > 30
    numbers = [row["line"] for row in rows]
    assert numbers == sorted(set(numbers))
    for row in rows:
        best = translated[row["line"] - 1][0]
        assert (row["yy"], row["xx"]) == (lines[row["line"] - 1], best.text)
        assert row["score"] == pytest.approx(best.score, abs=2e-4)
    assert record["size"] == (tmp_path / "back.jsonl").stat().st_size
    assert record["resolved_settings"][0]["beam_size"] == 2 and record["resolved_settings"][0]["engine"] == "torch"


STOPS = [(Translator, "hypotheses", 2), (command, "write_json", 1), (output_module, "replace_durably", 1)]
"""Functions and the call of each at which the command is stopped."""


@pytest.mark.parametrize(
    ("method", "decoding"),
    [("back_translation", {}), ("back_translation", {"method": "sample"}), ("distillation", {"beam_size": 1})],
    ids=str,
)
def test_resumed_synthesis_writes_same_table(folder, method, decoding, tmp_path):
    whole, stopped = (config(folder, tmp_path / name, method, decoding=decoding) for name in ("a.jsonl", "b.jsonl"))
    synthesize(whole)
    for holder, function, call in STOPS:
        _stop(stopped, holder, function, call)
        assert not Path(stopped.output).exists()
        synthesize(stopped)
        assert _written(Path(stopped.output)) == _written(Path(whole.output))
        assert {path.suffixes[-1] for path in tmp_path.iterdir()} == {".jsonl", ".json"}
        Path(stopped.output).unlink()


def _written(output):
    record = read_json(output.with_suffix(".provenance.json"))
    del record["code_revision"]  # a developer may change the code meanwhile
    return output.read_bytes(), record


def _stop(config, holder, function, call):
    """Run the command up to the n-th call of a function."""
    calls = count(1)
    original = getattr(holder, function)

    def dying(*arguments, **named):
        if next(calls) == call:
            raise KeyboardInterrupt
        return original(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holder, function, dying)
        with pytest.raises(KeyboardInterrupt):
            synthesize(config)


def test_two_workers_write_same_table(folder, tmp_path):
    rows, record = made(config(folder, tmp_path / "one.jsonl"))
    rows_of_two, record_of_two = made(config(folder, tmp_path / "two.jsonl", workers=2))
    scores, scores_of_two = ([row.pop("score") for row in table] for table in (rows, rows_of_two))
    assert rows_of_two == rows
    assert scores_of_two == pytest.approx(scores, abs=2e-4)
    assert record_of_two["passes"] == record["passes"]


def test_finished_table_is_unchanged(folder, tmp_path, caplog):
    first = config(folder, tmp_path / "back.jsonl")
    made(first)
    before = (tmp_path / "back.jsonl").stat().st_mtime_ns
    # Version 1.0.0 recorded examples, too.
    toy.change_json(tmp_path / "back.provenance.json", lambda record: record["passes"][0].update(examples={}))
    synthesize(first.model_copy(update={"threads": 2}))
    assert "is finished" in caplog.text and (tmp_path / "back.jsonl").stat().st_mtime_ns == before


def test_distillation_translates_only_training_sources(folder, tmp_path):
    rows, record = made(config(folder, tmp_path / "distilled.jsonl", "distillation"))
    sources = (folder / "train.xx").read_text().splitlines()
    (done,) = record["passes"]
    assert done["lines"] == len(sources) == PAIRS
    assert all(row["xx"] == sources[row["line"] - 1] for row in rows)
    assert 8 not in [row["line"] for row in rows]
    assert done["left_out"]["shared with valid or test"]


def test_distilled_pairs_exclude_held_out_sentences(folder, tmp_path, monkeypatch):
    keys = held_out_keys(load_run_corpus(folder / "runs/forward"))
    rows, _ = made(config(folder, tmp_path / "all.jsonl", "distillation"))
    assert not any(
        sentence_key(row["xx"]) in keys["source"] or sentence_key(row["yy"]) in keys["target"] for row in rows
    )
    translation = rows[0]["yy"]
    keys["target"] |= {sentence_key(f"{translation.upper()}!")}
    monkeypatch.setattr(command, "held_out_keys", lambda corpus: keys)
    fewer, _ = made(config(folder, tmp_path / "fewer.jsonl", "distillation"))
    assert fewer == [row for row in rows if row["yy"] != translation]


def test_mixture_tags_table_and_drops_held_out_sentences(folder, tmp_path):
    (tmp_path / "mono.yy").write_bytes((folder / "test.yy").read_bytes() + (folder / "mono.yy").read_bytes())
    output = tmp_path / "back.jsonl"
    rows, _ = made(config(folder, output, input=str(tmp_path / "mono.yy")))
    keys = held_out_keys(load_run_corpus(folder / "runs/forward"))
    usable = [
        row for row in rows if {sentence_key(row["xx"])} - keys["source"] and {sentence_key(row["yy"])} - keys["target"]
    ]
    assert len(rows) - len(usable) > 20 and len(usable) > 20
    named = read_config(folder / "runs/forward").data.model_dump(include={"kind", "train", "valid", "test"})
    more = {"kind": "table", "train": str(output), "tagged": True}
    values = toy.config(folder, "student", runs=str(tmp_path / "runs")).model_dump()
    data = {key: values["data"][key] for key in ("source_language", "target_language", "cleaning")}
    data |= {"kind": "mixture", "corpora": [named, more]}
    student = TrainConfig.model_validate(values | {"data": data})
    corpus = load_corpus(student.data)
    assert corpus.train["source"][PAIRS:] == [f"{CORPUS_TAG} {row['xx']}" for row in usable]
    train(student)
    translator = Translator.load(student.folder)
    tokenizer = translator.tokenizers.source
    assert len(tokenizer.encode([f"{CORPUS_TAG} ba"])[0]) - len(tokenizer.encode(["ba"])[0]) <= 2
    assert translator.translate([f"ba {CORPUS_TAG} de"])[0].count(CORPUS_TAG) == 1  # as any private-use character
    distilled, record = made(config(folder, tmp_path / "again.jsonl", "distillation", run=str(student.folder)))
    assert record["passes"][0]["lines"] == len(corpus.train) and not any(CORPUS_TAG in row["xx"] for row in distilled)


def refused(config, caplog):
    """Return the only error message of a command that writes no file."""
    folder = Path(config.output).parent
    before = sorted(folder.iterdir()) if folder.exists() else []
    caplog.clear()
    assert exit_status(lambda: synthesize(config)) == 2
    assert (sorted(folder.iterdir()) if folder.exists() else []) == before
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert len(errors) == 1
    return errors[0]


@pytest.fixture(scope="module")
def unusable(folder, tmp_path_factory):
    """A folder with inputs, outputs and runs that ``synthesize`` refuses."""
    unusable = tmp_path_factory.mktemp("unusable")
    shutil.copy(folder / "mono.yy", unusable / "mono.xx")
    toy.write_lines(unusable / "empty", [])
    toy.write_lines(unusable / "blank", ["", " "])
    toy.write_lines(unusable / "a.csv", ["ba,de"])
    toy.write_lines(unusable / "taken.jsonl", ["mine"])
    os.mkfifo(unusable / "pipe")
    (unusable / "folder.jsonl").mkdir()
    for name, old, new in (("moved", "train.xx", "gone.xx"), ("changed", "/test.", "/valid.")):
        text = toy.copy_to_change(folder / "runs/forward", unusable / name).joinpath("config.yaml").read_text()
        (unusable / name / "config.yaml").write_text(text.replace(old, new))
    return unusable


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("back_translation", {"input": "nowhere.yy"}, "nowhere.yy: no such file"),
        ("back_translation", {"input": "empty"}, "empty: the file is empty"),
        ("back_translation", {"input": "a.csv"}, "a.csv: .csv is a table; give a file with only the text"),
        ("back_translation", {"input": "pipe"}, "pipe: a pipe can be read only once"),
        ("back_translation", {"input": "blank"}, "none of 2 lines gave a pair"),
        ("back_translation", {"input": "mono.xx"}, "mono.xx has the suffix .xx, but"),
        ("back_translation", {"output": "taken.jsonl"}, "taken.provenance.json: cannot be read"),
        ("back_translation", {"output": "folder.jsonl"}, "choose another name, or delete"),
        ("distillation", {"run": "moved"}, "gone.xx"),
        ("distillation", {"run": "changed"}, "changed have changed since it was trained"),
    ],
    ids=str,
)
def test_synthesis_reports_unusable_input(folder, unusable, monkeypatch, caplog, method, settings, message):
    monkeypatch.chdir(unusable)
    assert message in refused(config(folder, **{"output": "out.jsonl", "method": method} | settings), caplog)


def test_synthesis_refuses_runs_of_different_directions(folder, tmp_path, caplog):
    runs = [str(folder / "runs" / name) for name in ("forward", "backward")]
    message = "backward translates yy→xx, but the first run translates xx→yy; give runs of one direction"
    assert message in refused(config(folder, tmp_path / "out.jsonl", run=runs), caplog)


def test_languages_of_model_without_languages_come_from_settings(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "choose_direction", lambda *_: (UNKNOWN_LANGUAGE, UNKNOWN_LANGUAGE))
    back = config(folder, tmp_path / "back.jsonl")
    with pytest.raises(InputError, match="set source_language and target_language"):
        command._pair_languages(back)
    back = back.model_copy(update={"source_language": "fr", "target_language": "en"})
    assert command._pair_languages(back) == {"source": "en", "target": "fr"}


def test_resumed_synthesis_refuses_other_settings(folder, tmp_path, caplog):
    made(config(folder, tmp_path / "back.jsonl"))
    message = refused(config(folder, tmp_path / "back.jsonl", decoding={"beam_size": 1}), caplog)
    assert "decoding.beam_size: null then, now 1" in message and "\n  run" not in message
    (folder / "other.yy").write_text("ba de\n")
    message = refused(config(folder, tmp_path / "back.jsonl", input=str(folder / "other.yy")), caplog)
    assert "lines of the target side" in message
    _stop(config(folder, tmp_path / "stopped.jsonl"), Translator, "hypotheses", 2)
    message = refused(config(folder, tmp_path / "stopped.jsonl", decoding={"beam_size": 1}), caplog)
    assert "decoding.beam_size: null then, now 1" in message


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "back_translation"}, "needs a text to translate: set input=FILE"),
        ({"method": "distillation", "output": "a.tsv"}, "output=a.tsv gets JSON lines"),
        ({"method": "distillation", "decoding": {"n_best": 2}}, "each synthetic pair has one translation"),
        ({"method": "distillation", "decoding": {"seed": 2}}, "seed=2 is for method=sample"),
        ({"method": "distillation", "run": ("a", "b"), "decoding": {"engine": "ctranslate2"}}, "run has 2 models"),
    ],
)
def test_synthesis_config_rejects_inconsistent_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        SynthesisConfig.model_validate({"run": "a", "output": "a.jsonl"} | settings)
