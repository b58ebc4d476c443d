"""The whole command: its three files, and its messages."""

import html
import json
import logging
import re

import pytest
from sacrebleu.metrics import BLEU

from mt.config import RobustnessConfig
from mt.evaluation.robustness import variants
from mt.evaluation.robustness.command import measure_robustness
from mt.evaluation.robustness.variants import ITEM_KINDS, find_item, without_item
from tests import toy
from tests.in_process import call

CHANGED = {"upper", "title", "lower", "no_end", "typos", "three_sentences", "word", "comma", "tag"}
SENTENCES = 24


@pytest.fixture(scope="module")
def compared(runs, tmp_path_factory):
    """What is written about two runs."""
    output = tmp_path_factory.mktemp("compared") / "out"
    measure_robustness(RobustnessConfig(run=str(runs[0]), second=str(runs[1]), output=str(output), sentences=SENTENCES))
    return output


@pytest.fixture(scope="module")
def found(compared):
    return json.loads((compared / "robustness.json").read_text())


def test_robustness_json_has_all_variants(found):
    assert {variant["name"] for variant in found["variants"]} == CHANGED | {*ITEM_KINDS}
    assert found["left_out"] == ["label", "bracket", "slash"]  # no pair has two words of the lexicon
    assert found["sentences"] == SENTENCES
    for variant in found["variants"]:
        expected = SENTENCES // 3 if variant["name"] == "three_sentences" else SENTENCES
        assert len(variant["lines"]) == expected or variant["name"] == "word"


def _bleu(texts, references, signature, order):
    return BLEU(lowercase="case:lc" in signature, max_ngram_order=order).corpus_score(texts, [references]).score


def test_robustness_bleu_equals_sacrebleu(found):
    """Of what the rule of each variant says is scored."""
    for variant in found["variants"]:
        name, lines = variant["name"], variant["lines"]
        references = [line["reference"] for line in lines]
        order = 1 if name == "word" else 4
        assert ("case:lc" in variant["signature"]) == (name in ("upper", "title", "lower", "word"))
        for place, of_run in enumerate(variant["runs"]):
            outputs, clean = ([line[key][place] for line in lines] for key in ("outputs", "clean_outputs"))
            if name in ITEM_KINDS:
                outputs = [without_item(output, line["item"]) for output, line in zip(outputs, lines, strict=True)]
            if name == "tag":
                outputs = [re.sub("</?b>", "", output) for output in outputs]
            assert of_run["bleu"] == pytest.approx(_bleu(outputs, references, variant["signature"], order))
            if name == "no_end":
                clean = [variants.without_end(text) for text in clean]
            if name not in ("word", "comma"):  # whose clean references are whole sentences
                assert of_run["clean"] == pytest.approx(_bleu(clean, references, variant["signature"], order))
            loss = of_run["loss"]
            assert loss["score"] == pytest.approx(of_run["clean"] - of_run["bleu"])
            assert loss["low"] <= loss["high"]


def test_robustness_counts_preserved_items(found):
    for variant in found["variants"]:
        name, lines = variant["name"], variant["lines"]
        for place, of_run in enumerate(variant["runs"]):
            assert (of_run["whole"] is None) == (name in CHANGED - {"tag"})
            if name in ITEM_KINDS:
                whole = sum(find_item(line["outputs"][place], line["item"]) is not None for line in lines)
                assert (of_run["whole"]["count"], of_run["whole"]["total"]) == (whole, len(lines))


def test_robustness_clean_outputs_equal_scored_hypotheses(found, runs):
    scored = [(folder / "scored/test.hypothesis").read_text().splitlines() for folder in runs]
    for variant in found["variants"]:
        for line in variant["lines"]:
            expected = [" ".join(lines[number - 1] for number in line["numbers"]) for lines in scored]
            assert line["clean_outputs"] == expected


def test_robustness_reports_escape_translations(compared, found):
    page = (compared / "robustness.html").read_text()
    assert page.count("<h3>") == len(found["variants"]) and "data:image/png;base64," in page
    assert not re.findall(r"(?:src|href)=\"(?!data:)", page) and "<b>" not in page and "&lt;b&gt;" in page
    lines = [line for variant in found["variants"] for line in variant["lines"]]
    assert "<summary>the 5 lines that lose most</summary>" in page
    worst = max(lines, key=lambda line: sum(line["chrf_losses"]))
    for text in (worst["source"], worst["reference"], *worst["outputs"], *worst["clean_outputs"]):
        assert html.escape(text) in page
    assert "seed-2 loses most BLEU in" in page and "The BLEU of the two runs differs significantly in" in page
    markdown = (compared / "robustness.md").read_text()
    assert "| variant | run | lines | clean BLEU | BLEU | loss | whole | p |" in markdown
    assert len(re.findall(r"^\| .*seed-[12] ", markdown, re.MULTILINE)) == 2 * len(found["variants"])
    assert "| three\\_sentences | seed-1 | 8 |" in markdown and "<b>" not in markdown.replace("\\<b\\>", "")


