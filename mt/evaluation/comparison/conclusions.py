"""The verdict in words: the better system, and what a reader may and may not conclude from the tests."""

import math
import re
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from jinja2 import Template

from mt.evaluation.comparison.verdict import Verdict
from mt.evaluation.formatting import FILTERS
from mt.evaluation.systems import System
from mt.metrics.significance import TIE, min_differing_blocks
from mt.reporting.pages import template_environment

MAX_DIFFERENCE = 100.0
"""The largest possible difference between two BLEU scores."""


@dataclass(frozen=True)
class Conclusions:
    """The conclusions from a verdict, in sentences."""

    words: str
    """The better system, or that no winner is shown, with the reason."""
    may_conclude: list[str]
    may_not_conclude: list[str]
    """Statements that are often concluded but do not follow."""


def conclude(verdict: Verdict, baseline: System, system: System) -> Conclusions:
    """Put into words the verdict on ``system`` against ``baseline``."""
    bleu = verdict.test("BLEU")
    others = [paired for paired in verdict.over_sentences if paired.metric != "BLEU"]
    views = groupby(others, lambda paired: (paired.gain * bleu.gain > 0, verdict.is_shown(paired.metric)))
    first, second = (sorted(output.hypotheses for output in each.outputs) for each in (baseline, system))
    pairs = [paired for pair in verdict.pairs for paired in pair if paired.metric == "BLEU"]
    significant = [paired.gain for paired in pairs if verdict.is_significant(paired)]
    values = {
        "verdict": verdict,
        "bleu": bleu,
        "others": others,
        "views": [([paired.metric for paired in group], *view) for view, group in views],
        "pairs_won": sum(gain > 0 for gain in significant),
        "pairs_lost": sum(gain < 0 for gain in significant),
        "baseline": baseline,
        "system": system,
        "identical": first == second,
        "min_blocks": min_differing_blocks(verdict.level),
        "tie": TIE,
        "max_difference": MAX_DIFFERENCE,
    }
    sentences = _template().make_module(values)
    words, may, may_not = (_paragraphs(str(getattr(sentences, name)())) for name in ("words", "may", "may_not"))
    return Conclusions(" ".join(words), may, may_not)


@cache
def _template() -> Template:
    return template_environment(
        Path(__file__).parent, {**FILTERS, "round_up": _round_up}, autoescape=False
    ).get_template("conclusions.jinja")


def _paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a text, each as one line."""
    return [re.sub(r"\s*\n\s*", " ", paragraph.strip()) for paragraph in text.split("\n\n") if paragraph.strip()]


def _round_up(difference: float) -> str:
    return f"{math.ceil(difference * 100) / 100:.2f}"
