"""Answers the requests of LibreTranslate's API (https://docs.libretranslate.com/api/), and of the web page at ``/``,
where people try the models.

JSON, status codes and messages are those of LibreTranslate. Some messages also say how to correct the request.
"""

from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException

from mt.config import ServingConfig
from mt.core.errors import InputError
from mt.serving.models import (
    ServedModel,
    ServedModels,
    TranslatedText,
    describe_language,
    language_name,
    replace_surrogates,
    split_lines,
)
from mt.serving.requests import Fields, requested_terms
from mt.text.line import Line

API_VERSION = "1.9"
"""The version of LibreTranslate whose API is implemented."""


@dataclass(frozen=True)
class LibreTranslate:
    """The request handlers of LibreTranslate's API.

    Each takes the fields of a request and returns the JSON body of the response, or raises HTTPException or InputError.
    """

    served: ServedModels
    config: ServingConfig

    async def translate(self, values: Fields) -> object:
        """Translate ``q``, a text or a list of texts, from ``source`` (a code or ``auto``) to ``target``.

        The fields ``glossary`` and ``confidence`` are additions to LibreTranslate's API.
        """
        texts, is_list = self._texts(values)
        source, target = _required_text(values, "source"), _required_text(values, "target")
        alternatives = _parse_number(values.get("alternatives") or 0)
        if (text_format := values.get("format") or "text") not in ("text", "html"):
            raise HTTPException(400, f"{text_format} format is not supported: set it to text or html")
        confident = _parse_flag(values.get("confidence"))
        answer: dict[str, list[Any]] = {}
        if source == "auto":
            # All texts of a request have the same language, and detection is more reliable for more text.
            source, confidence = self.served.detect(" ".join(texts), self.served.code(target))[0]
            if source not in self.served.codes:
                raise HTTPException(
                    400,
                    f"{language_name(source)} ({source}), detected with {confidence} %, is not supported: "
                    "GET /languages lists all languages; set source to one of them if the detection is wrong",
                )
            answer["detectedLanguage"] = [{"language": source, "confidence": confidence}] * len(texts)
        model = self._model(source, target)
        if model is None:
            translations = [TranslatedText([text]) for text in texts]
        else:
            is_html = text_format == "html"
            asked = Line(
                terms=requested_terms(values, model, self.config),
                n_best=1 if is_html else 1 + alternatives,  # HTML has no alternatives
                confident=confident,
            )
            translations = await model.translations(texts, is_html, asked)
        answer["translatedText"] = [translation.texts[0] for translation in translations]
        if alternatives:
            answer["alternatives"] = [translation.texts[1:] for translation in translations]
        if confident:
            answer["confidence"] = [translation.confidence for translation in translations]
        return answer if is_list else {key: results[0] for key, results in answer.items()}

    async def detect(self, values: Fields) -> object:
        """Detect the language of ``q``: up to three candidates, with confidence in percent.

        The candidates need not be served languages. Except for the first one, they have a confidence above 0.
        """
        texts, _ = self._texts(values)
        first, *others = self.served.detect(" ".join(texts))[:3]
        candidates = [first, *(candidate for candidate in others if candidate[1] > 0)]
        return [{"confidence": confidence, "language": language} for language, confidence in candidates]

    async def languages(self, values: Fields) -> object:
        """List the served languages, each with the languages that it can be translated into."""
        return [
            {
                **describe_language(code),
                "targets": sorted({code} | {target for source, target in self.served.by_languages if source == code}),
            }
            for code in self.served.codes
        ]

    async def health(self, values: Fields) -> object:
        """Report that the server is running."""
        return {"status": "ok"}

    async def settings(self, values: Fields) -> object:
        """Return the settings of LibreTranslate's web page. Clients read the maximum length of a text from them."""
        return {
            "charLimit": self.config.characters,
            "frontendTimeout": 500,
            "apiKeys": False,
            "keyRequired": False,
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "language": {
                "source": {"code": "auto", "name": "Auto Detect"},
                "target": describe_language(self.served.models[0].target),
            },
        }

    async def spec(self, values: Fields) -> object:
        """Return a description of the server in Swagger's format. Dialect recognizes a server by its title."""
        methods = {
            "/translate": "post",
            "/detect": "post",
            "/languages": "get",
            "/health": "get",
            "/frontend/settings": "get",
        }
        ok = {"responses": {"200": {"description": "OK"}}}
        return {
            "swagger": "2.0",
            "info": {"title": "LibreTranslate", "version": API_VERSION},
            "basePath": "/",
            "definitions": {},
            "paths": {path: {method: ok} for path, method in methods.items()},
        }

    async def suggest(self, values: Fields) -> object:
        """Refuse a suggested translation."""
        raise HTTPException(403, "This server does not accept suggestions: keep it for training data")

    async def translate_file(self, values: Fields) -> object:
        """Refuse a document."""
        raise HTTPException(403, "This server does not translate files: run translate.py input=FILE output=FILE")

    def _texts(self, values: Fields) -> tuple[list[str], bool]:
        """Return the texts of the field ``q``, and whether it is a list instead of a single text.

        Raises:
            InputError: The field is missing, has another type or exceeds a limit.
        """
        requested = values.get("q")
        if not requested:
            raise InputError("missing q parameter")
        texts = requested if isinstance(requested, list) else [requested]
        if not all(isinstance(text, str) for text in texts):
            raise InputError("q parameter is not a text or a list of texts")
        limits = [(len(texts), self.config.texts, "send fewer texts")]
        limits += [(len(text), self.config.characters, "divide the text") for text in texts]
        for size, limit, hint in limits:
            if size > limit:
                raise InputError(f"request ({size}) exceeds text limit ({limit}): {hint}")
        return texts, isinstance(requested, list)

    def _model(self, source: str, target: str) -> ServedModel | None:
        """Return the model from ``source`` to ``target``. None if both are the same language, which needs no model.

        Raises:
            HTTPException: 400: A language is not served, or no model has this direction.
        """
        codes = self.served.code(source), self.served.code(target)
        for language, code in zip((source, target), codes, strict=True):
            if not code:
                raise HTTPException(400, f"{language} is not supported: GET /languages lists all languages")
        model = self.served.by_languages.get(codes)
        if model is None and codes[0] != codes[1]:
            source, target = (f"{language_name(code)} ({code})" for code in codes)
            raise HTTPException(
                400, f"{target} is not available as a target language from {source}: GET /languages lists all targets"
            )
        return model


