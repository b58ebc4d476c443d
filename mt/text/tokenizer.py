"""Turns text into pieces and back with SentencePiece. A model's bytes are kept in memory and written as they are.

Byte fallback is always on in what is trained here: a character without a piece of its own becomes its UTF-8 bytes, so
no text is ever unknown. A tokenizer that comes from a MarianMT model has a vocabulary of its own (``Vocabulary``), and
what that lacks becomes UNK.
"""

import functools
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import sentencepiece
from pyarrow import compute

from mt.config import TokenizerConfig
from mt.core.columns import tables
from mt.core.errors import InputError
from mt.core.files import UNDECODABLE, write_atomically
from mt.core.language import has_many_characters, writes_spaces
from mt.core.randomness import generator
from mt.storage.sentencepiece_file import TOKENIZER_FILES, character_coverage, normalization
from mt.storage.vocabulary import BOS, EOS, PAD, SPECIAL, UNK, Vocabulary
from mt.text.slots import MAX_SLOTS, OF_NUMBERS, slot
from mt.text.subword_sampling import WORD_START, bpe_dropout, choose, split_words

if TYPE_CHECKING:
    import datasets  # takes a second to import, which translate.py need not wait for

MOST_SENTENCES = 1_000_000
"""The most sentences that a tokenizer is trained on. From a larger corpus, that many are drawn: more hardly change a
vocabulary."""
MOST_CHARACTERS = 100_000_000
"""The most characters of these sentences, both sides together."""
MOST_CHARACTERS_WITHOUT_SPACES = 10_000_000
"""The same if one of the languages has no spaces between words. To SentencePiece a sentence is one word then, and it
takes up to 100 bytes of memory for each character."""

NAME_OF_LANGUAGE = re.compile(r">>[^<>\s]+<<")
"""At the beginning of a source, tells a MarianMT model with several target languages which of them to write."""
FEWEST_FOR_THREADS = 500
"""The fewest texts that are encoded by several threads."""
CUTS = 64
"""Number of ways to cut a word among which subword sampling chooses."""
MOST_WORDS = 100_000
"""The most words whose cuts are remembered at a time; they take some hundred megabytes."""


class PieceSpan(NamedTuple):
    """A piece, and the characters of a text that it stands for, without white space before them."""

    piece: int
    start: int
    end: int


