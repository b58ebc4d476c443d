"""``python train.py``: begins a run, goes on with it, or reports that it is finished."""

import contextlib
import errno
import functools
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from tqdm.contrib.logging import logging_redirect_tqdm

from mt.config import TrainConfig
from mt.device import (
    check_compiler,
    choose_device,
    choose_precision,
    cpu_threads,
    doubt_about,
    keep_few_kernels,
    keep_freed_memory,
)
from mt.errors import InputError, RunError
from mt.files import make_folder, recover_folders, try_lock
from mt.json_file import read_json
from mt.run_folder import (
    LOG,
    RESULTS,
    WEIGHTS,
    config_differences,
    read_config,
    read_description,
    refuse_links_out,
    written_settings,
)
from mt.terminal import VisibleFormatter
from mt.training.advice import advice_on_languages, advice_on_size, presets
from mt.training.checkpoint import checkpoint_folders, newest_checkpoint
from mt.training.delivery import deliver, show_results
from mt.training.distributed import Seat, Workers, seat_from_torchrun, under_torchrun, working_together
from mt.training.local_workers import local_workers, number_of_workers
from mt.training.memory import refuse_what_cannot_fit
from mt.training.preparation import prepare
from mt.training.trainer import Trainer
from mt.weights import refuse_another_tokenizer
from mt.wording import shown

logger = logging.getLogger(__name__)

LOCK = ".lock"


