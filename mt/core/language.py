"""Which language a code means, which script it is written in and whether with spaces.

Codes are as people write them: ``de``, ``deu``, ``ger``, ``de_AT``, ``deu_Latn``. The rules of a language are looked up
by ``base_language``, which makes one code of all these.
"""

import re
from functools import cache
from typing import NamedTuple

from langcodes import Language, LanguageTagError, standardize_tag

CHINESE = {"zh", "yue", "lzh", "wuu", "nan", "hak", "gan", "hsn", "cdo", "cjy", "cpx", "czh", "czo", "mnp"}
JAPANESE, KOREAN, KHMER, LAO, TIBETAN = {"ja"}, {"ko"}, {"km"}, {"lo"}, {"bo", "dz"}
THAI, BURMESE = {"th", "nod", "tts", "sou"}, {"my", "shn", "mnw", "ksw"}

OF_COUNTRIES = {"cn": "zh", "hk": "zh", "jp": "ja", "kr": "ko", "kh": "km", "mm": "my"}
"""Country codes that are often given in place of a language code, and the code of the language that is meant."""


class Script(NamedTuple):
    """A script whose languages are cut into pieces, joined or scored in a way of their own."""

    name: str
    languages: set[str]
    """The languages that are written in it, as ``base_language`` gives them."""
    letters: str
    """The letters by which it is recognised, as they stand between the brackets of a regular expression."""

    def share(self, text: str) -> float:
        """Returns the share of a text's letters that are of this script."""
        letters = "".join(filter(str.isalpha, text))
        return len(re.findall(f"[{self.letters}]", letters)) / max(1, len(letters))


HAN = "\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
SCRIPTS = (
    # Japanese and Korean use Chinese characters, too, and are therefore tried first.
    Script("Japanese", JAPANESE, "\u3041-\u30ff\uff66-\uff9d"),
    Script("Korean", KOREAN, "\u1100-\u11ff\uac00-\ud7af"),
    Script("Chinese", CHINESE, HAN),
    Script("Thai", THAI, "\u0e00-\u0e7f"),
    Script("Khmer", KHMER, "\u1780-\u17ff"),
    Script("Lao", LAO, "\u0e80-\u0eff"),
    Script("Burmese", BURMESE, "\u1000-\u109f"),
    Script("Tibetan", TIBETAN, "\u0f00-\u0fff"),
)
TOUCHING = "".join(script.letters for script in SCRIPTS)
"""The letters that a name or number in Latin letters may touch without being a part of the same word, as they stand
between the brackets of a regular expression: these languages write no spaces or, in Korean, add endings to words."""

SHARE_OF_A_SCRIPT, SHARE_OF_THE_EXPECTED_SCRIPT = 0.1, 0.02
"""A text is in a script if more than this share of its letters is, which is less for the script that was expected. The
shares are small because names, markup and code may be most of the rest."""


def script_of(code: str) -> Script | None:
    """Returns the script that a language is written in, or None if it is none of SCRIPTS."""
    return next((script for script in SCRIPTS if base_language(code) in script.languages), None)


def script_in(text: str, expected: Script | None) -> Script | None:
    """Returns the script that a text is written in, or None if it is none of SCRIPTS."""
    return next(
        (
            one
            for one in SCRIPTS
            if one.share(text) > (SHARE_OF_THE_EXPECTED_SCRIPT if one == expected else SHARE_OF_A_SCRIPT)
        ),
        None,
    )


@cache
def base_language(code: str) -> str:
    """Returns the code by which the rules of a language are looked up: ``de`` for ``deu``, ``ger``, ``de_AT`` and
    ``deu_Latn``.

    It is the shortest code of the language, by the registry of BCP 47. What is one language of a group that goes by
    another code is named by that: ``zh`` for ``cmn``, ``az`` for ``azj``, ``lv`` for ``lvs``. A code that is in no
    registry comes back as it was, in small letters and without its suffix.
    """
    language = _without_suffix(code)
    try:
        return standardize_tag(language, macro=True).split("-")[0]  # there may be a suffix again: sr-Latn for sh
    except LanguageTagError:
        return language


def language_of_country(code: str) -> str | None:
    """Returns the language that was probably meant by a country's code given in place of a language's; otherwise None.

    The code is taken as it was written: ``kau`` means the Kanuri, as ``kr`` does in the registry, and no Korean.
    """
    return OF_COUNTRIES.get(_without_suffix(code))


def _without_suffix(code: str) -> str:
    return re.split("[-_]", code)[0].lower()


def writes_spaces(code: str) -> bool:
    """Returns whether a language separates its words by spaces."""
    return base_language(code) not in CHINESE | JAPANESE | THAI | KHMER | LAO | BURMESE | TIBETAN


def between_words(code: str) -> str:
    """Returns what stands between two words, or two sentences, of a language: a blank or nothing."""
    return " " if writes_spaces(code) else ""


def has_many_characters(code: str) -> bool:
    """Returns whether a script has thousands of characters, the rarest of which are better spelled in bytes."""
    return base_language(code) in CHINESE | JAPANESE | KOREAN


# fmt: off
ENGLISH_NAMES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "az": "Azerbaijani", "be": "Belarusian", "bg": "Bulgarian",
    "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech", "cy": "Welsh", "da": "Danish", "de": "German",
    "el": "Greek", "en": "English", "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician", "gu": "Gujarati", "ha": "Hausa",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian", "id": "Indonesian",
    "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "km": "Khmer",
    "ko": "Korean", "ky": "Kyrgyz", "la": "Latin", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian",
    "mn": "Mongolian", "ms": "Malay", "mt": "Maltese", "my": "Burmese", "nb": "Norwegian Bokmål", "ne": "Nepali",
    "nl": "Dutch", "nn": "Norwegian Nynorsk", "no": "Norwegian", "pb": "Portuguese (Brazil)", "pl": "Polish",
    "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "si": "Sinhala", "sk": "Slovak",
    "sl": "Slovenian", "so": "Somali", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish", "sw": "Swahili",
    "ta": "Tamil", "te": "Telugu", "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "uz": "Uzbek", "vi": "Vietnamese", "xh": "Xhosa", "yo": "Yoruba", "zh": "Chinese", "zt": "Chinese (traditional)",
    "zu": "Zulu",
}
# fmt: on
"""The English names of languages by the codes of ``argos_code``. (langcodes has them in a package of 5 MB.)"""


def argos_code(code: str) -> str:
    """Returns the code of a language in Argos Translate: ``base_language``, but ``zt`` for Chinese in traditional
    characters and ``pb`` for the Portuguese of Brazil."""
    base = base_language(code)
    try:
        language = Language.get(code.replace("_", "-"))
    except LanguageTagError:
        return base
    if base == "zh" and language.maximize().script == "Hant":
        return "zt"
    return "pb" if base == "pt" and language.territory == "BR" else base


def english_name(code: str) -> str:
    """Returns the English name of a language, or the code itself if the name is not known."""
    return ENGLISH_NAMES.get(argos_code(code), code)
