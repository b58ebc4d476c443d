"""Tests of the settings that ``training.minutes`` chooses: the rules, and runs with a choice."""

import dataclasses
import functools
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.cli.composition import compose_job
from mt.config import TrainConfig
from mt.config.model import model_presets
from mt.config.resolved import Resolved
from mt.core.errors import InputError
from mt.data.corpus import load_corpus
from mt.storage.run_folder import CHOICE_FILE, read_config
from mt.training import choice
from mt.training.choice import RecordedChoice, measure_speed
from mt.training.command import train
from mt.training.time_budget import (
    CHOSEN_KEYS,
    MIN_UPDATES,
    Chooser,
    CorpusSize,
    Speed,
    estimated_tokens,
    overhead_seconds,
)
from tests import toy
from tests.processes import Together, finish
from tests.training.runs import ALONE, has_weights_of, read_results

ELAPSED = 10.0
SLOW = Speed(update=0.05, token=4e-4, greedy=0.005, beam=0.02)
"""A processor with one core."""
FAST = Speed(update=0.02, token=1e-6, greedy=1e-3, beam=3e-3)
"""A GPU."""
MULTI30K = CorpusSize(29_000, 62.0, 72.0, 15_000, 1_014, 1_000)
TATOEBA = CorpusSize(132_000, 35.0, 40.0, 30_000, 2_000, 2_003)
PRESETS = model_presets("transformer")


@functools.cache
def _asked(*words: str) -> Resolved[TrainConfig]:
    return compose_job("train", TrainConfig, ["name=run", *words])


def _chosen(corpus: CorpusSize, *words: str, speed: Speed = SLOW, minutes: float | None = None) -> TrainConfig:
    """The config that the choice for a command line comes to, checked."""
    asked = _asked(*words)
    if minutes is not None:
        asked = asked.with_values({"training.minutes": minutes}, "typed")
    chooser = Chooser(asked, corpus, PRESETS, lambda model, vocabulary: speed, lambda: ELAPSED)
    chooser.choose()
    chosen, decisions = chooser.resolved, chooser.decisions
    settings = {key: value for decision in decisions for key, value in decision.settings.items()}
    assert settings.keys() <= set(CHOSEN_KEYS)
    assert {key for key, origin in chosen.origins.items() if origin == "chosen"} == settings.keys()
    assert all(chosen.value(key) == value for key, value in settings.items())
    return chosen.config


def _predicted(config: TrainConfig) -> float:
    """Target tokens that the model predicts in the whole run."""
    training = config.training
    predictions = 1 if training.objective == "cross_entropy" else 2
    return training.max_updates * training.batch_tokens * training.accumulate * predictions


speeds = st.builds(
    Speed,
    update=st.floats(1e-3, 0.5),
    token=st.floats(1e-7, 1e-3),
    greedy=st.floats(1e-4, 0.02),
    beam=st.floats(1e-4, 0.05),
)
corpora = st.builds(
    CorpusSize,
    pairs=st.integers(100, 250_000),  # of the sizes that need no more than any speed
    source_characters=st.floats(5, 300),
    target_characters=st.floats(5, 300),
    distinct_words=st.none() | st.integers(10, 100_000),
    valid_pairs=st.integers(1, 3_000),
    test_pairs=st.integers(1, 3_000),
)


