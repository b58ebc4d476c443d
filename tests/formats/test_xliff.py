"""XLIFF: units are translated, everything else is preserved, and every file stays well-formed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from mt.core.errors import InputError
from mt.formats.xliff import xliff_pairs
from mt.text.markup_transfer import text_and_elements
from tests.coded import lines_of, reader, rendered, rendered_text

read_xliff = reader("xliff")


def version_1(*units, language=' target-language="fr"'):
    return (
        "<?xml version='1.0' encoding='UTF-8'?>\n"
        "<xliff version=\"1.2\" xmlns='urn:oasis:names:tc:xliff:document:1.2'>\n"
        f'  <file original="a.c" source-language="en"{language} datatype="plaintext">\n    <body>\n'
        + "".join(f"      {unit}\n" for unit in units)
        + "    </body>\n  </file>\n</xliff>\n"
    )


def version_2(*segments, language=' trgLang="fr"'):
    return (
        f'<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"{language}>\n  <file id="f">\n'
        + "".join(f'    <unit id="u{number}">\n      {one}\n    </unit>\n' for number, one in enumerate(segments))
        + "  </file>\n</xliff>\n"
    )


def unit(source, more="", attributes=""):
    written = f"\n        <source>{source}</source>{more}\n      "
    return f'<trans-unit id="{abs(hash(source))}"{attributes}>{written}</trans-unit>'


def translated(content, translate=str, **options):
    written = rendered_text(read_xliff(content, **options), translate)
    etree.fromstring(written.encode())
    return written


NEW = ' state="needs-review-translation" state-qualifier="mt-suggestion"'


def test_read_xliff_adds_marked_targets():
    content = version_1(
        unit("Save &amp; quit", "<note>a note</note>"),
        unit("Open", "\n        <target>Ouvrir</target>"),
        unit("Close", '\n        <target state="new" xml:lang="fr">Close</target>'),
        unit("Print", "<target/>"),
        unit("Keep", attributes=' translate="no"'),
        unit("Old", "<alt-trans><source>Old</source><target>Vieux</target></alt-trans>"),
        unit("12 %"),
    )
    written = translated(content, str.upper)
    expected = content.replace("quit</source>", f"quit</source>\n        <target{NEW}>SAVE &amp; QUIT</target>")
    expected = expected.replace(' state="new" xml:lang="fr">Close<', f' xml:lang="fr"{NEW}>CLOSE<')
    expected = expected.replace("<target/>", f"<target{NEW}>PRINT</target>")
    expected = expected.replace("Old</source><alt", f"Old</source>\n        <target{NEW}>OLD</target><alt")
    assert written == expected
    assert f"<target{NEW}>OPEN</target>" in translated(content, str.upper, retranslate=True)
    assert translated(written) == written  # nothing is left to translate


def test_machine_translation_loses_approval():
    content = version_1(
        unit("Open", '<target state="final">Ouvrir</target>', ' approved="yes"'), unit("Close", "", " approved='yes' ")
    )
    (closed,) = re.findall('<trans-unit id="[^"]*" >.*?</trans-unit>', translated(content, str.upper), re.DOTALL)
    assert f"<target{NEW}>CLOSE</target>" in closed
    assert translated(content).count("approved") == 1  # human translations are preserved
    assert "approved" not in translated(content, str.upper, retranslate=True)


def test_xliff_2_segments_are_marked_as_unreviewed():
    content = version_2(
        "<segment>\n        <source>Open</source>\n      </segment>",
        '<segment state="initial" id="s"><source>Close</source><target>Close</target></segment>',
        '<segment state="final"><source>Print</source><target>Imprimer</target></segment>',
    )
    mark = ' state="translated" subState="mt:unreviewed"'
    expected = content.replace(
        "<segment>\n        <source>Open</source>",
        f"<segment{mark}>\n        <source>Open</source>\n        <target>OPEN</target>",
    )
    expected = expected.replace('<segment state="initial" id="s">', f'<segment id="s"{mark}>')
    expected = expected.replace("<target>Close<", "<target>CLOSE<")
    assert translated(content, str.upper) == expected
    without = translated(version_2("<segment><source>Open</source></segment>", language=""))
    assert '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en" trgLang="fr">' in without


def test_inline_codes_are_preserved():
    source = (
        'Press <bpt id="1">&lt;b&gt;</bpt>the <g id="2">button</g><ept id="1">&lt;/b&gt;</ept> '
        '<ph id="3">{x}</ph> <x id="4"/> now'
    )
    document = read_xliff(version_1(unit(source)))
    assert lines_of(document) == ["Press <0>the <1>button</1></0> <4/> <5/> now"]
    written = rendered_text(document, ["Là <5/> <4/> <1>o</1> <0>le</0>"])
    assert (
        'Là <x id="4"/> <ph id="3">{x}</ph> <g id="2">o</g> <bpt id="1">&lt;b&gt;</bpt>le<ept id="1">&lt;/b&gt;</ept>'
        in written
    )
    segment = '<segment><source><sc id="1"/>a<ec startRef="1"/> <pc id="2">b</pc></source></segment>'
    assert lines_of(read_xliff(version_2(segment))) == ["<0>a</0> <2>b</2>"]


@pytest.mark.parametrize(
    "source",
    [
        'a <x id="START_LINK"/>b<x id="CLOSE_LINK"/>',
        'a <x id="1" equiv-text="&lt;i&gt;"/>b<x id="2" equiv-text="&lt;/i&gt;"/>',
        'a <ph id="0" equiv="START_LINK" disp="&lt;a&gt;"/>b<ph id="1" equiv="CLOSE_LINK" disp="&lt;/a&gt;"/>',
        'a <ph id="1" dataRef="d1"/>b<ph id="2" dataRef="d2"/>',
        'a <it id="1" pos="open">(</it>b<it id="2" pos="close">(</it>',
    ],
)
def test_described_codes_are_paired(source):
    data = '<originalData><data id="d1">&lt;u&gt;</data><data id="d2">&lt;/u&gt;</data></originalData>'
    content = version_2(f"{data}<segment><source>{source}</source></segment>")
    assert lines_of(read_xliff(content)) == ["a <0>b</0>"]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ('The cat<x id="LINE_BREAK" ctype="lb"/>It is late.', "The cat It is late."),
        ('The cat<ph id="1">&lt;br/&gt;</ph>It is late.', "The cat It is late."),
        (
            '<x id="START_PARAGRAPH"/>a<x id="CLOSE_PARAGRAPH"/><x id="START_PARAGRAPH"/>b<x id="CLOSE_PARAGRAPH"/>',
            "a b",
        ),
        ('un<x id="START_BOLD_TEXT"/>do<x id="CLOSE_BOLD_TEXT"/>able', "undoable"),
    ],
)
def test_break_codes_separate_words(source, text):
    document = read_xliff(version_1(unit(source)))
    (line,) = document.lines()
    assert text_and_elements(line.text)[0] == text
    assert f">{source}</target>" in rendered_text(document, str)


def test_symfony_alternatives_stay_untranslated():
    content = version_1(unit("{0} none|]0,Inf[ some"), unit("Tom <x id='1'/> | Ann"), unit("Home | About"))
    document = read_xliff(content)
    assert lines_of(document) == ["Tom <0/> | Ann", "Home | About"]
    written, skipped = rendered(document, str)
    assert len(skipped) == 1 and "none" in content.split("\n")[skipped[0]]
    assert written.decode().count("<target") == 2


def test_texts_inside_codes_are_counted_as_skipped():
    code = '<ph id="1">&lt;img alt="<sub>the dog</sub>"&gt;</ph>'
    content = version_1(unit(f"See {code}"), unit(code), unit(f"Hi {code}", f"<target>Bon {code}</target>"))
    document = read_xliff(content)
    written, skipped = rendered(document, ["Voir <0/>"])
    assert f">Voir {code}</target>" in written.decode()
    lines = content.split("\n")
    assert [code in lines[number - 1] for number in skipped] == [True, True]


def test_cdata_is_translated_and_stays_cdata():
    content = version_1(
        unit("<![CDATA[I am tired.]]>"),
        unit("<![CDATA[<p>It is late.</p>]]>", "<target><![CDATA[]]></target>"),
        unit('Save <x id="1"/> <![CDATA[<b> & go]]>'),
        unit('Go <ph id="1"><![CDATA[<br>]]></ph>'),
        unit("<![CDATA[Open]]>", "<target><![CDATA[Ouvrir]]></target>"),
    )
    document = read_xliff(content)
    assert lines_of(document) == ["I am tired.", "<0>It is late.</0>", "Save <0/> <b> & go", "Go <0/>"]
    assert document.translated == 1
    written = rendered(document, ["a ]]> b", "<0>Tard.</0>", "Va <0/> <b> &", "Va <0/>"])[0]
    targets = [target.text or "" for target in etree.fromstring(written).iter("{*}target") if not len(target)]
    assert targets == ["a ]]> b", "<p>Tard.</p>", "Ouvrir"]
    assert "<![CDATA[<p>Tard.</p>]]></target>" in written.decode()


def segmented(*segments, target=None, definitions=""):
    """Return a unit as Trados writes it. The segments are numbered from 1."""
    marked = "".join(f'<mrk mtype="seg" mid="{n}">{text}</mrk> ' for n, text in enumerate(segments, 1))
    sides = f'<seg-source><g id="9">{marked}</g></seg-source>' + (f"<target>{target}</target>" if target else "")
    return unit("x", f"{sides}<sdl:seg-defs xmlns:sdl='s'>{definitions}</sdl:seg-defs>")


@pytest.mark.parametrize(
    "target",
    [
        None,
        '<g id="9"/>',
        '<mrk mtype="seg" mid="1"/>',
        '<g id="9"><mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"></mrk> <mrk mtype="seg" mid="3"/> </g>',
    ],
)
def test_segments_are_translated_separately(target):
    content = version_1(segmented('Go <x id="1"/>.', "Stop &amp; go.", "12", target=target))
    document = read_xliff(content)
    assert lines_of(document) == ["Go <0/>.", "Stop & go."]
    written = rendered_text(document, ["<0/> va.", "R & V."])
    assert (
        f'<target{NEW}><g id="9"><mrk mtype="seg" mid="1"><x id="1"/> va.</mrk> '
        '<mrk mtype="seg" mid="2">R &amp; V.</mrk> <mrk mtype="seg" mid="3">12</mrk> </g></target>'
    ) in written


def test_translated_and_locked_segments_are_preserved():
    definitions = '<sdl:seg id="1" conf="Translated"/><sdl:seg id="2" percent="0" /><sdl:seg id="3" locked="true"/>'
    target = "".join(f'<mrk mtype="seg" mid="{number}">{text}</mrk>\n' for number, text in enumerate(("Un", "", ""), 1))
    content = version_1(segmented("One", "Two", "Three", target=target, definitions=definitions))
    expected = content.replace(' percent="0"', "").replace(
        '<sdl:seg id="2"', '<sdl:seg conf="Draft" origin="mt" id="2"'
    )
    expected = expected.replace("<target>", f"<target{NEW}>").replace('mid="2"></mrk>', 'mid="2">TWO</mrk>')
    assert translated(content, str.upper) == expected
    assert list(xliff_pairs(content.encode(), "en", "fr")) == [("One", "Un")]


@pytest.mark.parametrize(
    "content",
    [
        version_1(segmented("One", "Two", target="Un. Deux.")),  # the translator has joined the segments
        version_1(unit("One", attributes=' m:locked="true" xmlns:m="m"')),
    ],
    ids=["joined segments", "locked unit"],
)
def test_translated_and_locked_units_are_preserved(content):
    assert translated(content, str.upper) == content


@pytest.mark.parametrize("text", ["Or ", "<![CDATA[Or ]]>"])
def test_text_outside_segments_disables_segments(text):
    content = version_1(unit("x", f'<seg-source>{text}<mrk mtype="seg" mid="1">one</mrk></seg-source>'))
    assert lines_of(read_xliff(content)) == ["Or <0>one</0>"]


def test_carriage_returns_of_line_ends_are_preserved():
    content = version_1(unit("Stop.\nGo.")).replace("\n", "\r\n")
    assert "STOP.\r\nGO.</target>" in translated(content, str.upper)
    assert "&#13;<x/>B" in translated(version_1(unit("a&#13;<x/>b")), str.upper)


def test_missing_version_and_target_language_are_accepted():
    content = version_1(unit("a"), language=' target-language=""').replace(' version="1.2"', "")
    expected = version_1(unit("a", f"\n        <target{NEW}>A</target>")).replace(' version="1.2"', "")
    expected = expected.replace(
        ' target-language="fr" datatype="plaintext"', ' datatype="plaintext" target-language="fr"'
    )
    assert translated(content, str.upper) == expected


def test_namespace_prefix_and_encoding_are_preserved():
    content = (
        '<?xml version="1.0" encoding="ISO-8859-1"?>\n<x:xliff version="1.2" '
        'xmlns:x="urn:oasis:names:tc:xliff:document:1.2">'
        '<x:file source-language="en" original="é" datatype="x"><x:body><x:trans-unit id="1"><x:source>a</x:source>'
        "</x:trans-unit></x:body></x:file></x:xliff>"
    )
    document = read_xliff(content.encode("latin-1"))
    written = rendered(document, ["é漢"])[0]
    assert f"<x:target{NEW}>é&#28450;</x:target>".encode("latin-1") in written
    assert b'target-language="fr"' in written


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_preserved(encoding):
    content = ("\ufeff" + version_1(unit("a")).replace("UTF-8", "UTF-16")).encode(encoding)
    assert f"<target{NEW}>b</target>" in rendered(read_xliff(content), ["b"])[0].decode(encoding)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (version_1(unit("a", "<target>b</target><target>c</target>")), "line 6: a second target in one trans-unit"),
        (version_1(unit("a"))[:-20], "is not well-formed XML"),
        ("<html/>", "is not XLIFF 1.2 or 2.x"),
        ('<xliff version="3.0"/>', "is not XLIFF 1.2 or 2.x"),
        (version_1('<trans-unit id="1"/>'), "line 5: a trans-unit without a source"),
        (version_1(unit("a")).replace(' source-language="en"', ""), "file has no source-language"),
        (
            version_1(unit("a"), language=' target-language="de"'),
            "is in en and de, and the model translates from en into fr",
        ),
        (version_2("<segment><source>a</source></segment>").replace('"en"', '"de"'), "is in de and fr, and the model"),
        (version_1(unit("a")).replace("<xliff", '<!DOCTYPE a [<!ENTITY b "c">]><xliff', 1), "declares entities"),
        (version_1(unit("&b;")), "is not well-formed XML: undefined entity"),
        (version_1(unit("é")).encode("latin-1"), "line 6 is invalid UTF-8; convert the file with: iconv"),
    ],
)
def test_read_xliff_reports_errors(content, message):
    with pytest.raises(InputError, match=message):
        read_xliff(content)


def test_xliff_pairs_yields_reviewed_targets():
    content = version_1(
        unit("&amp;Open", "<target>&amp;Ouvrir</target>"),
        unit('a <ph id="1">x</ph>b', '<target state="final">c <ph id="1">x</ph>d</target>'),
        unit("New", f"<target{NEW}>Nouveau</target>"),
        unit("None"),
    )
    assert list(xliff_pairs(content.encode(), "en", "fr")) == [("Open", "Ouvrir"), ("a b", "c d")]
    written = translated(version_2("<segment><source>a</source></segment>"))
    assert list(xliff_pairs(written.encode(), "en", "fr")) == []
    with pytest.raises(InputError, match="is in en and fr, not in de and fr"):
        list(xliff_pairs(content.encode(), "de", "fr"))


CHARACTERS = st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Z"))
WORDS = st.text(st.sampled_from("ab &<>\"'é漢\n") | CHARACTERS, min_size=1, max_size=12)


def escaped(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


INLINE = st.recursive(
    WORDS.map(escaped)
    | st.sampled_from(['<x id="1"/>', '<ph id="2">&lt;<sub>a</sub></ph>', '<bpt id="3">(</bpt>', '<ept id="3">)</ept>',
                       "<!-- c -->", "<![CDATA[<a>]]>", "<?p i?>", "&#233;", '<mrk mtype="protected">d</mrk>']),
    lambda inner: st.lists(inner, max_size=3).map("".join).flatmap(
        lambda text: st.sampled_from([f'<g id="4">{text}</g>', f"<mrk mtype='seg'>{text}</mrk>", text])
    ),
)  # fmt: skip


@given(st.lists(st.lists(INLINE, max_size=5).map("".join), max_size=4), st.data())
def test_translated_xliff_is_well_formed(sources, data):
    content = version_1(*map(unit, sources)).encode()
    document = read_xliff(content)
    copied, empty = rendered(document, str)
    assert not empty or re.search("<sub>|[|]", content.decode())
    for target in etree.fromstring(copied).iter("{*}target"):
        assert inner_xml(target) == inner_xml(target.getparent().find("{*}source"))
    written = rendered(document, lambda text: data.draw(WORDS))[0]
    before, after = (etree.fromstring(xml).iter("{*}source") for xml in (content, written))
    assert list(map(inner_xml, before)) == list(map(inner_xml, after))


def inner_xml(element):
    return etree.tostring(element, with_tail=False).split(b">", 1)[-1].rsplit(b"</", 1)[0]
