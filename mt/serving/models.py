"""Holds the served models and their languages, and divides texts into the lines that a model translates."""

import html
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from langcodes import LanguageTagError, closest_match, standardize_tag
from langcodes.registry_parser import parse_registry
from py3langid.langid import MODEL_FILE, LanguageIdentifier

from mt.config import ServingConfig
from mt.core.coded_text import CodedText, Mark, coded_text, joined
from mt.core.errors import InputError
from mt.core.language import base_language
from mt.formats.tags import coded_markup, encode
from mt.serving.batching import Batcher
from mt.text.line import Line
from mt.translation.engine import SearchRequest
from mt.translation.hypotheses import Hypotheses
from mt.translation.line_segmenter import SegmentedLine
from mt.translation.results import LINE_BREAKS, ScoredText, SentenceAttention
from mt.translation.translator import Translator

BLANK_LINES = re.compile(r"\n[^\S\n]*+\n\s*+")
_REMOVABLE_ENTITY = re.compile(r"(&#1[03];|&gt;|&lt;(?![A-Za-z/!?])|&amp;)((?<=&amp;)[#\w]*+;?|)")
"""An entity that can be replaced by its character if this does not begin a tag or entity, and the name after ``&``."""
_BREAK = LINE_BREAKS.pattern[1:-2]
BETWEEN_LINES = re.compile(rf"\A\s+|(?<!\s)(?:[^\S{_BREAK}]*+[{_BREAK}]\s*+|\s+\Z)")
"""Whitespace that includes a line break, or is at the start or end of a text. It runs in the thread that all clients
share, so the pattern is optimized: most spaces between words are skipped."""
MAX_DETECTED_CHARACTERS = 1000
"""The number of characters at the beginning of a text in which its language is detected."""
NO_LANGUAGE = "zxx"
"""The identifier's label for texts without a language, such as programs."""
MIN_UNSERVED_PROBABILITY = 0.5
"""The probability above which a language that is not served is detected. Otherwise the text is assumed to be in a
served language."""
MAX_LANGUAGE_DISTANCE = 10
"""The maximum distance, by ``langcodes``, of languages that are treated as one for detection: Bosnian and Croatian."""


class TranslatedText(NamedTuple):
    """The translations of a text."""

    texts: list[str]
    """The distinct translations, the best one first."""
    confidence: float | None = None
    """The confidence of the best one, if it was requested."""


