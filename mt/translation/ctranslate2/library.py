"""Imports the package ctranslate2, which is optional. It is imported nowhere else."""

from typing import Any

from mt.errors import InputError


def library() -> Any:
    """Returns the package. Raises InputError, which says how to install it, if it is missing."""
    try:
        import ctranslate2
    except ImportError as error:
        raise InputError(
            f"CTranslate2 is not installed ({error}): pip install -e '.[fast]' beside pyproject.toml, "
            "or pip install ctranslate2"
        ) from None
    return ctranslate2
