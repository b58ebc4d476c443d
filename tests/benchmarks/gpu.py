"""Checks and times the base models on one GPU, the way train.py and translate.py run them.

    python -m tests.benchmarks.gpu [device=cuda] [models=transformer_base,rnn_attention_base] [updates=300]
                                   [batch_tokens=12500] [pairs=60000] [output=gpu.json]

Trains each model on made-up pairs of sentences of real lengths, in bf16 (fp16 where the card has no bf16); compares
loss and gradients of one batch with those of the CPU in fp32; decodes with beam 5 and greedily; trains a Transformer
once more with torch.compile. Some minutes on a fast card.
"""

import contextlib
import json
import logging
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor

from mt.cli.composition import compose_jobs
from mt.config import DecodingConfig, TrainConfig, TrainingConfig, TransformerConfig
from mt.core.device import autocast, choose_device, choose_precision
from mt.data.batching import Batch, collate
from mt.models.dropout import Dropout
from mt.models.seq2seq import Seq2Seq
from mt.storage.run_folder import METRICS_LOG
from mt.training.command import train
from mt.training.objective import Objective
from mt.translation.trained_model import open_model
from mt.translation.translator import Translator
from tests import options
from tests.benchmarks import machine, task

WORDS = 20_000
SENTENCES = 1000
"""How many are decoded."""
LOG_EVERY = 50
"""Updates over which a speed is a mean; the first of them is warm-up."""


class Options(options.Options):
    device: str = "cuda"
    models: str = "transformer_base,rnn_attention_base"
    updates: int = 300
    batch_tokens: int = 12_500
    pairs: int = 60_000
    output: Path = Path("gpu.json")


def write_corpus(folder: Path, pairs: int) -> None:
    """Sentences as long as news (26 words on average), words as frequent as in language (Zipf), each word translated
    by another."""
    random = np.random.default_rng(1)
    letters = np.array(list("abcdefghijklmnopqrstuvwxyz"))
    vocabulary = ["".join(random.choice(letters, random.integers(2, 11))) for _ in range(2 * WORDS)]
    probability = 1 / np.arange(1, WORDS + 1)
    probability /= probability.sum()
    for split, count in (("train", pairs), ("valid", 500), ("test", SENTENCES)):
        lengths = np.clip(random.lognormal(3.1, 0.55, count).astype(int), 1, 100)
        drawn = np.split(random.choice(WORDS, lengths.sum(), p=probability), lengths.cumsum()[:-1])
        for language, offset in (("xx", 0), ("yy", WORDS)):
            lines = (" ".join(vocabulary[word + offset] for word in words) for words in drawn)
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in lines))


def compose(folder: Path, model: str, options: Options, compiled: bool = False) -> TrainConfig:
    splits = [f"data.{split}=[{folder}/{split}.xx,{folder}/{split}.yy]" for split in ("train", "valid", "test")]
    settings = {
        "runs": folder / "runs", "name": f"{model}-compiled" if compiled else model, "model": model,
        "tokenizer.vocabulary_size": 32_000, "training.device": options.device,
        "training.batch_tokens": options.batch_tokens, "training.max_updates": options.updates,
        "training.validate_every": options.updates, "training.valid_bleu_pairs": 100,
        "training.log_every": LOG_EVERY, "training.compile": compiled, "decoding.max_length_ratio": 1.2,
    }  # fmt: skip
    words = ["data=files", "data.source_language=xx", "data.target_language=yy", *splits]
    (job,) = compose_jobs("train", TrainConfig, [*words, *(f"{k}={v}" for k, v in settings.items())], multirun=False)
    return job.config


def training_speed(config: TrainConfig, limit: float) -> dict[str, float]:
    """Of a whole run of train.py: real target tokens a second, and the share of the rate of bf16 products."""
    train(config)
    lines = [json.loads(line) for line in (config.folder / METRICS_LOG).read_text().splitlines()]
    first, *speeds = [line["target_tokens_per_second"] for line in lines if line["split"] == "train"]
    last = next(line for line in reversed(lines) if line["split"] == "train")
    speed = median(speeds)
    vocabulary = open_model(config.folder).tokenizers.target.vocabulary_size
    flops = task.flops(config.model, vocabulary, last["source_tokens"], last["target_tokens"]) / last["target_tokens"]
    return {
        "target_tokens_per_second": speed,
        "while_warming_up": first,
        "gflops": speed * flops / 1e9,
        "of_the_limit": speed * flops / 1e9 / limit,
        "padding_share": last["padding_share"],
    }


