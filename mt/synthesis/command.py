"""``python -m mt synthesize``: makes training pairs by translating a text, or the corpus of a run."""

import json
import logging
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from tqdm import tqdm

from mt.config import SynthesisConfig, as_folders, language_suffix
from mt.core.device import precision_name
from mt.core.direction import ANY_DIRECTION, UNKNOWN_LANGUAGE, AskedDirection, Direction, choose_direction
from mt.core.errors import InputError
from mt.core.files import UNDECODABLE
from mt.core.language import writes_spaces
from mt.core.output import resumable_outputs
from mt.core.wording import format_value
from mt.data.corpus import Corpus
from mt.data.pairs import normal_form, sentence_key
from mt.distributed.launch import work_together
from mt.distributed.workers import Workers
from mt.storage.folders import open_folder, read_description
from mt.synthesis.source_lines import (
    OTHER,
    LineSource,
    Side,
    corpus_of,
    held_out,
    held_out_texts,
    lines_of_corpus,
    lines_of_file,
    texts,
)
from mt.synthesis.table import Conditions, PassProgress, finished_passes, left_out, write_provenance
from mt.translation.constraints import max_repeats
from mt.translation.lines import windows
from mt.translation.results import ScoredText
from mt.translation.translator import Translator, lead_or_help

logger = logging.getLogger(__name__)

MAY_CHANGE = ("output", "device", "threads", "workers")
"""Settings that may differ when a stopped command resumes."""
SCORE_DIGITS = 4
"""Number of decimals of scores in the table. The last bits of a score depend on the batch."""


@dataclass(frozen=True)
class Pass:
    """One pass of translation: the lines, and the model or ensemble that translates them."""

    folders: tuple[Path, ...]
    """The run folders. Several are an ensemble."""
    side: Side
    """The side of the pairs that ``lines`` make up. The translations make up the other side."""
    lines: LineSource


@dataclass(frozen=True)
class PairWriter:
    """Checks translated lines, and formats them as rows of the table."""

    languages: dict[Side, str]
    held_out: dict[Side, frozenset[int]]
    """The keys (``sentence_key``) of the validation and test sentences on each side."""

    def row(self, side: Side, number: int, line: str, translation: ScoredText) -> bytes | str:
        """Return the row of a pair: a JSON object with both texts, by language, the score and the line number. Return
        the reason instead if the pair is left out.

        Args:
            side: The side of the line.
            number: The number of the line, from 1.
            line: The line.
            translation: The translation with its score.
        """
        sides: dict[Side, str] = {side: line, OTHER[side]: translation.text}
        if reason := fault(line, translation.text, (self.languages[side], self.languages[OTHER[side]])):
            return reason
        if any(sentence_key(text) in self.held_out[name] for name, text in sides.items()):
            return "shared with valid or test"
        row = {self.languages[name]: sides[name] for name in OTHER} | {
            "score": None if translation.score is None else round(translation.score, SCORE_DIGITS),
            "line": number,
        }
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"


@dataclass(frozen=True)
class Job:
    """A table to write."""

    output: Path
    passes: list[Pass]
    conditions: Conditions
    writer: PairWriter
    done: list[PassProgress] | None
    """The progress of the passes of a table that is finished already; otherwise None."""


def synthesize(config: SynthesisConfig) -> None:
    """Translate, and write the table of pairs in the order of the lines. Resume a table that was stopped.

    Raises:
        InputError: A run, the text or the output cannot be used, or no line gives a pair.
        RunError: Another process is writing the same table.
    """
    work_together(partial(_synthesize, config), config)


def _synthesize(config: SynthesisConfig, workers: Workers) -> None:
    jobs: list[Job] = []  # the leader's, which alone reads the lines and writes the table

    def prepare() -> list[tuple[Path, ...]]:
        jobs.append(_job(config))
        return [] if jobs[0].done else [step.folders for step in jobs[0].passes]

    device = str(workers.device)
    translators = [
        Translator.load(folders, config.decoding, device, config.precision, workers=workers, asked=config.asked)
        for folders in workers.run_on_leader(prepare)
    ]
    lead_or_help(workers, translators, lambda: _finish(jobs[0], translators))


