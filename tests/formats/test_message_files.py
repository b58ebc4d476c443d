"""Property files and JSON: texts are translated, and everything else is preserved."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.formats.messages import has_same_placeholders
from mt.formats.string_files import is_text
from tests.coded import lines_of, reader, rendered

read_json_messages, read_properties = reader("json"), reader("properties")
ANY = st.text(st.sampled_from("ab é\\\"'={}0:#!\n\t\r漢👍") | st.characters(codec="utf-8"), max_size=15)
ONE_LINE = ANY.map(lambda text: " ".join(text.split()) or "x")


def upper(text):
    return re.sub(r"(\{\{\w+\}\})|.", lambda match: match[1] or match.group().upper(), text)


def translated(document, translate=upper):
    return rendered(document, translate)[0]


def parse_properties(content):
    """Parse a property file by the rules in Java's documentation. Return its values by key."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    lines, start = [], None
    for line in re.split(r"\r\n|\r|\n", text):
        line = line.lstrip(" \t\f")
        if start is None and (not line or line[0] in "#!"):
            continue
        line = (start or "") + line
        continues = (len(line) - len(line.rstrip("\\"))) % 2
        start = line[:-1] if continues else None
        if not continues:
            lines.append(line)
    lines += [start] if start is not None else []

    def character(escape):
        code, letter = escape.groups()
        return chr(int(code, 16)) if code else {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(letter, letter)

    found = {}
    for line in lines:
        entry = re.fullmatch(r"((?:\\.|[^ \t\f:=\\])*)[ \t\f]*(?:[:=][ \t\f]*)?(.*)", line, re.DOTALL)
        key, value = (re.sub(r"\\(?:u(.{4})|(.))", character, part) for part in entry.groups())
        found[key] = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return found


def test_read_properties_translates_values():
    content = (
        b"# A comment\n! another\nkey = Value one \\\n   two\na\\:b:It''s {0}\nnone=\n  x\\ y  z\nu=caf\\u00e9\n"
        b"menu=&Open\\tCtrl+O\n12=12"
    )
    expected = (
        b"# A comment\n! another\nkey = VALUE ONE TWO\na\\:b:IT''S {0}\nnone=\n  x\\ y  Z\nu=CAF\\u00c9\n"
        b"menu=&OPEN\\tCtrl+O\n12=12"
    )
    assert translated(read_properties(content)) == expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("é=ü".encode(), "é=漢👍".encode()),
        ("é=ü".encode("latin-1"), b"\xe9=\\u6f22\\ud83d\\udc4d"),
        (b"a=b", b"a=\\u6f22\\ud83d\\udc4d"),
    ],
    ids=["UTF-8", "Latin-1", "ASCII"],
)
def test_encoding_of_properties_is_preserved(content, expected):
    assert translated(read_properties(content), lambda text: "漢👍") == expected


def test_apostrophes_are_doubled_in_properties_with_arguments():
    document = read_properties(b"a={0} files of mine\nb=Yes")
    assert translated(document, lambda text: f"l'{text}") == b"a=l''{0} files of mine\nb=l'Yes"


def test_quoted_braces_of_properties_are_preserved():
    content = b"a='{0}' is not {0}"
    document = read_properties(content)
    assert rendered(document, ["{0} n'est pas {0}"]) == (content, [1])
    assert rendered(document, ["'{0}' vaut {0}"]) == (b"a='{0}' vaut {0}", [])


@given(st.lists(st.text(st.sampled_from("ab=: \\\n\r\t#!é'{}0u"), max_size=12), max_size=8).map("\n".join), st.data())
def test_translation_preserves_properties(text, data):
    text = text.replace("\\u", "\\v")
    document = read_properties(text)
    assert translated(document, str) == text.encode()
    before = parse_properties(text.encode())
    written = translated(document, lambda text: data.draw(ONE_LINE))
    assert list(parse_properties(written)) == list(before)


@given(
    st.dictionaries(st.sampled_from("abcdef"), ONE_LINE.filter(lambda text: has_same_placeholders("a", text))),
    st.sampled_from(["utf-8", "latin-1"]),
)
def test_written_properties_are_read_by_java(wanted, encoding):
    content = ("é=1\n" + "".join(f"{key} = a\n" for key in wanted)).encode(encoding)
    document = read_properties(content)
    written = rendered(document, [wanted[key] for key in wanted][: len(document.lines())] if wanted else [])
    if wanted and len(set(wanted)) == len(document.lines()):
        assert {key: value for key, value in parse_properties(written[0]).items() if key in wanted} == wanted


def test_read_json_messages_translates_values():
    content = b'{"a": "Hello {{name}}",\n  "b" : ["x y", 1, null, "1"], "k\\"": {"c":"caf\\u00e9"}, "d": true}\n'
    expected = b'{"a": "HELLO {{name}}",\n  "b" : ["X Y", 1, null, "1"], "k\\"": {"c":"CAF\\u00c9"}, "d": true}\n'
    assert translated(read_json_messages(content)) == expected
    assert translated(read_json_messages(content), str) == content
    assert translated(read_json_messages('"\\u00e9 é"')) == '"É É"'.encode()