def deviation(run: Path, device: torch.device, precision: torch.dtype) -> dict[str, float]:
    """Relative difference between a batch's loss and gradients here and on the CPU in fp32, dropout off."""
    random = np.random.default_rng(2)
    sentences = [random.integers(4, 1000, random.integers(5, 40)).tolist() for _ in range(64)]
    batch = collate(range(32), sentences[:32], sentences[32:])
    model = open_model(run).model
    loss, gradient = _loss_and_gradient(model, batch, torch.float32)
    other_loss, other_gradient = _loss_and_gradient(model.to(device), batch.to(device), precision)
    distance = (gradient - other_gradient).norm() / gradient.norm()
    return {"loss": abs(other_loss / loss - 1), "gradient": distance.item()}


def _loss_and_gradient(model: Seq2Seq, batch: Batch, precision: torch.dtype) -> tuple[float, Tensor]:
    objective = Objective(model, TrainingConfig()).train()  # cuDNN has no gradients in evaluation mode
    for part in model.modules():
        if isinstance(part, Dropout):
            part.probability = 0.0
    model.zero_grad()
    with autocast(batch.source.device, precision):
        loss = objective(batch) / batch.target_tokens
    loss.backward()
    gradients = [parameter.grad.detach().cpu().flatten() for parameter in model.parameters()]
    return loss.item(), torch.cat(gradients)


def decoding_speed(run: Path, lines: list[str], beam_size: int, device: str) -> float:
    """Sentences a second, in bf16 where the card has it."""
    decoding = DecodingConfig(beam_size=beam_size, max_length_ratio=1.2, batch_tokens=32_768)
    translator = Translator.load(run, decoding, device, "auto")
    translator.translate(lines[:50])
    start = time.perf_counter()
    translator.translate(lines)
    return len(lines) / (time.perf_counter() - start)


def main() -> None:
    options = Options.parse(__doc__)
    logging.basicConfig(format="%(message)s", stream=sys.stderr)
    logging.getLogger("mt").setLevel(logging.INFO)
    device = choose_device(options.device)
    precision = choose_precision("auto", device)
    limit = machine.large_matmul_gflops(device, precision)
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    print(f"{card}, torch {torch.__version__}, {str(precision).removeprefix('torch.')}")
    print(f"matrix products alone reach {limit / 1000:,.1f} TFLOP/s")
    figures: dict = {"device": card, "torch": torch.__version__, "precision": str(precision), "limit_gflops": limit}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        write_corpus(folder, options.pairs)
        lines = (folder / "test.xx").read_text().splitlines()
        for model in options.models.split(","):
            config = compose(folder, model, options)
            training = training_speed(config, limit)
            run = config.folder
            single, mixed = (deviation(run, device, kind) for kind in (torch.float32, precision))
            decoding = {f"beam {size}": decoding_speed(run, lines, size, options.device) for size in (5, 1)}
            figures[model] = {"training": training, "fp32": single, "mixed": mixed, "decoding": decoding}
            print(
                f"{model}: {training['target_tokens_per_second']:,.0f} target tokens/s, "
                f"{training['of_the_limit']:.1%} of the limit, padding {training['padding_share']:.1%}; "
                f"gradients differ from the CPU's by {single['gradient']:.1e} in fp32, {mixed['gradient']:.1e} mixed; "
                + ", ".join(f"{name}: {speed:,.0f} sentences/s" for name, speed in decoding.items())
            )
            if isinstance(config.model, TransformerConfig):
                compiled = training_speed(compose(folder, model, options, compiled=True), limit)
                figures[model]["compiled"] = compiled
                print(
                    f"… with torch.compile: {compiled['target_tokens_per_second']:,.0f} target tokens/s, "
                    f"{compiled['while_warming_up']:,.0f} in the first {LOG_EVERY} updates "
                    f"({training['while_warming_up']:,.0f} without)"
                )
    options.output.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"All figures: {options.output}")


if __name__ == "__main__":
    main()
