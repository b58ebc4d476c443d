"""Texts that cannot be compared as they are get a caution before the verdict."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


def _cautions(outputs, references, sources=None, target="fr", source=None, others=()):
    systems = [System(name, [Output(Path(name), lines)]) for name, lines in outputs.items()]
    return list(find_warnings(EvaluationSet(sources, references, source, target, others), systems))


@pytest.mark.parametrize("form", FORMS)
def test_a_file_in_another_form_is_named_beside_the_same_in_plain_text(form):
    seems = REMEDY.get(form, "cut into subwords")
    same, hint = _cautions({"plain": PLAIN, "cut": FORMS[form]}, OTHER)
    assert same == "plain and cut are the same but for whitespace, marks of subwords and case"
    assert hint.startswith(f"cut seems to be {seems}, and not all texts are") and "detokenize" in hint


@pytest.mark.parametrize("form", FORMS)
def test_references_in_another_form_than_the_systems_are_named(form):
    (hint,) = _cautions({"one": PLAIN, "two": OTHER}, [line.replace("dort", "rit") for line in FORMS[form]])
    assert hint.startswith("the reference seems to be ")
    (hint,) = _cautions({"one": PLAIN, "two": OTHER}, OTHER[1:] + OTHER[:1], others=(FORMS[form][1:] + [""],))[1:]
    assert hint.startswith("reference 2 seems to be ")


def test_ordinary_texts_get_no_caution():
    assert _cautions({"one": PLAIN, "two": OTHER}, PLAIN[1:] + PLAIN[:1], OTHER[1:] + OTHER[:1], source="en") == []
    spaced = ["Vraiment ? Oui !", "Quoi : « ça » ; bien", "## Titre . . .", "a@b.fr, C# . . ."] * 3
    assert _cautions({"one": spaced, "two": OTHER * 2}, [line + " ba" for line in OTHER[:6] * 2]) == []


def test_copies_of_source_reference_and_other_systems_are_named():
    assert _cautions({"one": PLAIN, "two": OTHER}, PLAIN, sources=OTHER) == [
        "one and the reference are the same", "two and the source are the same",
    ]  # fmt: skip
    assert _cautions({"one": PLAIN, "two": OTHER, "three": OTHER}, PLAIN[::-1]) == ["two and three are the same"]
    lower = [line.lower() for line in PLAIN]
    (same,) = _cautions({"one": PLAIN, "two": lower}, OTHER)
    assert same == "one and two are the same but for whitespace, marks of subwords and case"


def test_empty_lines_are_counted_with_the_first():
    gaps = [*PLAIN[:2], "", " ", *PLAIN[4:]]
    assert _cautions({"one": gaps, "two": OTHER}, [*OTHER[1:], ""]) == [
        "one has 2 empty lines of 8, first line 3; they count",
        "the reference has 1 empty line of 8, first line 8; they count",
    ]


@pytest.mark.parametrize(
    ("code", "text", "told"),
    [
        ("cn", "我今天早上去了学校", "target_language=cn is not a known language code"),
        ("jp", "私は学校に行きました", "target_language=jp is not a known language code"),
        ("en", "我今天早上去了学校", "target_language=en, but the references are in Chinese script: set .*zh"),
        ("de", "ฉันไปโรงเรียน", "target_language=de, but the references are in Thai script: set .*th"),
        ("zh", "I went to school", "target_language=zh, but the references are not in Chinese script"),
    ],
)
def test_a_language_without_the_right_tokenizer_is_named(code, text, told):
    (caution,) = _cautions({"one": ["a b"], "two": ["b c"]}, [text], target=code)
    assert re.match(told, caution)


@given(st.lists(st.text(alphabet="ab.,' ", min_size=1), min_size=1, max_size=5))
def test_spaces_alone_make_no_difference(lines):
    spaced = [" ".join(line) + " " for line in lines]
    cautions = _cautions({"one": lines, "two": spaced}, ["x"] * len(lines))
    assert "one and two are the same but for whitespace, marks of subwords and case" in cautions


def test_reports_and_log_begin_with_the_cautions(tmp_path, caplog):
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