def _job(config: SynthesisConfig) -> Job:
    languages = _languages(config)
    output = Path(config.output)
    corpus = None
    if config.input is None:
        parts = corpus_of(Path(as_folders(config.run)[0])).by_direction()
        corpus = parts[Direction(languages["source"], languages["target"])]
    passes = _passes(config, corpus)
    conditions = _conditions(config, passes)
    writer = PairWriter(languages, held_out(corpus) if corpus else dict.fromkeys(OTHER, frozenset()))
    return Job(output, passes, conditions, writer, finished_passes(output, conditions))


def _finish(job: Job, translators: Sequence[Translator]) -> None:
    """Write the rest of the table, and log the counts. ``translators`` are those of the passes."""
    if job.done is None:
        done = _translate_passes(job, translators)
    else:
        done = job.done
        logger.info("%s is finished", job.output)
    lines, pairs = sum(progress.lines for progress in done), sum(progress.pairs for progress in done)
    reasons = "".join(f", {count:,} left out: {reason}" for reason, count in left_out(done).items())
    logger.info("%s: %s lines translated, %s pairs%s", job.output, f"{lines:,}", f"{pairs:,}", reasons)


def _languages(config: SynthesisConfig) -> dict[Side, str]:
    """Return the language of each side of the pairs.

    With back-translation, the lines are the target side, so the sides are swapped against the run's.

    Raises:
        InputError: A run translates in another direction than ``run`` or ``reverse`` needs, or in an unknown one.
    """
    source, target = direction = _direction(as_folders(config.run)[0], config.asked)
    if UNKNOWN_LANGUAGE in direction:
        raise InputError(f"run={format_value(config.run)}: set source_language and target_language")
    for setting, folders, expected, reason in (
        ("run", config.run, direction, f", but the first run translates {source}→{target}; name runs of one direction"),
        ("reverse", config.reverse or (), (target, source), f"; name a run that translates {target}→{source}"),
    ):
        for folder in as_folders(folders):
            if (other := _direction(folder, config.asked if setting == "run" else ANY_DIRECTION)) != expected:
                raise InputError(f"{setting}={folder} translates {'→'.join(other)}{reason}")
    if config.input is not None and language_suffix(config.input) == target:
        raise InputError(
            f"input={config.input} is named as {target}, but {as_folders(config.run)[0]} translates from {source}: "
            f"{target} lines need a run that translates from {target}"
        )
    if config.method == "back_translation":
        source, target = target, source
    return {"source": source, "target": target}


def _direction(folder: str, asked: AskedDirection) -> tuple[str, str]:
    """Return the direction of a run; for a model of unknown languages, the one that is asked for."""
    source, target = choose_direction(read_description(Path(folder)).layers, asked, folder)
    return (asked.source or source, asked.target or target) if source == UNKNOWN_LANGUAGE else (source, target)


def _passes(config: SynthesisConfig, corpus: Corpus | None) -> list[Pass]:
    folders = tuple(map(Path, as_folders(config.run)))
    if corpus is None:
        assert config.input is not None
        side: Side = "target" if config.method == "back_translation" else "source"
        return [Pass(folders, side, lines_of_file(Path(config.input)))]
    sources = lines_of_corpus(corpus, "source")
    if config.reverse is None:
        return [Pass(folders, "source", sources)]
    targets = lines_of_corpus(corpus, "target")
    backward = tuple(map(Path, as_folders(config.reverse)))
    for folder in backward:
        _warn_of_leaked_sentences(folder, corpus)
    return [
        *(Pass((folder,), "source", sources) for folder in folders),
        *(Pass((folder,), "target", targets) for folder in backward),
    ]


