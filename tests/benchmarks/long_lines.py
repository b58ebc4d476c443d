"""Time the translation of 200 long and odd lines by ``translate.py``.

    python -m tests.benchmarks.long_lines [run=runs/demo] [seed=1]

Ten lines of 10,000 words, ten of 100,000 letters and 180 of up to 5,000 characters of odd kinds. The words are those of
the run's test set, whose source language has to be written with spaces. Nothing else may run meanwhile.
"""

import base64
import random
import string
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks import task
from tests.benchmarks.preparation import PROJECT

MAX_SECONDS = 60.0
MAX_CHARACTERS = 5000


def odd_lines(chosen: random.Random, words: list[str], text: str) -> list[str]:
    """Return one line of each odd kind, with contents of its own."""

    def letters(count: int, alphabet: str = string.ascii_lowercase) -> str:
        return "".join(chosen.choices(alphabet, k=count))

    def script(first: int, last: int) -> str:
        return "".join(chr(chosen.randint(first, last)) for _ in range(MAX_CHARACTERS))

    word, mark = chosen.choice(words), chosen.choice(string.punctuation)
    start = chosen.randrange(len(text) - 2 * MAX_CHARACTERS)
    passage = text[start : start + 2 * MAX_CHARACTERS]
    plain = passage.translate(str.maketrans("", "", string.punctuation))
    many = [
        *(f"{word} ", f"{mark} ", mark, f"{letters(1)}{mark}", f"{letters(1)} ", f"{word}\t", f"{word}\u00a0"),
        *(
            "😀",
            f"{word} 😀 ",
            "🇫🇷",
            "a\u0301",
            "a\u200d",
            "wo\u00adrd ",
            f"<b>{word}</b> ",
            "http://a.b/c ",
            "{0} %s ",
        ),
        *(f'"{word}" ', f"({word}) ", f"{letters(1)}1", "U.S. ", f"{word.title()} ", "..", "-- ", "a\u2028", "(" * 50),
        *(f"{letters(1)}@", f"{letters(1)}_", f"{letters(1)}/", f"{letters(1)}'", f"{letters(1)}-"),
    ]
    return [
        *(one * MAX_CHARACTERS for one in many),
        "".join(chosen.choices(words, k=MAX_CHARACTERS)),
        " ".join(chosen.choices(words, k=MAX_CHARACTERS)),
        " ".join(letters(chosen.randint(1, 10)) for _ in range(MAX_CHARACTERS)),
        " ".join(str(chosen.randint(0, 10**6)) for _ in range(MAX_CHARACTERS)),
        *(plain, plain.lower(), plain.upper(), plain.title(), passage),
        letters(MAX_CHARACTERS, string.punctuation),
        letters(MAX_CHARACTERS, string.printable.translate(str.maketrans("", "", "\n"))),
        base64.b64encode(chosen.randbytes(MAX_CHARACTERS)).decode(),
        *(
            script(*ends)
            for ends in ((0x4E00, 0x9FFF), (0x627, 0x64A), (0xE01, 0xE2E), (0x430, 0x44F), (0x1F300, 0x1F5FF))
        ),
    ]


def lines_of(run: Path, seed: int) -> list[str]:
    chosen = random.Random(seed)
    text = " ".join(task.read_lines(run / "scored/test.source"))
    running = [word.strip(string.punctuation) for word in text.split()]
    words = sorted(set(running) - {""})
    lines = []
    for number in range(5):
        start = chosen.randrange(len(running))
        lines.append(" ".join((running * 3)[start : start + 10_000]))
        lines.append(" ".join(chosen.choices(words, k=10_000)))
        lines.append(string.ascii_lowercase[number] * 100_000)
        lines.append("".join(chosen.choices(string.ascii_letters, k=100_000)))
    while len(lines) < 200:
        for line in odd_lines(chosen, words, text):
            lines.append(line[: chosen.randint(MAX_CHARACTERS // 2, MAX_CHARACTERS)])
    return [line.replace("\n", " ") for line in lines[:200]]


def main() -> None:
    values = {"run": "runs/demo", "seed": "1"} | dict(argument.partition("=")[::2] for argument in sys.argv[1:])
    if values.keys() - {"run", "seed"}:
        sys.exit(__doc__)
    run = (PROJECT / values["run"]).resolve()
    lines = lines_of(run, int(values["seed"]))
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "translate.py", f"run={run}"],
        cwd=PROJECT,
        input="".join(f"{line}\n" for line in lines).encode(),
        stdout=subprocess.PIPE,
        check=True,
    )
    seconds = time.perf_counter() - began
    count = done.stdout.count(b"\n")
    reached = seconds < MAX_SECONDS and count == len(lines)
    verdict = "reached" if reached else "MISSED"
    print(f"{len(lines)} lines in, {count} lines out, {seconds:.1f} s (less than {MAX_SECONDS:.0f}: {verdict})")


if __name__ == "__main__":
    main()
