"""Lets all contestants take turns and prints a table; the same figures go to a JSON file.

    python -m tests.benchmarks [corpus=FOLDER] [precision=fp32|bf16] [rounds=3] [output=bench.json]

corpus: a folder with train.{en,de} and test_2016_flickr.{en,de}, plain or .gz, such as Multi30k; without it,
the default corpus. precision: of the training steps; decoding is in fp32. What the first call trains stays in
runs/. Ratios are within a round, so that both sides of them saw the same machine.
"""

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import sacrebleu

from tests.benchmarks import preparation, task

STEPS = 15
"""Training batches, of which the first contestant.WARM_UP are not timed."""
TRAINING_SPEED, TRAINING_AIM, RNN_TRAINING_AIM = "target_tokens_per_second", 1.2, 3.0
DECODING_SPEED, DECODING_AIM = "sentences_per_second", 2.0
PADDING_AIM = 0.05

Rounds = dict[str, list[dict[str, float]]]
"""The measurements of each contestant, one a round."""


@dataclass(frozen=True)
class Options:
    corpus: Path | None = None
    precision: str = "fp32"
    rounds: int = 3
    output: Path = Path("bench.json")

    @property
    def folder(self) -> Path:
        name = "tatoeba_en_fr" if self.corpus is None else self.corpus.resolve().name
        return preparation.PROJECT / "runs" / f"benchmark-{name}"


def parse(arguments: list[str]) -> Options:
    kinds = {"corpus": Path, "precision": str, "rounds": int, "output": Path}
    values = dict(argument.partition("=")[::2] for argument in arguments)
    if values.keys() - kinds or values.get("precision", "fp32") not in ("fp32", "bf16"):
        sys.exit(__doc__)
    return Options(**{name: kinds[name](value) for name, value in values.items()})


def take_turns(names: list[str], folder: Path, setting: str, rounds: int) -> Rounds:
    results: Rounds = {name: [] for name in names}
    environment = os.environ | {
        "OMP_NUM_THREADS": str(task.THREADS),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    for number in range(rounds):
        for name in names:
            print(f"round {number + 1} of {rounds}: {name} {setting}", file=sys.stderr)
            command = [sys.executable, "-m", "tests.benchmarks.contestant", name, str(folder), setting]
            printed = subprocess.check_output(command, env=environment, cwd=preparation.PROJECT)
            results[name].append(json.loads(printed.splitlines()[-1]))
    return results


def middle(results: Rounds, name: str, measure: str) -> float:
    return median(result[measure] for result in results[name])


def advantage(results: Rounds, measure: str) -> float:
    """How many times the fastest peer's speed ours is: the median over rounds."""
    (ours,) = [name for name in results if name.endswith("_ours")]
    peers = [name for name in results if name.startswith(ours.removesuffix("ours")) and name != ours]
    turns = zip(results[ours], *(results[peer] for peer in peers), strict=True)
    return median(own[measure] / max(peer[measure] for peer in others) for own, *others in turns)


def verdict(value: float, aim: float) -> str:
    return f"{value:.2f} times the fastest peer (to reach: {aim}; {'reached' if value >= aim else 'MISSED'})"


def compare_training(options: Options, title: str, names: list[str], aim: float) -> dict:
    """``names``: the contestants, ours the last."""
    names = ["machine", *names]
    results = take_turns(names, options.folder, options.precision, options.rounds)
    limit = middle(results, "machine", "gflops")
    print(f"\n{title}, {options.precision}, {task.THREADS} threads, {task.BATCH_TOKENS} tokens a batch")
    print(f"matrix products alone reach {limit:.0f} GFLOP/s")
    print(f"{'':16}{'target tokens/s':>16}{'of the limit':>14}{'MiB for a step':>16}")
    for name in names[1:]:
        speed, step = middle(results, name, TRAINING_SPEED), middle(results, name, "step_mib")
        print(f"{name:16}{speed:16,.0f}{middle(results, name, 'gflops') / limit:14.0%}{step:16,.0f}")
    ratio = advantage(results, TRAINING_SPEED)
    print("ours:", verdict(ratio, aim))
    return {"ratio": ratio, "aim": aim, "rounds": results}


def compare_decoding(options: Options, beam_size: int) -> dict:
    names = ["decode_marian", "decode_ours"]
    results = take_turns(names, options.folder, str(beam_size), options.rounds)
    translations = {name: lines(options.folder / f"{name}.{beam_size}") for name in names}
    reference = lines(options.folder / "test.target")
    bleu = {name: sacrebleu.corpus_bleu(translations[name], [reference]).score for name in names}
    equal = sum(a == b for a, b in zip(*translations.values(), strict=True))
    print(f"\nDecoding, beam {beam_size}, fp32, {task.THREADS} threads, {len(reference):,} sentences")
    print(f"{'':16}{'sentences/s':>16}{'BLEU':>14}")
    for name in names:
        print(f"{name:16}{middle(results, name, DECODING_SPEED):16,.1f}{bleu[name]:14.2f}")
    ratio = advantage(results, DECODING_SPEED)
    print(f"{equal:,} translations are the same in both")
    print("ours:", verdict(ratio, DECODING_AIM))
    return {"ratio": ratio, "aim": DECODING_AIM, "rounds": results, "bleu": bleu, "equal": equal}


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def main() -> None:
    options = parse(sys.argv[1:])
    marian = ["train_marian"] if importlib.util.find_spec("transformers") else []
    libraries = ["torch", "transformers"] if marian else ["torch"]
    preparation.train_run(options.folder, options.corpus)
    padding = preparation.write_inputs(options.folder, STEPS)

    figures: dict = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "versions": {name: importlib.metadata.version(name) for name in libraries},
        "corpus": options.folder.name,
        "precision": options.precision,
        "padding": {"share": padding, "aim": PADDING_AIM},
        "training": compare_training(
            options, "Training step of the Transformer", ["train_plain", *marian, "train_ours"], TRAINING_AIM
        ),
        "rnn training": compare_training(
            options, "Training step of the LSTM", ["train_rnn_plain", "train_rnn_ours"], RNN_TRAINING_AIM
        ),
    }
    if marian:
        figures["decoding"] = {f"beam {size}": compare_decoding(options, size) for size in (5, 1)}
    else:
        print("\nMarian left out: it needs the extra 'bench' (pip install -e '.[bench]')")
    state = "reached" if padding <= PADDING_AIM else "MISSED"
    print(f"\nPadding: {padding:.1%} of an epoch's target tokens (to reach: {PADDING_AIM:.0%}; {state})")
    options.output.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"All figures: {options.output}")


if __name__ == "__main__":
    main()
