"""Runs the program of ``metric.command`` on the translations of each output, and reads the segment scores it prints."""

import contextlib
import logging
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tqdm import tqdm

from mt.config import CompareConfig
from mt.core.errors import InputError, RunError
from mt.core.wording import brief
from mt.evaluation.comparison.segment_scores import MAX_SCORE, SegmentScores, parse_score
from mt.evaluation.systems import EvaluationSet, System

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.2
GRACE_SECONDS = 0.5
"""Time for a program to end by itself after SIGTERM. It is shorter than the time in which a second Ctrl-C has no
effect."""
MAX_OUTPUT_BYTES = 2**28
SHOWN_LINES = 3
"""Number of last lines of a program's standard error in a message."""
SEGMENT_LINE = re.compile(r"(?:.*\t)?Segment (\d+)\tscore: (\S+)")
"""Matches a line of COMET's output, with its segment number, from 0, and score."""
SYSTEM_LINE = re.compile(r"(?!(?:.*\t)?Segment \d)(?:.*\t)?(?:System )?score: \S+")
"""Matches the last line of COMET's output, which has the mean."""


def refuse_unusable_command(config: CompareConfig, evaluation: EvaluationSet) -> None:
    """Raise InputError if a program of the setting ``metric`` cannot be found, or if it needs unknown sources."""
    for key, words in (("command", config.metric.command), ("version", config.metric.version)):
        if words and not shutil.which(words[0]):
            raise InputError(
                f"metric.{key}: {words[0]}: no such program; install it, or give its path, as comet/bin/comet-score"
            )
    if evaluation.sources is None and any("{source}" in word for word in config.metric.command or ()):
        raise InputError("metric.command has {source}, and the sources are not known: add source=FILE")


def run_metric(config: CompareConfig, evaluation: EvaluationSet, systems: Sequence[System]) -> list[SegmentScores]:
    """Return the scores of the setting ``metric.command`` for all outputs; an empty list without it.

    The program reads temporary files, in which white space takes the place of characters that may end a line.

    Raises:
        InputError: The program cannot be started, or prints something else than a score for each test sentence.
        RunError: The program fails, or takes longer than ``metric.minutes``.
    """
    metric = config.metric
    if metric.command is None:
        return []
    outputs = [output for system in systems for output in system.outputs]
    scores, command = {}, " ".join(metric.command)
    with (
        TemporaryDirectory(prefix="mt-metric-") as name,
        tqdm(total=len(outputs), desc=metric.label, unit=" outputs", disable=None, leave=False) as bar,
    ):
        folder = Path(name)
        version = "not asked (metric.version)"
        if metric.version is not None:
            printed = _run(metric.version, folder, metric.minutes, "metric.version", bar.refresh)
            version = brief(" ".join("\n".join(printed).split()))
        for output in outputs:
            logger.info("scoring %s: %s", output.origin, command)
            texts = {"source": evaluation.sources, "reference": evaluation.references, "hypothesis": output.hypotheses}
            for text, lines in texts.items():
                content = "".join(f"{' '.join(line.splitlines())}\n" for line in lines or ())
                (folder / text).write_text(content, encoding="utf-8")
            words = [re.sub(r"\{(source|reference|hypothesis)\}", rf"{folder}/\1", word) for word in metric.command]
            context = f"metric.command on {output.origin}"
            printed = _run(words, folder, metric.minutes, context, bar.refresh)
            scores[output.origin] = _read_output(context, *printed, len(evaluation.references))
            bar.update()
    signature = f"mean of the segment scores of {command}; version: {version}"
    signature += "; of the first reference" if evaluation.other_references else ""
    return [SegmentScores.of(metric.label, signature, config, scores)]


def _run(
    words: Sequence[str], folder: Path, minutes: float, context: str, show: Callable[[], object]
) -> tuple[str, str]:
    """Run a program, and return its standard output and standard error. All processes of its group have then ended.

    Args:
        folder: The folder for temporary files.
        minutes: The time limit.
        context: The start of messages.
        show: Shows that the program still runs.
    """
    paths = folder / "stdout", folder / "stderr"
    end = time.monotonic() + 60 * minutes
    with paths[0].open("wb") as stdout, paths[1].open("wb") as stderr:
        try:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, process_group=0)
        except OSError as error:
            raise InputError(f"{context}: {words[0]} cannot be started: {error.strerror}; check the path") from None
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(POLL_SECONDS)
                show()
                if time.monotonic() > end:
                    raise RunError(f"{context}: not done after {minutes:g} minutes; set metric.minutes to more")
                if sum(path.stat().st_size for path in paths) > MAX_OUTPUT_BYTES:
                    raise InputError(
                        f"{context}: prints more than {MAX_OUTPUT_BYTES:,} bytes; it is to print scores only"
                    )
        finally:
            _end(process)
    output, errors = (path.read_text(encoding="utf-8", errors="replace") for path in paths)
    if process.returncode:
        raise RunError(f"{context}: ended with exit status {process.returncode}{_last_lines(errors)}")
    return output, errors


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all others of its group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the group has ended
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(GRACE_SECONDS)


def _read_output(context: str, output: str, errors: str, count: int) -> list[float]:
    """Return the scores that a program has printed: a number on each line, or lines as COMET prints them.

    Raises:
        InputError: Another line was printed, or the number of scores is not ``count``.
    """
    lines = output.removesuffix("\n").split("\n")
    of_comet = bool(SEGMENT_LINE.fullmatch(lines[0]))
    if of_comet and SYSTEM_LINE.fullmatch(lines[-1]):
        del lines[-1]
    scores = []
    for number, line in enumerate(lines if output else ()):
        match = SEGMENT_LINE.fullmatch(line)
        score = parse_score(match[2] if match else line.strip())
        if score is None or bool(match) != of_comet or (match and int(match[1]) != number):
            raise InputError(
                f"{context}: line {number + 1} of its output is “{brief(line)}”; it is to print one number of at most "
                f"{MAX_SCORE:,.0f} for each sentence and nothing else, or lines as “Segment {number}\\tscore: 0.85”"
            )
        scores.append(score)
    if len(scores) != count:
        raise InputError(f"{context}: printed {len(scores):,} scores for {count:,} sentences{_last_lines(errors)}")
    if errors.strip():
        logger.info("%s%s", context, _last_lines(errors))
    return scores


def _last_lines(errors: str) -> str:
    """Return the end of a message with the last lines that a program wrote to standard error; "" if there are none."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return f"; it wrote to standard error: “{brief(' / '.join(lines[-SHOWN_LINES:]))}”" if lines else ""
