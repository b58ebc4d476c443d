"""Format directives: a translation that is written has the same ones as its source."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.core.coded_text import apply_splices
from mt.formats.messages import directive_changes, has_same_placeholders, placeholder_syntax
from tests.coded import reader, rendered, rendered_text

read_po = reader("po")
HEADER = 'msgid ""\nmsgstr "Language: fr\\nContent-Type: text/plain; charset=UTF-8\\n"\n'


@pytest.mark.parametrize(
    ("flag", "source", "translation", "expected"),
    [
        ("c-format", "%s of %d", "%s von %d", "%s von %d"),
        ("c-format", "%s of %d", "%d von %s", "%2$d von %1$s"),
        ("c-format", "%s, %s: %d%%", "%d %%: %s, %s", "%3$d %%: %1$s, %2$s"),
        ("c-format", "%2$s of %1$d", "%1$d von %2$s", "%1$d von %2$s"),
        ("c-format", "%'d files", "18 Uhr", None),
        ("c-format", "%d files", "%d %d", None),
        ("c-format", "%d%% full", "%d % voll", None),
        ("c-format", "%*s: %d", "%d: %*s", None),
        ("c-format", "50 %! %s", "50 %! von %s", "50 %! von %s"),
        ("c-format", "50 %! %s", "%s 50 %!", None),
        ("c-format", "%d% done", "%d% fertig", None),
        ("c-format", "%m: %d", "%d: %m", None),
        ("python-format", "%s of %d", "%d von %s", None),
        ("python-format", "%(file-name)s of %(a)d", "%(a)d von %(file-name)s", "%(a)d von %(file-name)s"),
        ("python-format", "Replace %(file-name)s?", "%( ersetzen?", None),
        ("php-format", "%'x5d", "%'x5", None),
        ("qt-format", "%1 of %L2", "%L2 von %1", "%L2 von %1"),
        ("kde-format", "%1 of %2", "%1 von 2", None),
        ("ruby-format", "%<a>s of %{b}", "%<a>s von b", None),
        ("object-pascal-format", "%0:s of %1:d", "%1:d von %0:s", "%1:d von %0:s"),
        ("elisp-format", "%1$s of %d", "%d von %1$s", None),
        ("java-format", "{0} of {1}", "{1} d'{0}", "{1} d''{0}"),
        ("java-format", "Don't close {0}", "Nicht {0} zu", "Nicht {0} zu"),
        ("java-format", "'{' {0}", "'{' d'{0}", None),
        ("scheme-format", "~a of ~d", "~a von ~d", None),  # an unknown language
        ("scheme-format", "no file", "keine Datei", "keine Datei"),
        ("scheme-format", "no file", "keine ~ Datei", None),
        ("no-c-format", "%d files", "18 Uhr", "18 Uhr"),
    ],
)
def test_directive_changes(flag, source, translation, expected):
    changes = directive_changes(source, translation, {"", "fuzzy", flag})
    assert (None if changes is None else apply_splices(translation, changes)) == expected


def test_po_entry_with_missing_directive_stays_untranslated():
    entries = '\n#, c-format\nmsgid "%s of %d"\nmsgstr ""\n\n#, c-format\nmsgid "Day %d"\nmsgstr ""\n'
    document = read_po(HEADER + entries)
    written, skipped = rendered(document, ["%d de %s", "Jour"])
    assert skipped == [9]
    assert written.decode() == HEADER + entries.replace("#,", "#, fuzzy,", 1).replace(
        '%d"\nmsgstr ""', '%d"\nmsgstr "%2$d de %1$s"', 1
    )


def test_placeholder_syntax_ignores_order_of_flags():
    flags = ["fuzzy", "python-brace-format", "python-format", "no-c-format"]
    assert {placeholder_syntax(flags), placeholder_syntax(flags[::-1])} == {"printf"}
    assert placeholder_syntax(["rust-format"]) == "braces" and placeholder_syntax(["fuzzy", "x-format"]) == ""


PARTS = {
    "c": ["%s", "%d", "%%", "%'d", "%-5.2f", "%lu", "%1$s", "%*d", "% d", "%n", "%m"],
    "python": ["%s", "%d", "%(a)s", "%(a-b)d", "%%", "%r"],
    "python-brace": ["{}", "{a}", "{0}", "{a!r:>9}", "{{", "}}"],
    "java": ["{0}", "{1,number}", "'{'", "''"],
    "ruby": ["%s", "%<a>s", "%{b}", "%%", "%1$s"],
    "qt": ["%1", "%2", "%L1", "%n"],
    "kde": ["%1", "%2", "%n"],
    "kde-kuit": ["%1", "%2", "<b>", "</b>", "&amp;"],
    "boost": ["%1%", "%s", "%|1$s|", "%%", "%1$s"],
    "perl-brace": ["{a}", "{b}"],
    "php": ["%s", "%1$s", "%%", "%'x5d"],
    "object-pascal": ["%s", "%0:s", "%1:d", "%%"],
    "lisp": ["~a", "~d", "~%", "~~", "~{~a~}"],
    "sh": ["$a", "${b}"],
}


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="needs gettext")
@settings(max_examples=50)
@given(st.data())
def test_msgfmt_accepts_translated_directives(data):
    flag = data.draw(st.sampled_from(sorted(PARTS)))
    parts = st.lists(st.sampled_from([*PARTS[flag], *PARTS[flag], " a ", "a", "%", "{"]), max_size=6)
    content, translations = HEADER, []
    for number in range(10):
        source = data.draw(parts)
        texts = [f"{number} {''.join(some)}." for some in (source, data.draw(st.permutations(source) | parts))]
        entry = f'\n#, {flag}-format\nmsgid "{texts[0]}"\nmsgstr '
        if is_accepted_by_msgfmt(f'{HEADER}{entry}"{texts[0]}"\n'):
            content += f'{entry}""\n'
            translations.append(texts[1])
    document = read_po(content)
    written = rendered_text(document, translations).replace("#, fuzzy,", "#,")
    assert is_accepted_by_msgfmt(written), written


def is_accepted_by_msgfmt(content):
    command = ["msgfmt", "-c", "-o", "/dev/null", "-"]
    return subprocess.run(command, input=content.encode(), capture_output=True).returncode == 0


TEXT = st.text(st.sampled_from("ab %{}$#'|,=.\n\t<>&1é漢") | st.characters(codec="utf-8"), max_size=30)


@pytest.mark.parametrize(
    ("source", "translation", "syntax", "expected"),
    [
        ("%s of %d", "%d de %s", "", True),
        ("100% sure", "100 % sûr", "", True),
        ("50% of it", "50 % d'eau", "", True),
        ("{a} b", "b {a}", "", True),
        ("{n, plural, one {# dog} other {# dogs}}", "{n, plural, one {# chien} other {# chiens}}", "icu", True),
        ("%sB", "%sB", "printf", True),
        ("{a!r:>9} of {}", "{} von {a!r:>9}", "braces", True),
        ("%s x", "x", "", False),
        ("x", "%s x", "", False),
        ("%@ x", "x", "", False),
        ("%{name}", "%{nom}", "", False),
        ("{a} {a}", "{a}", "", False),
        ("$COUNT$ tabs", "$COUNT onglets", "", False),
        ("{n, plural, one {# dog} other {dogs}}", "{n, plural, one {chien} other {chiens}}", "icu", False),
        ("{n, plural, one {a} other {b}}", "{n, plural, one {a} few {c} other {b}}", "", False),
        ("{n, plural, one {a} other {b}} of {x}", "{n, plural, one {a} other {b}}", "", False),
        ("{n, plural, one {a} other {b}}", "a", "", False),
        ("{0,choice,0#none|1#one}", "{0,choice,0#none|1#one}", "", False),
        ("{n, plural, one {a} other {b}}", "{m, plural, one {a} other {b}}", "", False),
        ("%sB", "%s", "printf", False),
        ("{0:N2} of {1,-9}", "{0:N2} von {1}", "braces", False),
        ("'{'{0}", "{{0}", "braces", False),
        ("no file", "kein }", "braces", False),
    ],
)
def test_has_same_placeholders(source, translation, syntax, expected):
    assert has_same_placeholders(source, translation, syntax) == expected


@given(TEXT)
def test_has_same_placeholders_accepts_copy(text):
    assert has_same_placeholders(text, text)
