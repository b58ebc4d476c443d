"""The one place where the package ctranslate2, which is optional, is imported."""

from typing import Any

from mt.errors import InputError


def library() -> Any:
    """The package. Raises InputError that says how to install it."""
    try:
        import ctranslate2
    except ImportError as error:
        raise InputError(
            f"CTranslate2 is not installed ({error}): pip install -e '.[fast]' beside pyproject.toml, "
            "or pip install ctranslate2"
        ) from None
    return ctranslate2
