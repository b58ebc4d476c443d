"""Replay: training pairs of the base run are mixed into fine-tuning, against forgetting."""

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
from mt.data.corpus import NUMBERED_COLUMNS, Corpus, load_corpus, with_numbers
from mt.data.overlap import without_shared_sentences
from mt.data.pairs import sentences_sha256
from mt.data.split_report import SplitReport
from mt.storage.run_folder import CONFIG, PROVENANCE, read_config


def corpus_of(run: Path) -> Corpus:
    """Read the corpus of a run again, without the training pairs that cleaning dropped.

    Raises:
        InputError: The corpus is gone, or its validation or test pairs have changed.
    """
    try:
        data = read_config(run).data
        corpus = load_corpus(data, tell=False)
        dropped = read_dropped(run) if data.cleaning_rules else {}
        corpus = without_dropped(corpus, dropped, data)
        recorded = read_json(run / PROVENANCE, "data")["data"]
    except InputError as error:
        raise InputError(f"the corpus of {run} is needed again, so put it back in its place: {error}") from None
    for split, pairs in (("valid", corpus.valid), ("test", corpus.test)):
        current = {"pairs": len(pairs), "sha256": sentences_sha256(pairs)}
        if not isinstance(recorded, dict) or recorded.get(split) != current:
            raise InputError(
                f"the {split} pairs of {run} have changed since it was trained, so pairs that it held out may now be "
                "among its training pairs; restore its corpus"
            )
    return corpus


def with_replay(corpus: Corpus, config: TrainConfig) -> Corpus:
    """Add the training pairs of the base run to the training pairs of a run, if ``training.replay`` is set.

    Their weights make them the share ``training.replay`` of an epoch's pairs on average. Pairs that share a sentence
    with the run's validation or test set are left out.

    Args:
        corpus: The corpus of the run.
        config: The config of the run.

    Returns:
        The corpus with the added pairs and a report on them. Without ``training.replay``, the same corpus.

    Raises:
        InputError: The corpus of the base run cannot be read again, has other languages, or has no usable pair.
    """
    share, origin = config.training.replay, config.training.init_from
    if not share or origin is None:
        return corpus
    asked = f"training.replay={share:g}"
    if not (Path(origin) / CONFIG).exists():
        raise InputError(
            f"{asked}: {origin} has no config.yaml, which would name its corpus. Leave out training.replay; if you "
            "have that corpus, train on both (data=mixture)"
        )
    try:
        base_data, base_corpus = read_config(Path(origin)).data, corpus_of(Path(origin))
    except InputError as error:
        raise InputError(f"{asked}: {error}") from None
    languages = [(data.source_language, data.target_language) for data in (base_data, config.data)]
    if languages[0] != languages[1]:
        raise InputError(
            f"{asked}: {origin} translates from {' to '.join(languages[0])}, this run from {' to '.join(languages[1])}"
            "; leave out training.replay"
        )
    pairs, _ = without_shared_sentences(base_corpus.train, [corpus.valid, corpus.test])
    if not len(pairs):
        raise InputError(
            f"{asked}: each pair of {origin} shares a sentence with valid or test of this run; "
            "leave out training.replay"
        )
    shared = len(base_corpus.train) - len(pairs)
    first_id = sum(report.read for report in corpus.report if report.split == "train")
    own, replayed = (float(numbers(part, "weight").sum(dtype=np.float64)) for part in (corpus.train, pairs))
    pairs = _renumbered(pairs, first_id, weight=share / (1 - share) * own / replayed)
    # The ids number all pairs that the base run read, those that it dropped included.
    read = sum(report.read for report in base_corpus.report if report.split == "train")
    dropped = {"left out by that run": read - len(base_corpus.train), "shared with valid or test": shared}
    report = SplitReport("train", f"replayed from {origin}", read, {k: n for k, n in dropped.items() if n})
    return replace(corpus, train=concatenate([corpus.train, pairs]), report=[*corpus.report, report])


def _renumbered(pairs: datasets.Dataset, first_id: int, weight: float) -> datasets.Dataset:
    """Add ``first_id`` to the ids of pairs, and multiply their weights by ``weight``."""
    ids, weights = (pairs.data.column(name).to_numpy() for name in NUMBERED_COLUMNS.names)
    return with_numbers(pairs, ("replayed", pairs._fingerprint, first_id, weight), ids + first_id, weights * weight)
