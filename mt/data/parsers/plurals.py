"""Which forms of the plural a language has: those of gettext, and the names that the Unicode CLDR gives them.

``tests/data/parsers/test_plurals.py`` compares them with ``msginit``, where it is installed.
"""

import re
from collections.abc import Callable
from gettext import c2py  # the parser of such expressions in Python's own gettext; it has no other name
from typing import NamedTuple

from mt.core.language import base_language

_EAST_SLAVIC = "(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2)"
RULES = {
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
"""The expressions that number the forms, and the languages for which they hold."""
HEADER = re.compile(r"\s*nplurals\s*=\s*(\d{1,3})\s*;\s*plural\s*=\s*([^;]+?)\s*;?\s*")
TRIED = range(1000)
"""The numbers that tell what a form is for."""
SELDOM = 5
"""A form for no more of these numbers need not show the number: gettext allows it to say ``one file``."""


class PluralRule(NamedTuple):
    """How a language chooses among the forms of a plural."""

    header: str
    """As gettext writes it: ``nplurals=2; plural=(n != 1);``"""
    forms: int
    singular: int | None
    """The form for the number 1; None if it is the only one, which holds for all numbers."""
    singular_is_rare: bool
    """Whether that form is for no other number, or a few."""


def rule_of(language: str) -> PluralRule | None:
    """Returns the rule of a language, or None if it is not known here."""
    code = base_language(language)
    for expression, languages in RULES.items():
        if code in languages.split():
            form: Callable[[int], int] = c2py(expression)
            return read_rule(f"nplurals={max(map(form, TRIED)) + 1}; plural={expression};")
    return None


def read_rule(header: str) -> PluralRule | None:
    """Returns the rule that a header says, or None if it says none.

    Raises:
        ValueError: The expression cannot be computed, or gives a form that does not exist.
    """
    found = HEADER.fullmatch(header)
    if not found or found[2] == "EXPRESSION":
        return None
    number = int(found[1])
    try:
        form = c2py(found[2])
        chosen = [form(one) for one in TRIED]
    except (ArithmeticError, SyntaxError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if number < 1 or not all(0 <= one < number for one in chosen):
        raise ValueError(f"plural={found[2]} gives other forms than those from 0 to {number - 1}")
    return PluralRule(header, number, chosen[1] if number > 1 else None, chosen.count(chosen[1]) <= SELDOM)
