"""A language's rules are found under every code that people write for it."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.language import (
    SCRIPTS,
    argos_code,
    base_language,
    english_name,
    has_many_characters,
    script_of,
    writes_spaces,
)
from mt.metrics.metric import bleu_tokenizer
from mt.text.casing import to_lowercase, to_uppercase
from mt.text.keyboard import adjacent_letters
from mt.text.sentences import split_sentences

# fmt: off
CODES = {
    "de": "deu ger de_AT de-DE deu_Latn DE", "fr": "fra fre fr_CA fra_Latn fr-FR",
    "en": "eng en_US en-GB eng_Latn EN_us",
    "es": "spa spa_Latn es-419", "pt": "por pt-BR pt_PT por_Latn", "it": "ita ita_Latn", "nl": "nld dut nl_BE",
    "zh": "zho chi cmn zh_CN zh-Hant zh_Hant_TW zho_Hans cmn_Hans", "yue": "yue_Hant yue", "lzh": "lzh lzh_Hani",
    "ja": "jpn ja_JP jpn_Jpan", "ko": "kor ko-KR kor_Hang", "th": "tha tha_Thai", "km": "khm khm_Khmr",
    "lo": "lao lao_Laoo", "my": "mya bur mya_Mymr", "bo": "bod tib bod_Tibt", "dz": "dzo dzo_Tibt",
    "tr": "tur tur_Latn tr_TR", "az": "aze azj azj_Latn az-Latn-AZ", "el": "ell gre ell_Grek", "ru": "rus rus_Cyrl",
    "uk": "ukr ukr_Cyrl", "cs": "ces cze ces_Latn", "sk": "slk slo", "ro": "ron rum mo",
    "fa": "fas per pes pes_Arab prs",
    "ar": "ara arb arb_Arab", "et": "est ekk", "lv": "lav lvs lvs_Latn", "sq": "sqi alb als als_Latn",
    "ms": "msa may zsm zsm_Latn", "mn": "mon khk khk_Cyrl", "sw": "swa swh swh_Latn", "uz": "uzb uzn uzn_Latn",
    "yi": "yid ydd ji", "he": "heb iw heb_Hebr", "id": "ind in ind_Latn", "nb": "nob nob_Latn", "nn": "nno",
    "no": "nor",
    "sr": "srp sh srp_Cyrl sr-Latn", "hr": "hrv hrv_Latn", "eu": "eus baq", "cy": "cym wel", "mk": "mkd mac",
}
# fmt: on
WRITTEN = [(written, short) for short, others in CODES.items() for written in (short, *others.split())]
UNKNOWN = ["xx", "yy", "chinese", "qqq", "jp", "cn", "zzzzzzzz"]


@pytest.mark.parametrize(("written", "short"), WRITTEN)
def test_every_code_of_a_language_is_one(written, short):
    assert base_language(written) == short


@pytest.mark.parametrize("code", UNKNOWN)
def test_a_code_in_no_registry_stays(code):
    assert base_language(code) == base_language(f"{code}_XX") == code


CODE = st.from_regex(r"[A-Za-z]{2,8}([_-][A-Za-z0-9]{1,8}){0,3}", fullmatch=True)  # what a config allows


@given(CODE)
def test_any_code_has_one_base_which_is_its_own(code):
    base = base_language(code)
    assert base and base.isalpha() and base == base.lower()
    assert base_language(base) == base == base_language(code.upper()) == base_language(code.replace("_", "-"))


SUFFIXES = st.sampled_from(["", "_Latn", "-Hant", "_XX", "-1996", "_US_x", "_news"])


@given(st.sampled_from(WRITTEN), SUFFIXES)
def test_every_rule_is_the_same_under_every_code(code, suffix):
    written, short = code[0] + suffix, code[1]
    text = "Bis z. B. Dr. Moku kommt. İstanbul I. 你好。好！"
    for rule in (
        writes_spaces,
        has_many_characters,
        script_of,
        bleu_tokenizer,
        lambda language: split_sentences(text, language),
        lambda language: to_uppercase(text, language),
        lambda language: to_lowercase(text, language),
        lambda language: [adjacent_letters(letter, language) for letter in "azyqж" + "λ"],
    ):
        assert rule(written) == rule(short)


# fmt: off
@pytest.mark.parametrize("code", [
    "zh", "zho", "chi", "cmn", "yue", "lzh", "wuu", "nan", "hak", "gan", "hsn", "ja", "jpn", "th", "tha", "km", "khm",
    "lo", "lao", "my", "mya", "bur", "bo", "bod", "tib", "dz", "dzo",
])
# fmt: on
def test_languages_without_spaces(code):
    assert not writes_spaces(code) and not writes_spaces(f"{code}_Xxxx")
    script = script_of(code)
    assert script is not None and base_language(code) in script.languages


def test_the_codes_of_scripts_are_bases():
    assert all(base_language(code) == code for script in SCRIPTS for code in script.languages)


@pytest.mark.parametrize(
    ("code", "theirs", "name"),
    [
        ("en", "en", "English"), ("deu_Latn", "de", "German"), ("pt", "pt", "Portuguese"),
        ("pt_BR", "pb", "Portuguese (Brazil)"), ("pt-PT", "pt", "Portuguese"), ("zh", "zh", "Chinese"),
        ("cmn_Hans", "zh", "Chinese"), ("zh_TW", "zt", "Chinese (traditional)"),
        ("zho_Hant", "zt", "Chinese (traditional)"), ("yy", "yy", "yy"), ("br", "br", "br"), ("en-a", "en", "English"),
    ],
)  # fmt: skip
def test_argos_translates_codes_and_english_names(code, theirs, name):
    assert (argos_code(code), english_name(code)) == (theirs, name)


def test_no_network_is_asked():
    """The registry of codes comes with the library."""
    code = (
        "import socket, sys\n"
        "def refused(*_): raise OSError('network')\n"
        "socket.socket.connect = refused\n"
        "from mt.core.language import base_language\n"
        "print(base_language('deu'), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["de", "False"]


def test_smaller_languages_follow_the_rules_of_their_relatives():
    assert {code: writes_spaces(code) for code in ("cdo", "cjy", "mnp", "shn_Mymr", "nod", "de")} == {
        "cdo": False, "cjy": False, "mnp": False, "shn_Mymr": False, "nod": False, "de": True,
    }  # fmt: skip
