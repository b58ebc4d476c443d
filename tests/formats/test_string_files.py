"""Rails' YAML, Apple's .strings and Android's strings.xml: texts are translated; everything else is preserved."""

import re
from xml.etree import ElementTree

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML as Yaml

from mt.core.errors import InputError
from tests.coded import lines_of, reader, rendered, rendered_text

read_android_strings, read_apple_strings, read_yaml_messages = map(reader, ["android", "strings", "yaml"])
YAML_1_2 = Yaml(typ="safe", pure=True)
ANY = st.text(st.sampled_from("ab é\"'\\:#,[]{}&*!|>%@`-?\n\t<漢👍") | st.characters(codec="utf-8"), max_size=12)
ONE_LINE = ANY.map(lambda text: " ".join(text.split()) or "x").filter(str.isprintable)


def upper(text):
    return re.sub(r"(%\{\w+\}|%[\d$]*\w)|.", lambda match: match[1] or match.group().upper(), text)


def translated(document, translate=upper):
    return rendered_text(document, translate)


YAML = """\
# a comment
en:
  title: "It's late 👍"   # why
  hello: Hello, %{name}
  'quoted': 'It''s cold: yes'
  count:
    one: one car
    other: "%{count} cars"
  long: >-
    a folded text
    of two lines

    and a second one
  block: |
    two
      lines

  list: [one two, "three", 4, true, "on"]
  date:
    formats: {default: "%d/%m/%Y", short: "%b %d"}
    order: [:year, :month]
  link: https://example.org/a
  copy: &a the text
  again: *a
  empty:
"""


def test_read_yaml_messages_translates_values():
    expected = """\
# a comment
fr:
  title: "IT'S LATE 👍"   # why
  hello: HELLO, %{name}
  'quoted': 'IT''S COLD: YES'
  count:
    one: ONE CAR
    other: "%{count} CARS"
  long: >-
    A FOLDED TEXT OF TWO LINES

    AND A SECOND ONE
  block: |
    TWO
      LINES

  list: [ONE TWO, "THREE", 4, true, "ON"]
  date:
    formats: {default: "%d/%m/%Y", short: "%b %d"}
    order: [:year, :month]
  link: https://example.org/a
  copy: &a THE TEXT
  again: *a
  empty:
"""
    document = read_yaml_messages(YAML)
    assert translated(document) == expected
    assert translated(document, str) == YAML.replace("en:\n", "fr:\n")
    assert [passage.key for passage in document.passages][3:5] == ["en.count.one", "en.count.other"]
    crlf = read_yaml_messages(YAML.replace("\n", "\r\n"))
    assert YAML_1_2.load(translated(crlf)) == YAML_1_2.load(expected)
    assert "\n" not in translated(crlf).replace("\r\n", "")


@pytest.mark.filterwarnings("error")
def test_yaml_anchor_may_be_repeated():
    document = read_yaml_messages(b"a: &x one car\nb: &x a car\n")
    assert translated(document) == "a: &x ONE CAR\nb: &x A CAR\n"


