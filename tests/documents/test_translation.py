"""translate.py with documents: files in, files out, whatever happens in between."""

import json
import logging
import os
import re
from contextlib import nullcontext
from typing import get_args

import pytest

from mt.config import DocumentFormat, TranslateConfig
from mt.core.errors import InputError
from mt.documents import translation as documents
from mt.documents.command import translate
from mt.documents.formats import FORMATS, detect_format
from mt.storage.folders import read_description
from mt.storage.model_description import ConfidenceConfig
from mt.storage.model_folder import write_description
from mt.translation.results import ScoredText
from mt.translation.translator import Translator
from tests import toy

HEADER = 'msgid ""\nmsgstr ""\n"Language: yy\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'


def po(*texts: str) -> str:
    return HEADER + "".join(f'\nmsgid "{text}"\nmsgstr ""\n' for text in texts)


@pytest.fixture(scope="module")
def run(shared_runs):
    return str(shared_runs["transformer-1"])


@pytest.fixture(scope="module")
def confident(shared_runs, tmp_path_factory):
    """The same model with a confidence, fitted by hand, that is always 0."""
    run = toy.copy_to_change(shared_runs["transformer-1"], tmp_path_factory.mktemp("confident") / "run")
    fitted = ConfidenceConfig(**dict.fromkeys(ConfidenceConfig.model_fields, 0.0) | {"intercept": -99.0})
    write_description(run, read_description(run).model_copy(update={"confidence": fitted}))
    return str(run)


def command(run, **settings):
    return TranslateConfig(run=run, threads=1, **settings)


def test_each_line_is_that_of_the_translator(run, tmp_path):
    (tmp_path / "a.po").write_text(po("ba de", "fi go", "ba de."))
    translate(command(run, input=str(tmp_path / "a.po"), output=str(tmp_path / "b.po")))
    expected = po("ba de", "fi go", "ba de.")
    for text, translation in zip(
        ("ba de", "fi go", "ba de."), Translator.load(run).translate(["ba de", "fi go", "ba de."]), strict=True
    ):
        expected = expected.replace(
            f'msgid "{text}"\nmsgstr ""', f'#, fuzzy\nmsgid "{text}"\nmsgstr {json.dumps(translation)}'
        )
    assert (tmp_path / "b.po").read_text() == expected
    assert {path.name for path in tmp_path.iterdir()} == {"a.po", "b.po"}


def test_a_marian_model_translates_documents(tmp_path):
    pytest.importorskip("transformers")
    from tests.marian_folder import LAYOUTS, write_folder

    model = write_folder(tmp_path / "model", LAYOUTS[0])
    (tmp_path / "a.json").write_text('["ba de"]')
    translate(command(str(model), input=str(tmp_path / "a.json"), output=str(tmp_path / "b.json")))
    assert len(json.loads((tmp_path / "b.json").read_text())) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"model", "a.json", "b.json"}


def test_to_standard_output(run, tmp_path, capfdbinary):
    (tmp_path / "a.po").write_text(po("ba de"))
    translate(command(run, input=str(tmp_path / "a.po"), output=str(tmp_path / "b.po")))
    translate(command(run, input=str(tmp_path / "a.po")))
    assert capfdbinary.readouterr().out == (tmp_path / "b.po").read_bytes()


def test_a_folder_and_a_pattern_become_a_folder(run, tmp_path, caplog):
    for name in ("in/a.po", "in/deep/b.pot", "in/.hidden.po", "in/note.bin"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text("ba" if name == "in/note.bin" else po(name))
    translate(command(run, input=str(tmp_path / "in"), output=str(tmp_path / "out")))
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("out/**/*.*")} == {"out/a.po", "out/deep/b.po"}
    assert "1 file left out, because it is no document that can be translated" in caplog.text
    translate(command(run, input=str(tmp_path / "in/*.po"), output=str(tmp_path / "other")))
    assert (tmp_path / "other/a.po").read_bytes() == (tmp_path / "out/a.po").read_bytes()
    assert not list(tmp_path.glob("*.partial"))


