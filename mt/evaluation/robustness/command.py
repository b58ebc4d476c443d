"""``python -m mt robustness``: translates changed test sentences, and reports how much BLEU each change costs."""

import logging
from itertools import chain
from pathlib import Path
from statistics import mean

from mt.config import CompareConfig, EvaluationConfig, RobustnessConfig
from mt.core.errors import InputError
from mt.core.language import ANY_DIRECTION, AskedDirection
from mt.evaluation.reports import report_folder
from mt.evaluation.robustness.measures import measure_variants
from mt.evaluation.robustness.report import (
    ROBUSTNESS_REPORT,
    MeasuredRun,
    RobustnessFindings,
    summary,
    write_robustness_report,
)
from mt.evaluation.robustness.variants import RobustnessSet, make_lines
from mt.evaluation.systems import EvaluationSet, System, directions_to_score, open_systems, report_parent
from mt.evaluation.translation import prepare_device, translate_with_progress
from mt.storage.folders import is_model_without_run, open_folder, resolve_model_path
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)


def measure_robustness(config: RobustnessConfig) -> None:
    """Translate every variant of the test set with one or two runs, and write the report and log its summary. Several
    directions have a report each.

    Raises:
        InputError: A run is unfinished or damaged, two runs have different test sets, no test sentence is long enough,
            or the output is a file.
    """
    prepare_device(config)
    directions = directions_to_score(config)
    reports = [_measure(config, asked, len(directions) > 1) for asked in directions]
    for number, run in enumerate(reports[0].runs if len(reports) > 1 else ()):
        losses: dict[str, list[float]] = {}
        for result in chain.from_iterable(own.results for own in reports):
            losses.setdefault(result.variant.name, []).append(result.runs[number].scores.loss.score)
        shown = ", ".join(f"{name} {mean(own):.1f}" for name, own in losses.items())
        logger.info("\n%s: mean loss of BLEU over %d directions: %s", run.name, len(directions), shown)


def _measure(config: RobustnessConfig, asked: AskedDirection, is_one_of_several: bool) -> RobustnessFindings:
    """Measure the robustness in one direction."""
    evaluation, systems = open_runs(config, asked)
    output = report_folder(config.output, _default_output(config), evaluation.key if is_one_of_several else "")
    lines = make_lines(evaluation, config.sentences, config.seed)
    translators = [
        Translator.load(system.first.origin, config.decoding, config.device, asked=system.first.asked)
        for system in systems
    ]
    output.mkdir(parents=True, exist_ok=True)
    pairs = list(zip(systems, translators, strict=True))
    translations = [_translate(translator, system.name, lines) for system, translator in pairs]
    results = measure_variants(lines.variants, translations, evaluation.target_language, config.seed)
    runs = [
        MeasuredRun(system.name, str(system.first.origin), translator.config.model_dump(mode="json"))
        for system, translator in pairs
    ]
    findings = RobustnessFindings(evaluation, runs, len(lines.chosen), results, lines.left_out, config.seed)
    write_robustness_report(findings, output)
    logger.info("\n%s", "\n".join(summary(findings)))
    if lines.left_out:
        logger.info("variants left out, because they change no chosen sentence: %s", ", ".join(lines.left_out))
    logger.info("\nreport: %s", output / ROBUSTNESS_REPORT.page)
    return findings


def _folders(config: RobustnessConfig) -> list[Path]:
    return [Path(folder) for (folder,) in config.systems]


def open_runs(config: RobustnessConfig, asked: AskedDirection = ANY_DIRECTION) -> tuple[EvaluationSet, list[System]]:
    """Return the test set and the runs, which have distinct names.

    Raises:
        InputError: A run is unfinished or damaged, the runs have different test sets, or there is only a model without
            a test set.
    """
    for folder in _folders(config):
        open_folder(folder)  # refuses a file, which a comparison takes for translations
    if all(is_model_without_run(resolve_model_path(folder)) for folder in _folders(config)):
        raise InputError(
            f"run={config.run} is a model without a run, so it has no test set; add second=RUN, a finished run whose "
            "test set both translate"
        )
    only = EvaluationConfig(run=config.run)
    both = CompareConfig(first=config.run, second=config.second) if config.second else only
    return open_systems(both, asked)


def _default_output(config: RobustnessConfig) -> Path:
    """Return the default folder of the report: RUN/robustness or, for two runs, FIRST-vs-SECOND-robustness beside the
    second."""
    folders = [folder.resolve() for folder in _folders(config)]
    if len(folders) == 1:
        return folders[0] / "robustness"
    return report_parent(_folders(config)) / f"{folders[0].name}-vs-{folders[1].name}-robustness"


def _translate(translator: Translator, name: str, lines: RobustnessSet) -> dict[str, str]:
    """Translate the clean and the changed sentences, each distinct one once.

    Args:
        name: The label of the progress bar.

    Returns:
        Source sentence → its translation.
    """
    clean = [pair.source for variant in lines.variants for line in variant.lines for pair in line.pairs]
    plain, tagged = (
        [line.source for variant in lines.variants if variant.is_tagged == is_tagged for line in variant.lines]
        for is_tagged in (False, True)
    )
    translations: dict[str, str] = {}
    for sources, is_tagged in (([*clean, *plain], False), (tagged, True)):
        distinct = list(dict.fromkeys(sources))
        outputs = translate_with_progress(translator, distinct, name, "html" if is_tagged else None)
        translations |= zip(distinct, outputs, strict=True)
    return translations
