"""PO files: entries are translated, everything else is preserved, and gettext's msgfmt accepts the files."""

import re
import shutil
import subprocess
from gettext import c2py

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.formats.po import PLURAL_FORMS, PLURAL_RULES, parse_plural_rule, plural_rule, po_pairs
from tests.coded import lines_of, reader, rendered, rendered_text

read_po = reader("po")
HEADER = 'msgid ""\nmsgstr ""\n"Language: fr\\n"\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
PLURALS = HEADER + '"Plural-Forms: nplurals=2; plural=(n > 1);\\n"\n'


def upper(text):
    return text.upper().replace("%D", "%d")


def translated(content, translate=upper, *options, **more):
    return rendered_text(read_po(content, *options, **more), translate)


def assert_accepted_by_msgfmt(content):
    """Check a file by msgfmt, including its fuzzy entries."""
    if shutil.which("msgfmt") is None:
        pytest.skip("msgfmt is not installed")
    command = [
        "msgfmt",
        "--check-format",
        "--check-domain",
        "--use-fuzzy",
        "-o",
        "/dev/null",
        "-",
    ]
    done = subprocess.run(command, input=content.encode(), capture_output=True)
    assert done.returncode == 0, f"{done.stderr.decode()}\n{content}"


def test_read_po_translates_untranslated_entries():
    content = PLURALS + (
        '\n#  a comment\n#: a.c:1\n#, no-wrap\nmsgid "Open %d files\\n"\nmsgstr ""\n\n'
        'msgid "Done"\nmsgstr   "Fini"\n\n'
        '#, fuzzy\n#| msgid "Shut"\nmsgid "Close"\nmsgstr "Fermer"\n\n'
        '#| msgid "old"\nmsgctxt "menu"\nmsgid "New"\nmsgstr ""\n\n'
        'msgid "***"\nmsgstr ""\n\n'
        '#, fuzzy\n#~ msgid "Gone"\n#~ msgstr "Parti"\n'
    )
    expected = content.replace("#, no-wrap", "#, fuzzy, no-wrap")
    expected = expected.replace('files\\n"\nmsgstr ""', 'files\\n"\nmsgstr "OPEN %d FILES\\n"')
    expected = expected.replace('#| msgid "old"', '#, fuzzy\n#| msgid "old"')
    expected = expected.replace('"New"\nmsgstr ""', '"New"\nmsgstr "NEW"')
    expected = expected.replace('msgid "***"\nmsgstr ""', '#, fuzzy\nmsgid "***"\nmsgstr "***"')
    assert translated(content) == expected
    assert translated(content.replace("\n", "\r\n")) == expected.replace("\n", "\r\n")
    assert 'msgid "Done"\nmsgstr "DONE"' in translated(content, retranslate=True)
    assert_accepted_by_msgfmt(translated(content, str))


def test_plural_forms_of_target_language_are_filled():
    entry = '\nmsgid "One file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    assert 'msgstr[0] "ONE FILE"\nmsgstr[1] "%d FILES"\n' in translated(PLURALS + entry)
    template = PLURALS.replace("nplurals=2; plural=(n > 1)", "nplurals=INTEGER; plural=EXPRESSION").replace(
        ": fr", ": "
    )
    polish = translated(template + entry, target="pl")
    assert "nplurals=3; plural=(n==1 ?" in polish and "Language: pl" in polish
    assert 'msgstr[0] "ONE FILE"\nmsgstr[1] "%d FILES"\nmsgstr[2] "%d FILES"\n' in polish
    # The form for 1, 21, 31 … must show the number. Chinese has one form for all numbers.
    russian = translated(template + entry, target="ru")
    assert 'msgstr[0] "%d FILES"' in russian
    same = translated(template + entry.replace("One", "%d"), target="ru")
    assert 'msgstr[0] "%d FILE"' in same
    chinese = translated(template + entry, target="zh")
    assert 'msgstr[0] "%d FILES"\n' in chinese and "msgstr[1]" not in chinese
    for written in (polish, russian, chinese):
        assert_accepted_by_msgfmt(written)


def test_translated_plural_forms_are_preserved():
    entry = '\nmsgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d fichier"\nmsgstr[1] ""\n'
    assert 'msgstr[0] "%d fichier"\nmsgstr[1] "%d FILES"' in translated(PLURALS + entry)


