"""The verdict in words: which system is better, what a reader may conclude from the tests, and what not."""

import math
from dataclasses import dataclass

from mt.comparison.systems import System
from mt.comparison.verdict import Verdict, rounded_up
from mt.significance import fewest_differing

VIEWS = {
    (True, True): ("agrees", "agree"),
    (True, False): ("points the same way", "point the same way"),
    (False, False): ("does not agree", "do not agree"),
    (False, True): ("says the opposite, more than chance", "say the opposite, more than chance"),
}
"""Of one metric and of two: whether it sees the same winner as BLEU, and whether that is more than chance."""


@dataclass(frozen=True)
class Conclusions:
    """What follows from a verdict."""

    words: str
    """Which system is better, or that none is, and why that is said."""
    may: list[str]
    """Sentences that a reader may conclude."""
    may_not: list[str]
    """Sentences that do not follow, though they are often concluded."""


def conclude(verdict: Verdict, baseline: System, system: System) -> Conclusions:
    """Args:
    verdict: of ``system`` against ``baseline``.
    """
    said = _Said(verdict, baseline, system)
    return Conclusions(said.words(), said.may(), said.may_not())


@dataclass(frozen=True)
class _Said:
    """The sentences about one verdict."""

    verdict: Verdict
    baseline: System
    system: System

    @property
    def count(self) -> str:
        """Of the test sentences."""
        count = len(self.baseline.first.hypotheses)
        return f"{count:,} sentences" if count != 1 else "one sentence"

    @property
    def shown(self) -> bool:
        """Whether a difference in BLEU is more than chance."""
        return self.verdict.is_shown("BLEU")

    @property
    def better_and_worse(self) -> tuple[System, System]:
        pair = self.system, self.baseline
        return pair if self.verdict.gain("BLEU") > 0 else pair[::-1]

    def words(self) -> str:
        """The verdict: one difference, the reason to believe or doubt it, other metrics, what it speaks of."""
        names = self.baseline.name, self.system.name
        outputs = [[output.hypotheses for output in one.outputs] for one in (self.baseline, self.system)]
        if outputs[0] == outputs[1]:
            return f"{names[0]} and {names[1]} give the same translations: there is nothing to test."
        gain = self.verdict.gain("BLEU")
        if gain == 0:
            said = f"{names[0]} and {names[1]} have the same BLEU. {self._where_bleu_is_equal()}"
            return f"{said} {self._scope()}"
        better, worse = self.better_and_worse
        by = f"{abs(gain):.2f} BLEU{' on average over the seeds' if self.verdict.seeds else ''}"
        if self.shown:
            said = f"{better.name} translates better than {worse.name}: {by}, {self._reason()}."
        else:
            said = (
                f"No winner: {better.name} is ahead of {worse.name} by {by}, but that this is more than chance is not "
                f"shown ({self._doubt()})."
            )
        return f"{said} {self._other_metrics()} {self._scope()}"

    def _reason(self) -> str:
        over_sentences = f"p ≤ {rounded_up(self.verdict.sentences[0].p):.4f}"
        if not self.verdict.seeds:
            return f"more than the choice of sentences explains ({over_sentences})"
        over_seeds = f"p ≤ {rounded_up(self.verdict.seeds['BLEU'].p):.4f}"
        return f"more than the choice of sentences ({over_sentences}) and of seeds ({over_seeds}) explains"

    def _doubt(self) -> str:
        bleu, fewest = self.verdict.sentences[0], fewest_differing(self.verdict.level)
        if bleu.differing_blocks < fewest:
            return (
                f"BLEU counts only {bleu.differing_blocks} different sources differently, and below {fewest} no "
                "difference can be significant"
            )
        doubts = [f"choice of sentences: p = {bleu.p:.3f}"]
        if self.verdict.seeds:
            welch = self.verdict.seeds["BLEU"]
            doubts.append(f"choice of seeds: p = {welch.p:.3f}")
            if math.isfinite(welch.least_difference):
                doubts.append(
                    f"with so many seeds no difference below {welch.least_difference:.2f} BLEU could be significant"
                )
        return "; ".join(doubts)

    def _other_metrics(self) -> str:
        """Whether chrF2 and TER see it in the same way."""
        views = []
        for name in ("chrF2", "TER"):
            same_way = self.verdict.gain(name) * self.verdict.gain("BLEU") > 0
            views.append(VIEWS[same_way, self.verdict.is_shown(name)])
        (chrf, both), (ter, _) = views
        return f"chrF2 and TER {both}." if chrf == ter else f"chrF2 {chrf}; TER {ter}."

    def _where_bleu_is_equal(self) -> str:
        """What chrF2 and TER say then."""
        views = []
        for name in ("chrF2", "TER"):
            gain, sure = self.verdict.gain(name), self.verdict.is_shown(name)
            better = self.system.name if gain > 0 else self.baseline.name
            by = f"{abs(gain):.2f}, {'more than chance explains' if sure else 'which chance may explain'}"
            views.append(f"in {name} {better} is better by {by}" if gain else f"in {name} they are equal")
        said = "; ".join(views)
        return f"{said[0].upper()}{said[1:]}."

    def _scope(self) -> str:
        """What the verdict speaks of: the outputs themselves, unless there are several seeds of both."""
        if self.verdict.seeds:
            return self._pair_counts()
        if not (self.baseline.runs or self.system.runs):
            return f"This speaks of these files and of this test set of {self.count}."
        return (
            f"This speaks of {_these(self.baseline)} and {_these(self.system)}, on this test set of {self.count}. "
            "Another seed can move BLEU by half a point or more."
        )

    def _pair_counts(self) -> str:
        """How the test over sentences sees each run beside one of the other system."""
        bleu = [pair[0] for pair in self.verdict.pairs]
        won = sum(self.verdict.is_significant(one) and one.gain > 0 for one in bleu)
        lost = sum(self.verdict.is_significant(one) and one.gain < 0 for one in bleu)
        return (
            f"In {len(bleu)} pairs of one run of each, {self.system.name} is better by more than the choice of "
            f"sentences explains in {won}, and worse in {lost}."
        )

    def may(self) -> list[str]:
        said = []
        better, worse = self.better_and_worse
        if self.shown and self.verdict.seeds:
            said.append(
                f"On text like that of this test set ({self.count}), {better.name} usually gets a higher BLEU than "
                f"{worse.name}, with other seeds as well."
            )
        elif self.shown:
            said.append(
                f"On text like that of this test set ({self.count}), {_these(better)} would score a higher BLEU than "
                f"{_these(worse)}."
            )
        if self.verdict.seeds:
            welch = self.verdict.seeds["BLEU"]
            if math.isfinite(welch.low):
                said.append(
                    f"With many more seeds the mean difference ({self.system.name} minus {self.baseline.name}) would "
                    f"be expected between {welch.low:+.2f} and {welch.high:+.2f} BLEU "
                    f"({100 * (1 - self.verdict.level):.4g} % confidence interval)."
                )
        elif self.verdict.sentences[0].differing_blocks:
            difference = self.verdict.sentences[0].difference
            said.append(
                f"On other sentences of the kind the difference ({self.system.name} minus {self.baseline.name}) would "
                f"be expected between {difference.low:+.2f} and {difference.high:+.2f} BLEU (95 % interval)."
            )
        return said

    def may_not(self) -> list[str]:
        said = []
        if not self.shown:
            said.append(
                "That the two are equally good: a test that shows no difference does not show that there is none."
            )
        if not self.verdict.seeds:
            said.append(self._about_seeds())
        said.append(
            "That the same holds for other kinds of text, or that readers would notice: BLEU compares with one "
            "reference translation."
        )
        return said

    def _about_seeds(self) -> str:
        if not (self.baseline.runs or self.system.runs):
            return (
                "That the programs behind the files differ: a file is one output, and the same program trained again "
                "would give another. Compare several outputs of each."
            )
        alone = [one.name for one in (self.baseline, self.system) if len(one.outputs) == 1]
        return (
            f"That the settings or models behind them differ: of {' and '.join(alone)} there is one seed, and another "
            "can move BLEU by half a point or more. Compare several seeds of each."
        )


def _these(system: System) -> str:
    """``this run of A``, ``these runs of A`` or ``the file A``."""
    several = len(system.outputs) > 1
    if not system.runs:
        return f"the files {system.name}" if several else f"the file {system.name}"
    return f"these runs of {system.name}" if several else f"this run of {system.name}"
