"""Translates lines of text: N lines, whatever they hold, give N translations in the same order."""

import copy
import logging
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress, islice, pairwise
from pathlib import Path
from typing import TypeVar

import torch
from pydantic import ValidationError
from torch import Tensor

from mt.config import MAX_PIECES, AlignmentConfig, DecodingChoice, DecodingConfig, KeptConfig
from mt.core.device import autocast, choose_device, choose_precision
from mt.core.errors import InputError
from mt.core.language import between_words
from mt.data.batching import collate
from mt.models.attention import AttentionMap, record_attention
from mt.models.ensemble import Ensemble
from mt.models.seq2seq import Seq2Seq
from mt.storage.marian import located
from mt.storage.run_folder import open_models
from mt.text.layer import Part, TextLayer
from mt.text.markup import Markup, put_back, take_out
from mt.text.placement import Link
from mt.text.subword_sampling import WORD_START
from mt.text.tags import Kind
from mt.translation.alignment import Aligner, word_links
from mt.translation.ctranslate2_engine import check_machine, open_engine
from mt.translation.engine import Engine, TorchEngine
from mt.translation.search import Hypothesis, forced_log_probabilities

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

WINDOW_LINES = 4096
"""How many lines of a stream are read, sorted by length and translated together. The limit bounds the memory."""
WINDOW_CHARACTERS = 2_000_000