def test_locale_no_is_quoted_in_yaml():
    document = read_yaml_messages(b"en:\n  a: ok then\n", "no")
    assert translated(document) == "'no':\n  a: OK THEN\n"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a: |\n  x y\n\n# comment\nb: c d\n", "a: |\n  X Y\n\n# comment\nb: C D\n"),
        ("a: !ruby/hash {b: c d}\n", "a: !ruby/hash {b: C D}\n"),
        ("a: !!str &x b c\nd: *x\n", "a: !!str &x B C\nd: *x\n"),
        ("a: !ruby/sym name\n", "a: !ruby/sym name\n"),
        ("a:   x y   # c\nb: [ x y , 'z' ]\n", "a:   X Y   # c\nb: [ X Y , 'Z' ]\n"),
        ("a: >+\n  x y\n\nb: c\n", "a: >+\n  X Y\n\nb: C\n"),
        ("--- x y\n---\n- z\n", "--- X Y\n---\n- Z\n"),
    ],
)
def test_yaml_style_is_preserved(content, expected):
    document = read_yaml_messages(content)
    assert translated(document) == expected
    assert translated(document, str) == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("de:\n  a: b c\n", "is in de, and the model translates from en into fr"),
        ("fr:\n  a: b c\nde:\n  a: d e\n", "has texts in fr, de, but not in en"),
        ("a: 1\nfr:\n  a: b c\nde:\n  a: d e\n", "has texts in fr, de, but not in en"),
        ("en:\n  a: b c\nfr:\n  a: d e\n", "has texts in en and in fr; make a file of each language"),
        ("a:\n  b: c\n d: [\n", "line 3 is not valid YAML"),
    ],
)
def test_read_yaml_messages_reports_errors(content, message):
    with pytest.raises(InputError, match=message):
        read_yaml_messages(content)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("app:\n  a: b c\n", "app:\n  a: B C\n"),
        ("en-GB:\n  a: b c\nde:\n  a: d e\n", "fr:\n  a: B C\nde:\n  a: d e\n"),
        ("en-GB:\n  a: b c\nen:\n  a: d e\n", "en-GB:\n  a: b c\nfr:\n  a: D E\n"),
        ("x: y z\nen:\n  a: b c\nde:\n  a: d e\n", "x: y z\nfr:\n  a: B C\nde:\n  a: d e\n"),
        ("x: y z\nen:\n  a: b c\n", "x: Y Z\nfr:\n  a: B C\n"),
        ("x: y z\nde:\n  a: d e\n", "x: Y Z\nde:\n  a: D E\n"),
    ],
    ids=["no locale", "regional", "exact before regional", "several locales", "locale and value", "value and other"],
)
def test_yaml_locale_of_source_language_is_translated(content, expected):
    assert translated(read_yaml_messages(content)) == expected


STYLES = [
    "a: x y\n",
    "a: 'x y'\n",
    'a: "x y"\n',
    "a: |\n  x y\n",
    "a: >-\n  x y\n",
    "a: [x y, x y]\n",
    "? x\n: {b: x y}\n",
]


@given(st.sampled_from(STYLES), ANY.filter(lambda text: text.strip()))
def test_written_yaml_has_translated_values(style, text):
    document = read_yaml_messages(style)
    written, skipped = rendered(document, lambda _: text)

    def filled(value):
        if isinstance(value, dict):
            return {key: filled(one) for key, one in value.items()}
        return [filled(one) for one in value] if isinstance(value, list) else value.replace("x y", text)

    assert skipped or yaml.safe_load(written) == filled(yaml.safe_load(style))


STRINGS = """\
/* Title of the window: "x" = "y"; */
"title" = "It is \\"late\\".\\nYes";
// an old one
key.of.old = "Hello, %1$@";
"count"="%d of %@"  ;
"caf\\U00e9" = "caf\\U00e9 noir";
"""


def test_read_apple_strings_translates_values():
    expected = STRINGS.replace("It is", "IT IS").replace("late", "LATE").replace("Yes", "YES").replace("Hello", "HELLO")
    expected = expected.replace("%d of", "%d OF").replace('caf\\U00e9 noir"', 'CAFÉ NOIR"')
    document = read_apple_strings(STRINGS)
    assert translated(document) == expected
    assert translated(document, str) == STRINGS
    assert [passage.key for passage in document.passages] == ["title", "key.of.old", "count", "café"]


def test_reordered_apple_directives_are_numbered():
    document = read_apple_strings(b'"a" = "%d of %@";')
    assert rendered(document, ["%@ : %d"])[0] == b'"a" = "%2$@ : %1$d";'
    assert rendered(document, ["%@ : %@"]) == (b'"a" = "%d of %@";', [1])


def test_apple_escapes_are_decoded():
    document = read_apple_strings(rb'"a" = "caf\U00e9 \251 \\101\101 \uD83D\uDC4D";')
    assert translated(document) == '"a" = "CAFÉ © \\\\101A 👍";'


