"""Measures how fast this machine trains a model and translates with it, by some real updates and searches.

The tokens are drawn at random: how long they take depends on their number alone. All workers have to call this at the
same time, so what they lose by waiting for each other is measured, too.
"""

import functools
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from mt.config import DecodingConfig, ModelConfig, TrainConfig
from mt.core.device import autocast, choose_precision, tf32_in_recurrent_layers
from mt.data.batching import Batch, collate
from mt.distributed.replication import unsharded
from mt.distributed.workers import Workers
from mt.models.build import build_of_sizes
from mt.models.seq2seq import Seq2Seq
from mt.text.subwords.tokenizer import SPECIAL_TOKENS
from mt.training.objective import Objective, data_parallel
from mt.training.optimizer import Optimizer
from mt.training.time_budget.estimates import CorpusFacts, Speed, tokens_of_text
from mt.translation.engine import SearchRequest
from mt.translation.torch_engine import TorchEngine

BATCHES = {"cpu": (256, 1024)}
"""Target tokens of the two batches that are timed."""
GPU_BATCHES = (1024, 16384)
"""On a GPU small batches take as long as larger ones."""
REPEATS = 3
"""Updates with each batch; the median counts. One more comes first, because it also allocates memory."""
CALIBRATION_SENTENCES = 64
"""Sentences that are translated."""
MIN_SECONDS = 1e-9
"""Seconds. Where noise hides the difference between the batches, no figure may be zero or less."""


def measure_speed(
    config: TrainConfig, facts: CorpusFacts, workers: Workers, model_config: ModelConfig, vocabulary: int
) -> Speed:
    """Return the speed of a model, the same on every worker.

    Args:
        config: How it is trained, and how it translates the test set.
        facts: The corpus, whose lengths are taken.
        workers: All of them have to call this.
        model_config: The model.
        vocabulary: Its number of tokens, on either side.
    """
    source = round(tokens_of_text(facts.source_characters, config.data.source_language))
    target = round(tokens_of_text(facts.target_characters, config.data.target_language))
    precision = choose_precision(config.training.precision, workers.device)
    torch.manual_seed(0)
    model = build_of_sizes(model_config, vocabulary, vocabulary, config.tokenizer.joint).to(workers.device)
    small, large = (
        max(1, tokens // (target * workers.size)) for tokens in BATCHES.get(workers.device.type, GPU_BATCHES)
    )
    batches = [_random_batch(pairs, source, target, vocabulary) for pairs in (small, max(2 * small, large))]
    batches = [batch.to(workers.device) for batch in batches]
    with tf32_in_recurrent_layers(precision):
        (few, many), replica = _update_seconds(config, model, batches, precision, workers)
    with autocast(workers.device, precision), unsharded(replica):
        greedy, beam = (
            _search_seconds(model.eval(), config.decoding, source, target, is_greedy) for is_greedy in (True, False)
        )
    token = max((many - few) / (batches[1].target_tokens - batches[0].target_tokens) / workers.size, MIN_SECONDS)
    update = max(few - batches[0].target_tokens * workers.size * token, MIN_SECONDS)
    return workers.run_on_leader(lambda: Speed(update, token, greedy / workers.size, beam / workers.size))


def _random_batch(pairs: int, source: int, target: int, vocabulary: int) -> Batch:
    """Return a batch of so many pairs of the given lengths."""

    def side(length: int) -> list[list[int]]:
        return torch.randint(len(SPECIAL_TOKENS), vocabulary, (pairs, max(1, length - 1))).tolist()

    return collate(range(pairs), side(source), side(target))


def _update_seconds(
    config: TrainConfig, model: Seq2Seq, batches: list[Batch], precision: torch.dtype, workers: Workers
) -> tuple[list[float], nn.Module]:
    """Return the seconds of an update with each of the batches, and the replica that was updated."""
    settings = config.training.model_copy(update={"objective": "cross_entropy"})
    objective = Objective(model, settings)
    replica = data_parallel(objective, workers, precision)
    optimizer = Optimizer(model, settings.optimizer, settings.schedule, settings.max_updates, workers)
    optimizer.set_learning_rate(1)
    finite = torch.ones((), dtype=torch.bool, device=workers.device)
    model.train()

    def update(batch: Batch) -> None:
        with autocast(workers.device, precision):
            loss = replica(batch)
        (loss / batch.target_tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.clip_norm or 1.0)
        optimizer.step(finite)
        optimizer.zero_grad()
        loss.item()
        _wait(workers)

    return [_median(functools.partial(update, batch)) for batch in batches], replica


def _search_seconds(model: Seq2Seq, decoding: DecodingConfig, source: int, target: int, greedy: bool) -> float:
    """Return the seconds of a search for each sentence. Hypotheses of a model without training do not end, so their
    limit is the usual length of a target."""
    limited = decoding.model_copy(update={"max_length_ratio": 1e-6, "max_length_extra": target})
    engine = TorchEngine(model, limited)
    rows = 1 if greedy else decoding.beam_size
    sentences = max(1, min(CALIBRATION_SENTENCES, decoding.batch_tokens // (source * rows)))
    tokens = torch.randint(len(SPECIAL_TOKENS), model.output_weight.shape[0], (sentences, source - 1)).tolist()
    keys = [(number,) for number in range(sentences)]
    threads = torch.get_num_threads() if model.device.type == "cpu" else 1
    if threads > 1:
        torch.set_num_threads(1)  # each core translates a batch of its own
    engine.search(SearchRequest(tokens[:2], keys[:2], greedy=greedy))
    started = time.perf_counter()
    engine.search(SearchRequest(tokens, keys, greedy=greedy))
    seconds = time.perf_counter() - started
    if threads > 1:
        torch.set_num_threads(threads)
    return seconds / sentences / threads


def _median(work: Callable[[], object]) -> float:
    """Return the seconds that ``work`` usually takes."""
    work()
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _wait(workers: Workers) -> None:
    """Wait until a GPU has done its work."""
    if workers.device.type == "cuda":
        torch.cuda.synchronize(workers.device)
