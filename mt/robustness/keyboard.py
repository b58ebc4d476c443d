"""Which keys lie beside each other, for typing mistakes."""

from mt.language import base_language

QWERTY = "qwertyuiop", "asdfghjkl", "zxcvbnm"
QWERTZ = "qwertzuiop", "asdfghjkl", "yxcvbnm"
AZERTY = "azertyuiop", "qsdfghjklm", "wxcvbn"
LAYOUTS = {
    **dict.fromkeys(("fr", "fra", "fre"), AZERTY),
    **dict.fromkeys(
        ("de", "deu", "ger", "cs", "ces", "cze", "sk", "slk", "hu", "hun", "sl", "slv", "hr", "hrv"), QWERTZ
    ),
}
"""The rows of letters on the usual keyboard of a language, from top to bottom. Other languages type on QWERTY."""


def neighbours(letter: str, language: str) -> str:
    """Returns the letters on the keys that touch a letter's key, in its case.

    Each row lies half a key further to the right than the row above it. So a key touches the keys to its left and
    right, two of the row above and two of the row below. Letters that are on no key of their own (as all letters of
    other scripts than Latin) have no neighbours.
    """
    rows = LAYOUTS.get(base_language(language), QWERTY)
    place = next(((row, keys.index(letter.lower())) for row, keys in enumerate(rows) if letter.lower() in keys), None)
    if place is None:
        return ""
    row, column = place
    touched = [(row, column - 1), (row, column + 1)]
    touched += [(row - 1, column), (row - 1, column + 1), (row + 1, column - 1), (row + 1, column)]
    found = "".join(rows[r][c] for r, c in touched if 0 <= r < len(rows) and 0 <= c < len(rows[r]))
    return found.upper() if letter.isupper() else found