def train(config: TrainConfig) -> None:
    """Runs or continues the run in ``config.folder`` up to its test scores; reports it if it is finished.

    Raises InputError (config or data), RunError (diverged, another process at work), Interrupted (state saved).
    """
    cpu_threads()  # to be remembered before torch is given another number
    device = choose_device(config.training.device)
    choose_precision(config.training.precision, device)  # to refuse what the device cannot do before any work
    if under_torchrun():
        if config.training.workers not in (1, "auto"):
            raise InputError(
                f"training.workers={config.training.workers}: torchrun starts the workers, --nproc-per-node many"
            )
        _train_as_worker(config, config.training.threads, seat_from_torchrun())
        return
    size = number_of_workers(config.training, device)
    if size == 1:
        _train_as_worker(config, config.training.threads, None)
        return
    work = functools.partial(_train_as_worker, config, config.training.threads or max(1, cpu_threads() // size))
    with local_workers(size, work) as seat:
        work(seat)


def _train_as_worker(config: TrainConfig, threads: int, seat: Seat | None) -> None:
    keep_freed_memory()
    keep_few_kernels()
    torch.set_num_threads(threads or cpu_threads())
    with working_together(choose_device(config.training.device), seat) as workers:
        if not workers.is_leader:
            workers.barrier()
            _train(config, workers)
            return
        run = config.folder
        new = [folder for folder in (run, *run.parents) if not os.path.lexists(folder)]
        try:
            make_folder(run)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise InputError(f"runs={config.runs}: the folder {run} cannot be made: {error.strerror}") from error
        refuse_links_out(run)
        with _only_process(run), _removed_if_refused(run, new), _log_file(run / LOG), logging_redirect_tqdm():
            recover_folders(run)
            workers.barrier()
            _train(config, workers)


def _train(config: TrainConfig, workers: Workers) -> None:
    """What every worker does."""
    run = config.folder
    checkpoint = newest_checkpoint(run)
    update = checkpoint.progress.update if checkpoint else None
    leaders = workers.from_leader(lambda: update)
    if update != leaders:
        raise RunError(
            f"{run}: worker {workers.rank} finds the checkpoint of update {update}, the first one that of {leaders}: "
            "all machines need the same run folder (runs=… on a shared disk)"
        )
    if checkpoint or (run / RESULTS).is_file():
        config = _with_split_of(run, _with_tokenizer_of(run, config))
        _refuse_another_config(config)
    elif origin := config.training.init_from or config.tokenizer.reuse:
        if not Path(origin).is_dir():
            key = "training.init_from" if config.training.init_from else "tokenizer.reuse"
            raise InputError(f"{key}={origin}: no such run or model folder")
        refuse_links_out(Path(origin))
        config = _with_tokenizer_of(Path(origin), config)
        if config.training.init_from:
            _refuse_another_model(config, Path(origin))
            _warn_of_another_split(config, Path(origin))
    if _is_finished(config):
        logger.info("%s is finished", run)
        if workers.is_leader:
            show_results(run)
        return
    if checkpoint is None and workers.is_leader and (twin := _unfinished_run_like(config)):
        logger.info("%s is an unfinished run with the same settings: name=%s goes on with it", twin, twin.name)
    if checkpoint is None and (run / RESULTS).is_file():
        raise InputError(
            f"{run} is finished and its checkpoints are gone: it cannot go on. Start a new run from its weights: "
            f"name=… training.init_from={run}"
        )
    if brought := checkpoint.folder if checkpoint else config.training.init_from or config.tokenizer.reuse:
        # The tokenizer decides how the corpus is cut: it is checked before that, and against the weights it is for.
        weights = Path(brought) / WEIGHTS
        if weights.is_file() or not config.tokenizer.reuse:
            refuse_another_tokenizer(run if checkpoint else Path(brought), weights)
    if config.training.shard and workers.size == 1:
        raise InputError("training.shard spreads the model over several workers: training.workers=N, or torchrun")
    if config.training.compile:
        check_compiler(workers.device)
    if doubt := doubt_about(config.training.precision, workers.device):
        logger.warning("training.%s", doubt)
    for doubt in advice_on_languages(config.data):
        logger.warning("%s", doubt)
    data = prepare(config, checkpoint is not None, workers)
    refuse_what_cannot_fit(config, data.tokenizers, workers)
    if checkpoint is None and not config.training.init_from and (advice := advice_on_size(config, data)):
        logger.warning("%s", advice)
    trainer = Trainer(config, data, workers, checkpoint)
    trainer.begin()
    trainer.fit()
    deliver(trainer)


def _with_tokenizer_of(origin: Path, config: TrainConfig) -> TrainConfig:
    """The config of a run whose tokenizer comes from another: how that one was trained is a fact, not a wish.

    Sampling is this run's own business.
    """
    if not (config.training.init_from or config.tokenizer.reuse):
        return config
    ours = config.tokenizer
    tokenizer = ours.model_copy(update=read_description(origin).tokenizer.model_dump())
    if tokenizer.kind == "char" and tokenizer.sampling > 0:
        raise InputError(f"tokenizer.sampling={tokenizer.sampling}: {origin} has characters, cut in one way only")
    replaced = [
        f"{name} {getattr(tokenizer, name)} instead of {getattr(ours, name)}"
        for name in type(ours).model_fields
        if getattr(tokenizer, name) != getattr(ours, name)
    ]
    if replaced:
        logger.info("the tokenizer is that of %s: %s", origin, ", ".join(replaced))
    return config.model_copy(update={"tokenizer": tokenizer})


def _with_split_of(run: Path, config: TrainConfig) -> TrainConfig:
    """The config of a run that goes on, with the version of the split that it was begun with.

    Without this, the command that began a run before there was a newer split would no longer go on with it.
    """
    version = read_config(run).data.split_version
    if version >= config.data.split_version:
        return config
    logger.info("%s was begun with an older split of its corpus and keeps it: data.split_version=%d", run, version)
    return config.model_copy(update={"data": config.data.with_split(version)})


def _refuse_another_model(config: TrainConfig, origin: Path) -> None:
    """Weights fit the model they were trained in alone (dropout aside)."""
    theirs = read_description(origin).model
    if theirs.architecture != config.model.architecture:
        raise InputError(
            f"training.init_from={origin} is a {theirs.architecture}, this run a {config.model.architecture}: "
            f"take one of model={', '.join(presets(theirs.architecture))}"
        )
    differing = {
        name: before
        for name, (before, _) in config_differences(theirs, config.model).items()
        if not name.endswith("dropout")
    }
    if differing:
        needed = " ".join(f"model.{name}={shown(before)}" for name, before in differing.items())
        raise InputError(f"training.init_from={origin} has another model than this run; add: {needed}")


def _warn_of_another_split(config: TrainConfig, origin: Path) -> None:
    """Another version of the split holds other pairs out: the weights may have learnt from those of this one."""
    try:
        theirs = read_config(origin).data
    except InputError:  # a model needs no config of its training
        return
    elsewhere = config_differences(theirs.with_split(config.data.split_version), config.data).keys()
    if theirs.split_version != config.data.split_version and elsewhere <= {"max_length", "weight"}:
        logger.warning(
            "training.init_from=%s learnt from data.split_version=%d, so some pairs that are held out now may have "
            "been among its training pairs; data.split_version=%d holds the same ones out",
            origin,
            theirs.split_version,
            theirs.split_version,
        )


def _refuse_another_config(config: TrainConfig) -> None:
    """A run goes on under the config it was begun with; of what makes it what it is, only max_updates may grow."""
    old = read_config(config.folder)
    differing = config_differences(old, config)
    if config.training.max_updates > old.training.max_updates:
        del differing["training.max_updates"]
    # An older config is read in today's terms, but the command that began the run says what stands in the file.
    written = written_settings(config.folder)
    differing = {key: pair for key, pair in differing.items() if key not in written or written[key] != pair[1]}
    if differing:
        lines = "\n".join(
            f"  {name}: {shown(before)} in the run, now {shown(now)}" for name, (before, now) in differing.items()
        )
        raise InputError(
            f"{config.folder} was begun with another config:\n{lines}\n"
            "Give this run a name of its own (name=…), or the old values to go on; training.max_updates alone may grow."
        )


def _unfinished_run_like(config: TrainConfig) -> Path | None:
    """Returns a run of another name that has the settings of this one and is not finished. Its user may have begun it
    under another default name."""
    for folder in sorted(Path(config.runs).iterdir()):
        if folder != config.folder and checkpoint_folders(folder) and not (folder / RESULTS).is_file():
            with contextlib.suppress(InputError):
                if not config_differences(read_config(folder), config):
                    return folder
    return None


def _is_finished(config: TrainConfig) -> bool:
    """A run that stopped early is, however long it might have been."""
    path = config.folder / RESULTS
    if not path.is_file():
        return False
    results = read_json(path)
    return results.get("stopped_early") is True or results.get("max_updates") == config.training.max_updates


@contextlib.contextmanager
def _removed_if_refused(run: Path, new: Sequence[Path]) -> Iterator[None]:
    """Leaves no folder behind when training was refused before it began: neither the run's nor those around it that
    were made for it, the innermost of ``new`` first."""
    try:
        yield
    except (InputError, OSError):  # such as the name of a file that is too long
        with contextlib.suppress(OSError):
            if not run.is_symlink() and {path.name for path in run.iterdir()} <= {LOG, LOCK}:
                shutil.rmtree(run)
                for folder in new[1:]:
                    folder.rmdir()  # unless another run has been begun there
        raise


@contextlib.contextmanager
def _only_process(run: Path) -> Iterator[None]:
    """Refuses a run that another process works on; the lock ends with its holder, however that ends."""
    path = run / LOCK
    with path.open("a") as lock:
        # A process that was refused removes the file together with the folder.
        if not try_lock(lock, path):
            raise RunError(f"{run}: another process is training this run")
        yield


@contextlib.contextmanager
def _log_file(path: Path) -> Iterator[None]:
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(message)s"))
    project = logging.getLogger("mt")
    project.addHandler(handler)
    try:
        yield
    finally:
        project.removeHandler(handler)
        handler.close()
