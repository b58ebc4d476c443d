"""Encodes text as tokens and decodes it with SentencePiece.

The tokenizers that are trained here have byte fallback: a character without a subword of its own becomes its UTF-8
bytes, so no text is ever unknown. A tokenizer that comes from a MarianMT model has a vocabulary of its own
(``Vocabulary``); subwords that it lacks become UNK.
"""

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import sentencepiece

from mt.core.errors import InputError
from mt.core.files import UNDECODABLE, write_atomically
from mt.core.language import base_language
from mt.storage.vocabulary import (
    BOS,
    EOS,
    PAD,
    SPECIAL_TOKENS,
    TOKENIZER_FILES,
    UNK,
    Vocabulary,
    user_symbols,
    with_names,
)
from mt.tokenizer.sampling import SubwordSampler

__all__ = ["BOS", "EOS", "PAD", "SPECIAL_TOKENS", "UNK", "TokenSpan", "Tokenizer", "TokenizerPair"]

WORD_START = "▁"
LANGUAGE_TOKEN = re.compile(r">>([^<>\s]+)<<")
"""The token at the beginning of a source that tells a model of several target languages which of them to write (Johnson
et al. 2017), as MarianMT's models have it. Group 1 is the language."""
FIRST_SYMBOL = 0x10F100
"""The first of the private-use characters that stand for user-defined symbols."""


class TokenSpan(NamedTuple):
    """A token id and the (start, end) of the token in a text, without the whitespace before it."""

    token: int
    start: int
    end: int


