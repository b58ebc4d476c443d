"""``python -m mt synthesize``: makes training pairs by having runs translate a text or their own corpus."""

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tqdm import tqdm

from mt.config import ModelDescription, SynthesisConfig, as_folders, language_suffix
from mt.core.columns import tables
from mt.core.device import limit_kernel_caches, name_of
from mt.core.errors import InputError
from mt.data.corpus import Corpus
from mt.data.sentence_key import sentence_key
from mt.storage.folders import read_description
from mt.storage.run_folder import MODEL, SOURCE_WORDS, WEIGHTS
from mt.storage.weights import TOKENIZER_FILES
from mt.synthesis.faults import fault
from mt.synthesis.lines import Lines, Side, held_out, lines_of_corpus, lines_of_file
from mt.synthesis.table import Done, Table, finished_passes, left_out, open_table
from mt.training.replay import corpus_of
from mt.translation.results import ScoredText
from mt.translation.translator import Translator, windows

logger = logging.getLogger(__name__)

MAY_CHANGE = ("output", "device", "threads")
"""Settings that may be others when a stopped command goes on."""
SCORE_DIGITS = 4
"""Two scores this near are the same: the last bits of a sum depend on the batch."""
OTHER: dict[Side, Side] = {"source": "target", "target": "source"}


@dataclass(frozen=True)
class Pass:
    """Lines, and who translates them."""

    folders: tuple[Path, ...]
    """A run, or several that translate together."""
    side: Side
    """The side of the pairs that the lines are. Their translations are the other side."""
    lines: Lines


