"""The whole comparison: its three files, and its page in a real browser."""

import json
import math
import re
import shutil
from pathlib import Path

import pytest

from mt.config import CompareConfig, TextConfig, TokenizerConfig
from mt.evaluation.comparison.command import compare
from mt.metrics.metric import Ter
from mt.metrics.registry import METRICS
from mt.storage.folders import read_description
from mt.storage.model_folder import write_description
from mt.storage.run_folder import read_config, write_config
from mt.storage.validation import read_json
from mt.tokenizer.training import train_tokenizer
from tests import toy
from tests.evaluation.comparison.conftest import LITTLE, compare_quickly
from tests.in_process import call

PROJECT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def report(runs, tmp_path_factory):
    output = tmp_path_factory.mktemp("report") / "out"
    first = [str(runs["transformer-1"]), str(runs["transformer-2"])]
    second = [str(runs["rnn-1"]), str(runs["rnn-2"])]
    compare(CompareConfig(first=first, second=second, output=str(output), timed_sentences=8, studied_sentences=2))
    return output


def test_comparison_json_has_results_of_all_runs(runs, report):
    found = json.loads((report / "comparison.json").read_text())
    assert found["direction"] == "xx→yy" and found["test_pairs"] == 40
    for system, name in zip(found["systems"], ("transformer", "rnn"), strict=True):
        results = [read_json(runs[f"{name}-{seed}"] / "results.json") for seed in (1, 2)]
        for key, metric in METRICS.items():
            expected = [one[key] for one in results]
            assert system["scores"][metric.name]["outputs"] == pytest.approx(expected, abs=1e-4)
        cost = system["cost"]
        assert cost["parameters"] == results[0]["parameters"]
        assert cost["target_tokens"] == (results[0]["target_tokens"] + results[1]["target_tokens"]) / 2
        assert cost["sentences_per_second_batched"] > 0 and cost["sentences_per_second_singly"] > 0
        assert cost["minutes_to_reach"] > 0
    assert "model.architecture" in found["differing_settings"] and "seed" not in found["differing_settings"]
    assert sum(group["count"] for group in found["bleu_by_length"]) == 40
    (verdict,) = found["verdicts"]
    assert verdict["more_than_chance"] == {metric: p < 0.05 for metric, p in verdict["corrected_p"].items()}
    first, second = (system["scores"]["BLEU"]["mean"] for system in found["systems"])
    assert verdict["over_seeds"]["BLEU"]["difference"] == pytest.approx(second - first)


def test_comparison_markdown_has_verdict_and_tables(report):
    text = (report / "comparison.md").read_text()
    words = json.loads((report / "comparison.json").read_text())["verdicts"][0]["words"]
    headline, details = words.split("\n")
    assert f"**{headline}** {details}" in text
    assert "| parameters |" in text and "&" not in text
    assert re.search(r"\| rnn \(2 seeds\) \| \d+\.\d\d ± \d+\.\d\d \|", text)
    assert "they are 20 updates apart." in (report / "report.html").read_text()
    assert "Difference: the score of a system minus that of the baseline, transformer" in text
    assert "for one family of 3 tests, BLEU, chrF2, TER of rnn (2 seeds)." in text
    assert "Significant: the corrected p is below 0.05." in text and "\n\n\n\n" not in text
    assert "A non-significant result does not mean that the systems are equal." in text


def test_differing_conditions_list_every_seed(runs, tmp_path):
    other = tmp_path / "transformer-2"
    toy.copy_to_change(runs["transformer-2"], other)

    def resume_elsewhere(made):
        (start,) = made["starts"]
        made["starts"].append(start | {"update": 10, "machine": start["machine"] | {"gpu": "H200"}})

    toy.change_json(other / "provenance.json", resume_elsewhere)
    systems = [[runs["transformer-1"], other], [runs["rnn-1"], runs["rnn-2"]]]
    found, _, words = compare_quickly(tmp_path / "o", *systems)
    conditions = found["differing_conditions"]
    assert conditions.pop("gpu") == ["null, H200", "null"]
    first, second = conditions.pop("earlier starts in other conditions")
    assert re.fullmatch(r"0, 1 \([0-9a-f]{12}\)", first) and second == "0"
    conditions = {name: values for name, values in conditions.items() if not name.startswith("alignment: ")}
    assert conditions and all(name.endswith(": parameters") for name in conditions)  # of what each optimizer moves
    assert "| gpu | null, H200 | null |" in words and "| model.architecture | transformer | rnn\\_attention |" in words


