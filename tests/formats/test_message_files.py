"""Property files and JSON: values are translated, and all else stays as it was."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.formats.messages import has_same_placeholders
from tests.coded import lines_of, reader, rendered

read_json_messages, read_properties = reader("json"), reader("properties")
ANY = st.text(st.sampled_from("ab é\\\"'={}0:#!\n\t\r漢👍") | st.characters(codec="utf-8"), max_size=15)
ONE_LINE = ANY.map(lambda text: " ".join(text.split()) or "x")


def upper(text):
    return re.sub(r"(\{\{\w+\}\})|.", lambda match: match[1] or match.group().upper(), text)


def translated(document, translate=upper):
    return rendered(document, translate)[0]


def properties(content):
    """Reads property files as Java's documentation describes it."""
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
        goes_on = (len(line) - len(line.rstrip("\\"))) % 2
        start = line[:-1] if goes_on else None
        if not goes_on:
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


def test_values_of_properties():
    content = (
        b"# A comment\n! another\nkey = Value one \\\n   two\na\\:b:It''s {0}\nnone=\n  x\\ y  z\nu=caf\\u00e9\n"
        b"menu=&Open\\tCtrl+O\n12=12"
    )
    expected = (
        b"# A comment\n! another\nkey = VALUE ONE TWO\na\\:b:IT''S {0}\nnone=\n  x\\ y  Z\nu=CAF\\u00c9\n"
        b"menu=&OPEN\\tCtrl+O\n12=12"
    )
    assert translated(read_properties(content)) == expected
    assert translated(read_properties(content), str) == content
    apostrophes = translated(read_properties(b"a={0} files of mine\nb=Yes"), lambda text: f"l'{text}")
    assert apostrophes == b"a=l''{0} files of mine\nb=l'Yes"
    for encoding, expected in (("utf-8", "é=漢👍".encode()), ("latin-1", b"\xe9=\\u6f22\\ud83d\\udc4d")):
        assert translated(read_properties("é=ü".encode(encoding)), lambda text: "漢👍") == expected
    assert translated(read_properties(b"a=b"), lambda text: "é") == b"a=\\u00e9"


def test_braces_that_a_message_format_quotes_stay_quoted():
    content = b"a='{0}' is not {0}"
    document = read_properties(content)
    assert rendered(document, ["{0} n'est pas {0}"]) == (content, [1])
    assert rendered(document, ["'{0}' vaut {0}"]) == (b"a='{0}' vaut {0}", [])


@given(st.lists(st.text(st.sampled_from("ab=: \\\n\r\t#!é'{}0u"), max_size=12), max_size=8).map("\n".join), st.data())
def test_no_property_is_lost(text, data):
    text = text.replace("\\u", "\\v")
    document = read_properties(text)
    assert translated(document, str) == text.encode()
    before = properties(text.encode())
    written = translated(document, lambda text: data.draw(ONE_LINE))
    assert list(properties(written)) == list(before)


@given(
    st.dictionaries(st.sampled_from("abcdef"), ONE_LINE.filter(lambda text: has_same_placeholders("a", text))),
    st.sampled_from(["utf-8", "latin-1"]),
)
def test_java_reads_what_was_translated(wanted, encoding):
    content = ("é=1\n" + "".join(f"{key} = a\n" for key in wanted)).encode(encoding)
    document = read_properties(content)
    written = rendered(document, [wanted[key] for key in wanted][: len(document.lines())] if wanted else [])
    if wanted and len(set(wanted)) == len(document.lines()):
        assert {key: value for key, value in properties(written[0]).items() if key in wanted} == wanted


def test_values_of_json():
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


def test_of_an_extension_only_messages_are_translated():
    document = read_json_messages(EXTENSION)
    assert lines_of(document) == ["You have closed $COUNT$ tabs."] and document.lines()[0].syntax == ""
    assert document.passages[0].key == "closed.message"
    assert translated(document, lambda text: "$COUNT$ x") == EXTENSION.replace(
        b"You have closed $COUNT$ tabs.", b"$COUNT$ x"
    )


