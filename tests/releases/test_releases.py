"""Runs of released versions translate to the lines beside them, and unfinished ones can be finished.

They were made on made-up text, and are as small as possible. Nothing in them names a machine. 2.0.0 has features that
1.0.0 lacked: two directions, symbols that are never split, frozen parameters, a learning rate that falls on a plateau.
"""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from mt.config import DecodingChoice, DecodingConfig, TextConfig, TokenizerConfig, TranslateConfig
from mt.core.errors import InputError
from mt.storage.folders import read_description
from mt.storage.model_folder import MODEL_FORMAT
from mt.storage.run_folder import SOURCE_WORDS, read_config
from mt.storage.validation import read_json, write_json
from mt.training.command import train
from mt.translation.command import translate
from mt.translation.ctranslate2_engine import CTranslate2Engine
from mt.translation.trained_model import open_model
from mt.translation.translator import Translator
from tests import toy
from tests.releases import FIXTURES, HERE


def translated(run: Path, output: Path, **decoding: object) -> str:
    """What translate.py makes of the odd lines."""
    choice = DecodingChoice(**decoding)
    translate(TranslateConfig(run=str(run), input=str(HERE / "lines.txt"), output=str(output), decoding=choice))
    return output.read_text()


def expected(name: str) -> str:
    return (FIXTURES / f"{name}.txt").read_text()


def edit(path: Path, change) -> None:
    values = yaml.safe_load(path.read_text())
    change(values)
    path.write_text(yaml.safe_dump(values))


@pytest.fixture
def model(tmp_path):
    """A copy of what is a model in the Transformer's run folder."""
    copy = tmp_path / "model"
    copy.mkdir()
    for name in ("model.yaml", "tokenizer.model", "model.safetensors", "source_words.json"):
        shutil.copy(FIXTURES / "transformer" / name, copy)
    return copy


@pytest.mark.parametrize("name", ["transformer", "rnn"])
def test_a_run_translates_to_the_lines_beside_it(name, tmp_path):
    assert translated(FIXTURES / name, tmp_path / "out.txt") == expected(name)


def test_a_run_has_the_confidences_beside_it(tmp_path):
    output = tmp_path / "out.jsonl"
    translate(
        TranslateConfig(run=str(FIXTURES / "rnn"), input=str(HERE / "lines.txt"), output=str(output), confidence=True)
    )
    lines, expected_lines = (
        [json.loads(line) for line in file.read_text().splitlines()] for file in (output, FIXTURES / "rnn.jsonl")
    )
    for line in expected_lines:  # scores differ in the last bits between processors
        line["confidence"] = pytest.approx(line["confidence"], abs=1e-3)
        for hypothesis in line["hypotheses"]:
            hypothesis["score"] = pytest.approx(hypothesis["score"], abs=1e-4)
    assert lines == expected_lines


def test_a_run_translates_the_same_in_ctranslate2(tmp_path):
    run = Path(shutil.copytree(FIXTURES / "transformer", tmp_path / "transformer"))
    choice = DecodingChoice(engine="ctranslate2")
    translator = Translator.load(run, choice.over(read_description(run).decoding), device="cpu")
    assert isinstance(translator.engine, CTranslate2Engine)
    assert translated(run, tmp_path / "out.txt", engine="ctranslate2") == expected("transformer")


def test_description_tokenizer_weights_and_words_alone_are_a_model(model, tmp_path):
    assert translated(model, tmp_path / "out.txt") == expected("transformer")


