"""The settings of every command, as a typed schema: type, range, default and description of each.

``--help`` and ``docs/settings.md`` are generated from it. The files in ``conf/`` hold the values of presets.
"""

from mt.config.cleaning import CleaningConfig
from mt.config.data import (
    CLEANING_RULES,
    CorpusConfig,
    DataConfig,
    FilesConfig,
    HubConfig,
    MixtureConfig,
    PileConfig,
    RecipeConfig,
    SingleCorpusConfig,
    TableConfig,
    as_pairs,
    language_suffix,
    single_corpora,
)
from mt.config.decoding import DecodingChoice, DecodingConfig
from mt.config.evaluation import CompareConfig, RobustnessConfig
from mt.config.export import ExportConfig, ExportFormat
from mt.config.fields import Section
from mt.config.model import ModelConfig, RNNAttentionConfig, TransformerConfig
from mt.config.text import MAX_SOURCE_TOKENS, AugmentationConfig, KeptConfig, TextConfig, TextLayerConfig
from mt.config.tokenizer import PiecesConfig, TokenizerConfig
from mt.config.train import TrainConfig
from mt.config.training import OptimizerConfig, ScheduleConfig, TrainingConfig, scheduled_checkpoint_count
from mt.config.translate import DocumentFormat, ServingConfig, SynthesisConfig, TranslateConfig, as_folders
