"""Command lines that nobody should type: told with exit code 2, before any work."""

import logging
import os
import random
import tempfile

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from mt.cli.command_line import run_command
from mt.cli.commands import COMMANDS
from mt.cli.keys import schema_keys
from mt.core.process_end import exit_status
from tests.faults.outcome import Outcome

FUZZED = ("train", "translate")
VALUES = [
    "", "null", "true", "-1", "0", "1.5", "1e999", "nan", "-.inf", "abc", "[", "]", "[]", "[a", "{", "{}", "{a:b}",
    "'", '"', "a'b", "\\", "${", "${}", "${nowhere}", "${oc.env:HOME}", "${seed}", "${name}", "a,b", "range(1,3)",
    "choice(1,2)", "glob(*)", "x" * 5000, "9" * 400, "ü", "\u2028", "\u202e", "😀", "../..", "/", "\t",
    "!!python/none", "a=b",
]  # fmt: skip


@st.composite
def wrong_words(draw: st.DrawFn, command: str) -> list[str]:
    """One to four words: misspelt keys, impossible values, unknown options, broken grammar."""
    keys = sorted({key for key, _ in schema_keys(COMMANDS[command].schema)})

    def word() -> str:
        key, value = draw(st.sampled_from(keys)), draw(st.sampled_from(VALUES))
        place = draw(st.integers(0, len(key) - 1))
        match draw(st.integers(0, 7)):
            case 0:
                return f"{key[:place]}{key[place + 1 :]}={value}"
            case 1:
                return f"{key[:place]}{draw(st.characters())}{key[place:]}={value}"
            case 2:
                return f"{draw(st.sampled_from(['+', '++', '~', '@']))}{key}={value}"
            case 3:
                group = draw(st.sampled_from(["data", "model", "training", "decoding", "experiment", "tokenizer"]))
                return f"{group}={value}"
            case 4:
                return draw(st.text(max_size=30))
            case 5:
                return f"{key}.{draw(st.sampled_from(keys))}={value}"
            case _:
                return f"{key}={value}"

    return [word() for _ in range(draw(st.integers(1, 4)))]


def fuzz(times: int, number: int, command: str) -> Outcome:
    """Random command lines of one command; those that happen to be right are not counted."""
    outcome = Outcome(f"wrong config ({command}.py)")
    project = logging.getLogger("mt")
    loudness = project.level
    project.setLevel(logging.CRITICAL)
    chance = random.Random(number)

    @seed(chance.randrange(2**32))
    @settings(max_examples=times, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(wrong_words(command))
    def check(words: list[str]) -> None:
        begun = []
        try:
            status = exit_status(lambda: run_command(COMMANDS[command], words, begun.append))
        except Exception as error:
            outcome.judge([f"{words}: {type(error).__name__}: {error}"])
            return
        if not begun and not {"--help", "-h", "--cfg"} & set(words):
            outcome.judge([] if status == 2 else [f"{words}: ended with {status}"])

    before = os.getcwd()
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        try:
            check()
        finally:
            os.chdir(before)
            project.setLevel(loudness)
        if written := os.listdir(empty):
            outcome.lost.append(f"written: {written}")
    return outcome
