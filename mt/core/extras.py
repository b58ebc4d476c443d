"""Optional packages and the extras of pyproject.toml that install them."""

from collections.abc import Iterator
from contextlib import contextmanager

from mt.core.errors import InputError

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
    "uvicorn": "serving",
}
"""The extra of each optional package, by the name of its module."""


@contextmanager
def optional_packages() -> Iterator[None]:
    """Context manager: turn the failed import of an optional package into InputError with the install command."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        extra = EXTRAS[package]
        raise InputError(
            f"{package} is not installed: pip install 'mt-trainer[{extra}]', "
            f"or pip install -e '.[{extra}]' in a checkout"
        ) from error