class ServedModel:
    """One direction of a served model: its translator, and the Batcher that answers the requests to the model.

    Its translations equal those of ``translate.py``. It implements the interface ``Work`` for the Batcher.
    """

    def __init__(self, name: str, translator: Translator, batcher: Batcher) -> None:
        """
        Args:
            name: The name on the page.
            translator: The translator of the direction.
            batcher: The Batcher of the model.
        """
        self.name = name
        self.source = served_code(translator.layer.source_language)
        self.target = served_code(translator.layer.target_language)
        self.translator = translator
        translator.model.eval()
        self.batcher = batcher

    async def translations(self, texts: Sequence[str], is_html: bool, asked: Line) -> list[TranslatedText]:
        """Translate texts of any number of lines. Whitespace between lines is preserved.

        Args:
            texts: The texts.
            is_html: Whether the texts are HTML.
            asked: A line with the requested properties, such as terms. The confidence of a text is the lowest of its
                lines.

        Raises:
            InputError: The confidence is requested, and the model has none.
        """
        if asked.confident:
            self.translator.confidence.require_fitted()
        lines: list[Line] = []
        divided: list[tuple[str, bool, list[CodedText]]] = []
        for text in map(replace_surrogates, texts):
            is_markup = is_html and has_markup(text)
            pieces = split_html(text) if is_markup else split_lines(text)
            line = asked._replace(is_plain=not is_markup, escape=encode if is_markup else str)
            lines += [line._replace(text=piece) for piece in pieces[1::2]]
            divided.append((text, is_markup, pieces))
        translated = iter(await self.hypotheses(lines))
        translations = []
        for text, is_markup, pieces in divided:
            results = [next(translated) for _ in pieces[1::2]]
            confidence = min((best.confidence for best, *_ in results if best.confidence is not None), default=None)
            ranked_texts: list[str] = []
            for rank in range(max(map(len, results), default=1)):
                pieces[1::2] = [ranked[min(rank, len(ranked) - 1)].coded for ranked in results]
                coded = joined(pieces)
                ranked_texts.append(restore_characters(coded.written(encode), text) if is_markup else coded.written())
            translations.append(TranslatedText(list(dict.fromkeys(ranked_texts)), confidence))
        return translations

    async def hypotheses(self, lines: Sequence[Line]) -> list[list[ScoredText]]:
        """Return the ranked translations of each line, the best one first."""
        return await self.batcher.answer(self, lines, [len(line.text.text) for line in lines])

    async def attention(self, line: str, translation: str) -> SentenceAttention:
        """Return the attention maps for a line and a given translation (teacher forcing)."""
        (maps,) = await self.batcher.answer(self, [(line, translation)], [len(line) + len(translation)])
        return maps

    def segment(self, item: Any) -> tuple[Any, list[list[int]]]:
        """Divide a line into sources. An item of a request for attention has none: ``finish`` computes the answer."""
        if not isinstance(item, Line):
            return item, []
        (line,) = self.translator.segment([item])
        return line, line.sources

    def search(
        self, sources: list[list[int]], works: Sequence["ServedModel"], before_step: Callable[[], None]
    ) -> Hypotheses:
        """Return the hypotheses of each source, the best one first."""
        keys = [()] * len(sources)  # random keys, which only sampling needs
        n_best, checkers = self.translator.config.beam_size, [work.translator.checker for work in works]
        return self.translator.search(SearchRequest(sources, keys, n_best, before_step=before_step, checkers=checkers))

    def finish(self, prepared: Any, results: Hypotheses) -> Any:
        """Return the ranked translations of a line, or the attention maps of a line and its translation."""
        if not isinstance(prepared, SegmentedLine):
            return self.translator.attention(*prepared)
        (translations,) = self.translator.join([prepared], results)
        return translations


class ServedModels:
    """All directions of a server's models.

    The first model of a direction answers the requests of the API. On the page, the user chooses the model.
    """

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = models
        self.by_languages = {(model.source, model.target): model for model in reversed(models)}
        """Maps the codes of the source and target language to the first model of this direction."""
        self.codes = sorted({code for pair in self.by_languages for code in pair})
        """The codes of the served languages, sorted."""
        self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
        self._code_by_label = {
            label: self.code(label) or closest_match(label, self.codes, MAX_LANGUAGE_DISTANCE)[0].replace("und", label)
            for label in map(str, self._identifier.labels)
        }

    def code(self, language: str) -> str:
        """Return the served code of a language: ``en`` for en, eng or en_US; "" if the language is not served."""
        standard = served_code(language)
        if standard in self.codes:
            return standard
        return next((code for code in self.codes if base_language(code) == base_language(language)), "")

    def detect(self, text: str, target: str = "") -> list[tuple[str, float]]:
        """Detect the language of a text among all languages that the identifier knows.

        Args:
            text: The text.
            target: The served code of the language to translate into; "" for any.

        Returns:
            The code and the probability in percent of each candidate, the most probable first. They include all served
            languages. If none is more probable than MIN_UNSERVED_PROBABILITY, the languages that can be translated into
            ``target`` come first. A text without letters has a single candidate, with 0 percent.
        """
        preferred = [model.source for model in self.models if target in ("", model.target)]
        preferred += [target] if target else self.codes
        text = re.sub(r"<[^<>]*+>", " ", text[:MAX_DETECTED_CHARACTERS])
        if not any(map(str.isalpha, text)):
            return [(preferred[0], 0.0)]
        probabilities = Counter[str]()
        for label, probability in self._identifier.rank(replace_surrogates(text)):
            if label != NO_LANGUAGE:
                probabilities[self._code_by_label[label]] += probability
        probabilities.update(dict.fromkeys(self.codes, 0))
        candidates = probabilities.most_common()
        if candidates[0][1] <= MIN_UNSERVED_PROBABILITY:
            candidates.sort(key=lambda candidate: candidate[0] not in preferred)
        return [(code, round(100 * probability)) for code, probability in candidates]


