"""The models in ``conf/model``, by name."""

import yaml
from pydantic import TypeAdapter

from mt.config.model import ModelConfig
from mt.core.installation import CONF

AUTO = "auto"
"""The default option of ``model=``, which leaves the size to ``training.minutes``."""


def model_presets(architecture: str) -> dict[str, ModelConfig]:
    """Return the models of an architecture, without AUTO."""
    models = {file.stem: _preset(file.stem) for file in sorted((CONF / "model").glob("*.yaml"))}
    return {name: model for name, model in models.items() if model.architecture == architecture and name != AUTO}


def default_model() -> ModelConfig:
    """Return the model of a training whose command line asks for none."""
    return _preset(AUTO)


def _preset(name: str) -> ModelConfig:
    return TypeAdapter(ModelConfig).validate_python(_read(name))


def _read(name: str) -> dict[str, object]:
    values: dict[str, object] = {}
    own = yaml.safe_load((CONF / "model" / f"{name}.yaml").read_text(encoding="utf-8"))
    for base in own.pop("defaults", []):
        values |= _read(base)
    return values | own
