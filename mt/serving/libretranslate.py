"""LibreTranslate's API (https://docs.libretranslate.com/api/), with its answers, messages and status codes."""

from dataclasses import dataclass
from typing import Any

from starlette.exceptions import HTTPException

from mt.config import ServingConfig
from mt.serving.models import ServedModel, ServedModels, describe_language, language_name
from mt.serving.requests import Values


def as_error(status: int, message: str) -> dict[str, str]:
    return {"error": message}


@dataclass(frozen=True)
class LibreTranslate:
    """Answers the requests of LibreTranslate's clients."""

    served: ServedModels
    config: ServingConfig

    async def translate(self, values: Values) -> object:
        texts, is_list = self._texts(values)
        source, target = _needed(values, "source"), _needed(values, "target")
        alternatives = _number(values.get("alternatives") or 0)
        if (text_format := values.get("format") or "text") not in ("text", "html"):
            raise HTTPException(400, f"{text_format} format is not supported")
        answer: dict[str, list[Any]] = {}
        if source == "auto":
            # The texts of one request are in one language, and together they tell it more surely.
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
        texts, _ = self._texts(values)
        languages = self.served.detect(" ".join(texts))
        return [{"confidence": confidence, "language": language} for language, confidence in languages[:3]]

    async def languages(self, values: Values) -> object:
        return [
            {
                **describe_language(code),
                "targets": sorted({code} | {target for source, target in self.served.by_languages if source == code}),
            }
            for code in self.served.codes
        ]

    async def health(self, values: Values) -> object:
        return {"status": "ok"}

    async def settings(self, values: Values) -> object:
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
        """Return the texts to translate and whether they came as a list."""
        asked = values.get("q")
        if not asked:
            raise HTTPException(400, "Invalid request: missing q parameter")
        texts = asked if isinstance(asked, list) else [asked]
        if not all(isinstance(text, str) for text in texts):
            raise HTTPException(400, "Invalid request: q parameter is not a text or a list of texts")
        limits = [(len(texts), self.config.texts), *((len(text), self.config.characters) for text in texts)]
        for size, limit in limits:
            if size > limit:
                raise HTTPException(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")
        return texts, isinstance(asked, list)

    def _model(self, source: str, target: str) -> ServedModel | None:
        """Return the model between two languages; None if they are the same."""
        codes = [self._code(source), self._code(target)]
        model = self.served.by_languages.get((codes[0], codes[1]))
        if model is None and codes[0] != codes[1]:
            source, target = (f"{language_name(code)} ({code})" for code in codes)
            raise HTTPException(400, f"{target} is not available as a target language from {source}")
        return model

    def _code(self, language: str) -> str:
        code = self.served.code(language)
        if not code:
            raise HTTPException(400, f"{language} is not supported")
        return code


def _needed(values: Values, name: str) -> str:
    value = values.get(name)
    if not value:
        raise HTTPException(400, f"Invalid request: missing {name} parameter")
    if not isinstance(value, str):
        raise HTTPException(400, f"Invalid request: {name} parameter is not a text")
    return value


def _number(value: object) -> int:
    try:
        return max(0, int(value))  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        raise HTTPException(400, "Invalid request: alternatives parameter is not a number") from None
