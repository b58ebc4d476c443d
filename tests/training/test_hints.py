"""Tests of hints about model size, language codes, scripts, vocabulary, length and scores."""

import logging
import operator
import re

import datasets
import pytest
import torch

from mt.cli.composition import compose_job
from mt.config import FilesConfig, TrainConfig
from mt.core.errors import InputError
from mt.metrics.registry import metrics_for
from mt.models.build import build_model
from mt.training import validation
from mt.training.command import train
from mt.training.hints import (
    collapse_hint,
    language_code_hint,
    low_score_hint,
    model_size_hint,
    no_letters_hint,
    run_length_hint,
    script_hints,
    vocabulary_hints,
)
from tests import toy


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """3,000 pairs, 19,000 target pieces, a vocabulary of 320"""
    folder = tmp_path_factory.mktemp("corpus")
    toy.write_corpus(folder, "reverse")
    return toy.prepared(toy.config(folder))


def preset(word):
    job = compose_job("train", TrainConfig, [word])
    return job.config.model


@pytest.mark.parametrize(
    ("model", "better"),
    [
        ("transformer_big", "transformer_tiny"),
        ("transformer_base", "transformer_tiny"),
        ("rnn_attention_base", "rnn_attention_tiny"),
        ("transformer_tiny", None),  # none is smaller
    ],
)
def test_model_size_hint_names_smaller_preset(data, model, better):
    model_config = preset(f"model={model}")
    hint = model_size_hint(model_config, data.tokenizers, data.train)
    assert hint is None if better is None else f"model={better} " in hint


def test_model_size_hint_prefers_largest_fitting_preset(data, monkeypatch):
    monkeypatch.setattr("mt.training.hints.MAX_PARAMETERS_PER_TOKEN", 200)  # 3.8 M
    model_config = preset("model=transformer_base")
    assert "model=transformer_small " in model_size_hint(model_config, data.tokenizers, data.train)


def test_model_size_hint_ignores_deep_encoder_presets(data, monkeypatch):
    sizes = {}
    for model in ("transformer_small", "transformer_small_deep"):
        model_config = preset(f"model={model}")
        with torch.device("meta"):
            sizes[model] = sum(weight.numel() for weight in build_model(model_config, data.tokenizers).parameters())
    assert sizes["transformer_small_deep"] < sizes["transformer_small"]
    pieces = sum(data.train["target_length"]) + len(data.train)
    monkeypatch.setattr("mt.training.hints.MAX_PARAMETERS_PER_TOKEN", sizes["transformer_small_deep"] / pieces)
    model_config = preset("model=transformer_base")
    assert "model=transformer_tiny " in model_size_hint(model_config, data.tokenizers, data.train)


@pytest.mark.parametrize(
    "code", ["xx", "yy", "src", "trg", "qaa", "und", "zh-Hant", "pt_BR", "sr-Latn", "deu_Latn", "toy"]
)
def test_language_code_hint_accepts_known_code(code):
    assert language_code_hint("key", code) is None


@pytest.mark.parametrize("code", ["zz", "zz_ZZ", "foobar"])
def test_language_code_hint_reports_unknown_code(code):
    assert language_code_hint("data.source_language", code).startswith(
        f"data.source_language={code} is not a known language code (ISO 639): set the right one"
    )


ENGLISH, CHINESE, THAI = "A dog runs across the meadow.", "一只狗跑过草地。", "สุนัขวิ่งข้ามทุ่งหญ้า"
JAPANESE, KOREAN = "犬が草原を走っている。", "개가 초원을 달린다."


# fmt: off
@pytest.mark.parametrize(("codes", "texts", "expected"), [
    ("en zh_CN", (ENGLISH, CHINESE), []),
    ("en lzh", (ENGLISH, CHINESE), []),
    ("ja ko", (JAPANESE, KOREAN), []),
    ("xx yy", (ENGLISH, ENGLISH), []),
    ("en zz", (ENGLISH, CHINESE), ["target_language=zz, but the targets are in Chinese script: set the"]),
    ("zh ja", (CHINESE, CHINESE), ["data.target_language=ja, but the targets are in Chinese script"]),
    ("zh xx", (JAPANESE, THAI), ["source_language=zh, but the sources are in Japanese", "in Thai script: set"]),
    ("th en", (ENGLISH, ENGLISH), ["data.source_language=th, but the sources are not in Thai script"]),
    ("ja zh", (CHINESE, JAPANESE), ["the sources are in Chinese script", "the targets are in Japanese script"]),
    ("en zh", (ENGLISH, f"{CHINESE} {20 * 'localhost'}"), []),  # a little of the expected script is enough
    ("en zh", (ENGLISH, "3 × 4"), []),  # no letters
    ("en jp", (ENGLISH, JAPANESE), ["in Japanese script: set the code of a language in this script (ja)"]),
])  # fmt: on
def test_script_hints_report_text_in_another_script(codes, texts, expected):
    source, target = codes.split()
    config = FilesConfig(kind="files", train=("a", "b"), source_language=source, target_language=target)
    sources, targets = (["2024", *[text] * 3000] for text in texts)
    hints = list(script_hints(config, datasets.Dataset.from_dict({"source": sources, "target": targets})))
    assert len(hints) == len(expected) and all(map(operator.contains, hints, expected)), hints


