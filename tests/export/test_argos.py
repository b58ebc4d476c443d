"""The export for Argos Translate, existing outputs, and exports of models with several directions."""

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import sentencepiece
from pydantic import ValidationError

from mt.config import AugmentationConfig, DecodingConfig, ExportConfig, TextConfig, TokenizerConfig
from mt.core.errors import InputError
from mt.core.language import AskedDirection
from mt.export.command import EXPORTERS, export
from mt.export.ctranslate2 import export_argos
from mt.export.hugging_face import export_hugging_face
from mt.tokenizer.tokenizer import TokenizerPair
from mt.tokenizer.training import train_tokenizer
from mt.training.command import train
from mt.translation.translator import Translator
from tests import toy
from tests.brief import train_briefly

ctranslate2 = pytest.importorskip("ctranslate2")

RUN = Path(__file__).parents[1] / "releases" / "1.0.0" / "transformer"
"""A model that translates its toy language well, and without a text layer."""
LINES = (RUN / "scored" / "test.source").read_text().splitlines()


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    output = tmp_path_factory.mktemp("package") / "new" / "toy.argosmodel"
    export_argos(ExportConfig(format="argos", run=str(RUN), output=str(output), license="mit", version="1.2"))
    assert [path.name for path in output.parent.iterdir()] == ["toy.argosmodel"]
    return output


def test_package_has_files_and_metadata_of_argos_translate(package, tmp_path):
    with zipfile.ZipFile(package) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    assert folder.name == "translate-xx_yy-1_2"
    assert {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} == {
        "README.md", "metadata.json", "sentencepiece.model", "model/config.json", "model/model.bin",
        "model/shared_vocabulary.json",
    }  # fmt: skip
    assert json.loads((folder / "metadata.json").read_text()) == {
        "package_version": "1.2", "argos_version": "1.11", "from_code": "xx", "from_name": "xx", "to_code": "yy",
        "to_name": "yy", "links": [],
    }  # fmt: skip
    assert "license: mit" in (folder / "README.md").read_text()


def test_parts_of_package_translate_like_the_model(package, tmp_path):
    """They are called in the same way as by Argos Translate."""
    zipfile.ZipFile(package).extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.model"))
    results = ctranslate2.Translator(str(folder / "model"), compute_type="float32").translate_batch(
        [tokenizer.encode(line, out_type=str) for line in LINES],
        replace_unknowns=True,
        max_batch_size=32,
        batch_type="tokens",
        beam_size=4,
        num_hypotheses=1,
        length_penalty=0.2,
    )
    _assert_equals_model([tokenizer.decode_pieces(result.hypotheses[0]) for result in results])


def _assert_equals_model(translations):
    """Compare translations with those of the model. A few may differ: Argos Translate does not count EOS in lengths."""
    translator = Translator.load(RUN, DecodingConfig(beam_size=4, length_penalty=0.2), device="cpu")
    same = [text == other for text, other in zip(translations, translator.translate(LINES), strict=True)]
    assert sum(same) >= 0.95 * len(LINES)


WITHOUT_ITS_SENTENCE_SPLITTERS = """
import json, sys, types
for name in ("stanza", "minisbd"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["minisbd"].SBDetect = None
sys.modules["minisbd"].models = types.SimpleNamespace(list_models=lambda: [])
from argostranslate import package, sbd, translate
sbd.MiniSBDSentencizer.split_sentences = lambda self, text: [text]
package.install_from_path(sys.argv[1])
(installed,) = package.get_installed_packages()
assert (str(installed), installed.package_version) == ("xx → yy", "1.2") and "# xx to yy" in installed.get_readme()
print(json.dumps([translate.translate(line, "xx", "yy") for line in json.load(sys.stdin)]))
"""