def test_valid_bleu_sets_the_reached_bleu(runs, tmp_path):
    systems = runs["transformer-1"], runs["rnn-1"]
    best = max(line["bleu"] for line in compare_quickly(tmp_path / "o", *systems)[0]["systems"][0]["validations"][0])
    found, page, _ = compare_quickly(tmp_path / "o", *systems, valid_bleu=best)
    assert found["reached_valid_bleu"] == best and f"validation BLEU {math.floor(100 * best) / 100:.2f}" in page
    assert found["systems"][0]["cost"]["minutes_to_reach"] is not None
    found, *_ = compare_quickly(tmp_path / "o", *systems, valid_bleu=100)
    assert [system["cost"]["minutes_to_reach"] for system in found["systems"]] == [None, None]


def test_validation_bleu_of_different_pairs_is_not_compared(runs, tmp_path):
    """Other validation pairs: the time to a BLEU."""
    other = tmp_path / "rnn-1"
    toy.copy_to_change(runs["rnn-1"], other)
    toy.change_json(other / "provenance.json", lambda made: made["data"]["valid"].update(sha256="0"))
    note = "Validation BLEU cannot be compared"
    found, page, _ = compare_quickly(tmp_path / "o", runs["transformer-1"], other, valid_bleu=1)
    assert note in page and found["reached_valid_bleu"] is None
    assert "minutes to the same validation BLEU" in page
    _, page, _ = compare_quickly(tmp_path / "p", runs["transformer-1"], runs["rnn-1"])
    assert note not in page


def test_compare_file_with_run(runs, tmp_path):
    theirs = tmp_path / "theirs.txt"
    theirs.write_bytes((runs["rnn-1"] / "scored/test.hypothesis").read_bytes())
    found, page, _ = compare_quickly(tmp_path / "o", runs["transformer-1"], theirs)
    as_runs, *_ = compare_quickly(tmp_path / "p", runs["transformer-1"], runs["rnn-1"])
    for key in ("over_sentences", "chrf_differences", "baseline_wins"):
        assert found["verdicts"][0][key] == as_runs["verdicts"][0][key]
    assert found["systems"][1]["cost"] is None and found["systems"][0]["cost"]["parameters"] > 0
    reported = "theirs.txt is known only by its translations, so cost, training and attention are skipped."
    assert reported in page
    assert "How theirs.txt was made is not known." in page and "the same." not in page.split("<h2>Conditions</h2>")[1]


def test_compare_files_without_run(runs, tmp_path):
    """Every section but those of training, of three outputs of which two are equal."""
    scored = runs["rnn-1"] / "scored"
    paths = [runs["transformer-1"] / "scored/test.hypothesis", scored / "test.hypothesis", scored / "test.reference"]
    systems = tuple(str(shutil.copy(path, tmp_path / f"{number}.txt")) for number, path in enumerate(paths))
    config = CompareConfig(
        runs=systems, references=systems[2], source=str(scored / "test.source"), target_language="yy",
        output=str(tmp_path / "o"), **LITTLE,
    )  # fmt: skip
    compare(config)
    found, page = json.loads((tmp_path / "o/comparison.json").read_text()), (tmp_path / "o/report.html").read_text()
    assert found["systems"][2]["scores"]["BLEU"]["mean"] == pytest.approx(100)
    assert [verdict["system"] for verdict in found["verdicts"]] == ["1.txt", "2.txt"]
    assert found["verdicts"][1]["words"].startswith("2.txt scores ")
    assert "<h2>Cost" not in page and "<h2>Attention" not in page and "Conditions" in page
    assert "| cost |" not in (tmp_path / "o/comparison.md").read_text()
    assert len(found["bleu_by_length"]) > 1