LINE_BREAKS = re.compile("[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
"""All characters that some program takes for the end of a line: the list of ``str.splitlines``."""


Alignment = list[tuple[int, int]]
"""The numbers of the source and target words that belong together, from 0 on."""


NOTHING_MORE = KeptConfig()
CORRECTIONS_TOLD = 5
"""The most typing errors that are told, after all lines."""


@dataclass(frozen=True)
class ScoredText:
    """A translation and its score, log P(translation | source) / lengthᵅ.

    The score is None if there was nothing to score, or more than the model can take.
    """

    text: str
    score: float | None
    alignment: Alignment | None = None
    """Which words belong together. Tags do not count as words. None if it was not asked for."""


@dataclass(frozen=True)
class SentenceAttention:
    """The attention maps of one source and one translation, which the decoder read. The pieces include the EOS."""

    source_pieces: list[str]
    target_pieces: list[str]
    maps: dict[str, AttentionMap]
    """The map of each attention by its module name, e.g. ``decoder.layers.0.cross_attention``; weights (1, H, T, S)."""

    def cross(self) -> list[Tensor]:
        """Returns the weights (H, T, S) of the decoder's attention to the source, layer by layer."""
        return [seen.weights[0] for name, seen in self.maps.items() if name.endswith("cross_attention")]


@dataclass(frozen=True)
class CutPart:
    """A part of a line and its pieces, in several lists if it is longer than the model's training sources."""

    part: Part
    pieces: list[list[int]]


@dataclass(frozen=True)
class CutLine:
    """A line that is ready for the search."""

    text: str
    """The text to translate: the whole line, or what lies between its tags."""
    markup: Markup | None
    parts: list[CutPart]

    @property
    def sources(self) -> list[list[int]]:
        """The lists of pieces to search translations for, in order."""
        return [pieces for part in self.parts for pieces in part.pieces]


@dataclass
class _Draft:
    """A translation of a line: the translation of each of its parts, with slots, and its score. Slots that are missing
    are put into the texts later."""

    texts: list[str]
    score: float | None


@dataclass
class Corrections:
    """How many typing errors the translated lines had, and the first of them, each with what it was taken for."""

    count: int = 0
    first: dict[str, str] = field(default_factory=dict)
    has_more: bool = False
    """Whether there were others than the first."""

    def note(self, part: Part) -> None:
        self.count += len(part.corrections)
        for one in part.corrections:
            if one.typed in self.first or len(self.first) < CORRECTIONS_TOLD:
                self.first[one.typed] = part.text[one.start : one.end]
            else:
                self.has_more = True


@dataclass
class LongSentences:
    """How many sentences were translated in parts, and the number of the first line with one of them."""

    count: int = 0
    first_line: int | None = None

    def note(self, parts: Sequence[Part], line: int) -> None:
        ends = [False, *(part.is_continued for part in parts)]
        begun = sum(goes_on and not went_on for went_on, goes_on in pairwise(ends))
        if begun and self.first_line is None:
            self.first_line = line
        self.count += begun


@dataclass
class Items:
    """How many items the translated lines had that are not to be translated, and how many slots for them the model had
    dropped or doubled, which were put back or removed."""

    found: int = 0
    repaired: int = 0

    def count(self, found: int, repaired: int) -> None:
        self.found += found
        self.repaired += repaired


class Translator:
    """Translates and scores text with a trained model.

    Example::

        translator = Translator.load("runs/demo")
        translator.translate(["A dog runs through the snow."])
    """

    def __init__(
        self,
        model: Seq2Seq | Ensemble,
        layer: TextLayer,
        config: DecodingConfig,
        precision: torch.dtype = torch.float32,
        engine: Engine | None = None,
        place: AlignmentConfig | None = None,
    ) -> None:
        """
        Args:
            model: A model, or an ensemble. Alignments and attention maps are those of its first member.
            layer: The text layer.
            config: How to search.
            precision: The number format of the computation.
            engine: What searches; by default the model itself.
            place: Which of the attentions aligns words.
        """
        self.model = model
        self.engine: Engine = engine or TorchEngine(model, config)
        self.layer = layer
        self.tokenizers = layer.tokenizers
        self.config = config
        self.precision = precision
        self.device = model.device
        self._attentive = model.members[0] if isinstance(model, Ensemble) else model
        place = place or AlignmentConfig()
        self._aligner = Aligner(self._attentive, layer, place, config.batch_tokens)
        self.items = Items()
        """What became of the items that slots stood for, in all lines so far."""
        self.corrections = Corrections()
        """The typing errors in all lines so far."""
        self.long_sentences = LongSentences()
        """The sentences that were too long for the model, in all lines so far."""
        self._between_pieces = between_words(layer.target_language)

    @classmethod
    def load(
        cls,
        folder: str | Path | Sequence[str | Path],
        config: DecodingConfig | DecodingChoice | None = None,
        device: str = "auto",
        precision: str = "fp32",
        kept: KeptConfig = NOTHING_MORE,
    ) -> "Translator":
        """Loads the model of a run or model folder, or the models of several as an ensemble.

        Args:
            folder: The run or model folder; or several, whose models have one tokenizer. What is not a matter of the
                models' probabilities is as in the first: the default decoding, the known words, alignments.
            config: How to search. What is not given, or left open by a DecodingChoice, is as in the model's model.yaml.
            device: ``auto``, which takes a GPU if there is one, ``cpu``, ``cuda`` or ``cuda:1``, for example.
            precision: The number format of the computation: ``auto``, ``fp32``, ``bf16`` or ``fp16``.
            kept: What is not to be translated, beside what the model's own text layer knows.

        Raises:
            InputError: Something in the folder is missing or damaged, or this machine cannot do what is asked for. The
                message names it.
        """
        chosen = choose_device(device)
        folders = [Path(one) for one in ([folder] if isinstance(folder, str | Path) else folder)]
        if config is not None and config.engine == "ctranslate2":
            if len(folders) > 1:
                raise InputError("CTranslate2 does not combine several models: an ensemble needs engine=torch")
            check_machine(config, chosen)
        trained = open_models(folders)
        first = trained[0]
        config = _completed(config, first.description.decoding, folders[0])
        models = [one.model.to(chosen) for one in trained]
        return cls(
            models[0] if len(models) == 1 else Ensemble(models),
            first.layer_with(kept),
            config,
            choose_precision(precision, chosen),
            open_engine(first, located(folders[0]), config) if config.engine == "ctranslate2" else None,
            first.description.alignment,
        )

    def returning(self, n_best: int, markup: Kind | None = None) -> "Translator":
        """Returns a translator that has the same model and engine, but returns at most ``n_best`` translations, which
        are no more than this one returns, and takes lines with ``markup``. It counts items and corrections anew."""
        other = copy.copy(self)
        other.config = self.config.model_copy(update={"n_best": n_best, "markup": markup})
        other.items, other.corrections, other.long_sentences = Items(), Corrections(), LongSentences()
        return other

    def translate(
        self,
        lines: Sequence[str],
        numbers: Sequence[int] | None = None,
        after_batch: Callable[[int, int], None] | None = None,
        markup: Sequence[Kind | None] | None = None,
    ) -> list[str]:
        """Returns the best translation of each line; see ``hypotheses``."""
        return [best[0].text for best in self.hypotheses(lines, numbers, after_batch, markup=markup)]

    def hypotheses(
        self,
        lines: Sequence[str],
        numbers: Sequence[int] | None = None,
        after_batch: Callable[[int, int], None] | None = None,
        aligned: bool = False,
        markup: Sequence[Kind | None] | None = None,
    ) -> list[list[ScoredText]]:
        """Returns up to n_best scored translations of each line, best first. A blank line has one, which is empty. The
        first of a line that is translated in parts has the best translation of each part, whatever the others score.

        The score of a line that is translated in parts is log P of all parts / their lengthᵅ.

        Args:
            numbers: The numbers of the lines, by default from 0 on. The random numbers of sampling depend on them.
            after_batch: Called after each batch with the numbers of finished batches and of all batches. It may raise
                an exception to stop the translation.
            aligned: Whether the translations come with word alignments, which cost a forced pass through the model.
            markup: Of which kind the tags in each line are, or None for plain text. By default ``decoding.markup`` for
                all lines.
        """
        _refuse_what_is_no_list_of_lines(lines)
        numbers = range(len(lines)) if numbers is None else numbers
        kinds = [self.config.markup] * len(lines) if markup is None else markup
        cut = self.cut(lines, numbers, kinds)
        keys = [
            (number, place) for number, line in zip(numbers, cut, strict=True) for place in range(len(line.sources))
        ]
        sources = [pieces for line in cut for pieces in line.sources]
        return self.finish(cut, self._search(sources, keys, after_batch), aligned)

    def _search(
        self,
        sources: Sequence[list[int]],
        keys: Sequence[tuple[int, ...]],
        after_batch: Callable[[int, int], None] | None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each source, best first. Equal sources are searched once, unless the random numbers
        of sampling tell them apart."""
        samples = self.config.method == "sample"
        first: dict[object, int] = {}
        equal_to = [
            first.setdefault((tuple(source), keys[n] if samples else None), n) for n, source in enumerate(sources)
        ]
        distinct = list(first.values())
        found: list[list[Hypothesis]] = [[] for _ in sources]

        def search_batch(batch: list[int]) -> list[list[Hypothesis]]:
            return self.engine.search([sources[n] for n in batch], [keys[n] for n in batch])

        lengths = [len(sources[n]) + 1 for n in distinct]
        batches = [[distinct[n] for n in batch] for batch in self._batches(lengths, self.engine.rows_each)]
        with self._evaluating():
            for done, (batch, translations) in enumerate(self._each_on_a_core(search_batch, batches), start=1):
                for n, hypotheses in zip(batch, translations, strict=True):
                    found[n] = hypotheses
                if after_batch:
                    after_batch(done, len(batches))
        return [found[n] for n in equal_to]

    def search(
        self, sources: Sequence[list[int]], before_step: Callable[[], None] = lambda: None
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of some sources, found by this thread. The model must be in evaluation mode.

        Args:
            sources: Pieces, as ``CutLine.sources`` has them.
            before_step: Called before each decoding step, if the engine can.
        """
        found: list[list[Hypothesis]] = [[] for _ in sources]
        with self._arithmetic():
            for batch in self._batches([len(pieces) + 1 for pieces in sources], self.engine.rows_each):
                searched = self.engine.search([sources[n] for n in batch], [(n,) for n in batch], before_step)
                for n, hypotheses in zip(batch, searched, strict=True):
                    found[n] = hypotheses
        return found

    def score(self, lines: Sequence[str], references: Sequence[str], aligned: bool = False) -> list[ScoredText]:
        """Returns each reference with its score as a translation of its line (forced decoding).

        Lines are not cut into sentences. What is not to be translated and stands in both a line and its reference is
        in slots on both sides. The score is None if the line or the reference is blank or has more than
        MAX_PIECES pieces, or ``max_source_length`` if that is given.
        """
        _refuse_what_is_no_list_of_lines(lines)
        _refuse_what_is_no_list_of_lines(references)
        if len(lines) != len(references):
            raise ValueError(f"{len(lines)} lines but {len(references)} references")
        sources, targets = self._encoded(lines, references)
        longest = self._max_pieces()
        fits = [0 < len(s) <= longest and 0 < len(t) <= longest for s, t in zip(sources, targets, strict=True)]
        scores: list[float | None] = [None] * len(lines)
        places = [place for place, ok in enumerate(fits) if ok]

        def score_batch(batch: list[int]) -> list[float]:
            chosen = [places[index] for index in batch]
            pairs = collate(chosen, [sources[p] for p in chosen], [targets[p] for p in chosen]).to(self.device)
            return forced_log_probabilities(self.model, pairs.source, pairs.target_input, pairs.target_output).tolist()

        with self._evaluating():
            batches = self._batches([max(len(sources[place]), len(targets[place])) + 1 for place in places], 1)
            for batch, totals in self._each_on_a_core(score_batch, batches):
                for place, total in zip((places[index] for index in batch), totals, strict=True):
                    scores[place] = Hypothesis(targets[place], total).score(self.config.length_penalty)
        unscored = len(fits) - len(places)
        if unscored:
            logger.warning(
                "%d lines have no score (null): the line or its reference is blank or longer than %d pieces",
                unscored,
                longest,
            )
        alignments: list[Alignment | None] = [None] * len(lines)
        if aligned:
            with self._evaluating():
                links = self._aligner.links(lines, references)
            alignments = [word_links(*each) for each in zip(links, lines, references, strict=True)]
        return [ScoredText(*each) for each in zip(references, scores, alignments, strict=True)]

    def attention(self, line: str, translation: str | None = None, with_scores: bool = False) -> SentenceAttention:
        """Returns the attention maps of a line and a translation of it, by default the model's own. An ensemble's are
        those of its first member."""
        if translation is None:
            translation = self.translate([line])[0]
        source, target = (pieces[0][: self._max_pieces()] for pieces in self._encoded([line], [translation]))
        pair = collate([0], [source], [target]).to(self.device)
        with self._evaluating(), self._arithmetic(), record_attention(self._attentive, with_scores) as maps:
            self._attentive.decode(self._attentive.encode(pair.source), pair.target_input)
        end = "</s>"
        return SentenceAttention(
            [*self.tokenizers.source.pieces(source), end],
            [*self.tokenizers.target.pieces(target), end],
            {name: seen[0] for name, seen in maps.items()},
        )

    def _encoded(self, sources: Sequence[str], targets: Sequence[str]) -> tuple[list[list[int]], list[list[int]]]:
        """Returns the pieces of pairs, as they are trained on, but without typing errors in the sources."""
        marked = [self.layer.mark_pair(source, target) for source, target in zip(sources, targets, strict=True)]
        if self.layer.spelling and self.config.correct_typos == "auto":
            marked = [(self.layer.spelling.corrected(source)[0], target) for source, target in marked]
        return (
            self.tokenizers.source.encode([source for source, _ in marked]),
            self.tokenizers.target.encode([target for _, target in marked]),
        )

    @contextmanager
    def _evaluating(self) -> Iterator[None]:
        """Puts the model into evaluation mode, without dropout, and afterwards back into the mode that it was in."""
        was_training = self.model.training
        self.model.eval()
        try:
            yield
        finally:
            self.model.train(was_training)

    @contextmanager
    def _arithmetic(self) -> Iterator[None]:
        """Turns gradients off and the chosen precision on, for the thread that enters this context alone."""
        with torch.inference_mode(), autocast(self.device, self.precision):
            yield

    def _each_on_a_core(
        self, work: Callable[[list[int]], Result], batches: Iterable[list[int]]
    ) -> Iterator[tuple[list[int], Result]]:
        """Yields every batch with what ``work`` returns for it, in order.

        On a CPU, one thread per core takes whole batches, because the small matrix products of a decoding step gain
        little from being shared among cores.
        """

        def result(batch: list[int]) -> Result:
            with self._arithmetic():
                return work(batch)

        cores = self._cores()
        if cores == 1:
            yield from ((batch, result(batch)) for batch in batches)
            return
        pool = ThreadPoolExecutor(cores, "decoding", initializer=torch.set_num_threads, initargs=(1,))
        try:
            begun = [(batch, pool.submit(result, batch)) for batch in batches]
            for batch, future in begun:
                yield batch, future.result()
        finally:
            pool.shutdown(cancel_futures=True)
            # torch gives new threads the number that any thread set last, which here is 1.
            torch.set_num_threads(cores)

    def _cores(self) -> int:
        """Returns how many batches are translated or scored at the same time."""
        return torch.get_num_threads() if self.device.type == "cpu" else 1

    def _max_pieces(self) -> int:
        """Return the most pieces, EOS not counted, that are given to the model as one source or target."""
        given = self.config.max_source_length
        longest = MAX_PIECES if given == "auto" else given
        return longest if self.model.max_length is None else min(longest, self.model.max_length - 1)

    def cut(self, lines: Sequence[str], numbers: Sequence[int], kinds: Sequence[Kind | None]) -> list[CutLine]:
        """Return the parts of each line as pieces. A blank line has no parts.

        Args:
            lines: The lines.
            numbers: Their numbers, from 0 on.
            kinds: The kind of tags in each line; None for plain text.
        """
        config = self.config
        split, correct = config.split_sentences == "auto", config.correct_typos == "auto"
        longest = None if config.max_source_length == "auto" else self._max_pieces()
        markup = [kind and take_out(line, kind) for line, kind in zip(lines, kinds, strict=True)]
        texts = [line if taken is None else taken.text for line, taken in zip(lines, markup, strict=True)]
        marked = [self.layer.mark(text, split, correct, longest) if text.strip() else [] for text in texts]
        for parts, number in zip(marked, numbers, strict=True):
            self.long_sentences.note(parts, number + 1)
            for part in parts:
                self.corrections.note(part)
        # All lines in one call, because SentencePiece starts its threads anew at every call.
        encoded = iter(self.tokenizers.source.encode([part.text for parts in marked for part in parts]))
        return [
            CutLine(text, taken, [CutPart(part, self._cut_part(next(encoded), number)) for part in parts])
            for text, taken, parts, number in zip(texts, markup, marked, numbers, strict=True)
        ]

    def _cut_part(self, pieces: list[int], line: int) -> list[list[int]]:
        """Cut the pieces of a part into lists that the model can take, if there is no text layer that did so."""
        longest = self._max_pieces()
        if len(pieces) <= longest:
            return [pieces] if pieces else []
        names = self.tokenizers.source.pieces(pieces)
        language = self.tokenizers.source.language_of(pieces)  # each list has it
        lists, start = [], len(language)
        room = max(1, longest - len(language))
        while len(pieces) - start > room:
            end = start + room
            # Cut between words rather than inside one, if a word begins in the second half of the list.
            starts_word = (place for place in range(end, start + room // 2, -1) if names[place].startswith(WORD_START))
            end = next(starts_word, end)
            lists.append(language + pieces[start:end])
            start = end
        lists.append(language + pieces[start:])
        logger.warning(
            "line %d has %d pieces, more than the %d of %s: translated in %d parts",
            line + 1,
            len(pieces),
            longest,
            "the model's positions" if self.model.max_length == longest + 1 else "decoding.max_source_length",
            len(lists),
        )
        return lists

    def finish(
        self, lines: Sequence[CutLine], found: Sequence[list[Hypothesis]], aligned: bool = False
    ) -> list[list[ScoredText]]:
        """Return up to n_best translations of each line, best first.

        Args:
            lines: The lines, as ``cut`` returns them.
            found: The hypotheses for the sources of all lines, one after another.
            aligned: Whether word alignments are wanted.
        """
        found = [several[: self.config.n_best] for several in found]
        decoded = iter(self.tokenizers.target.decode([one.pieces for several in found for one in several]))
        following = iter([[(one, next(decoded)) for one in several] for several in found])
        drafts = [
            self._drafts(line, [list(islice(following, len(part.pieces))) for part in line.parts]) for line in lines
        ]
        of_lines = [
            [(draft, number, part.part) for draft in ranked for number, part in enumerate(line.parts)]
            for line, ranked in zip(lines, drafts, strict=True)
        ]
        self._put_missing_slots([each for of_drafts in of_lines for each in of_drafts])
        needed = [aligned or line.markup is not None for line in lines]
        links = iter(
            self._links(
                [
                    (part.text, draft.texts[number])
                    for of_drafts in compress(of_lines, needed)
                    for draft, number, part in of_drafts
                ]
            )
        )
        return [
            [
                self._finished(line, draft, list(islice(links, len(line.parts))) if is_needed else [], aligned)
                for draft in ranked
            ]
            for line, ranked, is_needed in zip(lines, drafts, needed, strict=True)
        ]

    def _put_missing_slots(self, of_drafts: Sequence[tuple[_Draft, int, Part]]) -> None:
        """Completes the translations of parts, each given by its draft and its number there, whose slots the model has
        dropped."""
        lacking = [each for each in of_drafts if self.layer.missing_slots(each[2], each[0].texts[each[1]])]
        if lacking:
            links = self._links([(part.text, draft.texts[number]) for draft, number, part in lacking])
            for (draft, number, part), of_part in zip(lacking, links, strict=True):
                draft.texts[number] = self.layer.with_missing_slots(part, draft.texts[number], of_part)

    def _links(self, pairs: Sequence[tuple[str, str]]) -> list[list[Link]]:
        if not pairs:
            return []
        with self._evaluating():
            return self._aligner.links([source for source, _ in pairs], [target for _, target in pairs])

    def _drafts(self, line: CutLine, found: list[list[list[tuple[Hypothesis, str]]]]) -> list[_Draft]:
        """Returns the translations of a line. The first is made of the best of each part, one of the others of the
        second-best of each, and so on; these others are in the order of their scores.

        Args:
            line: The line.
            found: For each part, and each of its lists of pieces, the hypotheses and their texts, best first. Where
                there are too few, the last one counts.
        """
        drafts: list[_Draft] = []
        for rank in range(max([len(several) for part in found for several in part], default=1)):
            texts: list[str] = []
            chosen: list[Hypothesis] = []
            for part, lists in zip(line.parts, found, strict=True):
                best = [several[min(rank, len(several) - 1)] for several in lists]
                chosen += [hypothesis for hypothesis, _ in best]
                text = self._between_pieces.join(filter(None, (text for _, text in best)))
                text, surplus = self.layer.without_surplus(part.part, text)
                if rank == 0:
                    self.items.count(len(part.part.items), surplus + self.layer.missing_slots(part.part, text))
                texts.append(text)
            length = sum(hypothesis.length for hypothesis in chosen)
            total = sum(hypothesis.log_probability for hypothesis in chosen)
            drafts.append(_Draft(texts, total / length**self.config.length_penalty if chosen else None))
        # With the mean over other lengths, the score of a later rank can be the higher one.
        return [drafts[0], *sorted(drafts[1:], key=lambda draft: -(draft.score or 0.0))]

    def _finished(self, line: CutLine, draft: _Draft, links: Sequence[list[Link]], aligned: bool) -> ScoredText:
        """Returns a translation of a line as the user gets it.

        Args:
            line: The line.
            draft: The translation of its parts.
            links: For each part, the links between its text and its translation. Without links, tags go to the same
                relative places.
            aligned: Whether word alignments are wanted.
        """
        parts = [part.part for part in line.parts]
        restored = [self.layer.restore(part, text) for part, text in zip(parts, draft.texts, strict=True)]
        restored = self.layer.with_gaps(parts, restored)
        text = "".join(restored)
        placed: list[Link] = []
        source_start = target_start = 0
        for part, translation, whole, of_part in zip(parts, draft.texts, restored, links, strict=False):
            sources, targets = (self.layer.positions(part, one) for one in (part.text, translation))
            placed += [
                Link(
                    source_start + sources[link.source_start],
                    source_start + sources[link.source_end],
                    target_start + targets[link.target_start],
                    target_start + targets[link.target_end],
                )
                for link in of_part  # of punctuation that was added nothing is left, and its link connects no words
            ]
            source_start += len(self.layer.restore(part, part.text))
            target_start += len(whole)
        alignment = word_links(placed, line.text, text) if aligned else None
        if line.markup is not None:
            text = put_back(line.markup, text, placed)
        if self.layer.rules.enabled and (line.markup is None or not text.strip()):
            text = text.strip()  # a blank line stays blank; around tags, white space comes back as it was
        return ScoredText(LINE_BREAKS.sub(" ", text), draft.score, alignment)

    def _batches(self, lengths: Sequence[int], rows_each: int) -> list[list[int]]:
        """Groups indices of similar length into batches, longest first.

        A batch's rows (``rows_each`` for each index) times its longest length stay within ``decoding.batch_tokens``.

        The number of batches is the smallest that this budget permits, rounded up to a multiple of the number of cores.
        The batches are then made as even as that number permits, so that no core waits long for another's last batch.
        But the budget of a batch never goes below an eighth of ``decoding.batch_tokens``, because a decoding step has a
        fixed cost.
        """
        order = sorted(range(len(lengths)), key=lambda index: -lengths[index])

        def cut(budget: int) -> list[list[int]]:
            batches: list[list[int]] = []
            start = 0
            while start < len(order):
                rows = max(1, budget // (lengths[order[start]] * rows_each))
                batches.append(order[start : start + rows])
                start += rows
            return batches

        largest = min(self.config.batch_tokens, rows_each * max(lengths, default=0) * len(lengths))
        smallest = min(largest, self.config.batch_tokens // 8)
        cores = self._cores()
        most = cores * math.ceil(len(cut(largest)) / cores)
        # A larger budget never makes more batches, so bisection finds the smallest that suffices.
        return cut(bisect_left(range(largest), True, lo=smallest, key=lambda budget: len(cut(budget)) <= most))


def _completed(config: DecodingConfig | DecodingChoice | None, own: DecodingConfig, folder: Path) -> DecodingConfig:
    """Returns what the user asked for, completed by the model's own decoding."""
    if not isinstance(config, DecodingChoice):
        return config or own
    try:
        return config.over(own)
    except ValidationError as error:
        reasons = [f"decoding.{reason}" for e in error.errors() for reason in str(e["ctx"]["error"]).splitlines()]
        raise InputError(f"{'; '.join(reasons)} (what is not set here is the model's own, from {folder})") from None


def _refuse_what_is_no_list_of_lines(lines: Sequence[str]) -> None:
    # A string is a sequence of strings, too; each of its characters would be translated by itself.
    if isinstance(lines, str):
        raise TypeError("a list of lines is needed, not one string")
    for place, line in enumerate(lines):
        if not isinstance(line, str):
            raise TypeError(f"{line!r:.50}, number {place} of the list, is not a string")


def windows(lines: Iterable[str], one_by_one: bool = False) -> Iterator[list[str]]:
    """Cuts a stream of lines into windows of bounded size, or into single lines if a person waits for each answer."""
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
