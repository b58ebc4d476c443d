"""Missing packages and a Python that is too old are named with the command that installs the right ones."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mt.core.errors import InputError
from mt.core.installation import EXTRAS, PACKAGE, as_typed_here, optional_packages

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_every_extra_exists():
    assert set(EXTRAS.values()) <= tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"].keys()


def test_optional_packages_reports_extra_of_missing_package():
    message = r"^jinja2 is not installed for .*: in a checkout, run .*, run pip install 'mt-trainer\[reports\]'$"
    with pytest.raises(InputError, match=message), optional_packages():
        raise ModuleNotFoundError("No module named 'jinja2.ext'", name="jinja2.ext")


def test_a_missing_module_of_the_package_itself_is_a_bug():
    with pytest.raises(ModuleNotFoundError), optional_packages():
        raise ModuleNotFoundError("No module named 'mt.gone'", name="mt.gone")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("train.py", "omegaconf is not installed for .*: in a checkout, run source .venv/bin/activate .*\n"),
        ("-mmt", "omegaconf is not installed for .*: in a checkout, run source .venv/bin/activate .*\n"),
        ("-cimport sys; sys.version_info = (3, 8); import mt", "mt-trainer needs Python 3.11 or newer, and .*\n"),
    ],
)
def test_start_outside_of_the_environment_prints_one_line(word, message):
    done = subprocess.run([sys.executable, "-S", "-E", word], cwd=PROJECT.parent, capture_output=True, text=True)
    assert re.fullmatch(message, done.stderr)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("train.py", "python train.py; python -m mt runs"),
        ("/bin/mt", "mt train; mt runs"),
        ("/bin/mt-translate", "mt train; mt runs"),
        (str(PACKAGE / "__main__.py"), "python -m mt train; python -m mt runs"),
    ],
)
def test_as_typed_here_uses_the_program_that_runs(program, expected, monkeypatch):
    monkeypatch.setattr("sys.argv", [program])
    assert as_typed_here("python train.py; python -m mt runs") == expected
