"""Translates and scores lines of text. N lines give N translations, in the same order."""

import logging
from collections.abc import Callable, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch

from mt.config import DecodingConfig, KeptConfig
from mt.core.device import choose_device, choose_precision
from mt.core.errors import InputError
from mt.core.language import ANY_DIRECTION, AskedDirection
from mt.distributed.workers import Workers
from mt.models.attention import AttentionMap
from mt.models.seq2seq import Ensemble, Seq2Seq
from mt.storage.folders import TransformersFolder, open_folder
from mt.storage.model_description import AlignmentConfig, ConfidenceConfig
from mt.text.glossary import term_finder
from mt.text.layer import TextLayer
from mt.text.line import Line
from mt.text.placeholders import PLACEHOLDER
from mt.text.placement import AlignmentLink
from mt.text.terms import TermFinder
from mt.translation.alignment import Aligner, word_links
from mt.translation.confidence import ConfidenceEstimator, usable_confidence
from mt.translation.engine import (
    AfterBatch,
    BatchRunner,
    ConstrainedSearch,
    Engine,
    SearchRequest,
    engine_class,
    forced_scores,
)
from mt.translation.hypotheses import Hypotheses, HypothesisChecker, forced_attention
from mt.translation.joining import LineJoiner
from mt.translation.line_segmenter import LineSegmenter, SegmentedLine, check_lines
from mt.translation.results import Alignment, ScoredText, SentenceAttention, Statistics
from mt.translation.torch_engine import TorchEngine
from mt.translation.trained_model import open_models
from mt.translation.transformers_system import TransformersEngine, open_transformers_model