def test_typing_errors_are_corrected_by_the_words_of_the_folder(model, tmp_path, caplog):
    caplog.set_level("INFO")
    corrected = DecodingChoice(correct_typos=True)  # there is no word list of the language
    translator = Translator.load(model, corrected, device="cpu")
    lines = ["ba de fi go ku", "mo la su", "go ra ti"]
    typed = ["bba ed fi go kuu", "mo la suu", "go rra ti"]
    assert translator.translate(typed) == translator.translate(lines)
    assert translator.score(typed, lines) == translator.score(lines, lines)
    toy.write_lines(tmp_path / "in.txt", typed)
    config = {"run": str(model), "input": str(tmp_path / "in.txt"), "output": str(tmp_path / "out.txt")}
    translate(TranslateConfig(**config, decoding=corrected))
    assert (
        "are not in the training text, corrected as typing errors: 5 (bba → ba, ed → de, kuu → ku, suu → su, rra → ra);"
        in caplog.text
    )
    caplog.clear()
    as_typed = DecodingChoice(correct_typos=False)
    translate(TranslateConfig(**config, decoding=as_typed))
    assert "typing errors" not in caplog.text
    as_typed = Translator.load(model, as_typed, device="cpu")
    assert as_typed.translate(lines) == translator.translate(lines)
    assert as_typed.score(typed, lines) != translator.score(typed, lines)


def test_missing_or_corrupted_words_are_named(model):
    words = model / SOURCE_WORDS
    (content := read_json(words))["words"]["ba"] = "many"
    write_json(words, content)
    with pytest.raises(InputError, match=rf"{SOURCE_WORDS}: corrupted, or written by another version"):
        open_model(model)
    words.unlink()
    with pytest.raises(InputError, match=rf"{SOURCE_WORDS}: cannot be read: .*No such file"):
        open_model(model)


def test_both_ways_to_translate_take_the_models_own_decoding(tmp_path):
    run = Path(shutil.copytree(FIXTURES / "transformer", tmp_path / "run"))
    cut_short = {"max_length_ratio": 0.1, "max_length_extra": 2}
    edit(run / "model.yaml", lambda values: values["decoding"].update(cut_short))
    line = "ba de fi go ku"
    (tmp_path / "in.txt").write_text(f"{line}\n")
    config = {"run": str(run), "input": str(tmp_path / "in.txt"), "output": str(tmp_path / "out.txt")}
    translate(TranslateConfig(**config))
    short = (tmp_path / "out.txt").read_text()
    assert len(short.split()) <= 3
    assert Translator.load(run, device="cpu").translate([line]) == [short.removesuffix("\n")]
    assert Translator.load(run, device="cpu").config.beam_size == 3
    translate(TranslateConfig(**config, decoding=DecodingChoice(max_length_extra=20)))
    assert len((tmp_path / "out.txt").read_text().split()) >= 5


def test_a_choice_that_the_models_own_decoding_contradicts_is_reported(model, tmp_path):
    with pytest.raises(
        InputError, match=r"^decoding\.n_best=4 needs beam_size ≥ 4, not 3 \(settings that you do not give come"
    ):
        translated(model, tmp_path / "out.txt", n_best=4)
    assert not (tmp_path / "out.txt").exists()
    choice = DecodingChoice(n_best=4, beam_size=4)
    assert choice.over(DecodingConfig(beam_size=3)) == DecodingConfig(beam_size=4, n_best=4)


