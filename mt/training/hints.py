"""Hints that are logged as warnings when a setting or a corpus is known to lead to worse translations.

Each function returns the text of a hint, or None if there is nothing to say.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence

from datasets import Dataset

from mt.config import CorpusConfig, ModelConfig, model_presets
from mt.core.columns import numbers
from mt.core.language import is_registered, script_in, script_of
from mt.data.corpus import evenly_spaced_pairs
from mt.metrics.metric import TextMetric
from mt.models.build import build_meta_model
from mt.tokenizer.tokenizer import TokenizerPair

logger = logging.getLogger(__name__)

MAX_PARAMETERS_PER_TOKEN = 50
"""Parameters per target token of the corpus; with more, a model is far too large. On Multi30k, which has 0.4 M tokens,
a model of 2.6 M parameters translates better than one of 36 M, and that one better than one of 49 M (Wu et al.
2021)."""
MIN_EPOCHS = 0.5
"""Shorter runs get a hint: they see less than half of the training pairs, which is probably an oversight."""

SCRIPT_PAIRS = 1000
"""Number of training pairs whose scripts are examined."""

VOCABULARY_PAIRS = 1000
"""Number of validation pairs that are searched for characters without a token."""
MAX_UNKNOWN_SHARE = 0.01
"""Share of characters without a token. A vocabulary learned from everyday French lacks 0.1 % of the characters of
French news, and 1.5 % of those of German."""

TRIED_REFERENCES = 5
"""Approximate number of references that are tried as the translation of all lines."""
MIN_BLEU = 1.0
MIN_CHRF = 25.0
"""A model has learned next to nothing if both scores are lower. BLEU alone does not suffice: it is 0 where no line has
four words."""


def log_hints(*hints: str | None) -> None:
    """Log each hint as a warning. None is skipped."""
    for text in filter(None, hints):
        logger.warning("%s", text)


def model_size_hint(config: ModelConfig, tokenizers: TokenizerPair, train: Dataset) -> str | None:
    """Return a hint to use a smaller preset if the model is far too large for its encoded training pairs."""
    tokens = int(numbers(train, "target_length").sum()) + len(train)
    parameters = build_meta_model(config, tokenizers).parameter_count
    if parameters <= MAX_PARAMETERS_PER_TOKEN * tokens:
        return None
    presets = model_presets(config.architecture)
    sizes = {name: build_meta_model(model, tokenizers).parameter_count for name, model in presets.items()}
    # A deep encoder makes a preset translate faster, not better.
    smaller = {name: size for name, size in sizes.items() if size < parameters and not name.endswith("_deep")}
    if not smaller:
        return None
    fitting = {name: size for name, size in smaller.items() if size <= MAX_PARAMETERS_PER_TOKEN * tokens}
    best = max(fitting, key=fitting.__getitem__) if fitting else min(smaller, key=smaller.__getitem__)
    return (
        f"the model has {parameters:,} parameters, which are many for {tokens:,} target tokens: set model={best} "
        f"({smaller[best]:,} parameters), which trains faster and usually translates better"
    )


def language_code_hint(key: str, code: str) -> str | None:
    """Return a hint if the code in the setting ``key`` is not that of a language."""
    if is_registered(code):
        return None
    return (
        f"{key}={code} is not a known language code (ISO 639): set the right one, because tokenization and scores "
        "depend on it; or xx or yy in a toy task"
    )


def no_letters_hint(train: Dataset) -> str | None:
    """Return a hint to turn off the text layer if most training sources have no letters."""
    sources = evenly_spaced_pairs(train, SCRIPT_PAIRS)["source"]
    if 2 * sum(any(map(str.isalpha, source)) for source in sources) >= len(sources):
        return None
    return (
        "most sources have no letters, and the text layer leaves such lines untranslated: set text=off, or for a toy "
        "task such as reversing numbers, add experiment=toy_task"
    )


def script_hint(key: str, code: str, noun: str, text: str) -> str | None:
    """Return a hint if a text is in another script than the language of the setting ``key``.

    Only scripts matter whose languages are tokenized or scored differently from others.

    Args:
        key: The setting.
        code: The language code in this setting.
        noun: The name of the text in the hint, such as "sources".
        text: Many sentences.
    """
    right_script = script_of(code)
    script = script_in(text, right_script)
    if script == right_script:
        return None
    wrong = f"{key}={code}, but the {noun} are"
    if script:
        right = ", ".join(sorted(script.languages))
        return (
            f"{wrong} in {script.name} script: set the code of a language in this script ({right}), because "
            "tokenization and scores depend on it"
        )
    if right_script and any(map(str.isalpha, text)):
        return (
            f"{wrong} not in {right_script.name} script: check the code and the files, because tokenization and "
            "scores depend on the code"
        )
    return None


def script_hints(config: CorpusConfig, train: Dataset) -> Iterator[str]:
    """Yield a hint for each side of the training pairs that is written in another script than its language."""
    pairs = evenly_spaced_pairs(train, SCRIPT_PAIRS)
    for side, code in (("source", config.source_language), ("target", config.target_language)):
        if hint := script_hint(f"data.{side}_language", code, f"{side}s", "".join(pairs[side])):
            yield hint


def vocabulary_hints(tokenizers: TokenizerPair, valid: Dataset) -> Iterator[str]:
    """Yield a hint for each side of the validation pairs with many characters that the base run's tokenizer lacks."""
    pairs = evenly_spaced_pairs(valid, VOCABULARY_PAIRS)
    for side, tokenizer in (("source", tokenizers.source), ("target", tokenizers.target)):
        characters = Counter("".join(map(tokenizer.normalize, pairs[side])))
        missing = Counter({c: count for c, count in characters.items() if not tokenizer.has_subword(c)})
        share = missing.total() / max(1, characters.total())
        if share > MAX_UNKNOWN_SHARE:
            frequent = " ".join(character for character, _ in missing.most_common(10))
            yield (
                f"{share:.1%} of the characters of the {side}s have no token in the tokenizer of the base run: "
                f"{frequent} … If there are enough pairs, also try training from scratch (without "
                "training.init_from), which learns a vocabulary that has them"
            )