def test_robustness_of_one_run_is_reproducible(runs, tmp_path, found, caplog):
    own = toy.copy_to_change(runs[0], tmp_path / "seed-1")
    with caplog.at_level(logging.INFO):
        measure_robustness(RobustnessConfig(run=str(own), sentences=SENTENCES))
    alone = json.loads((own / "robustness/robustness.json").read_text())
    for one, both in zip(alone["variants"], found["variants"], strict=True):
        assert one["runs"] == both["runs"][:1] and one["p"] is one["p_corrected"] is None
    assert re.search(r"^seed-1 loses most BLEU in the variant \w+ \(", caplog.text, re.MULTILINE)
    assert "| p |" not in (own / "robustness/robustness.md").read_text()
    measure_robustness(RobustnessConfig(run=str(own), sentences=SENTENCES))  # a report is replaced
    assert alone == json.loads((own / "robustness/robustness.json").read_text())


def test_robustness_of_run_and_copy_is_equal(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("mt.evaluation.robustness.command.MAX_WORST_LINES", 1)
    first, second = (toy.copy_to_change(runs[0], tmp_path / name) for name in ("one", "other <b>$x$"))
    measure_robustness(RobustnessConfig(run=str(first), second=str(second), sentences=9))
    folder = tmp_path / "one-vs-other <b>$x$-robustness"
    found = json.loads((folder / "robustness.json").read_text())
    assert {(variant["p"], variant["p_corrected"]) for variant in found["variants"]} == {(1, 1)}
    page = (folder / "robustness.html").read_text()
    assert "<b>" not in page and "<summary>the line that loses most</summary>" in page


def _run(folder, *words):
    return call("robustness", *words, folder=folder)


@pytest.fixture(scope="module")
def folder(runs, tmp_path_factory):
    """A working folder with a whole run, one that is not finished, and one with another test set."""
    place = tmp_path_factory.mktemp("errors")
    for name in ("whole", "unfinished", "other"):
        toy.copy_to_change(runs[0], place / name)
    (place / "unfinished/results.json").unlink()
    for part in ("source", "reference", "hypothesis"):
        path = place / f"other/scored/test.{part}"
        path.write_text("Ba de Sula fi.\n" + path.read_text().partition("\n")[2])
    toy.record_checksums(place / "other")
    (place / "short").mkdir()
    toy.copy_to_change(runs[0], place / "short/run")
    for part in ("source", "reference", "hypothesis"):
        (place / f"short/run/scored/test.{part}").write_text("Ba Sula de.\n")
    toy.record_checksums(place / "short/run")
    (place / "file").write_text("")
    return place


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run=nowhere"], "run=nowhere: no such folder or file; give the folder of a run"),
        (["run=whole", "second=nowhere"], "second=nowhere: no such folder or file; give"),
        (["run=file"], "file: no such run or model folder"),
        (["run=unfinished"], "unfinished has no test scores yet"),
        (["run=whole", "second=other"], "other cannot be compared with whole: another test set"),
        (["run=whole", "second=./whole"], "whole is given twice"),
        (["run=whole", "output=file"], "output=file is a file, but a report needs a folder"),
        (["run=short/run"], "no sentence of the test set has 4 words or more"),
        (["run=whole", "sentence=5"], "did you mean sentences?"),
        (["run=whole", "sentences=0"], "sentences"),
        (["run=whole", "decoding.method=sample"], "one best translation"),
        (["run=whole", "decoding.n_best=2", "decoding.beam_size=2"], "one best translation"),
        (["run=whole", "decoding.seed=2"], "decoding.seed=2 is for method=sample"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_robustness_reports_errors(folder, words, expected):
    refused = _run(folder, *words)
    assert refused.returncode == 2 and expected in refused.stderr and "Traceback" not in refused.stderr
    assert not (folder / "whole/robustness").exists() and not (folder / "x").exists()


def test_robustness_command_line(folder):
    done = _run(folder, "run=whole", "output=made", "sentences=3", "decoding.beam_size=2", "threads=1")
    assert done.returncode == 0 and "whole loses most BLEU in" in done.stderr and "robustness.html" in done.stderr
    (made,) = json.loads((folder / "made/robustness.json").read_text())["runs"]
    assert made["name"] == "whole" and made["decoding"]["beam_size"] == 2
