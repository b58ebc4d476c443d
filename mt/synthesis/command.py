"""``python -m mt synthesize``: makes training pairs by having runs translate a text or their own corpus."""

import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from tqdm import tqdm

from mt.config import SynthesisConfig, as_folders, language_suffix
from mt.core.device import limit_kernel_caches, precision_name
from mt.core.errors import InputError
from mt.data.corpus import Corpus
from mt.data.sentence_key import sentence_key
from mt.storage.folders import open_folder, read_description
from mt.synthesis.faults import fault
from mt.synthesis.lines import OTHER, Lines, Side, held_out, held_out_texts, lines_of_corpus, lines_of_file, texts
from mt.synthesis.table import Conditions, Table, finished_passes, left_out, open_table
from mt.training.fine_tuning.replay import corpus_of
from mt.translation.results import ScoredText
from mt.translation.translator import Translator, windows

logger = logging.getLogger(__name__)

MAY_CHANGE = ("output", "device", "threads")
"""Settings that may differ when a stopped command resumes."""
SCORE_DIGITS = 4
"""Two scores this near are the same: the last bits of a sum depend on the batch."""


@dataclass(frozen=True)
class Pass:
    """Lines, and the models that translate them."""

    folders: tuple[Path, ...]
    """A run, or several that translate together."""
    side: Side
    """The side of the pairs that the lines are. Their translations are the other side."""
    lines: Lines


@dataclass(frozen=True)
class PairWriter:
    """Makes pairs of translated lines."""

    languages: dict[Side, str]
    held_out: dict[Side, frozenset[int]] | None
    """The keys of the held-out sentences on each side; None if they are not known."""

    def fault(self, side: Side, line: str, translation: str) -> str | None:
        """Return why a line gives no pair, or None if it gives one."""
        other = OTHER[side]
        if reason := fault(line, translation, (self.languages[side], self.languages[other])):
            return reason
        if self.held_out and (
            sentence_key(line) in self.held_out[side] or sentence_key(translation) in self.held_out[other]
        ):
            return "shared with valid or test"
        return None

    def row(self, side: Side, number: int, line: str, translation: ScoredText) -> bytes:
        """Return the table's row for a line, given its number from 1 on."""
        sides = {side: line, OTHER[side]: translation.text}
        row = {self.languages[each]: sides[each] for each in OTHER} | {
            "score": None if translation.score is None else round(translation.score, SCORE_DIGITS),
            "line": number,
        }
        return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def synthesise(config: SynthesisConfig) -> None:
    """Write a table of pairs in the order of their lines.

    Raises:
        InputError: A run, the text or the output cannot be used, or no line gives a pair.
        RunError: Another process is writing the same table.
    """
    limit_kernel_caches()
    if config.threads:
        torch.set_num_threads(config.threads)
    languages = _languages(config)
    output = Path(config.output)
    corpus = None if config.input is not None else corpus_of(Path(as_folders(config.run)[0]))
    passes = _passes(config, corpus)
    made_with = _made_with(config, passes)
    done = finished_passes(output, made_with)
    if done is None:
        with open_table(output, made_with, len(passes)) as table:
            _fill(table, config, passes, PairWriter(languages, held_out(corpus) if corpus else None))
        done = table.record.passes
    else:
        logger.info("%s is finished", output)
    lines, pairs = sum(each.lines for each in done), sum(each.pairs for each in done)
    reasons = "".join(f", {count:,} left out: {reason}" for reason, count in left_out(done).items())
    logger.info("%s: %s lines translated, %s pairs%s", output, f"{lines:,}", f"{pairs:,}", reasons)


