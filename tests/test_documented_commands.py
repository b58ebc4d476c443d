"""What README.md tells to type and the Makefile types is understood."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from mt.composition import compose_jobs
from mt.config import CompareConfig, ExportConfig, Section, TrainConfig, TranslateConfig
from mt.errors import InputError

ROOT = Path(__file__).parents[1]
COMMANDS: dict[str, tuple[str, type[Section]]] = {
    "train.py": ("train", TrainConfig),
    "translate.py": ("translate", TranslateConfig),
    "-m mt.comparison": ("compare", CompareConfig),
    "-m mt.translation.ctranslate2": ("export", ExportConfig),
}
README = (ROOT / "README.md").read_text(encoding="utf-8")
DRY_RUN = ["make", "--dry-run", "--always-make", "demo", "compare", "SEEDS=2"]
MADE = subprocess.run(DRY_RUN, cwd=ROOT, capture_output=True, text=True, check=True).stdout
"""What make would type."""
TYPED = re.compile(rf"python ({'|'.join(map(re.escape, COMMANDS))}) ([^`\n]*)")


def typed() -> list[tuple[str, str]]:
    """Commands and what follows them, without redirections, brackets round options, and words that hold an ellipsis."""
    found = [*TYPED.findall(README), *TYPED.findall(MADE.replace("&&", "\n"))]
    plain = [(command, re.sub(r"[<>|].*|\[(\S+=\S+)\]|\S*…\S*", r"\1", words)) for command, words in found]
    return [(command, words) for command, words in plain if "--help" not in words and "data=mixture" not in words]


def test_there_are_commands() -> None:
    assert {command for command, _ in typed()} == set(COMMANDS)
    assert len(typed()) > 15


@pytest.mark.parametrize(("command", "words"), typed())
def test_it_is_composed(command: str, words: str) -> None:
    name, schema = COMMANDS[command]
    options = shlex.split(words)
    settings = [word for word in options if word != "--multirun"]
    assert compose_jobs(name, schema, settings, multirun=settings != options)


SETTINGS = re.compile(r"`((?:'?[a-z_]+(?:\.[a-z_]+)*=[^\s`…]+ ?)+)`")


@pytest.mark.parametrize("words", [words for words in SETTINGS.findall(README) if words != "key.sub=value"])
def test_settings_named_in_passing_are_possible(words: str) -> None:
    around = [
        ("train", TrainConfig, []),
        ("train", TrainConfig, ["model=rnn_attention"]),
        ("translate", TranslateConfig, ["run=runs/demo"]),
        ("translate", TranslateConfig, ["run=runs/demo", "decoding.engine=ctranslate2"]),
        ("compare", CompareConfig, ["first=runs/A", "second=runs/B"]),
        ("compare", CompareConfig, []),
    ]
    reasons = []
    for name, schema, others in around:
        try:
            compose_jobs(name, schema, [*others, *shlex.split(words)], multirun=False)
            return
        except InputError as error:
            reasons.append(str(error))
    pytest.fail("\n".join(reasons))
