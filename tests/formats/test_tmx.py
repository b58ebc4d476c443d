"""Translation memories: text without inline codes, the right languages, unit by unit."""

import gzip
import re
import tracemalloc
from xml.sax.saxutils import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.formats.tables import tmx_pairs

HEAD = '<?xml version="1.0"?>\n<!DOCTYPE tmx SYSTEM "tmx14.dtd">\n<tmx version="1.4"><header srclang="en"/><body>\n'
END = "</body></tmx>\n"


def unit(*variants):
    parts = "".join(f'<tuv xml:lang="{language}"><seg>{segment}</seg></tuv>' for language, segment in variants)
    return f'<tu tuid="1"><prop type="x" xml:lang="en">skipped</prop>{parts}</tu>\n'


def memory(path, *units):
    path.write_text(HEAD + "".join(units) + END, encoding="utf-8")
    return path


def pairs(path, source="en", target="de"):
    return list(tmx_pairs(path, source, target))


def test_tmx_codes_are_removed(tmp_path):
    english = (
        '<bpt i="1" type="bold">&lt;b&gt;</bpt>Press<ept i="1">&lt;/b&gt;</ept> <hi type="term">the <it pos="begin">'
        '[x<sub>note</sub>]</it>red</hi> key<ph assoc="p">{0}</ph> &amp; wait.'
    )
    path = memory(tmp_path / "a.tmx", unit(("en", english), ("de", "Rote Taste.")))
    assert pairs(path) == [("Press the red key & wait.", "Rote Taste.")]


def test_tmx_language_codes_match_regions_and_case(tmp_path, caplog):
    path = memory(
        tmp_path / "a.tmx",
        unit(("de-AT", "Jänner"), ("EN-us", "color"), ("de-DE", "Januar"), ("en", "colour")),
        unit(("en-GB", "lorry"), ("fr", "camion")),
        '<tu><tuv lang="EN"><seg>old</seg></tuv><tuv lang="DE"><seg>alt</seg></tuv></tu>',
        "<tu><tuv xml:lang='en'/><tuv xml:lang='de'><seg/></tuv></tu>",
    )
    with caplog.at_level("INFO"):
        assert pairs(path) == [("colour", "Jänner"), ("old", "alt"), ("", "")]
    assert "1 of 4 units lack en or de" in caplog.text
    assert pairs(path, "en_US", "de_DE")[0] == ("color", "Januar")
    with pytest.raises(InputError, match="no language 'en-AU' among de-at, en-us, .*did you mean en-us"):
        pairs(path, "en-AU")


@given(st.lists(st.tuples(*[st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn"]))] * 2)))
def test_tmx_text_is_preserved(tmp_path_factory, texts):
    path = tmp_path_factory.mktemp("tmx") / "a.tmx"
    memory(path, *(unit(("en", escape(source)), ("de", escape(target))) for source, target in texts))
    assert pairs(path) == texts


def test_whitespace_codes_become_spaces(tmp_path):
    codes = ['<ph type="lb"/>', "<ph>\\n</ph>", "<ph>&lt;br /&gt;</ph>", '<it pos="begin">\\t</it>']
    path = memory(tmp_path / "a.tmx", *(unit(("en", f"one{code}two"), ("de", f"eins{code}zwei")) for code in codes))
    assert pairs(path) == [("one two", "eins zwei")] * 4
    memory(path, unit(("en", 'whole<ph type="x">{}</ph>sale'), ("de", "groß")))
    assert pairs(path) == [("wholesale", "groß")]


def test_tmx_with_namespace(tmp_path):
    path = memory(tmp_path / "a.tmx", unit(("en", "a"), ("de", "b")))
    path.write_text(path.read_text().replace("<tmx ", '<tmx xmlns="http://www.lisa.org/tmx14" '))
    assert pairs(path) == [("a", "b")]


@pytest.mark.parametrize("encoding", ["gb2312", "no-such-encoding"])
def test_unreadable_tmx_is_reported(tmp_path, encoding):
    path = memory(tmp_path / "a.tmx", unit(("en", "a"), ("de", "b")))
    path.write_text(path.read_text().replace("?>", f' encoding="{encoding}"?>', 1))
    with pytest.raises(InputError, match="a.tmx: is not well-formed XML"):
        pairs(path)


def test_deeply_nested_tmx_is_reported(tmp_path):
    path = memory(tmp_path / "a.tmx", unit(("en", "<hi>" * 5000 + "</hi>" * 5000), ("de", "b")))
    with pytest.raises(InputError, match="a.tmx: is not well-formed XML"):
        pairs(path)


def test_large_tmx_needs_little_memory(tmp_path):
    path = memory(tmp_path / "a.tmx", *(unit(("en", "x" * 1000), ("de", "y" * 1000)) for _ in range(3000)))
    tracemalloc.start()
    assert sum(1 for _ in tmx_pairs(path, "en", "de")) == 3000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20 < path.stat().st_size / 4


def test_compressed_tmx_in_utf_16(tmp_path):
    text = (HEAD + unit(("en", "snow"), ("de", "Schnee — 雪")) + END).replace("?>", ' encoding="utf-16"?>', 1)
    path = tmp_path / "a.tmx.gz"
    path.write_bytes(gzip.compress(text.encode("utf-16")))
    assert pairs(path) == [("snow", "Schnee — 雪")]


@pytest.mark.parametrize(("end", "message"), [("<tu></tuv>", "mismatched tag: line 304"), ("", "no element found")])
def test_truncated_tmx_yields_units_before_error(tmp_path, end, message):
    path = tmp_path / "a.tmx"
    path.write_text(HEAD + unit(("en", "a"), ("de", "b")) * 300 + end)
    reader = tmx_pairs(path, "en", "de")
    assert [next(reader) for _ in range(300)] == [("a", "b")] * 300
    with pytest.raises(InputError, match=f"a.tmx: is not well-formed XML: {message}"):
        next(reader)


@pytest.mark.parametrize("malformed", ["a & b", "&nbsp;", "<b>bold", "</seg>", "<", "\x01", 'x</seg><seg a=">y'])
@pytest.mark.parametrize("places", [[0, 9], [2, 3], range(10)], ids=str)
def test_units_around_malformed_ones_are_read(tmp_path, malformed, places):
    """Each corrupted one is named with the number of its line in the file."""
    units = [unit(("en", malformed if n in places else f"number {n}"), ("de", f"Nummer\n{n}")) for n in range(10)]
    rows = list(tmx_pairs(memory(tmp_path / "a.tmx", *units), "en", "de"))
    assert [n for n, row in enumerate(rows) if isinstance(row, InputError)] == list(places)
    good = [(f"number {n}", f"Nummer\n{n}") for n in range(10) if n not in places]
    assert [row for row in rows if not isinstance(row, InputError)] == good
    for n in places:
        assert "a unit is not well-formed XML" in str(rows[n])
        line = int(re.search(r"line (\d+)", str(rows[n]))[1])
        assert line - 4 in (2 * n, 2 * n + 1)
