"""The registry of commands. Code that concerns all commands iterates over it.

To add a command, add an entry here, its schema in mt/config and its file in conf/.

A command's code is imported only after its config has been checked: PyTorch takes seconds to import, and a mistake in
the config should be reported at once.
"""

from dataclasses import dataclass

from mt import config


@dataclass(frozen=True)
class Command:
    """An entry of the registry. Its summary, examples and config groups are in ``conf/NAME.yaml``."""

    name: str
    schema: type[config.Section]
    work: str
    """The function that runs a config, as "module:function"."""
    takes_origins: bool = False
    """Whether the function takes a ``Resolved`` config, with the origin of each value, instead of a plain one."""
    script: str | None = None
    """The script in the checkout that starts the command, too."""
    output: str | None = "output"
    """The attribute of the config that holds the path to write to. Jobs of one sweep must not share it. None: the
    command runs until it is stopped, and cannot be swept."""
    sweep_example: str = ""
    """A setting that gives each job of a sweep an output path of its own, for error messages."""
    input: str | None = None
    """The attribute of the config that is None if the command reads standard input. Jobs of one sweep cannot do so."""

    @property
    def typed(self) -> str:
        """The command line in a checkout, without arguments."""
        return f"python {self.script}" if self.script else f"python -m mt {self.name}"


_COMMANDS = (
    Command(
        "train", config.TrainConfig, "mt.training.command:train",
        takes_origins=True, script="train.py", output="folder", sweep_example="name=run-${seed}",
    ),
    Command(
        "translate", config.TranslateConfig, "mt.translation.command:translate",
        script="translate.py", input="input", sweep_example="output=beam${decoding.beam_size}.txt",
    ),
    Command(
        "compare", config.CompareConfig, "mt.evaluation.comparison.command:compare",
        sweep_example="output=comparison-${device}",
    ),
    Command(
        "evaluate", config.EvaluationConfig, "mt.evaluation.comparison.command:evaluate",
        sweep_example="output=scores-${bootstrap_samples}.json",
    ),
    Command(
        "robustness", config.RobustnessConfig, "mt.evaluation.robustness.command:measure_robustness",
        sweep_example="output=robustness-${sentences}",
    ),
    Command(
        "clean", config.CleaningConfig, "mt.data.cleaning.command:clean",
        sweep_example="output=cleaned-${data.cleaning}",
    ),
    Command(
        "synthesize", config.SynthesisConfig, "mt.synthesis.command:synthesize",
        sweep_example="output=${method}.jsonl",
    ),
    Command(
        "average", config.AveragingConfig, "mt.training.checkpoint:average", sweep_example="output=averaged-${run[1]}"
    ),
    Command("runs", config.RunListConfig, "mt.storage.run_folder:list_runs", output="runs"),
    Command("serve", config.ServingConfig, "mt.serving.command:serve", output=None),
    Command("export", config.ExportConfig, "mt.export.command:export", sweep_example="output=demo-${format}"),
)  # fmt: skip
COMMANDS = {command.name: command for command in _COMMANDS}
"""The commands by name."""
