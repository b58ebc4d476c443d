"""Writes the findings: report.html for people, comparison.md for a pull request, comparison.json for programs."""

import dataclasses
import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import mean

from mt.core.wording import format_value
from mt.evaluation.comparison import plots
from mt.evaluation.comparison.attention import Study
from mt.evaluation.comparison.cost import Cost, budget
from mt.evaluation.comparison.differences import Group
from mt.evaluation.comparison.findings import Findings
from mt.evaluation.systems import EvaluationSet, Output, Run, System
from mt.metrics.significance import ENUMERATED, fewest_differing
from mt.reporting.pages import Names, Picture, as_picture, write_pages
from mt.storage.folders import open_folder
from mt.storage.marian import UNKNOWN_LANGUAGE
from mt.storage.run_folder import flat_config
from mt.training.fine_tuning import read_changes

NOT_KNOWN = "not known"
"""Stands for what a model that comes alone does not tell: how it was trained, on what, and what that cost."""
MATTERS_MOST = ("seed", "training.init_from", "training.max_updates", "train data", "valid data", "code revision")
"""Settings and conditions that have a row of their own, even if a model that comes alone does not tell them."""
FILES = Names(page="report.html", markdown="comparison.md", json="comparison.json")


@dataclasses.dataclass(frozen=True)
class RobustnessReport:
    """What the report says of the robustness that was measured beside the comparison, and where the rest stands."""

    page: str
    """The name of the page, in the folder of the comparison."""
    json: str
    """The name of the file with every number, likewise."""
    runs: list[str]
    """The folders of the runs that were measured: the first of each system."""
    words: list[str]
    """Sentences on what was found."""


def write_report(findings: Findings, folder: Path, trials: int, robustness: RobustnessReport | None = None) -> None:
    """Writes all three files.

    Args:
        trials: The number of random exchanges of the randomisation test, for its note.
        robustness: What else was measured, and stands beside the report.
    """
    values = {
        "findings": findings,
        "title": " against ".join([findings.systems[0].name, *(system.name for system in findings.systems[1:])]),
        "direction": _direction(findings.evaluation),
        "several_seeds": any(len(system.outputs) > 1 for system in findings.systems),
        "repeats": "seeds" if all(system.runs for system in findings.systems) else "outputs",
        "trained": [system for system in findings.systems if system.runs],
        "models": [system for system in findings.systems if system.can_translate and not system.runs],
        "files": [system for system in findings.systems if not system.can_translate],
        "can_translate": [system for system in findings.systems if system.can_translate],
        "differing_settings": differing_settings(findings),
        "differing_conditions": differing_conditions(findings),
        "cost_rows": _cost_rows(findings),
        "budget": budget(findings.systems),
        "fine_tuning": fine_tuning(findings.systems),
        "about_models": _about_models(findings.systems),
        "reached_note": _reached_note(findings.systems),
        "fewest": fewest_differing(findings.contrasts[0].verdict.level),
        "enumerated": ENUMERATED,
        "seeds_tested": any(contrast.verdict.seed_tests for contrast in findings.contrasts),
        "trials": trials,
        "robustness": robustness,
    }
    numbers = as_json(findings) | {"robustness": None if robustness is None else dataclasses.asdict(robustness)}
    write_pages(folder, FILES, Path(__file__).parent, values, _pictures(findings), numbers)


def as_json(findings: Findings) -> dict:
    """Returns every number of the report."""
    return {
        "direction": _direction(findings.evaluation),
        "test_pairs": len(findings.evaluation.references),
        "test_pairs_with_a_repeated_source": findings.repeated_sources,
        "budget": budget(findings.systems),
        "differing_settings": differing_settings(findings),
        "differing_conditions": differing_conditions(findings),
        "fine_tuning": fine_tuning(findings.systems),
        "systems": [
            {
                "name": system.name,
                "outputs": [str(output.origin) for output in system.outputs],
                "validations": [run.validations() for run in system.runs],
                "scores": {
                    metric: {"mean": mean(values), "deviation": scores.deviation(metric), "outputs": values}
                    for metric, values in scores.of_outputs.items()
                },
                "cost": None if cost is None else dataclasses.asdict(cost),
                "attention": [dataclasses.asdict(spread) for spread in study.spreads],
                "scaling": None if study.scaling is None else _without_samples(dataclasses.asdict(study.scaling)),
                "alignments": study.alignments,
            }
            for system, scores, cost, study in zip(
                findings.systems, findings.scores, findings.costs, findings.studies, strict=True
            )
        ],
        "verdicts": [
            {
                "baseline": verdict.baseline,
                "system": verdict.system,
                "words": contrast.conclusions.words,
                "may_conclude": contrast.conclusions.may,
                "may_not_conclude": contrast.conclusions.may_not,
                "level": verdict.level,
                "more_than_chance": {one.metric: verdict.is_shown(one.metric) for one in verdict.sentence_tests},
                "over_sentences": [dataclasses.asdict(one) for one in verdict.sentence_tests],
                "over_seeds": {metric: dataclasses.asdict(welch) for metric, welch in verdict.seed_tests.items()},
                "pairs": [[dataclasses.asdict(one) for one in pair] for pair in verdict.pairs],
                "chrf_differences": contrast.chrf_differences,
                "baseline_wins": [dataclasses.asdict(example) for example in contrast.baseline_wins],
                "system_wins": [dataclasses.asdict(example) for example in contrast.system_wins],
            }
            for contrast in findings.contrasts
            for verdict in [contrast.verdict]
        ],
        "reached_valid_bleu": findings.reached_bleu,
        "length_of": "source" if findings.evaluation.sources else "reference",
        "bleu_by_length": [dataclasses.asdict(group) for group in findings.by_length],
        "bleu_by_rarest_word": [dataclasses.asdict(group) for group in findings.by_rarity],
        "word_f1_by_training_frequency": [dataclasses.asdict(group) for group in findings.by_frequency],
    }


