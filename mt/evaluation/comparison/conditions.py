"""Lists the differences between the compared runs and models in settings and conditions (versions, machine, data).

Also finds the reasons to doubt the scores: wrong languages, empty lines, and texts in different forms.
"""

import hashlib
import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from mt.config import Section
from mt.core.columns import evenly_spaced_rows
from mt.core.errors import counted, format_value
from mt.core.language import UNKNOWN_LANGUAGE
from mt.evaluation.systems import EvaluationSet, Output, System
from mt.storage.folders import open_folder
from mt.storage.run_folder import flat_config
from mt.training.hints import SCRIPT_PAIRS, language_code_hint, script_hint

NOT_KNOWN = "not known"
"""Shown for the training settings and the data of a model without a run."""
KEYS_OF_MODELS = "model.", "tokenizer.model", "source.model", "target.model"
"""Prefixes of the keys that are known for a model without a run, too."""
CONDITIONS = "code_revision", "libraries", "python", "machine", "resolved_settings"
"""The entries of a start in provenance.json in which runs are compared."""
SUBWORD_MARK = re.compile(r"[▁￭]|@@(?!\S)|(?<!\S)##(?=\w)")
"""Matches the marks of SentencePiece, OpenNMT's tokenizer, subword-nmt and WordPiece."""
MARKED_SHARE = 0.2
"""A text is cut into subwords if a larger share of its lines has marks."""
FINAL_MARK, DETACHED_MARK = re.compile(r"[.,。、，।،](?!\S)"), re.compile(r"(?<![\S.])(?<!\. )[.,。、，।،](?!\S| \.)")
"""Match a punctuation mark at the end of a word, and one that stands alone. No language writes these with a space in
front."""
MIN_FINAL_MARKS = 5
"""A text with fewer marks may be tokenized or not."""
REMEDIES = {
    "tokenized": "detokenize it, for example with sacremoses",
    "cut into subwords": "join them, for example with spm_decode or sed 's/@@ //g', and detokenize the text",
}


def settings_of(output: Output) -> dict[str, object]:
    """Return the settings of an output's run or, for a model without a run, those that its folder records.

    Returns:
        Full key, such as ``training.seed`` → value. The search settings are those of this comparison.
    """
    assert output.model and output.decoding
    sections: dict[str, Section] = {"decoding": output.decoding}
    settings = flat_config(output.run.config) if output.run else {"text.enabled": output.model.text.enabled}
    if not output.run and not output.is_foreign:
        sections |= {"model": output.model.model, "tokenizer": output.model.tokenizer}
    for name, section in sections.items():
        settings |= {f"{name}.{key}": value for key, value in flat_config(section).items()}
    return {key: value for key, value in settings.items() if key not in ("name", "runs")}


def conditions_of(output: Output) -> dict[str, object]:
    """Return the conditions of an output's run: direction, tokenizer, resolved settings, versions, machine and data.

    For a model without a run, only direction, alignment and tokenizer are known.

    Returns:
        Label for the report → value. Checksums are cut to 12 digits.
    """
    assert output.model
    languages = output.model.source_language, output.model.target_language
    conditions: dict[str, object] = {
        "direction": NOT_KNOWN if UNKNOWN_LANGUAGE in languages else "→".join(languages),
        **{f"alignment: {key}": value for key, value in output.model.alignment},
    }
    if not output.is_foreign:
        for name, content in open_folder(output.origin).read_tokenizer_files().items():
            conditions[name] = _digest(content)
    return conditions | _recorded_conditions(output.run.provenance) if output.run else conditions


def _recorded_conditions(provenance: dict) -> dict[str, object]:
    """Return the conditions of the last start of a run, with a note on earlier starts in other conditions."""
    *earlier, last = ({key: start[key] for key in CONDITIONS} for start in provenance["starts"])
    conditions = {
        **{
            f"took effect: {section}: {key}": value
            for section, values in last["resolved_settings"].items()
            for key, value in values.items()
        },
        "code revision": last["code_revision"],
        "python": last["python"],
        **last["libraries"],
        **last["machine"],
    }
    others = [start for start in earlier if start != last]
    digest = f" ({_digest(json.dumps(others).encode())})" if others else ""
    conditions["earlier starts in other conditions"] = f"{len(others)}{digest}"
    for split, pairs in provenance["data"].items():
        conditions[f"{split} data"] = f"{pairs['pairs']} pairs, {pairs['sha256'][:12]}"
    if weights := provenance["initial_weights"]:
        conditions["initial weights"] = str(weights)[:12]
    return conditions


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]