def test_template_gets_complete_header():
    content = (
        '# Title\n#, fuzzy\nmsgid ""\nmsgstr ""\n"Language: \\n"\n"Content-Type: text/plain; charset=CHARSET\\n"\n\n'
        'msgid "Café"\nmsgstr ""\n'
    )
    written = translated(content, str)
    assert "charset=UTF-8" in written and '"Language: fr\\n"' in written and written.count("fuzzy") == 1
    assert_accepted_by_msgfmt(written)
    without = translated('msgid "Café"\nmsgstr ""\n', str)
    assert "charset=UTF-8" in without
    assert_accepted_by_msgfmt(without)


def test_encoding_of_po_header_is_preserved():
    content = HEADER.replace("UTF-8", "ISO-8859-1") + '\nmsgid "a"\nmsgstr ""\n\nmsgid "é"\nmsgstr "é"\n'
    document = read_po(content.encode("latin-1"))
    assert rendered(document, ["ü"])[0] == content.replace(
        'msgid "a"\nmsgstr ""', '#, fuzzy\nmsgid "a"\nmsgstr "ü"'
    ).encode("latin-1")
    with pytest.raises(InputError, match="is in ISO-8859-1, which has no 漢; convert it with: msgconv -t UTF-8"):
        rendered(document, ["漢"])


def test_byte_order_mark_of_po_is_preserved():
    content = f'{HEADER}\nmsgid "a"\nmsgstr ""\n\nmsgid "b"\nmsgstr "c"\n'
    assert translated("\ufeff" + content) == "\ufeff" + translated(content) != "\ufeff" + content
    assert list(po_pairs(f"\ufeff{content}".encode(), "en", "fr")) == [("b", "c")]


def test_comment_between_strings_is_ignored():
    content = HEADER + '\nmsgid "a "\n# a "comment"\n"b"\nmsgstr ""\n'
    assert lines_of(read_po(content)) == ["a b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('msgid "a"\n', "line 2 is not valid PO: the entry of line 1 has no msgstr"),
        ('msgid "a"\nmsgstr ""\nmsgstr ""\n', "line 3 is not valid PO: msgstr, but the entry needs exactly one msgstr"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] ""\n', r"line 3 .*: msgstr\[1\], but msgstr\[0\] comes next"),
        ('msgid "a"\nmsgstr[0] ""\n', r"line 2 is not valid PO: msgstr\[0\], but the entry"),
        ('msgstr "a"\n', "line 1 is not valid PO: msgstr after no msgid"),
        ("msgid\nmsgstr\n", "is not valid PO: msgid without a string"),
        ('"a"\n', "line 1 is not valid PO: a string without a keyword"),
        ('msgid "\\q"\nmsgstr ""\n', r"line 1 is not valid PO: \\q is not an escape sequence"),
        ("# nothing\n", "is not a PO file: it has no msgid"),
        ("<html>\n", "line 1 is not valid PO: '<html>'"),
        (HEADER.replace(": fr", ": de"), "is a translation into de by its header, and the model translates into fr"),
        (HEADER.replace("UTF-8", "KLINGON"), "declares KLINGON, an unknown encoding"),
        (HEADER.encode() + b'msgid "\xff"\nmsgstr ""\n', "line 5 is invalid UTF-8"),
        (PLURALS.replace("n > 1", "n / 0"), "Plural-Forms in its header cannot be computed"),
        (PLURALS.replace("n > 1", "n"), "has values other than 0 to 1"),
    ],
)
def test_read_po_reports_errors(content, message):
    with pytest.raises(InputError, match=message):
        read_po(content)


def test_po_pairs_yields_reviewed_entries():
    content = PLURALS + (
        '\nmsgid "&Open"\nmsgstr "&Ouvrir"\n\n#, fuzzy\nmsgid "x"\nmsgstr "y"\n\nmsgid "z"\nmsgstr ""\n\n'
        'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d fichier"\nmsgstr[1] "%d fichiers"\n\n'
        'msgid "One.\\nTwo."\nmsgstr "Un.\\nDeux."\n\nmsgid "One.\\nTwo."\nmsgstr "Un, deux."\n'
    )
    expected = [
        ("Open", "Ouvrir"),
        ("%d file", "%d fichier"),
        ("%d files", "%d fichiers"),
        ("One.", "Un."),
        ("Two.", "Deux."),
        ("One. Two.", "Un, deux."),
    ]
    assert list(po_pairs(content.encode(), "en", "fr")) == expected
    assert list(po_pairs(content.encode(), "fr", "en")) == [(target, source) for source, target in expected]
    with pytest.raises(InputError, match="is a translation into fr by its header, not into de"):
        list(po_pairs(content.encode(), "en", "de"))