class Tokenizer:
    """One SentencePiece model: encodes text as token ids, and decodes them. A ``TokenizerPair`` holds one or two."""

    def __init__(self, model: bytes) -> None:
        """
        Args:
            model: The bytes of a SentencePiece model file.

        Raises:
            ValueError: The model is corrupted, or its PAD, UNK, BOS and EOS are not those of this project.
        """
        if not model:
            raise ValueError("it is empty")  # SentencePiece itself accepts an empty model
        self.model = model
        try:
            processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except RuntimeError:
            raise ValueError("it is corrupted or no SentencePiece model") from None
        self.vocabulary = Vocabulary.from_model(model)
        """The token ids of a MarianMT model; None: the ids are SentencePiece's own."""
        symbols = [] if self.vocabulary else user_symbols(model)
        self.symbols = {symbol: chr(FIRST_SYMBOL + number) for number, symbol in enumerate(symbols)}
        """The user-defined symbols, each with the character that stands for it in the texts to encode, and in decoded
        ones. So the text layer cannot change or cut symbols."""
        special = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
        if not self.vocabulary and special != SPECIAL_TOKENS:
            raise ValueError("its special pieces are not those of this project")
        numbers = list(range(processor.get_piece_size()))
        self._subwords: list[str] = (
            [self.vocabulary.pieces[number] for number in self.vocabulary.order]
            if self.vocabulary
            else processor.id_to_piece(numbers)
        )
        self._ids = {name: number for number, name in enumerate(self._subwords)}
        self.language: str | None = None
        """The code of the language whose token is put in front of each source; None: no token."""
        self.prefix: list[int] = []
        """The token of the language."""
        if symbols:
            processor.load_from_serialized_proto(with_names(model, self.symbols))
        self._processor = processor
        self.scores: dict[str, float] = {
            processor.id_to_piece(number): processor.get_score(number)
            for number in numbers
            if not (processor.is_control(number) or processor.is_unknown(number) or processor.is_byte(number))
        }
        """The score of each piece that stands for text."""

    @cached_property
    def languages(self) -> list[str]:
        """The target languages with a token in the vocabulary."""
        return [match[1] for match in map(LANGUAGE_TOKEN.fullmatch, self._subwords) if match]

    def towards(self, language: str) -> "Tokenizer":
        """Return a tokenizer that adds the token of a target language to the start of each source, if there is one.

        The token of a MarianMT model may have another code: ``fra`` for ``fr``. The vocabulary is shared with this
        tokenizer, because a model may have a hundred languages.
        """
        codes = [code for code in self.languages if code == language]
        if self.vocabulary and not codes:
            codes = [code for code in self.languages if base_language(code) == base_language(language)]
        other = copy(self)
        other.language = codes[0] if len(codes) == 1 else None
        other.prefix = [self._ids[f">>{other.language}<<"]] if other.language else []
        return other

    @property
    def vocabulary_size(self) -> int:
        return len(self._subwords)

    def normalize(self, text: str) -> str:
        """Return a text as normalized before segmentation, without ▁ at the starts of words."""
        return self._processor.normalize(UNDECODABLE.sub("\ufffd", text)).replace(WORD_START, "")

    def hide_symbols(self, text: str) -> str:
        """Replace the symbols of a text by the characters that stand for them."""
        for symbol, character in self.symbols.items():
            text = text.replace(symbol, character)
        return text

    def show_symbols(self, text: str) -> str:
        """Undo ``hide_symbols``."""
        for symbol, character in self.symbols.items():
            text = text.replace(character, symbol)
        return text

    def has_subword(self, text: str) -> bool:
        """Return whether a text is a subword that is neither a control token nor a byte."""
        return text in self.scores

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each text, without BOS and EOS. The token of the language is in front, if there is one
        and the text has tokens.

        Half a surrogate pair is read as U+FFFD, like broken UTF-8.
        """
        split, kind = list(map(self._split_language, texts)), str if self.vocabulary else int
        readable = [text for _, text in split]
        rows = self._processor.encode(readable, out_type=kind)
        ids = map(self._to_ids, rows) if self.vocabulary else rows
        return [self._language_token(code, tokens) + tokens for (code, _), tokens in zip(split, ids, strict=True)]

    def spans(self, texts: Sequence[str]) -> list[list[TokenSpan]]:
        """Return the tokens of ``encode`` of each text, with their positions in the text."""
        spans = []
        for language, text in map(self._split_language, texts):
            # A call for each text: for a list of a thousand, the threads take five times as long.
            mapping = self._processor.encode(text, return_type="offset_mapping")
            shift = sum(map(len, language))
            tokens = self._to_ids(mapping["pieces"]) if self.vocabulary else mapping["ids"]
            text_spans = [
                TokenSpan(token, shift + end - len(text[start:end].lstrip()), shift + end)
                for token, (start, end) in zip(tokens, mapping["offsets"], strict=True)
            ]
            tokens = self._language_token(language, text_spans)
            spans.append([*(TokenSpan(token, 0, shift) for token in tokens), *text_spans])
        return spans

    def sampler(self, sampling: float) -> SubwordSampler:
        """Return a sampler of segmentations by BPE-dropout, which skips each merge with probability ``sampling``.

        SEGMENTATIONS_PER_WORD segmentations of a word are drawn once, and each occurrence of the word gets one of them.
        """
        return SubwordSampler(self._subwords, self.scores, sampling)

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        """Return the text of each row. PAD, BOS and EOS have no text, and invalid UTF-8 becomes U+FFFD.

        The text can contain line breaks, because a row can have any byte.
        """
        if self.vocabulary:
            names = [[self._subwords[token] for token in row if token not in self.vocabulary.special] for row in ids]
            # A subword that only the other language's SentencePiece model has keeps ▁.
            return [text.replace(WORD_START, " ").strip() for text in self._processor.decode(names)]
        return self._processor.decode(list(map(list, ids))) if ids else []

    def subwords(self, ids: Sequence[int]) -> list[str]:
        """Return the string of each token, with ▁ for the start of a word."""
        return [self._subwords[token] for token in ids]

    def all_subwords(self) -> list[str]:
        """Return the strings of all tokens of the vocabulary, in the order of their ids."""
        return self.subwords(range(self.vocabulary_size))

    def language_prefix(self, tokens: Sequence[int]) -> list[int]:
        """Return the language token at the start of a source; an empty list if there is none."""
        has_language = self.vocabulary and LANGUAGE_TOKEN.fullmatch(self._subwords[tokens[0]])
        return list(tokens[:1]) if has_language else self.prefix

    def _split_language(self, text: str) -> tuple[list[str], str]:
        """Return the language token at the start of a text, if it is in the vocabulary, and the rest of the text."""
        text = UNDECODABLE.sub("\ufffd", text)
        match = LANGUAGE_TOKEN.match(text) if self.vocabulary else None
        if match is None or match[0] not in self._ids:
            return [], text
        return [match[0]], text[match.end() :]

    def _language_token(self, language: list[str], pieces: Sequence[object]) -> list[int]:
        """Return the language token of a text or, if it has none and has tokens, that of the tokenizer."""
        return list(map(self._ids.__getitem__, language)) or (self.prefix if pieces else [])

    def _to_ids(self, subwords: Sequence[str]) -> list[int]:
        return [self._ids.get(subword, UNK) for subword in subwords]


@dataclass(frozen=True)
class TokenizerPair:
    """The tokenizers of source and target; one object twice if both sides share one SentencePiece model."""

    source: Tokenizer
    target: Tokenizer

    @property
    def is_shared(self) -> bool:
        """Whether both sides share one SentencePiece model."""
        return self.source.model is self.target.model

    @property
    def joint(self) -> bool:
        return self.is_shared or (self.source.vocabulary is not None and self.source.vocabulary.joint)

    def towards(self, language: str) -> "TokenizerPair":
        """Return the tokenizers that put the token of a target language in front of each source, if there is one."""
        return TokenizerPair(self.source.towards(language), self.target)

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], folder: Path) -> "TokenizerPair":
        """Load the tokenizers of a folder.

        Args:
            files: The content of ``tokenizer.model``, or of ``source.model`` and ``target.model``.
            folder: The folder of the files, for messages.

        Raises:
            InputError: A file is corrupted.
        """
        tokenizers = {}
        for name, model in files.items():
            try:
                tokenizers[name] = Tokenizer(model)
            except ValueError as error:
                raise InputError(
                    f"{folder / name}: corrupted, or no tokenizer: {error}; restore the file from a backup, or get the "
                    "folder of the model again"
                ) from error
        source, *others = tokenizers.values()
        return cls(source, *(others or [source]))

    def save(self, folder: Path) -> None:
        """Write ``files`` into a folder, and remove those of an earlier attempt with the other form of vocabulary
        (joint or not)."""
        files = self.files()
        for name in TOKENIZER_FILES:
            if name not in files:
                (folder / name).unlink(missing_ok=True)
        for name, model in files.items():
            write_atomically(folder / name, model)

    def files(self) -> dict[str, bytes]:
        """Return the content of ``tokenizer.model`` if both sides share it, else of ``source.model`` and
        ``target.model``."""
        if self.is_shared:
            return {"tokenizer.model": self.source.model}
        return {"source.model": self.source.model, "target.model": self.target.model}
