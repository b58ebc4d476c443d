"""The verdict in words: which system is better, and what a reader may and may not conclude from the tests."""

import math
from dataclasses import dataclass

from mt.evaluation.comparison.verdict import Verdict
from mt.evaluation.systems import System
from mt.metrics.significance import TIE, fewest_differing, rounded_up, shown_p

VIEWS = {
    (True, True): ("agrees", "agree"),
    (True, False): ("points the same way", "point the same way"),
    (False, False): ("does not agree", "do not agree"),
    (False, True): ("shows the opposite, by more than chance", "show the opposite, by more than chance"),
}
"""What is said about other metrics where BLEU has a winner, by (the winner is the same as BLEU's, the difference is
more than chance): the verb for one metric, and for two."""
VIEWS_WITHOUT_WINNER = {
    (True, True): ("finds the same one ahead, by more than chance", "find the same one ahead, by more than chance"),
    (True, False): ("points the same way", "point the same way"),
    (False, False): ("does not point the same way", "do not point the same way"),
    (False, True): ("finds the other one ahead, by more than chance", "find the other one ahead, by more than chance"),
}
"""The same where the difference in BLEU may be chance."""
LARGEST = 100.0
"""The largest possible difference between two BLEU scores."""


@dataclass(frozen=True)
class Conclusions:
    """The conclusions from a verdict, in sentences."""

    words: str
    """States which system is better, or that no winner is shown, with the reason."""
    may: list[str]
    """Statements that a reader may conclude."""
    may_not: list[str]
    """Statements that are often concluded but do not follow."""


def conclude(verdict: Verdict, baseline: System, system: System) -> Conclusions:
    """Puts into words the verdict on ``system`` against ``baseline``."""
    said = _Said(verdict, baseline, system)
    return Conclusions(said.words(), said.may(), said.may_not())


