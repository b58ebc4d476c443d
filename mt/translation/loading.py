"""Loads trained models and their decoding settings."""

from pathlib import Path

from pydantic import ValidationError

from mt.config import DecodingChoice, DecodingConfig
from mt.core.errors import InputError


def complete_decoding(
    config: DecodingConfig | DecodingChoice | None, own: DecodingConfig, folder: Path
) -> DecodingConfig:
    """Return the user's decoding settings, completed by the model's own.

    Args:
        config: The user's settings.
        own: The model's settings.
        folder: The model's folder, for messages.

    Raises:
        InputError: The two contradict each other.
    """
    if not isinstance(config, DecodingChoice):
        return config or own
    try:
        return config.over(own)
    except ValidationError as error:
        reasons = [f"decoding.{reason}" for e in error.errors() for reason in str(e["ctx"]["error"]).splitlines()]
        raise InputError(f"{'; '.join(reasons)} (what is not set here is the model's own, from {folder})") from None
