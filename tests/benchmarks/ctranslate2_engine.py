"""CTranslate2 as our translator uses it, and called by hand: in turns within one process."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import ctranslate2
import sacrebleu
import torch
from sentencepiece import SentencePieceProcessor

from mt.config import DecodingConfig
from mt.translation.ctranslate2_conversion import write_model
from mt.translation.trained_model import open_model
from mt.translation.translator import Translator
from tests.benchmarks import task

BATCHES = ((32, "examples"), (64, "examples"), (1024, "tokens"))
"""Ways to call it by hand; the fastest counts."""
TURNS = 2
"""The fastest counts."""


def compare(run: Path, lines: list[str], references: list[str], compute_type: Any) -> dict[str, float]:
    """Sentences a second and BLEU of both, by beam size; cutting into pieces and joining included."""
    return {
        f"{name}_{beam_size}": value
        for beam_size in task.BEAM_SIZES
        for name, value in _compare(run, lines, references, compute_type, beam_size).items()
    }


def _compare(run: Path, lines: list[str], references: list[str], compute_type: Any, beam_size: int) -> dict[str, float]:
    config = DecodingConfig(beam_size=beam_size, engine="ctranslate2", compute_type=compute_type)
    ours = Translator.load(run, config, device="cpu")
    with TemporaryDirectory() as folder:
        write_model(open_model(run), Path(folder))
        engine = ctranslate2.Translator(folder, compute_type=compute_type, inter_threads=task.THREADS, intra_threads=1)
    torch.set_num_threads(task.THREADS)  # CTranslate2 has just set its own number
    tokenizer = SentencePieceProcessor(model_file=str(run / "tokenizer.model"))

    def by_hand(size: int, unit: str) -> list[str]:
        pieces = tokenizer.encode(lines, out_type=str)
        results = engine.translate_batch(pieces, beam_size=beam_size, max_batch_size=size, batch_type=unit)
        return tokenizer.decode([result.hypotheses[0] for result in results])

    ways: list[Callable[[], list[str]]] = [
        partial(ours.translate, lines),
        *(partial(by_hand, size, unit) for size, unit in BATCHES),
    ]
    seconds = [float("inf")] * len(ways)
    bleu = [0.0] * len(ways)
    for _ in range(TURNS):
        for number, way in enumerate(ways):
            start = time.perf_counter()
            translations = way()
            seconds[number] = min(seconds[number], time.perf_counter() - start)
            bleu[number] = sacrebleu.corpus_bleu(translations, [references]).score
    return {
        "ours": len(lines) / seconds[0],
        "by_hand": len(lines) / min(seconds[1:]),
        "ours_bleu": bleu[0],
        "by_hand_bleu": bleu[1],
    }
