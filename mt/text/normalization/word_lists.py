"""General word lists of some fifty languages. Spelling correction leaves their words unchanged.

The lists are those of simplemma: inflected forms, some abbreviations and frequent names. The list of a language is read
from the installed package at the first look-up.
"""

from functools import lru_cache

import regex
from simplemma import is_known
from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

from mt.core.language import base_language

SIMPLEMMA_CODES = {"no": "nb", "fil": "tl", "bs": "hbs", "hr": "hbs", "sr": "hbs"}
"""Languages that simplemma knows by another code."""
APOSTROPHE = regex.compile("['’]")
MIN_LETTERS_AFTER_APOSTROPHE = 3
"""Fewer letters, as in don't and dog's, make no word of their own."""


def has_word_list(language: str) -> bool:
    return _code(language) in SUPPORTED_LANGUAGES


@lru_cache(maxsize=65536)
def is_listed(word: str, language: str) -> bool:
    """Return whether the word list of a language has a word, in lower case or as it is written.

    Of l'arbre, the last part counts. A language without a word list has no words.
    """
    last_part = APOSTROPHE.split(word)[-1]
    word = last_part if len(last_part) >= MIN_LETTERS_AFTER_APOSTROPHE else word
    # The frugal dictionaries take a tenth of the memory, and a tenth of a millisecond for a look-up.
    return has_word_list(language) and any(
        is_known(form, _code(language), low_memory=True) for form in (word, word.lower())
    )


def _code(language: str) -> str:
    code = base_language(language)
    return SIMPLEMMA_CODES.get(code, code)
