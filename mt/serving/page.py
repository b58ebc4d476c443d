"""The page at ``/``, on which a person tries the models. All its files are in the folder ``page``."""

from dataclasses import dataclass
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Route

from mt.config import ServingConfig
from mt.serving.models import ServedModel, ServedModels, cut_into_lines, describe_language, without_surrogates
from mt.serving.requests import Values
from mt.translation.results import ScoredText

FOLDER = Path(__file__).with_name("page")
FILES = {
    "/": ("page.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
"""The browser is told to load nothing from elsewhere and to run nothing that is written into the page."""


@dataclass(frozen=True)
class Page:
    """Answers the requests of the page."""

    served: ServedModels
    config: ServingConfig

    async def models(self, values: Values) -> object:
        return [
            {
                "name": model.name,
                "source": describe_language(model.source),
                "target": describe_language(model.target),
            }
            for model in self.served.models
        ]

    async def translate(self, values: Values) -> object:
        """Return the non-blank lines of a text, and all translations of each."""
        lines = [line for line in cut_into_lines(self._text(values, "q"))[::2] if line]
        translations = await self._model(values).hypotheses(lines)
        return [
            {"source": line, "translations": _distinct(several)}
            for line, several in zip(lines, translations, strict=True)
        ]

    async def attention(self, values: Values) -> object:
        """Return the names of all attention maps, and one of them: the weights (heads, rows, columns)."""
        attention = await self._model(values).attention(self._text(values, "source"), self._text(values, "translation"))
        names = list(attention.maps)
        wanted = values.get("map")
        name = wanted if wanted in names else [name for name in names if name.endswith("cross_attention")][-1]
        columns = attention.source_pieces
        if name.startswith("decoder") and not name.endswith("cross_attention"):
            columns = ["<s>", *attention.target_pieces[:-1]]  # the decoder's input
        rows = attention.source_pieces if name.startswith("encoder") else attention.target_pieces
        weights = [
            [[round(weight, 3) for weight in row] for row in head] for head in attention.maps[name].weights[0].tolist()
        ]
        return {"maps": names, "map": name, "rows": rows, "columns": columns, "weights": weights}

    def _model(self, values: Values) -> ServedModel:
        for model in self.served.models:
            if model.name == values.get("model"):
                return model
        raise HTTPException(400, "There is no such model")

    def _text(self, values: Values, name: str) -> str:
        text = values.get(name)
        if not isinstance(text, str):
            raise HTTPException(400, f"Invalid request: missing {name} parameter")
        if len(text) > self.config.characters:
            raise HTTPException(400, f"The text has {len(text)} characters, and may have {self.config.characters}")
        return without_surrogates(text)


def file_routes() -> list[Route]:
    """Return the routes of the page's files."""
    return [
        Route(path, Response((FOLDER / name).read_bytes(), headers=HEADERS, media_type=media_type), methods=["GET"])
        for path, (name, media_type) in FILES.items()
    ]


def _distinct(translations: list[ScoredText]) -> list[dict[str, object]]:
    """Return the first translation with each text."""
    distinct: dict[str, dict[str, object]] = {}
    for each in translations:
        distinct.setdefault(each.text, {"text": each.text, "score": each.score, "alignment": each.alignment or []})
    return list(distinct.values())
