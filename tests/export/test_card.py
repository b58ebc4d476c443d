"""The model card of an export: metadata, data, scores, license, and limits without the text layer."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from mt.config import ExportConfig
from mt.core.errors import InputError
from mt.export.card import LOSSES, write_card
from mt.storage.run_folder import read_config, write_config
from mt.storage.validation import read_json
from mt.translation.trained_model import open_model
from tests import toy

FIXTURES = Path(__file__).parents[1] / "releases" / "1.0.0"


@pytest.fixture
def run(tmp_path):
    """A finished run with a text layer."""
    return Path(shutil.copytree(FIXTURES / "transformer", tmp_path / "run"))


def _card(run, license=None, **description):
    """Return the card of a run whose description has changes."""
    trained = open_model(run)
    trained = replace(trained, description=trained.description.model_copy(update=description))
    config = ExportConfig(format="hugging_face", run=str(run), output="exported", license=license)
    write_card(run.parent, trained, config, "Use it.", library_name="ours")
    return (run.parent / "README.md").read_text()


def _section(card, name):
    return re.search(rf"## {name}\n\n(.*?)(\n\n## |\Z)", card, re.DOTALL)[1]


def test_card_has_metadata_scores_and_license(run):
    card = _card(run, "cc-by-4.0")
    metadata = yaml.safe_load(card.split("---\n")[1])
    assert metadata == {"language": ["xx", "yy"], "license": "cc-by-4.0", "library_name": "ours"}
    scores = _section(card, "Scores")
    assert "40 test pairs" in scores and "a beam size of 3 and a length penalty of 0.6" in scores
    bleu = round(read_json(run / "results.json")["bleu"], 1)
    assert re.search(rf"- BLEU {bleu} \(`nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:.*`\)", scores)
    assert scores.count("nrefs:1") == 3
    assert _section(card, "License").strip() == "cc-by-4.0" and _section(card, "Use") == "Use it."
    unlicensed = _card(run)
    assert "license" not in yaml.safe_load(unlicensed.split("---\n")[1])
    assert "license of this model is not specified" in _section(unlicensed, "License")


def test_card_title_has_names_of_languages(run):
    card = _card(run, source_language="deu_Latn", target_language="zh_TW")
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
        ({"kind": "hub", "path": "them/set", "revision": "v2"}, ["`them/set`, v2"]),
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
def test_card_has_names_of_corpora_without_folders(run, data, named):
    _with_data(run, **data)
    lines = _section(_card(run), "Data").splitlines()
    assert lines == [*(f"- {one}" for one in named), "- 2,500 training pairs in all"]


def test_card_of_model_folder_has_no_data_and_scores(run):
    for name in ("config.yaml", "results.json", "provenance.json"):
        (run / name).unlink()
    card = _card(run)
    assert _section(card, "Data") == _section(card, "Scores") == "Not recorded."


def test_card_reports_base_model(run):
    config = read_config(run)
    training = config.training.model_copy(update={"init_from": "runs/first"})
    write_config(run, config.model_copy(update={"training": training}))
    card = _card(run)
    assert "- the data of `first`, the base model" in _section(card, "Data") and "base_model" not in card
    toy.change_json(run / "provenance.json", lambda made: made.update(base_model=f"Them/opus-mt-xx-yy@{'a' * 40}"))
    card = _card(run)
    metadata = yaml.safe_load(card.split("---\n")[1])
    assert (metadata["base_model"], metadata["base_model_relation"]) == ("Them/opus-mt-xx-yy", "finetune")
    assert f"[Them/opus-mt-xx-yy](https://huggingface.co/Them/opus-mt-xx-yy), commit {'a' * 40}, the" in card
    toy.change_json(run / "provenance.json", lambda made: made.update(base_model="<b>/x"))
    with pytest.raises(InputError, match="provenance.json: corrupted, .*wrong or missing: base_model"):
        _card(run)


def test_card_and_warning_list_losses_of_text_layer(run, caplog):
    text = open_model(run).description.text
    limits = _section(_card(run), "Limits")
    (warning,) = [record.getMessage() for record in caplog.records]
    assert all(loss in limits and loss in warning for loss in LOSSES) and "text=off" in warning
    assert "more than 24 tokens" in limits
    caplog.clear()
    limits = _section(_card(run, text=text.model_copy(update={"enabled": False})), "Limits")
    assert limits.count("\n- ") == 2 and not any(loss in limits for loss in LOSSES) and caplog.records == []
