"""The settings of the commands that evaluate: compare and robustness."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from mt.config.decoding import DecodingChoice
from mt.config.fields import LanguageCode, NonNegativeInt, NotABool, PathText, PositiveInt, Seed, repeated_paths
from mt.config.machine import MachineConfig
from mt.config.translate import Folders, as_folders


class CompareConfig(MachineConfig):
    """``python -m mt compare``"""

    first: Folders | None = None
    """The baseline: a run, a list of runs that differ in their seed alone, a model that comes alone (a MarianMT folder,
    a name on the Hugging Face hub, or a model folder), or a file with one translation a line."""
    second: Folders | None = None
    """What is compared with the baseline, likewise."""
    runs: Annotated[tuple[Folders, ...], Field(min_length=2)] | None = None
    """Instead of first and second: a list of two or more systems, the baseline first."""
    references: PathText | None = None
    """The file with the reference translations. Where a run is compared, null: its test set is."""
    source: PathText | None = None
    """With references: the file with what is translated. Runs and models translate it anew. For files of translations
    alone, null: it is not known."""
    source_language: LanguageCode | None = None
    """With references: the language of the source. null: that of the runs and models, if they say it."""
    target_language: LanguageCode | None = None
    """With references: the language of the translations, which decides how they are scored. null: that of the runs and
    models, if they say it."""
    output: PathText | None = None
    """A folder to write into. null: FIRST-vs-SECOND beside the second system."""
    bootstrap_samples: Annotated[int, NotABool, Field(ge=100, le=1_000_000)] = 10_000
    """How many test sets are drawn at random for the 95 % intervals."""
    randomization_trials: Annotated[int, NotABool, Field(ge=100, le=10_000_000)] = 100_000
    """How many random exchanges the paired randomisation test makes, where there are too many to try all."""
    examples: PositiveInt = 20
    """How many sentences are shown for each side's clearest wins."""
    studied_sentences: NonNegativeInt = 100
    """How many test sentences the statistics of attention are averaged over. 0 leaves attention out."""
    timed_sentences: NonNegativeInt = 200
    """How many test sentences are translated to measure speed. 0 leaves it out."""
    robustness: bool = False
    """Whether it is also measured, on the first run of each of two systems, what typing errors, capitals, numbers,
    links and tags do to the translations. It takes minutes."""
    valid_bleu: Annotated[float, NotABool, Field(gt=0, le=100)] | None = None
    """The report tells the training time to this validation BLEU. null: the highest that all runs reached."""

    @property
    def systems(self) -> tuple[tuple[str, ...], ...]:
        """The folders of each system. The first is the baseline."""
        given = (self.first, self.second) if self.runs is None else self.runs
        return tuple(as_folders(folders) for folders in given if folders is not None)

    def contradictions(self) -> Iterator[str]:
        if self.runs is not None and (self.first is not None or self.second is not None):
            yield "runs replaces first and second: give either"
        elif self.runs is None and (self.first is None or self.second is None):
            yield "two runs are needed: first=runs/A second=runs/B, or runs=[runs/A,runs/B,runs/C]"
        elif self.robustness and len(self.systems) > 2:
            yield f"robustness=true is for two systems, and runs names {len(self.systems)}: compare two at a time"
        elif self.robustness and self.references is not None:
            yield "robustness=true is measured on the test set of a run: leave references out"
        yield from repeated_paths(folder for system in self.systems for folder in system)
        # p is at least 1 / (trials + 1), or twice that where only one of two systems has several outputs, and each of
        # the systems has its share of the level, 0.05.
        numbers, others = {len(system) for system in self.systems}, len(self.systems) - 1
        needed = (40 if 1 in numbers and len(numbers) > 1 else 20) * others
        if self.randomization_trials < needed:
            aim = f"to show any difference between one system and {others} others"
            yield f"randomization_trials={self.randomization_trials} is too few {aim}: take {needed} or more"


class RobustnessConfig(MachineConfig):
    """``python -m mt robustness``"""

    run: PathText
    """A finished run."""
    second: PathText | None = None
    """Another one with the same test set, to compare with the first."""
    output: PathText | None = None
    """A folder to write into. null: the folder robustness in the run, or FIRST-vs-SECOND-robustness beside the second
    run."""
    sentences: PositiveInt = 500
    """How many test sentences of four words or more are taken, evenly spaced. Of languages without spaces between
    words: of eight characters or more."""
    seed: Seed = 1
    """Decides what is planted and mistyped where, and the random numbers of intervals and tests."""
    decoding: DecodingChoice = DecodingChoice()
    """null: what the model's own model.yaml says"""

    def contradictions(self) -> Iterator[str]:
        yield from repeated_paths(path for path in (self.run, self.second) if path is not None)
        reason = "one best translation is scored, of plain lines and of tagged lines as HTML"
        yield from self.decoding.refuse(reason, "method", "n_best", "markup", "alignments")
