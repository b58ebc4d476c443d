"""Every key of every command with values at, within and beyond its bounds, and words that nobody should type: each is
either refused with one message, or the command gets to work with it."""

import contextlib
import functools
import io
import logging
import math
import os
import random
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin
from unicodedata import category
from unittest import mock

import hydra
import torch
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig
from pydantic.fields import FieldInfo

from mt.cli.command_line import run_command
from mt.cli.commands import COMMANDS
from mt.cli.composition import compose_job
from mt.cli.config_files import quote
from mt.config import (
    CleaningConfig,
    CompareConfig,
    ExportConfig,
    RobustnessConfig,
    Section,
    SynthesisConfig,
    TrainConfig,
    TranslateConfig,
)
from mt.core.device import choose_device
from mt.core.errors import VisibleFormatter
from mt.core.process import exit_status
from mt.data.cleaning.command import clean
from mt.distributed.launch import worker_count
from mt.evaluation.comparison.verdict import refuse_too_few_trials
from mt.evaluation.robustness.command import open_runs
from mt.evaluation.systems import open_systems
from mt.export.command import export
from mt.storage.run_folder import read_config, write_config
from mt.synthesis.command import synthesize
from mt.training.command import train, workers_on_cpu
from mt.translation.command import translate
from tests import toy
from tests.faults.outcome import Outcome
from tests.in_process import replaced_work

