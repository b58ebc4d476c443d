"""What the trainer says when a setting is known to lead to worse translations."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import datasets
import torch

from mt.config import CorpusConfig, ModelConfig, TrainConfig
from mt.config.composition import Files, compose_jobs
from mt.data.column import column
from mt.data.corpus import spread
from mt.language import OF_COUNTRIES, base_language, script_in, script_of
from mt.model.build import build_model

if TYPE_CHECKING:
    from mt.training.preparation import PreparedData

MOST_PARAMETERS = 50
"""For each target piece of the corpus. With 0.4 M pieces (Multi30k) 2.6 M parameters translate better than 36 M, and
these better than 49 M (Wu et al. 2021)."""
FEWEST_PASSES = 0.5
"""Over the corpus. Half of the pairs unseen is a choice; most of them unseen is an oversight."""

SCRIPT_PAIRS = 1000
"""Looked at for the scripts they are written in."""

LEAST_BLEU = 1.0
LEAST_CHRF = 25.0
"""What is below both comes of chance; BLEU alone is 0 where no line has four words."""


def advice_on_size(config: TrainConfig, data: "PreparedData") -> str | None:
    """Names the preset to take instead of a model that is far too large for its corpus; None if it is not, or none is
    smaller."""
    pieces = int(column(data.train, "target_length").to_numpy().sum()) + len(data.train)
    parameters = _parameters(config.model, data)
    if parameters <= MOST_PARAMETERS * pieces:
        return None
    sizes = {name: _parameters(model, data) for name, model in presets(config.model.architecture).items()}
    # What has a deep encoder translates faster, not better.
    smaller = {name: size for name, size in sizes.items() if size < parameters and not name.endswith("_deep")}
    if not smaller:
        return None
    fitting = {name: size for name, size in smaller.items() if size <= MOST_PARAMETERS * pieces}
    best = max(fitting, key=fitting.__getitem__) if fitting else min(smaller, key=smaller.__getitem__)
    return (
        f"{parameters:,} parameters are many for {pieces:,} target pieces: model={best} ({smaller[best]:,} parameters) "
        "learns so few in less time, and usually translates better"
    )


def advice_on_languages(corpus: CorpusConfig) -> Iterator[str]:
    """Names each language whose country's code was probably given instead."""
    for key, code in ("source_language", corpus.source_language), ("target_language", corpus.target_language):
        if language := OF_COUNTRIES.get(base_language(code)):
            yield (
                f"data.{key}={code} is a country's code: for the language take {language}, "
                "for how texts are cut into pieces and scored depends on it"
            )


def advice_on_scripts(config: CorpusConfig, train: datasets.Dataset) -> Iterator[str]:
    """Names each language whose texts are written in another script than its own, where the script matters."""
    some = spread(train, SCRIPT_PAIRS)
    codes = {"source": config.source_language, "target": config.target_language}
    texts = {side: "".join(some[side]) for side in codes}
    own = {side: script_of(code) for side, code in codes.items()}
    found = {side: script_in(text, own[side]) for side, text in texts.items()}
    if own["source"] != own["target"] and (found["source"], found["target"]) == (own["target"], own["source"]):
        yield (
            f"data.source_language={codes['source']} and data.target_language={codes['target']}, but the sources are "
            "written as the targets should be and the other way round: the sides have probably been exchanged"
        )
        return
    for side, code in codes.items():
        script, expected = found[side], own[side]
        if script == expected or base_language(code) in OF_COUNTRIES:
            continue
        wrong = f"data.{side}_language={code}, but the {side}s are"
        if script:
            right = ", ".join(sorted(script.languages))
            yield f"{wrong} in {script.name} script: only under its codes ({right}) are texts rightly cut and scored"
        elif expected and any(map(str.isalpha, texts[side])):
            yield f"{wrong} not in {expected.name} script: how texts are cut and scored depends on the code"


def advice_on_length(max_updates: int, accumulate: int, batches: int) -> str | None:
    """How many updates one pass over the corpus, of so many batches, takes, if a run makes far less than one; None if
    it does not."""
    passes = max_updates * accumulate / batches
    if passes >= FEWEST_PASSES:
        return None
    return (
        f"training ends after {passes:.2g} of a pass over the pairs: one pass takes "
        f"training.max_updates={math.ceil(batches / accumulate)}"
    )


def advice_on_score(bleu: float, chrf: float) -> str | None:
    """Where to look if a run has learnt nothing; None if it has."""
    if bleu >= LEAST_BLEU or chrf >= LEAST_CHRF:
        return None
    return (
        "such scores are those of a model that has learnt next to nothing: it saw too few updates "
        "(training.max_updates), its learning rate does not suit it (see the curves), or the lines of source and "
        "target do not belong together"
    )


def presets(architecture: str) -> dict[str, ModelConfig]:
    """The models of conf/model that are of an architecture, by name."""
    names = list(Files("train").options("model"))
    jobs = compose_jobs("train", TrainConfig, [f"model={','.join(names)}"], multirun=True)
    models = {name: job.config.model for name, job in zip(names, jobs, strict=True)}
    return {name: model for name, model in models.items() if model.architecture == architecture}


def _parameters(model: ModelConfig, data: "PreparedData") -> int:
    with torch.device("meta"):
        return build_model(model, data.tokenizers).parameter_count
