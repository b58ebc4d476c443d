"""Structured and binary content is known by its beginning, and text never is taken for it."""

import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.content import describe_binary, recognise

STRUCTURED = {
    "XLIFF": '<?xml version="1.0"?>\n<!-- x -->\n<xliff version="1.2">\n</xliff>',
    "Android strings": '\ufeff<?xml version="1.0"?>\n<resources>\n<string name="a">x</string></resources>',
    "HTML": "<!doctype html>\n<title>x</title>",
    "XML": '<strings lang="en">\r\n  <entry>Where is the station?</entry>\r\n</strings>',
    "PO": '# SOME DESCRIPTION\nmsgctxt "a"\nmsgid "x"\nmsgstr ""\n',
    "SubRip": "\n1\r\n00:00:01,000 --> 00:00:02,000\r\nHi\r\n",
    "WebVTT": "WEBVTT\n\n",
    "SubStation Alpha": "[Script Info]\n[Events]\n",
    "JSON": '[\n  {\n "a": "x"}]',
    "Apple strings": '/* Title */\n// x\n"a" = "It is late.";\n',
    "TOML or INI": '# settings\n[section]\nname = "x"\n',
    "YAML": 'en:\n  title: "Where is the station?"\n',
    "CSV": 'id,source text,target\n1,"a, b",c\n2,d,e\n',
}
LINES = [
    "",
    "It is late.",
    "Tom: Hello.\nMary: Where are you going?",
    "Tom:\n  Hello, Mary.\nMary:\n  Hello.",
    "{name} is here.",
    "[Applause]\nTom: Thank you.",
    "[[File:x.png]] is an image.",
    "<p>Hello</p>\n<p>world</p>",
    "<b>Hello,</b> world.\n<i>x</i>",
    "<ul>\n<li>Hello</li>\n</ul>",
    "red, blue\ngreen, white",
    "Hello, world\nGoodbye",
    '"Yes," she said.\n"No", he said.',
    "x = 5\ny = 6",
    "names = ['a', 'b']\nThis is a list.",
    "1\n2\n3",
    "---\nNo, thank you.",
    "# Heading\n\nText: more.",
    "one\ttwo\n1\t2",
]


@pytest.mark.parametrize("name", STRUCTURED)
def test_formats_are_known_by_their_beginning(name):
    assert recognise(STRUCTURED[name].encode()) == name
    assert describe_binary(STRUCTURED[name].encode()) is None


@pytest.mark.parametrize("text", LINES)
def test_lines_of_text_have_no_format(text):
    assert recognise(text.encode()) is None


@given(st.lists(st.text(st.characters(codec="utf-8", categories=["L", "Nd", "Zs", "Po"])), max_size=5))
def test_any_text_is_answered(lines):
    assert recognise("\n".join(lines).encode()) in {None, "CSV", "TOML or INI", "YAML"}
    assert describe_binary("\n".join(lines).encode()) is None


def test_binary_content_is_named(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.docx", "w") as archive:
        archive.writestr("word/document.xml", "<x/>")
    assert describe_binary((tmp_path / "a.docx").read_bytes()).startswith("a zip archive")
    assert describe_binary(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256))) == "binary, and no text"


@pytest.mark.parametrize("content", ["Größe\n".encode("latin-1") * 9, "Größe".encode("utf-16"), b"a\0b\n", b"\x1b[1m"])
def test_text_with_odd_bytes_is_not_binary(content):
    assert describe_binary(content) is None


def test_a_few_control_characters_and_broken_bytes_make_no_text_binary_but_many_do():
    broken = b"Good\xff morning.\n"
    assert describe_binary(broken + b"\x00\x01\x02 It is late.\n") is None
    assert describe_binary(broken + bytes(range(9)) + b"\n") == "binary, and no text"
    assert describe_binary(broken * 1000 + bytes(range(9)) + b"\n") is None