def _direction(evaluation: EvaluationSet) -> str:
    if evaluation.source_language is None:
        return f"into {evaluation.target_language}"
    return f"{evaluation.source_language}→{evaluation.target_language}"


def _without_samples(values: dict) -> dict:
    return {name: value for name, value in values.items() if not name.endswith("_sample")}


def fine_tuning(systems: Sequence[System]) -> list[str]:
    """Returns sentences on the compared models that are the beginning of compared runs, and on what the runs' own
    training found fine-tuning to have changed, an earlier run's test set included."""
    outputs = [output for system in systems for output in system.outputs]
    said = []
    for output in (one for one in outputs if one.run):
        assert output.run
        start = output.run.provenance["initial_weights"]
        said += [
            f"{output.origin} began with the weights of {model.origin}."
            for model in outputs
            if model.weights and model.weights == start
        ]
        said += [
            f"{output.origin}, at the end of its training: {name}, from {change}."
            for name, change in read_changes(output.origin, output.run.results).items()
        ]
    return said


def _about_models(systems: Sequence[System]) -> str:
    """Returns what is known of the models that come alone, and how they translated; empty if there are none."""
    outputs = [output for system in systems if not system.runs for output in system.outputs if output.model]
    if not outputs:
        return ""
    assert outputs[0].model
    search = outputs[0].model.decoding
    names = ", ".join(str(output.origin) for output in outputs)
    return (
        f"Of {names}, only the model is known: not the training data, the updates, the time or any other cost of "
        "training, nor the score on validation data. The test set was translated for this comparison, with a beam of "
        f"{search.beam_size} and a length penalty of {search.length_penalty:g}."
    )


def differing_settings(findings: Findings) -> dict[str, list[str]]:
    """Returns the config keys in which any runs and models differ, with the values of each system that has a model.

    The seed is left out if all systems were trained with the same seeds. What is not known of a model that comes alone,
    and the same for all runs, is one line but for what matters most.
    """
    systems = [system for system in findings.systems if system.can_translate]
    found = _differing(systems, _settings, complete=("model.",))
    seeds = [[run.config.seed for run in system.runs] for system in systems]
    without = ("name", "runs") if any(own != seeds[0] for own in seeds) else ("name", "runs", "seed")
    told = {key: values for key, values in found.items() if key not in without}
    return _summed_up(told, "all else in config.yaml")


def _settings(output: Output) -> dict[str, object]:
    """Returns the settings of a run, or those that a model which comes alone tells."""
    if output.run:
        return flat_config(output.run.config)
    assert output.model
    parts = {"model": output.model.model, "decoding": output.model.decoding, "tokenizer": output.model.tokenizer}
    known = {f"{part}.{name}": value for part, values in parts.items() for name, value in values.model_dump().items()}
    return known | {"text.enabled": output.model.text.enabled}


def differing_conditions(findings: Findings) -> dict[str, list[str]]:
    """Returns the resolved settings, versions, machine and data that differ between runs and models, with each system's
    values. What is not known of a model that comes alone, and the same for all runs, is one line but for what matters
    most."""
    systems = [system for system in findings.systems if system.can_translate]
    found = _differing(systems, _conditions, complete=("tokenizer.model", "source.model", "target.model"))
    return _summed_up(found, "all else in provenance.json")


