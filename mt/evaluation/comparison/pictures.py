"""The pictures of the report, by the names that its page shows them under."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from mt.evaluation.comparison import plots
from mt.evaluation.comparison.differences import Group
from mt.evaluation.comparison.findings import Findings
from mt.reporting.pages import Picture, as_picture


def draw_pictures(findings: Findings) -> dict[str, Picture]:
    """Draw the pictures. Names of pictures of one system or contrast end with its number, from 0."""
    systems = findings.systems
    verdicts = [contrast.verdict for contrast in findings.contrasts]
    pictures = {
        "scores": as_picture(plots.scores_with_intervals(systems, verdicts)),
        "score differences": as_picture(plots.differences(verdicts)),
        "length": as_picture(_groups(findings, findings.bleu_by_length, f"length of the {findings.measured_side}")),
    }
    if trained := [system for system in systems if system.runs]:
        pictures["curves"] = as_picture(plots.learning_curves(trained))
    if findings.word_f1_by_training_frequency:
        rarest, frequency = findings.bleu_by_rarest_word, findings.word_f1_by_training_frequency
        pictures["rarity"] = as_picture(_groups(findings, rarest, "count of the rarest word in the training data"))
        pictures["frequency"] = as_picture(_groups(findings, frequency, "count in the training data", "word F1"))
    for number, contrast in enumerate(findings.contrasts):
        figure = plots.chrf_differences(contrast.verdict.system, contrast.chrf_differences)
        pictures[f"differences {number}"] = as_picture(figure)
    studied = [(system, study) for system, study in zip(systems, findings.studies, strict=True) if study.attention]
    if studied:
        pictures["entropy"] = as_picture(plots.entropies(*zip(*((a, b.attention) for a, b in studied), strict=True)))
    for number, (system, study) in enumerate(zip(systems, findings.studies, strict=True)):
        if study.scaling is not None:
            pictures[f"scaling {number}"] = as_picture(plots.scaling(study.scaling))
        for index, attention in enumerate(study.maps):
            pictures[f"means {index} {number}"] = as_picture(plots.mean_attention(system.name, attention))
            if sum(len(layer) for layer in attention.cross()) > 1:
                pictures[f"heads {index} {number}"] = as_picture(plots.every_attention(attention))
    return pictures


def _groups(findings: Findings, groups: Sequence[Group], label: str, measure: str = "BLEU") -> Figure:
    counted = "sentences" if measure == "BLEU" else "test words"
    return plots.by_group(findings.systems, groups, f"{label} (number of {counted} below)", measure)