def test_script_hints_precede_tokenizer_training(tmp_path, caplog):
    toy.write_corpus(tmp_path, "reverse", train=300)
    config = toy.config(tmp_path)
    data = config.data.model_copy(update={"target_language": "zh"})
    tokenizer = config.tokenizer.model_copy(update={"vocabulary_size": 6})
    with pytest.raises(InputError, match="vocabulary_size=6"):
        train(config.model_copy(update={"data": data, "tokenizer": tokenizer}))
    assert "data.target_language=zh, but the targets are not in Chinese script" in caplog.text


def test_run_length_hint_suggests_one_epoch():
    assert run_length_hint(0.5) is None
    assert "0.0025 of an epoch: set training.epochs=1" in run_length_hint(0.0025)


def test_train_logs_hints(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    toy.write_corpus(tmp_path, "reverse")
    training = {"max_updates": 2, "schedule": {"warmup": 0}, "accumulate": 3}
    model = {"width": 192, "feed_forward": 8000}
    train(toy.config(tmp_path, data={"source_language": "zz"}, model=model, training=training))
    assert "target tokens: set model=transformer_tiny " in caplog.text
    assert "data.source_language=zz is not a known language code" in caplog.text
    assert "has learned next to nothing" in caplog.text
    (batches,) = re.findall(r"(\d+) batches an epoch", caplog.text)
    assert f"training ends after {6 / int(batches):.2g} of an epoch" in caplog.text


def test_no_letters_hint_suggests_turning_off_text_layer():
    numbers = {"source": ["1 2 3", "4 5", "a b"], "target": ["3 2 1", "5 4", "b a"]}
    assert "experiment=toy_task" in no_letters_hint(datasets.Dataset.from_dict(numbers))
    letters = {"source": ["a b", "4 5", "d"], "target": ["b a", "5 4", "d"]}
    assert no_letters_hint(datasets.Dataset.from_dict(letters)) is None


def test_low_score_hint_accepts_correct_single_words():
    assert "next to nothing" in low_score_hint(0.0, 20.0)
    words = ["maison", "chat", "train"]
    scores = {key: metric.corpus_score(words, words) for key, metric in metrics_for("fr").items()}
    assert scores["bleu"] == 0 and low_score_hint(scores["bleu"], scores["chrf"]) is None


def test_collapse_hint_needs_few_distinct_low_scoring_translations():
    references = [f"sentence {number} {'x' * number}" for number in range(20)]
    chrf = metrics_for("fr")["chrf"]
    hint = collapse_hint(["sentence 1 x", "sentence 2"] * 10, references, chrf)
    assert "the 20 translations have only 2 distinct sentences" in str(hint)
    assert not collapse_hint([f"y{number}" for number in range(20)], references, chrf)  # bad, but different
    assert not collapse_hint([references[number // 3 * 3] for number in range(20)], references, chrf)
    assert not collapse_hint(["yes", "no"] * 10, ["yes", "no"] * 10, chrf)


def test_collapse_hint_is_logged_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(validation, "collapse_hint", lambda *lines: "COLLAPSED")
    toy.write_corpus(tmp_path, "reverse", train=300)
    train(toy.config(tmp_path, training={"max_updates": 3, "validate_every": 1, "schedule": {"warmup": 0}}))
    assert caplog.text.count("COLLAPSED") == 1


def test_train_accepts_tiny_corpus_weight(tmp_path):
    toy.write_corpus(tmp_path, "reverse", train=300)
    config = toy.config(tmp_path, training={"max_updates": 1, "schedule": {"warmup": 0}})
    train(config.model_copy(update={"data": config.data.model_copy(update={"weight": 1e-4})}))


def test_vocabulary_hints_list_characters_without_token(data):
    """Sources have letters without pieces, targets are the known syllables."""
    valid = datasets.Dataset.from_dict({"source": ["ba de цф"] * 10, "target": ["abed ifog"] * 10})
    (hint,) = vocabulary_hints(data.tokenizers, valid)
    assert hint.startswith("33.3% of the characters of the sources have no token") and ": ц ф …" in hint


def test_vocabulary_hints_accept_familiar_text(data):
    assert not list(vocabulary_hints(data.tokenizers, data.corpus.valid))
