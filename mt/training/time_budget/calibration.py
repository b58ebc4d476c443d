"""Measures how fast this machine trains a model and translates with it, by some real updates and searches.

The tokens are drawn at random: how long they take depends on their number alone. All workers measure at the same time,
so that the time they wait for each other is included.
"""

import statistics
import time
from collections.abc import Callable

import torch

from mt.config import DecodingConfig, ModelConfig, TrainConfig
from mt.core.device import autocast, choose_precision, tf32_in_recurrent_layers
from mt.data.batching import Batch, collate
from mt.distributed.replication import unsharded
from mt.distributed.workers import Workers
from mt.models.build import build_of_sizes
from mt.models.seq2seq import Seq2Seq
from mt.text.subwords.tokenizer import SPECIAL_TOKENS
from mt.training.checkpoint import Progress
from mt.training.feed import UpdateBatches
from mt.training.objective import Objective
from mt.training.time_budget.estimates import CorpusSize, Speed, estimated_tokens
from mt.training.updater import Updater
from mt.translation.engine import SearchRequest
from mt.translation.torch_engine import TorchEngine

CPU_BATCH_TOKENS = (256, 1024)
"""Target tokens of the two batches that are timed."""
GPU_BATCH_TOKENS = (1024, 16384)
"""On a GPU small batches take as long as larger ones."""
REPEATS = 3
"""Timed updates with each batch, whose median counts. An untimed one comes first, because it also allocates memory."""
CALIBRATION_SENTENCES = 64
"""Sentences of a timed search."""
MIN_SECONDS = 1e-9
"""Lower limit of a measured time, for noise that hides the difference between the batches."""


def measure_speed(
    config: TrainConfig, corpus: CorpusSize, workers: Workers, model_config: ModelConfig, vocabulary_size: int
) -> Speed:
    """Measure the speed of a model with random weights. All workers have to call this, and get the same result.

    Args:
        config: The config of the run, for the settings of training and decoding.
        corpus: Gives the lengths of the random sentences.
        workers: The processes that train together.
        model_config: The model.
        vocabulary_size: The number of tokens on the source side, and on the target side.
    """
    source = round(estimated_tokens(corpus.source_characters, config.data.source_language))
    target = round(estimated_tokens(corpus.target_characters, config.data.target_language))
    precision = choose_precision(config.training.precision, workers.device)
    torch.manual_seed(0)
    model = build_of_sizes(model_config, vocabulary_size, vocabulary_size, config.tokenizer.joint).to(workers.device)
    batch_tokens = CPU_BATCH_TOKENS if workers.device.type == "cpu" else GPU_BATCH_TOKENS
    small, large = (max(1, tokens // (target * workers.size)) for tokens in batch_tokens)
    batches = [
        _random_batch(pairs, source, target, vocabulary_size).to(workers.device)
        for pairs in (small, max(2 * small, large))
    ]
    training = config.training.model_copy(update={"objective": "cross_entropy"})
    config = config.model_copy(update={"training": training})
    updater = Updater(config, Objective(model, training), workers, precision, Progress())
    with tf32_in_recurrent_layers(precision):
        small_seconds, large_seconds = (_update_seconds(updater, batch) for batch in batches)
    with autocast(workers.device, precision), unsharded(updater.replica):
        greedy, beam = (
            _search_seconds(model.eval(), config.decoding, source, target, is_greedy) for is_greedy in (True, False)
        )
    small_tokens, large_tokens = (batch.target_tokens for batch in batches)
    token = max((large_seconds - small_seconds) / (large_tokens - small_tokens) / workers.size, MIN_SECONDS)
    update = max(small_seconds - small_tokens * workers.size * token, MIN_SECONDS)
    return workers.run_on_leader(lambda: Speed(update, token, greedy / workers.size, beam / workers.size))


def _random_batch(pairs: int, source_length: int, target_length: int, vocabulary_size: int) -> Batch:
    """Return a batch of random tokens. The lengths of its sentences include EOS."""
    source, target = (
        torch.randint(len(SPECIAL_TOKENS), vocabulary_size, (pairs, max(1, length - 1))).tolist()
        for length in (source_length, target_length)
    )
    return collate(range(pairs), source, target)


def _update_seconds(updater: Updater, batch: Batch) -> float:
    """Return the median seconds of REPEATS updates on a batch, which change the weights."""
    tokens = batch.target_tokens * updater.workers.size
    ready = UpdateBatches([batch], epoch=0, batch=0, source_tokens=0, target_tokens=tokens, padded_tokens=tokens)

    def update() -> None:
        updater.update(ready)
        updater.count()  # waits for the GPU

    update()
    return statistics.median(_seconds(update) for _ in range(REPEATS))


def _search_seconds(
    model: Seq2Seq, decoding: DecodingConfig, source_length: int, target_length: int, greedy: bool
) -> float:
    """Time a search. Return its seconds per sentence.

    The hypotheses of an untrained model do not end by themselves, so they are limited to the length of a usual target.
    """
    limited = decoding.model_copy(update={"max_length_ratio": 1e-6, "max_length_extra": target_length})
    engine = TorchEngine(model, limited)
    rows = 1 if greedy else decoding.beam_size
    sentences = max(1, min(CALIBRATION_SENTENCES, decoding.batch_tokens // (source_length * rows)))
    tokens = torch.randint(len(SPECIAL_TOKENS), model.output_weight.shape[0], (sentences, source_length - 1)).tolist()
    keys = [(number,) for number in range(sentences)]
    threads = torch.get_num_threads() if model.device.type == "cpu" else 1
    if threads > 1:
        torch.set_num_threads(1)  # because each core translates batches of its own
    engine.search(SearchRequest(tokens[:2], keys[:2], greedy=greedy))
    seconds = _seconds(lambda: engine.search(SearchRequest(tokens, keys, greedy=greedy)))
    if threads > 1:
        torch.set_num_threads(threads)
    return seconds / sentences / threads


def _seconds(work: Callable[[], object]) -> float:
    """Call ``work`` once. Return the seconds that it took."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
