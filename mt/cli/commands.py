"""The registry of commands. Everything that concerns all commands iterates over it, so a new one is one entry here, its
schema in mt/config, and its file in conf/.

A command's code is imported only after its config has been checked: PyTorch takes seconds to import, and a mistake in
the config should be reported at once.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

from mt import config
from mt.cli.start import ending_at_once
from mt.core.extras import optional_packages


@dataclass(frozen=True)
class Command:
    """A command. Its summary, examples and groups are in ``conf/NAME.yaml``."""

    name: str
    schema: type[config.Section]
    work: str
    """The function that runs a config, as "module:function"."""
    explain: str | None = None
    """The function for ``--explain``, likewise."""
    takes_origins: bool = False
    """Whether these functions take a ``Resolved`` config, with the origin of each value."""
    script: str | None = None
    """The script that also starts it in a checkout."""
    output: str | None = "output"
    """The attribute of the config with the path that is written. Jobs of one sweep must not share it. None: the command
    does not end, and cannot be swept."""
    sweep_example: str = ""
    """A setting that gives each job of a sweep an output of its own."""
    input: str | None = None
    """The attribute that stands for standard input if it is None. Jobs of one sweep cannot share it."""

    @property
    def typed(self) -> str:
        """The command line in a checkout, without arguments."""
        return f"python {self.script}" if self.script else f"python -m mt {self.name}"


COMMANDS = {
    command.name: command
    for command in (
        Command(
            "train",
            config.TrainConfig,
            "mt.training.command:train",
            explain="mt.training.command:explain",
            takes_origins=True,
            script="train.py",
            output="folder",
            sweep_example="name=run-${seed}",
        ),
        Command(
            "translate",
            config.TranslateConfig,
            "mt.documents.command:translate",
            script="translate.py",
            sweep_example="output=beam${decoding.beam_size}.txt",
            input="input",
        ),
        Command(
            "compare",
            config.CompareConfig,
            "mt.evaluation.comparison.command:compare",
            sweep_example="output=comparison-${device}",
        ),
        Command(
            "robustness",
            config.RobustnessConfig,
            "mt.evaluation.robustness.command:measure_robustness",
            sweep_example="output=robustness-${sentences}",
        ),
        Command(
            "clean",
            config.CleaningConfig,
            "mt.data.cleaning.command:clean",
            sweep_example="output=cleaned-${data.cleaning}",
        ),
        Command(
            "synthesize",
            config.SynthesisConfig,
            "mt.synthesis.command:synthesise",
            sweep_example="output=${method}.jsonl",
        ),
        Command(
            "serve",
            config.ServingConfig,
            "mt.serving.command:serve",
            output=None,
        ),
        Command(
            "export",
            config.ExportConfig,
            "mt.export.command:export",
            sweep_example="output=demo-${format}",
        ),
    )
}


def load_function(path: str) -> Callable[..., None]:
    """Import the function that "module:function" names. Meanwhile, signals end the process at once."""
    with ending_at_once(), optional_packages():
        function: Callable[..., None] = pkgutil.resolve_name(path)
    return function