def differing(systems: Sequence[System], values_of: Callable[[Output], dict[str, object]]) -> dict[str, list[str]]:
    """Return the settings or conditions that differ between systems. Files of translations are skipped.

    Args:
        values_of: ``settings_of`` or ``conditions_of``.

    Returns:
        Key → its value for each system, as text. Different values of a system's outputs are joined by commas.
    """
    systems = [system for system in systems if system.can_translate]
    known = [[values_of(output) for output in system.outputs] for system in systems]
    rows = {}
    for key in dict.fromkeys(key for outputs in known for values in outputs for key in values):
        row = []
        for system, outputs in zip(systems, known, strict=True):
            missing = "" if system.runs or key.startswith(KEYS_OF_MODELS) else NOT_KNOWN
            texts = [format_value(values[key]) if key in values else missing for values in outputs]
            row.append(", ".join(dict.fromkeys(texts)))
        if len({*row} - {NOT_KNOWN}) > 1:
            rows[key] = row
    return rows


def fine_tuning(systems: Sequence[System]) -> list[str]:
    """Return sentences on fine-tuning: the compared models whose weights other runs began with."""
    outputs = [output for system in systems for output in system.outputs]
    return [
        f"{output.origin} began with the weights of {model.origin}."
        for output in outputs
        for model in outputs
        if output.run and model.weights and model.weights == output.run.provenance["initial_weights"]
    ]


def find_warnings(evaluation: EvaluationSet, systems: Sequence[System]) -> Iterator[str]:
    """Yield a sentence for each reason to doubt the scores of these systems."""
    for key, noun, code, lines in (
        ("source_language", "sources", evaluation.source_language, evaluation.sources),
        ("target_language", "references", evaluation.target_language, evaluation.references),
    ):
        if code and lines:
            text = "".join(lines[row] for row in evenly_spaced_rows(len(lines), SCRIPT_PAIRS))
            yield from filter(None, [language_code_hint(key, code) or script_hint(key, code, noun, text)])
    references = {
        f"reference {number}" if evaluation.other_references else "the reference": lines
        for number, lines in enumerate(evaluation.all_references, 1)
    }
    outputs = {str(output.origin): output.hypotheses for system in systems for output in system.outputs}
    texts = outputs | references
    for name, lines in texts.items():
        if empty := [number for number, line in enumerate(lines, 1) if not line.strip()]:
            yield f"{name} has {counted(len(empty), 'empty line')} of {len(lines):,}, first line {empty[0]}; they count"
    all_texts = texts | ({"the source": evaluation.sources} if evaluation.sources else {})
    normalized = {name: list(map(_normalized, lines)) for name, lines in all_texts.items()}
    for first, second in combinations(all_texts, 2):
        if first in outputs and normalized[first] == normalized[second]:
            form = "" if all_texts[first] == all_texts[second] else " but for whitespace, marks of subwords and case"
            yield f"{first} and {second} are the same{form}"
    forms = {name: _detect_preprocessing(lines) for name, lines in texts.items()}
    for name, kind in forms.items() if len(set(forms.values())) > 1 else ():
        if kind:
            reason = "so these scores compare spellings, not translations"
            yield f"{name} seems to be {kind}, and not all texts are, {reason}: {REMEDIES[kind]}"


def _normalized(line: str) -> str:
    """Return a line in lowercase without whitespace, marks of subwords and the escapes of Moses' tokenizer."""
    return re.sub(r"\s", "", SUBWORD_MARK.sub("", html.unescape(line).replace("@-@", "-"))).casefold()


def _detect_preprocessing(lines: Sequence[str]) -> str | None:
    """Return the key of REMEDIES that describes a text; None for ordinary text."""
    if sum(map(bool, map(SUBWORD_MARK.search, lines))) > MARKED_SHARE * len(lines):
        return "cut into subwords"
    final, detached = (sum(len(mark.findall(line)) for line in lines) for mark in (FINAL_MARK, DETACHED_MARK))
    return "tokenized" if final >= MIN_FINAL_MARKS and 2 * detached > final else None
