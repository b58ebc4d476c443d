"""Find the reasons to doubt the scores of a comparison: wrong languages, empty lines, and texts in different forms."""

import html
import re
from collections.abc import Iterator, Sequence
from itertools import combinations

from mt.core.columns import evenly_spaced_rows
from mt.core.wording import counted
from mt.evaluation.systems import EvaluationSet, System
from mt.training.advice import SCRIPT_PAIRS, advice_on_code, advice_on_script

SUBWORD_MARK = re.compile(r"[▁￭]|@@(?!\S)|(?<!\S)##(?=\w)")
"""Matches the marks of SentencePiece, OpenNMT's tokenizer, subword-nmt and WordPiece."""
MARKED_SHARE = 0.2
"""A text is cut into subwords if a larger share of its lines has marks."""
FINAL_MARK, DETACHED_MARK = re.compile(r"[.,。、，।،](?!\S)"), re.compile(r"(?<![\S.])(?<!\. )[.,。、，।،](?!\S| \.)")
"""Match a punctuation mark at the end of a word, and one that stands alone. No language writes these with a space in
front."""
MIN_FINAL_MARKS = 5
"""A text with fewer marks may be tokenised or not."""
REMEDIES = {
    "tokenised": "detokenise it, for example with sacremoses",
    "cut into subwords": "join them, for example with spm_decode or sed 's/@@ //g', and detokenise the text",
}


def find_cautions(evaluation: EvaluationSet, systems: Sequence[System]) -> Iterator[str]:
    """Yield a sentence for each reason to doubt the scores of these systems."""
    sides = [("source", evaluation.source_language, evaluation.sources)]
    for side, code, lines in [*sides, ("target", evaluation.target_language, evaluation.references)]:
        if code and lines:
            key, text = f"{side}_language", "".join(lines[row] for row in evenly_spaced_rows(len(lines), SCRIPT_PAIRS))
            noun = "sources" if side == "source" else "references"
            yield from filter(None, [advice_on_code(key, code), advice_on_script(key, code, noun, text)])
    references = {
        f"reference {number}" if evaluation.other_references else "the reference": lines
        for number, lines in enumerate(evaluation.all_references, 1)
    }
    outputs = {str(output.origin): output.hypotheses for system in systems for output in system.outputs}
    texts = outputs | references
    for name, lines in texts.items():
        if empty := [number for number, line in enumerate(lines, 1) if not line.strip()]:
            yield f"{name} has {counted(len(empty), 'empty line')} of {len(lines):,}, first line {empty[0]}; they count"
    yield from _copies(texts | ({"the source": evaluation.sources} if evaluation.sources else {}), outputs)
    yield from _other_forms(texts)


def _copies(texts: dict[str, list[str]], outputs: dict[str, list[str]]) -> Iterator[str]:
    """Yield a sentence for each two texts, at least one of them an output, that say the same in another form."""
    normalized = {name: list(map(_normalized, lines)) for name, lines in texts.items()}
    for first, second in combinations(texts, 2):
        if first in outputs and normalized[first] == normalized[second]:
            form = "" if texts[first] == texts[second] else " but for whitespace, marks of subwords and case"
            yield f"{first} and {second} are the same{form}"


def _normalized(line: str) -> str:
    """Return a line in lowercase without whitespace, marks of subwords and the escapes of Moses' tokenizer."""
    return re.sub(r"\s", "", SUBWORD_MARK.sub("", html.unescape(line).replace("@-@", "-"))).casefold()


def _other_forms(texts: dict[str, list[str]]) -> Iterator[str]:
    """Yield a sentence for each text that is tokenised or cut into subwords, unless all texts are so."""
    forms = {name: _form(lines) for name, lines in texts.items()}
    if len(set(forms.values())) > 1:
        for name, form in forms.items():
            if form:
                reason = "so these scores compare spellings, not translations"
                yield f"{name} seems to be {form}, and not all texts are, {reason}: {REMEDIES[form]}"


def _form(lines: Sequence[str]) -> str | None:
    """Return the key of REMEDIES that describes a text; None for ordinary text."""
    if sum(map(bool, map(SUBWORD_MARK.search, lines))) > MARKED_SHARE * len(lines):
        return "cut into subwords"
    final, detached = (sum(len(mark.findall(line)) for line in lines) for mark in (FINAL_MARK, DETACHED_MARK))
    return "tokenised" if final >= MIN_FINAL_MARKS and 2 * detached > final else None