TEXTS = st.text(
    st.sampled_from('ab \\"\n\t%é漢&_<>{}\x07\u2028👍'), min_size=1, max_size=30
) | st.text(st.characters(codec="utf-8", exclude_characters="\0\x04"), min_size=1, max_size=20)  # fmt: skip


def quoted(text):
    """Return a text as a string in PO."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\x07": "\\a"}
    return '"' + "".join(escapes.get(character, character) for character in text) + '"'


def texts_of(passage):
    return [layout.text for layout in passage.texts]


@given(
    st.lists(st.tuples(TEXTS, st.none() | TEXTS, st.booleans(), TEXTS), max_size=5, unique_by=lambda entry: entry[0]),
    st.data(),
)
def test_translation_preserves_po_entries(entries, data):
    content = PLURALS
    for text, plural, is_flagged, comment in entries:
        content += "\n# " + comment.replace("\n", " ").replace("\r", " ") + "\n" + "#, no-wrap\n" * is_flagged
        content += f"msgid {quoted(text)}\n"
        content += f'msgid_plural {quoted(plural)}\nmsgstr[0] ""\n' if plural else 'msgstr ""\n'
    document = read_po(content)
    assert rendered(document, str)[1] == []
    translations = [data.draw(TEXTS.map(lambda text: " ".join(text.split()))) for _ in document.lines()]
    written, skipped = rendered(document, translations)
    before, after = (read_po(file, retranslate=True).passages for file in (content, written))
    assert list(map(texts_of, before)) == list(map(texts_of, after))
    assert len(read_po(written).passages) == len(skipped)  # only the skipped ones have no translation
    if not any(plural for _, plural, *_ in entries):  # both source texts would have to end alike
        assert_accepted_by_msgfmt(written.decode())


def test_comments_inside_an_entry_belong_to_it():
    first = '\nmsgctxt "c"\n#, fuzzy\nmsgid "One"\n# own\nmsgstr "Eins"\n'
    written = translated(f'{HEADER}{first}\nmsgid "Two"\nmsgstr ""\n', upper)
    assert f'{first}\n#, fuzzy\nmsgid "Two"\n' in written


TEMPLATE = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n\n'
    'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n'
)


@pytest.mark.skipif(shutil.which("msginit") is None, reason="msginit is not installed")
def test_plural_rules_equal_those_of_gettext(tmp_path):
    (tmp_path / "a.pot").write_text(TEMPLATE)
    compared = 0
    for header, languages in PLURAL_RULES.items():
        for language in languages.split():
            command = ["msginit", "--no-translator", "-l", language, "-i", str(tmp_path / "a.pot"), "-o", "-"]
            made = subprocess.run(command, capture_output=True, text=True, check=True).stdout.replace('"\n"', "")
            theirs = re.search(r"plural=([^;\\]+);", made)
            if theirs and theirs[1] != "EXPRESSION":
                compared += 1
                ours, form = c2py(PLURAL_FORMS.fullmatch(header)[2]), c2py(theirs[1])
                assert list(map(ours, range(300))) == list(map(form, range(300))), language
    assert compared > 25


@pytest.mark.parametrize("header", PLURAL_RULES)
def test_plural_rules_are_consistent(header):
    forms, expression = PLURAL_FORMS.fullmatch(header).groups()
    assert set(map(c2py(expression), range(1000))) == set(range(int(forms)))


@pytest.mark.parametrize(
    ("language", "expected"),
    [("en", (2, 0, True)), ("pt_BR", (2, 0, True)), ("zh_CN", (1, None, False)), ("ru", (3, 0, False))],
)
def test_plural_rule(language, expected):
    assert plural_rule(language)[1:] == expected


def test_plural_rule_of_unknown_language():
    assert plural_rule("tlh") is None


@pytest.mark.parametrize("header", ["", "nplurals=INTEGER; plural=EXPRESSION;"])
def test_parse_plural_rule_ignores_placeholders(header):
    assert parse_plural_rule(header) is None


@pytest.mark.parametrize("expression", ["n", "1/n", "(", "n n", "n" + "+n" * 600, "f(n)", "-1"])
def test_parse_plural_rule_rejects_invalid_expressions(expression):
    with pytest.raises(InputError, match="cannot be computed"):
        parse_plural_rule(f"nplurals=2; plural={expression};")
