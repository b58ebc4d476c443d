"""The part of Apertium APy's API (https://wiki.apertium.org/wiki/Apertium-apy) that other programs use: OmegaT has it
built in, and Weblate."""

from dataclasses import dataclass
from http import HTTPStatus

from langcodes import Language
from starlette.exceptions import HTTPException

from mt.config import ServingConfig
from mt.serving.models import ServedModels
from mt.serving.requests import Values

ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


def as_error(status: int, message: str) -> dict[str, object]:
    return {"status": "error", "code": status, "message": HTTPStatus(status).phrase, "explanation": message}


@dataclass(frozen=True)
class Apertium:
    """Answers the requests of Apertium APy's clients."""

    served: ServedModels
    config: ServingConfig

    async def translate(self, values: Values) -> object:
        for name in ("langpair", "q"):
            if name not in values:
                raise HTTPException(400, f"Missing argument {name}")
        text = values["q"]
        source, divider, target = values["langpair"].partition("|")
        if not (source and divider and target) or "|" in target:
            raise HTTPException(400, "That pair is invalid, use e.g. eng|spa")
        model = self.served.by_languages.get((self.served.code(source), self.served.code(target)))
        if model is None:
            raise HTTPException(400, "That pair is not installed")
        if len(text) > self.config.characters:
            raise HTTPException(400, f"Request ({len(text)}) exceeds text limit ({self.config.characters})")
        # Apertium takes a text for HTML unless told otherwise, but leaves characters as they are (html-noent).
        html = values.get("format", "html") == "html" and "<" in text
        ((translation,),) = await model.translations([text], html)
        if html:
            for entity, character in ENTITIES.items():
                if entity not in text:
                    translation = translation.replace(entity, character)
        return _answer({"translatedText": translation})

    async def pairs(self, values: Values) -> object:
        pairs = dict.fromkeys((_with_three_letters(model.source), _with_three_letters(model.target))
                              for model in self.served.models)  # fmt: skip
        return _answer([{"sourceLanguage": source, "targetLanguage": target} for source, target in pairs])


def _answer(data: object) -> dict[str, object]:
    return {"responseData": data, "responseDetails": None, "responseStatus": 200}


def _with_three_letters(code: str) -> str:
    """Return the code that Apertium uses, eng for en, or the code itself for a language that has none."""
    try:
        language, _, rest = code.partition("-")
        return "_".join(filter(None, (Language.get(language).to_alpha3(), rest)))
    except LookupError:
        return code
