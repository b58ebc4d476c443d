"""translate.py with documents: inputs, outputs, errors, and resumption after an interruption."""

import gzip
import json
import logging
import os
from pathlib import Path
from typing import get_args

import pytest

from mt.config import DocumentFormat, TranslateConfig
from mt.core.coded_text import CodedText
from mt.core.errors import InputError
from mt.formats.document import Languages
from mt.formats.registry import FORMATS, detect_format, read_document
from mt.translation import documents
from mt.translation.command import translate
from mt.translation.results import ScoredText
from mt.translation.translator import Translator
from tests import toy

HEADER = 'msgid ""\nmsgstr ""\n"Language: yy\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'


def po(*texts: str) -> str:
    return HEADER + "".join(f'\nmsgid "{text}"\nmsgstr ""\n' for text in texts)


@pytest.fixture(scope="module")
def run(shared_runs):
    return str(shared_runs["transformer-1"])


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def command(run, **settings):
    translate(TranslateConfig(run=run, threads=1, **settings))


def test_document_has_translations_of_translator(run, tmp_path):
    texts = ["ba de", "fi go", "ba de."]
    Path("a.po").write_text(po(*texts))
    command(run, input="a.po", output="b.po")
    expected = po(*texts)
    for text, translation in zip(texts, Translator.load(run).translate(texts), strict=True):
        entry = f'#, fuzzy\nmsgid "{text}"\nmsgstr {json.dumps(translation)}'
        expected = expected.replace(f'msgid "{text}"\nmsgstr ""', entry)
    assert Path("b.po").read_text() == expected
    assert {path.name for path in tmp_path.iterdir()} == {"a.po", "b.po"}


def test_marian_model_translates_documents(tmp_path):
    pytest.importorskip("transformers")
    from tests.marian_folder import LAYOUTS, write_folder

    model = write_folder(tmp_path / "model", LAYOUTS[0])
    Path("a.json").write_text('["ba de"]')
    command(str(model), input="a.json", output="b.json")
    assert len(json.loads(Path("b.json").read_text())) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"model", "a.json", "b.json"}


def test_document_is_written_to_standard_output(run, capfdbinary):
    Path("a.po").write_text(po("ba de"))
    command(run, input="a.po", output="b.po")
    command(run, input="a.po")
    assert capfdbinary.readouterr().out == Path("b.po").read_bytes()


def test_folder_or_pattern_of_documents_is_translated_into_folder(run, tmp_path, caplog):
    for name in ("in/a.po", "in/deep/b.pot", "in/.hidden.po", "in/note.bin"):
        Path(name).parent.mkdir(exist_ok=True, parents=True)
        Path(name).write_text("ba" if name == "in/note.bin" else po(name))
    command(run, input="in", output="out")
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.glob("out/**/*.*")} == {"out/a.po", "out/deep/b.po"}
    assert "1 file of unsupported format skipped: in/note.bin" in caplog.text
    assert not list(tmp_path.glob("*.partial"))
    command(run, input="in/*.po", output="other")
    assert [path.name for path in Path("other").iterdir()] == ["a.po"]


def test_documents_are_written_in_order_when_complete(run, tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "DOCUMENT_WINDOW_LINES", 2)
    written = []

    def translate_lines(self, lines, *more, **options):
        written.append(sorted(path.name for path in tmp_path.glob("out/*")))
        return [[ScoredText("", None, coded=line.text.mapped(str.upper))] for line in lines]

    monkeypatch.setattr(Translator, "hypotheses", translate_lines)
    texts = {"a": ["ba", "de", "fi", "go"], "b": ["ba", "so"], "c": ["de"]}  # c is complete before a and b
    for name, lines in texts.items():
        Path(f"{name}.json").write_text(json.dumps(lines))
    command(run, input="*.json", output="out")
    assert written == [[], [], ["a.json"]]
    for name, lines in texts.items():
        assert json.loads(Path(f"out/{name}.json").read_text()) == [line.upper() for line in lines]


