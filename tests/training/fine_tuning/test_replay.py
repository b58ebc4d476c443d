"""A run that begins from another can be given that run's training pairs again, and nothing that it held out."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from mt.config import TrainConfig
from mt.core.errors import InputError, Interrupted
from mt.data.batching.plan import plan_epoch
from mt.data.corpus import Corpus, load_corpus
from mt.storage.run_folder import PROVENANCE, WEIGHTS
from mt.training.command import train
from mt.training.fine_tuning.replay import corpus_of, with_replay
from tests import toy
from tests.data.cleaning.conftest import good_pairs
from tests.training.runs import stop_after

GOOD = good_pairs()
COPIES = [(en, en) for en, _ in GOOD[:30]]
OWN = GOOD[1000:1200]


def write(folder: Path, split: str, pairs: list[tuple[str, str]]) -> tuple[str, str]:
    """Returns the names of both files."""
    for place, side in enumerate(("xx", "yy")):
        (folder / f"{split}.{side}").write_text("".join(f"{pair[place]}\n" for pair in pairs))
    return str(folder / f"{split}.xx"), str(folder / f"{split}.yy")


def config(folder: Path, name: str, data: dict, **changes: dict) -> TrainConfig:
    languages = {"source_language": "en", "target_language": "de"}
    training = {"max_updates": 8, "validate_every": 4} | changes.pop("training", {})
    return toy.config(folder, name, data=languages | data, training=training, **changes)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def base(folder: Path) -> TrainConfig:
    """A run that dropped copies, and held out its validation and test pairs itself."""
    files = write(folder, "base", [*COPIES, *GOOD[30:900]])
    data = {"train": files, "valid": None, "test": None, "valid_pairs": 20, "test_pairs": 20, "cleaning": ("copy",)}
    run = config(folder, "base", data)
    train(run)
    return run


def tuned(folder: Path, name: str, base: TrainConfig, share: float = 0.25, **changes: dict) -> TrainConfig:
    """A run from ``base`` on other pairs. Two of them, in validation and test, ``base`` has learnt from."""
    learnt = corpus_of(base.folder).train
    known = [(learnt[0]["source"], "Etwas anderes."), ("Something else.", learnt[1]["target"])]
    data = {
        "train": write(folder, "own", OWN),
        "valid": write(folder, "valid", [*GOOD[1200:1210], known[0]]),
        "test": write(folder, "test", [*GOOD[1210:1220], known[1]]),
    }
    training = {"init_from": str(base.folder), "replay": share} | changes.pop("training", {})
    return config(folder, name, data, training=training, **changes)


def texts(pairs: object) -> list[tuple[str, str]]:
    return list(zip(pairs["source"], pairs["target"], strict=True))


def replayed(corpus: Corpus) -> list[tuple[str, str]]:
    return texts(corpus.train)[len(OWN) :]


def test_what_the_run_learnt_from_comes_back_and_nothing_else(folder, base):
    run = tuned(folder, "any", base)
    corpus = with_replay(load_corpus(run.data), run)
    earlier = corpus_of(base.folder)
    assert texts(corpus.train)[: len(OWN)] == OWN
    assert replayed(corpus) == texts(earlier.train)[2:]
    held_out = {*texts(earlier.valid), *texts(earlier.test)}
    assert len(held_out) == 40 and not held_out & set(replayed(corpus)) and not set(COPIES) & set(replayed(corpus))
    assert len(replayed(corpus)) > 820
    assert len(np.unique(corpus.train["id"])) == len(corpus.train)
    assert corpus.train["id"][len(OWN)] >= len(OWN)
    report = corpus.report[-1]
    assert report.read == report.kept + sum(report.dropped.values()) == 900
    assert report.dropped["shared with valid or test"] == 2


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_of_the_pairs_of_an_epoch_is_the_one_asked_for(folder, base, share):
    run = tuned(folder, "any", base, share)
    pairs = with_replay(load_corpus(run.data), run).train
    lengths, drawn = np.full(len(pairs), 5), np.zeros(2)
    for epoch in range(40):
        batches = plan_epoch(
            np.stack([lengths, lengths]), np.array(pairs["weight"]), 1, epoch, batch_tokens=100
        ).batches
        rows = np.concatenate(batches)
        drawn += (rows < len(OWN)).sum(), (rows >= len(OWN)).sum()
    assert drawn[0] == 40 * len(OWN)
    assert drawn[1] / drawn.sum() == pytest.approx(share, abs=0.02)


def test_weights_of_the_earlier_run_keep_their_proportions(tmp_path, folder, base):
    parts = [
        {"kind": "files", "train": write(tmp_path, f"part{number}", GOOD[start : start + 100]), "weight": weight}
        for number, (start, weight) in enumerate(((300, 1.0), (400, 3.0)))
    ]
    held_out = {
        split: write(tmp_path, split, GOOD[start : start + 20]) for split, start in (("valid", 0), ("test", 50))
    }
    parts[0] |= held_out
    values = base.model_dump() | {"name": "mixed", "runs": str(tmp_path)}
    mixture = {"kind": "mixture", "source_language": "en", "target_language": "de", "corpora": parts, "cleaning": False}
    mixed = TrainConfig.model_validate(values | {"data": mixture})
    train(mixed)
    run = tuned(folder, "any", mixed, 0.5)
    weights = np.array(with_replay(load_corpus(run.data), run).train["weight"])
    light, heavy = weights[len(OWN) : len(OWN) + 98], weights[-98:]
    assert heavy == pytest.approx(3 * light) and weights[len(OWN) :].sum() == pytest.approx(len(OWN))


def test_a_stopped_run_with_replay_goes_on_bitwise(folder, base, monkeypatch):
    random = {"text": {"augmentation": toy.CHANGED}, "model": {"dropout": 0.2}}
    whole, broken = (tuned(folder, name, base, 0.6, **random) for name in ("whole", "broken"))
    plain = tuned(folder, "plain", base, 0.0, **random)
    for run in (whole, plain):
        train(run)
    stop_after(monkeypatch, [5])
    with pytest.raises(Interrupted):
        train(broken)
    train(broken)
    weights = [(run.folder / WEIGHTS).read_bytes() for run in (whole, broken, plain)]
    assert weights[0] == weights[1] != weights[2]


def test_the_vocabulary_of_the_earlier_run_is_kept_and_its_corpus_told(folder, base, caplog):
    caplog.set_level("INFO")
    toy.prepared(tuned(folder, "any", base), base.folder)
    assert f"train: replayed from {base.folder}: 900 pairs read, " in caplog.text


@pytest.mark.parametrize("change", ["moved", "model alone", "other pairs", "direction"])
def test_what_cannot_be_replayed_is_refused(folder, base, tmp_path, change):
    origin = tmp_path / "base"
    shutil.copytree(base.folder, origin)
    settings = yaml.safe_load((origin / "config.yaml").read_text())
    if change == "moved":
        settings["data"]["train"] = [str(tmp_path / "gone.xx"), str(tmp_path / "gone.yy")]
        expected = "gone.xx"
    elif change == "model alone":
        (origin / "config.yaml").unlink()
        (origin / PROVENANCE).unlink()
        expected = "has no config.yaml, which would name its corpus"
    elif change == "other pairs":
        settings["data"]["train"] = write(tmp_path, "changed", GOOD[200:1000])
        expected = "have changed since it was trained"
    else:
        expected = "translates from en to de, this run from de to en"
    if change != "model alone":
        settings["data"]["train"] = list(settings["data"]["train"])
        (origin / "config.yaml").write_text(yaml.safe_dump(settings))
    run = tuned(folder, "refused", base, training={"init_from": str(origin)})
    if change == "direction":
        data = run.data.model_copy(update={"source_language": "de", "target_language": "en"})
        run = run.model_copy(update={"data": data})
    with pytest.raises(InputError, match=r"training\.replay=0\.25: ") as refused:
        with_replay(load_corpus(run.data), run)
    assert expected in str(refused.value)
