"""The model presets in ``conf/model``."""

import yaml
from pydantic import TypeAdapter

from mt.config.model import ModelConfig
from mt.core.installation import CONF

AUTO = "auto"
"""The default of ``model=``. It sets no size, so that ``training.minutes`` may choose one."""
DEFAULT_ARCHITECTURE = "transformer"
"""The architecture of the preset AUTO."""


def model_presets(architecture: str) -> dict[str, ModelConfig]:
    """Return the model of each preset of an architecture by the preset's name.

    AUTO is left out, and so are presets that are only another name of a preset.
    """
    files = [file for file in sorted((CONF / "model").glob("*.yaml")) if file.stem != AUTO]
    values = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}
    own = {name: model for name, model in values.items() if model.get("architecture") == architecture}
    return TypeAdapter(dict[str, ModelConfig]).validate_python(own)
