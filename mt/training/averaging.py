"""``python -m mt average``: writes a model with the mean of the weights of several runs or checkpoints."""

import shutil

from mt.config import AveragingConfig
from mt.config.resolved import flat_values
from mt.config.training import split_update
from mt.core.errors import InputError
from mt.core.files import new_folder, resolve_new_folder
from mt.storage.folders import open_folder
from mt.storage.run_folder import CHECKPOINTS, WEIGHTS
from mt.storage.weights import read_metadata, weights_metadata, write_tensors
from mt.training.checkpoint import average_weights


def average(config: AveragingConfig) -> None:
    """Write the mean of the weights to ``config.output``, with all other files of the first model.

    Raises:
        InputError: A folder or file is missing or damaged, two models differ in tokenizer or architecture, or the
            output exists.
    """
    output = resolve_new_folder(config.output)
    base = open_folder(split_update(config.run[0])[0])
    metadata = weights_metadata(base.read_description().model, base.read_tokenizer_files())
    folders = []
    for path in config.run:
        run, update = split_update(path)
        folder = open_folder(run).path / ("" if update is None else f"{CHECKPOINTS}/step_{update}")
        recorded = dict(flat_values(read_metadata(folder / WEIGHTS)))
        for key, value in flat_values(metadata):
            if recorded.get(key) != value:
                raise InputError(
                    f"{path} cannot be averaged with {config.run[0]}: {key} is {recorded.get(key)} instead of {value}; "
                    "give models with the same tokenizer and architecture"
                )
        folders.append(folder)
    with new_folder(output) as partial:
        for name in base.files:
            if (base.path / name).exists():
                shutil.copyfile(base.path / name, partial / name)
        write_tensors(partial / WEIGHTS, average_weights(folders), metadata | {"averaged": config.run})