def test_documents_are_written_in_their_order_as_soon_as_their_lines_are_translated(run, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "DOCUMENT_WINDOW_LINES", 2)
    written = []

    def translate_lines(self, lines, *more, **options):
        written.append(sorted(path.name for path in tmp_path.glob("out/*")))
        return [[ScoredText(line.upper(), None)] for line in lines]

    monkeypatch.setattr(Translator, "hypotheses", translate_lines)
    texts = {"a": ["ba", "de", "fi", "go"], "b": ["ba", "so"], "c": ["de"]}  # c is complete before a and b
    for name, lines in texts.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(lines))
    translate(command(run, input=str(tmp_path / "*.json"), output=str(tmp_path / "out")))
    assert written == [[], [], ["a.json"]]
    for name, lines in texts.items():
        assert json.loads((tmp_path / f"out/{name}.json").read_text()) == [line.upper() for line in lines]


def test_a_stopped_job_continues(confident, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(documents, "DOCUMENT_WINDOW_LINES", 2)
    texts = toy.sentences(7, 3)
    (tmp_path / "a.po").write_text(po(*texts))
    settings = {"input": str(tmp_path / "a.po"), "output": str(tmp_path / "b.po"), "confidence": True}
    translate(command(confident, **settings))
    expected = (tmp_path / "b.po").read_text()
    assert expected.count("# Machine translation with a confidence of 0 %\n") == 7
    asked = []
    real = Translator.hypotheses

    def stopping(self, lines, *more, **options):
        asked.append(list(lines))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return real(self, lines, *more, **options)

    monkeypatch.setattr(Translator, "hypotheses", stopping)
    glossary = tmp_path / "glossary.tsv"
    glossary.write_text("ba\n")
    for change in ({}, {"text": {"terms": str(glossary)}}, {"confidence": False}):
        asked.clear()
        (tmp_path / "b.po").unlink()
        with pytest.raises(KeyboardInterrupt):
            translate(command(confident, **settings))
        assert not (tmp_path / "b.po").exists() and "start the same command again to continue" in caplog.text
        translate(command(confident, **(settings | change)))
        assert sum(asked[3:], []) == (texts if change else texts[4:])
        assert change or (tmp_path / "b.po").read_text() == expected
        assert not list(tmp_path.glob("*.partial*"))
    assert (tmp_path / "b.po").read_text() == re.sub("# Machine.*\n", "", expected)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"input": "none.po"}, "none.po: no such file"),
        ({"input": "zip.md"}, "zip.md is a zip archive .* give the right file"),
        ({"input": "zip.bin"}, "zip.bin is a zip archive .* name it by its format"),
        ({"input": "utf-16"}, "utf-16 is in utf-16; convert the file with: iconv -f utf-16 -t UTF-8"),
        (
            {"input": "x.json.bak", "format": "json"},
            "line 1 is not valid JSON .*; correct it. format=lines reads it as",
        ),
        ({"input": "a.jsonl"}, "a.jsonl is JSON Lines, which cannot"),
        ({"input": "page.xml"}, "page.xml is XML, which cannot"),
        ({"input": "memory"}, "memory is XML, which cannot"),
        ({"input": "a.csv"}, "a.csv is CSV, which cannot .* format=lines reads it as lines"),
        ({"input": "bad.po", "output": "b.po"}, "bad.po: line 1 is no PO"),
        ({"input": "a.po", "output": "./a.po"}, "a.po: output=a.po would overwrite the input a.po"),
        ({"input": "a.po", "output": "link.po"}, "would overwrite the input"),
        ({"input": "a.po", "output": "folder"}, "output=folder is a folder"),
        ({"input": "a.po", "output": "b.po.gz"}, "documents are written uncompressed; leave out .gz"),
        ({"input": "a.po", "output": "none/such/b.po"}, "none/such does not exist; create it"),
        ({"input": "a.po", "reference": "a.txt"}, "reference=a.txt is not for documents; leave it out"),
        ({"input": "a.po", "decoding": {"n_best": 2}}, "decoding.n_best=2 is not for documents"),
        ({"input": "a.po", "decoding": {"markup": "html"}}, "decoding.markup=html is not for documents"),
        ({"input": "a.po", "decoding": {"alignments": "x"}}, "decoding.alignments is not for documents"),
        ({"input": "a.txt", "output": "b.po"}, "output=b.po has the suffix of a po document, but input=a.txt"),
        ({"input": "a.txt", "retranslate": True}, "retranslate is for documents"),
        ({"input": "a.txt", "skip_keys": ["a"]}, "skip_keys is for documents"),
        ({"format": "po"}, "format=po needs a document file; set input=FILE"),
        ({"input": "folder"}, "several files; set output=FOLDER"),
        ({"input": "folder", "output": "a.po"}, "output=a.po is a file; set output=FOLDER"),
        ({"input": "folder", "output": "folder/out"}, "the next run would translate it too"),
        ({"input": "folder", "output": "out"}, "no document among 1 file; check the path, or set format"),
        (
            {"input": "x.json", "confidence": True},
            "confidence=true: x.json is json, which has no comments for it; leave it out",
        ),
        ({"input": "a.po", "confidence": True}, "model.yaml: confidence is null"),
        ({"input": "empty.txt", "confidence": True}, "model.yaml: confidence is null"),
        ({"input": "*.pot", "output": "out"}, "no document among 0 files"),
        (
            {"input": "twice/*", "output": "out"},
            "a.pot: output=out/a.po would overwrite twice/a.po: output=",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_and_nothing_is_written(run, tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.po").write_text(po("ba"))
    (tmp_path / "a.txt").write_text("ba\n")
    (tmp_path / "a.csv").write_text("ba\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "x.json").write_text('["ba"]')
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": 2}\n')
    (tmp_path / "utf-16").write_text("ba\n", "utf-16")
    (tmp_path / "x.json.bak").write_text("[")
    (tmp_path / "page.xml").write_text("<!-- <resources> -->\n<page/>\n")
    (tmp_path / "memory").write_text('<?xml version="1.0"?>\n<tmx/>\n')
    for name in ("zip.md", "zip.bin"):
        (tmp_path / name).write_bytes(b"PK\3\4\x14\0\xff\0")
    (tmp_path / "bad.po").write_text("ba\n")
    (tmp_path / "link.po").symlink_to("a.po")
    for name in ("folder", "twice"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder/x.bin").write_text("")
    for name in ("a.po", "a.pot"):
        (tmp_path / "twice" / name).write_text(po("ba"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message):
        translate(command(run, **settings))
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "a.po").read_text() == po("ba")


def test_a_document_that_is_too_large_is_refused(run, tmp_path, monkeypatch):
    monkeypatch.setattr("mt.data.parsers.document.MAX_DOCUMENT_BYTES", 100)
    (tmp_path / "a.po").write_text(po("ba"))
    with pytest.raises(InputError, match="a.po: larger than 0 MB, the limit for a document; divide"):
        translate(command(run, input=str(tmp_path / "a.po"), output=str(tmp_path / "b.po")))


def test_every_document_that_cannot_be_read_is_named(run, tmp_path):
    for name in ("a.json", "b.json"):
        (tmp_path / name).write_text("{")
    with pytest.raises(InputError, match=r"a.json: line 1 is not valid JSON(.|\n)*b.json: line 1"):
        translate(command(run, input=str(tmp_path / "*.json"), output=str(tmp_path / "out")))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.xml", "\ufeff<resources><string name='a'>ba</string></resources>", "android"),
        ("a.bak", '<?xml version="1.0"?>\n<!-- <resources> -->\n<xliff:xliff version="1.2"/>', "xliff"),
        ("a.txt", '{"a": "ba"}', "lines"),
        ("a", "<html>ba</html>", "lines"),
    ],
)
def test_of_other_suffixes_only_xml_is_known_by_its_content(tmp_path, name, content, expected):
    (tmp_path / name).write_text(content)
    assert detect_format(tmp_path / name) == expected


@pytest.mark.parametrize("name", ["test.en", "valid.de", "README", "a.html.de"])
def test_text_is_lines_whatever_its_suffix(run, tmp_path, name):
    (tmp_path / name).write_text("ba de\nfi: go\n")
    translate(command(run, input=str(tmp_path / name), output=str(tmp_path / "out")))
    assert (tmp_path / "out").read_text().count("\n") == 2


def test_a_document_in_standard_input_is_refused(run, tmp_path, monkeypatch):
    (tmp_path / "a").write_text('<?xml version="1.0"?><xliff/>')
    with (tmp_path / "a").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        with pytest.raises(InputError, match="the input is a document .xliff.; set input=FILE .* format=lines reads"):
            translate(command(run))
        translate(command(run, format="lines", output=str(tmp_path / "b")))
    assert (tmp_path / "b").read_text().count("\n") == 1


def test_a_document_in_a_pipe_is_refused(run):
    """As ``input=<(…)`` of a shell gives it."""
    for extra in ({}, {"format": "lines"}):
        reading, writing = os.pipe()
        os.write(writing, b"PK\3\4")
        os.close(writing)
        refused = nullcontext() if extra else pytest.raises(InputError, match="the input is a zip archive")
        with refused:
            translate(command(run, input=f"/dev/fd/{reading}", output="/dev/null", **extra))
        os.close(reading)


def test_a_full_disk_is_not_taken_for_a_fault_of_the_input(run, tmp_path):
    (tmp_path / "a").write_text("ba\n")
    with pytest.raises(OSError, match="No space left on device"):
        translate(command(run, input=str(tmp_path / "a"), output="/dev/full"))


def test_lines_are_asked_for_by_format(run, tmp_path):
    (tmp_path / "a.po").write_text("ba\n\nde\n")
    translate(command(run, input=str(tmp_path / "a.po"), output=str(tmp_path / "b.txt"), format="lines"))
    assert (tmp_path / "b.txt").read_text().count("\n") == 3


def test_what_was_translated_is_told(run, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    content = po("ba de", "fi") + '\nmsgid "go"\nmsgstr "go"\n'
    (tmp_path / "a.po").write_text(content)
    translate(command(run, input=str(tmp_path / "a.po"), output=str(tmp_path / "b.po")))
    assert "a.po: 2 passages translated, 1 had a translation already" in caplog.text


def test_what_was_not_understood_is_counted_with_its_line(run, tmp_path, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    (tmp_path / "a.json").write_text('["ba",\n"{de} fi",\n"{fi} de"]')
    monkeypatch.setattr(Translator, "hypotheses", lambda *_, **__: [[ScoredText("x", None)]] * 3)
    translate(command(run, input=str(tmp_path / "a.json"), output=str(tmp_path / "b.json")))
    assert (tmp_path / "b.json").read_text() == '["x",\n"{de} fi",\n"{fi} de"]'
    assert "a.json: 1 of 3 passages translated" in caplog.text
    assert "a.json: not understood and left unchanged: 2 passages, first at line 2" in caplog.text


def test_keys_can_be_left_out(run, tmp_path, caplog):
    caplog.set_level(logging.INFO)
    content = '{"a": {"id": "ba de", "text": "fi"}, "meta": {"x": {"y": "go"}}}'
    (tmp_path / "a.json").write_text(content)
    settings = {"input": str(tmp_path / "a.json"), "output": str(tmp_path / "b.json")}
    translate(command(run, **settings, skip_keys=["*.id", "meta.*"]))
    written = json.loads((tmp_path / "b.json").read_text())
    assert written["a"]["id"] == "ba de" and written["meta"] == {"x": {"y": "go"}} and written["a"]["text"] != "fi"
    assert "1 passage translated; 2 keys left out" in caplog.text
    translate(command(run, **settings, skip_keys=["text"]))
    assert "skip_keys=text matches no key: a key is, for example, a.id" in caplog.text


def test_the_setting_names_every_format_of_the_registry():
    assert set(get_args(DocumentFormat)) == {"auto", "lines", *FORMATS}
