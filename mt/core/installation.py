"""The installation: optional packages, and locations of config files, recipes and corpora in a checkout or a wheel.

======================  ====================  ============================
                        checkout              installed
======================  ====================  ============================
config files            conf/                 mt/conf/
recipes of corpora      data/NAME.py          mt/recipes/NAME.py
corpora they fetched    data/NAME/            the user's cache folder
commands                python train.py …     mt train …
======================  ====================  ============================
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mt.core.errors import InputError

PACKAGE = Path(__file__).resolve().parents[1]
"""The folder of the code."""
IS_INSTALLED = (PACKAGE / "conf").is_dir()
CONF = PACKAGE / "conf" if IS_INSTALLED else PACKAGE.parent / "conf"
RECIPES = PACKAGE / "recipes" if IS_INSTALLED else PACKAGE.parent / "data"

EXTRAS = {
    "ctranslate2": "fast",
    "huggingface_hub": "hub",
    "jinja2": "reports",
    "markdown_it": "documents",
    "matplotlib": "reports",
    "mdit_py_plugins": "documents",
    "multipart": "serving",
    "ruamel": "documents",
    "starlette": "serving",
    "transformers": "transformers",
    "uvicorn": "serving",
}
"""The extra of each optional package, by the name of its module."""


def corpora() -> Path:
    """Return the parent folder of the corpora of recipes. The recipe NAME keeps its corpus in the subfolder NAME."""
    if not IS_INSTALLED:
        return RECIPES
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    elif not cache.is_absolute():  # must be ignored: https://specifications.freedesktop.org/basedir-spec
        cache = Path.home() / ".cache"
    return cache / "mt-trainer"


def as_typed_here(text: str) -> str:
    """Return a text with the command lines of a checkout replaced by those of the program that runs: ``mt COMMAND`` or
    ``python -m mt COMMAND``. ``train.py`` and ``translate.py`` keep those of a checkout."""
    program = Path(sys.argv[0]).resolve()
    if program == PACKAGE / "__main__.py":
        prefix = "python -m mt"
    elif IS_INSTALLED or program.name.startswith("mt"):
        prefix = "mt"
    else:
        return text
    return re.sub(r"python (?:-m mt |(?=\w+\.py))(\w+)(?:\.py)?", rf"{prefix} \1", text)


@contextmanager
def optional_packages() -> Iterator[None]:
    """Context manager: turn the failed import of a package into InputError with the command that installs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "mt":
            raise
        extra = f"[{EXTRAS[package]}]" if package in EXTRAS else ""
        raise InputError(
            f"{package} is not installed for {sys.executable}: in a checkout, run source .venv/bin/activate "
            f"(once before: make .venv/installed); otherwise, run pip install 'mt-trainer{extra}'"
        ) from error