VALUES = st.recursive(
    ANY | st.none() | st.booleans() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY, inner, max_size=3),
    max_leaves=10,
)


EXTENSION = b"""{
  "closed": {
    "message": "You have closed $COUNT$ tabs.",
    "description": "Shown after closing tabs",
    "placeholders": {"count": {"content": "$1", "example": "five tabs"}}
  }
}
"""
ARB = b"""{
  "@@locale": "en-GB",
  "late": "{n, plural, =0 {no cats} other {{n} cats}} | late",
  "@late": {"description": "In the title", "placeholders": {"n": {"type": "int"}}}
}
"""


def test_browser_extension_translates_only_messages():
    document = read_json_messages(EXTENSION)
    assert lines_of(document) == ["You have closed $COUNT$ tabs."] and document.lines()[0].syntax == ""
    assert document.passages[0].key == "closed.message"
    assert translated(document, lambda text: "$COUNT$ x") == EXTENSION.replace(
        b"You have closed $COUNT$ tabs.", b"$COUNT$ x"
    )


def test_flutter_file_gets_target_locale():
    document = read_json_messages(ARB, "fr-CA")
    assert len(document.lines()) == 1 and document.lines()[0].syntax == ""
    written = translated(document, lambda text: text.replace("no cats", "aucun chat"))
    assert written == ARB.replace(b"no cats", b"aucun chat").replace(b"en-GB", b"fr_CA")
    with pytest.raises(InputError, match="is in de, and the model translates from en into fr"):
        read_json_messages(ARB.replace(b"en-GB", b"de"))


def test_json_alternatives_stay_untranslated():
    content = b'{"a": "car | cars",\n"b": "{0} No tree|[1,*] Trees",\n"c": "Hi {{ user.name | title }}"}'
    document = read_json_messages(content)
    assert lines_of(document) == ["Hi {{ user.name | title }}"]
    assert rendered(document, ["Salut {{ user.name | title }}"]) == (content.replace(b"Hi", b"Salut"), [1, 2])


@pytest.mark.parametrize(
    ("read", "content", "keys"),
    [
        (read_json_messages, b'{"a": {"b": ["one two", {"c d": "three"}]}, "e": "four"}', ["a.b.0", "a.b.1.c d", "e"]),
        (read_properties, b"a\\:b.c : x y", ["a:b.c"]),
    ],
    ids=["JSON", "properties"],
)
def test_passages_have_keys(read, content, keys):
    assert [passage.key for passage in read(content).passages] == keys


TEXTS = ["Hello", "OK", "Sign-in", "e-mail", "yes/no", "Save As…", "Name:", "Mr.", "{n} files", "up-to-date", "e.g."]
CODES = (
    "#a1b2c3 rgba(0,0,0,.5) https://x.org/a foo_bar fooBar user.name 2024-02-29T12:00:00Z 10px 1.5rem text/html "
    "en-US zh_Hans /usr/lib a@b.org {{x}} %s utf-8 MM/DD/YYYY icon.png 550e8400-e29b-41d4-a716-446655440000 :year"
)


@pytest.mark.parametrize("value", TEXTS)
def test_is_text_accepts_words(value):
    assert is_text(value)


@pytest.mark.parametrize("value", CODES.split())
def test_is_text_rejects_codes(value):
    assert not is_text(value)


def test_passage_with_other_placeholders_stays_untranslated():
    document = read_json_messages(b'{"a": "x",\n"b": "You have {n} files"}')
    assert rendered(document, ["y", "Vous avez {m} fichiers"]) == (b'{"a": "y",\n"b": "You have {n} files"}', [2])


def structure_of(value):
    """Return a value with empty texts."""
    if isinstance(value, dict):
        return {key: structure_of(member) for key, member in value.items()}
    if isinstance(value, list):
        return list(map(structure_of, value))
    return "" if isinstance(value, str) else value


@given(VALUES, st.booleans(), st.sampled_from([None, 2]), st.data())
def test_translation_preserves_json_structure(value, is_ascii, indent, data):
    content = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()
    document = read_json_messages(content)
    assert translated(document, str) == content
    written = translated(document, lambda text: data.draw(ANY))
    assert structure_of(json.loads(written)) == structure_of(value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n"a": }', "line 2 is not valid JSON .Expecting value.; correct it"),
        (b"", "line 1 is not valid JSON"),
        (b'"a" "b"', "line 1 is not valid JSON .Extra data"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'"\xff"', "line 1 is invalid UTF-8"),
        (b'["a", ' + b"9" * 5000 + b"]", "has a JSON value that cannot be read"),
    ],
)
def test_read_json_messages_reports_errors(content, message):
    with pytest.raises(InputError, match=message):
        read_json_messages(content)


def test_lone_surrogate_stays_untranslated():
    assert translated(read_json_messages(b'["\\ud800 a", "b"]')) == b'["\\ud800 a", "B"]'
