"""Directions of translation, and the choice among those of a model."""

from collections.abc import Collection
from itertools import product
from typing import NamedTuple

from mt.core.errors import InputError
from mt.core.language import base_language
from mt.core.wording import brief

UNKNOWN_LANGUAGE = "und"


class Direction(NamedTuple):
    """A source and a target language, by the codes that the user gave."""

    source: str
    target: str

    @property
    def key(self) -> str:
        """The name in keys and file names: ``en-fr``."""
        return f"{self.source}-{self.target}"

    @property
    def opposite(self) -> "Direction":
        return Direction(self.target, self.source)

    def __str__(self) -> str:
        return f"{self.source}→{self.target}"


class AskedDirection(NamedTuple):
    """The direction that a user asks a model for."""

    source: str | None = None
    """None: the only source language of directions into the target."""
    target: str | None = None
    """None: the only target language of directions from the source."""
    zero_shot: bool = False
    """Whether the model need not have been trained in this direction, but with its source and its target."""


ANY_DIRECTION = AskedDirection()


def choose_direction(known: Collection[Direction], asked: AskedDirection, model: object) -> Direction:
    """Return the only direction of a model that a user can mean.

    A code means the direction with the same code or, if there is none, with another code of this language.

    Args:
        known: The directions that the model was trained in.
        asked: The direction that the user asks for.
        model: The name of the model, for messages.

    Raises:
        InputError: There are none, or several.
    """
    candidates = list(known)
    if asked.zero_shot:
        sides = (dict.fromkeys(side) for side in zip(*known, strict=True))
        candidates = [direction for direction in map(Direction._make, product(*sides)) if len(set(direction)) > 1]
    for same in (lambda code: code, base_language):
        fitting = [
            direction
            for direction in candidates
            if all(
                code is None or UNKNOWN_LANGUAGE in (own, code) or same(own) == same(code)
                for own, code in zip(direction, asked, strict=False)
            )
        ]
        if len(fitting) == 1:
            return fitting[0]
    shown = brief(f"{model} translates {', '.join(map(str, known))}")
    if fitting:
        raise InputError(f"{shown}: set target_language and, if needed, source_language")
    wanted = Direction(asked.source or "any language", asked.target or "any language")
    raise InputError(
        f"{shown}, and was not trained for {wanted}: set source_language and target_language to one of these, or "
        "zero_shot=true if it knows both languages"
    )
