"""Whatever a model does to format directives, no program gets others than its own."""

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
def test_directives_are_those_of_the_source(flag, source, translation, expected):
    changes = directive_changes(source, translation, {"", "fuzzy", flag})
    assert (None if changes is None else apply_splices(translation, changes)) == expected


@pytest.mark.parametrize(
    ("flag", "source", "translation", "is_written"),
    [
        ("python-brace-format", "{a!r:>9} of {}", "{} von {a!r:>9}", True),
        ("csharp-format", "{0:N2} of {1,-9}", "{0:N2} von {1}", False),
        ("java-format", "'{'{0}", "{{0}", False),
        ("rust-format", "no file", "kein }", False),
    ],
)
def test_placeholders_in_braces_are_those_of_the_source(flag, source, translation, is_written):
    content = f'{HEADER}\n#, {flag}\nmsgid "{source}"\nmsgstr ""\n'
    document = read_po(content)
    assert rendered(document, [translation])[1] == ([] if is_written else [5])


def test_an_entry_without_its_directives_stays_and_is_counted():
    entries = '\n#, c-format\nmsgid "%s of %d"\nmsgstr ""\n\n#, c-format\nmsgid "Day %d"\nmsgstr ""\n'
    document = read_po(HEADER + entries)
    written, left = rendered(document, ["%d de %s", "Jour"])
    assert left == [9]
    assert written.decode() == HEADER + entries.replace("#,", "#, fuzzy,", 1).replace(
        '%d"\nmsgstr ""', '%d"\nmsgstr "%2$d de %1$s"', 1
    )


def test_of_several_syntaxes_always_the_same_one_counts():
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
    "perl": ["%s", "%1$s", "%%", "%vd"],
    "perl-brace": ["{a}", "{b}"],
    "php": ["%s", "%1$s", "%%", "%'x5d"],
    "object-pascal": ["%s", "%0:s", "%1:d", "%%"],
    "lua": ["%s", "%d", "%%"],
    "lisp": ["~a", "~d", "~%", "~~", "~{~a~}"],
    "sh": ["$a", "${b}"],
}


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="needs gettext")
@settings(max_examples=50)
@given(st.data())
def test_msgfmt_takes_what_is_written(data):
    flag = data.draw(st.sampled_from(sorted(PARTS)))
    parts = st.lists(st.sampled_from([*PARTS[flag], *PARTS[flag], " a ", "a", "%", "{"]), max_size=6)
    content, translations = HEADER, []
    for number in range(10):
        source = data.draw(parts)
        texts = [f"{number} {''.join(some)}." for some in (source, data.draw(st.permutations(source) | parts))]
        entry = f'\n#, {flag}-format\nmsgid "{texts[0]}"\nmsgstr '
        if _is_taken(f'{HEADER}{entry}"{texts[0]}"\n'):
            content += f'{entry}""\n'
            translations.append(texts[1])
    document = read_po(content)
    written = rendered_text(document, translations).replace("#, fuzzy,", "#,")
    assert _is_taken(written), written


def _is_taken(content):
    command = ["msgfmt", "-c", "-o", "/dev/null", "-"]
    return subprocess.run(command, input=content.encode(), capture_output=True).returncode == 0


TEXT = st.text(st.sampled_from("ab %{}$#'|,=.\n\t<>&1é漢") | st.characters(codec="utf-8"), max_size=30)


@pytest.mark.parametrize(
    ("source", "translation", "syntax"),
    [
        ("%s of %d", "%d de %s", ""),
        ("100% sure", "100 % sûr", ""),
        ("50% of it", "50 % d'eau", ""),
        ("{a} b", "b {a}", ""),
        ("{n, plural, one {# dog} other {# dogs}}", "{n, plural, one {# chien} other {# chiens}}", "icu"),
        ("%sB", "%sB", "printf"),
    ],
)
def test_the_same_placeholders_in_any_order(source, translation, syntax):
    assert has_same_placeholders(source, translation, syntax)


@pytest.mark.parametrize(
    ("source", "translation", "syntax"),
    [
        ("%s x", "x", ""),
        ("x", "%s x", ""),
        ("%@ x", "x", ""),
        ("%{name}", "%{nom}", ""),
        ("{a} {a}", "{a}", ""),
        ("$COUNT$ tabs", "$COUNT onglets", ""),
        ("{n, plural, one {# dog} other {dogs}}", "{n, plural, one {chien} other {chiens}}", "icu"),
        ("{n, plural, one {a} other {b}}", "{n, plural, one {a} few {c} other {b}}", ""),
        ("{n, plural, one {a} other {b}} of {x}", "{n, plural, one {a} other {b}}", ""),
        ("{n, plural, one {a} other {b}}", "a", ""),
        ("{0,choice,0#none|1#one}", "{0,choice,0#none|1#one}", ""),
        ("{n, plural, one {a} other {b}}", "{m, plural, one {a} other {b}}", ""),
        ("%sB", "%s", "printf"),
    ],
)
def test_other_placeholders(source, translation, syntax):
    assert not has_same_placeholders(source, translation, syntax)


@given(TEXT)
def test_a_text_has_its_own_placeholders(text):
    assert has_same_placeholders(text, text)