class Tokenizer:
    """One SentencePiece model."""

    def __init__(self, model: bytes) -> None:
        """
        Args:
            model: The bytes of a SentencePiece model file.

        Raises:
            ValueError: The model is damaged, or its PAD, UNK, BOS and EOS are not those of this project.
        """
        self.model = model
        try:
            self._processor = processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise ValueError("it is damaged or no SentencePiece model") from None
        if not model:
            # SentencePiece itself accepts an empty model.
            raise ValueError("it is empty")
        self.vocabulary = Vocabulary.from_model(model)
        """The numbers of the pieces, if they are not SentencePiece's own."""
        self._names = self.vocabulary.names if self.vocabulary else []
        self._numbers = {name: number for number, name in enumerate(self._names)}
        special = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if not self.vocabulary and special != SPECIAL:
            raise ValueError("its special pieces are not those of this project")
        self._scores = {
            processor.id_to_piece(number): processor.get_score(number)
            for number in range(processor.get_piece_size())
            if not (processor.is_control(number) or processor.is_unknown(number) or processor.is_byte(number))
        }
        self._cuts: dict[tuple[str, float], list[tuple[int, ...] | None]] = {}
        self._best: dict[str, tuple[list[tuple[int, ...]], list[float]]] = {}
        try:
            processor.nbest_encode("a", nbest_size=1)
            self._unigram = True
        except RuntimeError:
            # Only unigram models can rank the ways to cut a text.
            self._unigram = False

    def __reduce__(self) -> tuple:
        return Tokenizer, (self.model,)

    @classmethod
    def train(
        cls,
        sentences: Iterable[str],
        languages: tuple[str, ...],
        config: TokenizerConfig,
        slots: Sequence[str] = (),
    ) -> "Tokenizer":
        """Trains a tokenizer on some text.

        Args:
            sentences: The text, which is read once.
            languages: The codes of its languages. They decide the share of characters that get a piece of their own,
                and the normalisation, unless ``config`` does.
            config: Kind, size and normalisation.
            slots: The slots (see ``mt.text.slots``), which become pieces. If there are any, every digit is a piece of
                its own, so that a model can copy any number.

        Raises:
            InputError: The text has too little variety for the size of the vocabulary, or too many characters.
        """
        wide = any(has_many_characters(language) for language in languages)
        coverage = config.character_coverage or (0.9995 if wide else 1.0)
        rule = config.normalization or ("identity" if wide else "nmt_nfkc")
        model = io.BytesIO()
        failures: list[BaseException] = []
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_keeping_failures(sentences, failures),
                model_writer=model,
                model_type=config.kind,
                vocab_size=config.vocabulary_size,
                # Every character is a piece, so the size can only be an upper bound.
                hard_vocab_limit=config.kind != "char",
                character_coverage=coverage,
                byte_fallback=True,
                user_defined_symbols=list(slots),
                split_digits=bool(slots),
                normalization_rule_name=rule,
                remove_extra_whitespaces=config.normalization != "identity",
                shuffle_input_sentence=False,
                # This limit is in bytes. SentencePiece skips longer sentences silently.
                max_sentence_length=2**30,
                pad_id=PAD,
                unk_id=UNK,
                bos_id=BOS,
                eos_id=EOS,
                minloglevel=2,
            )
        except RuntimeError as error:
            if failures:
                raise failures[0] from None
            raise _explained(error, config) from error
        return cls(model.getvalue())

    @property
    def vocabulary_size(self) -> int:
        return len(self._names) or self._processor.get_piece_size()

    @property
    def normalization(self) -> str:
        """Name of the normalisation, read from the model and not from the config: another run may have trained it."""
        return normalization(self.model)

    @property
    def character_coverage(self) -> float:
        """The share of the training text's characters for which the training was to make pieces."""
        return character_coverage(self.model)

    def normalise(self, text: str) -> str:
        """Returns a text as it is before it is cut, without the marks of the words' starts."""
        return self._processor.normalize(UNDECODABLE.sub("\ufffd", text)).replace(WORD_START, "")

    def has_piece(self, text: str) -> bool:
        """Returns whether a text is a piece of its own, other than a control piece or a byte."""
        return text in self._scores

    @functools.cached_property
    def slots(self) -> int:
        """The number of slots of each kind (see ``mt.text.slots``) that are pieces."""
        kinds = 0, OF_NUMBERS
        return next(
            number
            for number in count()
            if number == MAX_SLOTS or not all(self.has_piece(slot(first + number)) for first in kinds)
        )

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the pieces of each text, without BOS and EOS.

        Half a surrogate pair is read as U+FFFD, like broken UTF-8.
        """
        readable = [UNDECODABLE.sub("\ufffd", text) for text in texts]
        if self.vocabulary:
            cut = [self._without_language(text) for text in readable]
            found = self._processor.encode([text for _, text in cut], out_type=str)
            return [
                [self._number(piece) for piece in [*language, *pieces]]
                for (language, _), pieces in zip(cut, found, strict=True)
            ]
        if len(texts) < FEWEST_FOR_THREADS:
            # For a list, SentencePiece starts threads, for which few texts would wait.
            return [self._processor.encode(text, out_type=int) for text in readable]
        return self._processor.encode(readable, out_type=int)

    def spans(self, texts: Sequence[str]) -> list[list[PieceSpan]]:
        """Returns the pieces of each text like ``encode``, with their places in it."""
        cut = [self._without_language(UNDECODABLE.sub("\ufffd", text)) for text in texts]
        found = self._processor.encode([text for _, text in cut], return_type="offset_mapping")
        spans = []
        for (language, text), one in zip(cut, found, strict=True):
            before = sum(map(len, language))
            pieces = map(self._number, one["pieces"]) if self.vocabulary else one["ids"]
            spans.append([PieceSpan(self._number(name), 0, len(name)) for name in language])
            spans[-1] += [
                PieceSpan(piece, before + end - len(text[start:end].lstrip()), before + end)
                for piece, (start, end) in zip(pieces, one["offsets"], strict=True)
            ]
        return spans

    def _without_language(self, text: str) -> tuple[list[str], str]:
        """Returns the name of a target language at the beginning of a text, if it is a piece, and the rest."""
        found = NAME_OF_LANGUAGE.match(text)
        if not found or found[0] not in self._numbers:
            return [], text
        return [found[0]], text[found.end() :]

    def language_of(self, pieces: Sequence[int]) -> list[int]:
        """Returns the name of a target language with which the pieces of a source begin; an empty list if with none."""
        begins = self.vocabulary is not None and NAME_OF_LANGUAGE.fullmatch(self._names[pieces[0]])
        return list(pieces[:1]) if begins else []

    def _number(self, piece: str) -> int:
        """Returns the number of a piece in SentencePiece's spelling, or UNK."""
        return self._numbers.get(piece, UNK) if self.vocabulary else self._processor.piece_to_id(piece)

    def sample(self, text: str, sampling: float, key: int) -> list[int]:
        """Cuts a text into pieces in one of several ways, which depends on ``key`` alone.

        BPE leaves out each merge with probability ``sampling`` (Provilkov et al. 2020). CUTS ways to cut a word are
        drawn once and for all, and each occurrence of the word takes one of them. Unigram takes one of the CUTS best
        ways to cut a word, in proportion to its probability to the power of 1 - ``sampling`` (Kudo 2018).
        """
        language, text = self._without_language(UNDECODABLE.sub("\ufffd", text))
        words = split_words(self._processor.normalize(text))
        draws = np.random.Generator(np.random.Philox(key=key)).random(len(words)).tolist()
        cut = self._cut_unigram if self._unigram else self._cut_bpe
        pieces = [self._number(name) for name in language]
        for word, draw in zip(words, draws, strict=True):
            pieces += cut(word, sampling, draw)
        return pieces

    def _cut_bpe(self, word: str, sampling: float, draw: float) -> tuple[int, ...]:
        cuts = self._cuts.get((word, sampling))
        if cuts is None:
            if len(self._cuts) >= MOST_WORDS:
                self._cuts.clear()
            cuts = self._cuts[word, sampling] = [None] * CUTS
        number = int(draw * CUTS)
        found = cuts[number]
        if found is None:
            random = generator(number, f"BPE-dropout {sampling} {word}")
            symbols = bpe_dropout(word, self._scores, sampling, random)
            found = cuts[number] = tuple(piece for symbol in symbols for piece in self._pieces_of(symbol))
        return found

    def _cut_unigram(self, word: str, sampling: float, draw: float) -> tuple[int, ...]:
        best = self._best.get(word)
        if best is None:
            if len(self._best) >= MOST_WORDS:
                self._best.clear()
            best = self._best[word] = self._best_cuts(word)
        cuts, log_probabilities = best
        return cuts[choose(log_probabilities, 1 - sampling, draw)]

    def _best_cuts(self, word: str) -> tuple[list[tuple[int, ...]], list[float]]:
        """Returns the CUTS most probable ways to cut a word, and the log-probability of each."""
        if word == WORD_START:
            return [self._pieces_of(word)], [0.0]
        # The mark of the word's start is left out: SentencePiece adds it itself.
        cuts = self._processor.nbest_encode(word[1:], nbest_size=CUTS, out_type=str)
        scores = [sum(self._processor.get_score(self._processor.piece_to_id(piece)) for piece in cut) for cut in cuts]
        return [tuple(map(self._number, cut)) for cut in cuts], scores

    def _pieces_of(self, symbol: str) -> tuple[int, ...]:
        """Returns the number of a piece or, for a character without a piece, the numbers of its bytes."""
        if symbol in self._scores or not self._processor.is_byte(self._processor.piece_to_id("<0x00>")):
            return (self._number(symbol),)
        return tuple(self._number(f"<0x{byte:02X}>") for byte in symbol.encode())

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Returns the text of each row. PAD, BOS and EOS give no text, and bytes that are not UTF-8 become U+FFFD.

        The text can contain line breaks, because a row can spell any byte.
        """
        if self.vocabulary:
            names = [[self._names[piece] for piece in row if piece not in self.vocabulary.special] for row in ids]
            # A piece that only the other language's SentencePiece model has keeps the mark of its word's start.
            return [text.replace(WORD_START, " ").strip() for text in self._processor.decode(names)]
        return self._processor.decode([list(row) for row in ids])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Returns the pieces as text, for people to read."""
        return [self._names[piece] for piece in ids] if self.vocabulary else self._processor.id_to_piece(list(ids))


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of both sides, which are the same object if the vocabulary is joint."""

    source: Tokenizer
    target: Tokenizer

    @property
    def joint(self) -> bool:
        return self.source is self.target or (self.source.vocabulary is not None and self.source.vocabulary.joint)

    @classmethod
    def train(
        cls,
        pairs: "datasets.Dataset",
        source_language: str,
        target_language: str,
        config: TokenizerConfig,
        seed: int,
        slots: Sequence[str] = (),
    ) -> "TokenizerPair":
        """Trains one tokenizer on both sides of the training pairs, or one on each side, as ``config.joint`` says.

        ``seed`` determines which pairs are taken if there are more than MOST_SENTENCES sentences or MOST_CHARACTERS
        characters. For ``slots`` see ``Tokenizer.train``.

        Raises:
            InputError: See ``Tokenizer.train``.
        """
        with_spaces = writes_spaces(source_language) and writes_spaces(target_language)
        characters = MOST_CHARACTERS if with_spaces else MOST_CHARACTERS_WITHOUT_SPACES
        rows = _sample(pairs, MOST_SENTENCES // 2 if config.joint else MOST_SENTENCES, characters, seed)
        if config.joint:
            both = chain(_texts(pairs, "source", rows), _texts(pairs, "target", rows))
            tokenizer = Tokenizer.train(both, (source_language, target_language), config, slots)
            return cls(tokenizer, tokenizer)
        return cls(
            source=Tokenizer.train(_texts(pairs, "source", rows), (source_language,), config, slots),
            target=Tokenizer.train(_texts(pairs, "target", rows), (target_language,), config, slots),
        )

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], folder: Path) -> "TokenizerPair":
        """Load the tokenizers of a folder.

        Args:
            files: The content of ``tokenizer.model``, or of ``source.model`` and ``target.model``.
            folder: Where they are, for messages.

        Raises:
            InputError: A file is damaged.
        """
        tokenizers = {}
        for name, model in files.items():
            try:
                tokenizers[name] = Tokenizer(model)
            except ValueError as error:
                raise InputError(f"{folder / name}: cannot be read: {error}") from error
        source, *others = tokenizers.values()
        return cls(source, *(others or [source]))

    def save(self, folder: Path) -> None:
        """Writes the files that ``load`` reads, and removes those that an earlier attempt with the other form of
        vocabulary (joint or not) has left."""
        files = self.files()
        for name in TOKENIZER_FILES:
            if name not in files:
                (folder / name).unlink(missing_ok=True)
        for name, model in files.items():
            write_atomically(folder / name, model)

    def files(self) -> dict[str, bytes]:
        """Return the content of ``tokenizer.model`` if both sides share it, else of ``source.model`` and
        ``target.model``."""
        if self.source is self.target:
            return {"tokenizer.model": self.source.model}
        return {"source.model": self.source.model, "target.model": self.target.model}


def _sample(pairs: "datasets.Dataset", most: int, most_characters: int, seed: int) -> np.ndarray | None:
    """Returns the rows of at most ``most`` pairs with at most ``most_characters``, ascending; None for all rows."""
    rows = None
    if len(pairs) > most:
        rows = np.sort(generator(seed, "tokenizer").choice(len(pairs), most, replace=False))
    lengths = [
        compute.add(*(compute.utf8_length(table[side]) for side in ("source", "target"))).to_numpy()
        for table in tables(pairs, ["source", "target"], rows)
    ]
    characters = np.concatenate(lengths).astype(np.int64)
    if characters.sum() <= most_characters:
        return rows
    order = generator(seed, "characters of the tokenizer").permutation(len(characters))
    count = max(1, int(np.searchsorted(np.cumsum(characters[order]), most_characters, side="right")))
    kept = np.sort(order[:count])
    return kept if rows is None else rows[kept]


def _texts(pairs: "datasets.Dataset", side: str, rows: np.ndarray | None) -> Iterator[str]:
    for table in tables(pairs, [side], rows):
        yield from table[side].to_pylist()


def _keeping_failures(sentences: Iterable[str], failures: list[BaseException]) -> Iterator[str]:
    """Yields the sentences, and adds the exception that stops them, such as an interruption or a full disk, to
    ``failures``, because SentencePiece turns it into a RuntimeError."""
    try:
        yield from sentences
    except GeneratorExit:
        raise
    except BaseException as error:
        failures.append(error)
        raise


def _explained(error: RuntimeError, config: TokenizerConfig) -> InputError:
    """Returns an InputError that explains SentencePiece's error in terms of our config."""
    message = str(error)
    if too_high := re.search(r"Vocabulary size too high .*<= (\d+)", message):
        return InputError(
            f"tokenizer.vocabulary_size={config.vocabulary_size} is more than the training text supports: "
            f"it gives at most {too_high[1]} pieces; set tokenizer.vocabulary_size={too_high[1]} or less"
        )
    if too_low := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        return InputError(
            f"tokenizer.vocabulary_size={config.vocabulary_size} is too small for the characters of the "
            f"training text: set tokenizer.vocabulary_size={too_low[1]} or more, or lower "
            "tokenizer.character_coverage"
        )
    return InputError(f"no tokenizer could be trained on this text: {message}")
