"""A translator without a trained model. Hypotheses, word links and forced scores are drawn from hashes of their inputs.

No draw depends on the arithmetic of a processor.
"""

import re
from collections.abc import Sequence
from random import Random
from zlib import crc32

import torch

from mt.config import DecodingConfig, TransformerConfig
from mt.models.build import build_model
from mt.storage.model_description import ConfidenceConfig
from mt.text.layer import TextLayer
from mt.text.placeholders import PLACEHOLDER
from mt.text.placement import AlignmentLink
from mt.tokenizer.tokenizer import WORD_START, Tokenizer
from mt.translation.engine import Engine, SearchRequest
from mt.translation.hypotheses import Constraint, Hypothesis
from mt.translation.translator import Translator

FAULT_RATES = 0, 0.1, 0.2, 0.4, 0.8
"""Shares of the words of a source that may come back changed. One is drawn for each hypothesis."""
COPIES = 0, 1, 1, 1, 1, 1, 2, 4
REPLACEMENTS = (
    "das Haus der Katze|ein Auto|Wagen|die Straßen|Bücher|schnell|ist|nicht|für|ÖFFNEN|Datei,|und so weiter.|Wie?|zwei"
    "|(oder)|»Nein«|7|1.000,5|%s|{0}|<b>|&amp;|'|\n|\u2028|\u202e|漢字|…|\U0010f000|\U0010f040"
)
"""Separated by bars. The last ones are placeholders."""
MAX_BROKEN_CONSTRAINTS = 3
WORD = re.compile(r"\w+|[^\w\s]")


def checksum(*values: object) -> int:
    return crc32(ascii(values).encode())


class KeyedEngine(Engine):
    """Answers with the words of a source: moved, dropped, repeated, replaced. It breaks some of the constraints."""

    check = open = None

    def __init__(self, tokenizer: Tokenizer) -> None:
        """``tokenizer``: that of both languages."""
        self._tokenizer = tokenizer
        self._replacements = tokenizer.encode(REPLACEMENTS.split("|"))

    def rows_per_source(self, request: SearchRequest) -> int:
        return 1

    def search(self, request: SearchRequest) -> list[list[Hypothesis]]:
        constraints = request.constraints or [()] * len(request.sources)
        return [
            sorted(
                (self._hypothesis(source, own, key[0], n) for n in range(request.n_best or 1)),
                key=lambda hypothesis: -hypothesis.score(1.0),
            )
            for source, key, own in zip(request.sources, request.sampling_keys, constraints, strict=True)
        ]

    def _hypothesis(self, source: list[int], constraints: Sequence[Constraint], *key: int) -> Hypothesis:
        random = Random(checksum(source, len(constraints), *key))
        rate, words = random.choice(FAULT_RATES), []
        for word in self._group_by_word(source):
            end = len(words)
            if random.random() < rate:
                end = random.choice((end, random.randrange(end + 1)))
                word = random.choice((word, word, random.choice(self._replacements))) * random.choice(COPIES)
            words.insert(end, word)
        tokens = sum(words, [])
        if len(constraints) > MAX_BROKEN_CONSTRAINTS or random.random() < 0.7:
            tokens = self._allowed(tokens, constraints) if constraints else tokens
        return Hypothesis(tokens, -random.random() * (len(tokens) + 1))

    def _group_by_word(self, tokens: list[int]) -> list[list[int]]:
        """Group tokens by word. A placeholder begins a word."""
        words = []
        for token, name in zip(tokens, self._tokenizer.subwords(tokens), strict=True):
            if not words or name.startswith(WORD_START) or PLACEHOLDER.match(name):
                words.append([])
            words[-1].append(token)
        return words

    def _allowed(self, tokens: list[int], constraints: Sequence[Constraint]) -> list[int]:
        """Drop the tokens that constraints exclude."""
        allowed = []
        for token in tokens:
            log_p = torch.zeros(1, self._tokenizer.vocabulary_size)
            for constraint in constraints:
                constraint.exclude(log_p, torch.tensor([allowed], dtype=torch.long))
            allowed += [token] * (log_p[0, token] == 0)
        return allowed


class KeyedTranslator(Translator):
    """A translator with drawn hypotheses, word links and forced scores."""

    def __init__(self, layer: TextLayer, **decoding: object) -> None:
        """``decoding``: settings of DecodingConfig. As in sampling, the number of a line is a part of its key."""
        super().__init__(
            model=build_model(TransformerConfig(architecture="transformer", width=2, heads=1), layer.tokenizers),
            layer=layer,
            config=DecodingConfig(method="sample", **decoding),
            engine=KeyedEngine(layer.tokenizers.target),
            confidence=ConfidenceConfig(**dict.fromkeys(ConfidenceConfig.model_fields, 1)),
        )

    def _align(self, sources, targets) -> list[list[AlignmentLink]]:
        return list(map(word_links, sources, targets))

    def _score_targets(self, sources, targets) -> list[float]:
        return list(map(checksum, sources, targets))


def word_links(source: str, target: str) -> list[AlignmentLink]:
    """Link each target word to the nearest equal word or, if there is none, most of them to one by draw.

    Other words have no influence on such a draw.
    """
    links = []
    for word in WORD.finditer(target):
        distances = {
            own.span(): (0, abs(own.start() - word.start())) if own[0] == word[0] else (1, checksum(own[0], word[0]))
            for own in WORD.finditer(source)
        }
        if distances and (word[0] in source or checksum(word[0]) % 4):
            links.append(AlignmentLink(*min(distances, key=distances.get), *word.span()))
    return sorted(links)
