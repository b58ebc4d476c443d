"""What is wrong with a pair that a model has made, so that nothing should be learnt from it."""

from mt.core.files import UNDECODABLE
from mt.core.language import writes_spaces
from mt.data.sentence_key import normal_form

LONGEST_LOOP = 6
"""The most words (characters of languages without spaces) that are looked for again behind themselves."""
FEWEST_REPEATS = 4
"""A translation that says the same thing so often in a row, and more often than its line does, is a loop."""


def fault(line: str, translation: str, languages: tuple[str, str]) -> str | None:
    """Return why a pair is left out, or None if nothing is found.

    Args:
        line: What was translated.
        translation: What the model made of it.
        languages: The languages of the line and of the translation.
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
    times = repeats(translation, languages[1])
    if times >= FEWEST_REPEATS and times > repeats(line, languages[0]):
        return "loop"
    return None


def repeats(text: str, language: str) -> int:
    """Return how often in a row a text says the same, which is of up to LONGEST_LOOP words: 2 for "on and on and"."""
    units = text.split() if writes_spaces(language) else list(text)
    most = 1
    for length in range(1, LONGEST_LOOP + 1):
        equal = 0
        for place in range(length, len(units)):
            equal = equal + 1 if units[place] == units[place - length] else 0
            most = max(most, equal // length + 1)
    return most
