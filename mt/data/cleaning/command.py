"""``python -m mt clean``: write the pairs that cleaning keeps, the pairs that it drops, and a report.

The report has three forms: cleaning.html for reading, cleaning.md for a pull request, and cleaning.json for programs.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from itertools import repeat
from pathlib import Path
from typing import Any

import datasets
import numpy as np
from matplotlib.figure import Figure
from tqdm import tqdm

from mt.config import CleaningConfig
from mt.core.columns import evenly_spaced_rows
from mt.core.files import atomic_folder, resolve_new_folder
from mt.data.cleaning.findings import CleaningFindings, log_findings
from mt.data.cleaning.rules import RULES
from mt.data.cleaning.stage import find_faulty_pairs, warn_of_shifted_lines
from mt.data.corpus import Corpus, load_corpus
from mt.data.pairs import read_texts
from mt.reporting.figures import COLORS, as_picture, new_figure
from mt.reporting.pages import Report

logger = logging.getLogger(__name__)

CLEANING_REPORT = Report(Path(__file__).parent, "cleaning.html", "cleaning.md", "cleaning.json")
EXAMPLES = 10
"""The maximum number of pairs that the report shows for each rule."""
MAX_EXAMPLE_CHARACTERS = 500
"""The maximum number of characters that the report shows of a text."""
LABELS = {
    "language": "log-likelihood ratio of the likeliest other language and the right language",
    "length": "deviation of the length ratio from the median for the length (standard deviations)",
    "translation": "log-likelihood ratio of the words given the other side and without it",
}
"""Maps each rule with scores to the label of the horizontal axis of its histogram."""
BINS = 80
TAIL_SHARE = 0.0005
"""This share of the scores at each end of a histogram is counted in the outermost bin."""


def clean(config: CleaningConfig) -> None:
    """Clean the corpus ``config.data``, and write the result to the new folder ``config.output``.

    The folder contains the training pairs in kept.jsonl and dropped.jsonl, the unchanged validation and test pairs in
    valid.jsonl and test.jsonl, and the report.

    Raises:
        InputError: The corpus cannot be used, or the output folder exists and is not empty.
    """
    output = resolve_new_folder(config.output)
    corpus = load_corpus(config.data)
    for report in corpus.report:
        for line in (report, *report.file_lines()):
            logger.info("%s", line)
    warn_of_shifted_lines(corpus)
    findings = find_faulty_pairs(corpus, config.data)
    log_findings(findings, corpus, config.data)
    languages = config.data.source_language, config.data.target_language
    rule_numbers = findings.by_split["train"]
    kept, dropped = np.flatnonzero(rule_numbers == 0), np.flatnonzero(rule_numbers)
    reasons = (
        {"rule": rule, "score": None if score is None else round(score, 3)}
        for rule, score in map(findings.rule_and_score, dropped.tolist())
    )
    counts = {split: findings.counts(split) for split in findings.sizes}
    examples = {rule: _select_examples(findings, corpus, number) for number, rule in enumerate(findings.rules, 1)}
    values = {
        "title": f"Cleaning of {findings.sizes['train']:,} pairs",
        "direction": "→".join(languages),
        "findings": findings,
        "counts": counts,
        "rules": RULES,
        "examples": examples,
        "dropped": len(dropped),
    }
    histograms = [score_histogram(findings, rule) for rule in findings.scores]
    numbers = {"pairs": findings.sizes, "found": counts, "histograms": histograms, "examples": examples}
    pictures = {histogram["rule"]: as_picture(plot_histogram(histogram)) for histogram in histograms}
    with atomic_folder(output) as folder:
        CLEANING_REPORT.write(folder, values, pictures, numbers)
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
    """Write pairs to a JSONL file, one object per line.

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


def _select_examples(
    findings: CleaningFindings, corpus: Corpus, rule: int
) -> list[dict[str, int | float | str | None]]:
    """Return up to EXAMPLES training pairs that a rule matches, evenly spaced, for the report.

    Args:
        findings: The results of cleaning.
        corpus: The corpus before cleaning.
        rule: The position of the rule in ``findings.rules``, from 1.

    Returns:
        For each pair its number (its id + 1), its score (None if the rule has none), and its shortened source and
        target.
    """
    rows = np.flatnonzero(findings.by_split["train"] == rule)
    rows = rows[evenly_spaced_rows(len(rows), EXAMPLES)]
    examples = []
    for row, pair in zip(rows.tolist(), corpus.train.select(rows), strict=True):
        _, score = findings.rule_and_score(row)
        examples.append(
            {
                "number": pair["id"] + 1,
                "score": None if score is None else round(score, 1),
                "source": _shorten(pair["source"]),
                "target": _shorten(pair["target"]),
            }
        )
    return examples


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_EXAMPLE_CHARACTERS else f"{text[:MAX_EXAMPLE_CHARACTERS]}…"


def score_histogram(findings: CleaningFindings, rule: str) -> dict[str, Any]:
    """Return the histogram of a rule's scores over the training pairs.

    Returns:
        ``rule``, the ``edges`` of the BINS bins, and three lists with a count for each bin: ``pairs`` for all pairs
        that the rule has judged, ``found`` for those that it matches, ``random`` for randomly matched pairs (None if
        there are none). The outermost bins also count the scores beyond them.
    """
    rule_numbers = findings.by_split["train"]
    scores = findings.scores[rule][: len(rule_numbers)]
    is_judged = np.isfinite(scores)
    scores, is_found = scores[is_judged], rule_numbers[is_judged] == findings.rules.index(rule) + 1
    low, high = np.quantile(scores, [TAIL_SHARE, 1 - TAIL_SHARE]) if len(scores) else (0.0, 1.0)
    edges = np.linspace(low, max(high, low + 1e-3), BINS + 1)
    values = {"pairs": scores, "found": scores[is_found], "random": findings.random_scores.get(rule)}
    return {"rule": rule, "edges": edges.tolist()} | {
        name: None if of_kind is None else np.histogram(np.clip(of_kind, low, edges[-1]), edges)[0].tolist()
        for name, of_kind in values.items()
    }


def plot_histogram(histogram: dict[str, Any]) -> Figure:
    """Plot the result of ``score_histogram`` with a logarithmic axis for the counts."""
    figure, axes = new_figure(2.8)
    edges = np.array(histogram["edges"])
    dropped = f"dropped by this rule: {sum(histogram['found']):,}"
    axes.stairs(histogram["pairs"], edges, fill=True, color=COLORS[4], alpha=0.6, label="all pairs")
    axes.stairs(histogram["found"], edges, fill=True, color=COLORS[1], label=dropped)
    if histogram["random"]:
        axes.stairs(histogram["random"], edges, color="black", label="matched at random")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylim(bottom=0)
    axes.set_title(histogram["rule"], loc="left", fontsize="medium")
    axes.set_xlabel(LABELS[histogram["rule"]])
    axes.set_ylabel("pairs")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0)
    return figure
