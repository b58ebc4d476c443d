"""Texts that cannot be compared as they are get a warning before the verdict."""

import json
import re
from pathlib import Path

import pytest

from mt.config import CompareConfig
from mt.evaluation.comparison.command import compare
from mt.evaluation.comparison.conditions import find_warnings
from mt.evaluation.systems import EvaluationSet, Output, System
from tests import toy

PLAIN = [f"L'enfant lit {number} livres, puis dort." for number in range(8)]
OTHER = [f"Un garçon voit {number} chats, puis mange." for number in range(8)]
FORMS = {
    "tokenized": [line.replace("'", "' ").replace(",", " ,").replace(".", " .") for line in PLAIN],
    "Moses": [line.replace("'", "&apos; ").replace(",", " ,").replace(".", " .") for line in PLAIN],
    "SentencePiece": ["▁" + line.replace(" ", " ▁").replace("livres", "liv res") for line in PLAIN],
    "BPE": [line.replace("enfant", "en@@ fant").replace(",", " ,").replace(".", " .") for line in PLAIN],
    "WordPiece": [line.replace("enfant", "en ##fant") for line in PLAIN],
    "joiners": [line.replace("'", "￭ ' ￭").replace(",", " ￭,").replace(".", " ￭.") for line in PLAIN],
}
REMEDY = {"tokenized": "tokenized", "Moses": "tokenized"}


def _warnings(outputs, references, sources=None, target="fr", source=None, others=()):
    systems = [System(name, [Output(Path(name), lines)]) for name, lines in outputs.items()]
    return list(find_warnings(EvaluationSet(sources, references, source, target, others), systems))


@pytest.mark.parametrize("form", FORMS)
def test_find_warnings_reports_tokenized_output(form):
    seems = REMEDY.get(form, "cut into subwords")
    same, hint = _warnings({"plain": PLAIN, "cut": FORMS[form]}, OTHER)
    assert same == "plain and cut are the same but for whitespace, marks of subwords and case"
    assert hint.startswith(f"cut seems to be {seems}, and not all texts are") and "detokenize" in hint


@pytest.mark.parametrize("form", FORMS)
def test_find_warnings_reports_tokenized_references(form):
    (hint,) = _warnings({"one": PLAIN, "two": OTHER}, [line.replace("dort", "rit") for line in FORMS[form]])
    assert hint.startswith("the reference seems to be ")
    (hint,) = _warnings({"one": PLAIN, "two": OTHER}, OTHER[1:] + OTHER[:1], others=(FORMS[form][1:] + [""],))[1:]
    assert hint.startswith("reference 2 seems to be ")


def test_find_warnings_accepts_ordinary_texts():
    assert _warnings({"one": PLAIN, "two": OTHER}, PLAIN[1:] + PLAIN[:1], OTHER[1:] + OTHER[:1], source="en") == []
    spaced = ["Vraiment ? Oui !", "Quoi : « ça » ; bien", "## Titre . . .", "a@b.fr, C# . . ."] * 3
    assert _warnings({"one": spaced, "two": OTHER * 2}, [line + " ba" for line in OTHER[:6] * 2]) == []


def test_find_warnings_reports_copies():
    assert _warnings({"one": PLAIN, "two": OTHER}, PLAIN, sources=OTHER) == [
        "one and the reference are the same", "two and the source are the same",
    ]  # fmt: skip
    assert _warnings({"one": PLAIN, "two": OTHER, "three": OTHER}, PLAIN[::-1]) == ["two and three are the same"]
    lower = [line.lower() for line in PLAIN]
    (same,) = _warnings({"one": PLAIN, "two": lower}, OTHER)
    assert same == "one and two are the same but for whitespace, marks of subwords and case"


def test_find_warnings_counts_empty_lines():
    gaps = [*PLAIN[:2], "", " ", *PLAIN[4:]]
    assert _warnings({"one": gaps, "two": OTHER}, [*OTHER[1:], ""]) == [
        "one has 2 empty lines of 8, first line 3; they count",
        "the reference has 1 empty line of 8, first line 8; they count",
    ]


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("cn", "我今天早上去了学校", "target_language=cn is not a known language code"),
        ("jp", "私は学校に行きました", "target_language=jp is not a known language code"),
        ("en", "我今天早上去了学校", "target_language=en, but the references are in Chinese script: set .*zh"),
        ("de", "ฉันไปโรงเรียน", "target_language=de, but the references are in Thai script: set .*th"),
        ("zh", "I went to school", "target_language=zh, but the references are not in Chinese script"),
    ],
)
def test_find_warnings_reports_wrong_language_code(code, text, expected):
    (warning,) = _warnings({"one": ["a b"], "two": ["b c"]}, [text], target=code)
    assert re.match(expected, warning)


def test_reports_and_log_begin_with_warnings(tmp_path, caplog):
    for name, lines in (("one", PLAIN), ("two", FORMS["tokenized"]), ("ref", OTHER), ("ref2", OTHER[::-1])):
        toy.write_lines(tmp_path / name, lines)
    one, two, *references = (str(tmp_path / name) for name in ("one", "two", "ref", "ref2"))
    config = {"first": one, "second": two, "target_language": "fr", "output": str(tmp_path / "o")}
    compare(CompareConfig(**config, references=tuple(references)))
    cautions = json.loads((tmp_path / "o/comparison.json").read_text())["cautions"]
    assert len(cautions) == 2 and caplog.text.index(cautions[0]) < caplog.text.index("testing the differences")
    markdown = (tmp_path / "o/comparison.md").read_text()
    page = (tmp_path / "o/report.html").read_text()
    for text, verdict in ((markdown, "BLEU higher than"), (page, 'class="verdict"')):
        assert 0 < text.index("two seems to be tokenized") < text.index(verdict)
        assert "BLEU uses 2 reference translations" in text and "nrefs:2" in text