def open_served_models(config: ServingConfig) -> ServedModels:
    """Load the models of the config's run folders, and start their threads.

    The name of a model is that of its folder, or the path if two folders have the same name. If a model has several
    directions, the languages are added to the names.

    Raises:
        InputError: A folder cannot be used, or a glossary is set for a model of several directions. The message names
            the folder.
    """
    names = [Path(folder).resolve().name for folder in config.runs]
    loaded = [
        Translator.load_all(folder, config.decoding, config.device, config.precision, config.text)
        for folder in config.runs
    ]
    served: list[ServedModel] = []
    for name, folder, translators in zip(names, config.runs, loaded, strict=True):
        if config.text.terms and len(translators) > 1:
            raise InputError(
                f"text.terms={config.text.terms} is for one direction, and {folder} has {len(translators)}: send the "
                "field glossary with requests, or set text.patterns for text that stays untranslated"
            )
        threads = torch.get_num_threads() if translators[0].device.type == "cpu" else 1
        batcher = Batcher(config.waiting, config.tokens, threads, lambda: torch.set_num_threads(1))
        label = name if names.count(name) == 1 else folder
        for translator in translators:
            suffix = f" {translator.layer.direction.key}" if len(translators) > 1 else ""
            served.append(ServedModel(f"{label}{suffix}", translator, batcher))
    return ServedModels(served)


def served_code(language: str) -> str:
    """Return the BCP 47 code of a language: en for eng, zh-CN for zh_CN. An invalid code is returned unchanged."""
    try:
        return standardize_tag(language, macro=True)
    except LanguageTagError:
        return language


@cache
def language_name(code: str) -> str:
    """Return the English name of a language: ``Chinese (CN)`` for zh-CN. An unknown code is returned unchanged."""
    language, _, rest = code.partition("-")
    for entry in parse_registry():
        if entry["Type"] == "language" and entry["Subtag"] == language:
            name = re.sub(r" \(.*\)", "", entry["Description"][0])  # Modern Greek (1453-)
            return f"{name} ({rest})" if rest else name
    return code


def describe_language(code: str) -> dict[str, str]:
    """Return the JSON object for a language, with its ``code`` and its English ``name``."""
    return {"code": code, "name": language_name(code)}


def has_markup(text: str) -> bool:
    """Return whether a text has HTML tags or entities. Some clients also declare plain text as HTML."""
    return coded_markup(text, "html") != CodedText(text)


def split_html(text: str) -> list[CodedText]:
    """Divide HTML at block elements and blank lines: texts to translate at odd indices, the rest at even ones."""
    blanks = [Mark(*match.span(), ends_text=True) for match in BLANK_LINES.finditer(text)]
    return coded_markup(text, "html", blanks).separate_texts()


def restore_characters(translation: str, source: str) -> str:
    """Replace entities of translated HTML by their characters, if the source lacks them and HTML does not need them."""

    def restore(match: re.Match[str]) -> str:
        entity, name = match.groups()
        text = html.unescape(entity) + name
        return match[0] if entity in source or html.unescape(text) != text else text

    return _REMOVABLE_ENTITY.sub(restore, translation)


def split_lines(text: str) -> list[CodedText]:
    """Divide a text into its lines, at odd indices, and the whitespace between and around them, at even indices.

    The whitespace is represented by codes. Lines do not begin or end with whitespace.
    """
    is_line = text == text.strip() and len(text.splitlines()) < 2  # avoids the slow pattern for a single line
    spaces = () if is_line else BETWEEN_LINES.finditer(text)
    return coded_text(text, [Mark(*space.span(), ends_text=True) for space in spaces]).separate_texts()


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates, which JSON can express but UTF-8 cannot encode, by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
