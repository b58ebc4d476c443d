"""Advice that the trainer logs when a setting is known to lead to worse translations."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import datasets

from mt.config import CorpusConfig, ModelConfig
from mt.config.presets import model_presets
from mt.core.columns import numbers
from mt.core.language import language_of_country, script_in, script_of
from mt.data.corpus import evenly_spaced
from mt.models.build import build_shapes
from mt.text.tokenizer import Tokenizer, TokenizerPair

MOST_PARAMETERS = 50
"""The most parameters per target piece of the corpus. On Multi30k, which has 0.4 M pieces, a model of 2.6 M parameters
translates better than one of 36 M, and that one better than one of 49 M (Wu et al. 2021)."""
FEWEST_PASSES = 0.5
"""The fewest passes over the corpus. To leave half of the pairs unseen is a choice; to leave most of them unseen is an
oversight."""

SCRIPT_PAIRS = 1000
"""How many training pairs are examined for the scripts they are written in."""

LINES_COVERED = 1000
"""How many validation pairs are examined for what the vocabulary of another run lacks."""
MOST_WITHOUT_PIECE = 0.01
"""The largest share of characters that may have no piece of their own. A vocabulary learnt from everyday French lacks
0.1 % of the characters of French news, and 1.5 % of those of German."""
MOST_LENGTHENED = 1.3
"""How many times as many pieces a character may take as in the texts of the other run: with a vocabulary learnt from
everyday French, French news take 1.04 times as many, Spanish 1.5 and German 1.7."""

UNSUITABLE = "Training from scratch would learn a vocabulary that fits: if there are enough pairs, try both"

LEAST_BLEU = 1.0
LEAST_CHRF = 25.0
"""If both scores are lower, they come of chance. BLEU alone does not tell: it is 0 where no line has four words."""


def advice_on_size(config: ModelConfig, tokenizers: TokenizerPair, train: datasets.Dataset) -> str | None:
    """Returns the advice to take a smaller preset if the model is far too large for its encoded training pairs; None if
    it is not, or if no preset is smaller."""
    pieces = int(numbers(train, "target_length").sum()) + len(train)
    parameters = _parameters(config, tokenizers)
    if parameters <= MOST_PARAMETERS * pieces:
        return None
    sizes = {name: _parameters(model, tokenizers) for name, model in model_presets(config.architecture).items()}
    # A deep encoder makes a preset translate faster, not better.
    smaller = {name: size for name, size in sizes.items() if size < parameters and not name.endswith("_deep")}
    if not smaller:
        return None
    fitting = {name: size for name, size in smaller.items() if size <= MOST_PARAMETERS * pieces}
    best = max(fitting, key=fitting.__getitem__) if fitting else min(smaller, key=smaller.__getitem__)
    return (
        f"{parameters:,} parameters are many for {pieces:,} target pieces: model={best} ({smaller[best]:,} parameters) "
        "trains faster on so few, and usually translates better"
    )


def advice_on_languages(corpus: CorpusConfig) -> Iterator[str]:
    """Yields advice for each language that was probably given by a country's code instead of its own."""
    for key, code in ("source_language", corpus.source_language), ("target_language", corpus.target_language):
        if language := language_of_country(code):
            yield (
                f"data.{key}={code} is a country's code: take the language's code, {language}, because how texts are "
                "cut into pieces and scored depends on it"
            )


def advice_on_scripts(config: CorpusConfig, train: datasets.Dataset) -> Iterator[str]:
    """Yields advice for each side whose texts are in another script than its language.

    Only scripts count whose languages are cut into pieces or scored in a way of their own. If each side is in the
    other's script, the only advice is that the sides have probably been exchanged.
    """
    some = evenly_spaced(train, SCRIPT_PAIRS)
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
        if script == expected or language_of_country(code):
            continue
        wrong = f"data.{side}_language={code}, but the {side}s are"
        if script:
            right = ", ".join(sorted(script.languages))
            yield f"{wrong} in {script.name} script: only under a code of it ({right}) are texts rightly cut and scored"
        elif expected and any(map(str.isalpha, texts[side])):
            yield f"{wrong} not in {expected.name} script: how texts are cut and scored depends on the code"


def advice_on_vocabulary(
    tokenizers: TokenizerPair, valid: datasets.Dataset, earlier: dict[str, list[str]] | None
) -> Iterator[str]:
    """Yields advice for each side for which the tokenizer of another run is unsuitable.

    Args:
        tokenizers: Of the run that this one begins from.
        valid: The validation pairs of this run.
        earlier: Texts of the other run for each side; None if they are not known.
    """
    some = evenly_spaced(valid, LINES_COVERED)
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        texts = some[side]
        characters = Counter("".join(tokenizer.normalise(text) for text in texts))
        missing = Counter({one: count for one, count in characters.items() if not tokenizer.has_piece(one)})
        share = missing.total() / max(1, characters.total())
        if share > MOST_WITHOUT_PIECE:
            frequent = " ".join(one for one, _ in missing.most_common(10))
            yield (
                f"{share:.1%} of the characters of the {side}s have no piece of their own in the tokenizer of the "
                f"earlier run: {frequent} … {UNSUITABLE}"
            )
        elif earlier:
            before, now = (_pieces_per_character(tokenizer, one) for one in (earlier[side], texts))
            if now > MOST_LENGTHENED * before:
                yield (
                    f"with the tokenizer of the earlier run, the {side}s take {now:.2f} pieces a character, and those "
                    f"of its own test set {before:.2f}. {UNSUITABLE}"
                )


def _pieces_per_character(tokenizer: Tokenizer, texts: Sequence[str]) -> float:
    """Returns the mean number of pieces for each character, white space left out."""
    return sum(map(len, tokenizer.encode(texts))) / max(1, sum(len("".join(text.split())) for text in texts))


def advice_on_length(max_updates: int, accumulate: int, batches: int) -> str | None:
    """Returns advice on how many updates one pass over the corpus takes, if a run makes far less than one pass;
    otherwise None.

    Args:
        max_updates: The updates of the run.
        accumulate: Batches per update.
        batches: Batches in one pass over the corpus.
    """
    passes = max_updates * accumulate / batches
    if passes >= FEWEST_PASSES:
        return None
    return (
        f"training ends after {passes:.2g} of an epoch: one pass over the pairs takes "
        f"training.max_updates={math.ceil(batches / accumulate)}"
    )


def advice_on_score(bleu: float, chrf: float) -> str | None:
    """Returns advice on where to look if a run has learnt next to nothing; None if it has learnt something."""
    if bleu >= LEAST_BLEU or chrf >= LEAST_CHRF:
        return None
    return (
        "a model with such scores has learnt next to nothing. Possible reasons: too few updates "
        "(training.max_updates), an unsuitable learning rate (see the curves), or lines of source and target that do "
        "not belong together"
    )


def _parameters(config: ModelConfig, tokenizers: TokenizerPair) -> int:
    return build_shapes(config, tokenizers).parameter_count
