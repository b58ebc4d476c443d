"""What cannot be compared is refused, with the reason."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from mt.config import CompareConfig
from mt.core.errors import InputError
from mt.evaluation.runs import read_run
from mt.evaluation.systems import Output, common_name, open_systems
from mt.storage.folders import read_description
from mt.storage.model_folder import write_description
from mt.storage.run_folder import COMPARED, RESULTS
from tests import toy
from tests.damage import assert_each_flipped_bit_is_named


@pytest.fixture
def copy(runs, tmp_path):
    """A copy of a run that a test may spoil."""

    def make(name):
        return toy.copy_to_change(runs[name], tmp_path / name)

    return make


def _open(*systems):
    found = tuple(tuple(str(folder) for folder in system) for system in systems)
    return open_systems(CompareConfig(runs=found))[1]


def test_open_systems_sorts_and_names_seeds(runs):
    several = _open([runs["transformer-2"], runs["transformer-1"]], [runs["rnn-1"], runs["rnn-2"]])
    assert [system.name for system in several] == ["transformer (2 seeds)", "rnn (2 seeds)"]
    assert [run.config.seed for run in several[0].runs] == [1, 2]
    assert len(several[0].first.hypotheses) == 40
    assert [line["step"] for line in several[0].runs[0].validations] == [20, 40, 60, 80]


def test_open_systems_numbers_equal_names(runs, copy):
    systems = _open([runs["rnn-1"]], [copy("rnn-1")])
    assert systems[0].name != systems[1].name


def _change_config(run, section, key, value):
    path = run / "config.yaml"
    config = yaml.safe_load(path.read_text())
    config[section][key] = value
    path.write_text(yaml.safe_dump(config))
    toy.record_checksums(run)


def _change_provenance(run, change):
    toy.change_json(run / "provenance.json", change)


def test_open_systems_reports_corrupted_provenance(runs, copy):
    run = copy("rnn-1")
    _change_provenance(run, lambda made: made["data"]["test"].update(sha256=None))
    with pytest.raises(InputError, match="provenance.json: corrupted, .*wrong or missing: data"):
        _open([runs["transformer-1"]], [run])


def test_open_systems_refuses_another_test_set(runs, copy):
    run = copy("rnn-1")
    path = run / "scored/test.reference"
    lines = path.read_text().splitlines()
    toy.write_lines(path, [*lines[:-1], "something else"])
    toy.record_checksums(run)
    with pytest.raises(InputError, match="another test set .the reference differs in 1 lines, first in line 40"):
        _open([runs["transformer-1"]], [run])
    path = run / "scored/test.source"
    toy.write_lines(path, ["something else", *path.read_text().splitlines()[1:]])
    toy.record_checksums(run)
    with pytest.raises(InputError, match="another test set .the source differs in 1 lines, first in line 1"):
        _open([runs["transformer-1"]], [run])
    for name in ("source", "reference", "hypothesis"):
        path = run / f"scored/test.{name}"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    toy.record_checksums(run)
    with pytest.raises(InputError, match=r"another number of test sentences \(39 instead of 40\)"):
        _open([runs["transformer-1"]], [run])


def test_open_systems_refuses_another_direction(runs, copy):
    run = copy("rnn-1")
    write_description(run, read_description(run).model_copy(update={"target_language": "zz"}))
    with pytest.raises(InputError, match="another direction .xx→zz instead of xx→yy"):
        _open([runs["transformer-1"]], [run])


def test_open_systems_refuses_unfinished_and_corrupted_runs(runs, copy):
    run = copy("rnn-1")
    (run / "scored/test.hypothesis").write_text("one line\n")
    toy.record_checksums(run)
    with pytest.raises(InputError, match="different numbers of lines"):
        _open([runs["transformer-1"]], [run])
    (run / "scored/test.hypothesis").unlink()
    with pytest.raises(InputError, match="test.hypothesis: no such file"):
        _open([runs["transformer-1"]], [run])
    (run / "results.json").unlink()
    with pytest.raises(InputError, match="no test scores yet"):
        _open([runs["transformer-1"]], [run])


def test_read_run_requires_checksums(copy):
    run = copy("rnn-1")
    toy.change_json(run / "results.json", lambda results: results.pop("files"))
    with pytest.raises(InputError, match=r"results.json: corrupted, .*wrong or missing: files\); restore"):
        read_run(run)


@pytest.mark.parametrize("name", [RESULTS, *COMPARED])
def test_read_run_reports_flipped_bits(runs, tmp_path, name):
    run = tmp_path / "run"
    shutil.copytree(runs["rnn-1"], run)
    content = (run / name).read_bytes()
    random = np.random.default_rng(len(content))
    # The last bytes of results.json are its own checksum.
    places = {
        *random.choice(len(content), 6).tolist(),
        *range(len(content) - (80 if name == RESULTS else 2), len(content)),
    }
    assert_each_flipped_bit_is_named(run / name, lambda: read_run(run), sorted(places))


@pytest.mark.parametrize(
    "line", ["[1]", '{"step": 3}', "[" * 100_000, '{"split": "valid", "step": 3}',
             '{"split": "valid", "step": 3, "bleu": null, "seconds": "1", "target_tokens": 3}'],
)  # fmt: skip
def test_read_run_reports_corrupted_line_of_metrics(runs, copy, line):
    run = copy("rnn-1")
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"split": "train", "loss": null, "seconds": 1, "target_tokens": 3}\n')
    toy.record_checksums(run)
    _open([runs["transformer-1"]], [run])
    with (run / "metrics.jsonl").open("a") as metrics:
        metrics.write(f"{line}\n")
    toy.record_checksums(run)
    with pytest.raises(InputError, match=r"metrics.jsonl: corrupted, .*\(line \d+\); restore"):
        _open([runs["transformer-1"]], [run])


def test_open_systems_refuses_empty_test_set(runs, copy):
    run = copy("rnn-1")
    for name in ("source", "reference", "hypothesis"):
        (run / f"scored/test.{name}").write_text("")
    toy.record_checksums(run)
    with pytest.raises(InputError, match="scored: the files have no lines"):
        _open([run], [runs["rnn-1"]])


def test_open_systems_requires_equal_configs_of_seeds(runs, copy):
    with pytest.raises(InputError, match="rnn-2 and .*transformer-1 differ in model.architecture, .*as two systems"):
        _open([runs["transformer-1"], runs["rnn-2"]], [runs["rnn-1"]])
    with pytest.raises(InputError, match="has the same seed as .*leave one of the two runs out"):
        _open([runs["transformer-1"], copy("transformer-1")], [runs["rnn-1"]])
    first, second = _open([runs["transformer-1"], runs["transformer-2"]], [runs["rnn-1"]])
    assert (len(first.runs), len(second.runs)) == (2, 1)
    changed = copy("transformer-2")
    _change_provenance(changed, lambda made: made["data"]["valid"].update(sha256="0"))
    with pytest.raises(InputError, match="differ in their valid pairs; .*give these two as two systems"):
        _open([runs["transformer-1"], changed], [runs["rnn-1"], runs["rnn-2"]])
    elsewhere = copy("rnn-2")
    _change_config(elsewhere, "training", "threads", 3)
    _open([runs["transformer-1"], runs["transformer-2"]], [runs["rnn-1"], elsewhere])


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["demo-seed=1", "demo-seed=2"], "demo (2 seeds)"),
        (["demo-seed=10", "demo-seed=11"], "demo (2 seeds)"),
        (["a_b_1", "a_b_2", "a_b_3"], "a_b (3 seeds)"),
        (["exp01", "exp02"], "exp01, exp02"),
        (["seed=1", "seed=2"], "seed=1, seed=2"),
        (["alone-7"], "alone-7"),
        (["demo", "demo-2", "demo-3"], "demo (3 seeds)"),
        (["demo-rnn", "demo-rnn-2"], "demo-rnn (2 seeds)"),
    ],
)
def test_common_name_drops_seeds(names, expected):
    assert common_name([Output(Path(name), [], run=True) for name in names]) == expected


# Files


@pytest.fixture
def files(tmp_path):
    """Two outputs, a reference and a source of three lines."""
    texts = {
        "theirs.txt": "ba\nde\nfi\n",
        "ours.txt": "\ufeffba\r\nde de\r\nfi",
        "ref": "ba\nde\nfi\n",
        "src": "a\nb\na\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, newline="")
    return tmp_path


def _files(folder, **changes):
    values = {"first": "theirs.txt", "second": "ours.txt", "references": "ref", "source": "src"} | changes
    paths = {key: str(folder / value) for key, value in values.items() if value is not None}
    return open_systems(CompareConfig(**paths, target_language="de"))


def test_open_systems_reads_files(files):
    evaluation, (first, second) = _files(files)
    assert evaluation.sources == ["a", "b", "a"] and evaluation.references == ["ba", "de", "fi"]
    assert (evaluation.source_language, evaluation.target_language) == (None, "de")
    assert first.name == "theirs.txt" and first.runs == []
    assert second.first.hypotheses == ["ba", "de de", "fi"]  # as editors write them: with a mark at the start, and CRs
    assert _files(files, source=None)[0].sources is None


@pytest.mark.parametrize(
    ("name", "text", "reported"),
    [
        ("ours.txt", "ba\n", "ours.txt has 1 lines, but there are 3 references"),
        ("src", "ba\n", "source=.*src has 1 lines and references=.*ref has 3; line n"),
        ("ref", "", "references=.*ref has no text; give a file"),
        ("ref", "\n \n\n", "references=.*ref has no text; give a file"),
        ("src", "\n\n\n", "source=.*src has no text; give a file"),
        ("ref", "ba\tbu\nde\tdu\nfi\tfu\n", "ref has a tab in each line.* cut -f1 .*references=.FILE,FILE."),
        ("ours.txt", "H-0\t-0.3\tba\n\nH-2\t-0.1\tfi\n", "ours.txt has a tab in each line, so it is a table"),
    ],
)
def test_open_systems_refuses_unequal_files_and_tables(files, name, text, reported):
    (files / name).write_text(text)
    with pytest.raises(InputError, match=reported):
        _files(files)


def test_open_systems_accepts_empty_translations(files):
    (files / "ours.txt").write_text("\n \n\n")
    outputs = [output.hypotheses for system in _files(files)[1] for output in system.outputs]
    assert ["", " ", ""] in outputs


def test_open_systems_requires_references_of_equal_length(files):
    (files / "ref2").write_text("bu\ndu\nfu\n")
    paths = {key: str(files / name) for key, name in (("first", "theirs.txt"), ("second", "ours.txt"))}
    config = CompareConfig(**paths, references=(str(files / "ref"), str(files / "ref2")), target_language="de")
    evaluation = open_systems(config)[0]
    assert evaluation.all_references == [["ba", "de", "fi"], ["bu", "du", "fu"]]
    (files / "ref2").write_text("bu\n")
    with pytest.raises(InputError, match="references=.*ref2 has 1 lines and references=.*ref has 3; line n"):
        open_systems(config)
    with pytest.raises(ValueError, match="ref is given twice"):
        CompareConfig(**paths, references=(str(files / "ref"), str(files / "ref")))


def test_open_systems_accepts_tabs_in_all_files(files):
    for name in ("theirs.txt", "ours.txt", "ref", "src"):
        (files / name).write_text("ba\tbu\nde\tdu\n")
    assert _files(files)[0].references == ["ba\tbu", "de\tdu"]


def test_open_systems_of_files_requires_references_and_language(files):
    with pytest.raises(InputError, match="references and target_language must be set, because no run with a test set"):
        open_systems(CompareConfig(first=str(files / "ours.txt"), second=str(files / "theirs.txt")))


def test_open_systems_of_run_and_file_uses_test_set_of_run(runs, tmp_path):
    theirs = tmp_path / "theirs.txt"
    theirs.write_bytes((runs["rnn-1"] / "scored/test.hypothesis").read_bytes())
    for places in ((runs["transformer-1"], theirs), (theirs, runs["transformer-1"])):
        config = CompareConfig(first=str(places[0]), second=str(places[1]))
        evaluation, systems = open_systems(config)
        assert evaluation.target_language == "yy" and len(evaluation.references) == 40
        assert sorted(system.name for system in systems) == ["theirs.txt", "transformer-1"]
    with pytest.raises(InputError, match="source=.* is for a test set of your own: .* the test set of .*transformer-1"):
        open_systems(config.model_copy(update={"source": str(theirs)}))
    theirs.write_text("one line\n")
    with pytest.raises(InputError, match="theirs.txt has 1 lines, but there are 40 references"):
        open_systems(config)


def test_open_systems_refuses_mixed_outputs(runs, files):
    both = (str(runs["rnn-1"]), str(runs["rnn-1"] / "scored/test.hypothesis"))
    with pytest.raises(InputError, match="are all runs, or models, or files; give"):
        open_systems(CompareConfig(first=both, second=str(runs["transformer-1"])))


def test_open_systems_refuses_invalid_utf8(files):
    (files / "theirs.txt").write_bytes("ba\nd\xe9\nfi\n".encode("latin-1"))
    with pytest.raises(InputError, match="theirs.txt: line 2 is invalid UTF-8"):
        _files(files)