@pytest.mark.skipif(importlib.util.find_spec("argostranslate") is None, reason="needs pip install argostranslate")
def test_argos_translate_installs_package_and_translates(package, tmp_path):
    """Its sentence splitters would be downloaded, so each line is one sentence here.

    It computes in float32, because int8 changes the translations of so small a model.
    """
    homes = {f"XDG_{kind}_HOME": str(tmp_path) for kind in ("DATA", "CONFIG", "CACHE")}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ITS_SENTENCE_SPLITTERS, str(package)],
        input=json.dumps(LINES),
        env=os.environ | homes | {"ARGOS_COMPUTE_TYPE": "float32"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    _assert_equals_model(json.loads(done.stdout))


def test_unsupported_model_is_rejected_with_all_reasons(tmp_path):
    tokenizers = (train_tokenizer(LINES, ("xx",), TokenizerConfig(vocabulary_size=size)) for size in (290, 300))
    run = train_briefly(tmp_path / "run", TokenizerPair(*tokenizers), "rnn", updates=1)
    with pytest.raises(
        InputError, match="Argos Translate cannot run this model: .*rnn_attention.*one tokenizer for both"
    ):
        export_argos(ExportConfig(format="argos", run=str(run), output=str(tmp_path / "new" / "toy.argosmodel")))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("export_format", EXPORTERS)
def test_export_rejects_existing_output(tmp_path, export_format):
    output = tmp_path / "toy.argosmodel"
    output.mkdir()
    (output / "file").write_text("mine")
    with pytest.raises(InputError, match=r"output=.*toy\.argosmodel: exists"):
        export(ExportConfig(format=export_format, run=str(RUN), output=str(output)))
    assert (output / "file").read_text() == "mine"


def test_failed_export_leaves_no_files(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mt.export.ctranslate2.shutil.make_archive", fail)
    with pytest.raises(OSError):
        export_argos(ExportConfig(format="argos", run=str(RUN), output=str(tmp_path / "toy.argosmodel")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "value"),
    [("output", "toy.zip"), ("version", "one"), ("version", "1."), ("license", "my license"), ("license", "a\nb: c")],
)
def test_invalid_package_settings_are_rejected(setting, value):
    settings = {"format": "argos", "run": "runs/demo", "output": "toy.argosmodel", setting: value}
    with pytest.raises(ValidationError, match="must|let it end in .argosmodel"):
        ExportConfig.model_validate(settings)


def test_model_of_several_directions_is_exported(tmp_path):
    """The package for Argos Translate has one direction, and the folder for ``transformers`` has all."""
    transformers = pytest.importorskip("transformers")
    toy.write_corpus(tmp_path, "copy", train=600)
    text = TextConfig(enabled=False, augmentation=AugmentationConfig(**toy.UNCHANGED))
    settings = {"data": {"reverse": True}, "model": {"norm": "post"}, "training": {"max_updates": 100}}
    run = toy.config(tmp_path, text=text, **settings)
    train(run)
    settings = {"run": str(run.folder), "output": str(tmp_path / "toy.argosmodel")}
    with pytest.raises(InputError, match="translates xx→yy, yy→xx: set target_language"):
        export_argos(ExportConfig(format="argos", **settings))
    export_argos(ExportConfig(format="argos", target_language="xx", **settings))
    export_hugging_face(ExportConfig(format="hugging_face", **settings | {"output": str(tmp_path / "hf")}))
    zipfile.ZipFile(tmp_path / "toy.argosmodel").extractall(tmp_path)
    package = tmp_path / "translate-yy_xx-1_0"

    config = DecodingConfig(engine="ctranslate2", beam_size=1)
    translator = Translator.load(run.folder, config, device="cpu", asked=AskedDirection(target="xx"))
    pairs = dict(zip(lines := toy.sentences(20, seed=4), translator.translate(lines), strict=True))
    pairs = {line: text for line, text in pairs.items() if len(text.split()) < 12}  # the others do not end
    assert len(pairs) > 9
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hf")
    batch = tokenizer([f">>xx<< {line}" for line in pairs], return_tensors="pt", padding=True)
    tokens = transformers.MarianMTModel.from_pretrained(tmp_path / "hf").generate(**batch, num_beams=1)
    assert tokenizer.batch_decode(tokens, skip_special_tokens=True) == [*pairs.values()]
    sources = [tokenizer.spm_source.encode(line, out_type=str) for line in pairs]
    results = ctranslate2.Translator(str(package / "model"), compute_type="float32").translate_batch(
        sources, beam_size=1
    )
    assert [tokenizer.spm_target.decode(best.hypotheses[0]) for best in results] == [*pairs.values()]
    cards = [(folder / "README.md").read_text() for folder in (tmp_path / "hf", package)]
    assert "# xx to yy, yy to xx" in cards[0] and "`>>yy<<`, `>>xx<<`" in cards[0]
    assert "# yy to xx" in cards[1] and ">>" not in cards[1]
