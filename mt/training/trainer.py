"""Training a model from a config: prepare, update and validate, score. Run again, it goes on where it stopped."""

import contextlib
import dataclasses
import fcntl
import hashlib
import logging
import math
import platform
import subprocess
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import datasets
import numpy as np
import torch
from tqdm.contrib.logging import logging_redirect_tqdm

from mt import run_folder
from mt.config import DecodingConfig, TrainConfig
from mt.data.batching import TrainingBatches, evaluation_batches
from mt.data.corpus import Corpus, load_corpus
from mt.data.encoding import drop_long, encode_pairs
from mt.data.tokenizer import TokenizerPair
from mt.device import autocast, choose_device, choose_precision, keep_freed_memory
from mt.errors import InputError, Interrupted, RunError
from mt.files import write_atomically
from mt.model.build import build_model
from mt.model.seq2seq import Seq2Seq
from mt.randomness import key
from mt.run_folder import (
    LOG,
    PROVENANCE,
    RESULTS,
    SCORED,
    WEIGHTS,
    load_weights,
    read_config,
    read_json,
    weights_of,
    write_config,
    write_json,
    write_tensors,
)
from mt.scoring import corpus_bleu, corpus_chrf, corpus_scores
from mt.training.checkpoint import (
    CHECKPOINTS,
    Checkpoint,
    Progress,
    average_weights,
    checkpoint_folders,
    newest_checkpoint,
    save_checkpoint,
)
from mt.training.feed import UpdateBatches, feed
from mt.training.monitor import Monitor, peak_memory_bytes
from mt.training.objective import CrossEntropyObjective
from mt.training.optimizer import Optimizer
from mt.training.signals import StopRequest
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)


def train(config: TrainConfig) -> None:
    """Runs or continues the run in ``config.folder`` up to its test scores; reports it if it is finished.

    Raises InputError (config or data), RunError (diverged, another process at work), Interrupted (state saved).
    """
    keep_freed_memory()
    if config.training.threads:
        torch.set_num_threads(config.training.threads)
    device = choose_device(config.training.device)
    choose_precision(config.training.precision, device)
    run = config.folder
    checkpoint = _continued(config)
    if checkpoint and _is_finished(config):
        logger.info("%s is finished (extend it with a larger training.max_updates)", run)
        _show_results(run)
        return
    for folder in (config.training.init_from, config.tokenizer.reuse):
        if folder is not None:
            read_config(Path(folder))
    run.mkdir(parents=True, exist_ok=True)
    with _only_process(run), _log_file(run / LOG), logging_redirect_tqdm():
        data = _prepare(config, resuming=checkpoint is not None)
        trainer = Trainer(config, data, device, checkpoint)
        trainer.fit()
        trainer.finish()


# Before the first update --------------------------------------------------------------------------------------------


def _continued(config: TrainConfig) -> Checkpoint | None:
    """The checkpoint to go on from, if there is one and it belongs to this config."""
    if not (config.folder / CHECKPOINTS).is_dir():
        return None
    checkpoint = newest_checkpoint(config.folder)
    if checkpoint is None:
        return None
    old, new = read_config(config.folder).model_dump(mode="json"), config.model_dump(mode="json")
    longer = new["training"]["max_updates"] - old["training"]["max_updates"]
    # Where the run lies is no part of what it is.
    for values in (old, new):
        del values["runs"], values["name"]
    differing = _differences(old, new)
    if longer > 0:
        differing.pop("training.max_updates")
    if differing:
        lines = "\n".join(f"  {name}: {before!r} in the run, now {now!r}" for name, (before, now) in differing.items())
        raise InputError(
            f"{config.folder} was begun with another config:\n{lines}\n"
            "Give this run a name of its own (name=…), or the old values to go on; training.max_updates alone may grow."
        )
    return checkpoint