def test_attributes_in_arb_are_kept_and_the_locale_is_that_of_the_translation():
    document = read_json_messages(ARB, "fr-CA")
    assert len(document.lines()) == 1 and document.lines()[0].syntax == ""
    written = translated(document, lambda text: text.replace("no cats", "aucun chat"))
    assert written == ARB.replace(b"no cats", b"aucun chat").replace(b"en-GB", b"fr_CA")
    with pytest.raises(InputError, match="is in de, and the model translates from en into fr"):
        read_json_messages(ARB.replace(b"en-GB", b"de"))


def test_alternatives_are_left_as_they_are_and_counted():
    content = b'{"a": "car | cars",\n"b": "{0} No tree|[1,*] Trees",\n"c": "Hi {{ user.name | title }}"}'
    document = read_json_messages(content)
    assert lines_of(document) == ["Hi {{ user.name | title }}"]
    assert rendered(document, ["Salut {{ user.name | title }}"]) == (content.replace(b"Hi", b"Salut"), [1, 2])


def test_keys_of_json_and_properties():
    content = b'{"a": {"b": ["one two", {"c d": "three"}]}, "e": "four"}'
    keys = [passage.key for passage in read_json_messages(content).passages]
    assert keys == ["a.b.0", "a.b.1.c d", "e"]
    assert [passage.key for passage in read_properties(b"a\\:b.c : x y").passages] == ["a:b.c"]


@pytest.mark.parametrize(
    "codes",
    [
        "#a1b2c3 rgba(0,0,0,.5) https://x.org/a foo_bar fooBar user.name 2024-02-29T12:00:00Z 10px 1.5rem text/html",
        "en-US zh_Hans /usr/lib a@b.org {{x}} %s utf-8 MM/DD/YYYY icon.png 550e8400-e29b-41d4-a716-446655440000 :year",
    ],
)
def test_values_that_are_codes_are_kept(codes):
    for code in codes.split():
        assert not read_json_messages(json.dumps([code])).passages, code
        assert not read_properties(f"a={code}").passages, code


@pytest.mark.parametrize(
    "text",
    ["Hello", "OK", "Sign-in", "e-mail", "yes/no", "Save As…", "Name:", "Mr.", "{n} files", "up-to-date", "e.g."],
)
def test_values_that_are_words_are_translated(text):
    assert len(read_json_messages(json.dumps([text])).passages) == 1


@pytest.mark.parametrize(
    ("source", "translation"),
    [
        ("You have {n} files", "Vous avez {m} fichiers"),
        ("%s of %d", "%d de %s"),
        ("It is '{'late'}'", "C'est {'late'}"),
        ("{n, plural, one {a {x}} other {b}}", "{n, plural, one {a} other {b}}"),
        ("{0,choice,0#a|1#b}", "{0,choice,0#c|1#d}"),
    ],
)
def test_a_translation_with_other_placeholders_is_not_written(source, translation):
    content = json.dumps({"a": "x", "b": source}, indent=1).encode()
    document = read_json_messages(content)
    assert rendered(document, ["X", translation]) == (content.replace(b'"x"', b'"X"'), [3])


def shape(value):
    """Returns a value without its texts."""
    if isinstance(value, dict):
        return {key: shape(one) for key, one in value.items()}
    return [shape(one) for one in value] if isinstance(value, list) else value if not isinstance(value, str) else ""


@given(VALUES, st.booleans(), st.sampled_from([None, 2]), st.data())
def test_json_stays_json_of_the_same_shape(value, is_ascii, indent, data):
    content = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()
    document = read_json_messages(content)
    assert translated(document, str) == content
    written = translated(document, lambda text: data.draw(ANY))
    assert shape(json.loads(written)) == shape(value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{\n"a": }', "line 2 is not valid JSON .Expecting value.; correct it"),
        (b"", "line 1 is not valid JSON"),
        (b'"a" "b"', "line 1 is not valid JSON .Extra data"),
        (b"[" * 100_000, "is nested too deeply"),
        (b'"\xff"', "line 1 is invalid UTF-8"),
        (b'["a", ' + b"9" * 5000 + b"]", "is JSON that cannot be read"),
    ],
)
def test_what_is_no_json_is_reported(content, message):
    with pytest.raises(InputError, match=message):
        read_json_messages(content)


def test_half_a_surrogate_pair_is_left_as_it_is():
    assert translated(read_json_messages(b'["\\ud800 a", "b"]')) == b'["\\ud800 a", "B"]'
