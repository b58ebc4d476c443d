"""The glossary of a request: terms with their translations, which come before those of the server's own glossary."""

import json
from itertools import chain

from starlette.exceptions import HTTPException

from mt.config import ServingConfig
from mt.core.errors import InputError
from mt.data.parsers.terms import checked_pairs, term_finder
from mt.serving.models import ServedModel
from mt.serving.requests import Values
from mt.text.placeholders.terms import TermFinder


def requested_terms(values: Values, model: ServedModel, config: ServingConfig) -> TermFinder | None:
    """Return a finder of the terms in the field ``glossary``, a list of pairs of a term and its translation; None
    without any. In a form, the list is JSON.

    Raises:
        HTTPException: 400: The field is no such list or larger than ``texts`` and ``characters`` permit, a pair cannot
            be used, or the model has no placeholders.
    """
    pairs = values.get("glossary")
    try:
        pairs = json.loads(pairs) if isinstance(pairs, str) and pairs else pairs
    except (ValueError, RecursionError):
        raise HTTPException(400, "Invalid request: glossary parameter is no JSON") from None
    if not pairs:
        return None
    try:
        pairs = checked_pairs(pairs)
        characters = sum(map(len, chain.from_iterable(pairs)))
        for size, limit, unit in ((len(pairs), config.texts, "pairs"), (characters, config.characters, "characters")):
            if size > limit:
                raise InputError(f"glossary has {size} {unit}, more than {limit}: send fewer")
        return term_finder(pairs, model.layer)
    except InputError as error:
        raise HTTPException(400, f"Invalid request: {error}") from None