def synthesise(config: SynthesisConfig) -> None:
    """Write a table with a pair for each line that gives one, in order.

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
            _fill(table, config, passes, languages, held_out(corpus) if corpus else None)
        done = table.passes
    else:
        logger.info("%s is finished", output)
    lines, pairs = sum(one.lines for one in done), sum(one.pairs for one in done)
    reasons = "".join(f", {count:,} left out: {reason}" for reason, count in left_out(done).items())
    logger.info("%s: %s lines translated, %s pairs%s", output, f"{lines:,}", f"{pairs:,}", reasons)


def _languages(config: SynthesisConfig) -> dict[Side, str]:
    """Return the languages of the pairs.

    Raises:
        InputError: A run translates in another direction than the method needs.
    """
    descriptions = {folder: read_description(Path(folder)) for folder in as_folders(config.run)}
    first = next(iter(descriptions.values()))
    source, target = first.source_language, first.target_language
    for folder, one in descriptions.items():
        if (one.source_language, one.target_language) != (source, target):
            raise InputError(f"run={folder} translates {_direction(one)}, and not {_direction(first)} as the first")
    for folder in as_folders(config.reverse or ()):
        one = read_description(Path(folder))
        if (one.source_language, one.target_language) != (target, source):
            raise InputError(f"reverse={folder} translates {_direction(one)}: it must be the other way round as run")
    if config.input is None:
        return {"source": source, "target": target}
    if language_suffix(config.input) == target:
        raise InputError(
            f"input={config.input} is named as {target}, but {as_folders(config.run)[0]} translates from {source}: "
            "back-translation takes a run of the other direction than the one that will learn from the pairs"
        )
    return {"source": target, "target": source}


def _direction(description: ModelDescription) -> str:
    return f"{description.source_language}→{description.target_language}"


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
        _warn_of_learnt_sentences(folder, corpus)
    return [
        *(Pass((folder,), "source", sources) for folder in folders),
        *(Pass((folder,), "target", targets) for folder in backward),
    ]


def _warn_of_learnt_sentences(run: Path, corpus: Corpus) -> None:
    """Warn if a run of the other direction was trained on what ``corpus`` holds out. Which pairs are held out depends
    on hashes of source and target, in this order: the other direction holds out others, unless they are named."""
    try:
        theirs = corpus_of(run).train
    except InputError as error:
        logger.warning("it is not known whether %s has learnt from held-out sentences: %s", run, error)
        return
    learnt = 0
    for side in OTHER:
        ours = {text for pairs in (corpus.valid, corpus.test) for text in pairs[OTHER[side]]}
        texts = (text for table in tables(theirs, [side]) for text in table[side].to_pylist())
        learnt = max(learnt, sum(text in ours for text in texts))
    if learnt:
        logger.warning(
            "%s has learnt from %s pairs with sentences that are held out here, so scores on these may be too high: "
            "name validation and test data for both directions (data.valid, data.test)",
            run,
            f"{learnt:,}",
        )


def _made_with(config: SynthesisConfig, passes: Sequence[Pass]) -> dict[str, str | int | float | bool | None]:
    """Return all that decides what is in the table, and the code that makes it."""
    settings = config.model_dump(mode="json")
    decoding = settings.pop("decoding")
    made: dict[str, str | int | float | bool | None] = {
        key: value if isinstance(value, str) or value is None else ",".join(value)
        for key, value in settings.items()
        if key not in MAY_CHANGE
    }
    made |= {f"decoding.{key}": value for key, value in decoding.items()}
    made |= {f"model of {folder}": _model_sha256(folder) for one in passes for folder in one.folders}
    made |= {f"lines of the {one.side} side": one.lines.sha256 for one in passes}
    return made


def _model_sha256(folder: Path) -> str:
    """Return the checksum of the files of a model."""
    found = hashlib.sha256()
    for name in sorted((MODEL, WEIGHTS, SOURCE_WORDS, *TOKENIZER_FILES)):
        if (folder / name).is_file():
            with (folder / name).open("rb") as stream:
                found.update(f"{name} {hashlib.file_digest(stream, 'sha256').hexdigest()}\n".encode())
    return found.hexdigest()


def _fill(
    table: Table,
    config: SynthesisConfig,
    passes: Sequence[Pass],
    languages: dict[Side, str],
    keys: dict[Side, frozenset[int]] | None,
) -> None:
    """Translates all lines that are not done."""
    translators = [Translator.load(one.folders, config.decoding, config.device, config.precision) for one in passes]
    table.took_effect = [_effect(translator) for translator in translators]
    total, already = sum(one.lines.count for one in passes), sum(done.lines for done in table.passes)
    if already:
        logger.info("going on behind %s of %s lines", f"{already:,}", f"{total:,}")
    with tqdm(total=total, initial=already, unit=" lines", disable=None, leave=False) as bar:
        for one, done, translator in zip(passes, table.passes, translators, strict=True):
            for window in windows(one.lines.since(done.lines)):
                numbers = range(done.lines, done.lines + len(window))
                found = [best[0] for best in translator.hypotheses(window, numbers)]
                rows = list(_rows(window, found, one.side, languages, keys, done))
                done.lines += len(window)
                done.pairs += len(rows)
                table.write(rows)
                bar.update(len(window))
    table.finish()


def _effect(translator: Translator) -> dict[str, object]:
    """Return what the settings of one pass have come to."""
    return {
        **translator.config.model_dump(mode="json"),
        "engine": translator.engine.name,
        "device": str(translator.device),
        "precision": name_of(translator.precision),
        "threads": torch.get_num_threads(),
    }


def _rows(
    window: Sequence[str],
    translations: Sequence[ScoredText],
    side: Side,
    languages: dict[Side, str],
    keys: dict[Side, frozenset[int]] | None,
    done: Done,
) -> Iterator[bytes]:
    """Yield a row of the table for each line of a window that gives a pair, and notes the others in ``done``.

    Args:
        window: The lines.
        translations: Their translations.
        side: The side of the pairs that the lines are.
        languages: The language of each side.
        keys: The keys of the sentences that are held out, on each side; None if they are not known.
        done: What is done of the pass so far, without this window.
    """
    for number, (line, made) in enumerate(zip(window, translations, strict=True), start=done.lines + 1):
        reason = fault(line, made.text, (languages[side], languages[OTHER[side]]))
        texts = {side: line, OTHER[side]: made.text}
        if reason is None and keys and any(sentence_key(text) in keys[of_side] for of_side, text in texts.items()):
            reason = "shared with valid or test"
        if reason is not None:
            done.leave_out(reason, number, line, made.text)
            continue
        score = None if made.score is None else round(made.score, SCORE_DIGITS)
        row = {
            languages["source"]: texts["source"],
            languages["target"]: texts["target"],
            "score": score,
            "line": number,
        }
        yield json.dumps(row, ensure_ascii=False).encode() + b"\n"
