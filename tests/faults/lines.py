"""Lines that were made to get lost, and streams that end where nobody expects it."""

import os
import random
import time
from pathlib import Path
from subprocess import PIPE

import psutil

from mt.config import DecodingConfig
from mt.storage.run_folder import read_config
from mt.translation.lines import decode_lines
from mt.translation.results import LINE_BREAKS, ScoredText
from mt.translation.translator import Translator
from tests.faults.outcome import Outcome
from tests.processes import Process, start, wait_for
from tests.toy import SYLLABLES

SEARCHES = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4},
    "n-best": {"beam_size": 4, "n_best": 3},
    "sampling": {"method": "sample", "n_best": 2},
    "html": {"beam_size": 2, "markup": "html"},
    "n-best by CTranslate2": {"beam_size": 4, "n_best": 3, "engine": "ctranslate2"},
}
"""CTranslate2 runs Transformers only."""
BUDGETS = (1, 300, 3000)
"""Tokens a batch: one sentence, a few, many."""
TIE = 1e-4
"""Scores this near each other may change places: sums round differently in batches of other sizes."""
SAME_MEMORY = 100 * 2**20
"""Bytes by which a long stream may hold more than a short one."""


def hostile_lines(count: int, seed: int) -> list[bytes]:
    """As they stand in a file, without the line feeds."""
    chance = random.Random(seed)
    seeds = [
        "", " ", "\t", "\u3000", "\u00a0 \u2003", "\0", "a\0b", "\u2028", "ba\u2028de", "fi\u2029go", "mo\x85ne",
        "pi\rra", "su\r", "\r", "\ufeff", "\ufeffti", "e\u0301\u0302\u0303", "\u0301", "\u202eabc\u202c",
        "\u200f\u200e", "\u200b", "👩\u200d👩\u200d👧", "🏳\ufe0f\u200d🌈 ba", "🇫🇷🇩🇪", "\x01\x02\x1b[31m",
        "\x7f\x80\x9f",
        "<b>vo</b> &amp; <script>", "漢字かな交じり文", "नमस्ते", "שלום עולם", "مرحبا", "Ελληνικά", "ᚠᚢᚦ",
        "\U0010ffff", "\ue000", "\v\f\x1c\x1d\x1e", "▁", "▁▁ba", "</s>", "<s> ba", "<unk>", "<pad>", "%s %d {}",
        "\U0010f000 ba \U0010f003\U0010f000", "<b>ba <i>de</b> fi</i>", "<b", "</b> ba <", "<!-- ba", "a < b",
        "BA DE FI GO KU", "Ba De Fi Go.", "ba. de! fi? go… ku", "{a} {b} ba {c} {d} %s", "<b></b>" * 500,
        "https://ba.de/fi?go=ku#la, x@ba.de", "10² ½ 1\u00a0000,5 -3.14e10",
        "$(ls)", "'; --", "\\n", '"', "ba\tde", "-1", "１２３", "ﬁ ﬂ", "İi\u0307",
    ]  # fmt: skip
    lines = [text.encode() for text in seeds]
    lines += [b"\xff", b"ba \xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\xaf", b"de\xfe\xfffi"]
    lines += [b"x" * 100_000, b"ba " * 10_000, "é".encode() * 3_000, b" " * 5_000, "漢".encode() * 700]
    while len(lines) < count:
        match chance.randrange(5):
            case 0:
                lines.append(" ".join(chance.choices(SYLLABLES, k=chance.randrange(1, 12))).encode())
            case 1:
                lines.append(b" ".join(chance.choices(lines[:60], k=chance.randrange(2, 6))))
            case 2:
                lines.append("".join(chr(chance.randrange(1, 0xD800)) for _ in range(chance.randrange(1, 20))).encode())
            case 3:
                lines.append(chance.randbytes(chance.randrange(1, 40)))
            case 4:
                lines.append("".join(chance.choices("".join(SYLLABLES) + "  ", k=chance.randrange(1, 60))).encode())
    lines = [line.replace(b"\n", b" ") for line in lines]
    chance.shuffle(lines)
    return lines