def test_compare_writes_beside_last_run(runs, tmp_path):
    for name in ("transformer-1", "rnn-1", "rnn-2"):
        toy.copy_to_change(runs[name], tmp_path / name)
    words = ["runs=[transformer-1,rnn-1,rnn-2]", "timed_sentences=0", "bootstrap_samples=100"]
    written = tmp_path / "transformer-1-vs-rnn-1-vs-rnn-2"
    written.mkdir()
    (written / "notes.txt").write_text("mine")
    # Without attention and speed, the scored lines are all that is needed.
    for name in ("transformer-1", "rnn-1", "rnn-2"):
        (tmp_path / name / "model.safetensors").unlink()
    done = call("compare", *words, "randomization_trials=120", "studied_sentences=0", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert {path.name for path in written.iterdir()} == {
        "report.html", "comparison.json", "comparison.md", "notes.txt"
    }  # fmt: skip
    assert len(json.loads((written / "comparison.json").read_text())["verdicts"]) == 2


def test_compare_three_systems_with_several_seeds(runs, tmp_path):
    """Given by hand: the third system's runs are copies, but its seeds are other ones."""
    third = []
    for name, seed in (("rnn-1", 3), ("rnn-2", 4)):
        folder = tmp_path / f"copy-{seed}"
        toy.copy_to_change(runs[name], folder)
        config = folder / "config.yaml"
        config.write_text(re.sub(r"(?m)^seed: \d+$", f"seed: {seed}", config.read_text()))
        toy.record_checksums(folder)
        third.append(folder)
    systems = [[runs["transformer-1"], runs["transformer-2"]], [runs["rnn-1"], runs["rnn-2"]], third]
    words = [f"{key}={value}" for key, value in LITTLE.items()]
    listed = ",".join(f"[{','.join(map(str, system))}]" for system in systems)
    done = call("compare", f"runs=[{listed}]", "output=o", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "o/comparison.json").read_text())
    assert [system["name"] for system in found["systems"]] == [
        "transformer (2 seeds)", "rnn (2 seeds)", "copy (2 seeds)"
    ]  # fmt: skip
    first, second = found["verdicts"]
    p = [verdict["over_sentences"][n]["p"] for verdict in (first, second) for n in range(3)]
    assert len(p) == 6 and list(first["corrected_p"]) == list(second["corrected_p"]) == ["BLEU", "chrF2", "TER"]
    assert found["differing_settings"]["seed"] == ["1, 2", "1, 2", "3, 4"]