def test_unknown_training_settings_make_no_model_useless(tmp_path):
    run = Path(shutil.copytree(FIXTURES / "rnn", tmp_path / "run"))

    def of_another_version(values):
        values["training"] |= {"dropped": 1, "batch_tokens": "many"}
        values["data"] |= {"kind": "dropped"}
        values["tokenizer"]["sampling"] = "some"
        values["dropped"] = {"key": "value"}
        del values["name"]

    edit(run / "config.yaml", of_another_version)
    assert translated(run, tmp_path / "out.txt") == expected("rnn")
    with pytest.raises(InputError, match="not a config of this version"):
        read_config(run)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda values: values.update(format=2), r"another version of mt-trainer \(its format is not 1\)"),
        (lambda values: values.update(format=0, new=1), "written by another version"),
        (lambda values: values.pop("format"), "written by another version"),
        (lambda values: values.update(format=True), "written by another version"),
        (lambda values: values.update(format="1"), "written by another version"),
        (lambda values: values.update(new=1), f"not a model description of format {MODEL_FORMAT}: new: "),
        (lambda values: values.update({"\x1b[2J" * 99: 1}), r": (\\x1b\[2J){10,20}.{0,3}: "),
        (lambda values: values["model"].update(new=1), r"model\.transformer\.new"),
        (lambda values: values["model"].update(width="16"), r"model\.transformer\.width: .*integer"),
        (lambda values: values["model"].update(width=10**9), r"model\.transformer\.width"),
        (lambda values: values["model"].update(architecture="mamba"), "model: .*mamba"),
        (lambda values: values["text"].update(final_marks={"\U0010f000": ["a"]}), r"text\.final_marks\."),
        (lambda values: values["decoding"].update(new=1), r"decoding\.new"),
        (lambda values: values["decoding"].update(method="sample"), "a model finds one best translation of plain text"),
        (lambda values: values["tokenizer"].update(sampling=0.1), r"tokenizer\.sampling"),
        (lambda values: values["tokenizer"].update(joint=False), "trained with a tokenizer for each language"),
        (lambda values: values.pop("target_language"), "target_language"),
        (lambda values: values.update(target_language="../y"), "target_language"),
        (lambda values: values["model"].update(width=32), r"model\.safetensors: does not fit"),
        (lambda values: values.update(dict.fromkeys(map(str, range(99)), 1)), "and 89 more;"),
    ],
)  # fmt: skip
def test_a_description_that_is_not_understood_is_refused_by_name(model, change, told):
    edit(model / "model.yaml", change)
    with pytest.raises(InputError, match=told) as refused:
        open_model(model)
    assert str(refused.value).startswith(str(model)) and "\x1b" not in str(refused.value)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "1", "format: 1", "a: &a [*a]", "? [x]\n: 1\n", "1: 2\nformat: 1\n", f"format: 0x{'f' * 5000}",
     "\xff: [", "format: 2024-13-45", "format: !!int foo", "format: !!bool foo",
     "!!python/object/apply:os.system [exit 1]"],
)  # fmt: skip
def test_what_is_no_description_is_refused_by_name(model, content):
    (model / "model.yaml").write_text(content, encoding="latin-1")
    with pytest.raises(InputError, match=r"model\.yaml: "):
        open_model(model)


@pytest.mark.parametrize("name", ["model.yaml", "tokenizer.model", "model.safetensors"])
@pytest.mark.parametrize("damage", ["missing", "cut short", "garbage"])
def test_a_missing_or_corrupted_file_of_a_model_is_named(model, name, damage):
    content = (model / name).read_bytes()
    (model / name).unlink()
    if damage != "missing":
        (model / name).write_bytes(content[:-100] if damage == "cut short" else b"garbage")
    with pytest.raises(
        InputError,
        match=f"{name}:? .*(no such file|corrupted|cannot be read|not a model description|give the folder of a run)",
    ):
        open_model(model)


def test_a_folder_that_is_no_model_is_reported_what_one_holds(tmp_path):
    with pytest.raises(
        InputError, match=r"no run or model folder: there is no model\.yaml in it; give the folder of a run"
    ):
        open_model(tmp_path)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize(("source", "target"), [("xx", "yy"), ("yy", "xx")])
def test_run_of_two_directions_translates_to_the_recorded_lines(source, target, engine, tmp_path):
    config = TranslateConfig(
        run=str(HERE / "2.0.0/directions"),
        input=str(HERE / "lines.txt"),
        output=str(tmp_path / "out.txt"),
        source_language=source,
        target_language=target,
        decoding=DecodingChoice(engine=engine),
    )
    translate(config)
    assert (tmp_path / "out.txt").read_text() == (HERE / f"2.0.0/directions.{source}-{target}.txt").read_text()


