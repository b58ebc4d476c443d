"""Lets all contestants take turns and prints a table; the same figures go to a JSON file.

    python -m tests.benchmarks [corpus=FOLDER] [rounds=2] [output=bench.json]

corpus: a folder with train.{en,de} and test_2016_flickr.{en,de}, plain or .gz, such as Multi30k; without it,
the default corpus. What the first call trains stays in runs/. Ratios are within a round, so that both sides of
them saw the same machine.
"""

import importlib.metadata
import importlib.util
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import sacrebleu
import torch

from mt.core.device import choose_precision
from tests.benchmarks import preparation, task

STEPS = 10
"""Training batches, of which the first contestant.WARM_UP are not timed."""
SPEED = "target_tokens_per_second"
SENTENCES = "sentences_per_second"


@dataclass(frozen=True)
class Contestant:
    name: str
    """Of a module beside this one, or the machine itself."""
    setting: str
    """fp32 or bf16; when decoding, the beam size."""
    workers: int = 1

    def __str__(self) -> str:
        workers = f" {self.workers} workers" if self.workers > 1 else ""
        return f"{self.name} {self.setting}{workers}"


Round = dict[Contestant, dict[str, float]]
"""What was measured of each."""


@dataclass(frozen=True)
class Ratio:
    """What is to be reached, and what was: the median over the rounds."""

    meaning: str
    aim: float
    value: float
    at_most: bool = False

    def __str__(self) -> str:
        reached = self.value <= self.aim if self.at_most else self.value >= self.aim
        bound = "at most" if self.at_most else "at least"
        return f"{self.value:6.2f}  {self.meaning} ({bound} {self.aim}: {'reached' if reached else 'MISSED'})"


@dataclass(frozen=True)
class Options:
    corpus: Path | None = None
    rounds: int = 2
    output: Path = Path("bench.json")

    @property
    def folder(self) -> Path:
        name = "tatoeba_en_fr" if self.corpus is None else self.corpus.resolve().name
        return preparation.PROJECT / "runs" / f"benchmark-{name}"


def parse(arguments: list[str]) -> Options:
    kinds = {"corpus": Path, "rounds": int, "output": Path}
    values = dict(argument.partition("=")[::2] for argument in arguments)
    if values.keys() - kinds:
        sys.exit(__doc__)
    return Options(**{name: kinds[name](value) for name, value in values.items()})


def take_turns(contestants: Sequence[Contestant], options: Options) -> list[Round]:
    environment = os.environ | {
        "OMP_NUM_THREADS": str(task.THREADS),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",
    }
    rounds: list[Round] = []
    for number in range(options.rounds):
        rounds.append({})
        for one in contestants:
            print(f"round {number + 1} of {options.rounds}: {one}", file=sys.stderr)
            words = [one.name, str(options.folder), one.setting, str(one.workers)]
            printed = subprocess.check_output(
                [sys.executable, "-m", "tests.benchmarks.contestant", *words],
                env=environment,
                cwd=preparation.PROJECT,
            )
            rounds[-1][one] = json.loads(printed.splitlines()[-1])
    return rounds


def middle(rounds: list[Round], figure: Callable[[Round], float]) -> float:
    return median(figure(one) for one in rounds)


def best(one: Round, measure: str, among: Sequence[Contestant]) -> float:
    return max(one[contestant][measure] for contestant in among)


def compare_training(options: Options, with_marian: bool) -> tuple[list[Round], list[Ratio]]:
    fast = "bf16" if choose_precision("auto", torch.device("cpu")) == torch.bfloat16 else "fp32"
    precisions = list(dict.fromkeys(["fp32", fast]))
    machine = {precision: Contestant("machine", precision) for precision in precisions}
    plain, plain_rnn = Contestant("train_plain", "fp32"), Contestant("train_rnn_plain", "fp32")
    marian = [Contestant("train_marian", precision) for precision in precisions] if with_marian else []
    ours, ours_rnn = (
        [*(Contestant(name, precision) for precision in precisions), Contestant(name, fast, task.THREADS)]
        for name in ("train_ours", "train_rnn_ours")
    )
    rounds = take_turns([*machine.values(), plain, *marian, *ours, plain_rnn, *ours_rnn], options)

    copied = middle(rounds, lambda one: one[machine["fp32"]]["copy_gigabytes"])
    rates = {p: middle(rounds, lambda one, p=p: one[machine[p]]["gflops"]) for p in precisions}  # type: ignore[misc]
    products = ", ".join(f"{rate:.0f} GFLOP/s in {precision}" for precision, rate in rates.items())
    print(f"\nThe machine, {task.THREADS} threads: matrix products reach {products}; copies {copied:.1f} GB/s")
    print(f"Training steps on {task.BATCH_TOKENS} tokens; memory is that of one process\n")
    print(f"{'':32}{'target tokens/s':>16}{'of the products':>17}{'MiB for a step':>16}")
    for contestant in rounds[0]:
        if contestant.name != "machine":
            speed, flops, memory = (
                middle(rounds, lambda one, c=contestant, m=measure: one[c][m])  # type: ignore[misc]
                for measure in (SPEED, "gflops", "step_mib")
            )
            print(f"{contestant!s:32}{speed:16,.0f}{flops / rates[contestant.setting]:17.0%}{memory:16,.0f}")

    peers = [plain, *marian[:1]]
    ratios = [
        Ratio(
            "times the fastest peer, fp32, one process",
            1.35,
            middle(rounds, lambda one: one[ours[0]][SPEED] / best(one, SPEED, peers)),
        ),
        Ratio(
            "of the rate of matrix products in fp32",
            0.65,
            middle(rounds, lambda one: one[ours[0]]["gflops"] / one[machine["fp32"]]["gflops"]),
        ),
        Ratio(
            "of the plain loop's memory for a step",
            0.7,
            middle(rounds, lambda one: one[ours[0]]["step_mib"] / one[plain]["step_mib"]),
            at_most=True,
        ),
        Ratio(
            "times the fastest peer in fp32, in our best mode",
            2.2,
            middle(rounds, lambda one: best(one, SPEED, ours) / best(one, SPEED, peers)),
        ),
        Ratio(
            f"of the rate of matrix products in {fast}, in our best mode",
            0.6,
            middle(rounds, lambda one: best(one, "gflops", ours) / one[machine[fast]]["gflops"]),
        ),
        Ratio(
            "times the plain loop, LSTM, in our best mode",
            3.0,
            middle(rounds, lambda one: best(one, SPEED, ours_rnn) / one[plain_rnn][SPEED]),
        ),
    ]
    if marian:
        ratios.append(
            Ratio(
                f"times Marian in {fast}, in our best mode",
                1.7,
                middle(rounds, lambda one: best(one, SPEED, ours) / one[marian[-1]][SPEED]),
            )
        )
    return rounds, ratios