def _differences(old: object, new: object, prefix: str = "") -> dict[str, tuple[object, object]]:
    """The keys under which two configs differ, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        found: dict[str, tuple[object, object]] = {}
        for name in old | new:
            found |= _differences(old.get(name), new.get(name), f"{prefix}.{name}" if prefix else name)
        return found
    return {} if old == new else {prefix: (old, new)}


def _is_finished(config: TrainConfig) -> bool:
    path = config.folder / RESULTS
    if not path.is_file():
        return False
    results = read_json(path)
    return results.get("stopped_early") is True or results.get("max_updates") == config.training.max_updates


@contextlib.contextmanager
def _only_process(run: Path) -> Iterator[None]:
    """Refuses a run that another process works on; the lock ends with its holder, however that ends."""
    with (run / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunError(f"{run}: another process is training this run") from None
        yield


@contextlib.contextmanager
def _log_file(path: Path) -> Iterator[None]:
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    project = logging.getLogger("mt")
    project.addHandler(handler)
    try:
        yield
    finally:
        project.removeHandler(handler)
        handler.close()


@dataclasses.dataclass(frozen=True)
class PreparedData:
    """A corpus in pieces."""

    corpus: Corpus
    tokenizers: TokenizerPair
    train: datasets.Dataset
    valid: datasets.Dataset
    """Encoded, without the pairs that are too long for the loss."""


def _prepare(config: TrainConfig, resuming: bool) -> PreparedData:
    corpus = load_corpus(config.data)
    for report in corpus.report:
        logger.info("%s", report)
    brought = config.folder if resuming else config.training.init_from or config.tokenizer.reuse
    if brought is not None:
        tokenizers = TokenizerPair.load(Path(brought))
    else:
        logger.info("training the tokenizer (%s, %d pieces)", config.tokenizer.kind, config.tokenizer.vocabulary_size)
        tokenizers = TokenizerPair.train(
            corpus.train, config.data.source_language, config.data.target_language, config.tokenizer, config.seed
        )
    train, too_long = drop_long(encode_pairs(corpus.train, tokenizers), config.data.max_length)
    valid, _ = drop_long(encode_pairs(corpus.valid, tokenizers), config.data.max_length)
    if too_long:
        logger.info("train: %s pairs dropped: more than data.max_length=%d pieces", f"{too_long:,}", config.data.max_length)
    if len(train) == 0:
        raise InputError(f"no training pair has at most data.max_length={config.data.max_length} pieces")
    if len(valid) == 0:
        raise InputError(f"no validation pair has at most data.max_length={config.data.max_length} pieces")
    return PreparedData(corpus, tokenizers, train, valid)


def _provenance(data: PreparedData) -> dict:
    """What a run was made from and with."""
    try:
        revision = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        revision = None
    packages = ("torch", "sentencepiece", "datasets", "sacrebleu", "hydra-core", "numpy")
    return {
        "code_revision": revision,
        "libraries": {package: version(package) for package in packages},
        "python": platform.python_version(),
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "threads": torch.get_num_threads(),
        },
        "data": {
            split: {"pairs": len(pairs), "sha256": _fingerprint(pairs)}
            for split, pairs in (("train", data.train), ("valid", data.corpus.valid), ("test", data.corpus.test))
        },
    }


def _fingerprint(pairs: datasets.Dataset) -> str:
    digest = hashlib.sha256()
    for batch in pairs.select_columns(["source", "target"]).iter(batch_size=10_000):
        digest.update("\n".join(batch["source"] + batch["target"]).encode())
    return digest.hexdigest()


# Training -----------------------------------------------------------------------------------------------------------


class Trainer:
    """One model, its optimizer, its data and where they stand."""

    def __init__(
        self, config: TrainConfig, data: PreparedData, device: torch.device, checkpoint: Checkpoint | None
    ) -> None:
        self.config = config
        self.data = data
        self.device = device
        self.precision = choose_precision(config.training.precision, device)
        self.run = config.folder
        settings = config.training

        torch.manual_seed(key(config.seed, "weights"))
        self.model: Seq2Seq = build_model(config.model, data.tokenizers)
        if settings.init_from and not checkpoint:
            load_weights(self.model, Path(settings.init_from) / WEIGHTS)
        self.model.to(device)
        self.objective = CrossEntropyObjective(self.model, settings.label_smoothing)
        self.optimizer = Optimizer(self.model, settings.optimizer, settings.schedule, settings.max_updates)
        self.scaler = torch.amp.GradScaler(device.type, enabled=self.precision == torch.float16)
        self.progress = Progress()
        self.interval_loss = torch.zeros((), device=device)
        """On the device: reading it each update would make the GPU wait."""
        self.batches = TrainingBatches(
            data.train, data.tokenizers, config.tokenizer.sampling, config.seed, settings.batch_tokens
        )
        self.stop = StopRequest()

        provenance = _provenance(data)
        if checkpoint:
            self._restore(checkpoint, provenance)
        else:
            data.tokenizers.save(self.run)
        # Only now is there something to go on from: a run that failed on its data leaves no config behind.
        write_config(self.run, config)
        write_json(self.run / PROVENANCE, provenance)
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        logger.info(
            "%s: %s parameters, vocabulary %s, on %s in %s; %d batches an epoch, %d updates",
            config.model.architecture,
            f"{parameters:,}",
            f"{data.tokenizers.target.vocabulary_size:,}",
            device,
            str(self.precision).removeprefix("torch."),
            self.batches.batches_in_epoch(self.progress.epoch),
            settings.max_updates,
        )

    def _restore(self, checkpoint: Checkpoint, provenance: dict) -> None:
        recorded = read_json(self.run / PROVENANCE).get("data")
        if recorded != provenance["data"]:
            raise InputError(f"{self.run}: the corpus has changed since this run began; give the run a new name (name=…)")
        load_weights(self.model, checkpoint.folder / WEIGHTS)
        self.optimizer.load_state_tensors(checkpoint.optimizer_tensors())
        self.progress = checkpoint.progress
        self.interval_loss.fill_(self.progress.interval_loss)
        if self.progress.scaler:
            self.scaler.load_state_dict(self.progress.scaler)
        logger.info("going on from update %d", self.progress.update)

    def fit(self) -> None:
        """Updates and validates until max_updates or until patience runs out."""
        settings, progress = self.config.training, self.progress
        with self.stop, Monitor(self.run, progress.update, settings.max_updates, progress.metrics_bytes) as monitor:
            if progress.validation_due:
                self._validate(monitor)
            updates = feed(self.batches, progress.epoch, progress.batch, settings.accumulate, self.device)
            with contextlib.closing(updates):
                while progress.update < settings.max_updates and not self._out_of_patience():
                    started = time.perf_counter()
                    norm, rate = self._update(next(updates))
                    seconds = time.perf_counter() - started
                    progress.seconds += seconds
                    progress.interval_seconds += seconds
                    monitor.advance()
                    last = progress.update == settings.max_updates
                    if progress.update % settings.log_every == 0 or last:
                        self._log(monitor, norm, rate)
                    self._interrupt_if_asked(monitor)
                    if progress.update % settings.validate_every == 0 or last:
                        self._validate(monitor)
                    elif settings.save_every and progress.update % settings.save_every == 0:
                        self._save(monitor)
            if self._out_of_patience():
                logger.info("stopped early: no better %s in %d validations", settings.metric, settings.patience)

    def _log(self, monitor: Monitor, norm: torch.Tensor, rate: float) -> None:
        """The means since the last time, and a new interval."""
        progress = self.progress
        if progress.interval_target_tokens == 0:  # all updates since were bad
            return
        loss = self.interval_loss.item() / progress.interval_target_tokens
        speed = progress.interval_target_tokens / progress.interval_seconds
        monitor.record(
            "train",
            progress.update,
            {
                "epoch": progress.epoch,
                "loss": loss,
                "learning_rate": rate,
                "gradient_norm": norm.item(),
                "target_tokens_per_second": speed,
                "padding_share": 1 - progress.interval_target_tokens / progress.interval_padded_tokens,
                "source_tokens": progress.source_tokens,
                "target_tokens": progress.target_tokens,
                "bad_updates": progress.bad_updates,
                "seconds": progress.seconds,
            },
        )
        monitor.show_training(progress.update, loss, speed)
        self.interval_loss.zero_()
        progress.interval_target_tokens = progress.interval_padded_tokens = 0
        progress.interval_seconds = 0.0

    def _update(self, ready: UpdateBatches) -> tuple[torch.Tensor, float]:
        """One optimizer step on the mean loss of a real target token; returns the gradient's norm before clipping and
        the learning rate."""
        settings, progress = self.config.training, self.progress
        target_tokens = sum(batch.target_tokens for batch in ready.batches)
        self.model.train()
        # Dropout depends on the update alone, so a resumed run drops what the undisturbed one would have dropped.
        torch.manual_seed(key(self.config.seed, "dropout", progress.update))
        total = torch.zeros((), device=self.device)
        for batch in ready.batches:
            with autocast(self.device, self.precision):
                loss = self.objective(batch)
            self.scaler.scale(loss / target_tokens).backward()
            total += loss.detach()
        for part in self.optimizer.parts:
            self.scaler.unscale_(part)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip_norm or math.inf)
        finite = bool(norm.isfinite())
        rate = self.optimizer.set_learning_rate(progress.update + 1)
        if finite:
            for part in self.optimizer.parts:
                self.scaler.step(part)
        self._count_bad(finite)
        self.scaler.update()
        self.optimizer.zero_grad()
        progress.update += 1
        progress.epoch, progress.batch = ready.epoch, ready.batch
        progress.source_tokens += sum(batch.source_tokens for batch in ready.batches)
        progress.target_tokens += target_tokens
        if finite:
            self.interval_loss += total
            progress.interval_target_tokens += target_tokens
            progress.interval_padded_tokens += sum(batch.target_output.numel() for batch in ready.batches)
        return norm.detach(), rate

    def _count_bad(self, finite: bool) -> None:
        """Non-finite gradients never reach the weights; too many in a row end the run."""
        progress = self.progress
        # fp16 overflows now and then until the scale fits: GradScaler's business.
        if finite or (self.scaler.is_enabled() and self.scaler.get_scale() > 1):
            progress.consecutive_bad_updates = 0
            return
        progress.bad_updates += 1
        progress.consecutive_bad_updates += 1
        if progress.consecutive_bad_updates == 1:
            logger.warning("update %d: the gradient is not finite; weights left as they were", progress.update + 1)
        if progress.consecutive_bad_updates >= self.config.training.max_bad_steps:
            raise RunError(
                f"diverged: {progress.consecutive_bad_updates} updates in a row without a finite gradient; the last "
                f"checkpoint stands. Try a smaller training.optimizer.learning_rate or precision=fp32."
            )

    def _out_of_patience(self) -> bool:
        patience = self.config.training.patience
        return bool(patience) and self.progress.validations_without_gain >= patience

    def _validate(self, monitor: Monitor) -> None:
        """Loss over all validation pairs, BLEU over some; keeps the best weights; saves a checkpoint."""
        settings, progress = self.config.training, self.progress
        progress.validation_due = True
        loss = self._validation_loss(monitor)
        pairs = _spread(self.data.corpus.valid, settings.valid_bleu_pairs)
        greedy = DecodingConfig(beam_size=1, max_source_length=self.config.decoding.max_source_length)
        translator = self._translator(greedy)
        sources, references = list(pairs["source"]), list(pairs["target"])
        hypotheses = translator.translate(sources, after_batch=lambda done: self._interrupt_if_asked(monitor))
        bleu = corpus_bleu(hypotheses, references, self.config.data.target_language)
        chrf = corpus_chrf(hypotheses, references)
        progress.validation_due = False
        score = bleu if settings.metric == "bleu" else -loss
        better = progress.best_score is None or score > progress.best_score
        if better:
            progress.best_score, progress.best_update = score, progress.update
        progress.validations_without_gain = 0 if better else progress.validations_without_gain + 1
        logger.info(
            "update %d  validation loss %.3f  BLEU %.2f  chrF %.2f%s",
            progress.update,
            loss,
            bleu,
            chrf,
            "  (best)" if better else "",
        )
        values = {"epoch": progress.epoch, "loss": loss, "bleu": bleu, "chrf": chrf}
        monitor.record("valid", progress.update, values | {"target_tokens": progress.target_tokens, "seconds": progress.seconds})
        samples = [len(sources) // 6, len(sources) // 2, len(sources) * 5 // 6]
        monitor.show_samples(progress.update, [(sources[i], references[i], hypotheses[i]) for i in sorted(set(samples))])
        monitor.show_attention(progress.update, translator.attention(sources[samples[0]], references[samples[0]]))
        if better:
            write_tensors(self.run / WEIGHTS, weights_of(self.model))
        self._save(monitor)

    @torch.inference_mode()
    def _validation_loss(self, monitor: Monitor) -> float:
        """Cross-entropy in nats a target token, without label smoothing."""
        self.model.eval()
        self.objective.eval()
        total, tokens = torch.zeros((), device=self.device, dtype=torch.float64), 0
        for batch in evaluation_batches(self.data.valid, self.config.training.batch_tokens):
            with autocast(self.device, self.precision):
                total += self.objective(batch.to(self.device))
            tokens += batch.target_tokens
            self._interrupt_if_asked(monitor)
        self.objective.train()
        return total.item() / tokens

    def _translator(self, decoding: DecodingConfig) -> Translator:
        return Translator(
            self.model, self.data.tokenizers, self.config.data.target_language, decoding, self.precision
        )

    def _save(self, monitor: Monitor) -> None:
        self.progress.metrics_bytes = monitor.flush()
        self.progress.scaler = self.scaler.state_dict()
        self.progress.interval_loss = self.interval_loss.item()
        save_checkpoint(
            self.run,
            self.progress,
            weights_of(self.model),
            self.optimizer.state_tensors(),
            self.config.training.keep_last,
        )

    def _interrupt_if_asked(self, monitor: Monitor) -> None:
        if self.stop.signal_number is not None:
            self._interrupt(monitor)

    def _interrupt(self, monitor: Monitor) -> None:
        assert self.stop.signal_number is not None
        settings, progress = self.config.training, self.progress
        due = progress.update % settings.validate_every == 0 or progress.update == settings.max_updates
        progress.validation_due = progress.validation_due or due
        self._save(monitor)
        raise Interrupted(
            self.stop.signal_number,
            f"stopped at update {progress.update}, state saved in {self.run}; the same command goes on",
        )

    # After the last update ------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Settles which weights the run delivers, translates the test set with them and writes the scores."""
        settings, progress = self.config.training, self.progress
        if settings.weights == "last":
            write_tensors(self.run / WEIGHTS, weights_of(self.model))
        elif settings.weights == "average":
            folders = checkpoint_folders(self.run)[-settings.average :]
            write_tensors(self.run / WEIGHTS, average_weights(folders))
        load_weights(self.model, self.run / WEIGHTS)
        test = self.data.corpus.test
        sources, references = list(test["source"]), list(test["target"])
        logger.info("translating %s test sentences", f"{len(sources):,}")
        started = time.perf_counter()
        hypotheses = self._translator(self.config.decoding).translate(sources)
        seconds = time.perf_counter() - started
        scores = corpus_scores(hypotheses, references, self.config.data.target_language)
        folder = self.run / SCORED
        folder.mkdir(exist_ok=True)
        for name, lines in (("source", sources), ("reference", references), ("hypothesis", hypotheses)):
            write_atomically(folder / f"test.{name}", "".join(f"{line}\n" for line in lines))
        provenance = read_json(self.run / PROVENANCE)
        provenance["weights_sha256"] = run_folder.checksum(weights_of(self.model))
        write_json(self.run / PROVENANCE, provenance)
        results = dataclasses.asdict(scores) | {
            "test_pairs": len(sources),
            "decoding_sentences_per_second": len(sources) / seconds,
            "parameters": sum(parameter.numel() for parameter in self.model.parameters()),
            "weights": settings.weights,
            "best_valid_score": progress.best_score,
            "best_update": progress.best_update,
            "updates": progress.update,
            "max_updates": settings.max_updates,
            "stopped_early": progress.update < settings.max_updates,
            "source_tokens": progress.source_tokens,
            "target_tokens": progress.target_tokens,
            "training_minutes": progress.seconds / 60,
            "peak_memory_bytes": peak_memory_bytes(self.device),
        }
        with Monitor(self.run, progress.update, settings.max_updates, progress.metrics_bytes) as monitor:
            final = {"bleu": scores.bleu, "chrf": scores.chrf, "ter": scores.ter}
            monitor.record("test", progress.update, final)
            monitor.show_hyperparameters(_flat(self.config.model_dump(mode="json")), final)
            monitor.flush()
        write_json(self.run / RESULTS, results)
        _show_results(self.run)