def _conditions(output: Output) -> dict[str, object]:
    assert output.model
    tokenizers = open_folder(output.origin).read_tokenizer_files()
    pieces = {name: hashlib.sha256(model).hexdigest()[:12] for name, model in tokenizers.items()}
    alignment = dict(_flat("alignment", output.model.alignment.model_dump()))
    languages = output.model.source_language, output.model.target_language
    direction = NOT_KNOWN if UNKNOWN_LANGUAGE in languages else "→".join(languages)
    if output.run is None:
        return {"direction": direction, **alignment, **pieces}
    provenance = output.run.provenance
    if weights := provenance["initial_weights"]:
        pieces["initial weights"] = str(weights)[:12]
    data = {f"{split} data": f"{one['pairs']} pairs, {one['sha256'][:12]}" for split, one in provenance["data"].items()}
    made_with = {"code revision": provenance["code_revision"], "python": provenance["python"]}
    took_effect = dict(_flat("took effect", provenance["resolved_settings"]))
    return {
        "direction": direction,
        **took_effect,
        **alignment,
        **made_with,
        **provenance["libraries"],
        **provenance["machine"],
        **data,
        **pieces,
    }


def _flat(name: str, value: object) -> Iterator[tuple[str, object]]:
    """Yields each single value of nested sections with its full name."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _flat(f"{name}: {key}", part)
    else:
        yield name, value


def _differing(
    systems: Sequence[System], told_by: Callable[[Output], dict[str, object]], complete: tuple[str, ...]
) -> dict[str, list[str]]:
    """Returns the keys whose value is not the same in all outputs of all systems, with the values of each system.

    Args:
        systems: Runs and models that come alone.
        told_by: Returns the values of an output.
        complete: The beginnings of those keys that a model which comes alone tells if they mean anything for it. It is
            NOT_KNOWN of the others.
    """
    facts = [[told_by(output) for output in system.outputs] for system in systems]
    keys = dict.fromkeys(key for outputs in facts for one in outputs for key in one)
    unknown = {key: NOT_KNOWN for key in keys if not key.startswith(complete)}
    filled = [
        [one if system.runs else unknown | one for one in outputs]
        for system, outputs in zip(systems, facts, strict=True)
    ]
    values = {key: [[format_value(one[key]) if key in one else "" for one in of] for of in filled] for key in keys}
    return {
        key: [", ".join(dict.fromkeys(of_system)) for of_system in of_systems]
        for key, of_systems in values.items()
        if len({value for of_system in of_systems for value in of_system}) > 1
    }


def _summed_up(rows: dict[str, list[str]], rest: str) -> dict[str, list[str]]:
    """Puts rows together in which nothing differs but that a value is not known of models that come alone.

    Args:
        rows: The values of each system, by key.
        rest: The name of the row that stands for them.
    """
    own: dict[str, list[str]] = {}
    together: dict[str, list[str]] = {}
    for key, values in rows.items():
        if NOT_KNOWN in values and len(set(values)) == 2 and key not in MATTERS_MOST:
            together[rest] = [value if value == NOT_KNOWN else "recorded" for value in values]
        else:
            own[key] = values
    return own | together


def _cost_rows(findings: Findings) -> list[tuple[str, list[str]]]:
    """Returns the rows of the table of costs: a label, and the number for each system that has a model."""
    costs = [cost for cost in findings.costs if cost]

    def of_training(told: Callable[[Cost], str]) -> list[str]:
        return [NOT_KNOWN if cost.updates is None else told(cost) for cost in costs]

    return [
        ("parameters", [f"{cost.parameters:,}" for cost in costs]),
        ("updates", of_training(lambda cost: f"{cost.updates:,.0f}")),
        ("target tokens seen", of_training(lambda cost: f"{cost.target_tokens:,.0f}")),
        ("minutes of training", of_training(lambda cost: _number(cost.training_minutes))),
        ("target tokens/s in training", of_training(lambda cost: f"{cost.target_tokens_per_second:,.0f}")),
        ("peak memory", of_training(lambda cost: f"{(cost.peak_memory_bytes or 0) / 2**20:,.0f} MiB")),
        *((label, of_training(told)) for label, told in _reached_rows(findings)),
        ("translating, sentences/s, batched", [_number(cost.sentences_per_second_batched) for cost in costs]),
        ("translating, sentences/s, one at a time", [_number(cost.sentences_per_second_singly) for cost in costs]),
    ]


def _reached_rows(findings: Findings) -> list[tuple[str, Callable[[Cost], str]]]:
    bleu = "the same validation BLEU"
    if findings.reached_bleu is not None:
        # Rounded down, because no run need have reached a higher BLEU.
        bleu = f"validation BLEU {math.floor(round(findings.reached_bleu * 100, 6)) / 100:.2f}"
    return [
        (f"minutes to {bleu}", lambda cost: _number(cost.minutes_to_reach)),
        (f"target tokens to {bleu}", lambda cost: _number(cost.target_tokens_to_reach)),
    ]


def _reached_note(systems: Sequence[System]) -> str:
    """Returns a note on how exact the numbers of ``_reached_rows`` are."""
    steps = dict.fromkeys(run.config.training.validate_every for system in systems for run in system.runs)
    every = " or ".join(f"{step:,}" for step in steps)
    return f"A BLEU counts as reached at the first validation at or above it, and they are {every} updates apart."


def _pictures(findings: Findings) -> dict[str, list[Picture]]:
    """Draws the pictures of each part of the page."""
    systems, studies = findings.systems, findings.studies
    contrasts = findings.contrasts
    verdicts = [one.verdict for one in contrasts]
    trained = [system for system in systems if system.runs]
    studied = [(system, study) for system, study in zip(systems, studies, strict=True) if study.spreads]
    measured = "source" if findings.evaluation.sources else "reference"
    pictures = {
        "scores": [
            as_picture(
                plots.scores_with_intervals(systems, verdicts),
                "Test BLEU with 95 % intervals: "
                + _told(systems, [f"{score.mean('BLEU'):.1f}" for score in findings.scores]),
            ),
            as_picture(
                plots.differences(verdicts),
                "Difference in BLEU with intervals: "
                + "; ".join(f"{one.system} {one.sentence_tests[0].difference.score:+.2f}" for one in verdicts),
            ),
        ],
        "curves": [
            as_picture(
                plots.learning_curves(trained),
                "Learning curves, validation BLEU and training loss over minutes and over target tokens; last BLEU: "
                + _told(trained, [_last_bleu(system.runs[0]) for system in trained]),
            )
        ]
        if trained
        else [],
        "length": _of_groups(
            findings, "BLEU", findings.by_length, f"length of the {measured} (number of sentences below)"
        ),
        "rarity": _of_groups(
            findings,
            "BLEU",
            findings.by_rarity,
            "count of the rarest word in the training data (number of sentences below)",
        ),
        "frequency": _of_groups(
            findings, "word F1", findings.by_frequency, "count in the training data (number of test words below)"
        ),
        "differences": [
            as_picture(
                plots.chrf_differences(one.verdict.system, one.chrf_differences),
                f"Histogram of sentence chrF2, {one.verdict.system} minus {one.verdict.baseline}: "
                f"{sum(difference > 0 for difference in one.chrf_differences)} sentences are better, "
                f"{sum(difference < 0 for difference in one.chrf_differences)} are worse",
            )
            for one in contrasts
        ],
        "entropy": [
            as_picture(
                plots.entropies([system for system, _ in studied], [study.spreads for _, study in studied]),
                "Entropy of every attention head as a share of the most possible, from least to most: "
                + _told([system for system, _ in studied], [_range_of_entropy(study) for _, study in studied]),
            )
        ]
        if studied
        else [],
    }
    for number, (system, study) in enumerate(zip(systems, studies, strict=True)):
        if study.scaling is not None:
            pictures[f"scaling {number}"] = [
                as_picture(
                    plots.scaling(study.scaling),
                    f"Query-key products in {system.name} before and after the division by the root of "
                    f"{study.scaling.key_width}: deviation {study.scaling.raw_deviation:.1f} and "
                    f"{study.scaling.scaled_deviation:.1f}",
                )
            ]
        for place, attention in enumerate(study.maps):
            about = f"cross-attention of {system.name} for test sentence {findings.attention_rows[place] + 1}"
            pictures[f"means {place} {number}"] = [
                as_picture(plots.mean_attention(system.name, attention), f"Mean {about}")
            ]
            if sum(len(layer) for layer in attention.cross()) > 1:
                pictures[f"heads {place} {number}"] = [
                    as_picture(plots.every_attention(attention), f"Every head's {about}")
                ]
    return pictures


def _of_groups(findings: Findings, measure: str, groups: Sequence[Group], what: str) -> list[Picture]:
    """Returns a list with the picture of the groups; it is empty if there are none."""
    if not groups:
        return []
    figures = "; ".join(
        f"{group.label}: {_told(findings.systems, [f'{score:.1f}' for score in group.scores])}" for group in groups
    )
    return [as_picture(plots.by_group(findings.systems, groups, what, measure), f"{measure} by {what}. {figures}")]


def _told(systems: Sequence[System], figures: Sequence[str]) -> str:
    return ", ".join(f"{system.name} {figure}" for system, figure in zip(systems, figures, strict=True))


def _last_bleu(run: Run) -> str:
    found = [line["bleu"] for line in run.validations() if line["bleu"] is not None]
    return f"{found[-1]:.1f}" if found else "unknown"


def _range_of_entropy(study: Study) -> str:
    shares = [share for spread in study.spreads for share in spread.share_of_possible]
    return f"{min(shares):.2f} to {max(shares):.2f}"


def _number(value: float | None) -> str:
    """Formats a number with three significant digits, or as a whole number from 100 on; None becomes "–"."""
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
