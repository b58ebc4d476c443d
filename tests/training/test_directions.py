"""Tests of runs with several directions: language tokens, held-out pairs, sampling and scores."""

import pytest
from datasets import concatenate_datasets

from mt.config import TokenizerConfig
from mt.core.errors import InputError
from mt.core.language import AskedDirection, Direction
from mt.data.batching.batches import BatchSettings, TrainingBatches
from mt.data.corpus import load_corpus
from mt.data.pairs import sentence_key
from mt.storage.folders import read_description
from mt.storage.run_folder import read_scored
from mt.training.command import train
from mt.translation.trained_model import read_tokenizers
from mt.translation.translator import Translator
from tests import toy
from tests.training.runs import ALONE, has_weights_of, read_metrics, read_results, read_validations, train_until

FORWARD, BACKWARD = Direction("xx", "yy"), Direction("yy", "xx")
EVERYTHING_RANDOM = {"text": {"augmentation": toy.CHANGED}, "tokenizer": {"sampling": 0.2}, "model": {"dropout": 0.2}}


def both_ways(folder, name="both", **changes):
    changes["data"] = {"reverse": True} | changes.get("data", {})
    return toy.config(folder, name, **changes)


def mixture(folder, name="mixture", corpora=(), **data):
    """A run on two corpora of one pair of languages in opposite directions; ``corpora`` changes each of them."""
    forward = toy.config(folder).data.model_dump(mode="json", include={"kind", "train", "valid", "test"})
    backward = {key: value if key == "kind" else value[::-1] for key, value in forward.items()}
    languages = ({"source_language": "xx", "target_language": "yy"}, {"source_language": "yy", "target_language": "xx"})
    entries = [entry | own for entry, own in zip((forward, backward), languages, strict=True)]
    entries = [entry | own for entry, own in zip(entries, corpora or ({}, {}), strict=True)]
    config = toy.config(folder, name).model_dump(mode="json")
    config["data"] = {"kind": "mixture", "corpora": entries, "cleaning": False, **data}
    return type(toy.config(folder)).model_validate(config)


@pytest.mark.parametrize("batching", ["padded", "packed"])
def test_run_of_directions_resumes_bitwise(folder, batching):
    changes = EVERYTHING_RANDOM | {"training": {"max_updates": 13, "accumulate": 2, "batching": batching}}
    whole, broken = (both_ways(folder, name, **changes) for name in ("whole", "broken"))
    train(whole)
    train_until(broken, 5, 10)
    train(broken)
    assert has_weights_of(whole, broken)
    assert read_metrics(whole.folder) == read_metrics(broken.folder)
    assert (whole.folder / "model.yaml").read_bytes() == (broken.folder / "model.yaml").read_bytes()
    assert read_scored(whole.folder) == read_scored(broken.folder)


def test_directions_have_scores_and_mean(folder):
    config = both_ways(folder)
    train(config)
    results = read_results(config)
    parts = results["directions"]
    assert list(parts) == ["xx-yy", "yy-xx"] and [part["test_pairs"] for part in parts.values()] == [40, 40]
    assert results["chrf"] == pytest.approx((parts["xx-yy"]["chrf"] + parts["yy-xx"]["chrf"]) / 2)
    for line in read_validations(config.folder):
        assert line["loss"] == pytest.approx((line["xx-yy.loss"] + line["yy-xx.loss"]) / 2)
    scored = read_scored(config.folder)
    assert scored["source"][40:] == scored["reference"][:40], "the second direction is the first one reversed"
    for number, direction in enumerate((FORWARD, BACKWARD)):
        own = slice(40 * number, 40 * (number + 1))
        translator = Translator.load(config.folder, asked=AskedDirection(*direction))
        assert translator.translate(scored["source"][own]) == scored["hypothesis"][own]
    assert list(read_description(config.folder).layers) == [FORWARD, BACKWARD]


def test_language_token_starts_every_augmented_source(folder):
    config = both_ways(folder, **EVERYTHING_RANDOM)
    data = toy.prepared(config)
    tokens = [data.tokenizers.source.subwords([layer.tokenizers.source.prefix[0]])[0] for layer in data.layers.values()]
    assert tokens == [">>yy<<", ">>xx<<"]
    prefixes = [layer.tokenizers.source.prefix[0] for layer in data.layers.values()]
    starts = dict(zip(data.train["id"], [prefixes[0]] * data.sizes[0] + [prefixes[1]] * data.sizes[1], strict=True))
    settings = BatchSettings(config.text.augmentation, 0.2, 1, 256)
    batches = TrainingBatches(data.train, [*data.layers.values()], settings, ALONE, data.sizes)
    joined = 0
    for batch in batches.epoch(0):
        assert batch.source[:, 0].tolist() == [starts[number] for number in batch.ids.tolist()]
        assert not any((batch.source[:, 1:] == prefix).any() for prefix in prefixes), "a joined pair has one token"
        joined += len(batch.source)
    assert joined < len(data.train), "some pairs were joined"


