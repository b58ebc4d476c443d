"""Scores of the test sentences by other metrics or by people: read from files, and checked."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from mt.config import CompareConfig, as_folders
from mt.core.errors import InputError
from mt.core.files import read_lines
from mt.core.wording import brief
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.metrics.metric import Metric
from mt.metrics.registry import METRICS
from mt.metrics.sacrebleu import Chrf
from mt.metrics.significance import sum_blocks

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d{1,3})?", re.ASCII | re.IGNORECASE)
MAX_SCORE = 1e6
"""Largest absolute score. Sums of larger ones would round by more than the smallest difference that counts."""
MAX_DISAGREEMENT = 4.0
"""Maximum number of standard errors by which scores may contradict chrF2 without a caution."""


@dataclass(frozen=True, eq=False)
class SegmentScores(Metric):
    """A metric that is the mean of segment scores, which another program has computed or people have given, and its
    scores for all outputs of a comparison."""

    in_verdict = True
    name: str
    signature: str
    scores: Mapping[Path, np.ndarray]
    """``Output.origin`` → its scores (N,)."""
    higher_is_better: bool = True
    decimals: int = 2

    def statistics(self, output: Output) -> np.ndarray:
        """Return the statistics (N, 2) of an output: the score of each segment, and 1."""
        scores = self.scores[output.origin]
        return np.stack([scores, np.ones_like(scores)], axis=1)

    def score(self, sums: np.ndarray) -> np.ndarray:
        means: np.ndarray = sums[..., 0] / sums[..., 1]
        return means


def read_scores(config: CompareConfig, evaluation: EvaluationSet) -> list[SegmentScores]:
    """Read the files of the setting ``scores``: for each metric, one file for each output.

    Reports show four decimals if all scores of a metric are small, such as those of COMET.

    Raises:
        InputError: A file cannot be read, or has not one number for each test sentence, or a metric has the name of
            one that the comparison computes.
    """
    origins = [Path(origin) for system in config.systems for origin in system]
    computed = {name.casefold() for key, metric in METRICS.items() for name in (key, metric.name)}
    given = []
    for name, files in config.scores.items():
        if name.casefold() in computed:
            raise InputError(
                f"scores.{name}: {name} is computed by the comparison itself; give these scores another name"
            )
        paths = [path for system in files for path in as_folders(system)]
        scores = {
            origin: _read_file(Path(path), len(evaluation.references))
            for origin, path in zip(origins, paths, strict=True)
        }
        decimals = 4 if all(np.abs(values).max() < 10 for values in scores.values()) else 2
        signature = f"mean of the scores in {', '.join(paths)}"
        given.append(SegmentScores(name, signature, scores, config.higher_is_better(name), decimals))
    return given


def _read_file(path: Path, count: int) -> np.ndarray:
    scores = []
    for number, line in enumerate(read_lines(path), 1):
        text = line.decode("utf-8-sig" if number == 1 else "utf-8", errors="replace").strip()
        if not NUMBER.fullmatch(text) or abs(float(text)) > MAX_SCORE:
            wrong = f"“{brief(text)}” is not a number of at most {MAX_SCORE:,.0f}" if text else "is empty"
            raise InputError(
                f"{path}: line {number} {wrong}; write the score of test sentence n, such as 0.85, on line n"
            )
        scores.append(float(text))
    if len(scores) != count:
        raise InputError(
            f"{path} has {len(scores):,} scores, but there are {count:,} test sentences; write the score of test "
            "sentence n on line n"
        )
    return np.array(scores)


def find_score_cautions(
    evaluation: EvaluationSet, systems: Sequence[System], given: Sequence[SegmentScores]
) -> Iterator[str]:
    """Yield a sentence for each reason to doubt the scores of other metrics: scores that are all equal, the same for
    two outputs, or in contradiction to chrF2, as if they were those of another output."""
    outputs = [output for system in systems for output in system.outputs]
    chrf, blocks = Chrf(evaluation.target_language), evaluation.blocks()
    segments = [chrf.segment_scores(output.hypotheses, *evaluation.all_references) for output in outputs if given]
    for scores in given:
        sign = 1 if scores.higher_is_better else -1
        signed = [sign * scores.scores[output.origin] for output in outputs]
        for output, values in zip(outputs, signed, strict=True):
            if np.ptp(values) == 0 and len(values) > 1:
                yield f"{scores.name}: every sentence of {output.origin} has the same score, {sign * values[0]:g}"
        for (first, x, x_chrf), (second, y, y_chrf) in combinations(zip(outputs, signed, segments, strict=True), 2):
            pair = f"{scores.name}: {first.origin} and {second.origin}"
            if np.array_equal(x, y) and first.hypotheses != second.hypotheses:
                yield f"{pair} have the same scores, and their translations differ"
            gains = sum_blocks(np.stack([y - x, np.subtract(y_chrf, x_chrf)], axis=1), blocks)
            agreement = np.sign(gains).prod(axis=1)
            if agreement.sum() < -MAX_DISAGREEMENT * np.sqrt(np.abs(agreement).sum()):
                yield (
                    f"{pair}: mostly the sentences that are worse in chrF2 have the better score; check the order of "
                    "the files, and better=higher or lower"
                )
