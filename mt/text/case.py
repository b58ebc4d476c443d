"""Lines all in capitals: lowercased before they are translated, and put back into capitals afterwards.

Text for training has hardly any such lines, so that a model would spell their words letter by letter.
"""

from mt.language import base_language

TURKIC = {"tr", "tur", "az", "aze"}
FEWEST_CAPITALS = 4
"""A line with fewer capitals may be an abbreviation, which is a word like any other."""


def is_in_capitals(text: str) -> bool:
    """Returns whether a text has capitals and neither small letters nor titlecase letters such as ǅ."""
    return text.isupper() and sum(map(str.isupper, text)) >= FEWEST_CAPITALS


def lowercased(text: str, language: str) -> str:
    """Returns a text in small letters, apart from its first letter and from words that could not be put back into
    capitals, such as STRAẞE.

    Args:
        text: A text in capitals.
        language: The text's language.
    """
    words = text.split(" ")
    lower = [_lower(word, language) for word in words]
    kept = [small if in_capitals(small, language) == word else word for word, small in zip(words, lower, strict=True)]
    small = " ".join(kept)
    first = next(place for place, letter in enumerate(small) if letter.isalpha())
    begins_in_capitals = small[first].istitle() or small[first].title() == small[first]  # the latter: Georgian
    if begins_in_capitals or len(small) != len(text) or in_capitals(small[first], language) != text[first]:
        return small
    return small[:first] + text[first] + small[first + 1 :]


def in_capitals(text: str, language: str) -> str:
    """Returns a text in capitals, by the rules of its language."""
    if base_language(language) in TURKIC:
        text = text.replace("i", "İ")
    return text.upper()


def _lower(text: str, language: str) -> str:
    if base_language(language) in TURKIC:
        text = text.replace("I", "ı").replace("İ", "i")
    return text.lower()
