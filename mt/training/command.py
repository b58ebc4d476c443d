"""``python train.py``: starts a run, resumes it, or reports its results if it is finished."""

import contextlib
import errno
import functools
import logging
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from tqdm.contrib.logging import logging_redirect_tqdm

from mt.config import LANGUAGES, Resolved, ResolvedTrainConfig, TrainConfig, TrainingConfig
from mt.core.columns import release_memory
from mt.core.device import (
    check_compiler,
    choose_device,
    choose_precision,
    cpu_threads,
    keep_freed_memory,
    memory_bytes,
    return_freed_memory,
    warn_of_slow_precision,
)
from mt.core.errors import InputError, Interrupted, RunError, VisibleFormatter, brief
from mt.core.files import make_folder, recover_folders, try_lock
from mt.distributed.launch import run_workers
from mt.distributed.workers import Workers
from mt.models.build import build_for_sizes, build_meta_model
from mt.storage.folders import refuse_links_out
from mt.storage.run_folder import CHOICE_FILE, CONFIG, LOG, Results, read_results
from mt.text.glossary import read_terms
from mt.text.values import compile_patterns
from mt.tokenizer.tokenizer import EOS, TokenizerPair
from mt.training.choice import choose_settings
from mt.training.continuation import copy_base_run
from mt.training.final_outputs import show_results
from mt.training.hints import language_code_hint, log_hints, model_size_hint
from mt.training.initial_weights import freeze
from mt.training.preparation import prepare, read_corpus
from mt.training.provenance import warn_of_changed_data
from mt.training.run_state import run_state
from mt.training.trainer import Trainer

logger = logging.getLogger(__name__)

LOCK = ".lock"
MIN_BATCH_TOKENS_PER_WORKER = 1024
"""Minimum share of a batch per CPU worker for training.workers=auto (an estimate). With smaller shares, exchanging
gradients takes too much of the time."""
REPLICATED_BYTES = 4
"""Bytes per parameter for its fp32 value. Every worker must be able to hold all weights, even with training.shard."""
SHARDED_BYTES = 8
"""Bytes per trained parameter for the gradient and one moving average of the optimizer (AdamW has two). training.shard
divides them among the workers."""


def train(config: TrainConfig | ResolvedTrainConfig) -> Results:
    """Train the run in ``config.folder`` to its end: from the start, or from its newest checkpoint.

    If the run is finished already, log its results.

    Returns:
        The content of results.json.

    Raises:
        InputError: The config or the data cannot be used.
        RunError: Training diverged, or another process is training this run.
        Interrupted: A signal arrived. The state is saved.
    """
    resolved = config if isinstance(config, Resolved) else Resolved.of(config)
    training = resolved.config.training
    device = choose_device(training.device, "training.device")
    # Refuse a precision that the device lacks before any work is done.
    choose_precision(training.precision, device, "training.precision")
    work = functools.partial(_train_in_run_folder, resolved)
    run_workers(work, training, workers_on_cpu(training), "training.")
    return Results(**read_results(resolved.config.folder))


