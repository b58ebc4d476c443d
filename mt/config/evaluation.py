"""The settings of the commands that evaluate: compare and robustness."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from mt.config.data import FileOrFiles
from mt.config.decoding import DecodingChoice
from mt.config.fields import (
    LanguageCode,
    NonNegativeInt,
    NotABool,
    PathText,
    PositiveInt,
    Seed,
    Text,
    repeated_paths,
)
from mt.config.machine import MachineConfig
from mt.config.translate import Folders, as_folders
from mt.core.wording import did_you_mean

Better = Literal["higher", "lower"]


class CompareConfig(MachineConfig):
    """``python -m mt compare``"""

    first: Folders | None = None
    """Baseline system: a run; a list of runs that differ in their seed only; a model without a run (a model folder, a
    MarianMT folder, or a name on the Hugging Face hub); or a file with a translation on each line."""
    second: Folders | None = None
    """System to compare with the baseline. Written as for first."""
    runs: Annotated[tuple[Folders, ...], Field(min_length=2)] | None = None
    """List of two or more systems, starting with the baseline. It replaces first and second."""
    references: FileOrFiles | None = None
    """File with reference translations, or a list of files if each sentence has several. null: the test set of the
    compared runs."""
    source: PathText | None = None
    """With references: the file with the source sentences, which runs and models translate. null: unknown, if all
    systems are files of translations."""
    source_language: LanguageCode | None = None
    """With references: the language of the source. null: the source language of the compared runs and models, if it is
    known."""
    target_language: LanguageCode | None = None
    """With references: the language of the translations. Scores are computed as is usual for it. null: the target
    language of the compared runs and models, if it is known."""
    scores: dict[Text, tuple[Folders, ...]] = {}
    """Scores of each test sentence by further metrics or by people: scores.NAME=[a.txt,b.txt], with a file for each
    system and a number on each of its lines. A system with several outputs has a list of files, in the order of its
    outputs: [[a1.txt,a2.txt],b.txt]."""
    better: Annotated[dict[Text, Better], BeforeValidator(lambda x: {"all": x} if isinstance(x, str) else x)] = {}
    """Whether higher or lower values of these metrics are better: better=lower for all, better.NAME=lower for one. By
    default, higher."""
    output: PathText | None = None
    """Folder to write into. null: FIRST-vs-SECOND beside the second system."""
    bootstrap_samples: Annotated[int, NotABool, Field(ge=100, le=1_000_000)] = 10_000
    """Number of bootstrap samples of the test set for the 95 % confidence intervals."""
    randomization_trials: Annotated[int, NotABool, Field(ge=100, le=10_000_000)] = 100_000
    """Number of random permutations in the paired randomisation test, if there are too many to try them all."""
    examples: PositiveInt = 20
    """Number of example sentences in the report for each of two systems: those where it is better by most."""
    studied_sentences: NonNegativeInt = 100
    """Number of test sentences for the attention statistics. 0: no attention statistics."""
    timed_sentences: NonNegativeInt = 200
    """Number of test sentences for the measurement of translation speed. 0: no measurement."""
    valid_bleu: Annotated[float, NotABool, Field(gt=0, le=100)] | None = None
    """Validation BLEU up to which the report measures training time. null: the highest that all runs reached."""

    @property
    def systems(self) -> tuple[tuple[str, ...], ...]:
        """The paths of each system, with several if it has a run for each seed. The first system is the baseline."""
        given = (self.first, self.second) if self.runs is None else self.runs
        return tuple(as_folders(folders) for folders in given if folders is not None)

    def higher_is_better(self, name: str) -> bool:
        """Return whether higher values of a given metric are better."""
        return self.better.get(name, self.better.get("all")) != "lower"

    def contradictions(self) -> Iterator[str]:
        if self.runs is not None and (self.first is not None or self.second is not None):
            yield "runs replaces first and second: set either runs, or first and second"
        elif self.runs is None and (self.first is None or self.second is None):
            yield "two runs are needed: first=runs/A second=runs/B, or runs=[runs/A,runs/B,runs/C]"
        yield from repeated_paths(folder for system in self.systems for folder in system)
        yield from repeated_paths(as_folders(self.references) if self.references else ())
        yield from self._contradictions_of_scores()

    def _contradictions_of_scores(self) -> Iterator[str]:
        numbers = [len(system) for system in self.systems]
        for name, files in self.scores.items():
            given = [len(as_folders(system)) for system in files]
            if given != numbers:
                yield f"scores.{name} has {given} files, but the systems have {numbers} outputs: list a file for each"
            yield from repeated_paths(path for system in files for path in as_folders(system))
        for name in self.better:
            if name not in (*self.scores, "all"):
                yield f"better.{name} is not a name in scores{did_you_mean(name, [*self.scores])}"


class RobustnessConfig(MachineConfig):
    """``python -m mt robustness``"""

    run: PathText
    """Finished run to measure."""
    second: PathText | None = None
    """Another finished run with the same test set, to compare with the first."""
    output: PathText | None = None
    """Folder to write into. null: the folder robustness in the run, or FIRST-vs-SECOND-robustness beside the second
    run."""
    sentences: PositiveInt = 500
    """Number of test sentences, evenly spaced among those with at least four words. In languages without spaces between
    words, at least eight characters count."""
    seed: Seed = 1
    """Random seed for the changes to the sentences, and for confidence intervals and significance tests."""
    decoding: DecodingChoice = DecodingChoice()
    """null: the value in the model's model.yaml"""

    def contradictions(self) -> Iterator[str]:
        yield from repeated_paths(path for path in (self.run, self.second) if path is not None)
        reason = "robustness is measured on one best translation, with markup where a sentence needs it"
        yield from self.decoding.refuse(reason, "method", "n_best", "markup", "alignments")
