"""``python -m mt clean``: write the pairs that cleaning keeps, the pairs that it drops, and a report."""

import json
import logging
from collections.abc import Iterable, Mapping
from itertools import repeat
from pathlib import Path

import datasets
import numpy as np
from tqdm import tqdm

from mt.config import CleaningConfig
from mt.core.files import new_folder, resolve_new_folder
from mt.data.cleaning.findings import log_findings
from mt.data.cleaning.report import CLEANING_REPORT, write_cleaning_report
from mt.data.cleaning.stage import find_faulty
from mt.data.corpus import load_corpus
from mt.data.pairs import read_texts

logger = logging.getLogger(__name__)


def clean(config: CleaningConfig) -> None:
    """Clean the corpus ``config.data``, and write the result to the new folder ``config.output``.

    The folder gets the training pairs in kept.jsonl and dropped.jsonl, the unchanged valid.jsonl and test.jsonl, and
    the report.

    Raises:
        InputError: The corpus cannot be used, or the output folder exists and is not empty.
    """
    output = resolve_new_folder(config.output)
    corpus = load_corpus(config.data)
    for report in corpus.report:
        for line in (report, *report.file_lines()):
            logger.info("%s", line)
    findings = find_faulty(corpus, config.data)
    log_findings(findings, corpus, config.data)
    languages = config.data.source_language, config.data.target_language
    rule_numbers = findings.by_split["train"]
    kept, dropped = np.flatnonzero(rule_numbers == 0), np.flatnonzero(rule_numbers)
    reasons = (
        {"rule": rule, "score": None if score is None else round(score, 3)}
        for rule, score in map(findings.reason, dropped.tolist())
    )
    with new_folder(output) as folder:
        write_cleaning_report(findings, corpus, languages, folder)
        for split, pairs in (("valid", corpus.valid), ("test", corpus.test)):
            _write_pairs(folder / f"{split}.jsonl", pairs, np.arange(len(pairs)), languages)
        _write_pairs(folder / "kept.jsonl", corpus.train, kept, languages)
        _write_pairs(folder / "dropped.jsonl", corpus.train, dropped, languages, reasons)
    logger.info("report: %s", Path(config.output, CLEANING_REPORT.page))


def _write_pairs(
    path: Path,
    pairs: datasets.Dataset,
    rows: np.ndarray,
    languages: tuple[str, str],
    reasons: Iterable[Mapping[str, object]] = repeat({}),
) -> None:
    """Write pairs to a JSONL file, an object in each line.

    Args:
        path: The file.
        pairs: The pairs of a split.
        rows: The rows to write, in this order.
        languages: The keys of the source and of the target.
        reasons: Further keys and values for each row.
    """
    texts = (pair for batch in read_texts(pairs, rows) for pair in zip(*batch, strict=True))
    shown = tqdm(texts, desc=path.name, unit=" pairs", total=len(rows), disable=None, leave=False)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for reason, pair in zip(reasons, shown, strict=False):
            row = {**reason, **dict(zip(languages, pair, strict=True))}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