ANYWHERE = [
    "null", "true", "[]", "[1,2]", "{a:1}", "{}", "abc", "1.5", "-1", "0", "1", "nan", "inf", "-inf", str(10**20),
    str(10**400), "9" * 5000, "-" + "9" * 5000, "1e308", "1e-308", "1e999", "${seed}", "${nowhere}",
    "[" * 100 + "]" * 100,
]  # fmt: skip
"""Values as typed, tried for every key whatever its type."""
TEXTS = [
    "", " ", "\0", "a\0b", "a\x1b[31mb", "a\nb", "\x7f", "a\u202eb", "\u2066", "\udcff", "\U0010ffff", "x" * 5000,
    "ü" * 200, "x" * 300, ".", "..", "../../..", "a/../..", "/", "//", "~", "/dev/null", "a/" * 300, "-", "'", "%s",
]  # fmt: skip
"""Texts, tried to the letter for every key that is a text."""
GRAMMAR = [
    "", "null", "-.inf", "[", "]", "[a", "{", "{a:b}", "'", '"', "a'b", "\\", "${", "${}", "${oc.env:HOME}", "${name}",
    "a,b", "range(1,3)", "choice(1,2)", "glob(*)", "\u2028", "\u202e", "😀", "\t", "!!python/none", "a=b",
]  # fmt: skip
"""Values with a meaning in the grammar of command lines, or nearly so."""
GROUPS = ["data", "model", "training", "decoding", "experiment", "tokenizer"]
MEMORY = 2**28
"""Bytes of this machine, as far as the commands know: larger models are refused, and do not fill the real memory."""
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Change the direction of what follows."""
MAX_MESSAGE_CHARACTERS = 5000


@dataclass(frozen=True)
class Case:
    """A command line: what is right by itself, and the settings that are tried."""

    base: tuple[str, ...]
    tried: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join(ascii(word if len(word) < 100 else f"{word[:50]}… ({len(word)})") for word in self.tried)


class Place:
    """A working folder that is empty before each command, and beside it what the commands work on."""

    def __init__(self, folder: Path, run: Path) -> None:
        self.data, self.top = folder / "data", folder / "working"
        self.data.mkdir()
        toy.write_corpus(self.data, "copy", train=60)
        source, target = ((self.data / f"train.{side}").read_text().splitlines() for side in ("xx", "yy"))
        pairs = map("\t".join, zip(source, target, strict=True))
        (self.data / "pairs.tsv").write_text("\n".join(pairs) + "\n")
        toy.write_lines(self.data / "input.txt", source[:20])
        self.runs = [self.data / f"seed{seed}" for seed in (1, 2)]
        for seed, copy in enumerate(self.runs, 1):
            shutil.copytree(run, copy)
            write_config(copy, read_config(copy).model_copy(update={"seed": seed}))
            toy.record_checksums(copy)
        # So deep that ../../.. is still inside.
        self.working = self.top / "a/b/c"
        self.working.mkdir(parents=True)

    def clear(self) -> list[str]:
        """Empties the working folder, and says what was in it."""
        kept = (self.working, *self.working.parents)
        found = [str(path.relative_to(self.top)) for path in self.top.rglob("*") if path not in kept]
        shutil.rmtree(self.top)
        self.working.mkdir(parents=True)
        os.chdir(self.working)
        return found

    def holds(self, path: str) -> bool:
        return Path(os.path.abspath(path)).is_relative_to(self.top)


def train_words(place: Place) -> dict[str, list[str]]:
    held_out = ["data.valid_pairs=10", "data.test_pairs=10"]
    model = ["name=toy", "tokenizer.vocabulary_size=310", "model.width=32", "model.encoder_layers=1",
             "model.decoder_layers=1"]  # fmt: skip
    files = f"[{place.data}/train.xx,{place.data}/train.yy]"
    own = [*LANGUAGES, *held_out, "data.cleaning=false", *model]
    return {
        "": ["data=files", f"data.train={files}", *own, "model.feed_forward=32"],
        "model.": ["data=files", f"data.train={files}", *own, "model=rnn_attention", "model.hidden=32"],
        "data.": ["data=table", f"data.train={place.data}/pairs.tsv", *own, "data.source_column=0",
                  "data.target_column=1"],
        "data. ": ["data=mixture", f"data.corpora=[{{kind:files,train:{files}}}]", *own],
        "data.  ": ["data=hub", "data.path=nobody/nothing", *own],
        "data.   ": ["data=tatoeba_en_fr", *model],
    }  # fmt: skip


def train_briefly(config: TrainConfig, place: Place) -> None:
    """Train up to the first update, from a folder that is given up then."""
    if config.data.kind in ("hub", "recipe") or not place.holds(str(config.folder)):
        return  # it would ask the network, or write where it must not
    if worker_count(config.training, choose_device(config.training.device), workers_on_cpu(config.training)) > 1:
        return  # seconds until they are there
    short = {
        "max_updates": 1,
        "accumulate": min(2, config.training.accumulate),
        "compile": False,
        "threads": min(2, config.training.threads),
    }
    with (
        mock.patch("mt.training.trainer.Trainer._validate"),
        mock.patch("mt.training.trainer.Trainer.finalize"),
        mock.patch.multiple(
            "mt.training.command", Results=dict, read_results=lambda run: {}
        ),  # as no final model is written
        mock.patch("mt.training.command.model_size_hint", lambda *_: None),
        mock.patch("mt.training.command.memory_bytes", lambda device: MEMORY),
    ):
        train(config.model_copy(update={"training": config.training.model_copy(update=short)}))


def open_compared(config: CompareConfig, place: Place) -> None:
    """Open the runs: a report takes seconds."""
    refuse_too_few_trials(config)
    choose_device(config.device)
    open_systems(config)


def open_measured(config: RobustnessConfig, place: Place) -> None:
    choose_device(config.device)
    open_runs(config)


def translate_briefly(config: TranslateConfig, place: Place) -> None:
    if config.output is None or place.holds(config.output):
        translate(_short(config))


def clean_table(config: CleaningConfig, place: Place) -> None:
    if config.data.kind == "table" and place.holds(config.output):
        clean(config)


def export_here(config: ExportConfig, place: Place) -> None:
    if place.holds(config.output):
        export(config)


def synthesize_briefly(config: SynthesisConfig, place: Place) -> None:
    if place.holds(config.output):
        synthesize(_short(config))


LANGUAGES = ["data.source_language=xx", "data.target_language=yy"]
EXPORTS = {"ctranslate2": "exported", "hugging_face": "exported", "argos": "exported.argosmodel"}
WORDS: dict[str, Callable[[Place], dict[str, list[str]]]] = {
    "train": train_words,
    "translate": lambda at: {"": [f"run={at.runs[0]}", f"input={at.data}/input.txt", "output=out.txt"]},
    "compare": lambda at: {"": [f"first={at.runs[0]}", f"second={at.runs[1]}", "output=report"]},
    "robustness": lambda at: {"": [f"run={at.runs[0]}", f"second={at.runs[1]}", "output=report"]},
    "clean": lambda at: {"": [
        "data=table", f"data.train={at.data}/pairs.tsv", *LANGUAGES, "data.valid_pairs=10", "data.test_pairs=10",
        "data.source_column=0", "data.target_column=1", "data.cleaning=[duplicate,length]", "output=report",
    ]},
    "export": lambda at: {
        " " * number: [f"format={format}", f"run={at.runs[0]}", f"output={path}"]
        for number, (format, path) in enumerate(EXPORTS.items())
    },
    "synthesize": lambda at: {"": [
        "method=back_translation", f"run={at.runs[0]}", f"input={at.data}/input.txt", "output=pairs.jsonl",
    ]},
}  # fmt: skip
"""Right command lines of each command, each with the beginning of the keys that it is there for."""
WORK: dict[str, Callable[[Any, Place], None]] = {
    "train": train_briefly,
    "translate": translate_briefly,
    "compare": open_compared,
    "robustness": open_measured,
    "clean": clean_table,
    "export": export_here,
    "synthesize": synthesize_briefly,
}
"""What each command does, as far as that is short."""


def _short(config: TranslateConfig | SynthesisConfig) -> Any:
    """Shorten translations of a model that has learned too little to end them."""
    decoding = config.decoding
    lengths = {
        "max_length_ratio": 0.3 if decoding.max_length_ratio is None else min(0.3, decoding.max_length_ratio),
        "max_length_extra": 1 if decoding.max_length_extra is None else min(1, decoding.max_length_extra),
    }
    worker_count(
        config, choose_device(config.device), 1
    )  # refuses wrong ones; others take seconds until they are there
    changes = {"decoding": decoding.model_copy(update=lengths), "threads": min(2, config.threads), "workers": 1}
    return config.model_copy(update=changes)


def values_of(annotation: object, metadata: Sequence[object] = ()) -> Iterator[str]:
    """What the type of a key suggests, as typed: its choices, its bounds and the numbers just beyond them."""
    for limit in metadata:
        if isinstance(limit, FieldInfo):
            yield from values_of(annotation, limit.metadata)
        for name in ("ge", "gt", "le", "lt"):
            if (bound := getattr(limit, name, None)) is not None:
                yield from _around(bound, whole=annotation is int)
        if (longest := getattr(limit, "max_length", None)) is not None:
            yield from ("x" * longest, "x" * (longest + 1))
    arguments = get_args(annotation)
    if get_origin(annotation) is Annotated:
        yield from values_of(arguments[0], arguments[1:])
    elif get_origin(annotation) is Literal:
        yield from (f"{choice}{end}" for choice in arguments for end in ("", "x"))
    elif get_origin(annotation) is tuple:
        items = [list(values_of(argument)) or ["a"] for argument in arguments if argument is not ...]
        yield from (f"[{','.join(chosen)}]" for chosen in zip(*items, strict=False))
        yield from (f"[{item}]" for item in items[0])
    elif annotation is bool:
        yield from ("true", "false")
    elif annotation is str:
        yield from map(quote, TEXTS)
    else:
        for argument in arguments:
            yield from values_of(argument)


def _around(bound: float, whole: bool) -> Iterator[str]:
    if whole:
        yield from (str(int(bound) + step) for step in (-1, 0, 1))
    else:
        yield from (repr(math.nextafter(bound, goal)) for goal in (-math.inf, bound, math.inf))


def _fields(section: Section, prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every full key of a config with its field."""
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from _fields(value, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def cases(name: str, place: Place) -> list[Case]:
    """Return every key of a command with every value that is tried for it."""
    found = []
    for keys, words in WORDS[name](place).items():
        job = compose_job(name, COMMANDS[name].schema, words)
        for key, field in _fields(job.config):
            if key.startswith(keys.strip()):
                tried = dict.fromkeys([*values_of(field.annotation, field.metadata), *ANYWHERE])
                found += [Case(tuple(words), (f"{key}={value}",)) for value in tried]
    return found


def pair(singles: Sequence[Case], chance: random.Random) -> Case:
    """Two settings at once, on one base."""
    while True:
        one, other = chance.sample(singles, 2)
        if one.base == other.base:
            return Case(one.base, one.tried + other.tried)


def misspelled(single: Case, chance: random.Random) -> Case:
    """Return a setting with a typing error in its key, or with broken grammar."""
    key, _, value = single.tried[0].partition("=")
    position, other = chance.randrange(len(key)), chance.choice(GRAMMAR)
    words = [
        f"{key[:position]}{key[position + 1 :]}={value}",
        f"{key[:position]}{chr(chance.randrange(1, 0x3000))}{key[position:]}={value}",
        f"{chance.choice(['+', '++', '~', '@'])}{key}={value}",
        f"{key}.{key}={value}",
        f"{key}={other}",
        f"{chance.choice(GROUPS)}={other}",
        "".join(chr(chance.randrange(32, 0x3000)) for _ in range(chance.randrange(30))),
    ]
    return Case(single.base, (chance.choice(words),))


def fuzz(folder: Path, times: int, number: int, run: Path, name: str) -> Outcome:
    """Try command lines: single settings in random order, and at least a quarter each of pairs and misspelled ones.

    Args:
        run: a finished run on the toy corpus.
        name: of the command.
    """
    outcome = Outcome(f"every key and value ({name})")
    chance = random.Random(number)
    before, threads = os.getcwd(), torch.get_num_threads()
    place = Place(folder, run)
    singles = cases(name, place)
    chance.shuffle(singles)
    pairs = [pair(singles, chance) for _ in range(max(times // 4, times - times // 4 - len(singles)))]
    wrong = [misspelled(chance.choice(singles), chance) for _ in range(times // 4)]
    chosen = singles[: times - len(pairs) - len(wrong)] + pairs + wrong
    endings = {"refused": 0, "right": 0}
    project = logging.getLogger("mt")
    level, heard = project.level, _Errors()
    project.setLevel(logging.ERROR)
    project.addHandler(heard)
    project.propagate = False
    try:
        place.clear()
        for words in WORDS[name](place).values():
            troubles, ending = _try(name, Case(tuple(words), ()), place, heard)
            if troubles or ending == "refused":
                outcome.lost.append(f"{' '.join(words)}: {troubles or heard.messages}")
        for case in chosen:
            troubles, ending = _try(name, case, place, heard)
            endings[ending] += not troubles
            outcome.judge([f"{case}: {trouble}" for trouble in troubles])
    finally:
        os.chdir(before)
        torch.set_num_threads(threads)
        project.removeHandler(heard)
        project.setLevel(level)
        project.propagate = True
    outcome.figures = (
        f"{times - len(pairs) - len(wrong)} of {len(singles)} single settings, {len(pairs)} pairs, "
        f"{len(wrong)} misspelled; "
        f"{endings['refused']} refused, {endings['right']} right"
    )
    return outcome


class _Errors(logging.Handler):
    """Keeps what is logged as an error, as a terminal gets it."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.setFormatter(VisibleFormatter("%(message)s"))
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(self.format(record))


def _try(name: str, case: Case, place: Place, heard: _Errors) -> tuple[list[str], str]:
    """What is wrong with the way in which one command line ended, and that way."""
    heard.messages.clear()
    began = []

    def work(config: Section) -> None:
        began.append(config)
        WORK[name](config, place)

    try:
        with _streams(), mock.patch("mt.cli.config_files.hydra.compose", _compose_once), replaced_work(work):
            status = exit_status(lambda: run_command(COMMANDS[name], [*case.base, *case.tried]))
    except Exception as error:  # whatever it is, it is what is looked for
        place.clear()
        return [f"{type(error).__name__}: {error}"[:300]], "refused"
    left = place.clear()
    troubles = ["Hydra's state is left over"] if GlobalHydra.instance().is_initialized() else []
    if status == 0:
        return troubles + [f"and yet reported {heard.messages}"] * bool(heard.messages), "right"
    if status != 2:
        troubles.append(f"ended with {status}: {heard.messages}")
    if len(heard.messages) != 1:
        troubles.append(f"{len(heard.messages)} messages: {heard.messages}")
    for message in heard.messages:
        steering = [c for c in message if (category(c) in ("Cc", "Cs") and c != "\n") or c in BIDI]
        if len(message) > MAX_MESSAGE_CHARACTERS or steering:
            troubles.append(f"a message that no terminal should get: {ascii(message[:300])}")
    return troubles + ([f"left over: {left[:5]}"] if left else []), "refused"


_compose = hydra.compose


def _compose_once(config_name: str, overrides: list[str], return_hydra_config: bool) -> DictConfig:
    """The same files are composed for thousands of command lines, which takes most of their time."""
    return _composed(config_name, tuple(overrides))


@functools.cache
def _composed(config_name: str, overrides: tuple[str, ...]) -> DictConfig:
    return _compose(config_name, list(overrides), return_hydra_config=True)


@contextlib.contextmanager
def _streams() -> Iterator[None]:
    """Standard input with two lines, and an output that nobody reads."""
    given, taken = io.TextIOWrapper(io.BytesIO(b"ba de\nfi\n")), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with mock.patch.object(sys, "stdin", given), mock.patch.object(sys, "stdout", taken):
        yield
