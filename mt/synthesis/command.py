"""``python -m mt synthesize``: make training pairs by translating a text, or the training sources of a run."""

import json
import logging
import os
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from tqdm import tqdm

from mt.config import SynthesisConfig, as_folders, language_suffix
from mt.core.device import precision_name
from mt.core.errors import InputError, corrupted_file, format_value
from mt.core.files import UNDECODABLE
from mt.core.language import UNKNOWN_LANGUAGE, AskedDirection, Direction, choose_direction, writes_spaces
from mt.core.output import record_path, recorded_job, resumable_outputs
from mt.data.pairs import normal_form, sentence_key
from mt.distributed.launch import run_workers
from mt.distributed.workers import Workers
from mt.storage.folders import open_folder, read_description
from mt.storage.validation import read_json, write_json
from mt.synthesis.source_lines import (
    OPPOSITE,
    LineSource,
    Side,
    held_out_keys,
    load_run_corpus,
    read_corpus_lines,
    read_file_lines,
)
from mt.training.provenance import code_revision
from mt.translation.hypotheses import max_repeats
from mt.translation.lines import windows
from mt.translation.results import ScoredText
from mt.translation.translator import Translator, run_with_workers

logger = logging.getLogger(__name__)

Conditions = dict[str, str | int | float | bool | None]
"""Maps names to everything that determines the content of a table: settings, checksums of the models and the lines."""

MAY_CHANGE = ("output", "device", "threads", "workers")
"""Settings that may change when a stopped command resumes."""
SCORE_DIGITS = 4
"""The number of decimals of scores in the table. The last bits of a score depend on the batch."""
MIN_LOOP_REPEATS = 4
"""A translation is a loop if it repeats a phrase at least this many times in a row, and more often than its line."""


@dataclass
class TableProgress:
    """The progress of a table."""

    lines: int = 0
    """The number of translated lines."""
    pairs: int = 0
    """The number of pairs in the table."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Maps each reason to the number of lines that are skipped for it."""


def provenance_path(output: Path) -> Path:
    """Return the path of the provenance of a table, NAME.provenance.json."""
    return output.with_suffix(".provenance.json")


def finished_progress(output: Path, made_with: Conditions) -> TableProgress | None:
    """Return the progress of a finished table, or None if it is unfinished or does not exist.

    Args:
        output: The path of the finished table.
        made_with: The required conditions of a finished or unfinished table.

    Raises:
        InputError: A table of this name has other conditions, lacks its provenance, or does not match it.
    """
    path = provenance_path(output)
    remedy = f"choose another name, or delete {output} and {path}"
    provenance = read_json(path, "made_with", "passes", "size", remedy=remedy) if output.exists() else {}
    before = provenance.get("made_with", recorded_job(output))
    before = before if isinstance(before, dict) else made_with
    if lines := [
        f"  {key}: {format_value(before.get(key))} then, now {format_value(made_with.get(key))}"
        for key in before | made_with
        if before.get(key) != made_with.get(key)  # a setting that is not recorded is null
    ]:
        message = f"output={output} was made or started with other settings or files:"
        raise InputError("\n".join([message, *lines, remedy]))
    if not provenance:
        return None
    record_path(output).unlink(missing_ok=True)  # exists if the process was killed at the very end
    if output.stat().st_size != provenance["size"]:
        raise corrupted_file(path, f"it does not describe {output}", remedy)
    (done,) = provenance["passes"]
    return TableProgress(done["lines"], done["pairs"], done["left_out"])


@dataclass(frozen=True)
class SynthesisJob:
    """A table to write."""

    output: Path
    lines: LineSource
    conditions: Conditions
    side: Side
    """The side of the pairs that consists of the lines. The other side consists of their translations."""
    languages: dict[Side, str]
    held_out: dict[Side, frozenset[int]]
    """The keys (``sentence_key``) of the validation and test sentences on each side."""
    done: TableProgress | None
    """The progress of a finished table; None if the table is not finished."""

    def to_row(self, number: int, line: str, translation: ScoredText) -> bytes | str:
        """Return the row of a pair, or the reason for skipping the pair.

        Args:
            number: The number of the line, from 1.
            line: The line.
            translation: The translation with its score.

        Returns:
            A JSON object with both texts by language, the score and the line number; or the reason as a phrase.
        """
        side = self.side
        sides: dict[Side, str] = {side: line, OPPOSITE[side]: translation.text}
        if reason := find_fault(line, translation.text, (self.languages[side], self.languages[OPPOSITE[side]])):
            return reason
        if any(sentence_key(text) in self.held_out[name] for name, text in sides.items()):
            return "shared with valid or test"
        row = {self.languages[name]: sides[name] for name in OPPOSITE} | {
            "score": None if translation.score is None else round(translation.score, SCORE_DIGITS),
            "line": number,
        }
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def synthesize(config: SynthesisConfig) -> None:
    """Translate lines, and write the table of pairs in their order. An interrupted table is resumed.

    Raises:
        InputError: A run, the text or the output cannot be used, or no line gives a pair.
        RunError: Another process is writing the same table.
    """
    run_workers(partial(_synthesize, config), config)


def _synthesize(config: SynthesisConfig, workers: Workers) -> None:
    """Do the work of one worker. Only the main process reads the lines and writes the table."""
    jobs: list[SynthesisJob] = []  # remains empty except on the main process

    def is_unfinished() -> bool:
        jobs.append(_prepare_job(config))
        return jobs[0].done is None

    if not workers.run_on_main(is_unfinished):
        if workers.is_main and (done := jobs[0].done):
            logger.info("%s is finished", jobs[0].output)
            _log_counts(jobs[0], done)
        return
    translator = Translator.load(
        as_folders(config.run),
        config.decoding,
        str(workers.device),
        config.precision,
        workers=workers,
        asked=config.asked,
    )
    run_with_workers(workers, translator, lambda: _log_counts(jobs[0], _translate(jobs[0], translator)))


