"""Writes the verdict of a comparison in words."""

import re
from pathlib import Path

from mt.evaluation.comparison.verdict import Verdict
from mt.evaluation.formatting import FILTERS
from mt.evaluation.systems import System
from mt.metrics.significance import SIGNIFICANCE_LEVEL, TIE, min_differing_blocks
from mt.reporting.pages import template_environment


def conclude(verdict: Verdict, baseline: System, system: System) -> str:
    """Return the text of a verdict: the better system or "No winner", the difference in BLEU with its p-values, and the
    differences in other metrics that are ``in_verdict``."""
    bleu, *others = (paired for paired in verdict.over_sentences if paired.metric in verdict.corrected_p)
    first, second = (sorted(output.hypotheses for output in side.outputs) for side in (baseline, system))
    values = {
        "verdict": verdict,
        "bleu": bleu,
        "others": others,
        "baseline": baseline,
        "system": system,
        "identical": first == second and not any(paired.differing_blocks for paired in verdict.over_sentences),
        "level": SIGNIFICANCE_LEVEL,
        "min_blocks": min_differing_blocks(SIGNIFICANCE_LEVEL),
        "tie": TIE,
    }
    environment = template_environment(Path(__file__).parent, FILTERS, autoescape=False)
    text = environment.get_template("conclusions.jinja").render(values)
    return re.sub(r"\s*\n\s*", " ", text.strip())
