"""Missing packages and a Python that is too old are named with the command that installs the right ones."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mt.core.errors import InputError
from mt.core.installation import EXTRAS, optional_packages

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_every_extra_exists():
    assert set(EXTRAS.values()) <= tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"].keys()


def test_a_missing_optional_package_is_named_with_its_extra():
    message = r"^jinja2 is not installed for .*: pip install 'mt-trainer\[reports\]'; in a checkout, "
    with pytest.raises(InputError, match=message), optional_packages():
        raise ModuleNotFoundError("No module named 'jinja2.ext'", name="jinja2.ext")


def test_a_missing_module_of_the_package_itself_is_a_bug():
    with pytest.raises(ModuleNotFoundError), optional_packages():
        raise ModuleNotFoundError("No module named 'mt.gone'", name="mt.gone")


START = {
    "train.py": "omegaconf is not installed for ",
    "-mmt": "omegaconf is not installed for ",
    "-cimport sys; sys.version_info = (3, 8); import mt": "mt-trainer needs Python 3.11 or newer, and ",
}


@pytest.mark.parametrize("word", START)
def test_a_python_without_the_packages_or_too_old_gets_one_line(word):
    done = subprocess.run([sys.executable, "-S", "-E", word], cwd=PROJECT.parent, capture_output=True, text=True)
    assert done.stderr.startswith(START[word]) and done.stderr.count("\n") == 1
