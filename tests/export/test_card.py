"""An export's README.md tells data, scores and licence, and what the text layer did that is lacking there."""

import logging
import re
import shutil
from pathlib import Path

import pytest
import yaml

from mt.config import ExportConfig
from mt.core.errors import InputError
from mt.core.json_file import read_json
from mt.export.card import losses, model_card
from mt.export.hugging_face import export_hugging_face
from mt.storage.folders import read_description
from mt.storage.native import write_description
from mt.storage.run_folder import read_config, write_config
from mt.translation.trained_model import open_model
from tests import toy

FIXTURES = Path(__file__).parents[1] / "formats" / "1.0.0"


@pytest.fixture
def run(tmp_path):
    """A finished run whose text layer has everything."""
    return Path(shutil.copytree(FIXTURES / "transformer", tmp_path / "run"))


def _card(run, license=None, cuts_sentences=False):
    return model_card(open_model(run), run, license, "Use it.", {"library_name": "ours"}, cuts_sentences)


def _section(card, name):
    return re.search(rf"## {name}\n\n(.*?)(\n\n## |\Z)", card, re.DOTALL)[1]


def test_metadata_scores_and_licence(run):
    card = _card(run, "cc-by-4.0")
    metadata = yaml.safe_load(card.split("---\n")[1])
    assert metadata == {"language": ["xx", "yy"], "license": "cc-by-4.0", "library_name": "ours"}
    scores = _section(card, "Scores")
    assert "40 test pairs" in scores and "a beam of 3 and a length penalty of 0.6" in scores
    bleu = round(read_json(run / "results.json")["bleu"], 1)
    assert re.search(rf"- BLEU {bleu} \(`nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:.*`\)", scores)
    assert scores.count("nrefs:1") == 3
    assert _section(card, "Licence").strip() == "cc-by-4.0" and _section(card, "Use") == "Use it."
    unlicensed = _card(run)
    assert "license" not in yaml.safe_load(unlicensed.split("---\n")[1])
    assert "not said under which licence" in _section(unlicensed, "Licence")


def test_languages_are_named():
    trained = open_model(FIXTURES / "transformer")
    named = {"source_language": "deu_Latn", "target_language": "zh_TW"}
    described = trained.description.model_copy(update=named)
    card = model_card(type(trained)(described, trained.tokenizers, trained.model, None), Path("nowhere"), None, "")
    assert "# German to Chinese (traditional)" in card
    assert yaml.safe_load(card.split("---\n")[1])["language"] == ["de", "zh"]


def _with_data(run, **data):
    config = read_config(run)
    values = config.model_dump(mode="json")
    values["data"] = {"source_language": "xx", "target_language": "yy", **data}
    write_config(run, type(config).model_validate(values))


@pytest.mark.parametrize(
    ("data", "named"),
    [
        ({"kind": "files", "train": ["/home/me/a.xx", "/home/me/a.yy"]}, ["`a.xx`, `a.yy`"]),
        ({"kind": "table", "train": "/home/me/memory.tmx"}, ["`memory.tmx`"]),
        ({"kind": "table", "train": ["/home/me/a.tsv", "/home/me/more/"]}, ["`a.tsv`, `more`"]),
        ({"kind": "hub", "path": "them/set", "revision": "v2"}, ["`them/set`, revision v2"]),
        ({"kind": "hub", "path": "/tmp"}, ["`tmp`"]),
        (
            {
                "kind": "mixture",
                "corpora": [{"kind": "hub", "path": "them/set"}, {"kind": "table", "train": "/home/me/a.tsv"}],
            },
            ["`them/set`", "`a.tsv`"],
        ),
    ],
    ids=str,
)
def test_the_data_are_named_but_not_where_they_lie(run, data, named):
    _with_data(run, **data)
    lines = _section(_card(run), "Data").splitlines()
    assert lines == [*(f"- {one}" for one in named), "- 2,500 training pairs in all"]


def test_a_model_folder_alone_says_what_is_not_recorded(run):
    for name in ("config.yaml", "results.json", "provenance.json"):
        (run / name).unlink()
    card = _card(run)
    assert _section(card, "Data") == _section(card, "Scores") == "Not recorded."


def test_fine_tuning_is_told(run):
    config = read_config(run)
    training = config.training.model_copy(update={"init_from": "runs/first"})
    write_config(run, config.model_copy(update={"training": training}))
    card = _card(run)
    assert "- and, as it was fine-tuned, whatever first was trained on" in _section(card, "Data")
    assert "Its training began with the model `first`." in card and "base_model" not in card
    toy.change_json(run / "provenance.json", lambda made: made.update(base_model=f"Them/opus-mt-xx-yy@{'a' * 40}"))
    card = _card(run)
    metadata = yaml.safe_load(card.split("---\n")[1])
    assert (metadata["base_model"], metadata["base_model_relation"]) == ("Them/opus-mt-xx-yy", "finetune")
    assert f"[Them/opus-mt-xx-yy](https://huggingface.co/Them/opus-mt-xx-yy), commit {'a' * 40}." in card
    toy.change_json(run / "provenance.json", lambda made: made.update(base_model="<b>/x"))
    with pytest.raises(InputError, match="provenance.json: damaged, .*wrong or missing: base_model"):
        _card(run)


KINDS = ["links, numbers", "lines in capitals", "typing errors", "more than one sentence", "glossary and patterns"]


def test_what_is_lost_is_told_of_what_there_was(run, caplog, tmp_path):
    described = open_model(run).description

    def told(cuts_sentences=False, **rules):
        changed = described.model_copy(update={"text": described.text.model_copy(update=rules)})
        text = "; ".join(losses(changed, cuts_sentences))
        return [kind for kind in KINDS if kind in text]

    assert told() == KINDS[:4]
    assert told(terms="0" * 64, patterns=("[0-9]",)) == KINDS
    assert told(min_word_count=None) == [*KINDS[:2], KINDS[3]]
    assert told(cuts_sentences=True) == KINDS[:3]
    assert told(enabled=False) == []
    assert "lines without capitals" in "; ".join(losses(described))
    assert all(kind in _section(_card(run), "What it lacks") for kind in KINDS[:4])
    export_hugging_face(ExportConfig(format="hugging_face", run=str(run), output=str(tmp_path / "out")))
    (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert all(kind in warning for kind in KINDS[:4]) and "text=off" in warning


def test_a_model_without_a_text_layer_loses_nothing(run, caplog, tmp_path):
    description = read_description(run)
    text = description.text.model_copy(update={"enabled": False, "slots": 10})
    write_description(run, description.model_copy(update={"text": text}))
    export_hugging_face(ExportConfig(format="hugging_face", run=str(run), output=str(tmp_path / "out")))
    assert [record for record in caplog.records if record.levelno == logging.WARNING] == []
    card = (tmp_path / "out" / "README.md").read_text()
    assert not any(kind in card for kind in KINDS) and "with what is lacking" not in card
