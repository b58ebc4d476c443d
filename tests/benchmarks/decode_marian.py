"""``MarianMTModel.generate`` with the weights and the tokenizer of our run."""

from collections.abc import Callable
from pathlib import Path

import torch

from mt.config import DecodingConfig
from mt.data.batching import collate
from mt.text.tokenizer import PAD
from mt.translation.trained_model import open_model
from tests.benchmarks import task
from tests.benchmarks.marian import copy_into_marian, new_marian


def make_translate(run: Path, beam_size: int) -> Callable[[list[str]], list[str]]:
    """From lines to their translations; 1 is greedy search."""
    trained = open_model(run)
    marian = new_marian().eval()
    copy_into_marian(trained.model.state_dict(), marian)
    tokenizer = trained.tokenizers.source
    limits = DecodingConfig()

    def translate(lines: list[str]) -> list[str]:
        pieces = tokenizer.encode(lines)
        order = sorted(range(len(lines)), key=lambda number: len(pieces[number]))
        translations = [""] * len(lines)
        for start in range(0, len(order), task.SENTENCES_A_BATCH):
            numbers = order[start : start + task.SENTENCES_A_BATCH]
            source = collate(numbers, [pieces[n] for n in numbers], [[]] * len(numbers)).source  # (B, S)
            with torch.inference_mode():
                found = marian.generate(
                    input_ids=source,
                    attention_mask=source != PAD,
                    num_beams=beam_size,
                    do_sample=False,
                    max_new_tokens=int(source.shape[1] * limits.max_length_ratio) + limits.max_length_extra,
                )  # (B, T)
            for number, text in zip(numbers, tokenizer.decode(found.tolist()), strict=True):
                translations[number] = text
        return translations

    return translate
