"""``python -m mt.data.cleaning``: writes the pairs that training would keep and those that it would drop, and a report."""

import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from tqdm import tqdm

from mt.config import CleaningConfig
from mt.core.files import new_folder, refuse_taken
from mt.data.cleaning.findings import tell
from mt.data.cleaning.pairs import Pairs
from mt.data.cleaning.report import REPORT, write_report
from mt.data.cleaning.stage import find_faulty
from mt.data.corpus import load_corpus

logger = logging.getLogger(__name__)


def clean(config: CleaningConfig) -> None:
    """Writes the folder ``config.output``.

    Raises:
        InputError: The corpus cannot be used, or there is something in the output already.
    """
    output = refuse_taken("output", config.output)
    corpus = load_corpus(config.data)
    for report in corpus.report:
        for line in (report, *report.lines_of_files()):
            logger.info("%s", line)
    findings = find_faulty(corpus, config.data)
    tell(findings, corpus, config.data)
    languages = config.data.source_language, config.data.target_language

    def rows_of(pairs: Pairs, rows: np.ndarray) -> Iterator[dict]:
        for texts in pairs.texts(rows):
            for both in zip(*texts, strict=True):
                yield dict(zip(languages, both, strict=True))

    with new_folder(output) as folder:
        write_report(findings, corpus, languages, folder)
        for split, pairs in (("valid", corpus.valid), ("test", corpus.test)):
            _write_lines(folder / f"{split}.jsonl", rows_of(Pairs([pairs]), np.arange(len(pairs))), len(pairs))
        train, found = Pairs([corpus.train]), findings.found["train"]
        kept, dropped = np.flatnonzero(found == 0), np.flatnonzero(found)
        _write_lines(folder / "kept.jsonl", rows_of(train, kept), len(kept))
        reasons = zip(found[dropped].tolist(), findings.scores["train"][dropped].tolist(), strict=True)
        _write_lines(
            folder / "dropped.jsonl",
            (
                {"rule": findings.rules[rule - 1], "score": round(score, 3) if np.isfinite(score) else None} | row
                for (rule, score), row in zip(reasons, rows_of(train, dropped), strict=True)
            ),
            len(dropped),
        )
    logger.info("report: %s", Path(config.output, REPORT.page))


def _write_lines(path: Path, rows: Iterable[dict], number: int) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in tqdm(rows, desc=path.name, unit=" pairs", total=number, disable=None, leave=False):
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
