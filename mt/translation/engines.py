"""The registry of engines. A new engine is one module and one entry here, and a value of ``decoding.engine``."""

from mt.translation.ctranslate2_engine import CTranslate2Engine
from mt.translation.engine import Engine
from mt.translation.torch_engine import TorchEngine

ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (TorchEngine, CTranslate2Engine)}
