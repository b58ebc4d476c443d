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
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import sacrebleu
import torch

from mt.core.device import choose_precision
from tests import options
from tests.benchmarks import preparation, task
from tests.benchmarks.contestant import SENTENCES, SPEED, Contestant

STEPS = 10
"""Training batches, of which the first contestant.WARM_UP are not timed."""

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


class Options(options.Options):
    corpus: Path | None = None
    rounds: int = 2
    output: Path = Path("bench.json")

    @property
    def folder(self) -> Path:
        name = "tatoeba_en_fr" if self.corpus is None else self.corpus.resolve().name
        return task.PROJECT / "runs" / f"benchmark-{name}"


class Rounds(list[Round]):
    """The rounds of one comparison, in which contestants took turns."""

    def __init__(self, contestants: Sequence[Contestant], options: Options) -> None:
        environment = os.environ | {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error"}
        for number in range(options.rounds):
            self.append({})
            for contestant in contestants:
                print(f"round {number + 1} of {options.rounds}: {contestant}", file=sys.stderr)
                self[-1][contestant] = contestant.run(options.folder, environment)

    def median(self, figure: Callable[[Round], float]) -> float:
        return median(map(figure, self))

    def of(self, contestant: Contestant, measure: str) -> float:
        return self.median(lambda figures: figures[contestant][measure])

    def ratio(self, measure: str, ours: Sequence[Contestant], others: Sequence[Contestant]) -> float:
        """Return how many times the best of the others the best of ours is."""

        def best(figures: Round, contestants: Sequence[Contestant]) -> float:
            return max(figures[contestant][measure] for contestant in contestants)

        return self.median(lambda figures: best(figures, ours) / best(figures, others))


def compare_training(options: Options, with_marian: bool) -> tuple[Rounds, list[Ratio]]:
    fast = "bf16" if choose_precision("auto", torch.device("cpu")) == torch.bfloat16 else "fp32"
    precisions = list(dict.fromkeys(["fp32", fast]))
    machine = {precision: Contestant("machine", precision) for precision in precisions}
    plain, plain_rnn = Contestant("train_plain", "fp32"), Contestant("train_rnn_plain", "fp32")
    marian = [Contestant("train_marian", precision) for precision in precisions] if with_marian else []
    ours, ours_rnn = (
        [*(Contestant(name, precision) for precision in precisions), Contestant(name, fast, task.THREADS)]
        for name in ("train_ours", "train_rnn_ours")
    )
    rounds = Rounds([*machine.values(), plain, *marian, *ours, plain_rnn, *ours_rnn], options)

    rates = {precision: rounds.of(machine[precision], "gflops") for precision in precisions}
    products = ", ".join(f"{rate:.0f} GFLOP/s in {precision}" for precision, rate in rates.items())
    copied = rounds.of(machine["fp32"], "copy_gigabytes")
    print(f"\nThe machine, {task.THREADS} threads: matrix products reach {products}; copies {copied:.1f} GB/s")
    print(f"Training steps on {task.BATCH_TOKENS} tokens; memory is that of one process\n")
    print(f"{'':32}{'target tokens/s':>16}{'of the products':>17}{'MiB for a step':>16}")
    for contestant in rounds[0]:
        if contestant.name != "machine":
            speed, flops, memory = (rounds.of(contestant, measure) for measure in (SPEED, "gflops", "step_mib"))
            print(f"{contestant!s:32}{speed:16,.0f}{flops / rates[contestant.setting]:17.0%}{memory:16,.0f}")

    peers, first = [plain, *marian[:1]], ours[:1]
    figures = [
        ("times the fastest peer, fp32, one process", 1.35, SPEED, first, peers),
        ("of the rate of matrix products in fp32", 0.65, "gflops", first, [machine["fp32"]]),
        ("times the fastest peer in fp32, in our best mode", 2.2, SPEED, ours, peers),
        (f"of the rate of matrix products in {fast}, in our best mode", 0.6, "gflops", ours, [machine[fast]]),
        ("times the plain loop, LSTM, in our best mode", 3.0, SPEED, ours_rnn, [plain_rnn]),
        (f"times Marian in {fast}, in our best mode", 1.7, SPEED, ours, marian[-1:]),
    ]
    ratios = [Ratio(meaning, aim, rounds.ratio(*rest)) for meaning, aim, *rest in figures if rest[-1]]
    memory = rounds.ratio("step_mib", first, [plain])
    return rounds, [*ratios, Ratio("of the plain loop's memory for a step", 0.7, memory, at_most=True)]


def compare_decoding(options: Options, beam_size: int) -> tuple[Rounds, list[Ratio]]:
    marian, ours = (Contestant(name, str(beam_size)) for name in ("decode_marian", "decode_ours"))
    rounds = Rounds([marian, ours], options)
    reference = task.read_lines(options.folder / "test.target")
    print(f"\nDecoding, beam {beam_size}, fp32, {task.THREADS} threads, {len(reference):,} sentences\n")
    print(f"{'':32}{'sentences/s':>16}{'BLEU':>17}")
    translations = {c: task.read_lines(options.folder / f"{c.name}.{beam_size}") for c in (marian, ours)}
    for contestant, translation in translations.items():
        bleu = sacrebleu.corpus_bleu(translation, [reference]).score
        print(f"{contestant!s:32}{rounds.of(contestant, SENTENCES):16,.1f}{bleu:17.2f}")
    equal = sum(a == b for a, b in zip(*translations.values(), strict=True))
    print(f"{equal:,} translations are the same in both")
    return rounds, [Ratio(f"times generate, beam {beam_size}", 2.5, rounds.ratio(SENTENCES, [ours], [marian]))]


def compare_ctranslate2(options: Options) -> tuple[Rounds, list[Ratio]]:
    exact, short = (Contestant("decode_ctranslate2", compute_type) for compute_type in ("float32", "int8"))
    rounds = Rounds([exact, short], options)
    print(f"\nDecoding with CTranslate2, {task.THREADS} threads, sentences/s and BLEU\n")
    print(f"{'':32}{'ours':>16}{'by hand':>17}")
    ratios = []
    for contestant in (exact, short):
        for size in task.BEAM_SIZES:
            ours, by_hand, bleu, bleu_by_hand = (
                rounds.of(contestant, f"{name}_{size}") for name in ("ours", "by_hand", "ours_bleu", "by_hand_bleu")
            )
            name = f"{contestant.setting}, beam {size}"
            print(f"{name:32}{ours:9,.0f} {bleu:6.2f}{by_hand:10,.0f} {bleu_by_hand:6.2f}")
            value = rounds.median(lambda r, c=contestant, s=size: r[c][f"ours_{s}"] / r[c][f"by_hand_{s}"])
            ratios.append(Ratio(f"times CTranslate2 by hand, {name}", 0.95, value))
    scores = [f"ours_bleu_{size}" for size in task.BEAM_SIZES]
    lost = rounds.median(lambda figures: max(figures[exact][score] - figures[short][score] for score in scores))
    return rounds, [*ratios, Ratio("BLEU that int8 loses at most", 0.3, lost, at_most=True)]


def main() -> None:
    options = Options.parse(__doc__)
    with_marian = importlib.util.find_spec("transformers") is not None
    preparation.train_run(options.folder, options.corpus)
    padding = preparation.write_inputs(options.folder, STEPS)
    comparisons = [compare_training(options, with_marian)]
    if with_marian:
        comparisons += [compare_decoding(options, size) for size in task.BEAM_SIZES]
    else:
        print("\nMarian skipped: it needs the extra 'transformers' (pip install -e '.[transformers]')")
    if importlib.util.find_spec("ctranslate2") is not None:
        comparisons.append(compare_ctranslate2(options))
    else:
        print("\nCTranslate2 skipped: it needs the extra 'fast' (pip install -e '.[fast]')")
    ratios = [ratio for _, comparison in comparisons for ratio in comparison]
    ratios.append(Ratio("padding, of an epoch's target tokens", 0.05, padding, at_most=True))
    print("\nWe are", *ratios, sep="\n")

    libraries = [name for name in ("torch", "transformers", "ctranslate2") if importlib.util.find_spec(name)]
    figures = {
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "versions": {name: importlib.metadata.version(name) for name in libraries},
        "corpus": options.folder.name,
        "ratios": [vars(ratio) for ratio in ratios],
        "rounds": [{str(c): figures for c, figures in turn.items()} for rounds, _ in comparisons for turn in rounds],
    }
    options.output.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"\nAll figures: {options.output}")


if __name__ == "__main__":
    main()
