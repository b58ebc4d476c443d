"""How many of the faults that are planted in a clean corpus cleaning finds: ``python -m tests.benchmarks.planted_faults
corpus=eng-deu.tsv foreign=en-fr.tsv [share=0.05] [cleaning=strict] [languages=en-de]``.

``corpus`` has a source and a target on each line, ``foreign`` a source and its translation into another language than
that of the targets. Either may be compressed.

What the faults cost, and what cleaning wins back: with ``output=FOLDER``, valid.jsonl, test.jsonl, clean.jsonl and
dirty.jsonl are written there instead. Then train on ``clean``, on ``dirty``, and on ``dirty`` with cleaning:
``python train.py name=cleaned data=table data.source_language=en data.target_language=de data.train=FOLDER/dirty.jsonl
data.valid=FOLDER/valid.jsonl data.test=FOLDER/test.jsonl data.cleaning=strict``, and ``false`` for the others.
"""

import json
import random
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from mt.config import DataConfig
from mt.core.columns import numbers
from mt.core.files import read_lines
from mt.data.cleaning.stage import find_faulty_pairs
from mt.data.corpus import load_corpus
from tests import options

Pair = tuple[str, str]
HTML = (
    '<div class="text">%s</div>', "<p>%s</p><br/>", "&nbsp;&nbsp;%s", '<a href="/index.php?id=12">%s</a>',
    '<span style="color:red">%s</span> &raquo;', "%s <br /><br />",
)  # fmt: skip
BLOCK = 20
"""So many lines one after the other are shifted together."""


