"""Differences in the settings and conditions of the compared runs and models."""

import hashlib
from collections.abc import Callable, Iterator, Sequence

from mt.config import Section
from mt.core.wording import format_value
from mt.evaluation.systems import Output, System
from mt.storage.folders import open_folder
from mt.storage.marian import UNKNOWN_LANGUAGE
from mt.storage.run_folder import flat_config
from mt.training.fine_tuning import read_changes

NOT_KNOWN = "not known"
"""Stands for the training, data and costs of a model without a run."""
OWN_ROWS = ("seed", "training.init_from", "training.max_updates", "train data", "valid data", "code revision")
"""Settings and conditions with a row of their own, even if they are only unknown."""


def differing_settings(systems: Sequence[System]) -> dict[str, list[str]]:
    """Return the config keys with different values in the runs and models, with the values of each such system.

    The seed is left out if all systems were trained with the same seeds.
    """
    systems = [system for system in systems if system.can_translate]
    rows = _differing(systems, _settings, known_of_models=("model.",), rest="all else in config.yaml")
    seeds = [[run.config.seed for run in system.runs] for system in systems]
    hidden = ("name", "runs") if any(own != seeds[0] for own in seeds) else ("name", "runs", "seed")
    return {key: values for key, values in rows.items() if key not in hidden}


def differing_conditions(systems: Sequence[System]) -> dict[str, list[str]]:
    """Return the resolved settings, versions, machine and data that differ between runs and models, with each system's
    values."""
    return _differing(
        [system for system in systems if system.can_translate],
        _conditions,
        known_of_models=("tokenizer.model", "source.model", "target.model"),
        rest="all else in provenance.json",
    )


def _settings(output: Output) -> dict[str, object]:
    """Return the settings of a run, or those that a model folder records."""
    assert output.model and output.decoding
    if output.run:
        return flat_config(output.run.config) | _keys("decoding", output.decoding)
    sections = {"model": output.model.model, "decoding": output.decoding, "tokenizer": output.model.tokenizer}
    known = {key: value for name, section in sections.items() for key, value in _keys(name, section).items()}
    return known | {"text.enabled": output.model.text.enabled}


def _keys(name: str, section: Section) -> dict[str, object]:
    return {f"{name}.{key}": value for key, value in section.model_dump(mode="json").items()}


def _conditions(output: Output) -> dict[str, object]:
    assert output.model
    provenance = output.run.provenance if output.run else {}
    languages = output.model.source_language, output.model.target_language
    conditions: dict[str, object] = {
        "direction": NOT_KNOWN if UNKNOWN_LANGUAGE in languages else "→".join(languages),
        **dict(_flat("took effect", provenance.get("resolved_settings", {}))),
        **dict(_flat("alignment", output.model.alignment.model_dump())),
    }
    if provenance:
        conditions |= {
            "code revision": provenance["code_revision"],
            "python": provenance["python"],
            **provenance["libraries"],
            **provenance["machine"],
        }
        for split, pairs in provenance["data"].items():
            conditions[f"{split} data"] = f"{pairs['pairs']} pairs, {pairs['sha256'][:12]}"
    for name, content in open_folder(output.origin).read_tokenizer_files().items():
        conditions[name] = hashlib.sha256(content).hexdigest()[:12]
    if weights := provenance.get("initial_weights"):
        conditions["initial weights"] = str(weights)[:12]
    return conditions


def _flat(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yield each single value of nested sections with its full name."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(f"{name}: {key}", part)
    else:
        yield name, value


def _differing(
    systems: Sequence[System],
    facts_of: Callable[[Output], dict[str, object]],
    known_of_models: tuple[str, ...],
    rest: str,
) -> dict[str, list[str]]:
    """Return the keys with different values in the outputs of the systems, with the values of each system.

    Args:
        systems: Runs, and models without a run.
        facts_of: Returns the values of an output.
        known_of_models: The beginnings of the keys that model folders record. Others are NOT_KNOWN without a run.
        rest: Name of the one row for all keys that differ only in being unknown of models without a run, other than
            OWN_ROWS.
    """
    facts = [[facts_of(output) for output in system.outputs] for system in systems]
    keys = dict.fromkeys(key for outputs in facts for each in outputs for key in each)
    rows, summary = {}, {}
    for key in keys:
        default = "" if key.startswith(known_of_models) else NOT_KNOWN
        values = [
            [
                format_value(each[key]) if key in each else "" if system.runs else default
                for each in outputs
            ]
            for system, outputs in zip(systems, facts, strict=True)
        ]  # fmt: skip
        row = [", ".join(dict.fromkeys(of_system)) for of_system in values]
        if len({value for of_system in values for value in of_system}) <= 1:
            continue
        if NOT_KNOWN in row and len(set(row)) == 2 and key not in OWN_ROWS:
            summary[rest] = [value if value == NOT_KNOWN else "recorded" for value in row]
        else:
            rows[key] = row
    return rows | summary


def fine_tuning(systems: Sequence[System]) -> list[str]:
    """Return sentences on the compared models that are the base of compared runs, and on the changes by fine-tuning
    that training measured."""
    outputs = [output for system in systems for output in system.outputs]
    sentences = []
    for output in outputs:
        if output.run:
            sentences += [
                f"{output.origin} began with the weights of {model.origin}."
                for model in outputs
                if model.weights and model.weights == output.run.provenance["initial_weights"]
            ]
            sentences += [
                f"{output.origin}, at the end of its training: {name}, from {change}."
                for name, change in read_changes(output.origin, output.run.results).items()
            ]
    return sentences
