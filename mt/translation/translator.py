"""Translates and scores lines of text. N lines give N translations in the same order, whatever they contain."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

from mt.config import DecodingConfig, KeptConfig
from mt.core.device import choose_device, choose_precision
from mt.models.ensemble import Ensemble
from mt.models.seq2seq import Seq2Seq
from mt.storage.model_description import AlignmentConfig
from mt.text.layer import TextLayer
from mt.text.markup.placement import AlignmentLink
from mt.text.markup.tags import MarkupKind
from mt.translation.alignment import Aligner, word_links
from mt.translation.batches import BatchRunner
from mt.translation.constraints import HypothesisChecker, WithoutLoops
from mt.translation.engine import Engine, SearchRequest, engine_class
from mt.translation.hypotheses import Hypothesis, forced_attention, forced_log_probabilities
from mt.translation.joining import LineJoiner
from mt.translation.line_segmenter import LineSegmenter, SegmentedLine
from mt.translation.pieces import cut_into_pieces, translate_pieces
from mt.translation.results import Alignment, ScoredText, SentenceAttention, Statistics
from mt.translation.torch_engine import TorchEngine
from mt.translation.trained_model import open_models

logger = logging.getLogger(__name__)

WINDOW_LINES = 4096
"""How many lines of a stream are read, sorted by length and translated together. The limit bounds the memory."""
WINDOW_CHARACTERS = 2_000_000
NOTHING_MORE = KeptConfig()


class Translator:
    """Translates and scores text with one trained model or ensemble.

    Example::

        translator = Translator.load("runs/demo")
        translator.translate(["A dog runs through the snow."])
    """

    def __init__(
        self,
        *,
        model: Seq2Seq | Ensemble,
        layer: TextLayer,
        config: DecodingConfig,
        precision: torch.dtype = torch.float32,
        engine: Engine | None = None,
        alignment: AlignmentConfig | None = None,
    ) -> None:
        """
        Args:
            model: A model or an ensemble. The first member of an ensemble computes alignments and attention maps.
            layer: The text layer of the model.
            config: The decoding settings.
            precision: The number format of the computation.
            engine: The search engine; None: a ``TorchEngine`` of the model.
            alignment: Which attention aligns words; None: the defaults of ``AlignmentConfig``.
        """
        self.model = model
        self.engine: Engine = engine or TorchEngine(model, config)
        self.layer = layer
        self.tokenizers = layer.tokenizers
        self.config = config
        self.precision = precision
        self.device = model.device
        self.statistics = Statistics()
        self._attentive = model.members[0] if isinstance(model, Ensemble) else model
        self._aligner = Aligner(self._attentive, layer, alignment or AlignmentConfig(), config.batch_tokens)
        self._checker = HypothesisChecker(layer) if layer.config.enabled else None
        self._runner = BatchRunner(model, precision, config.batch_tokens)
        self._segmenter = LineSegmenter(layer, config, model.max_length, self.statistics)
        self._joiner = LineJoiner(layer, config, self._links, self._plain_scores, self.statistics)

    @classmethod
    def load(
        cls,
        folder: str | Path | Sequence[str | Path],
        config: DecodingConfig | None = None,
        device: str = "auto",
        precision: str = "fp32",
        kept: KeptConfig = NOTHING_MORE,
    ) -> "Translator":
        """Load the model of a run or model folder, or the models of several as an ensemble.

        Args:
            folder: The run or model folder; or several, whose models have one tokenizer. Everything except
                probabilities comes from the first model: the default decoding, the known words, alignments.
            config: The decoding settings. A ``DecodingChoice`` is completed from the model's model.yaml; None: all
                settings are those of model.yaml.
            device: ``auto``, which takes a GPU if there is one, ``cpu``, ``cuda`` or ``cuda:1``, for example.
            precision: The number format of the computation: ``auto``, ``fp32``, ``bf16`` or ``fp16``.
            kept: A glossary and patterns, in addition to those of the model's text layer.

        Raises:
            InputError: A file is missing or damaged, or this machine lacks the device, precision or engine. The message
                names the file or the setting.
        """
        chosen = choose_device(device)
        folders = [Path(name) for name in ([folder] if isinstance(folder, str | Path) else folder)]
        if config is not None:
            engine_class(config.engine).check(config, chosen, len(folders))
        trained = open_models(folders)
        first = trained[0]
        config = first.decoding_with(config, folders[0])
        models = [member.model.to(chosen) for member in trained]
        model = models[0] if len(models) == 1 else Ensemble(models)
        engine = engine_class(config.engine).open(model, first, config)
        number_format = choose_precision(precision, chosen)
        return cls(
            model=model,
            layer=first.layer_with(kept),
            config=config,
            precision=number_format,
            engine=engine,
            alignment=first.description.alignment,
        )

    def translate(
        self,
        lines: Sequence[str],
        numbers: Sequence[int] | None = None,
        after_batch: Callable[[int, int], None] | None = None,
        *,
        markup: Sequence[MarkupKind | None] | None = None,
        greedy: bool = False,
    ) -> list[str]:
        """Return the best translation of each line; see ``hypotheses``."""
        translations = self.hypotheses(lines, numbers, after_batch, markup=markup, greedy=greedy, n_best=1)
        return [best.text for (best,) in translations]

    def hypotheses(
        self,
        lines: Sequence[str],
        numbers: Sequence[int] | None = None,
        after_batch: Callable[[int, int], None] | None = None,
        aligned: bool = False,
        *,
        markup: Sequence[MarkupKind | None] | None = None,
        syntaxes: Sequence[str] | None = None,
        greedy: bool = False,
        n_best: int | None = None,
    ) -> list[list[ScoredText]]:
        """Return scored translations of each line, best first. A blank line has one, which is empty.

        The first translation of a line in several segments has the best translation of each segment, whatever the
        others score. Its score is log P of all segments / their lengthᵅ.

        Args:
            lines: The lines.
            numbers: The numbers of the lines, by default from 0 on. The random numbers of sampling depend on them.
            after_batch: Called after each batch with the numbers of finished batches and of all batches. It may raise
                an exception to stop the translation.
            aligned: Whether the translations come with word alignments, which cost a forced pass through the model.
            markup: The kind of tags in each line, or None for plain text; by default ``decoding.markup`` for all lines.
            syntaxes: The syntax of the placeholders of each line; see ``LineSegmenter.segment``.
            greedy: Whether to search greedily, whatever the settings are.
            n_best: The maximum number of translations of a line, if fewer than ``decoding.n_best``.
        """
        _check_lines(lines)
        numbers = range(len(lines)) if numbers is None else numbers
        markup = [self.config.markup or None] * len(lines) if markup is None else markup
        if "html" in markup and not aligned and (n_best or self.config.n_best) == 1:
            pieces = cut_into_pieces(lines, markup)
            if any(len(own) > 1 for own in pieces):
                columns = {"numbers": numbers, "markup": markup, "syntaxes": syntaxes}
                translate = partial(self.hypotheses, after_batch=after_batch, greedy=greedy, n_best=1)
                return translate_pieces(pieces, columns, translate)
        prepared = self.segment(lines, numbers, markup, syntaxes)
        sources = [source for line in prepared for source in line.sources]
        keys = [(number, n) for number, line in zip(numbers, prepared, strict=True) for n in range(len(line.sources))]
        hypotheses = self.search(SearchRequest(sources, keys, greedy=greedy), after_batch)
        return self.join(prepared, hypotheses, aligned, n_best)

    def segment(
        self,
        lines: Sequence[str],
        numbers: Sequence[int],
        markup: Sequence[MarkupKind | None],
        syntaxes: Sequence[str] | None = None,
    ) -> list[SegmentedLine]:
        """Cut lines into segments and sources, the first step of ``hypotheses``; see ``LineSegmenter.segment``."""
        return self._segmenter.segment(lines, numbers, markup, syntaxes)

    def search(
        self, request: SearchRequest, after_batch: Callable[[int, int], None] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, best first, the second step of ``hypotheses``.

        The sources are batched by length. Equal sources are searched once, unless sampling draws different random
        numbers for them.
        """
        keys = request.sampling_keys if self.config.method == "sample" else [()] * len(request.sources)
        first: dict[object, int] = {}
        equal_to = [
            first.setdefault((tuple(source), key), n)
            for n, (source, key) in enumerate(zip(request.sources, keys, strict=True))
        ]
        distinct = request.select(list(first.values()))

        by_source = dict(zip(first.values(), self._search_distinct(distinct, after_batch), strict=True))
        return [by_source[n] for n in equal_to]

    def _search_distinct(
        self, request: SearchRequest, after_batch: Callable[[int, int], None] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source that violate no constraint, best first.

        A source whose best hypothesis violates one is searched again under it.
        """
        lengths, rows = [len(source) + 1 for source in request.sources], self.engine.rows_per_source(request)
        searched = self._runner.run(lambda batch: self.engine.search(request.select(batch)), lengths, rows, after_batch)
        if not self._checker:
            return searched
        violated = [
            [self._checker.violated(source, hypothesis.tokens) for hypothesis in several]
            for source, several in zip(request.sources, searched, strict=True)
        ]
        allowed = [
            [hypothesis for hypothesis, constraints in zip(hypotheses, violations, strict=True) if not constraints]
            for hypotheses, violations in zip(searched, violated, strict=True)
        ]
        if again := [n for n, (best, *_) in enumerate(violated) if best]:
            before = request.constraints or [()] * len(searched)
            constraints = [(*before[n], *violated[n][0]) for n in again]
            self.statistics.loops += sum(isinstance(new[-1], WithoutLoops) for new in constraints)
            constrained = replace(request.select(again), constraints=constraints)
            for n, several in zip(again, self._search_distinct(constrained), strict=True):
                allowed[n] = several
        return allowed

    def join(
        self,
        lines: Sequence[SegmentedLine],
        hypotheses: Sequence[list[Hypothesis]],
        aligned: bool = False,
        n_best: int | None = None,
    ) -> list[list[ScoredText]]:
        """Join the hypotheses of all sources to translations of lines, the last step of ``hypotheses``.

        ``n_best`` limits the hypotheses of each source. See ``LineJoiner.join``.
        """
        return self._joiner.join(lines, [several[:n_best] for several in hypotheses], aligned)

    def score(self, lines: Sequence[str], references: Sequence[str], aligned: bool = False) -> list[ScoredText]:
        """Return each reference with its score as a translation of its line (forced decoding).

        Lines are not cut into segments. Placeholders replace the values that a line and its reference share. The score
        is None if the line or the reference is blank or longer than ``decoding.max_source_length`` (``auto``:
        MAX_SOURCE_TOKENS tokens).

        Args:
            lines: The source lines.
            references: A translation of each line, to be scored.
            aligned: Whether to return word alignments, which cost another forced pass through the model.
        """
        _check_lines(lines)
        _check_lines(references)
        if len(lines) != len(references):
            raise ValueError(f"{len(lines)} lines but {len(references)} references; give one reference for each line")
        sources, targets = self._encoded(lines, references)
        limit = self._segmenter.max_tokens
        fitting = [n for n in range(len(lines)) if 0 < len(sources[n]) <= limit and 0 < len(targets[n]) <= limit]

        scores: list[float | None] = [None] * len(lines)
        of_fitting = self._scores([sources[n] for n in fitting], [targets[n] for n in fitting])
        for n, score in zip(fitting, of_fitting, strict=True):
            scores[n] = score
        if unscored := len(lines) - len(fitting):
            logger.warning(
                "%d lines have no score (null): the line or its reference is blank or longer than %d tokens; split "
                "long lines, or raise decoding.max_source_length",
                unscored,
                limit,
            )
        alignments: list[Alignment | None] = [None] * len(lines)
        if aligned:
            links = self._links(lines, references)
            alignments = [word_links(*arguments) for arguments in zip(links, lines, references, strict=True)]
        return [ScoredText(*fields) for fields in zip(references, scores, alignments, strict=True)]

    def _scores(self, sources: Sequence[list[int]], targets: Sequence[list[int]]) -> list[float]:
        """Return the score of each target as a translation of its source, given their tokens."""

        def score_batch(batch: list[int]) -> list[float]:
            return forced_log_probabilities(self.model, [sources[n] for n in batch], [targets[n] for n in batch])

        longest = [max(map(len, pair)) + 1 for pair in zip(sources, targets, strict=True)]
        pairs = zip(targets, self._runner.run(score_batch, longest), strict=True)
        return [Hypothesis(target, total).score(self.config.length_penalty) for target, total in pairs]

    def _plain_scores(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Return the score of each target as a translation of its source, given texts that the layer has prepared."""
        limit = self._segmenter.max_tokens
        sides = ((self.tokenizers.source, sources), (self.tokenizers.target, targets))
        encoded = [[tokens[:limit] for tokens in tokenizer.encode(texts)] for tokenizer, texts in sides]
        return self._scores(*encoded)

    def attention(self, line: str, translation: str | None = None, with_scores: bool = False) -> SentenceAttention:
        """Return the attention maps of a line and its translation, under forced decoding.

        Args:
            line: The source line.
            translation: A translation of the line; None: the model's own.
            with_scores: Whether the maps include the scores before the softmax.
        """
        if translation is None:
            translation = self.translate([line])[0]
        source, target = (tokens[0][: self._segmenter.max_tokens] for tokens in self._encoded([line], [translation]))
        with self._runner.evaluation_mode(), self._runner.inference():
            maps = forced_attention(self._attentive, [source], [target], with_scores)
        end = "</s>"
        return SentenceAttention(
            [*self.tokenizers.source.subwords(source), end],
            [*self.tokenizers.target.subwords(target), end],
            maps,
        )

    def _encoded(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Return the tokens of pairs, as they are trained on, but without typing errors in the sources."""
        prepared = [self.layer.prepare_pair(source, target) for source, target in zip(sources, targets, strict=True)]
        if self.layer.spelling and self.layer.corrects_typos(self.config.correct_typos):
            prepared = [(self.layer.spelling.correct(source)[0], target) for source, target in prepared]
        return (
            self.tokenizers.source.encode([source for source, _ in prepared]),
            self.tokenizers.target.encode([target for _, target in prepared]),
        )

    def _links(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[AlignmentLink]]:
        with self._runner.evaluation_mode():
            return self._aligner.links(sources, targets)


def _check_lines(lines: Sequence[str]) -> None:
    # A string is a sequence of strings, too; each of its characters would be translated by itself.
    if isinstance(lines, str):
        raise TypeError("a list of lines is needed, not one string: pass [line]")
    for number, line in enumerate(lines):
        if not isinstance(line, str):
            raise TypeError(f"element {number} of the list of lines is {line!r:.50}: each line must be a string")


def windows(lines: Iterable[str], one_by_one: bool = False) -> Iterator[list[str]]:
    """Cut a stream of lines into windows of bounded size, or into single lines if a person waits for each answer."""
    window: list[str] = []
    characters = 0
    for line in lines:
        window.append(line)
        characters += len(line)
        if one_by_one or len(window) == WINDOW_LINES or characters >= WINDOW_CHARACTERS:
            yield window
            window, characters = [], 0
    if window:
        yield window
