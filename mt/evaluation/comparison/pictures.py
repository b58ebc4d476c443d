"""The pictures of the report, by the names that its page shows them under."""

from collections.abc import Iterator, Sequence

from matplotlib.figure import Figure

from mt.evaluation.comparison import plots
from mt.evaluation.comparison.differences import Group
from mt.evaluation.comparison.findings import Findings
from mt.reporting.pages import Picture, as_picture


def draw_pictures(findings: Findings) -> dict[str, Picture]:
    """Draw the pictures. Names of pictures of one system or contrast end with its number, from 0."""
    return {name: as_picture(figure) for name, figure in _figures(findings)}


def _figures(findings: Findings) -> Iterator[tuple[str, Figure]]:
    systems = findings.systems
    verdicts = [contrast.verdict for contrast in findings.contrasts]
    yield "scores", plots.scores_with_intervals(systems, verdicts)
    yield "score differences", plots.differences(verdicts)
    if trained := [system for system in systems if system.runs]:
        yield "curves", plots.learning_curves(trained)
    yield "length", _groups(findings, findings.bleu_by_length, f"length of the {findings.measured_side}")
    if findings.word_f1_by_training_frequency:
        rarest, frequency = findings.bleu_by_rarest_word, findings.word_f1_by_training_frequency
        yield "rarity", _groups(findings, rarest, "count of the rarest word in the training data")
        yield "frequency", _groups(findings, frequency, "count in the training data", "word F1")
    for number, contrast in enumerate(findings.contrasts):
        yield f"differences {number}", plots.chrf_differences(contrast.verdict.system, contrast.chrf_differences)
    if any(study.attention for study in findings.studies):
        yield "entropy", plots.entropies(systems, [study.attention for study in findings.studies])
    for number, (system, study) in enumerate(zip(systems, findings.studies, strict=True)):
        if study.scaling is not None:
            yield f"scaling {number}", plots.scaling(study.scaling)
        for index, attention in enumerate(study.maps):
            yield f"means {index} {number}", plots.mean_attention(system.name, attention)
            if sum(len(layer) for layer in attention.cross()) > 1:
                yield f"heads {index} {number}", plots.every_attention(attention)


def _groups(findings: Findings, groups: Sequence[Group], label: str, measure: str = "BLEU") -> Figure:
    counted = "sentences" if measure == "BLEU" else "test words"
    return plots.by_group(findings.systems, groups, f"{label} (number of {counted} below)", measure)
