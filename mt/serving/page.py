"""Serves the web page at ``/``, where people try the models, and answers its requests. Its files are in ``page/``."""

from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from mt.config import ServingConfig
from mt.core.errors import InputError
from mt.serving.models import ServedModel, ServedModels, cut_into_lines, describe_language, without_surrogates
from mt.serving.requests import Values, requested_terms
from mt.text.line import Line
from mt.translation.results import ScoredText

FOLDER = Path(__file__).with_name("page")
FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
"""Path of a route → file in FOLDER and its media type."""
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""The response headers of the page. They forbid content from elsewhere and inline scripts."""


@dataclass(frozen=True)
class Page:
    """The request handlers of the page. Each takes the fields of a request and returns the JSON body of the response.

    ``application`` makes the only instance.
    """

    served: ServedModels
    config: ServingConfig

    async def models(self, values: Values) -> object:
        """List all models with their languages."""
        return [
            {
                "name": model.name,
                "source": describe_language(model.source),
                "target": describe_language(model.target),
            }
            for model in self.served.models
        ]

    async def translate(self, values: Values) -> object:
        """Translate each non-blank line of the text ``q`` by the model ``model`` and the terms of ``glossary``.

        Returns:
            A list of {source, confidence, translations}, where each translation has its text, score and word alignment.
            The confidence is that of the first one; null if the model has none.
        """
        model = self._model(values)
        asked = Line(
            is_plain=True,
            terms=requested_terms(values, model, self.config),
            n_best=model.translator.config.beam_size,
            aligned=True,
            confident=not isinstance(model.translator.confidence.fitted, str),
        )
        lines = [asked._replace(text=line) for line in cut_into_lines(self._text(values, "q"))[1::2]]
        translations = await model.hypotheses(lines)
        return [
            {"source": line.text.text, "confidence": several[0].confidence, "translations": _distinct(several)}
            for line, several in zip(lines, translations, strict=True)
        ]

    async def attention(self, values: Values) -> object:
        """Compute one attention map of the line ``source`` and the given ``translation``, by the model ``model``.

        The field ``map`` names the attention module. By default it is the cross-attention of the last layer.

        Returns:
            The names of all maps, the name of this one, the tokens of its rows and columns, and its weights (heads,
            rows, columns).
        """
        attention = await self._model(values).attention(self._text(values, "source"), self._text(values, "translation"))
        names = list(attention.maps)
        requested = values.get("map")
        name = requested if requested in names else [name for name in names if name.endswith("cross_attention")][-1]
        columns = attention.source_tokens
        if name.startswith("decoder") and not name.endswith("cross_attention"):
            columns = ["<s>", *attention.target_tokens[:-1]]  # the decoder's input
        rows = attention.source_tokens if name.startswith("encoder") else attention.target_tokens
        weights = [
            [[round(weight, 3) for weight in row] for row in head] for head in attention.maps[name].weights[0].tolist()
        ]
        return {"maps": names, "map": name, "rows": rows, "columns": columns, "weights": weights}

    def _model(self, values: Values) -> ServedModel:
        """Return the model that the field ``model`` names. Raise HTTPException 400 if there is none."""
        for model in self.served.models:
            if model.name == values.get("model"):
                return model
        raise HTTPException(400, "There is no such model: reload the page to see the current ones")

    def _text(self, values: Values, name: str) -> str:
        """Return the text in the field ``name``. Raise HTTPException 400 if it is missing or too long."""
        text = values.get(name)
        if not isinstance(text, str):
            raise InputError(f"missing {name} parameter")
        if len(text) > self.config.characters:
            raise HTTPException(
                400, f"The text has {len(text)} characters, but may have {self.config.characters} at most: shorten it"
            )
        return without_surrogates(text)


def file_routes() -> list[Route]:
    """Return the routes that serve the files of the page."""
    return [
        Route(path, Response((FOLDER / name).read_bytes(), headers=HEADERS, media_type=media_type), methods=["GET"])
        for path, (name, media_type) in FILES.items()
    ]


def _distinct(translations: list[ScoredText]) -> list[dict[str, object]]:
    """Return the JSON of translations, without those that repeat the text of an earlier one."""
    distinct: dict[str, dict[str, object]] = {}
    for translation in translations:
        distinct.setdefault(
            translation.text,
            {"text": translation.text, "score": translation.score, "alignment": translation.alignment or []},
        )
    return list(distinct.values())
