"""Languages: their codes, scripts and English names, and whether they separate words by spaces. Directions of
translation, and the choice among those of a model.

All functions take codes as people write them: ``de``, ``deu``, ``ger``, ``de_AT``, ``deu_Latn``. ``base_language``
makes all of these the same short code, under which the rules of a language are stored.
"""

import re
from collections.abc import Collection
from functools import cache
from itertools import product
from typing import NamedTuple

from langcodes import Language, LanguageTagError, standardize_tag

from mt.core.errors import InputError, brief

CHINESE = {"zh", "yue", "lzh", "wuu", "nan", "hak", "gan", "hsn", "cdo", "cjy", "cpx", "czh", "czo", "mnp"}
JAPANESE, KOREAN = {"ja"}, {"ko"}


class Script(NamedTuple):
    """A script whose languages need special rules for splitting, joining or scoring words."""

    name: str
    languages: set[str]
    """Codes as ``base_language`` returns them."""
    letters: str
    """Its letters, as the inside of a character class of a regular expression."""

    def share(self, text: str) -> float:
        """Return the share of a text's letters that are of this script."""
        letters = "".join(filter(str.isalpha, text))
        return len(re.findall(f"[{self.letters}]", letters)) / max(1, len(letters))


HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
SCRIPTS = (
    # Japanese and Korean use Chinese characters, too, and are therefore tried first.
    Script("Japanese", JAPANESE, "\u3041-\u30ff\uff66-\uff9d"),
    Script("Korean", KOREAN, "\u1100-\u11ff\uac00-\ud7af"),
    Script("Chinese", CHINESE, HAN),
    Script("Thai", {"th", "nod", "tts", "sou"}, "\u0e00-\u0e7f"),
    Script("Khmer", {"km"}, "\u1780-\u17ff"),
    Script("Lao", {"lo"}, "\u0e80-\u0eff"),
    Script("Burmese", {"my", "shn", "mnw", "ksw"}, "\u1000-\u109f"),
    Script("Tibetan", {"bo", "dz"}, "\u0f00-\u0fff"),
)
TOUCHING = "".join(script.letters for script in SCRIPTS)
"""The letters of all SCRIPTS, as the inside of a character class. A Latin name or number may stand directly beside such
a letter without being a part of the same word: most of these languages write no spaces, and Korean adds endings."""

MIN_SCRIPT_SHARE, MIN_EXPECTED_SCRIPT_SHARE = 0.1, 0.02
"""A text is in a script if the script has more than this share of its letters; the expected script needs only the
second share. The shares are small because names, markup and code may be most of the text."""


def script_of(code: str) -> Script | None:
    """Return the script of a language, or None if it is none of SCRIPTS."""
    return next((script for script in SCRIPTS if base_language(code) in script.languages), None)


def script_in(text: str, expected: Script | None) -> Script | None:
    """Return the first of SCRIPTS that a text is written in, or None.

    Args:
        text: The text.
        expected: The script of the text's language, for which fewer letters are enough.
    """
    for script in SCRIPTS:
        if script.share(text) > (MIN_EXPECTED_SCRIPT_SHARE if script == expected else MIN_SCRIPT_SHARE):
            return script
    return None


@cache
def base_language(code: str) -> str:
    """Return the shortest code of a language in BCP 47: ``de`` for ``deu``, ``ger``, ``de_AT`` and ``deu_Latn``.

    A member of a macrolanguage gets the code of the macrolanguage: ``zh`` for ``cmn``, ``az`` for ``azj``, ``lv`` for
    ``lvs``. An unknown code is lowercased and loses its suffix.
    """
    language = _without_suffix(code)
    try:
        return standardize_tag(language, macro=True).split("-")[0]  # there may be a suffix again: sr-Latn for sh
    except LanguageTagError:
        return language


def is_registered(code: str) -> bool:
    """Return whether a code is in the registry of ISO 639 and BCP 47, for private use, or xx or yy."""
    language = _without_suffix(code)
    if not re.fullmatch("[a-z]{2,3}", language):
        return False
    return language in ("xx", "yy") or Language.get(language).is_valid()


def _without_suffix(code: str) -> str:
    return re.split("[-_]", code)[0].lower()


def writes_spaces(code: str) -> bool:
    """Return whether a language separates its words by spaces."""
    script = script_of(code)
    return script is None or script.name == "Korean"


def between_words(code: str) -> str:
    """Return the separator between words or sentences of a language: a space, or an empty text."""
    return " " if writes_spaces(code) else ""


def has_many_characters(code: str) -> bool:
    """Return whether a language has thousands of characters, so that a vocabulary should spell the rarest in bytes."""
    return base_language(code) in CHINESE | JAPANESE | KOREAN


ENGLISH_NAMES = dict(
    re.findall(
        r"(\w\w) ([^,]+),",
        """
        af Afrikaans, am Amharic, ar Arabic, az Azerbaijani, be Belarusian, bg Bulgarian, bn Bengali, bs Bosnian,
        ca Catalan, cs Czech, cy Welsh, da Danish, de German, el Greek, en English, eo Esperanto, es Spanish,
        et Estonian, eu Basque, fa Persian, fi Finnish, fr French, ga Irish, gl Galician, gu Gujarati, ha Hausa,
        he Hebrew, hi Hindi, hr Croatian, hu Hungarian, hy Armenian, id Indonesian, is Icelandic, it Italian,
        ja Japanese, ka Georgian, kk Kazakh, km Khmer, ko Korean, ky Kyrgyz, la Latin, lo Lao, lt Lithuanian,
        lv Latvian, mk Macedonian, mn Mongolian, ms Malay, mt Maltese, my Burmese, nb Norwegian Bokmål, ne Nepali,
        nl Dutch, nn Norwegian Nynorsk, no Norwegian, pb Portuguese (Brazil), pl Polish, ps Pashto, pt Portuguese,
        ro Romanian, ru Russian, si Sinhala, sk Slovak, sl Slovenian, so Somali, sq Albanian, sr Serbian,
        sv Swedish, sw Swahili, ta Tamil, te Telugu, th Thai, tl Tagalog, tr Turkish, uk Ukrainian, ur Urdu,
        uz Uzbek, vi Vietnamese, xh Xhosa, yo Yoruba, zh Chinese, zt Chinese (traditional), zu Zulu,
        """,
    )
)
"""The English names of languages by the codes of ``argos_code``. (langcodes has them in a package of 5 MB.)"""
CODES_OF_NAMES = {name.lower(): code for code, name in ENGLISH_NAMES.items() if len(name) > 3}  # lao is a code, too


def argos_code(code: str) -> str:
    """Return the code of a language in Argos Translate.

    This is ``base_language``, except for traditional Chinese (``zt``) and Brazilian Portuguese (``pb``).
    """
    base = base_language(code)
    try:
        language = Language.get(code.replace("_", "-"))
    except LanguageTagError:
        return base
    if base == "zh" and language.maximize().script == "Hant":
        return "zt"
    return "pb" if base == "pt" and language.territory == "BR" else base


def english_name(code: str) -> str:
    """Return the English name of a language, or ``code`` itself if ENGLISH_NAMES lacks it."""
    return ENGLISH_NAMES.get(argos_code(code), code)


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