def test_interrupted_job_resumes_after_last_window(run, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(documents, "DOCUMENT_WINDOW_LINES", 2)
    texts = [f"<b>{text}</b> ba" for text in toy.sentences(7, 3)]
    Path("a.po").write_text(po(*texts))
    settings = {"input": "a.po", "output": "b.po"}
    command(run, **settings)
    expected = Path("b.po").read_text()
    Path("b.po").unlink()
    windows, translate_window = [], Translator.hypotheses

    def interrupted(self, lines, *more, **options):
        windows.append([line.text.written() for line in lines])
        if len(windows) == 3:
            raise KeyboardInterrupt
        return translate_window(self, lines, *more, **options)

    monkeypatch.setattr(Translator, "hypotheses", interrupted)
    with pytest.raises(KeyboardInterrupt):
        command(run, **settings)
    assert not Path("b.po").exists() and "start the same command again to continue" in caplog.text
    command(run, **settings)
    assert sum(windows[3:], []) == texts[4:]
    assert Path("b.po").read_text() == expected
    assert not list(tmp_path.glob("*.partial*"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"input": "none.po"}, "none.po: no such file"),
        ({"input": "zip.md"}, "zip.md: is a zip archive .* choose another file"),
        (
            {"input": "zip.bin"},
            "zip.bin is a .bin file, which cannot be translated; convert it, or set format .documents are",
        ),
        (
            {"input": "x.json.bak", "format": "json"},
            "line 1 is not valid JSON .*; correct it. format=lines reads it as",
        ),
        ({"input": "memory"}, "memory is XML, which cannot"),
        ({"input": "bad.po", "output": "b.po"}, "bad.po: line 1 is not valid PO"),
        ({"input": "a.po", "output": "./a.po"}, "a.po: output=a.po would overwrite the input a.po"),
        ({"input": "a.po", "output": "folder"}, "output=folder is a folder"),
        ({"input": "a.po", "output": "b.po.gz"}, "documents are written uncompressed; leave out .gz"),
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
        ({"input": "a.po", "confidence": True}, "confidence=true is not for documents; leave it out"),
        ({"input": "empty.txt", "confidence": True}, "model.yaml: confidence is null"),
        (
            {"input": "twice/*", "output": "out"},
            "a.pot: output=out/a.po would overwrite twice/a.po: output=",
        ),
    ],
)
def test_unusable_inputs_and_settings_are_rejected(run, tmp_path, settings, message):
    Path("a.po").write_text(po("ba"))
    Path("a.txt").write_text("ba\n")
    Path("empty.txt").write_text("")
    Path("x.json").write_text('["ba"]')
    Path("x.json.bak").write_text("[")
    Path("memory").write_text('<?xml version="1.0"?>\n<tmx/>\n')
    for name in ("zip.md", "zip.bin"):
        Path(name).write_bytes(b"PK\3\4\x14\0\xff\0")
    Path("bad.po").write_text("ba\n")
    for name in ("folder", "twice"):
        Path(name).mkdir()
    Path("folder/x.bin").write_text("")
    for name in ("a.po", "a.pot"):
        Path("twice", name).write_text(po("ba"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError, match=message):
        command(run, **settings)
    assert sorted(tmp_path.rglob("*")) == before and Path("a.po").read_text() == po("ba")


def test_document_above_size_limit_is_rejected(run, monkeypatch):
    monkeypatch.setattr("mt.formats.document.MAX_DOCUMENT_BYTES", 100)
    Path("a.po").write_text(po("ba"))
    with pytest.raises(InputError, match="a.po: larger than 0 MB, the limit for a document; divide"):
        command(run, input="a.po", output="b.po")


def test_all_unreadable_documents_are_reported(run):
    for name in ("a.json", "b.json"):
        Path(name).write_text("{")
    with pytest.raises(InputError, match=r"a.json: line 1 is not valid JSON(.|\n)*b.json: line 1"):
        command(run, input="*.json", output="out")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.xml", "\ufeff<resources><string name='a'>ba</string></resources>", "android"),
        ("a.bak", '<?xml version="1.0"?>\n<!-- <resources> -->\n<xliff:xliff version="1.2"/>', "xliff"),
        ("a.txt", '{"a": "ba"}', "lines"),
        ("a", "<html>ba</html>", "lines"),
    ],
)
def test_detect_format_reads_content_of_xml_only(name, content, expected):
    Path(name).write_text(content)
    assert detect_format(Path(name)) == expected


@pytest.mark.parametrize(
    "name",
    ["a.en", "a.pt_BR", "a.zh-Hans", "a.ast_Latn", "README", "a.html.de", "a.ref0", "a.TXT", "a.2014", "a.en.gz"],
)
def test_detect_format_accepts_suffixes_of_text_as_lines(name):
    Path(name).write_bytes(gzip.compress(b"ba\n") if name.endswith("gz") else b"ba\n")
    assert detect_format(Path(name)) == "lines"