def _spread(pairs: datasets.Dataset, count: int) -> datasets.Dataset:
    """``count`` pairs at even distances: corpora are often sorted."""
    if count >= len(pairs):
        return pairs
    return pairs.select(np.linspace(0, len(pairs) - 1, count).round().astype(int))


def _flat(values: dict, prefix: str = "") -> dict[str, str | int | float | bool]:
    """Nested config values under dotted names, as TensorBoard's table wants them."""
    flat: dict[str, str | int | float | bool] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value if isinstance(value, str | int | float | bool) else str(value)
    return flat


def _show_results(run: Path) -> None:
    results = read_json(run / RESULTS)
    rows = [
        ("test BLEU", f"{results['bleu']:.2f}", results["bleu_signature"]),
        ("test chrF2", f"{results['chrf']:.2f}", results["chrf_signature"]),
        ("test TER", f"{results['ter']:.2f}", results["ter_signature"]),
        ("parameters", f"{results['parameters']:,}", ""),
        ("updates", f"{results['updates']:,}", f"best on validation at {results['best_update']:,}"),
        ("training", f"{results['training_minutes']:.1f} min", f"{results['target_tokens']:,} target tokens"),
        ("model", str(run / WEIGHTS), f"translate with: python translate.py run={run}"),
        ("scored lines", str(run / SCORED), ""),
        ("curves", str(run / run_folder.TENSORBOARD), "watch with: make board"),
    ]
    width = max(len(value) for _, value, _ in rows)
    logger.info("\n%s", "\n".join(f"  {name:<14}{value:<{width}}  {note}".rstrip() for name, value, note in rows))
