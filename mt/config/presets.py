"""The models in ``conf/model``, by name."""

import yaml
from pydantic import TypeAdapter

from mt.config.model import ModelConfig
from mt.core.installation import CONF

AUTO = "auto"
"""The default option of ``model=``, which leaves the size to ``training.minutes``."""
DEFAULT_ARCHITECTURE = "transformer"
"""The architecture that AUTO sets."""


def model_presets(architecture: str) -> dict[str, ModelConfig]:
    """Return the models of an architecture, without AUTO and without second names for a model, which set nothing."""
    files = [file for file in sorted((CONF / "model").glob("*.yaml")) if file.stem != AUTO]
    values = {file.stem: yaml.safe_load(file.read_text(encoding="utf-8")) for file in files}
    own = {name: model for name, model in values.items() if model.get("architecture") == architecture}
    return TypeAdapter(dict[str, ModelConfig]).validate_python(own)