def _prepare_job(config: SynthesisConfig) -> SynthesisJob:
    """Read the lines to translate, and check the settings, the runs and an existing table.

    Raises:
        InputError: One of these cannot be used.
    """
    languages = _pair_languages(config)
    output = Path(config.output)
    side: Side = "target" if config.method == "back_translation" else "source"
    keys: dict[Side, frozenset[int]] = dict.fromkeys(OPPOSITE, frozenset())
    if config.input is None:
        parts = load_run_corpus(Path(as_folders(config.run)[0])).split_by_direction()
        direction = Direction(languages["source"], languages["target"])
        corpus = parts.get(direction, next(iter(parts.values())))  # model.yaml may have another code of the language
        lines, keys = read_corpus_lines(corpus), held_out_keys(corpus)
    else:
        lines = read_file_lines(Path(config.input))
    settings = config.model_dump(mode="json")
    decoding = settings.pop("decoding")
    conditions: Conditions = {
        key: value if isinstance(value, str) or value is None else ",".join(value)
        for key, value in settings.items()
        if key not in MAY_CHANGE
    }
    conditions |= {f"decoding.{key}": value for key, value in decoding.items()}
    conditions |= {f"model of {folder}": open_folder(folder).checksum() for folder in as_folders(config.run)}
    conditions |= {f"lines of the {side} side": lines.sha256}
    return SynthesisJob(output, lines, conditions, side, languages, keys, finished_progress(output, conditions))


def _log_counts(job: SynthesisJob, done: TableProgress) -> None:
    reasons = "".join(f", {count:,} skipped: {reason}" for reason, count in done.left_out.items())
    logger.info("%s: %s lines translated, %s pairs%s", job.output, f"{done.lines:,}", f"{done.pairs:,}", reasons)


def _pair_languages(config: SynthesisConfig) -> dict[Side, str]:
    """Return the language of each side of the pairs.

    With back-translation, the lines are the targets, so the direction of the pairs is opposite to that of the run.

    Raises:
        InputError: The runs have several directions, or an unknown one.
    """
    source, target = direction = _run_direction(as_folders(config.run)[0], config.asked)
    if UNKNOWN_LANGUAGE in direction:
        raise InputError(f"run={format_value(config.run)}: set source_language and target_language")
    for folder in as_folders(config.run):
        if (other := _run_direction(folder, config.asked)) != direction:
            hint = f"the first run translates {source}→{target}; give runs of one direction"
            raise InputError(f"run={folder} translates {'→'.join(other)}, but {hint}")
    if config.input is not None and language_suffix(config.input) == target:
        raise InputError(
            f"input={config.input} has the suffix .{target}, but {as_folders(config.run)[0]} translates from {source}: "
            f"set run to a model that translates from {target}"
        )
    if config.method == "back_translation":
        source, target = target, source
    return {"source": source, "target": target}


def _run_direction(folder: str, asked: AskedDirection) -> tuple[str, str]:
    """Return the direction of a run. If the languages of the model are unknown, return those of the settings."""
    source, target = choose_direction(read_description(Path(folder)).layers, asked, folder)
    return (asked.source or source, asked.target or target) if source == UNKNOWN_LANGUAGE else (source, target)


def _translate(job: SynthesisJob, translator: Translator) -> TableProgress:
    """Translate the remaining lines, one window at a time, and write the table and its provenance. Return the progress.

    Raises:
        InputError: The table has no pairs.
    """
    with resumable_outputs([str(job.output)], lambda: job.conditions) as outputs:
        (recorded,) = outputs.values[-1] if outputs.values else [{}]
        done = TableProgress(**recorded)
        with tqdm(total=job.lines.count, initial=outputs.lines, unit=" lines", disable=None, leave=False) as bar:
            for window in windows(islice(job.lines.read(), done.lines, None)):
                numbers = range(done.lines, done.lines + len(window))
                rows: list[bytes] = []
                translations = translator.hypotheses(window, numbers)
                for number, line, (best,) in zip(numbers, window, translations, strict=True):
                    if isinstance(row := job.to_row(number + 1, line, best), bytes):
                        rows.append(row)
                    else:
                        done.left_out[row] = done.left_out.get(row, 0) + 1
                done.lines += len(window)
                done.pairs += len(rows)
                outputs.append(len(window), [b"".join(rows)], [asdict(done)])
                bar.update(len(window))
        size = os.path.getsize(outputs.streams[0].name)
        if not size:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in done.left_out.items())
            raise InputError(
                f"none of {done.lines:,} lines gave a pair; check that the input is in the source language of the run "
                f"and that its training is finished: {reasons}"
            )
        settings = {
            **translator.config.model_dump(mode="json"),
            "engine": translator.engine.name,
            "device": str(translator.device),
            "precision": precision_name(translator.precision),
            "threads": torch.get_num_threads(),
            "workers": translator.workers.size,
        }
        provenance = {
            "made_with": job.conditions,
            "code_revision": code_revision(),
            "passes": [asdict(done)],
            "resolved_settings": [settings],
            "size": size,
        }
        write_json(provenance_path(job.output), provenance)
    return done


def find_fault(line: str, translation: str, languages: tuple[str, str]) -> str | None:
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
    times = _count_repeats(translation, languages[1])
    if times >= MIN_LOOP_REPEATS and times > _count_repeats(line, languages[0]):
        return "loop"
    return None


def _count_repeats(text: str, language: str) -> int:
    """Return the maximum number of consecutive repetitions of words, or of characters in languages without spaces."""
    return max_repeats(text.split() if writes_spaces(language) else text)
