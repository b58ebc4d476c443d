"""Lines in and out of the translate command."""

import json
import os
from types import SimpleNamespace

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


def test_input_lines_lose_cr_and_bom_and_survive_bad_bytes(caplog):
    lines = list(
        decode_lines([b"\xef\xbb\xbfba\r\n", b"\xff\xfe\n", b"a\xe2\x80\xa8b\n", b"c\rd", b"\xef\xbb\xbfe"], "it")
    )
    assert lines == ["ba", "\ufffd\ufffd", "a\u2028b", "c\rd", "\ufeffe"]
    assert list(decode_lines([b"\xff", b"\xfe"], "two")) and "two: 2 lines were not UTF-8" in caplog.messages[-1]


def test_a_json_line_has_the_confidence_of_the_best_translation_if_it_is_asked_for():
    several = [ScoredText("a", -1.0, confidence=0.25), ScoredText("b", -2.0)]
    assert json.loads(json_line("x", several, confident=True)) == {
        "source": "x",
        "confidence": 0.25,
        "hypotheses": [{"text": "a", "score": -1.0}, {"text": "b", "score": -2.0}],
    }
    assert "confidence" not in json.loads(json_line("x", several))
    assert json.loads(json_line("", [ScoredText("", None)], confident=True))["confidence"] is None


def test_json_lines_stay_lines_and_read_back():
    text = 'a\u2028b\x85c"\\é漢'
    line = json_line(text, [ScoredText(text, -1.5), ScoredText("", None)])
    assert line.splitlines() == [line]
    assert "é漢" in line
    assert json.loads(line) == {
        "source": text,
        "hypotheses": [{"text": text, "score": -1.5}, {"text": "", "score": None}],
    }


def test_an_empty_translation_of_a_line_that_is_not_blank_is_reported(caplog):
    class Silent:
        config = DecodingConfig()

        def hypotheses(self, lines, numbers, after_batch, aligned, confident):
            return [[ScoredText("" if line in ("", "ba") else "de", None)] for line in lines]

    config = TranslateConfig(run="any")
    assert [line for line, _ in translate_window(Silent(), ["", "fi", "ba", "ba"], 7, None, config)] == [
        "",
        "de",
        "",
        "",
    ]
    assert caplog.messages == ["line 10 and 1 more: the translation is empty; check the source text"]


def test_a_reference_that_ends_early_is_refused_with_its_number_of_lines():
    config = TranslateConfig(run="any", reference="ref.txt")
    with pytest.raises(InputError, match=r"reference=ref\.txt has 4 lines, fewer than the input"):
        list(translate_window(None, ["ba", "de"], 3, iter(["fi"]), config))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_what_could_steer_a_terminal_is_made_visible_there_and_only_there(tmp_path, monkeypatch, is_terminal):
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


def test_progress_inside_a_window_is_shown():
    shown = []
    progress_display(["ba"] * 3, SimpleNamespace(set_postfix_str=shown.append))(1, 4)
    assert shown[0].startswith("next 3: 25%, ") and shown[0].endswith(" s to go")


def test_line_ends_in_cr_alone_are_warned_of(caplog):
    assert list(decode_lines([b"It is late.\r\n", b"a\rb\n"], "the input")) == ["It is late.", "a\rb"]
    assert not caplog.text
    assert list(decode_lines([b"It is late.\rI eat.\r"], "in.txt")) == ["It is late.\rI eat."]
    assert "in.txt has CR inside line 1, but only LF ends a line; convert it: tr '\\r' '\\n'" in caplog.text


@pytest.fixture
def command(tmp_path, shared_runs, monkeypatch):
    """Translates LINES in windows of four, up to a number of windows; returns how many were translated."""
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
def test_an_interrupted_command_continues_with_the_next_window(tmp_path, monkeypatch, command, settings):
    monkeypatch.chdir(tmp_path)
    assert command(**settings) == 3
    complete = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    for name in complete.keys() & {"out.txt", "links"}:
        (tmp_path / name).unlink()
    with pytest.raises(Interrupted):
        command(2, **settings)
    assert command(**settings) == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == complete


def test_other_settings_input_or_model_begin_anew(tmp_path, command):
    for file, settings in (("reference.txt", {"beam_size": 1}), ("in.txt", {}), ("run/model.yaml", {})):
        with pytest.raises(Interrupted):
            command(2)
        with (tmp_path / file).open("a") as changed:
            changed.write("# ba\n")
        assert command(**settings) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"input": "missing.txt"}, "missing.txt: no such file"),
        ({"output": "./in.txt"}, "output=./in.txt would overwrite the input in.txt"),
        ({"input": "a.partial", "format": "lines", "output": "a"}, "output=a would overwrite the input a.partial"),
        ({"input": "a.partial.json", "format": "lines", "output": "a"}, "would overwrite the input a.partial.json"),
        ({"reference": "reference.txt", "output": "reference.txt"}, "would overwrite the input reference.txt"),
        ({"output": "a", "decoding": {"alignments": "a.partial"}}, "alignments=a.partial would overwrite output=a"),
        ({"output": "folder"}, "output=folder is a folder"),
        ({"reference": "nowhere"}, "reference=nowhere: no such file"),
        ({"reference": "reference.txt"}, "reference=reference.txt has 1 lines, but the input 2"),
        ({"output": "out.txt"}, "nowhere: no such run or model folder"),
    ],
)
def test_files_that_cannot_be_used_are_refused(tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    for name, text in (
        ("in.txt", "ba\nde\n"),
        ("reference.txt", "ba\n"),
        ("a.partial", "ba\n"),
        ("a.partial.json", "ba\n"),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=message):
        translate(TranslateConfig.model_validate({"run": "nowhere", "input": "in.txt"} | settings))
    assert len(list(tmp_path.iterdir())) == 5