def compare_decoding(options: Options, beam_size: int) -> tuple[list[Round], list[Ratio]]:
    marian, ours = (Contestant(name, str(beam_size)) for name in ("decode_marian", "decode_ours"))
    rounds = take_turns([marian, ours], options)
    reference = task.read_lines(options.folder / "test.target")
    print(f"\nDecoding, beam {beam_size}, fp32, {task.THREADS} threads, {len(reference):,} sentences\n")
    print(f"{'':32}{'sentences/s':>16}{'BLEU':>17}")
    translations = {one: task.read_lines(options.folder / f"{one.name}.{beam_size}") for one in (marian, ours)}
    for contestant, translation in translations.items():
        speed = middle(rounds, lambda one, c=contestant: one[c][SENTENCES])  # type: ignore[misc]
        bleu = sacrebleu.corpus_bleu(translation, [reference]).score
        print(f"{contestant!s:32}{speed:16,.1f}{bleu:17.2f}")
    equal = sum(a == b for a, b in zip(*translations.values(), strict=True))
    print(f"{equal:,} translations are the same in both")
    return rounds, [
        Ratio(
            f"times generate, beam {beam_size}",
            2.5,
            middle(rounds, lambda one: one[ours][SENTENCES] / one[marian][SENTENCES]),
        )
    ]


def compare_ctranslate2(options: Options) -> tuple[list[Round], list[Ratio]]:
    exact, short = (Contestant("decode_ctranslate2", compute_type) for compute_type in ("float32", "int8"))
    rounds = take_turns([exact, short], options)
    print(f"\nDecoding with CTranslate2, {task.THREADS} threads, sentences/s and BLEU\n")
    print(f"{'':32}{'ours':>16}{'by hand':>17}")
    ratios = []
    for contestant in (exact, short):
        for size in task.BEAM_SIZES:
            ours, by_hand, bleu, bleu_by_hand = (
                middle(rounds, lambda one, c=contestant, name=f"{name}_{size}": one[c][name])  # type: ignore[misc]
                for name in ("ours", "by_hand", "ours_bleu", "by_hand_bleu")
            )
            name = f"{contestant.setting}, beam {size}"
            print(f"{name:32}{ours:9,.0f} {bleu:6.2f}{by_hand:10,.0f} {bleu_by_hand:6.2f}")
            value = middle(rounds, lambda one, c=contestant, s=size: one[c][f"ours_{s}"] / one[c][f"by_hand_{s}"])  # type: ignore[misc]
            ratios.append(Ratio(f"times CTranslate2 by hand, {name}", 0.95, value))
    lost = middle(
        rounds, lambda one: max(one[exact][f"ours_bleu_{s}"] - one[short][f"ours_bleu_{s}"] for s in task.BEAM_SIZES)
    )
    return rounds, [*ratios, Ratio("BLEU that int8 loses at most", 0.3, lost, at_most=True)]


def main() -> None:
    options = parse(sys.argv[1:])
    with_marian = importlib.util.find_spec("transformers") is not None
    preparation.train_run(options.folder, options.corpus)
    padding = preparation.write_inputs(options.folder, STEPS)
    comparisons = [compare_training(options, with_marian)]
    if with_marian:
        comparisons += [compare_decoding(options, size) for size in task.BEAM_SIZES]
    else:
        print("\nMarian left out: it needs the extra 'bench' (pip install -e '.[bench]')")
    if importlib.util.find_spec("ctranslate2") is not None:
        comparisons.append(compare_ctranslate2(options))
    else:
        print("\nCTranslate2 left out: it needs the extra 'fast' (pip install -e '.[fast]')")
    ratios = [ratio for _, found in comparisons for ratio in found]
    ratios.append(Ratio("padding, of an epoch's target tokens", 0.05, padding, at_most=True))
    print("\nWe are", *ratios, sep="\n")

    libraries = [name for name in ("torch", "transformers", "ctranslate2") if importlib.util.find_spec(name)]
    figures = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "versions": {name: importlib.metadata.version(name) for name in libraries},
        "corpus": options.folder.name,
        "ratios": [vars(ratio) for ratio in ratios],
        "rounds": [
            {str(contestant): figures for contestant, figures in one.items()}
            for rounds, _ in comparisons
            for one in rounds
        ],
    }
    options.output.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"\nAll figures: {options.output}")


if __name__ == "__main__":
    main()
