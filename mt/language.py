"""Scripts and spaces, for tokenizing and scoring, by language code (two or three letters, ``zh_CN``, ``zho_Hans``)."""

import re

CHINESE = {"zh", "zho", "chi", "cmn", "yue", "lzh", "wuu", "nan", "hak", "gan", "hsn"}
JAPANESE = {"ja", "jpn"}
KOREAN = {"ko", "kor"}
SOUTH_EAST_ASIAN = {"th", "tha", "km", "khm", "lo", "lao", "my", "mya", "bur"}
TIBETAN = {"bo", "bod", "tib", "dz", "dzo"}

OF_COUNTRIES = {"cn": "zh", "hk": "zh", "jp": "ja", "kr": "ko", "kh": "km", "mm": "my"}
"""Codes of countries that are taken for their languages' codes, and these."""


def base_language(code: str) -> str:
    """``zh`` of ``zh_CN`` or ``zh-Hant``."""
    return re.split("[-_]", code)[0].lower()


def writes_spaces(code: str) -> bool:
    """Whether words are set apart by spaces."""
    return base_language(code) not in CHINESE | JAPANESE | SOUTH_EAST_ASIAN | TIBETAN


def has_many_characters(code: str) -> bool:
    """Whether the script has thousands of characters, the rarest of which are better spelled in bytes."""
    return base_language(code) in CHINESE | JAPANESE | KOREAN