logger = logging.getLogger(__name__)


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
        confidence: ConfidenceConfig | str = "this model has no fitted confidence",
        workers: Workers | None = None,
    ) -> None:
        """
        Args:
            model: A model or an ensemble. The first member of an ensemble computes alignments and attention maps.
            layer: The text layer of the model.
            config: The decoding settings.
            precision: The number format of the computation.
            engine: The search engine; None: a ``TorchEngine`` of the model.
            alignment: The attention that aligns words; None: the defaults of ``AlignmentConfig``.
            confidence: The fitted confidence of the model; or the reason why it has none.
            workers: The processes that share each call; see ``run_with_workers``. None: this process alone.
        """
        self.model = model
        self.engine: Engine = engine or TorchEngine(model, config)
        self.layer = layer
        self.tokenizers = layer.tokenizers
        self.config = config
        self.precision = precision
        self.device = model.device
        self.workers = workers or Workers(model.device)
        self.statistics = Statistics()
        self._first_member = model.members[0] if isinstance(model, Ensemble) else model
        self._aligner = Aligner(self._first_member, layer, alignment or AlignmentConfig(), config.batch_tokens)
        self._runner = BatchRunner(model, precision, config.batch_tokens)
        self.checker = HypothesisChecker(layer) if layer.phenomena else None
        self._search = ConstrainedSearch(self.engine, config, self._runner, self.checker, self.statistics, self.workers)
        self._segmenter = LineSegmenter(layer, config, model.max_length, self.statistics)
        self._joiner = LineJoiner(layer, config, self._align, self._score_targets, self.statistics)
        self.confidence = ConfidenceEstimator(layer, confidence)
        # The steps of ``hypotheses``; ``join`` is the last one.
        self.segment = self._segmenter.segment
        self.search = self._search.run

    @classmethod
    def load(
        cls,
        folder: str | Path | Sequence[str | Path],
        config: DecodingConfig | None = None,
        device: str = "auto",
        precision: str = "fp32",
        kept: KeptConfig | None = None,
        workers: Workers | None = None,
        *,
        asked: AskedDirection = ANY_DIRECTION,
    ) -> "Translator":
        """Load the model of a run or model folder, or the models of several folders as an ensemble.

        Args:
            folder: The run or model folder; or several, whose models have the same tokenizer. Everything except
                probabilities comes from the first model: decoding settings, known words, alignments.
            config: The decoding settings. A ``DecodingChoice`` is completed from the model's model.yaml; None: all
                settings are those of model.yaml.
            device: ``auto`` (a GPU if there is one), or a device such as ``cpu``, ``cuda`` or ``cuda:1``.
            precision: The number format of the computation: ``auto``, ``fp32``, ``bf16`` or ``fp16``.
            kept: A glossary and patterns, in addition to those of the model's text layer; None: there are none.
            workers: See ``__init__``. All processes have to load the same model.
            asked: The direction, if the model has several.

        Raises:
            InputError: A file is missing or corrupted, this machine lacks the device, precision or engine, or the model
                has no such direction. The message names the file or the setting.
        """
        return cls.load_all(folder, config, device, precision, kept, workers, asked=asked)[0]

    @classmethod
    def load_all(
        cls,
        folder: str | Path | Sequence[str | Path],
        config: DecodingConfig | None,
        device: str,
        precision: str,
        kept: KeptConfig | None,
        workers: Workers | None = None,
        *,
        asked: AskedDirection | None = None,
    ) -> "list[Translator]":
        """Load a model as ``load`` does, and return a translator for each of its directions, or for that of ``asked``.

        The translators share the model.
        """
        torch_device = choose_device(device)
        folders = [Path(name) for name in ([folder] if isinstance(folder, str | Path) else folder)]
        if config is not None:
            engine_class(config.engine).check(config, torch_device, len(folders))
        opened = open_folder(folders[0])
        if isinstance(opened, TransformersFolder) and len(folders) == 1:
            trained = [open_transformers_model(opened, asked or ANY_DIRECTION)]
        else:
            trained = open_models(folders)
        first = trained[0]
        config = first.resolve_decoding(config, folders[0])
        models = [member.model.to(torch_device) for member in trained]
        model = models[0] if len(models) == 1 else Ensemble(models)
        engine_type = engine_class(config.engine)
        if isinstance(opened, TransformersFolder):
            engine_type = TransformersEngine
            for message in config.refuse("transformers has a beam search of its own", "engine", "method"):
                raise InputError(message)
        engine = engine_type.open(model, first, config)
        number_format = choose_precision(precision, torch_device)
        if workers and workers.size > 1:
            identity = repr((config, number_format, kept, asked, [open_folder(path).checksum() for path in folders]))
            if len(set(workers.gather([identity]))) > 1:
                raise InputError("the machines have different settings or models: give all the same command and models")
        directions = [first.resolve_direction(asked, folders[0])] if asked else first.description.layers
        return [
            cls(
                model=model,
                layer=first.text_layer(kept or KeptConfig(), direction),
                config=config,
                precision=number_format,
                engine=engine,
                alignment=first.description.alignment,
                confidence=usable_confidence([member.description for member in trained], config),
                workers=workers,
            )
            for direction in directions
        ]

    def translate(
        self,
        lines: Sequence[str | Line],
        numbers: Sequence[int] | None = None,
        after_batch: AfterBatch | None = None,
        *,
        greedy: bool = False,
        glossary: Sequence[Sequence[str]] = (),
    ) -> list[str]:
        """Return the best translation of each line; see ``hypotheses``."""
        lines = [
            line._replace(n_best=1) for line in self._as_lines(lines, numbers, Line(terms=self._term_finder(glossary)))
        ]
        return [best.text for (best,) in self.hypotheses(lines, None, after_batch, greedy=greedy)]

    def hypotheses(
        self,
        lines: Sequence[str | Line],
        numbers: Sequence[int] | None = None,
        after_batch: AfterBatch | None = None,
        aligned: bool = False,
        *,
        greedy: bool = False,
        confident: bool = False,
        glossary: Sequence[Sequence[str]] = (),
    ) -> list[list[ScoredText]]:
        """Return scored translations of each line, best first. A blank line has one, which is empty.

        The first translation of a line with several segments consists of the best translations of all segments, even if
        another translation has a higher score. The score is log P of all segments / their total lengthᵅ.

        Args:
            lines: The lines. The options of a string are the decoding settings and the arguments below.
            numbers: The numbers of lines given as strings, by default from 0. Random numbers of sampling depend on
                them.
            after_batch: Called after each batch with the numbers of finished batches and of all batches. It may raise
                an exception to stop the translation.
            aligned: Whether to compute word alignments, which need another pass through the model.
            greedy: Whether to search all lines greedily, whatever the decoding settings are.
            confident: Whether to compute the confidence of the best translation of each line, for a search that is not
                greedy. Raises InputError if the model has no fitted confidence.
            glossary: Pairs of a term and its translation. They have priority over the terms of the model's glossary.
        """
        asked = Line(terms=self._term_finder(glossary), n_best=self.config.n_best, aligned=aligned, confident=confident)
        lines = self._as_lines(lines, numbers, asked)
        if any(line.confident for line in lines):
            self.confidence.require_fitted()
        # The other processes wait in ``run_with_workers`` for this call, and then run it, too.
        self.workers.run_on_main(lambda: (Translator._hypotheses, (lines, greedy)))
        return self._hypotheses(lines, greedy, after_batch)

    def _term_finder(self, glossary: Sequence[Sequence[str]]) -> TermFinder | None:
        return term_finder(glossary, self.layer) if glossary else None

    def _as_lines(self, lines: Sequence[str | Line], numbers: Sequence[int] | None, asked: Line) -> list[Line]:
        """Convert strings into lines with the options of ``asked``. Other elements are returned as they are."""
        check_lines(lines)
        return [
            asked.with_text(line, self.config.markup)._replace(number=number) if isinstance(line, str) else line
            for line, number in zip(lines, range(len(lines)) if numbers is None else numbers, strict=True)
        ]

    def _hypotheses(
        self, lines: Sequence[Line], greedy: bool, after_batch: AfterBatch | None = None
    ) -> list[list[ScoredText]]:
        """Return the translations of lines; see ``hypotheses``.

        Each process segments and joins its share of the lines, and searches its share of the batches.
        """
        segmented = self.segment(self.workers.share(lines))
        sources = self.workers.gather([line.sources for line in segmented])
        keys = [(line.number, n) for line, row in zip(lines, sources, strict=True) for n in range(len(row))]
        n_best = self.config.beam_size if any(line.confident for line in lines) else None
        request = SearchRequest(list(chain.from_iterable(sources)), keys, n_best, greedy)
        hypotheses = iter(self.search(request, after_batch))
        by_line = [list(islice(hypotheses, len(row))) for row in sources]
        return self.workers.gather(self.join(segmented, list(chain.from_iterable(self.workers.share(by_line)))))

    def join(self, lines: Sequence[SegmentedLine], hypotheses: Hypotheses) -> list[list[ScoredText]]:
        """Join the hypotheses of sources to translations of lines; see ``LineJoiner.join``.

        This is the last step of ``hypotheses``.
        """
        parts = (part for line in lines for part in line.with_parts())
        limits = [part.line.n_best for part in parts for _ in chain.from_iterable(part.segment_sources)]
        limited = [candidates[:n_best] for candidates, n_best in zip(hypotheses, limits, strict=True)]
        joined = self._joiner.join(lines, limited)
        if any(line.line.confident for line in lines):
            return self.confidence.with_confidence(joined, lines, hypotheses)
        return joined

    def score(self, lines: Sequence[str], references: Sequence[str], aligned: bool = False) -> list[ScoredText]:
        """Return each reference with its score as a translation of its line (forced decoding).

        Lines are not cut into segments. Values that a line and its reference share are replaced by placeholders. The
        score is None if the line or the reference is blank, or longer than ``decoding.max_source_length`` (``auto``:
        MAX_SOURCE_TOKENS tokens).

        Args:
            lines: The source lines.
            references: A translation of each line, to be scored.
            aligned: Whether to compute word alignments, which need another pass through the model.
        """
        check_lines(lines)
        check_lines(references)
        if len(lines) != len(references):
            raise ValueError(f"{len(lines)} lines but {len(references)} references; give one reference for each line")
        # The other processes wait in ``run_with_workers`` for this call, and then run it, too.
        self.workers.run_on_main(lambda: (Translator._score, (lines, references, aligned)))
        scored = self._score(lines, references, aligned)
        if unscored := sum(text.score is None for text in scored):
            logger.warning(
                "%d lines have no score (null): the line or its reference is blank or longer than %d tokens; split "
                "long lines, or increase decoding.max_source_length",
                unscored,
                self._segmenter.max_tokens,
            )
        return scored

    def _score(self, lines: Sequence[str], references: Sequence[str], aligned: bool) -> list[ScoredText]:
        """Return each reference with its score; see ``score``.

        Each process encodes and aligns its share of the lines, and scores its share of the batches.
        """
        texts = [list(map(self.layer.hide_symbols, self.workers.share(side))) for side in (lines, references)]
        tokens = self.workers.gather(list(zip(*self._segmenter.encode_pairs(*texts), strict=True)))
        limit = self._segmenter.max_tokens
        pairs = {n: sides for n, sides in enumerate(tokens) if all(0 < len(side) <= limit for side in sides)}
        scores = forced_scores(self._runner, list(pairs.values()), self.config.length_penalty, self.workers)
        score_of = dict(zip(pairs, scores, strict=True))
        alignments: list[Alignment | None] = [None] * len(lines)
        if aligned:
            links = self._align(*texts)
            alignments = self.workers.gather([word_links(*pair) for pair in zip(links, *texts, strict=True)])
        return [
            ScoredText(*fields)
            for fields in zip(references, map(score_of.get, range(len(lines))), alignments, strict=True)
        ]

    def _score_targets(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """Return the score of each target as a translation of its source. Both are texts with placeholders."""
        limit, tokenizers = self._segmenter.max_tokens, self.tokenizers
        encoded = zip(tokenizers.source.encode(sources), tokenizers.target.encode(targets), strict=True)
        pairs = [(source[:limit], target[:limit]) for source, target in encoded]
        return forced_scores(self._runner, pairs, self.config.length_penalty)

    def attention(self, line: str, translation: str | None = None) -> SentenceAttention:
        """Return the attention maps of a line and its translation, under forced decoding.

        Args:
            line: The source line.
            translation: A translation of the line; None: that of the model.
        """
        return self.batch_attention([line], None if translation is None else [translation])[0]

    def batch_attention(
        self, lines: Sequence[str], translations: Sequence[str] | None = None
    ) -> list[SentenceAttention]:
        """Return the attention maps of lines, computed as one batch, in which ``<pad>`` fills up the shorter lines.

        Args:
            lines: The source lines.
            translations: A translation of each line; None: those of the model.
        """
        check_lines(lines)
        if translations is None:
            translations = self.translate(lines)
        sources, targets = (
            [tokens[: self._segmenter.max_tokens] for tokens in side]
            for side in self._segmenter.encode_pairs(lines, translations)
        )
        with self._runner.evaluation_mode(), self._runner.inference():
            maps = forced_attention(self._first_member, sources, targets)
        sides = (sources, self.tokenizers.source), (targets, self.tokenizers.target)
        names = [[[*tokenizer.subwords(tokens), "</s>"] for tokens in side] for side, tokenizer in sides]
        padded = [[tokens + ["<pad>"] * (max(map(len, side)) - len(tokens)) for tokens in side] for side in names]
        return [
            SentenceAttention._make(
                [
                    *_number_placeholders(source, target),
                    {name: AttentionMap(weights[[row]], scores[[row]]) for name, (weights, scores) in maps.items()},
                ]
            )
            for row, (source, target) in enumerate(zip(*padded, strict=True))
        ]

    def _align(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[AlignmentLink]]:
        with self._runner.evaluation_mode():
            return self._aligner.links(sources, targets)


def _number_placeholders(*sides: list[str]) -> list[list[str]]:
    """Replace the placeholders of the sides of a pair by their numbers, such as ⟨1⟩."""
    numbers: dict[str, int] = {}
    return [
        [
            PLACEHOLDER.sub(lambda match: f"⟨{numbers.setdefault(match[0], len(numbers) + 1)}⟩", token)
            for token in tokens
        ]
        for tokens in sides
    ]


def run_with_workers(workers: Workers, translator: Translator, work: Callable[[], Any]) -> None:
    """Run ``work`` on the main process. Each of its calls of the translator is shared among all processes.

    All processes have to call this function. At the end, the statistics of the main process include those of the
    others.

    Args:
        workers: The processes.
        translator: The translator that ``work`` calls. Each process has its own, of the same models.
        work: A function without result, which reads the input and writes the output.
    """
    # ``Translator`` sends each call to the other processes. The main process sends None when ``work`` has ended.
    while call := workers.run_on_main(work):
        method, arguments = call
        method(translator, *arguments)
    _, *others = workers.gather([translator.statistics])
    if workers.is_main:
        for other in others:
            translator.statistics.add(other)
