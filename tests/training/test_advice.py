"""A model far too large for its corpus is told, with a better one's name; so is a training that sees little of it."""

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
from mt.training.advice import (
    advice_on_code,
    advice_on_collapse,
    advice_on_length,
    advice_on_letters,
    advice_on_score,
    advice_on_scripts,
    advice_on_size,
    advice_on_vocabulary,
)
from mt.training.command import train
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
def test_the_better_preset_of_the_same_architecture_is_named(data, model, better):
    model_config = preset(f"model={model}")
    advice = advice_on_size(model_config, data.tokenizers, data.train)
    assert advice is None if better is None else f"model={better} " in advice


def test_the_largest_of_those_that_fit_is_named(data, monkeypatch):
    monkeypatch.setattr("mt.training.advice.MAX_PARAMETERS_PER_TOKEN", 200)  # 3.8 M
    model_config = preset("model=transformer_base")
    assert "model=transformer_small " in advice_on_size(model_config, data.tokenizers, data.train)


def test_a_preset_made_for_speed_is_no_better_one(data, monkeypatch):
    sizes = {}
    for model in ("transformer_small", "transformer_small_deep"):
        model_config = preset(f"model={model}")
        with torch.device("meta"):
            sizes[model] = sum(weight.numel() for weight in build_model(model_config, data.tokenizers).parameters())
    assert sizes["transformer_small_deep"] < sizes["transformer_small"]
    pieces = sum(data.train["target_length"]) + len(data.train)
    monkeypatch.setattr("mt.training.advice.MAX_PARAMETERS_PER_TOKEN", sizes["transformer_small_deep"] / pieces)
    model_config = preset("model=transformer_base")
    assert "model=transformer_tiny " in advice_on_size(model_config, data.tokenizers, data.train)


@pytest.mark.parametrize(
    "code", ["xx", "yy", "src", "trg", "qaa", "und", "zh-Hant", "pt_BR", "sr-Latn", "deu_Latn", "toy"]
)
def test_codes_of_iso_639_private_ones_and_those_of_toy_tasks_get_no_advice(code):
    assert advice_on_code("key", code) is None


@pytest.mark.parametrize("code", ["zz", "zz_ZZ", "foobar"])
def test_a_code_that_no_registry_has_is_reported(code):
    assert advice_on_code("data.source_language", code).startswith(
        f"data.source_language={code} is no known language code (ISO 639): set the right one"
    )


ENGLISH, CHINESE, THAI = "A dog runs across the meadow.", "一只狗跑过草地。", "สุนัขวิ่งข้ามทุ่งหญ้า"
JAPANESE, KOREAN = "犬が草原を走っている。", "개가 초원을 달린다."


# fmt: off
@pytest.mark.parametrize(("codes", "texts", "told"), [
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
def test_a_language_whose_texts_are_in_another_script_is_reported(codes, texts, told):
    source, target = codes.split()
    config = FilesConfig(kind="files", train=("a", "b"), source_language=source, target_language=target)
    sources, targets = (["2024", *[text] * 3000] for text in texts)
    found = list(advice_on_scripts(config, datasets.Dataset.from_dict({"source": sources, "target": targets})))
    assert len(found) == len(told) and all(map(operator.contains, found, told)), found


def test_another_script_is_reported_before_the_tokenizer_fails_because_of_it(tmp_path, caplog):
    toy.write_corpus(tmp_path, "reverse", train=300)
    config = toy.config(tmp_path)
    data = config.data.model_copy(update={"target_language": "zh"})
    tokenizer = config.tokenizer.model_copy(update={"vocabulary_size": 6})
    with pytest.raises(InputError, match="vocabulary_size=6"):
        train(config.model_copy(update={"data": data, "tokenizer": tokenizer}))
    assert "data.target_language=zh, but the targets are not in Chinese script" in caplog.text


def test_a_training_that_sees_few_of_the_pairs_is_reported_how_long_one_that_sees_all_takes():
    assert advice_on_length(0.5) is None
    assert "0.0025 of an epoch: set training.epochs=1" in advice_on_length(0.0025)


def test_a_run_logs_what_to_do_about_its_size_language_length_and_scores(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    toy.write_corpus(tmp_path, "reverse")
    training = {"max_updates": 2, "schedule": {"warmup": 0}, "accumulate": 3}
    model = {"width": 192, "feed_forward": 8000}
    train(toy.config(tmp_path, data={"source_language": "zz"}, model=model, training=training))
    assert "target tokens: take model=transformer_tiny " in caplog.text
    assert "data.source_language=zz is no known language code" in caplog.text
    assert "has learned next to nothing" in caplog.text
    (batches,) = re.findall(r"(\d+) batches an epoch", caplog.text)
    assert f"training ends after {6 / int(batches):.2g} of an epoch" in caplog.text


def test_text_without_letters_needs_no_text_layer():
    numbers = {"source": ["1 2 3", "4 5", "a b"], "target": ["3 2 1", "5 4", "b a"]}
    assert "experiment=toy_task" in advice_on_letters(datasets.Dataset.from_dict(numbers))
    letters = {"source": ["a b", "4 5", "d"], "target": ["b a", "5 4", "d"]}
    assert advice_on_letters(datasets.Dataset.from_dict(letters)) is None


def test_single_words_that_are_right_have_been_learnt():
    assert "next to nothing" in advice_on_score(0.0, 20.0)
    words = ["maison", "chat", "train"]
    scores = {key: metric.corpus_score(words, words) for key, metric in metrics_for("fr").items()}
    assert scores["bleu"] == 0 and advice_on_score(scores["bleu"], scores["chrf"]) is None


def test_few_translations_that_score_no_better_than_a_single_one_are_a_collapse():
    references = [f"sentence {number} {'x' * number}" for number in range(20)]
    chrf = metrics_for("fr")["chrf"]
    advice = advice_on_collapse(["sentence 1 x", "sentence 2"] * 10, references, chrf)
    assert "the 20 translations are 2 different sentences" in str(advice)
    assert not advice_on_collapse([f"y{number}" for number in range(20)], references, chrf)  # bad, but different
    assert not advice_on_collapse([references[number // 3 * 3] for number in range(20)], references, chrf)
    assert not advice_on_collapse(["yes", "no"] * 10, ["yes", "no"] * 10, chrf)


def test_a_collapse_is_reported_once(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(validation, "advice_on_collapse", lambda *lines: "COLLAPSED")
    toy.write_corpus(tmp_path, "reverse", train=300)
    train(toy.config(tmp_path, training={"max_updates": 3, "validate_every": 1, "schedule": {"warmup": 0}}))
    assert caplog.text.count("COLLAPSED") == 1


def test_pairs_that_hardly_count_can_be_trained_on(tmp_path):
    toy.write_corpus(tmp_path, "reverse", train=300)
    config = toy.config(tmp_path, training={"max_updates": 1, "schedule": {"warmup": 0}})
    train(config.model_copy(update={"data": config.data.model_copy(update={"weight": 1e-4})}))


def test_a_vocabulary_that_does_not_suit_the_new_text_is_reported(data):
    """Sources have letters without pieces, targets are the known syllables."""
    valid = datasets.Dataset.from_dict({"source": ["ba de цф"] * 10, "target": ["abed ifog"] * 10})
    (advice,) = advice_on_vocabulary(data.tokenizers, valid)
    assert advice.startswith("33.3% of the characters of the sources have no token") and ": ц ф …" in advice


def test_a_vocabulary_that_suits_the_new_text_gets_no_advice(data):
    assert not list(advice_on_vocabulary(data.tokenizers, data.corpus.valid))