def _required_text(values: Fields, name: str) -> str:
    """Return a field that must be a non-empty text. Raise InputError if it is not."""
    value = values.get(name)
    if not value:
        raise InputError(f"missing {name} parameter")
    if not isinstance(value, str):
        raise InputError(f"{name} parameter is not a text")
    return value


def _parse_flag(value: object) -> bool:
    """Parse the field ``confidence`` of JSON or of a form: true, false or empty. Raise InputError for other values."""
    text = str(value or False).lower()
    if text not in ("true", "false"):
        raise InputError("confidence parameter is not true or false")
    return text == "true"


def _parse_number(value: object) -> int:
    """Parse the field ``alternatives``. A negative number becomes 0. Raise InputError if it is not a number."""
    try:
        return max(0, int(value))  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise InputError("alternatives parameter is not a number") from None


@dataclass(frozen=True)
class Page:
    """The request handlers of the page.

    Each takes the fields of a request and returns the JSON body of the response, or raises HTTPException or InputError.
    """

    served: ServedModels
    config: ServingConfig

    async def models(self, values: Fields) -> object:
        """List all models with their languages."""
        return [
            {
                "name": model.name,
                "source": describe_language(model.source),
                "target": describe_language(model.target),
            }
            for model in self.served.models
        ]

    async def translate(self, values: Fields) -> object:
        """Translate each non-blank line of the text ``q`` with the model ``model`` and the terms of ``glossary``.

        Returns:
            A list of {source, confidence, translations}. Each translation has a text, a score and a word alignment, the
            best one first. Several can have the same text. The confidence is that of the first one; null if the model
            has none.
        """
        model = self._model(values)
        asked = Line(
            is_plain=True,
            terms=requested_terms(values, model, self.config),
            n_best=model.translator.config.beam_size,
            aligned=True,
            confident=not isinstance(model.translator.confidence.fitted, str),
        )
        lines = [asked._replace(text=line) for line in split_lines(self._text(values, "q"))[1::2]]
        translations = await model.hypotheses(lines)
        return [
            {
                "source": line.text.text,
                "confidence": ranked[0].confidence,
                "translations": [
                    {"text": scored.text, "score": scored.score, "alignment": scored.alignment or []}
                    for scored in ranked
                ],
            }
            for line, ranked in zip(lines, translations, strict=True)
        ]

    async def attention(self, values: Fields) -> object:
        """Compute an attention map of the model ``model`` for the line ``source`` and the given ``translation``.

        The field ``map`` names the attention module. The default is the cross-attention of the last layer.

        Returns:
            The names of all maps, the name of this one, the tokens of source and target, and the weights (heads, rows,
            columns). The page derives the labels of the rows and columns.
        """
        attention = await self._model(values).attention(self._text(values, "source"), self._text(values, "translation"))
        names = list(attention.maps)
        requested = values.get("map")
        name = requested if requested in names else [name for name in names if name.endswith("cross_attention")][-1]
        weights = [
            [[round(weight, 3) for weight in row] for row in head] for head in attention.maps[name].weights[0].tolist()
        ]
        return {
            "maps": names,
            "map": name,
            "source": attention.source_tokens,
            "target": attention.target_tokens,
            "weights": weights,
        }

    def _model(self, values: Fields) -> ServedModel:
        """Return the model with the name in the field ``model``. Raise HTTPException 400 if there is none."""
        for model in self.served.models:
            if model.name == values.get("model"):
                return model
        raise HTTPException(400, "There is no such model: reload the page to see the current ones")

    def _text(self, values: Fields, name: str) -> str:
        """Return the text in the field ``name``. Raise InputError or HTTPException if it is missing or too long."""
        text = values.get(name)
        if not isinstance(text, str):
            raise InputError(f"missing {name} parameter")
        if len(text) > self.config.characters:
            raise HTTPException(
                400, f"The text has {len(text)} characters, but may have {self.config.characters} at most: shorten it"
            )
        return replace_surrogates(text)
