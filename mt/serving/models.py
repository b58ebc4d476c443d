"""The models that are served, their languages, and how a text becomes the lines that a model translates."""

import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
from langcodes import LanguageTagError, standardize_tag
from langcodes.registry_parser import parse_registry
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from mt.config import ServingConfig
from mt.core.language import base_language
from mt.serving.batching import Batcher
from mt.text.markup.tags import cut_into_blocks
from mt.translation.engine import SearchRequest
from mt.translation.hypotheses import Hypothesis
from mt.translation.results import LINE_BREAKS, ScoredText, SentenceAttention
from mt.translation.translator import Translator

_BREAK = LINE_BREAKS.pattern[1:-2]
BETWEEN_LINES = re.compile(rf"\A\s+|(?<!\s)(?:[^\S{_BREAK}]*+[{_BREAK}]\s*+|\s+\Z)")
"""White space with a line break in it, or at an end of a text. This is looked for in the thread that all clients share,
so not each blank is looked at."""
MAX_DETECTED_CHARACTERS = 1000
"""The length of the beginning of a text by which its language is detected."""


class ServedModel:
    """A model with its queue. Its translations are those of ``translate.py``."""

    def __init__(self, name: str, translator: Translator, capacity: int, max_tokens: int) -> None:
        """
        Args:
            name: The model's name on the page.
            translator: The model's translator.
            capacity: Maximum number of waiting requests.
            max_tokens: Maximum number of tokens in a request.
        """
        self.name = name
        self.source = served_code(translator.layer.source_language)
        self.target = served_code(translator.layer.target_language)
        self._translator = translator
        translator.model.eval()
        lanes = torch.get_num_threads() if translator.device.type == "cpu" else 1
        self.batcher = Batcher(self, capacity, max_tokens, lanes, lambda: torch.set_num_threads(1))

    async def translations(self, texts: Sequence[str], html: bool = False, alternatives: int = 0) -> list[list[str]]:
        """Return the translation of each text, followed by up to ``alternatives`` others. HTML has none."""
        cut_text = cut_into_blocks if html else cut_into_lines
        cut = [cut_text(without_surrogates(text)) for text in texts]
        lines = [line for pieces in cut for line in pieces[::2] if line.strip()]
        translated = iter(await self.hypotheses(lines, "html" if html else "all" if alternatives else "text"))
        translations = []
        for pieces in cut:
            of_lines = [next(translated) if line.strip() else [ScoredText(line, None)] for line in pieces[::2]]
            distinct: dict[str, None] = {}
            for rank in range(min(max(map(len, of_lines)), 1 + alternatives)):
                pieces[::2] = [ranked[min(rank, len(ranked) - 1)].text for ranked in of_lines]
                distinct["".join(pieces)] = None
            translations.append(list(distinct))
        return translations

    async def hypotheses(self, lines: Sequence[str], kind: str = "all") -> list[list[ScoredText]]:
        """Return the translations of each line: the best one for ``text`` or ``html``; for ``all``, all of them, best
        first and with word alignments."""
        return await self.batcher.answers(kind, lines, [len(line) for line in lines])

    async def attention(self, line: str, translation: str) -> SentenceAttention:
        (maps,) = await self.batcher.answers("attention", [(line, translation)], [len(line) + len(translation)])
        return maps

    def cut(self, kind: str, item: Any) -> tuple[Any, list[list[int]]]:
        """See Work."""
        if kind == "attention":
            return item, []
        (line,) = self._translator.cut([item], [0], ["html" if kind == "html" else None])
        return line, line.sources

    def search(self, sources: list[list[int]], before_step: Callable[[], None]) -> list[list[Hypothesis]]:
        """See Work."""
        keys = [()] * len(sources)  # of sampling, which a server does not do
        n_best = self._translator.config.beam_size
        return self._translator.search(SearchRequest(sources, keys, n_best, before_step=before_step))

    def finish(self, kind: str, cut: Any, results: list[list[Hypothesis]]) -> Any:
        """See Work."""
        if kind == "attention":
            return self._translator.attention(*cut)
        return self._translator.join([cut], results, kind == "all", None if kind == "all" else 1)[0]


class ServedModels:
    """All models. Of several with the same languages, the first one answers, except on the page."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = models
        self.by_languages = {(model.source, model.target): model for model in reversed(models)}
        self.codes = sorted({code for pair in self.by_languages for code in pair})
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        known = [code for code in self.codes if base_language(code) in self._identifier.labels]
        self._of_label = {base_language(code): code for code in reversed(known)}
        self._identifier.set_languages(self._of_label or None)

    def code(self, language: str) -> str:
        """Return the served code of a language, however it is written: en, eng, en_US. Empty if it is not served."""
        wanted = served_code(language)
        if wanted in self.codes:
            return wanted
        return next((code for code in self.codes if base_language(code) == base_language(language)), "")

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Return the served languages that a text may be in, likeliest first, and how likely each is, in percent."""
        if not self._of_label or not any(map(str.isalpha, text)):
            return [(self.models[0].source, 0.0)]
        ranked = self._identifier.rank(without_surrogates(text[:MAX_DETECTED_CHARACTERS]))
        return [(self._of_label[label], round(100 * probability)) for label, probability in ranked]


def open_models(config: ServingConfig) -> ServedModels:
    """Load all models.

    Raises:
        InputError: A folder cannot be used. The message names it.
    """
    names = [Path(folder).resolve().name for folder in config.runs]
    translators = [
        Translator.load(folder, config.decoding, config.device, config.precision, config.text) for folder in config.runs
    ]
    return ServedModels(
        [
            ServedModel(name if names.count(name) == 1 else folder, translator, config.waiting, config.tokens)
            for name, folder, translator in zip(names, config.runs, translators, strict=True)
        ]
    )


def served_code(language: str) -> str:
    """Return a language's code as the world's programs write it: en for eng, zh-CN for zh_CN."""
    try:
        return standardize_tag(language, macro=True)
    except LanguageTagError:
        return language


@cache
def language_name(code: str) -> str:
    """Return the English name of a language: Chinese (CN) for zh-CN."""
    language, _, rest = code.partition("-")
    for entry in parse_registry():
        if entry["Type"] == "language" and entry["Subtag"] == language:
            name = re.sub(r" \(.*\)", "", entry["Description"][0])  # Modern Greek (1453-)
            return f"{name} ({rest})" if rest else name
    return code


def describe_language(code: str) -> dict[str, str]:
    """Return the code and the name of a language as the clients of all APIs expect them."""
    return {"code": code, "name": language_name(code)}


def cut_into_lines(text: str) -> list[str]:
    """Cut a text into lines, at even indices, and the white space between and around them, at odd ones."""
    if text == text.strip() and len(text.splitlines()) < 2:  # much faster than the search below
        return [text]
    pieces: list[str] = []
    done = 0
    for space in BETWEEN_LINES.finditer(text):
        pieces += [text[done : space.start()], space[0]]
        done = space.end()
    return [*pieces, text[done:]]


def without_surrogates(text: str) -> str:
    """Return a text without lone surrogates, which JSON can hold but no encoding can."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
