"""``python train.py``: begins a run, goes on with it, or reports that it is finished."""

import contextlib
import errno
import functools
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
from tqdm.contrib.logging import logging_redirect_tqdm

from mt.config import TrainConfig
from mt.config.resolved import Resolved
from mt.core.columns import release_memory
from mt.core.device import (
    check_compiler,
    choose_device,
    choose_precision,
    cpu_threads,
    keep_freed_memory,
    limit_kernel_caches,
    return_freed_memory,
    slow_precision_warning,
)
from mt.core.errors import InputError, RunError
from mt.core.files import make_folder, recover_folders, try_lock
from mt.core.terminal import VisibleFormatter
from mt.core.wording import brief
from mt.data.corpus import Corpus
from mt.distributed.local_workers import local_workers
from mt.distributed.process_group import RankInfo, rank_info_from_torchrun, under_torchrun
from mt.distributed.workers import Workers, working_together
from mt.storage.folders import refuse_links_out
from mt.storage.run_folder import CHOICE, LOG
from mt.text.placeholders.values import own_patterns
from mt.training.advice import advice_on_languages, advice_on_size
from mt.training.checkpoint import Progress
from mt.training.delivery import show_results
from mt.training.memory import refuse_what_cannot_fit
from mt.training.preparation import prepare, read_corpus
from mt.training.run_state import RunState, run_state
from mt.training.time_budget.estimates import seconds_after_training
from mt.training.time_budget.overrun import OverrunMonitor
from mt.training.time_budget.recorded_choice import RecordedChoice, make_choice
from mt.training.trainer import Trainer
from mt.training.worker_count import worker_count

logger = logging.getLogger(__name__)

LOCK = ".lock"


def train(config: TrainConfig | Resolved[TrainConfig]) -> None:
    """Begin or continue the run in ``config.folder``, and train up to the scores on the test set. Show the results if
    the run is finished already.

    Raises:
        InputError: The config or the data cannot be used.
        RunError: Training diverged, or another process is at work on this run.
        Interrupted: A signal arrived. The state is saved.
    """
    _start(config if isinstance(config, Resolved) else Resolved.of(config), _train_as_worker)


def explain(resolved: Resolved[TrainConfig]) -> None:
    """Print the choice of ``training.minutes`` for a run, new or begun, without training.

    Raises:
        InputError: The config or the data cannot be used.
    """
    if resolved.config.training.minutes is None and resolved.config.choice is None:
        raise InputError("--explain shows what is chosen for a number of minutes: add training.minutes=N")
    _start(resolved, _explain_as_worker)