def translate(hostile: list[bytes], seed: int, run: Path) -> Outcome:
    """Every search, at every batch size, in the file's order and in another."""
    count = len(hostile)
    architecture = read_config(run).model.architecture
    outcome = Outcome(f"hostile line ({architecture})")
    searches = {name: s for name, s in SEARCHES.items() if architecture == "transformer" or "engine" not in s}
    lines = list(decode_lines(iter(hostile), "hostile lines"))
    order = random.Random(seed).sample(range(count), count)
    ties = 0
    for name, search in searches.items():
        keyed = name == "sampling"  # by the number of the line
        # Of ten thousand draws, one or the other falls where probabilities round differently.
        chosen = [line[:1000] for line in lines] if keyed else lines
        expected: list[list[ScoredText]] = []
        for budget in BUDGETS:
            values = {"batch_tokens": budget, "max_source_length": 64, "max_length_extra": 5, "max_length_ratio": 0.3}
            translator = Translator.load(run, DecodingConfig.model_validate(values | search), "cpu")
            shuffled = budget == BUDGETS[-1] and not keyed
            found = translator.hypotheses([chosen[place] for place in order] if shuffled else chosen)
            if len(found) != count:
                outcome.lost.append(f"{name}, {budget} tokens: {count} lines in, {len(found)} out")
                continue
            if shuffled:
                found = [several for _, several in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]
            expected = expected or found
            for number, (line, several, before) in enumerate(zip(chosen, found, expected, strict=True)):
                troubles = []
                if any(LINE_BREAKS.search(one.text) for one in several):
                    troubles.append("a line break in the output")
                if not line.strip() and several[0].text:
                    troubles.append("a blank line became text")
                if [one.text for one in several] != [one.text for one in before]:
                    settings = values | search
                    tied = _drawn_at_a_boundary(run, settings, line, number, several, before) if keyed else False
                    ties += (tied := tied or _tied(several, before))
                    if not tied:
                        troubles.append(f"another translation: {several} instead of {before}")
                outcome.judge([f"{name}, {budget} tokens, line {number} {line[:60]!r}: {t}"[:500] for t in troubles])
    outcome.figures = f"{len(searches)} searches, {len(BUDGETS)} batch sizes; {ties} near ties fell otherwise"
    return outcome


def _tied(several: list[ScoredText], before: list[ScoredText]) -> bool:
    scores = [[one.score or 0.0 for one in some] for some in (several, before)]
    return len(several) == len(before) and all(abs(one - two) < TIE for one, two in zip(*scores, strict=True))


def _drawn_at_a_boundary(
    run: Path, settings: dict, line: str, number: int, several: list[ScoredText], before: list[ScoredText]
) -> bool:
    """Whether sampled translations differ because a random number fell where probabilities round differently.

    Then temperatures a hair below and above 1, which move every boundary between two pieces by some 1e-5, lead to the
    one and to the other.
    """
    found = []
    for temperature in (1 - 1e-5, 1.0, 1 + 1e-5):
        config = DecodingConfig.model_validate(settings | {"temperature": temperature})
        (one,) = Translator.load(run, config, "cpu").hypotheses([line], [number])
        found.append({scored.text for scored in one})
    drawn = set().union(*found)
    return len(several) == len(before) and {one.text for one in (*several, *before)} <= drawn


def stream(folder: Path, count: int, seed: int, run: Path) -> Outcome:
    """A long stream holds no more memory than its first hundredth."""
    outcome = Outcome(f"a stream of {count:,} lines")
    chance = random.Random(seed)
    source = folder / "stream.txt"
    with source.open("w") as lines:
        for _ in range(count):
            lines.write(" ".join(chance.choices(SYLLABLES, k=chance.randrange(1, 7))) + "\n")
    output = folder / "stream.out"
    began = time.monotonic()
    process = _translate(run, f"input={source}", f"output={output}")
    partial = Path(f"{output}.partial")
    wait_for(lambda: partial.exists() and _lines(partial) >= count // 100, seconds=600)
    early = psutil.Process(process.pid).memory_info().rss
    late = early
    while process.poll() is None:
        late = psutil.Process(process.pid).memory_info().rss or late
        time.sleep(0.2)
    troubles = [f"{late - early:,} bytes more at the end"] if late - early > SAME_MEMORY else []
    if process.returncode or _lines(output) != count:
        troubles.append(f"ended with {process.returncode}, {_lines(output):,} lines")
    outcome.judge(troubles)
    rate = count / (time.monotonic() - began)
    outcome.figures = f"{early / 2**20:,.0f} MB after 1 %, {late / 2**20:,.0f} MB at the end; {rate:,.0f} lines/s"
    return outcome


GREEDY = "decoding.beam_size=1 decoding.max_length_ratio=1 decoding.max_length_extra=3"


def _translate(run: Path, *words: str, **streams: object) -> Process:
    return start("translate.py", f"run={run}", *GREEDY.split(), *words, stderr=PIPE, **streams)


def _lines(path: Path) -> int:
    with path.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: os.read(stream.fileno(), 2**20), b""))
