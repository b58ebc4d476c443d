"""The settings of every command, as a typed schema. Each setting has its type, range, default and description here and
nowhere else; ``--help`` and ``docs/settings.md`` are made from it, and the files in ``conf/`` hold what presets
change."""

from mt.config.commands import (
    ArgosExportConfig,
    CleaningConfig,
    CompareConfig,
    ExportConfig,
    Folders,
    HuggingFaceExportConfig,
    ModelDescription,
    RobustnessConfig,
    SynthesisConfig,
    TrainConfig,
    TranslateConfig,
    as_folders,
)
from mt.config.data import (
    CLEANING_RULES,
    NEWEST_SPLIT,
    CorpusConfig,
    DataConfig,
    FilesConfig,
    HubConfig,
    MixtureConfig,
    RecipeConfig,
    SingleCorpusConfig,
    TableConfig,
    UnsplitConfig,
    as_pairs,
    language_suffix,
)
from mt.config.decoding import ComputeType, DecodingChoice, DecodingConfig, StorageType
from mt.config.fields import DEVICE, Section
from mt.config.model import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.config.text import AlignmentConfig, AugmentationConfig, KeptConfig, RulesConfig, TextConfig, TextDescription
from mt.config.tokenizer import PiecesConfig, TokenizerConfig
from mt.config.training import OptimizerConfig, ScheduleConfig, TrainingConfig, scheduled_checkpoints

__all__ = [
    "DEVICE",
    "AlignmentConfig",
    "ArgosExportConfig",
    "AugmentationConfig",
    "RulesConfig",
    "TextConfig",
    "TextDescription",
    "NEWEST_SPLIT",
    "CLEANING_RULES",
    "CleaningConfig",
    "CompareConfig",
    "ComputeType",
    "CorpusConfig",
    "DataConfig",
    "DecodingChoice",
    "DecodingConfig",
    "ExportConfig",
    "FilesConfig",
    "Folders",
    "HubConfig",
    "HuggingFaceExportConfig",
    "KeptConfig",
    "MixtureConfig",
    "ModelConfig",
    "ModelDescription",
    "OptimizerConfig",
    "PiecesConfig",
    "RNNAttentionConfig",
    "RecipeConfig",
    "RobustnessConfig",
    "ScheduleConfig",
    "Section",
    "SingleCorpusConfig",
    "StorageType",
    "SynthesisConfig",
    "TableConfig",
    "TokenizerConfig",
    "TrainConfig",
    "TrainingConfig",
    "TransformerConfig",
    "TranslateConfig",
    "UnsplitConfig",
    "as_folders",
    "as_pairs",
    "language_suffix",
    "scheduled_checkpoints",
]