def plant(pairs: list[Pair], foreign: list[Pair], share: float, seed: int = 1) -> tuple[list[Pair], list[str]]:
    """Return the pairs in another order with a share of each fault, and the fault of each ("" for none)."""
    rng = random.Random(seed)
    pairs = rng.sample(pairs, len(pairs))
    faulty, kind = list(pairs), [""] * len(pairs)
    wanted = round(share * len(pairs))

    def plant_fault(fault: str, change: Callable[[int], Pair | None], count: int = wanted) -> None:
        for index in rng.sample(range(len(pairs)), len(pairs)):
            if count and not kind[index] and (changed := change(index)):
                faulty[index], kind[index], count = changed, fault, count - 1

    def number(index: int) -> Pair | None:
        source, target = pairs[index]
        numbers = set(re.findall(r"\d+", source))
        positions = [i for m in re.finditer(r"\d+", target) if m[0] in numbers for i in range(*m.span())]
        if not positions:
            return None
        at = rng.choice(positions)
        other = rng.choice([digit for digit in "123456789" if digit != target[at]])
        return source, target[:at] + other + target[at + 1 :]

    with_number = sum(number(index) is not None for index in range(len(pairs)))
    plant_fault("number", number, max(1, round(share * with_number)))
    while kind.count("shifted") < wanted:
        start = rng.randrange(len(pairs) - BLOCK - 1)
        if not any(kind[start : start + BLOCK + 1]):
            for index in range(start, start + BLOCK):
                faulty[index], kind[index] = (pairs[index][0], pairs[index + 1][1]), "shifted"
    others = iter(rng.sample(foreign, len(foreign)))

    def repeat(index: int) -> Pair | None:
        before = rng.randrange(index + 1)
        if before == index or kind[before]:
            return None
        return pairs[before]

    def half(index: int) -> Pair | None:
        words = pairs[index][1].split()
        return (pairs[index][0], " ".join(words[: (len(words) + 1) // 2])) if len(words) > 1 else None

    def marked_up(index: int) -> Pair:
        source, target = pairs[index]
        junk = rng.choice(HTML)
        return rng.choice([(source, junk % target), (junk % source, target)])

    plant_fault("copied", lambda index: (pairs[index][0], pairs[index][0]))
    plant_fault("random", lambda index: (pairs[index][0], rng.choice(pairs)[1]))
    plant_fault("language", lambda index: next(others, None))
    plant_fault("truncated", half)
    plant_fault("html", marked_up)
    plant_fault("repeated", repeat)
    return faulty, kind


class Options(options.Options):
    corpus: str
    foreign: Path
    share: float = 0.05
    cleaning: str = "strict"
    languages: str = "en-de"
    output: Path | None = None
    seed: int = 1


def write_dirty(folder: Path, options: Options, held_out: int = 2000) -> None:
    """Write valid, test, clean (the training pairs) and dirty (the same with faults), as ``NAME.jsonl``."""
    config = _config(options.corpus, options.languages, (0, 1), valid_pairs=held_out, test_pairs=held_out)
    loaded = load_corpus(config)
    folder.mkdir(parents=True)
    clean, valid, test = (
        list(zip(pairs["source"][:], pairs["target"][:], strict=True))
        for pairs in (loaded.train, loaded.valid, loaded.test)
    )
    dirty, _ = plant(clean, _pairs(options.foreign), options.share, options.seed)
    for name, pairs in (("valid", valid), ("test", test), ("clean", clean), ("dirty", dirty)):
        _write(folder / f"{name}.jsonl", pairs, options.languages)
        print(f"{folder / name}.jsonl: {len(pairs):,} pairs")


def measure(options: Options) -> None:
    """Print which share of the faults is found by which rule, and which share of a rule's findings is faulty."""
    pairs = _pairs(Path(options.corpus))
    faulty, kind = plant(pairs, _pairs(options.foreign), options.share, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "faulty.jsonl")
        _write(path, faulty, options.languages)
        columns = tuple(options.languages.split("-"))
        held_out = {"valid_pairs": 20, "test_pairs": 20}
        config = _config(str(path), options.languages, columns, **held_out, cleaning=options.cleaning)
        loaded = load_corpus(config)
        start = time.perf_counter()
        findings = find_faulty_pairs(loaded, config)
        seconds = time.perf_counter() - start
    kinds = np.array(kind)[numbers(loaded.train, "id")]
    rules = np.array(["kept", *findings.rules])[findings.by_split["train"]]
    print(f"{len(kinds):,} pairs in {seconds:.0f} s")
    print(f"{'fault':10}{'pairs':>8}{'recall':>8}  by rule")
    for each in sorted(set(kind), key=lambda name: (name == "", name)):
        names_of, times = np.unique(rules[kinds == each], return_counts=True)
        by_rule = ", ".join(f"{rule} {count:,}" for rule, count in zip(names_of, times, strict=True) if rule != "kept")
        recall = np.mean(rules[kinds == each] != "kept")
        print(f"{each or 'none':10}{np.sum(kinds == each):8,}{recall:8.3f}  {by_rule}")
    print("precision, counting every planted fault that a rule finds as right:")
    for rule in findings.rules:
        if (of_rule := rules == rule).any():
            print(f"  {rule:12}{np.mean(kinds[of_rule] != ''):.3f} of {of_rule.sum():,}")


def _config(path: str, languages: str, columns: tuple[str | int, ...], **settings: object) -> DataConfig:
    names = dict(zip(("source_language", "target_language"), languages.split("-"), strict=True))
    of_columns = dict(zip(("source_column", "target_column"), columns, strict=True))
    return TypeAdapter(DataConfig).validate_python({"kind": "table", "train": path, **names, **of_columns, **settings})


def _write(path: Path, pairs: list[Pair], languages: str) -> None:
    rows = (json.dumps(dict(zip(languages.split("-"), pair, strict=True)), ensure_ascii=False) for pair in pairs)
    path.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")


def _pairs(path: Path) -> list[Pair]:
    lines = (line.decode().split("\t") for line in read_lines(path))
    return [(cells[0], cells[1]) for cells in lines]


def main() -> None:
    options = Options.parse(__doc__)
    if options.output:
        write_dirty(options.output, options)
    else:
        measure(options)


if __name__ == "__main__":
    main()