def workers_on_cpu(training: TrainingConfig) -> int:
    """Return the number of workers on a CPU for ``training.workers=auto``."""
    free_cores = cpu_threads() // max(1, training.threads)
    return max(1, min(free_cores, training.batch_tokens // MIN_BATCH_TOKENS_PER_WORKER))


def _train_in_run_folder(resolved: ResolvedTrainConfig, workers: Workers) -> None:
    """Train a run. All workers have to call this. The main process creates and locks the run folder and logs into it;
    the others wait until it exists."""
    started = time.perf_counter()
    with _run_folder(resolved.config) if workers.is_main else contextlib.nullcontext():
        workers.barrier()
        _train(resolved, workers, started)


def _train(resolved: ResolvedTrainConfig, workers: Workers, started: float) -> None:
    """Train a run, or log its results if it is finished. All workers have to call this, once the run folder exists.

    ``started`` is the time at which this worker began, by ``time.perf_counter``.
    """
    state = run_state(resolved)
    config = state.resolved.config
    update = state.checkpoint.progress.update if state.checkpoint else None
    main_update = workers.run_on_main(lambda: update)
    if update != main_update:
        raise RunError(
            f"{config.folder}: worker {workers.rank} finds the checkpoint of update {update}, but worker 0 that "
            f"of update {main_update}; set runs=… to a folder on a disk that all machines share"
        )
    if state.is_finished:
        logger.info("%s is finished", config.folder)
        if workers.is_main:
            show_results(config.folder)
            warn_of_changed_data(config)
        return
    if config.training.shard and workers.size == 1:
        raise InputError("training.shard=true needs more than one worker: set training.workers=N, or use torchrun")
    if config.training.compile:
        check_compiler(workers.device)
    warn_of_slow_precision(config.training.precision, workers.device, "training.precision")
    if config.training.freeze and not (config.training.minutes or config.choice):  # which choose the model
        with torch.device("meta"):
            freeze(build_for_sizes(config.model, EOS + 1, EOS + 1, config.tokenizer.joint), config.training)
    compile_patterns(config.text.patterns)  # refuses wrong patterns before any work is done, as the next line does
    terms = read_terms(config.text.terms, config.data.source_language, config.data.target_language)
    log_hints(*(language_code_hint(f"data.{key}", getattr(config.data, key)) for key in LANGUAGES))
    corpus, dropped = read_corpus(config, state.tokenizer_from, workers)
    resolved = state.resolved if state.checkpoint else choose_settings(state.resolved, corpus, workers, started)
    config = resolved.config
    minutes = config.training.minutes
    data = prepare(config, corpus, dropped, terms, state.tokenizer_from, workers)
    check_memory(config, data.tokenizers, workers)
    if state.checkpoint is None and not config.training.init_from:
        log_hints(model_size_hint(config.model, data.tokenizers, data.train))
    trainer = Trainer(resolved, data, workers, state.checkpoint)
    trainer.begin()
    # Return the memory that preparing the data took. From here on, each update needs as much memory as the one before.
    return_freed_memory()
    release_memory()
    keep_freed_memory()
    trainer.fit()
    trainer.finalize()
    if minutes is not None and state.checkpoint is None:
        total_minutes = (time.perf_counter() - started) / 60
        logger.info("the run took %.1f minutes; asked for: training.minutes=%g", total_minutes, minutes)


@contextlib.contextmanager
def _run_folder(config: TrainConfig) -> Iterator[None]:
    """Context manager: create the run folder, lock it, log into it, and repair it after an interrupted process.

    If training is refused before it starts, the created folders are removed.

    Raises:
        InputError: The folder cannot be created.
        RunError: Another process is training this run.
    """
    run = config.folder
    new = [folder for folder in (run, *run.parents) if not os.path.lexists(folder)]
    try:
        make_folder(run)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise InputError(
            f"runs={brief(config.runs)}: the folder {brief(str(run))} cannot be created: {error.strerror}; set runs=… "
            "to a folder with write permission"
        ) from error
    refuse_links_out(run)
    with _run_lock(run), _remove_if_refused(run, new), _log_to_file(run / LOG), logging_redirect_tqdm():
        recover_folders(run)
        if config.training.continue_from and not (run / CONFIG).exists():
            copy_base_run(config)
        yield


@contextlib.contextmanager
def _remove_if_refused(run: Path, new: list[Path]) -> Iterator[None]:
    """Context manager: remove a run folder without results after an InputError or OSError.

    It is removed if it has only log, lock and choice, or if it is new and has no config.yaml.

    Args:
        run: The run folder.
        new: The folders that were created, the innermost first: the run folder and its parents.
    """
    try:
        yield
    except (InputError, OSError):  # an OSError is, for example, a file name that is too long
        with contextlib.suppress(OSError):
            names = {path.name for path in run.iterdir()}
            if names <= {LOG, LOCK, CHOICE_FILE} or (run in new and CONFIG not in names):
                shutil.rmtree(run)
                for folder in new[1:]:
                    folder.rmdir()  # fails if the folder holds another run, which keeps it and its parents
        raise


@contextlib.contextmanager
def _run_lock(run: Path) -> Iterator[None]:
    """Context manager: lock the run folder until the end of the block or of the process.

    Raises:
        RunError: Another process is training this run.
    """
    path = run / LOCK
    with path.open("a") as lock:
        # This also fails if a process that was refused has just removed the file together with the folder.
        if not try_lock(lock, path):
            raise RunError(
                f"{run}: another process is training this run; wait until it ends, or choose another name (name=…)"
            )
        yield


@contextlib.contextmanager
def _log_to_file(path: Path) -> Iterator[None]:
    """Context manager: append the log records of this package to a file, and an exception that leaves the block."""
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(VisibleFormatter("%(asctime)s %(levelname)s %(message)s"))
    project = logging.getLogger("mt")
    project.addHandler(handler)
    try:
        yield
    except BaseException as error:
        is_bug = not isinstance(error, InputError | RunError | Interrupted)
        details = {"levelname": "ERROR", "msg": str(error), "exc_info": sys.exc_info() if is_bug else None}
        handler.emit(logging.makeLogRecord(details))
        raise
    finally:
        project.removeHandler(handler)
        handler.close()


def check_memory(config: TrainConfig, tokenizers: TokenizerPair, workers: Workers) -> None:
    """Raise InputError if weights, gradients and optimizer state alone need more memory than the device has.

    Without this check, the operating system would kill the process without a message.
    """
    model = build_meta_model(config.model, tokenizers)
    freeze(model, config.training)
    parameters, trained = model.parameter_count, model.trained_parameter_count
    needed = parameters * REPLICATED_BYTES + trained * SHARDED_BYTES / (workers.size if config.training.shard else 1)
    if workers.device.type == "cpu":
        needed *= workers.local_size  # they share its memory
    available = memory_bytes(workers.device)
    if needed > available:
        raise InputError(
            f"the model has {parameters:,} parameters, which need at least {needed / 1e9:,.1f} GB for training, but "
            f"{workers.device} has {available / 1e9:,.1f} GB of memory: choose a smaller model (model=…)"
        )
