"""``python -m mt robustness``: translates variants of a run's test sentences, and reports how well."""

import logging
from pathlib import Path

import torch

from mt.config import CompareConfig, RobustnessConfig
from mt.core.device import choose_device, limit_kernel_caches
from mt.core.errors import InputError
from mt.core.files import resolved
from mt.evaluation.robustness.lines import Lines, make_lines
from mt.evaluation.robustness.measures import measure
from mt.evaluation.robustness.report import FILES, Findings, MeasuredRun, summary, text_table, write_report
from mt.evaluation.systems import EvaluationSet, folder_beside, is_model_alone, open_systems, read_run
from mt.evaluation.translation import translated
from mt.storage.hub import resolve_model_path
from mt.translation.translator import Translator

logger = logging.getLogger(__name__)


def measure_robustness(config: RobustnessConfig) -> Findings:
    """Translates every variant by each run, writes the report, logs its table and returns what it reports.

    Raises:
        InputError: A run is unfinished, damaged or not comparable with the other, its test set has no sentence that is
            long enough, or the output is a file.
    """
    limit_kernel_caches()
    if config.threads:
        torch.set_num_threads(config.threads)
    choose_device(config.device)  # refuses a missing device before any work is done
    evaluation, names = open_runs(config)
    output = Path(config.output) if config.output else _default_output(config)
    resolved(output)  # refuses links that lead in a circle
    if output.exists() and not output.is_dir():
        raise InputError(f"output={output}: is a file; the report is a folder")
    lines = make_lines(evaluation, config.sentences, config.seed)
    translators = [Translator.load(folder, config.decoding, config.device) for folder in _folders(config)]
    with_markup = config.decoding.model_copy(update={"markup": "html"})
    for_tags = [Translator.load(folder, with_markup, config.device) for folder in _folders(config)]
    output.mkdir(parents=True, exist_ok=True)
    tagged = list(dict.fromkeys(line.source for one in lines.variants if one.is_tagged for line in one.lines))
    plain = _distinct_sources(lines)
    translations = [
        dict(zip(plain, translated(translator, plain, name), strict=True))
        | dict(zip(tagged, translated(of_tags, tagged, f"{name}, tags"), strict=True))
        for translator, of_tags, name in zip(translators, for_tags, names, strict=True)
    ]
    results = measure(lines.variants, translations, evaluation.target_language, config.seed)
    runs = [
        MeasuredRun(name, folder, translator.config)
        for name, folder, translator in zip(names, _folders(config), translators, strict=True)
    ]
    findings = Findings(evaluation, runs, len(lines.chosen), results, lines.left_out, config.seed)
    write_report(findings, output)
    logger.info("\n%s\n\n%s", text_table(findings), "\n".join(summary(findings)))
    for name, reason in lines.left_out.items():
        logger.info("left out: %s: %s", name, reason)
    logger.info("\nreport: %s", output / FILES.page)
    return findings


def _folders(config: RobustnessConfig) -> list[Path]:
    return [Path(folder) for folder in (config.run, config.second) if folder is not None]


def open_runs(config: RobustnessConfig) -> tuple[EvaluationSet, list[str]]:
    """Returns the test set and the name of each run.

    Raises:
        InputError: A run is unfinished or damaged, or the runs have different test sets.
    """
    for folder in _folders(config):
        if not resolve_model_path(folder).is_dir():
            raise InputError(f"{folder}: no such run folder")
    if all(is_model_alone(resolve_model_path(folder)) for folder in _folders(config)):
        raise InputError(
            f"{config.run}: a model that comes alone has no test set. Measure it beside a run, on that one's: "
            f"run={config.run} second=RUN"
        )
    if config.second is None:
        evaluation, output = read_run(Path(config.run))
        return evaluation, [output.origin.resolve().name]
    evaluation, systems = open_systems(CompareConfig(first=config.run, second=config.second))
    return evaluation, [system.name for system in systems]


def _default_output(config: RobustnessConfig) -> Path:
    """Returns the folder ``robustness`` in the run or, with two runs, FIRST-vs-SECOND-robustness beside the second."""
    places = [folder.resolve() for folder in _folders(config)]
    if len(places) == 1:
        return places[0] / "robustness"
    return folder_beside(_folders(config)) / f"{places[0].name}-vs-{places[1].name}-robustness"


def _distinct_sources(lines: Lines) -> list[str]:
    """Returns all plain lines to translate, each once: those of the variants, and the clean sentences behind them."""
    clean = [pair.source for variant in lines.variants for line in variant.lines for pair in line.pairs]
    changed = [line.source for variant in lines.variants if not variant.is_tagged for line in variant.lines]
    return list(dict.fromkeys([*clean, *changed]))