def _start(
    resolved: Resolved[TrainConfig], work: Callable[[Resolved[TrainConfig], int, RankInfo | None], None]
) -> None:
    """Call ``work`` in as many processes as the config says."""
    config = resolved.config
    cpu_threads()  # remembers the default before torch is given another number
    device = choose_device(config.training.device, "training.device")
    choose_precision(
        config.training.precision, device, "training.precision"
    )  # refuses what the device cannot do before any work is done
    if under_torchrun():
        if config.training.workers not in (1, "auto"):
            raise InputError(
                f"training.workers={config.training.workers}: torchrun sets the number of workers with "
                "--nproc-per-node; leave training.workers out"
            )
        work(resolved, config.training.threads, rank_info_from_torchrun())
        return
    size = worker_count(config.training, device)
    if size == 1:
        work(resolved, config.training.threads, None)
        return
    share = functools.partial(work, resolved, config.training.threads or max(1, cpu_threads() // size))
    with local_workers(size, share) as info:
        share(info)


def _explain_as_worker(resolved: Resolved[TrainConfig], threads: int, info: RankInfo | None) -> None:
    config = resolved.config
    started = time.perf_counter()
    limit_kernel_caches()
    torch.set_num_threads(threads or cpu_threads())
    with working_together(choose_device(config.training.device, "training.device"), info) as workers:
        state = run_state(resolved)
        if state.checkpoint or state.is_finished:
            recorded = RecordedChoice.read(config.folder)
        else:
            corpus, _ = read_corpus(state.config, state.tokenizer_from, workers)
            _, recorded = make_choice(state.resolved, corpus, workers, started)
        if workers.is_leader:
            print(recorded.table(state.resolved), flush=True)


def _train_as_worker(resolved: Resolved[TrainConfig], threads: int, info: RankInfo | None) -> None:
    config = resolved.config
    started = time.perf_counter()
    limit_kernel_caches()
    torch.set_num_threads(threads or cpu_threads())
    with working_together(choose_device(config.training.device, "training.device"), info) as workers:
        if not workers.is_leader:
            workers.barrier()
            _train(resolved, workers, started)
            return
        run = config.folder
        new = [folder for folder in (run, *run.parents) if not os.path.lexists(folder)]
        try:
            make_folder(run)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise
            raise InputError(
                f"runs={brief(config.runs)}: the folder {brief(str(run))} cannot be made: {error.strerror}"
            ) from error
        refuse_links_out(run)
        with _only_process(run), _removed_if_refused(run, new), _log_file(run / LOG), logging_redirect_tqdm():
            recover_folders(run)
            workers.barrier()
            _train(resolved, workers, started)


def _train(resolved: Resolved[TrainConfig], workers: Workers, started: float) -> None:
    """Do the part of ``train`` that every worker takes part in, once the leader has made the run folder.

    Args:
        resolved: The config of the command line.
        workers: The processes that train together.
        started: The time at which they began, by ``time.perf_counter``.
    """
    state = run_state(resolved)
    _refuse_another_checkpoint(state, workers)
    config = state.config
    if state.is_finished:
        logger.info("%s is finished", config.folder)
        if workers.is_leader:
            show_results(config.folder)
        return
    if config.training.shard and workers.size == 1:
        raise InputError("training.shard=true needs several workers: set training.workers=N, or use torchrun")
    if config.training.compile:
        check_compiler(workers.device)
    if doubt := slow_precision_warning(config.training.precision, workers.device):
        logger.warning("training.%s", doubt)
    own_patterns(config.text.terms, config.text.patterns)  # refuses what cannot be used before any work is done
    for doubt in advice_on_languages(config.data):
        logger.warning("%s", doubt)
    corpus, dropped = read_corpus(config, state.tokenizer_from, workers)
    resolved = state.resolved if state.checkpoint else _choose_settings(state.resolved, corpus, workers, started)
    config = resolved.config
    data = prepare(config, corpus, dropped, state.tokenizer_from, workers)
    refuse_what_cannot_fit(config, data.tokenizers, workers)
    begins_from_scratch = state.checkpoint is None and not config.training.init_from
    if begins_from_scratch and (advice := advice_on_size(config.model, data.tokenizers, data.train)):
        logger.warning("%s", advice)
    trainer = Trainer(config, data, workers, state.checkpoint, resolved.origins)
    trainer.begin()
    # What preparing the data took is given back. From now on, each step asks for the same memory again.
    return_freed_memory()
    release_memory()
    keep_freed_memory()
    has_budget = state.resolved.is_given("training.minutes") and config.training.minutes and workers.is_leader
    budget = _time_budget(config, trainer.progress, started) if has_budget else None
    trainer.fit(budget)
    trainer.deliver()
    if config.training.minutes is not None and state.checkpoint is None:
        minutes = (time.perf_counter() - started) / 60
        logger.info("%.1f minutes in all; asked for: training.minutes=%g", minutes, config.training.minutes)


def _choose_settings(
    resolved: Resolved[TrainConfig], corpus: Corpus, workers: Workers, started: float
) -> Resolved[TrainConfig]:
    """Choose the open settings of a new run for ``training.minutes``, and write the choice into the run folder.

    Without ``training.minutes``, return the config unchanged, and remove the choice of a run that never came to a
    checkpoint.
    """
    folder = resolved.config.folder
    if resolved.config.training.minutes is None and resolved.config.choice is None:
        if workers.is_leader:
            (folder / CHOICE).unlink(missing_ok=True)
        return resolved
    chosen, recorded = make_choice(resolved, corpus, workers, started)
    logger.info("chosen for training.minutes=%g:\n%s", recorded.minutes, recorded.table(resolved))
    if workers.is_leader:
        recorded.write(folder)
    return chosen


def _time_budget(config: TrainConfig, progress: Progress, started: float) -> OverrunMonitor:
    """Return the time budget of a run with ``training.minutes``. Its test set takes as long as the choice measured."""
    recorded = RecordedChoice.read(config.folder)
    after = seconds_after_training(recorded.corpus, recorded.speed)
    return OverrunMonitor(config.training, progress, after, lambda: time.perf_counter() - started)


def _refuse_another_checkpoint(state: RunState, workers: Workers) -> None:
    """Raise RunError unless all workers found the same checkpoint."""
    update = state.checkpoint.progress.update if state.checkpoint else None
    leaders = workers.run_on_leader(lambda: update)
    if update != leaders:
        raise RunError(
            f"{state.config.folder}: worker {workers.rank} finds the checkpoint of update {update}, the first one that "
            f"of {leaders}: all machines need the same run folder (runs=… on a shared disk)"
        )


@contextlib.contextmanager
def _removed_if_refused(run: Path, new: Sequence[Path]) -> Iterator[None]:
    """Context manager: if training is refused before it begins, remove the run folder, unless it holds more than the
    log, the lock and the choice, and then its new parent folders.

    Args:
        run: The run folder.
        new: The folders that were made for the run, the innermost first.
    """
    try:
        yield
    except (InputError, OSError):  # an OSError is, for example, a file name that is too long
        with contextlib.suppress(OSError):
            if not run.is_symlink() and {path.name for path in run.iterdir()} <= {LOG, LOCK, CHOICE}:
                shutil.rmtree(run)
                for folder in new[1:]:
                    folder.rmdir()  # fails, so that the folder stays, if it holds another run
        raise


@contextlib.contextmanager
def _only_process(run: Path) -> Iterator[None]:
    """Lock the run for the time of this context. The lock ends with the process that holds it, however that ends.

    Raises:
        RunError: Another process is working on the run.
    """
    path = run / LOCK
    with path.open("a") as lock:
        # This also fails if a process that was refused has just removed the file together with the folder.
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
