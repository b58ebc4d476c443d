"""The plural rules of languages, as gettext writes them.

``tests/formats/test_plurals.py`` compares them with ``msginit``, where it is installed.
"""

import re
from gettext import c2py  # the parser of such expressions in Python's own gettext; it has no other name
from typing import NamedTuple

from mt.core.language import base_language

_EAST_SLAVIC = "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"
PLURAL_RULES = {
    "0": "id ja ko lo ms my th vi zh",
    "(n != 1)": (
        "af az bg bn ca da de el en eo es et eu fi fo fy gl gu ha he hi hu ia it ka kk kn ku ky lb ml mn mr nb ne nl "
        "nn no or pa ps pt rm so sq sv sw ta te tk tr ug ur uz"
    ),
    "(n%10!=1 || n%100==11)": "is",
    "(n > 1)": "am fa fil fr ln mg oc ti tl wa",
    _EAST_SLAVIC: "be bs hr ru sr uk",
    "(n==1) ? 0 : (n>=2 && n<=4) ? 1 : 2": "cs sk",
    "(n==1 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)": "pl",
    "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && (n%100<10 || n%100>=20) ? 1 : 2)": "lt",
    "(n%10==1 && n%100!=11 ? 0 : n != 0 ? 1 : 2)": "lv",
    "n==1 ? 0 : (n==0 || (n%100 > 0 && n%100 < 20)) ? 1 : 2": "ro",
    "(n%100==1 ? 0 : n%100==2 ? 1 : n%100==3 || n%100==4 ? 2 : 3)": "sl",
    "n==1 ? 0 : n==2 ? 1 : 2": "ga",
    "n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : n%100>=11 ? 4 : 5": "ar",
}
"""Maps the expression that computes the index of the plural form of a number ``n`` to the languages that use it."""
HEADER = re.compile(r"\s*nplurals\s*=\s*(\d{1,3})\s*;\s*plural\s*=\s*([^;]+?)\s*;?\s*")
SAMPLED_NUMBERS = range(1000)
"""The numbers for which an expression is computed when it is checked."""
MAX_NUMBERS_OF_RARE_FORM = 5
"""A form for no more of the sampled numbers may leave the number out: gettext accepts ``one file`` for ``%d file``."""


class PluralRule(NamedTuple):
    """A function from numbers to plural forms, as in the header of a PO file. Forms are numbered from 0."""

    header: str
    """The value of the header field Plural-Forms: ``nplurals=2; plural=(n != 1);``"""
    forms: int
    """The number of plural forms."""
    singular: int | None
    """The index of the form for the number 1, which other numbers may share; None if there is a single form."""
    singular_is_rare: bool
    """Whether at most MAX_NUMBERS_OF_RARE_FORM of SAMPLED_NUMBERS have the same form as the number 1."""


def plural_rule(language: str) -> PluralRule | None:
    """Return the plural rule of a language, or None for a language that PLURAL_RULES lacks."""
    code = base_language(language)
    for expression, languages in PLURAL_RULES.items():
        if code in languages.split():
            forms = max(map(c2py(expression), SAMPLED_NUMBERS)) + 1
            return parse_plural_rule(f"nplurals={forms}; plural={expression};")
    return None


def parse_plural_rule(header: str) -> PluralRule | None:
    """Return the rule in the value of the field ``Plural-Forms``, or None if it is empty or the template's
    placeholder.

    Raises:
        ValueError: The expression cannot be computed, or gives the index of a form that does not exist.
    """
    match = HEADER.fullmatch(header)
    if not match or match[2] == "EXPRESSION":
        return None
    forms = int(match[1])
    try:
        form_of_number = list(map(c2py(match[2]), SAMPLED_NUMBERS))
    except (ArithmeticError, SyntaxError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not set(form_of_number) <= set(range(forms)):
        raise ValueError(f"plural={match[2]} gives other forms than those from 0 to {forms - 1}")
    singular = form_of_number[1]
    is_rare = form_of_number.count(singular) <= MAX_NUMBERS_OF_RARE_FORM
    return PluralRule(header, forms, singular if forms > 1 else None, is_rare)