def test_read_apple_strings_reports_line():
    with pytest.raises(InputError, match='line 2 must have the form "key" = "value"; — not: "b" = "c'):
        read_apple_strings(b'"a" = "b";\n"b" = "c"\n')


def test_read_android_strings_reports_other_root():
    with pytest.raises(InputError, match="no root element resources"):
        read_android_strings(b"<strings/>")


ANDROID = """\
<?xml version="1.0" encoding="utf-8"?>
<!-- a comment -->
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="late">It\\'s late, &amp; cold</string>
    <string name="brand" translatable="false">The name</string>
    <string name="app">@string/brand</string>
    <string name="bold">
        The <b>last</b>
        bus
    </string>
    <string name="kept">Hello <xliff:g id="name" example="Ann">%1$s</xliff:g>, yes</string>
    <string name="quoted">"two  blanks"</string>
    <string name="html"><![CDATA[<a href=\\"x.html\\">open it</a>]]></string>
    <string name="lines">one\\ntwo</string>
    <string-array name="days"><item>one day</item><item>5</item></string-array>
    <plurals name="cars">
        <item quantity="one">%d car</item>
        <item quantity="other">%d cars</item>
    </plurals>
    <item type="string" name="item">an item</item>
    <color name="c">#ffffff</color>
</resources>
"""


def test_read_android_strings_translates_values():
    expected = ANDROID
    for old, new in [
        ("It\\'s late, &amp; cold", "IT\\'S LATE, &amp; COLD"),
        ("The <b>last</b>\n        bus", "THE <b>LAST</b> BUS"),
        ("Hello <xl", "HELLO <xl"),
        (", yes", ", YES"),
        ("two  blanks", "TWO  BLANKS"),
        ("open it", "OPEN IT"),
        ("one\\ntwo", "ONE\\nTWO"),
        ("one day", "ONE DAY"),
        ("%d car", "%d CAR"),
        ("CARs", "CARS"),
        ("an item", "AN ITEM"),
    ]:
        expected = expected.replace(old, new)
    document = read_android_strings(ANDROID)
    assert translated(document) == expected
    assert translated(document, str) == ANDROID
    assert [passage.key for passage in document.passages][-4:] == ["days.0", "cars.one", "cars.other", "item"]


@pytest.mark.parametrize(
    ("value", "text", "written"),
    [
        (r"\u0020to\u0020\u0020you\u0020", "to  you", r"\u0020TO\u0020 YOU\u0020"),
        ('say  "a  word" to \\"me\\"', 'say a  word to "me"', 'SAY A\\u0020 WORD TO \\"ME\\"'),
        ('a <b>dog "x  y"</b>', "a <0>dog x  y</0>", 'A <b>DOG X\\u0020 Y</b>'),
        ('"it  is', "it  is", "IT\\u0020 IS"),
        ("R&amp;D <b>a</b> dog", "R&D <0>a</0> dog", "R&amp;D <b>A</b> DOG"),
        (r"\ud83d\udc4d a word", "👍 a word", "👍 A WORD"),
        (r"\@ home", "@ home", r"\@ HOME"),
    ],
)  # fmt: skip
def test_android_spaces_quotes_and_escapes(value, text, written):
    content = f"<resources><string name='a'>{value}</string></resources>"
    document = read_android_strings(content)
    assert lines_of(document) == [text]
    assert translated(document) == content.replace(value, written)


def test_unsupported_android_string_stays_untranslated():
    content = b"<resources>\n<string name='a'>x y</string>\n<string name='b'>a <!-- x --> b</string>\n</resources>"
    document = read_android_strings(content)
    assert rendered(document, ["X"]) == (content.replace(b"x y", b"X"), [3])


@given(ONE_LINE)
def test_written_android_strings_are_escaped(text):
    document = read_android_strings(b"<resources><string name='a'>x y</string></resources>")
    written, skipped = rendered(document, [text])
    value = ElementTree.fromstring(written)[0].text
    assert skipped or re.sub(r"\\(.)", r"\1", value) == text
    assert skipped or not re.search(r"(?<!\\)(?:\\\\)*['\"]|^[@?]", value)