@dataclass(frozen=True)
class _Said:
    """Composes the sentences about one verdict."""

    verdict: Verdict
    baseline: System
    system: System

    @property
    def count(self) -> str:
        """The number of test sentences with its noun, such as ``1,000 sentences``."""
        count = len(self.baseline.first.hypotheses)
        return f"{count:,} sentences" if count != 1 else "one sentence"

    @property
    def is_significant(self) -> bool:
        """Whether the difference in BLEU is more than chance."""
        return self.verdict.is_shown("BLEU")

    @property
    def identical(self) -> bool:
        """Whether both systems give the same translations."""
        first, second = (sorted(output.hypotheses for output in one.outputs) for one in (self.baseline, self.system))
        return first == second

    @property
    def better_and_worse(self) -> tuple[System, System]:
        pair = self.system, self.baseline
        return pair if self.verdict.gain("BLEU") > 0 else pair[::-1]

    def words(self) -> str:
        """Returns the verdict: the difference in BLEU, the reason to trust or doubt it, other metrics, the scope."""
        names = self.baseline.name, self.system.name
        if self.identical:
            return f"{names[0]} and {names[1]} give the same translations: there is nothing to test."
        gain = self.verdict.gain("BLEU")
        if abs(gain) <= TIE:
            said = f"{names[0]} and {names[1]} have the same BLEU. {self._where_bleu_is_equal()}"
            return f"{said} {self._scope()}"
        better, worse = self.better_and_worse
        several = [one.repeats for one in (self.baseline, self.system) if len(one.outputs) > 1]
        size = f"{abs(gain):.2f}" if abs(gain) >= 0.005 else "less than 0.01"
        by = f"{size} BLEU{f' on average over the {several[0]}' if several else ''}"
        if self.is_significant:
            said = f"{better.name} translates better than {worse.name}: {by}, {self._reason()}."
        else:
            said = (
                f"No winner: {better.name} is ahead of {worse.name} by {by}, but this may be chance ({self._doubt()})."
            )
        return f"{said} {self._other_metrics()} {self._scope()}"

    def _reason(self) -> str:
        over_sentences = f"p ≤ {rounded_up(self.verdict.over_sentences('BLEU').p):.4f}"
        if not self.verdict.seed_tests:
            return f"more than the choice of sentences explains ({over_sentences})"
        over_seeds = f"p ≤ {rounded_up(self.verdict.seed_tests['BLEU'].p or 0.0):.4f}"
        return f"more than the choice of sentences ({over_sentences}) and of {self._repeats} ({over_seeds}) explains"

    @property
    def _repeats(self) -> str:
        """What both systems have several of: "seeds" if both were trained here, otherwise "outputs"."""
        kinds = {self.baseline.repeats, self.system.repeats}
        return "seeds" if kinds == {"seeds"} else "outputs"

    def _doubt(self) -> str:
        bleu, fewest = self.verdict.over_sentences("BLEU"), fewest_differing(self.verdict.level)
        if bleu.differing_blocks < fewest:
            count = bleu.differing_blocks
            blocks = f"{count} sentences" if count != 1 else "one sentence"
            too_few = f"with fewer than {fewest} no difference can be significant"
            return f"BLEU counts only {blocks} differently; {too_few}"
        doubts = [f"choice of sentences: p = {shown_p(bleu.p)}"]
        if self.verdict.seed_tests:
            over_seeds = self.verdict.seed_tests["BLEU"]
            if over_seeds.p is None:
                doubts.append(f"all {self._repeats} of each have the same score, so nothing can be said about others")
            else:
                doubts.append(f"choice of {self._repeats}: p = {shown_p(over_seeds.p)}")
                if not self.verdict.is_shown_by_seeds("BLEU"):
                    doubts.append(self._least_difference(over_seeds.least_difference))
        return "; ".join([*doubts, f"p below {self.verdict.level:.3g} is needed"])

    def _least_difference(self, least: float) -> str:
        if least > LARGEST:
            return f"so few {self._repeats} could not have shown any difference"
        rounded = math.ceil(least * 100) / 100
        return f"with so many {self._repeats}, only a difference of {rounded:.2f} BLEU or more could be significant"

    def _other_metrics(self) -> str:
        """Returns a sentence on whether chrF2 and TER agree with BLEU."""
        views = []
        for name in ("chrF2", "TER"):
            same_way = self.verdict.gain(name) * self.verdict.gain("BLEU") > 0
            words = VIEWS if self.is_significant else VIEWS_WITHOUT_WINNER
            views.append(words[same_way, self.verdict.is_shown(name)])
        (chrf, both), (ter, _) = views
        return f"chrF2 and TER {both}." if chrf == ter else f"chrF2 {chrf}; TER {ter}."

    def _where_bleu_is_equal(self) -> str:
        """Returns a sentence on what chrF2 and TER say where both systems have the same BLEU."""
        views = []
        for name in ("chrF2", "TER"):
            gain, sure = self.verdict.gain(name), self.verdict.is_shown(name)
            better = self.system.name if gain > 0 else self.baseline.name
            by = f"{abs(gain):.2f}, {'more than chance explains' if sure else 'which chance may explain'}"
            views.append(f"in {name} {better} is better by {by}" if abs(gain) > TIE else f"in {name} they are equal")
        said = "; ".join(views)
        return f"{said[0].upper()}{said[1:]}."

    def _scope(self) -> str:
        """Returns what the verdict is valid for: only these outputs, unless both systems have several seeds."""
        if self.verdict.seed_tests:
            return self._pair_counts()
        if not (self.baseline.can_translate or self.system.can_translate):
            return f"This is about these files, on this test set of {self.count}."
        if not (self.baseline.runs or self.system.runs):
            return f"This is about {_these(self.baseline)} and {_these(self.system)}, on this test set of {self.count}."
        return (
            f"This is about {_these(self.baseline)} and {_these(self.system)}, on this test set of {self.count}. "
            "Another seed can move BLEU by half a point or more."
        )

    def _pair_counts(self) -> str:
        """Returns in how many pairs, each one output of both systems, the test over sentences finds a winner."""
        bleu = [next(one for one in pair if one.metric == "BLEU") for pair in self.verdict.pairs]
        won = sum(self.verdict.is_significant(one) and one.gain > 0 for one in bleu)
        lost = sum(self.verdict.is_significant(one) and one.gain < 0 for one in bleu)
        return (
            f"Of {len(bleu)} pairs with one of the {self._repeats} of each, {self.system.name} is better in {won} and "
            f"worse in {lost} by more than the choice of sentences explains."
        )

    def may(self) -> list[str]:
        """Returns the conclusions that the results support."""
        said: list[str] = []
        if self.identical:
            return said
        better, worse = self.better_and_worse
        if self.is_significant and self.verdict.seed_tests:
            said.append(
                f"On text like that of this test set ({self.count}), {better.name} gets a higher BLEU than "
                f"{worse.name}, on average over all {self._repeats}, including those that were not tried."
            )
        elif self.is_significant:
            said.append(
                f"On text like that of this test set ({self.count}), {_these(better)} would score a higher BLEU than "
                f"{_these(worse)}{' on average' if len(better.outputs) + len(worse.outputs) > 2 else ''}."
            )
        if self.verdict.seed_tests:
            over_seeds = self.verdict.seed_tests["BLEU"]
            if over_seeds.p is not None and over_seeds.least_difference <= LARGEST:
                low, high = max(-LARGEST, over_seeds.low), min(LARGEST, over_seeds.high)
                said.append(
                    f"With many more {self._repeats}, scored on these same sentences, the mean difference "
                    f"({self.system.name} minus {self.baseline.name}) would be expected between {low:+.2f} "
                    f"and {high:+.2f} BLEU ({100 * (1 - self.verdict.level):.4g} % confidence interval)."
                )
        elif self._interval_can_be_trusted():
            difference = self.verdict.over_sentences("BLEU").difference
            said.append(
                f"On other sentences of the same kind, the difference ({self.system.name} minus {self.baseline.name}) "
                f"would be expected between {difference.low:+.2f} and {difference.high:+.2f} BLEU (95 % interval)."
            )
        return said

    def _interval_can_be_trusted(self) -> bool:
        """Returns whether the bootstrap's interval may be reported.

        With few differing sentences it is too narrow. It must not claim a difference that the test does not find.
        """
        bleu = self.verdict.over_sentences("BLEU")
        if bleu.differing_blocks < fewest_differing(self.verdict.level):
            return False
        return self.is_significant or bleu.difference.low <= 0 <= bleu.difference.high

    def may_not(self) -> list[str]:
        """Returns the statements that do not follow."""
        said: list[str] = []
        if self.identical:
            return said
        if not self.is_significant:
            said.append("That the two are equally good: that no difference is shown does not show that there is none.")
        if self.verdict.seed_tests and self._repeats == "outputs":
            said.append(
                "That this holds if the systems are trained again, unless each file comes from a separate training."
            )
        if not self.verdict.seed_tests:
            said.append(self._about_seeds())
        said.append(
            "That the same holds for other kinds of text, or that readers would notice: BLEU compares with one "
            "reference translation."
        )
        return said

    def _about_seeds(self) -> str:
        """Returns what does not follow about other seeds if not both systems have several."""
        if self.baseline.can_translate and self.system.can_translate and not (self.baseline.runs or self.system.runs):
            return (
                "That the difference is due to how the models were trained: the same training with another seed would "
                "give another model. Compare several models of each."
            )
        if not (self.baseline.runs or self.system.runs):
            return (
                "That the difference is due to the programs behind the files: a file is one output, and the same "
                "program trained again would give another. Compare several outputs of each."
            )
        alone = [one for one in (self.baseline, self.system) if len(one.outputs) == 1]
        kinds = {"seed": [one.name for one in alone if one.runs], "output": [one.name for one in alone if not one.runs]}
        there = " and ".join(f"there is one {kind} of {' and '.join(names)}" for kind, names in kinds.items() if names)
        return (
            f"That the difference is due to the settings or the models: {there}, and another seed can move BLEU by "
            "half a point or more. Compare several seeds of each."
        )


def _these(system: System) -> str:
    """Returns ``this run of A``, ``the model A``, ``the file A``, or the same of several."""
    several = len(system.outputs) > 1
    if not system.runs:
        kind = "model" if system.can_translate else "file"
        return f"the {kind}s {system.name}" if several else f"the {kind} {system.name}"
    return f"these runs of {system.name}" if several else f"this run of {system.name}"
