"""Answers requests like Apertium APy (https://wiki.apertium.org/wiki/Apertium-apy).

Only the part of APy's API that clients such as OmegaT and Weblate use is here: ``/translate`` and ``/listPairs``.
"""

from dataclasses import dataclass
from http import HTTPStatus

from langcodes import Language
from starlette.exceptions import HTTPException

from mt.config import ServingConfig
from mt.serving.models import ServedModels
from mt.serving.requests import Values

ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}
"""The entities in translated HTML that become characters again if the request does not use them."""


def as_error(status: int, message: str) -> dict[str, object]:
    """Return the JSON body of an error response in APy's format."""
    return {"status": "error", "code": status, "message": HTTPStatus(status).phrase, "explanation": message}


@dataclass(frozen=True)
class Apertium:
    """The request handlers of APy's API. Each takes the fields of a request and returns the JSON body of the response.

    ``application`` makes the only instance.
    """

    served: ServedModels
    config: ServingConfig

    async def translate(self, values: Values) -> object:
        """Translate the text ``q`` in the direction ``langpair``, such as ``eng|spa``.

        Raises:
            HTTPException: 400: A field is missing or invalid, or the text is too long.
        """
        for name in ("langpair", "q"):
            if name not in values:
                raise HTTPException(400, f"Missing argument {name}: add it to the request")
        text = values["q"]
        source, divider, target = values["langpair"].partition("|")
        if not (source and divider and target) or "|" in target:
            raise HTTPException(400, "That pair is invalid, use e.g. eng|spa")
        model = self.served.by_languages.get((self.served.code(source), self.served.code(target)))
        if model is None:
            raise HTTPException(400, "That pair is not installed: GET /listPairs lists those that are")
        if len(text) > self.config.characters:
            raise HTTPException(
                400, f"Request ({len(text)}) exceeds text limit ({self.config.characters}): divide the text"
            )
        # Like Apertium, a text is HTML by default, but its characters do not become entities (html-noent).
        html = values.get("format", "html") == "html" and "<" in text
        ((translation,),) = await model.translations([text], html)
        if html:
            for entity, character in ENTITIES.items():
                if entity not in text:
                    translation = translation.replace(entity, character)
        return _answer({"translatedText": translation})

    async def pairs(self, values: Values) -> object:
        """List the directions of all served models, with three-letter language codes."""
        pairs = dict.fromkeys((_with_three_letters(model.source), _with_three_letters(model.target))
                              for model in self.served.models)  # fmt: skip
        return _answer([{"sourceLanguage": source, "targetLanguage": target} for source, target in pairs])


def _answer(data: object) -> dict[str, object]:
    """Return the JSON body of a successful response in APy's format."""
    return {"responseData": data, "responseDetails": None, "responseStatus": 200}


def _with_three_letters(code: str) -> str:
    """Return Apertium's three-letter code of a language: ``eng`` for ``en``, ``zho_CN`` for ``zh-CN``.

    A code without such a form is returned as it is.
    """
    try:
        language, _, rest = code.partition("-")
        return "_".join(filter(None, (Language.get(language).to_alpha3(), rest)))
    except LookupError:
        return code
