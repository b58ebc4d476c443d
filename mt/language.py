"""Scripts and spaces, for tokenizing and scoring, by language code (two or three letters, ``zh_CN``, ``zho_Hans``)."""

import re
from collections.abc import Iterable
from typing import NamedTuple

CHINESE = {"zh", "zho", "chi", "cmn", "yue", "lzh", "wuu", "nan", "hak", "gan", "hsn"}
JAPANESE = {"ja", "jpn"}
KOREAN = {"ko", "kor"}
THAI, KHMER, LAO, BURMESE = {"th", "tha"}, {"km", "khm"}, {"lo", "lao"}, {"my", "mya", "bur"}
TIBETAN = {"bo", "bod", "tib", "dz", "dzo"}

OF_COUNTRIES = {"cn": "zh", "hk": "zh", "jp": "ja", "kr": "ko", "kh": "km", "mm": "my"}
"""Codes of countries that are taken for their languages' codes, and these."""


class Script(NamedTuple):
    """One whose languages are cut into pieces, joined or scored in a way of their own."""

    name: str
    code: str
    """Of a language that is written in it."""
    languages: set[str]
    letters: str
    """As a class of a regular expression."""


SCRIPTS = (
    # Japanese and Korean have Chinese characters, too, and are therefore tried before.
    Script("Japanese", "ja", JAPANESE, "[\u3041-\u30ff]"),
    Script("Korean", "ko", KOREAN, "[\u1100-\u11ff\uac00-\ud7af]"),
    Script("Chinese", "zh", CHINESE, "[\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]"),
    Script("Thai", "th", THAI, "[\u0e00-\u0e7f]"),
    Script("Khmer", "km", KHMER, "[\u1780-\u17ff]"),
    Script("Lao", "lo", LAO, "[\u0e80-\u0eff]"),
    Script("Burmese", "my", BURMESE, "[\u1000-\u109f]"),
    Script("Tibetan", "bo", TIBETAN, "[\u0f00-\u0fff]"),
)


SHARE = 0.1
"""Of a text's letters that shows which script it is written in: names, markup and code may be most of the rest."""


def script_of(code: str) -> Script | None:
    """The script that a language is written in, if it is one of SCRIPTS."""
    return next((script for script in SCRIPTS if base_language(code) in script.languages), None)


def script_in(texts: Iterable[str]) -> Script | None:
    """The script that texts are written in, if it is one of SCRIPTS."""
    letters = "".join(letter for text in texts for letter in text if letter.isalpha())
    least = SHARE * len(letters)
    return next((script for script in SCRIPTS if len(re.findall(script.letters, letters)) > least), None)


def base_language(code: str) -> str:
    """``zh`` of ``zh_CN`` or ``zh-Hant``."""
    return re.split("[-_]", code)[0].lower()


def writes_spaces(code: str) -> bool:
    """Whether words are set apart by spaces."""
    return base_language(code) not in CHINESE | JAPANESE | THAI | KHMER | LAO | BURMESE | TIBETAN


def has_many_characters(code: str) -> bool:
    """Whether the script has thousands of characters, the rarest of which are better spelled in bytes."""
    return base_language(code) in CHINESE | JAPANESE | KOREAN