def _languages(config: SynthesisConfig) -> dict[Side, str]:
    """Return the languages of the pairs.

    Raises:
        InputError: A run translates in another direction than the method needs.
    """
    source, target = direction = _direction(as_folders(config.run)[0])
    for setting, folders, expected, reason in (
        ("run", config.run, direction, f", and not {source}→{target} as the first"),
        ("reverse", config.reverse or (), (target, source), ": it must be the other way round as run"),
    ):
        for folder in as_folders(folders):
            if (other := _direction(folder)) != expected:
                raise InputError(f"{setting}={folder} translates {'→'.join(other)}{reason}")
    if config.input is None:
        return {"source": source, "target": target}
    if language_suffix(config.input) == target:
        raise InputError(
            f"input={config.input} is named as {target}, but {as_folders(config.run)[0]} translates from {source}: "
            "back-translation takes a run of the other direction than the one that will learn from the pairs"
        )
    return {"source": target, "target": source}


def _direction(folder: str) -> tuple[str, str]:
    description = read_description(Path(folder))
    return description.source_language, description.target_language


def _passes(config: SynthesisConfig, corpus: Corpus | None) -> list[Pass]:
    folders = tuple(map(Path, as_folders(config.run)))
    if corpus is None:
        assert config.input is not None
        return [Pass(folders, "target", lines_of_file(Path(config.input)))]
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

    The split depends on hashes of source and target, in this order: the other direction holds out other pairs, unless
    they are named.
    """
    try:
        train = corpus_of(run).train
    except InputError as error:
        logger.warning("it is not known whether %s has learnt from held-out sentences: %s", run, error)
        return
    leaked = 0
    for side in OTHER:
        held_out_here = set(held_out_texts(corpus, OTHER[side]))
        leaked = max(leaked, sum(text in held_out_here for text in texts(train, side)))
    if leaked:
        logger.warning(
            "%s has learnt from %s pairs with sentences that are held out here, so scores on these may be too high: "
            "name validation and test data for both directions (data.valid, data.test)",
            run,
            f"{leaked:,}",
        )


def _made_with(config: SynthesisConfig, passes: Sequence[Pass]) -> Conditions:
    settings = config.model_dump(mode="json")
    decoding = settings.pop("decoding")
    conditions: Conditions = {
        key: value if isinstance(value, str) or value is None else ",".join(value)
        for key, value in settings.items()
        if key not in MAY_CHANGE
    }
    conditions |= {f"decoding.{key}": value for key, value in decoding.items()}
    conditions |= {f"model of {folder}": open_folder(folder).checksum() for each in passes for folder in each.folders}
    conditions |= {f"lines of the {each.side} side": each.lines.sha256 for each in passes}
    return conditions


def _fill(table: Table, config: SynthesisConfig, passes: Sequence[Pass], writer: PairWriter) -> None:
    """Translate the remaining lines of all passes, a window at a time."""
    translators = [Translator.load(each.folders, config.decoding, config.device, config.precision) for each in passes]
    table.record.resolved_settings = [_engine_settings(translator) for translator in translators]
    progress_of_passes = table.record.passes
    total, done = sum(each.lines.count for each in passes), sum(progress.lines for progress in progress_of_passes)
    if done:
        logger.info("going on behind %s of %s lines", f"{done:,}", f"{total:,}")
    with tqdm(total=total, initial=done, unit=" lines", disable=None, leave=False) as bar:
        for each, progress, translator in zip(passes, progress_of_passes, translators, strict=True):
            for window in windows(islice(each.lines.read(), progress.lines, None)):
                numbers = range(progress.lines, progress.lines + len(window))
                rows: list[bytes] = []
                translations = translator.hypotheses(window, numbers, n_best=1)
                for number, line, (best,) in zip(numbers, window, translations, strict=True):
                    if reason := writer.fault(each.side, line, best.text):
                        progress.leave_out(reason, number + 1, line, best.text)
                    else:
                        rows.append(writer.row(each.side, number + 1, line, best))
                progress.lines += len(window)
                progress.pairs += len(rows)
                table.write(rows)
                bar.update(len(window))
    table.finish()


def _engine_settings(translator: Translator) -> dict[str, object]:
    return {
        **translator.config.model_dump(mode="json"),
        "engine": translator.engine.name,
        "device": str(translator.device),
        "precision": precision_name(translator.precision),
        "threads": torch.get_num_threads(),
    }
