"""Optional packages are named with the extra that installs them."""

import tomllib
from pathlib import Path

import pytest

from mt.core.errors import InputError
from mt.core.installation import EXTRAS, optional_packages

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_every_extra_exists():
    assert set(EXTRAS.values()) <= tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"].keys()


def test_a_missing_optional_package_is_named_with_its_extra():
    message = r"^jinja2 is not installed: pip install 'mt-trainer\[reports\]'"
    with pytest.raises(InputError, match=message), optional_packages():
        raise ModuleNotFoundError("No module named 'jinja2.ext'", name="jinja2.ext")


def test_any_other_missing_package_is_a_bug():
    with pytest.raises(ModuleNotFoundError), optional_packages():
        raise ModuleNotFoundError("No module named 'torhc'", name="torhc")