def begin_again(version, folder, monkeypatch):
    """Copy the unfinished run of a version, and its corpus, and change to the folder that it was begun in."""
    shutil.copytree(HERE / version / "unfinished", folder / "runs/unfinished")
    shutil.copytree(FIXTURES / "corpus", folder / "corpus")
    monkeypatch.chdir(folder)
    return Path("runs/unfinished")


@pytest.fixture
def unfinished(tmp_path, monkeypatch):
    return begin_again("1.0.0", tmp_path, monkeypatch)


@pytest.mark.parametrize(("version", "loss"), [("1.0.0", 3.7100167), ("2.0.0", 5.2528428)])
def test_unfinished_run_ends_as_with_the_version_that_began_it(version, loss, tmp_path, monkeypatch):
    unfinished = begin_again(version, tmp_path, monkeypatch)
    before = (unfinished / "metrics.jsonl").read_text()
    train(read_config(unfinished))
    metrics = (unfinished / "metrics.jsonl").read_text()
    assert metrics.startswith(before)
    (last,) = [line for line in map(json.loads, metrics.splitlines()) if (line["step"], line["split"]) == (40, "valid")]
    assert last["loss"] == pytest.approx(loss, rel=1e-3)
    assert json.loads((unfinished / "results.json").read_text())["updates"] == 40
    assert read_description(unfinished) == open_model(unfinished).description
    assert yaml.safe_load((unfinished / "model.yaml").read_text())["format"] == MODEL_FORMAT


@pytest.mark.parametrize(
    ("section", "changes", "told"),
    [
        ("training", {"replay": 0.5}, r"training\.replay=0\.5 was removed"),
        ("tokenizer", {"kind": "unigram"}, r"tokenizer\.sampling=0\.1 is for kind=bpe, not unigram"),
    ],
)
def test_an_unfinished_run_with_settings_that_are_gone_is_refused(unfinished, section, changes, told):
    edit(unfinished / "config.yaml", lambda values: values[section].update(changes))
    with pytest.raises(InputError, match=rf"begun by an earlier version .*: {told}\. Finish it with version 1\.0\.0"):
        train(read_config(unfinished))


def test_a_run_that_began_packed_stays_packed(unfinished):
    """As by ``training.batching=auto`` of 1.0.0 on a GPU."""
    toy.change_json(
        unfinished / "provenance.json",
        lambda made: made["starts"][0]["resolved_settings"]["batches"].update(batching="packed"),
    )
    train(read_config(unfinished))
    starts = read_json(unfinished / "provenance.json")["starts"]
    assert [start["resolved_settings"]["batches"]["batching"] for start in starts] == ["packed", "packed"]


def test_a_checkpoint_of_another_format_is_refused(unfinished):
    progress = unfinished / "checkpoints/step_20/progress.json"
    write_json(progress, read_json(progress) | {"format": 99})
    with pytest.raises(InputError, match=r"progress\.json: checkpoint format 99, but this version"):
        train(read_config(unfinished))


@pytest.mark.parametrize("key", ["init_from", "reuse"])
def test_training_starts_from_a_model_without_a_config(unfinished, model, key):
    config = read_config(unfinished)
    training = config.training.model_copy(update={"max_updates": 10})
    tokenizer = TokenizerConfig(sampling=config.tokenizer.sampling)
    if key == "init_from":
        training = training.model_copy(update={"init_from": str(model)})
    else:
        tokenizer = tokenizer.model_copy(update={"reuse": str(model)})
    text = TextConfig(augmentation=config.text.augmentation.model_copy(update={"slots": 0.0}))
    changes = {
        "name": "tuned", "text": text, "model": read_description(model).model, "training": training,
        "tokenizer": tokenizer,
    }  # fmt: skip
    train(config.model_copy(update=changes))
    recorded = read_config(Path("runs/tuned")).tokenizer
    assert (recorded.vocabulary_size, recorded.sampling) == (290, config.tokenizer.sampling)
    assert (Path("runs/tuned") / "tokenizer.model").read_bytes() == (model / "tokenizer.model").read_bytes()
