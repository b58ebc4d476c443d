"""LibreTranslate's API (https://docs.libretranslate.com/api/), with its answers, messages and status codes."""

from collections.abc import Awaitable, Callable
from typing import Any

from starlette.exceptions import HTTPException

from mt.config import ServingConfig
from mt.serving.models import ServedModel, ServedModels, language_name
from mt.serving.requests import Values


def as_error(status: int, message: str) -> dict[str, str]:
    return {"error": message}


class LibreTranslate:
    """Answers the requests of LibreTranslate's clients."""

    def __init__(self, served: ServedModels, config: ServingConfig) -> None:
        self._served = served
        self._config = config

    def routes(self) -> dict[tuple[str, str], Callable[[Values], Awaitable[object]]]:
        """Return the handler of each method and path."""
        return {
            ("POST", "/translate"): self.translate,
            ("POST", "/detect"): self.detect,
            ("GET", "/languages"): self.languages,
            ("GET", "/health"): self.health,
            ("GET", "/frontend/settings"): self.settings,
        }

    async def translate(self, values: Values) -> object:
        texts, is_list = self._texts(values)
        source, target = _needed(values, "source"), _needed(values, "target")
        alternatives = _number(values.get("alternatives") or 0)
        if (text_format := values.get("format") or "text") not in ("text", "html"):
            raise HTTPException(400, f"{text_format} format is not supported")
        answer: dict[str, Any] = {}
        if source == "auto":
            # The texts of one request are in one language, and together they tell it more surely.
            language, confidence = self._served.detect(" ".join(texts))[0]
            detected = {"language": language, "confidence": confidence}
            answer["detectedLanguage"] = [detected] * len(texts) if is_list else detected
            source = language
        model = self._model(source, target)
        if model is None:
            translations = [[text] for text in texts]
        else:
            translations = await model.translations(texts, text_format == "html", alternatives)
        best = [ranked[0] for ranked in translations]
        answer["translatedText"] = best if is_list else best[0]
        if alternatives:
            others = [ranked[1:] for ranked in translations]
            answer["alternatives"] = others if is_list else others[0]
        return answer

    async def detect(self, values: Values) -> object:
        texts, _ = self._texts(values)
        languages = self._served.detect(" ".join(texts))
        return [{"confidence": confidence, "language": language} for language, confidence in languages[:3]]

    async def languages(self, values: Values) -> object:
        return [
            {"code": code, "name": language_name(code), "targets": sorted({code, *self._served.targets(code)})}
            for code in self._served.codes
        ]

    async def health(self, values: Values) -> object:
        return {"status": "ok"}

    async def settings(self, values: Values) -> object:
        target = self._served.models[0].target
        return {
            "charLimit": self._config.characters,
            "frontendTimeout": 500,
            "apiKeys": False,
            "keyRequired": False,
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "language": {
                "source": {"code": "auto", "name": "Auto Detect"},
                "target": {"code": target, "name": language_name(target)},
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
        limits = [(len(texts), self._config.texts), *((len(text), self._config.characters) for text in texts)]
        for size, limit in limits:
            if size > limit:
                raise HTTPException(400, f"Invalid request: request ({size}) exceeds text limit ({limit})")
        return texts, isinstance(asked, list)

    def _model(self, source: str, target: str) -> ServedModel | None:
        """Return the model between two languages; None if they are the same."""
        codes = []
        for language in (source, target):
            code = self._served.code(language)
            if code is None:
                raise HTTPException(400, f"{language} is not supported")
            codes.append(code)
        model = self._served.between(*codes)
        if model is None and codes[0] != codes[1]:
            source, target = (f"{language_name(code)} ({code})" for code in codes)
            raise HTTPException(400, f"{target} is not available as a target language from {source}")
        return model


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
