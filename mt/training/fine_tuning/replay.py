"""The corpus of a base run, and its replay in a run that is fine-tuned from it."""

from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np

from mt.config import TrainConfig
from mt.core.columns import numbers
from mt.core.errors import InputError
from mt.core.json_file import read_json
from mt.data.cache import concatenate
from mt.data.cleaning.record import read_dropped, without_dropped
from mt.data.corpus import NUMBERED, Corpus, load_corpus, with_numbers
from mt.data.overlap import without_shared_sentences
from mt.data.pairs import sentences_sha256
from mt.data.split_report import SplitReport
from mt.storage.run_folder import CONFIG, PROVENANCE, read_config


def corpus_of(run: Path) -> Corpus:
    """Read the training corpus of a run, without the pairs that cleaning dropped.

    Raises:
        InputError: It is not recorded, has changed, or is no longer there.
    """
    try:
        data = read_config(run).data
        corpus = load_corpus(data, tell=False)
        dropped = read_dropped(run) if data.cleaning_rules else {}
        corpus = without_dropped(corpus, dropped, data)
        recorded = read_json(run / PROVENANCE, "data")["data"]
    except InputError as error:
        raise InputError(f"the corpus of {run} is needed again, in the same place: {error}") from None
    for split, pairs in (("valid", corpus.valid), ("test", corpus.test)):
        facts = {"pairs": len(pairs), "sha256": sentences_sha256(pairs)}
        if not isinstance(recorded, dict) or recorded.get(split) != facts:
            raise InputError(
                f"the corpus of {run} has changed since it was trained: the {split} pairs are others, so that what it "
                "held out could be among its training pairs now"
            )
    return corpus


def with_replay(corpus: Corpus, config: TrainConfig) -> Corpus:
    """Return a run's corpus with the training pairs of its base run (training.replay), so that it does not forget them.

    Their weights are such that they make up the share ``config.training.replay`` of the pairs of an epoch, on average.
    Pairs that share a sentence with validation or test are left out. Nothing that the earlier run held out is among
    them.

    Raises:
        InputError: The earlier corpus cannot be read again, is of another direction, or nothing of it can be used.
    """
    share, origin = config.training.replay, config.training.init_from
    if not share or origin is None:
        return corpus
    asked = f"training.replay={share:g}"
    if not (Path(origin) / CONFIG).exists():
        raise InputError(
            f"{asked}: {origin} is a model without its config.yaml, and does not tell what it learnt from. If you have "
            "such text, train on both (data=mixture)"
        )
    try:
        base_data, earlier = read_config(Path(origin)).data, corpus_of(Path(origin))
    except InputError as error:
        raise InputError(f"{asked}: {error}") from None
    languages = [(data.source_language, data.target_language) for data in (base_data, config.data)]
    if languages[0] != languages[1]:
        raise InputError(
            f"{asked}: {origin} translates from {' to '.join(languages[0])}, this run from {' to '.join(languages[1])}"
        )
    pairs, _ = without_shared_sentences(earlier.train, [corpus.valid, corpus.test])
    if not len(pairs):
        raise InputError(f"{asked}: each pair of {origin} shares a sentence with valid or test of this run")
    shared = len(earlier.train) - len(pairs)
    first_id = sum(report.read for report in corpus.report if report.split == "train")
    own, replayed = (float(numbers(part, "weight").sum(dtype=np.float64)) for part in (corpus.train, pairs))
    pairs = _renumbered(pairs, first_id, weight=share / (1 - share) * own / replayed)
    # Ids count all pairs that the earlier run read, so those that it dropped have one, too.
    read = sum(report.read for report in earlier.report if report.split == "train")
    dropped = {"left out by that run": read - len(earlier.train), "shared with valid or test": shared}
    report = SplitReport("train", f"replayed from {origin}", read, {k: n for k, n in dropped.items() if n})
    return replace(corpus, train=concatenate([corpus.train, pairs]), report=[*corpus.report, report])


def _renumbered(pairs: datasets.Dataset, first_id: int, weight: float) -> datasets.Dataset:
    """Return pairs whose ids are ``first_id`` higher, and whose weights are ``weight`` times as large."""
    ids, weights = (pairs.data.column(name).to_numpy() for name in NUMBERED.names)
    return with_numbers(pairs, ("replayed", pairs._fingerprint, first_id, weight), ids + first_id, weights * weight)