def test_language_token_in_text_is_plain_text(folder):
    data = toy.prepared(both_ways(folder))
    for layer in data.layers.values():
        (tokens,) = layer.tokenizers.source.encode([">>xx<< ba"])
        assert tokens[:1] == layer.tokenizers.source.prefix and layer.tokenizers.source.prefix[0] not in tokens[1:]
        assert layer.tokenizers.source.decode([tokens]) == [">>xx<< ba"]


def test_held_out_sentences_are_excluded_from_all_directions(folder):
    held_out = ({"valid": None, "test": None}, {"valid": None, "test": None})
    config = mixture(folder, corpora=held_out, valid_pairs=50, test_pairs=30)
    parts = load_corpus(config.data).split_by_direction()
    evaluation = concatenate_datasets([split for part in parts.values() for split in (part.valid, part.test)])
    keys = {sentence_key(text) for side in ("source", "target") for text in evaluation[side]}
    for part in parts.values():
        assert len(part.valid) >= 50 and len(part.test) >= 30
        assert keys.isdisjoint(sentence_key(text) for side in ("source", "target") for text in part.train[side])
    assert any("shared with valid or test" in entry.dropped for part in parts.values() for entry in part.report)


@pytest.mark.parametrize("temperature", [1.0, 5.0])
def test_temperature_sets_shares_of_directions(folder, temperature):
    toy.write_lines(folder / "few.yy", toy.sentences(300, seed=9))
    toy.write_lines(folder / "few.xx", toy.sentences(300, seed=8))
    few = {"train": [str(folder / "few.yy"), str(folder / "few.xx")]}
    train = load_corpus(mixture(folder, corpora=({}, few), temperature=temperature).data).split_by_direction()
    sizes = {direction: len(part.train) for direction, part in train.items()}
    shares = {direction: sum(part.train["weight"]) for direction, part in train.items()}
    assert shares[FORWARD] == pytest.approx(sizes[FORWARD])
    ratio = (sizes[BACKWARD] / sizes[FORWARD]) ** (1 / temperature)
    assert shares[BACKWARD] / shares[FORWARD] == pytest.approx(ratio, rel=0.02)


def test_load_refuses_untrained_direction(folder):
    config = both_ways(folder, training={"max_updates": 10})
    train(config)
    with pytest.raises(InputError, match="translates xx→yy, yy→xx: set target_language"):
        Translator.load(config.folder)
    with pytest.raises(InputError, match="was not trained for xx→zz"):
        Translator.load(config.folder, asked=AskedDirection("xx", "zz", zero_shot=True))
    assert [
        translator.layer.target_language for translator in Translator.load_all(config.folder, None, "cpu", "fp32", None)
    ] == ["yy", "xx"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"temperature": 2.0, "corpora": [{"kind": "hub", "path": "p"}]}, "temperature=2 is for several directions"),
        (
            {"corpora": [{"kind": "hub", "path": "p", "target_language": "zz"}], "target_language": "yy"},
            "the first corpus translates xx→zz, not xx→yy",
        ),
    ],
)
def test_config_refuses_conflicting_directions(folder, data, message):
    values = toy.config(folder).model_dump(mode="json")
    values["data"] = {"kind": "mixture", "source_language": "xx", "target_language": "yy"} | data
    with pytest.raises(ValueError, match=message):
        type(toy.config(folder)).model_validate(values)


def test_fine_tuning_adds_missing_language_tokens(folder, caplog):
    base = toy.config(folder, "base")
    train(base)
    training = {"init_from": str(base.folder), "max_updates": 10}
    tuned = both_ways(folder, tokenizer=TokenizerConfig(), training=training)
    train(tuned)
    assert "translates into yy, but data.target_language=xx" in caplog.text
    source = read_tokenizers(tuned.folder).source
    assert source.languages == ["yy", "xx"] and source.vocabulary_size == 322
    assert [part["initial_bleu"] for part in read_results(tuned)["directions"].values()] != [None, None]
