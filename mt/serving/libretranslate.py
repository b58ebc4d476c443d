"""Answers requests like LibreTranslate (https://docs.libretranslate.com/api/).

JSON, status codes and messages are the same, but some messages also say what to do next.
"""

from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException

from mt.config import ServingConfig
from mt.serving.models import ServedModel, ServedModels, describe_language, language_name
from mt.serving.requests import Values


def as_error(status: int, message: str) -> dict[str, str]:
    """Return the JSON body of an error response in LibreTranslate's format."""
    return {"error": message}


@dataclass(frozen=True)
class LibreTranslate:
    """The request handlers of LibreTranslate's API. Each takes the fields of a request and returns the JSON body of the
    response, or raises HTTPException with status 400.

    ``application`` makes the only instance.
    """

    served: ServedModels
    config: ServingConfig

    async def translate(self, values: Values) -> object:
        """Translate ``q``, a text or a list of texts, from ``source`` (a code or ``auto``) to ``target``."""
        texts, is_list = self._texts(values)
        source, target = _needed(values, "source"), _needed(values, "target")
        alternatives = _number(values.get("alternatives") or 0)
        if (text_format := values.get("format") or "text") not in ("text", "html"):
            raise HTTPException(400, f"{text_format} format is not supported: set it to text or html")
        answer: dict[str, list[Any]] = {}
        if source == "auto":
            # All texts of a request have the same language, and more text makes its detection surer.
            language, confidence = self.served.detect(" ".join(texts))[0]
            answer["detectedLanguage"] = [{"language": language, "confidence": confidence}] * len(texts)
            source = language
        model = self._model(source, target)
        if model is None:
            translations = [[text] for text in texts]
        else:
            translations = await model.translations(texts, text_format == "html", alternatives)
        answer["translatedText"] = [ranked[0] for ranked in translations]
        if alternatives:
            answer["alternatives"] = [ranked[1:] for ranked in translations]
        return answer if is_list else {key: of_texts[0] for key, of_texts in answer.items()}

    async def detect(self, values: Values) -> object:
        """Detect the language of ``q``: up to three candidates, the most probable first, with confidence in percent."""
        texts, _ = self._texts(values)
        languages = self.served.detect(" ".join(texts))
        return [{"confidence": confidence, "language": language} for language, confidence in languages[:3]]

    async def languages(self, values: Values) -> object:
        """List the served languages, each with the languages that it can be translated into."""
        return [
            {
                **describe_language(code),
                "targets": sorted({code} | {target for source, target in self.served.by_languages if source == code}),
            }
            for code in self.served.codes
        ]

    async def health(self, values: Values) -> object:
        """Report that the server is running."""
        return {"status": "ok"}

    async def settings(self, values: Values) -> object:
        """Return the settings that LibreTranslate's own web page asks for. Clients read the text limit from them."""
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

    def _texts(self, values: Values) -> tuple[list[str], bool]:
        """Return the texts of the field ``q``, and whether it is a list rather than a single text."""
        asked = values.get("q")
        if not asked:
            raise HTTPException(400, "Invalid request: missing q parameter")
        texts = asked if isinstance(asked, list) else [asked]
        if not all(isinstance(text, str) for text in texts):
            raise HTTPException(400, "Invalid request: q parameter is not a text or a list of texts")
        limits = [(len(texts), self.config.texts, "send fewer texts")]
        limits += [(len(text), self.config.characters, "divide the text") for text in texts]
        for size, limit, advice in limits:
            if size > limit:
                raise HTTPException(400, f"Invalid request: request ({size}) exceeds text limit ({limit}): {advice}")
        return texts, isinstance(asked, list)

    def _model(self, source: str, target: str) -> ServedModel | None:
        """Return the model from ``source`` to ``target``; None if both are the same language, which needs no model.

        Raises:
            HTTPException: 400: A language is not served, or no model has this direction.
        """
        codes = [self._code(source), self._code(target)]
        model = self.served.by_languages.get((codes[0], codes[1]))
        if model is None and codes[0] != codes[1]:
            source, target = (f"{language_name(code)} ({code})" for code in codes)
            raise HTTPException(
                400, f"{target} is not available as a target language from {source}: GET /languages lists all targets"
            )
        return model

    def _code(self, language: str) -> str:
        """Return the served code of a language. Raise HTTPException 400 if it is not served."""
        code = self.served.code(language)
        if not code:
            raise HTTPException(400, f"{language} is not supported: GET /languages lists all languages")
        return code


def _needed(values: Values, name: str) -> str:
    """Return a field that must be a non-empty text. Raise HTTPException 400 otherwise."""
    value = values.get(name)
    if not value:
        raise HTTPException(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise HTTPException(400, f"Invalid request: {name} parameter is not a text")
    return value


def _number(value: object) -> int:
    """Return the field ``alternatives`` as an integer of at least 0. Raise HTTPException 400 if it is no number."""
    try:
        return max(0, int(value))  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise HTTPException(400, "Invalid request: alternatives parameter is not a number") from None
