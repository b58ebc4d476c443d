"""The registry of commands. Code that concerns all commands iterates over it.

To add a command, add an entry here, its schema in mt/config and its file in conf/.

A command's code is imported only after its config has been checked: PyTorch takes seconds to import, and an error in
the config should be reported at once.
"""

from typing import NamedTuple

from mt import config


class Command(NamedTuple):
    """An entry of the registry. Its summary, examples and config groups are in ``conf/NAME.yaml``."""

    name: str
    schema: type[config.Section]
    work: str
    """The function that runs a config, as "module:function"."""
    takes_origins: bool = False
    """Whether the function takes a ``Resolved`` config, with the origin of each value, instead of a plain one."""
    script: str | None = None
    """The script in the checkout that starts the command, too."""

    @property
    def typed(self) -> str:
        """The command line in a checkout, without arguments."""
        return f"python {self.script}" if self.script else f"python -m mt {self.name}"


_COMMANDS = (
    Command("train", config.TrainConfig, "mt.training.command:train", takes_origins=True, script="train.py"),
    Command("translate", config.TranslateConfig, "mt.translation.command:translate", script="translate.py"),
    Command("compare", config.CompareConfig, "mt.evaluation.comparison.command:compare"),
    Command("evaluate", config.EvaluationConfig, "mt.evaluation.comparison.command:evaluate"),
    Command("robustness", config.RobustnessConfig, "mt.evaluation.robustness.command:measure_robustness"),
    Command("clean", config.CleaningConfig, "mt.data.cleaning.command:clean"),
    Command("synthesize", config.SynthesisConfig, "mt.synthesis.command:synthesize"),
    Command("average", config.AveragingConfig, "mt.training.checkpoint:average"),
    Command("runs", config.RunListConfig, "mt.storage.run_folder:list_runs"),
    Command("serve", config.ServingConfig, "mt.serving.command:serve"),
    Command("export", config.ExportConfig, "mt.export.command:export"),
)
COMMANDS = {command.name: command for command in _COMMANDS}
"""The commands by name."""
