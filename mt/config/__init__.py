"""The settings of every command, as a typed schema: type, range, default and description of each.

``--help`` and ``docs/settings.md`` are generated from it. The files in ``conf/`` hold the values of presets.
"""

from mt.config.commands import (
    AveragingConfig,
    CleaningConfig,
    CompareConfig,
    DocumentFormat,
    EvaluationConfig,
    ExportConfig,
    ExportFormat,
    ResolvedTrainConfig,
    RobustnessConfig,
    RunListConfig,
    ServingConfig,
    SynthesisConfig,
    TrainConfig,
    TranslateConfig,
    as_folders,
)
from mt.config.data import (
    LANGUAGES,
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
    data_directions,
    language_suffix,
    named_sets,
    single_corpora,
)
from mt.config.decoding import ONE_BEST, DecodingChoice, DecodingConfig
from mt.config.fields import IGNORE_VALIDATION_ERRORS, TRANSFORMERS, MachineConfig, Section
from mt.config.model import (
    AUTO,
    DEFAULT_ARCHITECTURE,
    ModelConfig,
    RNNAttentionConfig,
    TransformerConfig,
    model_presets,
)
from mt.config.resolved import REMOVED, Config, Origin, Resolved, flat_values, set_value, without_removed
from mt.config.text import (
    EXCLUSIVE_SHARES,
    FINAL_MARKS,
    MAX_SOURCE_TOKENS,
    AugmentationConfig,
    KeptConfig,
    PiecesConfig,
    Terms,
    TextConfig,
    TextLayerConfig,
    TokenizerConfig,
)
from mt.config.training import OptimizerConfig, ScheduleConfig, TrainingConfig, split_update