def test_reports_escape_translations_and_names(runs, tmp_path):
    strange = tmp_path / "a|b $x_{$ <b> \x1b[31mred"
    toy.copy_to_change(runs["rnn-1"], strange)
    path = strange / "scored/test.hypothesis"
    lines = path.read_text().splitlines()
    reference = (strange / "scored/test.reference").read_text().splitlines()[0]
    toy.write_lines(path, [f"{reference} <script>alert(1)</script> & co", *lines[1:]])
    toy.record_checksums(strange)
    config = {"timed_sentences": 0, "studied_sentences": 1, "bootstrap_samples": 100, "randomization_trials": 100}
    compare(CompareConfig(first=str(runs["transformer-1"]), second=str(strange), output=str(tmp_path / "o"), **config))
    page = (tmp_path / "o/report.html").read_text()
    assert "<script>alert" not in page and "&lt;script&gt;alert(1)&lt;/script&gt; &amp; co" in page
    assert "<b>" not in page
    # The example stands where the strange one wins: the last of the two lists.
    assert page.index("&lt;script&gt;alert") > page.rindex("is better</h4>")
    markdown = (tmp_path / "o/comparison.md").read_text()
    assert r"a\|b $x\_{$ \<b\> \x1b\[31mred" in markdown and "\x1b" not in markdown


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["first=rnn-1"], "two runs are needed"),
        (["first=rnn-1", "second=rnn-1"], "given twice"),
        (["first=rnn-1", "second=nowhere"], "second=nowhere: no such folder or file"),
        (["first=rnn-1", "secnd=rnn-2"], "did you mean second?"),
        (["runs=[rnn-1,rnn-2]", "first=rnn-1", "second=rnn-2"], "set either runs, or first and second"),
        (["first=rnn-1", "second=rnn-2", "output=rnn-1/model.yaml"], "model.yaml is a file, but a report needs"),
        (["runs=[0.txt,1.txt,2.txt,3.txt,4.txt,5.txt,6.txt]", "randomization_trials=359"], "set it to 360 or more"),
        # twice the median of p
        (["runs=[1.txt,[2.txt,3.txt],4.txt,5.txt]", "randomization_trials=359"], "set it to 360 or more"),
        (
            ["runs=[0.txt,[1.txt,2.txt]]", "scores.comet=[3.txt,[4.txt,5.txt]]", "randomization_trials=159"],
            "set it to 160",
        ),
        (
            ["first=0.txt", "second=1.txt", "scores.comet=[2.txt]"],
            "scores.comet has [1] files, but the systems have [1, 1] outputs",
        ),
        (
            ["first=[0.txt,1.txt]", "second=2.txt", "scores.comet=[3.txt,4.txt]"],
            "scores.comet has [1, 1] files, but the systems have [2, 1] outputs: list a file for each",
        ),
        (["first=0.txt", "second=1.txt", "scores.comet=2.txt"], "must be a list, written 'scores.comet=[a,b]'"),
        (["first=0.txt", "second=1.txt", "scores=[2.txt]"], "must have a name for each value, written key.NAME=VALUE"),
        (["first=0.txt", "second=1.txt", "scores.comet=[2.txt,2.txt]"], "given twice"),
        (["first=rnn-1", "second=rnn-2", "scores.chrf2=[2.txt,3.txt]"], "give these scores another name"),
        (
            ["first=0.txt", "second=1.txt", "metric.command=comet-score -t {hypothesis}"],
            "metric.command=comet-score -t {hypothesis}: this setting was removed; write the scores to a file for each",
        ),
        (["first=0.txt", "second=1.txt", "robustness=true"], "was removed; run python -m mt robustness run=FIRST"),
        (["first=0.txt", "second=1.txt", "scores.comet=[2.txt,3.txt]", "better.come=lower"], "did you mean comet?"),
        (
            ["first=0.txt", "second=1.txt", "scores.comet=[2.txt,3.txt]", "better.comet=low"],
            "better.comet=low: must be one of higher, lower; did you mean lower?",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_compare_reports_errors(runs, words, expected):
    (folder,) = {runs[name].parent for name in ("rnn-1", "rnn-2")}
    refused = call("compare", *words, folder=folder)
    assert refused.returncode == 2 and expected in refused.stderr and "Traceback" not in refused.stderr


def test_differing_conditions_list_tokenizers_and_initial_weights(runs, tmp_path):
    """Which no setting tells: another training may lie in the same folder by now."""
    other = toy.copy_to_change(runs["rnn-1"], tmp_path / "rnn-1")
    one, another = (toy.copy_to_change(runs["rnn-2"], tmp_path / name) for name in ("one", "another"))
    tokenizer = train_tokenizer(toy.sentences(300, 9), ("xx",), TokenizerConfig(vocabulary_size=315))
    (other / "tokenizer.model").write_bytes(tokenizer.model)
    for folder, weights in ((one, "a" * 64), (another, "b" * 64)):
        toy.change_json(folder / "provenance.json", lambda made, weights=weights: made.update(initial_weights=weights))
    found, *_ = compare_quickly(tmp_path / "o", runs["rnn-1"], other)
    pieces = found["differing_conditions"]["tokenizer.model"]
    assert len(set(pieces)) == 2 and all(len(checksum) == 12 for checksum in pieces)
    found, *_ = compare_quickly(tmp_path / "p", one, another)
    assert found["differing_conditions"] == {"initial weights": ["a" * 12, "b" * 12]}


def test_differing_conditions_list_alignment_and_text_layer(runs, tmp_path):
    """The layer that alignments are read from, and the text layer, which a setting tells as well."""
    one, other = (toy.copy_to_change(runs["rnn-2"], tmp_path / name) for name in ("one", "other"))
    for folder, shift in ((one, 0), (other, 1)):
        description = read_description(folder)
        alignment = description.alignment.model_copy(update={"shift": shift})
        write_description(folder, description.model_copy(update={"alignment": alignment}))
    found, page, text = compare_quickly(tmp_path / "o", one, other)
    assert found["differing_conditions"] == {"alignment: shift": ["0", "1"]} and found["differing_settings"] == {}
    assert "alignment: shift" in page and "| alignment: shift | 0 | 1 |" in text
    config = read_config(other)
    without = TextConfig(enabled=False, augmentation=config.text.augmentation)
    write_config(other, config.model_copy(update={"text": without}))
    toy.change_json(
        other / "provenance.json", lambda made: made["starts"][0]["resolved_settings"]["text"].update(enabled=False)
    )
    found, *_ = compare_quickly(tmp_path / "p", one, other)
    assert found["differing_settings"]["text.enabled"] == ["true", "false"]
    assert found["differing_conditions"]["took effect: text: enabled"] == ["true", "false"]


def test_metric_outside_verdict_has_uncorrected_p(tmp_path, monkeypatch):
    monkeypatch.setattr(Ter, "in_verdict", False)
    lines = toy.sentences(8, 3)
    for name, texts in (("ours", lines), ("theirs", [f"za {line}" for line in lines])):
        toy.write_lines(tmp_path / name, texts)
    files = {"references": str(tmp_path / "ours"), "target_language": "yy"}
    *_, text = compare_quickly(tmp_path / "o", tmp_path / "theirs", tmp_path / "ours", **files)
    assert (
        "for one family of 2 tests, BLEU, chrF2 of ours. Significant: the corrected p is below 0.05; –: not in" in text
    )
    assert "in TER" not in text
    assert re.search(r"\| TER \|.*\| −\d+\.\d\d \(.*\) \| ≤.0\.0079.\(exact\) \| – \| – \| 8 \|", text)
