"""Finds machine-translated pairs that are unfit for training."""

from mt.core.files import UNDECODABLE
from mt.core.language import writes_spaces
from mt.data.pairs import normal_form
from mt.translation.constraints import max_repeats

MIN_LOOP_REPEATS = 4
"""A translation that says a phrase so often in a row, and more often than its line does, is a loop."""


def fault(line: str, translation: str, languages: tuple[str, str]) -> str | None:
    """Return the first fault that makes a pair unfit for training, as a phrase; None if there is none.

    Args:
        line: The line that was translated.
        translation: The translation of the line.
        languages: The language of the line and that of the translation.
    """
    if not line.strip():
        return "blank line"
    if UNDECODABLE.search(line):
        return "not UTF-8"
    if not translation.strip():
        return "empty translation"
    if "\ufffd" in translation and "\ufffd" not in line:
        return "broken characters"
    if normal_form(translation) == normal_form(line):
        return "copy of the line"
    times = _repeats(translation, languages[1])
    if times >= MIN_LOOP_REPEATS and times > _repeats(line, languages[0]):
        return "loop"
    return None


def _repeats(text: str, language: str) -> int:
    """Return how often in a row a text says the same words, or characters of languages without spaces."""
    return max_repeats(text.split() if writes_spaces(language) else text)
