"""Names of other trainers are refused with the setting here, and docs/coming-from.md has the same settings."""

import re
from pathlib import Path

from mt.cli.commands import COMMANDS
from mt.cli.config_files import Files
from mt.cli.error_messages import other_trainers, schema_keys
from tests.cli.test_composition import config_errors

PAGE = Path(__file__).parents[2] / "docs" / "coming-from.md"
SETTINGS = {re.split("[ =]", here)[0]: here for here in other_trainers()}


WORDS = {
    "batch_size=64": "training.batch_tokens (tokens, not sentences)",
    "training.batch-size=64": "training.batch_tokens (tokens, not sentences)",
    "--lr=1e-3": "training.optimizer.learning_rate",
    "-beam_size": "decoding.beam_size",
    "fp16=true": "training.precision=fp16",
}


def test_a_name_of_another_trainer_is_refused_with_the_setting_here():
    lines = {line.partition(": ")[0]: line for line in config_errors(*WORDS)}
    for word, here in WORDS.items():
        assert lines[word].endswith(f"; did you mean {here}?")


def test_a_setting_of_another_command_is_not_taken_for_a_misspelling():
    line, other = config_errors("run=runs/demo", "hidden_size=3", "batch_size=5", command="translate")
    assert line.endswith("hidden_size=3: there is no such key; --help all lists all keys")
    assert other.endswith("; did you mean decoding.batch_tokens (tokens, not sentences)?")


def test_every_setting_exists():
    keys = {key for name in ("train", "translate") for key, _ in schema_keys(COMMANDS[name].schema)}
    assert set(SETTINGS) <= keys | set(Files("train").group_defaults())


def test_the_page_has_every_setting_and_each_of_its_names_leads_there():
    table = PAGE.read_text(encoding="utf-8").partition("\n## Settings")[2].partition("\n## ")[0]
    rows = re.findall(r"^\|(.+?)\|(.+)\|$", table, re.MULTILINE)
    assert set(SETTINGS) <= {key for first, _ in rows for key in re.findall(r"`([\w.]+)", first)}
    for first, others in rows:
        keys = re.findall(r"`([\w.]+)", first)
        listed = {name.replace("-", "_") for name in re.findall(r"`-*([\w-]+)`", others)}
        leading = [names for here, names in other_trainers().items() if any(key in here for key in keys)]
        assert listed <= {*sum(leading, []), *(key.rpartition(".")[2] for key in keys)} or not keys