@pytest.mark.parametrize("name", ["a.mdwn", "a.php", "a.tex", "a.tsv", "a.ts", "a.svg", "a.epub", "a.1", "a.csv.gz"])
def test_detect_format_rejects_suffixes_of_structured_files(name):
    Path(name).write_bytes(gzip.compress(b"ba\n") if name.endswith("gz") else b"ba\n")
    with pytest.raises(InputError, match=rf"^{name} is a \{Path(name.removesuffix('.gz')).suffix} file"):
        detect_format(Path(name))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("bom", ["", "\ufeff"], ids=["without BOM", "BOM"])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.xml", '<?xml version="1.0" encoding="UTF-16"?><resources><string name="a">ба {}</string></resources>'),
        ("a.properties", "# ба: ба\nba = ба {}\n"),
        ("a.json", '["ба {}"]'),
        ("a.srt", "1\n00:00:01,000 --> 00:00:02,000\nба {}\n"),
        ("a.strings", '"a" = "ба {}";\n'),
        ("a.html", '<meta charset="utf-8"><p>ба {}</p>\n'),
    ],
    ids=lambda value: value[:12],
)
def test_documents_in_utf_16_keep_their_encoding(encoding, bom, name, text):
    Path(name).write_bytes((bom + text.format("a")).encode(encoding))
    document = read_document(Path(name), detect_format(Path(name)), Languages("ru", "fr"), retranslate=False)
    assert document.render([CodedText("ба é")]) == ((bom + text.format("é")).encode(encoding), [])


def test_document_in_standard_input_is_rejected(run, monkeypatch):
    Path("a").write_text('<?xml version="1.0"?><xliff/>')
    with Path("a").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        with pytest.raises(InputError, match="the input is a document .xliff.; set input=FILE .* format=lines reads"):
            command(run)
        command(run, format="lines", output="b")
    assert Path("b").read_text().count("\n") == 1


def test_document_in_pipe_is_rejected(run):
    """A shell passes a pipe for ``input=<(…)``."""
    reading, writing = os.pipe()
    os.write(writing, b"PK\3\4")
    os.close(writing)
    with pytest.raises(InputError, match="the input is a zip archive"):
        command(run, input=f"/dev/fd/{reading}", output="/dev/null")
    os.close(reading)


def test_full_disk_raises_os_error(run):
    Path("a").write_text("ba\n")
    with pytest.raises(OSError, match="No space left on device"):
        command(run, input="a", output="/dev/full")


def test_format_lines_translates_document_as_lines(run):
    Path("a.po").write_text("ba\n\nde\n")
    command(run, input="a.po", output="b.txt", format="lines")
    assert Path("b.txt").read_text().count("\n") == 3


def test_number_of_translated_passages_is_reported(run, caplog):
    caplog.set_level(logging.INFO)
    content = po("ba de", "fi") + '\nmsgid "go"\nmsgstr "go"\n'
    Path("a.po").write_text(content)
    command(run, input="a.po", output="b.po")
    assert "a.po: 2 passages translated, 1 had a translation already" in caplog.text


def test_skipped_passages_are_reported_with_first_line(run, caplog, monkeypatch):
    caplog.set_level(logging.INFO)
    Path("a.json").write_text('["ba",\n"{de} fi",\n"{fi} de"]')
    monkeypatch.setattr(Translator, "hypotheses", lambda *_, **__: [[ScoredText("", None, coded=CodedText("x"))]] * 3)
    command(run, input="a.json", output="b.json")
    assert Path("b.json").read_text() == '["x",\n"{de} fi",\n"{fi} de"]'
    assert "a.json: 1 of 3 passages translated" in caplog.text
    assert "a.json: 2 passages left untranslated, the first at line 2" in caplog.text


def test_skip_keys_keeps_values_of_matching_keys(run, caplog):
    caplog.set_level(logging.INFO)
    content = '{"a": {"id": "ba de", "text": "fi"}, "meta": {"x": {"y": "go"}}}'
    Path("a.json").write_text(content)
    settings = {"input": "a.json", "output": "b.json"}
    command(run, **settings, skip_keys=["*.id", "meta.*"])
    written = json.loads(Path("b.json").read_text())
    assert written["a"]["id"] == "ba de" and written["meta"] == {"x": {"y": "go"}} and written["a"]["text"] != "fi"
    assert "1 passage translated; 2 keys skipped" in caplog.text
    command(run, **settings, skip_keys=["text"])
    assert "skip_keys=text matches no key: a key is, for example, a.id" in caplog.text


def test_format_setting_has_all_registered_formats():
    assert set(get_args(DocumentFormat)) == {"auto", "lines", *FORMATS}