@given(corpora, speeds, st.floats(5, 300), st.floats(1, 10))
def test_chooser_uses_more_minutes_and_never_exceeds_them(corpus, speed, minutes, times):
    try:
        less = _chosen(corpus, "training.minutes=1", minutes=minutes, speed=speed)
    except InputError as error:
        enough = re.search(r"set training\.minutes=(\d+) or more", str(error))
        assert enough
        less = _chosen(corpus, "training.minutes=1", minutes=float(enough[1]), speed=speed)
        assert less.training.max_updates >= MIN_UPDATES
        return
    more = _chosen(corpus, "training.minutes=1", minutes=minutes * times, speed=speed)
    rounding = 4 * more.training.batch_tokens
    assert _predicted(more) >= _predicted(less) - rounding
    for config in (less, more):
        training = config.training
        pair = estimated_tokens(corpus.target_characters, config.data.target_language)
        validation = corpus.valid_pairs * pair * speed.token / 3 + min(500, corpus.valid_pairs) * speed.greedy
        seconds = (
            ELAPSED
            + overhead_seconds(corpus, speed)
            + training.max_updates * speed.update
            + _predicted(config) * speed.token
            + -(-training.max_updates // training.validate_every) * validation
        )
        assert seconds <= 60 * training.minutes * 1.001


def test_chooser_sets_dropout_and_objective_by_epochs():
    short, longer, long = (_chosen(MULTI30K, f"training.minutes={minutes}") for minutes in (5, 30, 600))
    assert (short.model.dropout, short.training.objective) == (0.0, "cross_entropy")
    assert (longer.model.dropout, longer.training.objective) == (0.05, "cross_entropy")
    assert (long.model.dropout, long.training.objective) == (0.2, "r_drop")
    assert long.training.optimizer.learning_rate < short.training.optimizer.learning_rate
    assert _chosen(TATOEBA, "training.minutes=15").model.dropout == 0.0
    lstm = _chosen(MULTI30K, "training.minutes=600", "model=rnn_attention")
    assert (lstm.model.dropout, lstm.model.hidden) == (0.1, 352)


def test_chooser_sets_model_size_by_pairs_and_time():
    def width(pairs: int, speed: Speed) -> int:
        return _chosen(dataclasses.replace(TATOEBA, pairs=pairs), "training.minutes=60", speed=speed).model.width

    widths = [width(pairs, speed) for speed in (SLOW, FAST) for pairs in (5_000, 100_000, 1_000_000)]
    assert widths == [128, 192, 192, 128, 192, 512]
    fastest = dataclasses.replace(FAST, update=1e-4, token=1e-9)  # there is time for every size
    limits = (20_000, 300_000, 5_000_000)
    assert [width(limit - fewer, fastest) for limit in limits for fewer in (1, 0)] == [128, 192, 192, 512, 512, 1024]


def test_chooser_ignores_token_time_hidden_by_noise():
    """Two batches took equally long, so a token seems to cost nothing."""
    hidden = Speed(update=0.5, token=1e-9, greedy=0.005, beam=0.02)
    many = dataclasses.replace(TATOEBA, pairs=10_000_000)
    assert _chosen(many, "training.minutes=60", speed=hidden).model.width == 192


def test_chooser_uses_co_occurrence_embeddings_in_short_runs():
    def embeddings(*words: str, corpus: CorpusSize = TATOEBA, speed: Speed = SLOW) -> str:
        return _chosen(corpus, *words, speed=speed).training.initial_embeddings

    assert embeddings("training.minutes=12") == "co_occurrence"
    assert embeddings("training.minutes=3") == "random", "too few updates"
    assert embeddings("training.minutes=300") == "random", "many epochs"
    assert embeddings("training.minutes=12", "training.max_updates=100000") == "random"
    wide = "model.width=1024", "model.heads=8"
    assert embeddings("training.minutes=5", *wide) == "random", "counting costs more than it saves"
    given = "training.minutes=300", "training.max_updates=500"
    assert embeddings(*given, corpus=MULTI30K) == embeddings(*given, "training.batch_tokens=1024", corpus=MULTI30K)
    assert embeddings(*given, corpus=MULTI30K) == "co_occurrence"
    words = "training.minutes=10", "training.objective=r_drop"  # half of those without R-Drop, which are too many
    assert embeddings(words[0], corpus=MULTI30K) == "random"
    assert embeddings(*words, corpus=MULTI30K) == "co_occurrence"


@given(corpora, speeds, st.floats(1, 30))
def test_chooser_subtracts_counting_time_from_updates(corpus, speed, minutes):
    try:
        without = _chosen(
            corpus, "training.minutes=1", "training.initial_embeddings=random", minutes=minutes, speed=speed
        )
    except InputError:
        return
    chosen = _chosen(corpus, "training.minutes=1", minutes=minutes, speed=speed)
    assert 0.85 * without.training.max_updates <= chosen.training.max_updates <= without.training.max_updates


def test_chooser_counting_time_is_as_measured():
    """As much of it as docs/lab-notebook.md measured for such a corpus."""
    counted, not_counted = (
        _chosen(TATOEBA, "training.minutes=15", f"training.initial_embeddings={value}").training.max_updates
        for value in ("co_occurrence", "random")
    )
    update = SLOW.update + 1536 * SLOW.token
    assert 10 < (not_counted - counted) * update < 30
    with pytest.raises(InputError, match="preparation, counting and test take about"):
        _chosen(TATOEBA, "training.minutes=2", "training.initial_embeddings=co_occurrence")


def test_chooser_limits_vocabulary_by_distinct_words():
    for words, pieces in ((10_000, 5_500), (None, 8_000)):
        corpus = dataclasses.replace(TATOEBA, distinct_words=words)
        assert _chosen(corpus, "training.minutes=60").tokenizer.vocabulary_size == pieces


def test_corpus_size_omits_distinct_words_of_samples(folder, monkeypatch):
    """A part has fewer words than the whole, so its number would limit the vocabulary too much."""
    corpus = load_corpus(_toy(folder).data)
    lines = [line for side in ("source", "target") for line in corpus.train[side]]
    size = choice.corpus_size(corpus)
    assert size.distinct_words == len({word for line in lines for word in line.split()})
    assert size.source_characters == pytest.approx(sum(map(len, corpus.train["source"])) / len(corpus.train), abs=0.005)
    monkeypatch.setattr(choice, "SAMPLED_PAIRS", len(corpus.train) - 1)
    part = choice.corpus_size(corpus)
    assert part.distinct_words is None and part.pairs == size.pairs == len(corpus.train)


def test_chooser_grows_batches_beyond_measured_updates():
    hours = _chosen(TATOEBA, "training.minutes=300", "training.objective=cross_entropy", speed=FAST).training
    assert hours.batch_tokens > 1536 and hours.max_updates <= 40_000


GIVEN = {
    "model.width": 256, "model.feed_forward": 512, "model.heads": 8, "model.encoder_layers": 2,
    "model.decoder_layers": 2, "tokenizer.vocabulary_size": 6000, "training.batch_tokens": 700,
    "training.objective": "simcut", "training.max_updates": 777, "model.dropout": 0.15,
    "training.optimizer.learning_rate": 2e-3, "training.schedule.warmup": 7, "training.validate_every": 33,
    "training.patience": 3, "training.initial_embeddings": "random",
}  # fmt: skip


@pytest.mark.parametrize("key", CHOSEN_KEYS)
@pytest.mark.parametrize("minutes", [5, 600])
def test_chooser_keeps_given_settings(key, minutes):
    asked = _asked(f"training.minutes={minutes}", f"{key}={GIVEN[key]}")
    chooser = Chooser(asked, MULTI30K, PRESETS, lambda model, vocabulary: SLOW, lambda: ELAPSED)
    chooser.choose()
    decisions = chooser.decisions
    settings = {name for decision in decisions for name in decision.settings}
    assert key not in settings
    if not key.startswith("model."):
        assert settings == set(CHOSEN_KEYS) - {key}


def test_chooser_keeps_settings_of_presets_and_experiments():
    words = ["training.minutes=5"]
    assert _chosen(MULTI30K, *words, "model=transformer_tiny").model.model_dump() == {
        **PRESETS["transformer_tiny"].model_dump(),
        "dropout": 0.0,
    }
    assert _chosen(MULTI30K, "training.minutes=600", "model=transformer_tiny", "model.dropout=0.0").model.dropout == 0
    speedrun = _asked(*words, "experiment=multi30k_speedrun")
    given_keys = {key for key in CHOSEN_KEYS if speedrun.is_given(key)}
    assert {"model.width", "model.dropout", "training.max_updates", "training.schedule.warmup"} <= given_keys
    assert not given_keys & {"training.optimizer.learning_rate", "training.objective", "tokenizer.vocabulary_size"}


def test_default_run_name_with_chosen_model():
    for words, name in (
        ([], "tatoeba_en_fr-transformer_small"),
        (["training.minutes=5"], "tatoeba_en_fr-auto"),
        (["choice=runs/first"], "tatoeba_en_fr-auto"),
        (["training.minutes=5", "model=rnn_attention"], "tatoeba_en_fr-rnn_attention"),
    ):
        assert compose_job("train", TrainConfig, words).config.name == name
    assert _asked().config.model == PRESETS["transformer_small"]


def test_chooser_combines_r_drop_with_dropout():
    assert _chosen(MULTI30K, "training.minutes=600", "model.dropout=0").training.objective == "cross_entropy"
    assert _chosen(MULTI30K, "training.minutes=5", "training.objective=r_drop").model.dropout > 0


def test_overhead_seconds_sums_stages():
    preparation, scores, test_set = 4 + 60e-6 * TATOEBA.pairs, 3, 2_003 * (0.02 + 1e-3)
    alignment, confidence = 500 * 0.005, 2 * 1_000 * 0.02
    expected = preparation + scores + test_set + alignment + confidence
    assert overhead_seconds(TATOEBA, SLOW) == pytest.approx(expected)


def test_chooser_schedules_enough_validations_for_averaging():
    training = _chosen(TATOEBA, "training.minutes=6", "training.weights=average", "training.keep_last=5").training
    assert training.max_updates // training.validate_every >= 4


@pytest.fixture
def measured(monkeypatch):
    """Measures, but returns the same times on every machine. Counts how often it was asked."""
    calls = []

    def speed(config, size, workers, model, vocabulary):
        measure_speed(config, size, workers, model, vocabulary)
        calls.append(model)
        return Speed(update=2.5 + len(calls) / 10, token=1e-6, greedy=1e-3, beam=1e-3)

    monkeypatch.setattr(choice, "measure_speed", speed)
    return calls


def _toy(folder: Path, name: str = "toy", seed: int = 1, choice: str | None = None, **training: object) -> TrainConfig:
    """A run of three minutes by the times of ``measured``, which is a second or two."""
    values = toy.config(folder, name).model_dump()
    own = {"precision": "fp32", "valid_bleu_pairs": 8, "batch_tokens": 128, "validate_every": 30, "minutes": 3}
    values["training"] = own | training
    values["model"] = toy.MODELS["transformer"]
    return TrainConfig.model_validate(values | {"seed": seed, "choice": choice})


def _recorded(config: TrainConfig) -> RecordedChoice:
    return RecordedChoice.read(config.folder)


def test_minutes_equal_chosen_settings_bitwise(folder, measured):
    chosen = _toy(folder)
    train(chosen)
    written = read_config(chosen.folder)
    assert written.training.minutes == 3
    assert written.training.max_updates == _recorded(chosen).settings["training.max_updates"]
    values = written.model_dump() | {"name": "typed"}
    values["training"]["minutes"] = None
    typed = TrainConfig.model_validate(values)
    train(typed)
    assert not (typed.folder / CHOICE_FILE).exists()
    assert has_weights_of(chosen, typed)


def test_resumed_run_keeps_choice_without_measuring(folder, measured, monkeypatch):
    config, whole = _toy(folder), _toy(folder, name="whole", choice=str(folder / "runs/toy"))
    stopped = RuntimeError("stopped")

    def fail(*_):
        raise stopped

    with monkeypatch.context() as patch:
        patch.setattr("mt.training.trainer.Trainer.finalize", fail)
        with pytest.raises(RuntimeError):
            train(config)
    before = (config.folder / CHOICE_FILE).read_bytes()
    train(config)
    assert len(measured) == 1 and (config.folder / CHOICE_FILE).read_bytes() == before
    train(whole)
    assert len(measured) == 1
    assert has_weights_of(config, whole)


def test_resumed_run_with_choice_may_only_grow(folder, measured):
    config = _toy(folder)
    train(config)
    with pytest.raises(InputError, match=r"training\.minutes: 3\.0 in the run, now 5"):
        train(_toy(folder, minutes=5))
    with pytest.raises(InputError, match=r"training\.patience: 0 in the run, now 2"):
        train(_toy(folder, patience=2))
    with pytest.raises(InputError, match=r"training\.minutes: 3\.0 in the run, now null"):
        train(_toy(folder, minutes=None))
    updates = read_config(config.folder).training.max_updates
    train(_toy(folder, max_updates=updates + 5))
    assert read_results(config)["updates"] == updates + 5
    assert len(measured) == 1


def test_choice_of_another_run_is_reused(folder, measured):
    first = _toy(folder, "first")
    train(first)
    values = _toy(folder, "lstm", choice=str(first.folder / CHOICE_FILE), minutes=None).model_dump(exclude_unset=True)
    values["model"] = toy.MODELS["rnn"] | {"dropout": 0.0}
    train(TrainConfig.model_validate(values))
    ours, theirs = (read_config(folder / "runs" / name).training for name in ("first", "lstm"))
    assert ours == theirs and len(measured) == 1
    (first.folder / CHOICE_FILE).rename(folder / "moved.json")  # the run has a copy
    train(TrainConfig.model_validate(values))
    with pytest.raises(InputError, match=r"training\.minutes=4: the settings were chosen for 3 minutes"):
        train(_toy(folder, "third", choice=str(folder / "moved.json"), minutes=4))
    with pytest.raises(InputError, match=r"nothing\.json does not exist; set choice"):
        train(_toy(folder, "fourth", choice=str(folder / "nothing.json")))
    (folder / "moved.json").write_text((folder / "moved.json").read_text().replace("1", "2", 1))
    with pytest.raises(InputError, match="corrupted"):
        train(_toy(folder, "fifth", choice=str(folder / "moved.json")))
    assert not (folder / "runs/third").exists() and not (folder / "runs/fifth").exists()


def test_measure_speed_returns_positive_times(folder):
    config = _toy(folder)
    size = CorpusSize(600, 20.0, 20.0, 15, 40, 40)
    for model in (config.model, toy.config(folder, architecture="rnn").model):
        speed = measure_speed(config, size, ALONE, model, 320)
        assert all(0 < seconds < 60 for seconds in dataclasses.astuple(speed))
    whole_documents = CorpusSize(600, 2_500.0, 2_500.0, 15, 40, 40)  # one of them is a batch
    assert measure_speed(config, whole_documents, ALONE, config.model, 320).token > 0
    assert torch.get_num_threads() == 1


def _words(config: TrainConfig, *more: str) -> list[str]:
    """What one would type if all but the sizes are to be chosen."""
    sizes = ("model.width", "model.feed_forward", "model.heads", "model.encoder_layers", "model.decoder_layers")
    is_open = set(CHOSEN_KEYS) - {*sizes, "tokenizer.vocabulary_size"} | {"training.minutes"}
    return [*(word for word in toy.words(config) if word.partition("=")[0] not in is_open), *more]


@pytest.mark.slow
@pytest.mark.parametrize("sharded", ["false", "true"])
def test_workers_agree_on_choice(folder, sharded):
    config = toy.config(folder)
    words = _words(config, "training.minutes=5", "training.max_updates=8", f"training.shard={sharded}")
    status, said = finish(Together(words, workers=2))
    assert status == 0, said
    recorded = _recorded(config)
    assert recorded.machine["workers"] == 2
    assert read_config(config.folder).training.validate_every == recorded.settings["training.validate_every"]