def _warn_of_leaked_sentences(run: Path, corpus: Corpus) -> None:
    """Warn if a run of the other direction was trained on held-out sentences of ``corpus``.

    Held-out pairs are drawn by a hash of source and target, in this order. So a run of the other direction holds out
    other pairs, unless the config names validation and test data.
    """
    try:
        train = corpus_of(run).train
    except InputError as error:
        logger.warning(
            "it cannot be checked whether %s was trained on sentences that are held out here, in which case scores on "
            "these are too high: %s",
            run,
            error,
        )
        return
    leaked = 0
    for side in OTHER:
        held_out_here = set(held_out_texts(corpus, OTHER[side]))
        leaked = max(leaked, sum(text in held_out_here for text in texts(train, side)))
    if leaked:
        logger.warning(
            "%s was trained on %s pairs with sentences that are held out here, so scores on these may be too high: "
            "name the same validation and test data for both directions (data.valid, data.test)",
            run,
            f"{leaked:,}",
        )


def _conditions(config: SynthesisConfig, passes: Sequence[Pass]) -> Conditions:
    """Return the settings, the checksums of the models and the checksums of the lines, which determine the table."""
    settings = config.model_dump(mode="json")
    decoding = settings.pop("decoding")
    conditions: Conditions = {
        key: value if isinstance(value, str) or value is None else ",".join(value)
        for key, value in settings.items()
        if key not in MAY_CHANGE
    }
    conditions |= {f"decoding.{key}": value for key, value in decoding.items()}
    conditions |= {f"model of {folder}": open_folder(folder).checksum() for step in passes for folder in step.folders}
    conditions |= {f"lines of the {step.side} side": step.lines.sha256 for step in passes}
    return conditions


def _translate_passes(job: Job, translators: Sequence[Translator]) -> list[PassProgress]:
    """Translate the remaining lines of all passes, a window at a time, and write the table. Return their progress."""
    with resumable_outputs([str(job.output)], lambda: job.conditions) as outputs:
        recorded = outputs.values[-1] if outputs.values else [{}] * len(job.passes)
        done = [PassProgress(**values) for values in recorded]
        total = sum(step.lines.count for step in job.passes)
        with tqdm(total=total, initial=outputs.lines, unit=" lines", disable=None, leave=False) as bar:
            for step, progress, translator in zip(job.passes, done, translators, strict=True):
                for window in windows(islice(step.lines.read(), progress.lines, None)):
                    numbers = range(progress.lines, progress.lines + len(window))
                    rows: list[bytes] = []
                    translations = translator.hypotheses(window, numbers)
                    for number, line, (best,) in zip(numbers, window, translations, strict=True):
                        if isinstance(row := job.writer.row(step.side, number + 1, line, best), bytes):
                            rows.append(row)
                        else:
                            progress.left_out[row] = progress.left_out.get(row, 0) + 1
                    progress.lines += len(window)
                    progress.pairs += len(rows)
                    outputs.append(len(window), [b"".join(rows)], list(map(asdict, done)))
                    bar.update(len(window))
        settings = [_engine_settings(translator) for translator in translators]
        write_provenance(job.output, os.path.getsize(outputs.streams[0].name), job.conditions, done, settings)
    return done


def _engine_settings(translator: Translator) -> dict[str, object]:
    return {
        **translator.config.model_dump(mode="json"),
        "engine": translator.engine.name,
        "device": str(translator.device),
        "precision": precision_name(translator.precision),
        "threads": torch.get_num_threads(),
        "workers": translator.workers.size,
    }


MIN_LOOP_REPEATS = 4
"""A translation that says a phrase so often in a row, and more often than its line does, is a loop."""


def fault(line: str, translation: str, languages: tuple[str, str]) -> str | None:
    """Return the first fault that makes a pair unfit for training, as a phrase; None if there is none.

    Args:
        line: The line that was translated.
        translation: The translation of the line.
        languages: The language of the line and that of the translation.
    """
    if not line.strip():
        return "blank line"
    if UNDECODABLE.search(line):
        return "not UTF-8"
    if not translation.strip():
        return "empty translation"
    if "\ufffd" in translation and "\ufffd" not in line:
        return "broken characters"
    if normal_form(translation) == normal_form(line):
        return "copy of the line"
    times = _repeats(translation, languages[1])
    if times >= MIN_LOOP_REPEATS and times > _repeats(line, languages[0]):
        return "loop"
    return None


def _repeats(text: str, language: str) -> int:
    """Return how often in a row a text says the same words, or characters of languages without spaces."""
    return max_repeats(text.split() if writes_spaces(language) else text)
