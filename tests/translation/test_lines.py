"""translate.py with lines of text: decoding of lines, JSON lines, windows, and resumption after an interruption."""

import json
import os
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from mt.config import DecodingConfig, TranslateConfig
from mt.core.errors import InputError, Interrupted
from mt.translation.command import translate
from mt.translation.lines import decode_lines, json_line, progress_display, translate_window
from mt.translation.results import ScoredText
from mt.translation.translator import Translator
from tests import toy
from tests.processes import PROJECT

LINES = [*toy.sentences(9, seed=3), "", "ba https://example.org/7"]


def test_decode_lines_cleans_line_ends_and_invalid_bytes():
    lines = [b"\xef\xbb\xbfba\r\n", b"\xff\xfe\n", b"a\xe2\x80\xa8b\n", b"c\rd", b"\xef\xbb\xbfe"]
    assert list(decode_lines(lines, "in.txt")) == ["ba", "\ufffd\ufffd", "a\u2028b", "c\rd", "\ufeffe"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([b"\xff", b"\xfe"], "in.txt: 2 lines were not UTF-8; convert the file to UTF-8"),
        (
            [b"It is late.\rI eat.\r"],
            "in.txt has CR inside line 1, but only LF ends a line; convert it: tr '\\r' '\\n'",
        ),
    ],
    ids=["invalid bytes", "CR"],
)
def test_decode_lines_warns_of_wrong_files(caplog, lines, message):
    list(decode_lines(lines, "in.txt"))
    assert caplog.messages[-1] == message


def test_decode_lines_accepts_crlf_and_later_cr_silently(caplog):
    lines = [b"It is late.\r\n", b"a\rb\n", "\ufffd".encode()]
    assert list(decode_lines(lines, "in.txt")) == ["It is late.", "a\rb", "\ufffd"]
    assert not caplog.text


@pytest.mark.parametrize("confident", [True, False])
def test_json_line_is_one_line_with_all_hypotheses(confident):
    text = 'a\u2028b\x85c"\\é漢'
    line = json_line(text, [ScoredText(text, -1.5, confidence=0.25), ScoredText("", None)], confident)
    assert line.splitlines() == [line]
    assert "é漢" in line
    expected = {"source": text, "hypotheses": [{"text": text, "score": -1.5}, {"text": "", "score": None}]}
    assert json.loads(line) == expected | ({"confidence": 0.25} if confident else {})


def test_json_line_has_null_for_missing_confidence():
    assert json.loads(json_line("", [ScoredText("", None)], confident=True))["confidence"] is None


def test_translate_window_warns_of_empty_translations(caplog):
    texts = ["", "de", "", ""]
    translator = Mock(config=DecodingConfig(), hypotheses=lambda *_, **__: [[ScoredText(text, None)] for text in texts])
    lines = translate_window(translator, ["", "fi", "ba", "ba"], 7, None, TranslateConfig(run="any"))
    assert [line for line, _ in lines] == texts
    assert caplog.messages == ["line 10 and 1 more: the translation is empty; check the source text"]


def test_translate_window_rejects_short_reference():
    config = TranslateConfig(run="any", reference="ref.txt")
    with pytest.raises(InputError, match=r"reference=ref\.txt has 4 lines, fewer than the input"):
        list(translate_window(None, ["ba", "de"], 3, iter(["fi"]), config))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_control_characters_are_escaped_on_terminals_only(tmp_path, monkeypatch, is_terminal):
    line = "ba \u202e de"
    (tmp_path / "lines.txt").write_text(f"{line}\n")
    reading, writing = os.openpty() if is_terminal else os.pipe()
    with open(writing, "w") as output, open(reading, "rb", buffering=0) as screen:
        monkeypatch.setattr("sys.stdout", output)
        lines = str(tmp_path / "lines.txt")
        translate(TranslateConfig(run=str(PROJECT / "tests/releases/1.0.0/transformer"), input=lines, reference=lines))
        output.flush()
        shown = screen.read(10_000).decode()
    assert ("\u202e" in shown) == (not is_terminal) and ("\\u202e" in shown) == is_terminal


def test_progress_display_shows_share_and_remaining_time():
    shown = []
    progress_display(["ba"] * 3, SimpleNamespace(set_postfix_str=shown.append))(1, 4)
    assert shown[0].startswith("next 3: 25%, ") and shown[0].endswith(" s to go")


@pytest.fixture
def command(tmp_path, shared_runs, monkeypatch):
    """A function that translates LINES in windows of four, and returns the number of translated windows.

    It is interrupted after ``windows`` windows.
    """
    monkeypatch.setattr("mt.translation.lines.WINDOW_LINES", 4)
    for name, lines in (("in.txt", LINES), ("reference.txt", LINES[::-1])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    run = toy.copy_to_change(shared_runs["transformer-1"], tmp_path / "run")
    methods = {name: getattr(Translator, name) for name in ("hypotheses", "score")}

    def translate_windows(windows=100, output="out.txt", reference=None, **decoding):
        done = []

        def counted(method):
            def call(*arguments, **options):
                if len(done) == windows:
                    raise Interrupted(15, "terminated")
                done.append(method)
                return method(*arguments, **options)

            return call

        for name, method in methods.items():
            monkeypatch.setattr(Translator, name, counted(method))
        paths = {"run": run, "input": tmp_path / "in.txt", "output": tmp_path / output}
        paths |= {"reference": tmp_path / reference} if reference else {}
        config = {name: str(path) for name, path in paths.items()} | {"threads": 1, "decoding": decoding}
        translate(TranslateConfig.model_validate(config))
        return len(done)

    return translate_windows


@pytest.mark.parametrize(
    "settings", [{}, {"alignments": "links"}, {"n_best": 2}, {"reference": "reference.txt"}], ids=str
)
def test_interrupted_command_resumes_with_next_window(tmp_path, monkeypatch, command, settings):
    monkeypatch.chdir(tmp_path)
    assert command(**settings) == 3
    complete = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name in complete.keys() & {"out.txt", "links"}:
        (tmp_path / name).unlink()
    with pytest.raises(Interrupted):
        command(2, **settings)
    assert command(**settings) == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == complete


@pytest.mark.parametrize(
    ("changed_file", "settings"), [("reference.txt", {"beam_size": 1}), ("in.txt", {}), ("run/model.yaml", {})]
)
def test_changed_settings_input_or_model_start_anew(tmp_path, command, changed_file, settings):
    with pytest.raises(Interrupted):
        command(2)
    with (tmp_path / changed_file).open("a") as changed:
        changed.write("# ba\n")
    assert command(**settings) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"input": "missing.txt"}, "missing.txt: no such file"),
        ({"output": "./in.txt"}, "output=./in.txt would overwrite the input in.txt"),
        ({"reference": "reference.txt", "output": "reference.txt"}, "would overwrite the input reference.txt"),
        ({"output": "a", "decoding": {"alignments": "a.partial"}}, "alignments=a.partial would overwrite output=a"),
        ({"output": "folder"}, "output=folder is a folder"),
        ({"reference": "nowhere"}, "reference=nowhere: no such file"),
        ({"reference": "reference.txt"}, "reference=reference.txt has 1 lines, but the input 2"),
        ({"output": "out.txt"}, "nowhere: no such run or model folder"),
    ],
)
def test_unusable_files_are_rejected(tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("in.txt", "ba\nde\n"),
        ("reference.txt", "ba\n"),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=message):
        translate(TranslateConfig.model_validate({"run": "nowhere", "input": "in.txt"} | settings))
    assert len(list(tmp_path.iterdir())) == 3
