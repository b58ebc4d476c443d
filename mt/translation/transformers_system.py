"""Translation with models of the library ``transformers``. Each family marks the languages differently:

====================  ==============================================  ==========================
model                 source                                          first token of the target
====================  ==============================================  ==========================
NLLB-200              ``eng_Latn`` tokens ``</s>``                    ``fra_Latn``
M2M-100               ``__en__`` tokens ``</s>``                      ``__fr__``
mBART-50              ``en_XX`` tokens ``</s>``                       ``fr_XX``
MADLAD-400            ``<2fr>`` tokens ``</s>``
MarianMT              ``>>fra<<`` tokens ``</s>``
T5                    translate English to French: tokens ``</s>``
====================  ==============================================  ==========================
"""

import re
from collections.abc import Iterable, Sequence
from itertools import groupby, takewhile
from typing import Any

import torch
from langcodes import closest_match
from torch import Tensor

from mt.core.errors import InputError
from mt.core.files import UNDECODABLE
from mt.core.language import UNKNOWN_LANGUAGE, AskedDirection, base_language, english_name
from mt.models.attention import RecordableAttention
from mt.models.seq2seq import Seq2Seq
from mt.storage.folders import TransformersFolder
from mt.tokenizer.tokenizer import EOS, PAD, SPECIAL_TOKENS, WORD_START, Tokenizer, TokenizerPair, TokenSpan
from mt.translation.engine import SearchRequest
from mt.translation.hypotheses import (
    Hypotheses,
    Hypothesis,
    collate_sources,
    forced_log_probabilities,
    hypothesis_limits,
)
from mt.translation.torch_engine import TorchEngine
from mt.translation.trained_model import TrainedModel

ID_OFFSET = len(SPECIAL_TOKENS)
"""Our id of a token minus its id in ``transformers``."""
LANGUAGE_TOKEN = re.compile(r"(?:__|<2|>>)(\w+)(?:__|>|<<)|([a-z]{2,3}_[A-Z]\w{1,3})")
MAX_NAMED = 5
"""Maximum number of languages in a message."""
MAX_SKIPPED_CHARACTERS = 8
"""Maximum number of characters between two tokens, for example of an unknown one."""


def set_direction(tokenizer: Any, model_type: str, asked: AskedDirection) -> str:
    """Set the languages of a tokenizer of ``transformers``. Return the text in front of each source.

    Raises:
        InputError: The model lacks a language, or needs one that is not given.
    """
    vocabulary = tokenizer.get_vocab()
    tokens = {match[1] or match[2]: name for name in vocabulary if (match := LANGUAGE_TOKEN.fullmatch(name))}
    source, target = (code or UNKNOWN_LANGUAGE for code in asked[:2])
    if hasattr(tokenizer, "src_lang"):
        tokenizer.src_lang, tokenizer.tgt_lang = (
            _closest_language_code(source, tokens),
            _closest_language_code(target, tokens),
        )
    elif tokens:
        return f"{tokens[_closest_language_code(target, tokens)]} "
    elif model_type == "t5" and UNKNOWN_LANGUAGE not in (source, target):
        return f"translate {english_name(source)} to {english_name(target)}: "
    return ""


def _closest_language_code(code: str, known: Iterable[str]) -> str:
    """Return the model's code of a language, among all codes that it knows."""
    same_language = [model_code for model_code in known if base_language(model_code) == base_language(code)]
    if not same_language:
        examples = ", ".join(list(known)[:MAX_NAMED])
        raise InputError(
            f"{code}: the model lacks this language; set source_language and target_language, such as {examples}"
        )
    return code if code in same_language else closest_match(code, same_language, 1000)[0]


