"""Loads the model, the tokenizers and the text layer of run folders and model folders."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from pydantic import ValidationError

from mt.config import DecodingChoice, DecodingConfig, KeptConfig, ModelConfig, Terms, TextLayerConfig
from mt.core.errors import InputError, corrupted_file, format_value, wrong_keys
from mt.core.language import AskedDirection, Direction, choose_direction
from mt.models.build import build_meta_model, build_model
from mt.models.seq2seq import Seq2Seq
from mt.storage.folders import open_folder
from mt.storage.model_description import ModelDescription
from mt.storage.model_folder import ModelFolder
from mt.storage.run_folder import MODEL, SOURCE_WORDS
from mt.storage.weights import copy_weights, weight_shapes
from mt.text.glossary import read_terms
from mt.text.layer import TextLayer
from mt.text.placeholders import count_placeholders
from mt.text.spelling import CORRECTABLE_WORD, Spelling
from mt.tokenizer.tokenizer import WORD_START, TokenizerPair


@dataclass(frozen=True)
class TrainedModel:
    """A model with everything that its folder holds: description, tokenizers, training words, glossary."""

    description: ModelDescription
    tokenizers: TokenizerPair
    model: Seq2Seq
    spelling: Mapping[Direction, Spelling]
    terms: Terms = field(default_factory=dict)

    def resolve_direction(self, asked: AskedDirection, path: str | Path) -> Direction:
        """Return the direction that the user asks for. Raise InputError as ``choose_direction`` does.

        If the user asks for none, lines for a MarianMT model of several directions begin with a language token.
        """
        described = Direction(self.description.source_language, self.description.target_language)
        if not any(asked) and described not in self.description.layers:
            return described
        return choose_direction(self.description.layers, asked, path)

    def text_layer(self, kept: KeptConfig, direction: Direction) -> TextLayer:
        """Return the model's text layer of a direction, extended by a glossary and by patterns of untranslated text.

        A direction that the model was not trained on has the layer of one with the same source language.

        Raises:
            InputError: The model was trained without placeholders, or the glossary or a pattern cannot be used.
        """
        trained = self.description.closest(direction) or next(iter(self.description.layers))
        rules, spelling = self.description.layers[trained], self.spelling.get(trained)
        if kept.terms or kept.patterns:
            if not rules.enabled:
                raise InputError(
                    "text.terms and text.patterns need placeholders, and this model was trained without them "
                    "(text.enabled=false): leave both out, or train a model with text.enabled=true"
                )
            rules = rules.model_copy(update={"patterns": rules.patterns + kept.patterns})
        terms = self.terms
        if kept.terms:
            terms = {**terms, **read_terms(kept.terms, *direction)}
        tokenizers = self.tokenizers
        if self.description.directions:
            tokenizers = tokenizers.towards(direction.target)
        return TextLayer(rules, tokenizers, *direction, spelling, terms)

    def resolve_decoding(self, config: DecodingConfig | None, path: str | Path) -> DecodingConfig:
        """Return the user's decoding settings, completed by those of the model.

        Args:
            config: The user's settings. A ``DecodingChoice`` is completed; None: all settings are those of the model.
            path: The model's folder, for messages.

        Raises:
            InputError: The user's settings contradict those of model.yaml.
        """
        if not isinstance(config, DecodingChoice):
            return config or self.description.decoding
        if not self.description.text.enabled:
            for key, value in (("correct_typos", True), ("unrepaired", "translation")):
                if getattr(config, key) == value:
                    raise InputError(
                        f"decoding.{key}={format_value(value)} needs a text layer, and {path} was trained without one "
                        f"(text.enabled=false): leave decoding.{key} out"
                    )
        try:
            return config.over(self.description.decoding)
        except ValidationError as error:
            reasons = [f"decoding.{reason}" for e in error.errors() for reason in str(e["ctx"]["error"]).splitlines()]
            raise InputError(
                f"{'; '.join(reasons)} (settings that you do not give come from {path}/model.yaml; set these, too)"
            ) from None


def open_model(path: str | Path) -> TrainedModel:
    """Load the model of a run or model folder, on the CPU and in evaluation mode.

    Raises:
        InputError: A file is missing, corrupted or does not fit the others. The message names it.
    """
    folder = open_folder(path)
    description = folder.read_description()
    folder.verify()
    tokenizers = TokenizerPair.from_files(folder.read_tokenizer_files(), folder.path)
    if tokenizers.joint != description.tokenizer.joint:
        kinds = {True: "one tokenizer for both languages", False: "a tokenizer for each language"}
        raise InputError(
            f"{path}: has {kinds[tokenizers.joint]}, but the model was trained with "
            f"{kinds[description.tokenizer.joint]}: restore the tokenizer files of its run"
        )
    if description.text.enabled and not count_placeholders(tokenizers):
        raise InputError(
            f"{folder.path / MODEL}: has text.enabled=true, but the tokenizer has no placeholders: "
            "restore the tokenizer files of its run"
        )
    spelling = {}
    for direction in description.layers:
        if words := _read_spelling(folder, description, direction):
            spelling[direction] = words
    terms = folder.read_terms()
    # A corrupted description may have any sizes, so memory is allocated only after the weights have confirmed them.
    shapes = weight_shapes(build_meta_model(description.model, tokenizers))
    weights = folder.read_weights(description.model, shapes)
    model = build_model(description.model, tokenizers)
    copy_weights(weights, model)
    return TrainedModel(description, tokenizers, model.eval(), spelling, terms)


def open_models(paths: Sequence[str | Path]) -> list[TrainedModel]:
    """Load the members of an ensemble.

    Raises:
        InputError: See ``open_model``; or a model differs from the first in its languages, tokenizer or text layer. The
            message names every such model and the difference.
    """
    models = [open_model(path) for path in paths]
    different = [
        f"{path} ({', '.join(differences)})"
        for path, model in zip(paths[1:], models[1:], strict=True)
        if (differences := _differences(models[0], model))
    ]
    if different:
        raise InputError(
            f"{'; '.join(different)}: cannot be in an ensemble with {paths[0]}, because its members need the same "
            f"tokenizer and text layer: train the runs on the same data, or with tokenizer.reuse={paths[0]}"
        )
    return models


def _differences(first: TrainedModel, other: TrainedModel) -> list[str]:
    """Return the differences between two models that rule out an ensemble."""
    directions = [", ".join(map(str, model.description.layers)) for model in (first, other)]
    differences = [f"{directions[1]} instead of {directions[0]}"] if directions[0] != directions[1] else []
    if first.tokenizers.files() != other.tokenizers.files():
        differences.append("another tokenizer")
    rules = [model.description.text for model in (first, other)]
    names = [name for name in TextLayerConfig.model_fields if getattr(rules[0], name) != getattr(rules[1], name)]
    return differences + [f"another text.{name}" for name in names]


def read_tokenizers(path: str | Path) -> TokenizerPair:
    """Read the tokenizers of a run or model folder. Raise InputError if a file is missing or corrupted."""
    folder = open_folder(path)
    return TokenizerPair.from_files(folder.read_tokenizer_files(), folder.path)


def load_weights_from(path: str | Path, model: Seq2Seq, config: ModelConfig, tokenizers: TokenizerPair) -> None:
    """Copy the weights of a run or model folder into a model with the same tokenizers, or with extended ones.

    The weights of a new token are the mean of those of the old tokens into which its text is tokenized.

    Raises:
        InputError: The weights are corrupted, or do not fit the model's architecture.
    """
    base = read_tokenizers(path)
    weights = open_folder(path).read_weights(config, weight_shapes(build_meta_model(config, base)))
    for name, (size, *_) in weight_shapes(model).items():
        old, side = weights[name], "source" if name.startswith("encoder") else "target"
        if new_tokens := getattr(tokenizers, side).subwords(range(len(old), size)):
            old_tokens = getattr(base, side).encode([token.removeprefix(WORD_START) for token in new_tokens])
            weights[name] = torch.cat([old, *(old[ids].mean(dim=0, keepdim=True) for ids in old_tokens)])
    copy_weights(weights, model)


def read_spelling(path: str | Path, direction: Direction) -> Spelling | None:
    """Read the training words of a source language, for spelling correction, from the folder of a model.

    Return None if it has none.
    """
    folder = open_folder(path)
    description = folder.read_description()
    closest = description.closest(direction)
    return closest and _read_spelling(folder, description, closest)


def _read_spelling(folder: ModelFolder, description: ModelDescription, direction: Direction) -> Spelling | None:
    """Return the training words of a direction; None if the model does not correct spelling."""
    words = folder.read_source_words(direction)
    threshold = description.layers[direction].min_word_count
    if words is None or threshold is None:
        return None
    counts, capitalized = words
    if not all(CORRECTABLE_WORD.fullmatch(word) for word in counts):
        raise corrupted_file(folder.path / SOURCE_WORDS, wrong_keys(["words"]))
    names = None if capitalized is None else frozenset(capitalized)
    return Spelling(counts, direction.source, threshold, direction.target, names)
