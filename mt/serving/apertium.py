"""Answers requests like Apertium APy (https://wiki.apertium.org/wiki/Apertium-apy).

Only the part of APy's API that clients use is here: ``/translate``, ``/list``, ``/listPairs`` and ``/identifyLang``.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from langcodes import Language
from starlette.exceptions import HTTPException
from starlette.responses import Response

from mt.config import ServingConfig
from mt.serving.models import ServedModels
from mt.serving.requests import Values, json_response

PATHS = ("/list", "/listPairs", "/identifyLang")
"""The paths that belong to this API alone. ``/translate`` belongs to LibreTranslate's, too."""
UNAVAILABLE_MODES = (
    "analysers",
    "analyzers",
    "disambiguators",
    "generators",
    "guessers",
    "spellers",
    "taggers",
)
_CALLBACK = re.compile(r"[\w$.]{1,100}", re.ASCII)


def is_apertium(method: str, path: str, values: Values) -> bool:
    """Return whether a request with these fields is one to this API."""
    return path in PATHS or (path == "/translate" and (method == "GET" or "langpair" in values))


def as_error(status: int, message: str) -> dict[str, object]:
    """Return the JSON body of an error response in APy's format."""
    return {"status": "error", "code": status, "message": HTTPStatus(status).phrase, "explanation": message}


def response(values: Values, content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a value as JSON, or as the argument of a function call in JavaScript (JSONP) if ``callback`` names one."""
    callback, json = values.get("callback"), json_response(content, status, headers)
    if not isinstance(callback, str) or not _CALLBACK.fullmatch(callback):
        return json
    # In front of the name, so that a response that starts with chosen characters is no other kind of file.
    script = b"/**/%b(%b)" % (callback.encode(), bytes(json.body))
    return Response(script, status, headers, media_type="application/javascript")


@dataclass(frozen=True)
class Apertium:
    """The request handlers of APy's API. Each takes the fields of a request and returns the response.

    ``application`` makes the only instance.
    """

    served: ServedModels
    config: ServingConfig

    async def translate(self, values: Values) -> Response:
        """Translate the text ``q`` in the direction ``langpair``, such as ``eng|spa``.

        Raises:
            HTTPException: 400: A field is missing or invalid, or the text is too long.
        """
        langpair, text = (_argument(values, name) for name in ("langpair", "q"))
        source, divider, target = langpair.partition("|")
        if not (source and divider and target) or "|" in target:
            raise HTTPException(400, "That pair is invalid, use e.g. eng|spa")
        model = self.served.by_languages.get((self.served.code(source), self.served.code(target)))
        if model is None:
            raise HTTPException(400, "That pair is not installed: GET /listPairs lists those that are")
        if len(text) > self.config.characters:
            raise HTTPException(
                400, f"Request ({len(text)}) exceeds text limit ({self.config.characters}): divide the text"
            )
        text_format = values.get("format") or values.get("deformat", "html")
        ((translation,),) = await model.translations([text], text_format == "html")
        return _answer(values, {"translatedText": translation.text})

    async def modes(self, values: Values) -> Response:
        """List the directions of all served models, with three-letter language codes. There are no other modes.

        Raises:
            HTTPException: 400: ``q`` is no kind of mode.
        """
        kind = values.get("q", "pairs")
        if kind in UNAVAILABLE_MODES:
            return response(values, {})
        if kind != "pairs":
            raise HTTPException(400, f"Expecting q argument to be pairs or one of {', '.join(UNAVAILABLE_MODES)}")
        pairs = dict.fromkeys((_with_three_letters(model.source), _with_three_letters(model.target))
                              for model in self.served.models)  # fmt: skip
        return _answer(values, [{"sourceLanguage": source, "targetLanguage": target} for source, target in pairs])

    async def identify(self, values: Values) -> Response:
        """Return the probability of each language that the text ``q`` may have, by three-letter codes."""
        text = _argument(values, "q")
        if not text:
            raise HTTPException(400, "Missing argument q: add a text to the request")
        languages = self.served.detect(text)
        return response(values, {_with_three_letters(code): percent / 100 for code, percent in languages if percent})


def _argument(values: Values, name: str) -> str:
    """Return a field of a request. Raise HTTPException 400 if it is missing or not a single text."""
    value = values.get(name)
    if isinstance(value, list):
        raise HTTPException(400, f"Argument {name} is given {len(value)} times: send one request for each")
    if not isinstance(value, str):
        raise HTTPException(400, f"Missing argument {name}: add it to the request")
    return value


def _answer(values: Values, data: object) -> Response:
    """Return a successful response in APy's format."""
    return response(values, {"responseData": data, "responseDetails": None, "responseStatus": 200})


def _with_three_letters(code: str) -> str:
    """Return Apertium's three-letter code of a language: ``eng`` for ``en``, ``zho_CN`` for ``zh-CN``.

    A code without such a form is returned as it is.
    """
    try:
        language, _, rest = code.partition("-")
        return "_".join(filter(None, (Language.get(language).to_alpha3(), rest)))
    except LookupError:
        return code
