"""The rules of the plural are those that gettext knows."""

import re
import shutil
import subprocess
from gettext import c2py

import pytest

from mt.formats.po import PLURAL_RULES, parse_plural_rule, plural_rule

TEMPLATE = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
    'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n'
)


@pytest.mark.skipif(shutil.which("msginit") is None, reason="msginit is not installed")
def test_gettext_has_the_same(tmp_path):
    (tmp_path / "a.pot").write_text(TEMPLATE)
    compared = 0
    for expression, languages in PLURAL_RULES.items():
        for language in languages.split():
            command = ["msginit", "--no-translator", "-l", language, "-i", str(tmp_path / "a.pot"), "-o", "-"]
            made = subprocess.run(command, capture_output=True, text=True, check=True).stdout.replace('"\n"', "")
            theirs = re.search(r"plural=([^;\\]+);", made)
            if theirs and theirs[1] != "EXPRESSION":
                compared += 1
                ours, form = c2py(expression), c2py(theirs[1])
                assert [ours(number) for number in range(300)] == [form(number) for number in range(300)], language
    assert compared > 25


def test_rules():
    assert plural_rule("fr").header == "nplurals=2; plural=(n > 1);"
    assert plural_rule("pt_BR").forms == 2 and plural_rule("tlh") is None
    english, chinese, russian, slovenian = map(plural_rule, ("en", "zh_CN", "ru", "sl"))
    assert (english.singular, english.singular_is_rare) == (0, True)
    assert (chinese.forms, chinese.singular) == (1, None)
    assert (russian.forms, russian.singular, russian.singular_is_rare) == (3, 0, False)
    assert slovenian.forms == 4
    assert parse_plural_rule("") is None and parse_plural_rule("nplurals=INTEGER; plural=EXPRESSION;") is None


@pytest.mark.parametrize("expression", ["n", "1/n", "(", "n n", "n" + "+n" * 600, "f(n)", "-1"])
def test_what_cannot_be_computed_is_refused(expression):
    with pytest.raises(ValueError):
        parse_plural_rule(f"nplurals=2; plural={expression};")