class TransformersTokenizer(Tokenizer):
    """One side of a tokenizer of ``transformers``. Encoded texts have their language tokens, but no EOS."""

    def __init__(self, tokenizer: Any, side: str, before: str = "") -> None:
        """
        Args:
            tokenizer: The tokenizer of ``transformers``.
            side: Its argument for texts: ``text``, or ``text_target``.
            before: The text in front of each text.
        """
        self.model, self.vocabulary, self.symbols, self.scores = b"", None, {}, {}
        self._tokenizer, self._side, self._before = tokenizer, side, before
        self.prefix = [token + ID_OFFSET for token in tokenizer(**{side: before}).input_ids[:-1]]

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        readable = [self._before + UNDECODABLE.sub("\ufffd", text) for text in texts]
        rows = self._tokenizer(**{self._side: readable}).input_ids if texts else []
        return [
            [token + ID_OFFSET for token in row[:-1] if text.strip()] for text, row in zip(texts, rows, strict=True)
        ]

    def spans(self, texts: Sequence[str]) -> list[list[TokenSpan]]:
        """Return the tokens of each text with their spans.

        The spans of language tokens, and of unknown and normalized characters, are empty.
        """
        spans: list[list[TokenSpan]] = []
        for text, tokens in zip(texts, self.encode(texts), strict=True):
            spans.append([])
            end = 0
            for number, name in enumerate(self.subwords(tokens)):
                surface = name.replace(WORD_START, "") if number >= len(self.prefix) else ""
                start = text.find(surface, end, end + len(surface) + MAX_SKIPPED_CHARACTERS)
                start, end = (end, end) if start < 0 else (start, start + len(surface))
                spans[-1].append(TokenSpan(tokens[number], start, end))
        return spans

    def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
        return [self._tokenizer.decode([token - ID_OFFSET for token in row], skip_special_tokens=True) for row in ids]

    def subwords(self, ids: Sequence[int]) -> list[str]:
        return self._tokenizer.convert_ids_to_tokens([token - ID_OFFSET for token in ids])


class TransformersModel(Seq2Seq):
    """A model of ``transformers`` with its tokenizers. ``decode`` returns its logits as features."""

    ids: Tensor
    """The id in ``transformers`` of each of our tokens, (V,)."""

    def __init__(self, network: Any, tokenizers: TokenizerPair) -> None:
        super().__init__()
        self.network = network
        self.tokenizers = tokenizers
        self.cross_attention = RecordableAttention()
        self.output = network.get_output_embeddings()
        config = network.generation_config
        special = [config.pad_token_id, config.pad_token_id, config.decoder_start_token_id, config.eos_token_id]
        self.register_buffer("ids", torch.tensor([*special, *range(network.config.vocab_size)]))

    def encode(self, source: Tensor) -> Any:
        return source

    def decode(self, memory: Any, target: Tensor) -> Tensor:
        recorder = self.cross_attention.active_recorder()
        output = self.network(
            self.ids[memory],
            attention_mask=(memory != PAD).long(),
            decoder_input_ids=self.ids[target],
            output_attentions=bool(recorder),
        )
        if recorder:
            weights = output.cross_attentions[-2:][0]  # the layer before the last aligns best (Garg et al. 2019)
            weights[..., : len(self.tokenizers.source.prefix)] = 0
            recorder.record(weights, weights.log())
        return output.logits

    def log_probabilities(self, features: Tensor) -> Tensor:
        return features.log_softmax(dim=-1, dtype=torch.float32)[..., self.ids]

    @property
    def max_length(self) -> int | None:
        return getattr(self.network.config, "max_position_embeddings", None)


class TransformersEngine(TorchEngine):
    """Searches with ``generate``, with the settings in the model's generation config, except those of ``decoding``.

    Only sources of one length are searched together. They need no padding, so the batch does not change translations.
    """

    name = "transformers"
    model: TransformersModel

    def _search(self, request: SearchRequest, n_best: int) -> Hypotheses:
        model = self.model
        n_best = min(n_best, self.rows_per_source(request))
        hypotheses: list[Hypothesis] = []
        for _, group in groupby(request.sources, len):
            sources = [source for source in group for _ in range(n_best)]
            batch = collate_sources(sources[::n_best]).to(model.device)
            sequences = model.network.generate(
                model.ids[batch],
                num_beams=self.rows_per_source(request),
                num_return_sequences=n_best,
                length_penalty=self.config.length_penalty,
                max_new_tokens=int(hypothesis_limits(model, batch, self.config)[0]) + 1,
                forced_bos_token_id=next((token - ID_OFFSET for token in model.tokenizers.target.prefix), None),
                do_sample=False,
            )
            eos = int(model.ids[EOS])
            tokens = [[token + ID_OFFSET for token in takewhile(eos.__ne__, row[1:])] for row in sequences.tolist()]
            hypotheses += map(Hypothesis, tokens, forced_log_probabilities(model, sources, tokens))
        return [hypotheses[start : start + n_best] for start in range(0, len(hypotheses), n_best)]


def open_transformers_model(folder: TransformersFolder, asked: AskedDirection) -> TrainedModel:
    """Load a model of ``transformers`` that translates in the direction that the user asks for.

    Raises:
        InputError: It cannot be loaded, or lacks one of the languages.
    """
    tokenizer, network = folder.load()
    before = set_direction(tokenizer, network.config.model_type, asked)
    sides = TransformersTokenizer(tokenizer, "text", before), TransformersTokenizer(tokenizer, "text_target")
    tokenizers = TokenizerPair(*sides)
    return TrainedModel(folder.read_description(asked), tokenizers, TransformersModel(network, tokenizers).eval(), {})