def run_length_hint(epochs: float) -> str | None:
    """Return a hint to make more updates if a run ends before MIN_EPOCHS epochs."""
    if epochs >= MIN_EPOCHS:
        return None
    return (
        f"training ends after {epochs:.2g} of an epoch: set training.epochs=1 instead of training.max_updates to use "
        "every pair once"
    )


def collapse_hint(hypotheses: Sequence[str], references: Sequence[str], chrf: TextMetric) -> str | None:
    """Return a hint if a model translates as if it did not read its sources.

    This is the case if its translations have few distinct sentences, and their chrF2 does not exceed that of a single
    sentence for all lines.
    """
    count, distinct = len(hypotheses), len(set(hypotheses))
    if 2 * distinct > len(set(references)) or chrf.corpus_score(hypotheses, references) > max(
        chrf.corpus_score([sentence] * count, references) for sentence in references[:: count // TRIED_REFERENCES + 1]
    ):
        return None
    return (
        f"the {count:,} translations have only {distinct:,} distinct sentences, and score no better than a single "
        "sentence for all lines. If that lasts beyond the first validations, sources and targets may be misaligned "
        "(see the training files), or training.optimizer.learning_rate is unsuitable"
    )


def low_score_hint(bleu: float, chrf: float) -> str | None:
    """Return a hint with possible reasons if both test scores are as low as those of an untrained model."""
    if bleu >= MIN_BLEU or chrf >= MIN_CHRF:
        return None
    return (
        "a model with such scores has learned next to nothing. Possible reasons: too few updates "
        "(training.max_updates or training.epochs), an unsuitable training.optimizer.learning_rate (see the loss in "
        "TensorBoard), or misaligned sources and targets (see the training files)"
    )
