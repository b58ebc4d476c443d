"""DOCX and ODT: words are translated; formatting, links, notes, fields and other members are preserved."""

import io
import re
import zipfile
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.formats.document import Languages
from mt.formats.registry import detect_format, read_document
from tests.coded import lines_of, reader, rendered

read_docx, read_odt = reader("docx"), reader("odt")
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
STRICT = 'xmlns="http://purl.oclc.org/ooxml/wordprocessingml/main"'
ODF = (
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:x="urn:x" xmlns:style="urn:style"'
)


def archive(mimetype="x", **members):
    """Return a zip archive. Its members are named without their suffix .xml and with __ for /."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        file.writestr(zipfile.ZipInfo("mimetype", (2001, 2, 3, 4, 5, 6)), mimetype, zipfile.ZIP_STORED)
        for name, content in members.items():
            file.writestr(f"{name.replace('__', '/')}.xml", content, zipfile.ZIP_DEFLATED)
        file.writestr("image.png", b"\x89PNG\0\r\n", zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def docx(body, **members):
    return archive(word__document=f"<w:document {W}><w:body>{body}</w:body></w:document>", **members)


def odt(body, styles=""):
    content = f"<office:document {ODF}>{styles}<office:text>{body}</office:text></office:document>"
    return archive("application/vnd.oasis.opendocument.text", content=content)


def member(content, name):
    return zipfile.ZipFile(io.BytesIO(content)).read(name).decode()


def run(text, properties=""):
    rpr = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{rpr}<w:t xml:space="preserve">{text}</w:t></w:r>'


def translated(body, translations, read=read_docx):
    """Return the texts of a paragraph, its content after it was translated, and the untranslated paragraphs."""
    content = docx(f"<w:p>{body}</w:p>") if read is read_docx else odt(f"<text:p>{body}</text:p>")
    document = read(content)
    written, skipped = rendered(document, translations)
    xml = member(written, "word/document.xml" if read is read_docx else "content.xml")
    ElementTree.fromstring(xml)
    return lines_of(document), re.search(r"<(?:w|text):p>(.*)</(?:w|text):p>", xml)[1], skipped


def field(instruction, result):
    border = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
    begin = f"{border('begin')}<w:r><w:instrText> {instruction} </w:instrText></w:r>{border('separate')}"
    return begin, run(result), border("end")


def test_formatting_becomes_codes_and_runs_are_joined():
    language = '<w:lang w:val="en"/>'
    body = (
        f"<w:pPr><w:jc/></w:pPr>{run('The d', language)}<w:proofErr/>{run('og is ')}"
        f"{run('ve', '<w:b/>')}{run('ry', '<w:b/><w:noProof/>')}{run(' ', '<w:i/>')}{run('white &amp; old.')}"
    )
    found, xml, _ = translated(body, ["Le chien est <0>très\x0b </0>blanc < vieux."])
    assert found == ["The dog is <0>very </0>white & old."]
    assert xml == (f"<w:pPr><w:jc/></w:pPr>{run('Le chien est ')}{run('très ', '<w:b/>')}{run('blanc &lt; vieux.')}")


def test_longest_formatting_is_base():
    link = '<w:hyperlink r:id="3" xmlns:r="r">{}</w:hyperlink>'.format
    body = run("See ", "<w:b/>") + link(run("this dog", "<w:u/>")) + run(" here", "<w:b/>")
    found, xml, _ = translated(body, ["Vois <0><1>ce chien</1></0>"])
    assert found == ["See <0><1>this dog</1></0> here"]
    assert xml == run("Vois ", "<w:b/>") + link(run("ce chien", "<w:u/>"))


def test_content_control_is_a_pair_of_codes():
    control = "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>".format
    found, xml, _ = translated(run("A ") + control(run("dog")), ["<0>Chien</0> un"])
    assert found == ["A <0>dog</0>"] and xml == control(run("Chien")) + run(" un")


def test_tabs_and_breaks_separate_texts():
    body = f"<w:hyperlink><w:r><w:t>1</w:t><w:tab/><w:t>Dogs</w:t></w:r></w:hyperlink>{run('x')}<w:r><w:br/></w:r>"
    found, xml, _ = translated(body, ["Chiens", "y"])
    assert found == ["Dogs", "x"]
    tab = "<w:r><w:tab/></w:r>"
    assert xml == f"<w:hyperlink>{run('1')}{tab}{run('Chiens')}</w:hyperlink>{run('y')}<w:r><w:br/></w:r>"


def test_results_of_link_fields_are_translated():
    begin, result, end = field("HYPERLINK x", "dog")
    page = "".join(field("PAGE", "iv"))
    found, xml, _ = translated(f"{run('A ')}{begin}{result}{end}{run(' on ')}{page}", ["Sur <2/> un <0>chien</0>"])
    assert found == ["A <0>dog</0> on <2/>"]
    assert xml == f"{run('Sur ')}{page}{run(' un ')}{begin}{run('chien')}{end}"


def test_field_over_several_paragraphs_is_preserved():
    begin, _, end = field("TOC", "")
    entry = "".join(field("PAGEREF", "3"))
    content = docx(f"<w:p>{begin}<w:hyperlink>{run('Dogs')}{entry}</w:hyperlink></w:p><w:p>{end}{run('End')}</w:p>")
    document = read_docx(content)
    assert lines_of(document) == ["<0>Dogs<1/></0>", "End"]
    written = member(rendered(document, ["<0>Chiens<1/></0>", "Fin"])[0], "word/document.xml")
    expected = member(content, "word/document.xml")
    assert written == expected.replace("Dogs", "Chiens").replace("End<", "Fin<")


@pytest.mark.parametrize(
    "change",
    [
        f"<w:ins>{run('dogs')}</w:ins>",
        "<w:del><w:r><w:delText>cats</w:delText></w:r></w:del>",
        "<w:r><w:t><![CDATA[cats]]></w:t></w:r>",
    ],
)
def test_paragraphs_with_tracked_changes_stay_untranslated(change):
    content = docx(f"<w:p>{run('Hello')}</w:p><w:p>{run('Two ')}{change}</w:p>")
    document = read_docx(content)
    written, skipped = rendered(document, ["Salut"])
    assert skipped == [2] and document.unit == "paragraph"
    assert member(written, "word/document.xml") == member(content, "word/document.xml").replace("Hello", "Salut")


def test_members_without_text_are_preserved():
    paragraph = f"<w:p>{run('Hello')}</w:p>"
    members = {
        f"word__{name}": f"<w:x {W}>{paragraph}</w:x>" for name in ("header1", "footnotes", "comments", "styles")
    }
    content = docx(f"<w:tbl><w:tr><w:tc>{paragraph}</w:tc></w:tr></w:tbl>", **members)
    document = read_docx(content)
    assert lines_of(document) == ["Hello"] * 3
    before, after = (zipfile.ZipFile(io.BytesIO(data)) for data in (content, rendered(document, ["Salut"] * 3)[0]))
    for old, new in zip(before.infolist(), after.infolist(), strict=True):
        assert (old.filename, old.date_time, old.compress_type) == (new.filename, new.date_time, new.compress_type)
        is_translated = re.search("document|header1|footnotes", old.filename)
        assert after.read(new) == before.read(old).replace(b"Hello", b"Salut" if is_translated else b"Hello")


def test_text_box_is_a_separate_text():
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('box')}</w:p></w:txbxContent></w:pict></w:r>"
    found, xml, _ = translated(f"{run('dog')}{box}{run(' here')}", ["ici <0/>chien", "boîte"])
    assert found == ["dog<0/> here", "box"]
    assert xml == f"{run('ici ')}{box.replace('>box<', '>boîte<')}{run('chien')}"


def test_strict_document_in_utf_16_without_prefixes():
    text = f'<?xml version="1.0" encoding="UTF-16"?><document {STRICT}><p><r><t>Hello</t></r></p></document>'
    document = read_docx(archive(word__document=text.encode("utf-16")))
    written = zipfile.ZipFile(io.BytesIO(rendered(document, ["Señor"])[0])).read("word/document.xml")
    assert ElementTree.fromstring(written).find(".//{*}t").text == "Señor"


def test_namespace_with_two_prefixes():
    names = 'xmlns:o="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
    names += "".join(f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:text:1.0"' for name in ("t", "text"))
    xml = f"<o:document-content {names}><text:p>one dog</text:p><t:p>two dogs</t:p></o:document-content>"
    assert lines_of(read_odt(archive(content=xml))) == ["one dog", "two dogs"]


def test_odt_spans_links_and_notes_are_preserved():
    note = "<text:note><text:note-body><text:p>a note</text:p></text:note-body></text:note>"
    comment = "<office:annotation><dc:creator>me</dc:creator><text:p>no</text:p></office:annotation>"
    dog, here = '<text:span text:style-name="T1">dog</text:span>', '<text:a x:href="y">here</text:a>'
    body = f"The {dog}{note} is{comment} {here}.<text:tab/>End"
    translations = ["Ici <4>est</4><3/> <0>le chien</0><2/>.", "Fin", "une note"]
    found, xml, _ = translated(body, translations, read_odt)
    assert found == ["The <0>dog</0><2/> is<3/> <4>here</4>.", "End", "a note"]
    assert xml == (
        f'Ici <text:a x:href="y">est</text:a>{comment} <text:span text:style-name="T1">le chien</text:span>'
        f"{note.replace('a note', 'une note')}.<text:tab/>Fin"
    )


def test_odt_spans_of_editing_sessions_are_removed():
    styles = '<style:style style:name="T1"><style:text-properties x:rsid="1"/></style:style>'
    content = odt(
        '<text:h>Hel<text:span text:style-name="T1">lo</text:span> <text:a text:style-name="T1"/></text:h>', styles
    )
    document = read_odt(content)
    assert lines_of(document) == ["Hello <0></0>"]
    written = member(rendered(document, ["Salut <0></0>"])[0], "content.xml")
    assert '<text:h>Salut <text:a text:style-name="T1"/></text:h>' in written


def test_odt_tracked_changes_stay_untranslated():
    deleted = "<text:tracked-changes><text:deletion><text:p>gone</text:p></text:deletion></text:tracked-changes>"
    content = odt(f"{deleted}<text:p>Hello</text:p><text:p>Two <text:change/>dogs</text:p>")
    document = read_odt(content)
    assert lines_of(document) == ["Hello"]
    assert rendered(document, ["Salut"])[1] == [2]


def test_deeply_nested_paragraph_stays_untranslated():
    content = odt(f"<text:p>{'<text:span>' * 3000}dog{'</text:span>' * 3000}</text:p>")
    assert read_odt(content).render([])[1] == [1]


def with_flag(content):
    """Return an archive whose first member is marked as encrypted."""
    start = content.index(b"PK\x01\x02")
    return content[: start + 8] + b"\x01" + content[start + 9 :]


ENTITY = f'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><w:document {W}><w:p>{run("&e;")}</w:p></w:document>'
ENCRYPTED = archive(**{"META-INF__manifest": "<manifest:encryption-data/>", "content": "x"})


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not readable as DOCX: File is not a zip file; get a new copy"),
        (docx("").replace(b"mimetype", b"mimetypf", 1), "is not readable as DOCX"),
        (b"\xd0\xcf\x11\xe0" + b"\0" * 99, "is an old document or has a password; save it as DOCX without a password"),
        (with_flag(docx("")), "has a password; save it"),
        (ENCRYPTED, "has a password; save it"),
        (archive(content="<x/>"), "is not DOCX: it has no member with the text"),
        (archive(word__document=ENTITY), r"word/document.xml: declares entities"),
        (archive(word__document="<x"), r"word/document.xml: is not well-formed XML"),
        (archive(word__document="<x/>"), r"word/document.xml: its element x does not declare the namespace"),
        (docx(" " * 5_000_000), r"unpacks from \d+,\d+ to 5,0\d\d,\d+ bytes, more than a document may have"),
    ],
)
def test_read_docx_reports_errors(content, message):
    with pytest.raises(InputError, match=message):
        read_docx(content)


@pytest.mark.parametrize(
    ("suffix", "content"), [("docx", docx(f"<w:p>{run('a')}</w:p>")), ("odt", odt("<text:p>a</text:p>"))]
)
def test_read_document_accepts_archives(tmp_path, suffix, content):
    path = tmp_path / f"in.{suffix}"
    path.write_bytes(content)
    assert lines_of(read_document(path, detect_format(path), Languages("en", "fr"), retranslate=False)) == ["a"]


def test_large_document_is_refused(monkeypatch):
    monkeypatch.setattr("mt.formats.office.MAX_DOCUMENT_BYTES", 2000)
    assert not read_docx(docx("x" * 1000)).passages
    with pytest.raises(InputError, match="unpacks from [0-9,]+ to 2,1[0-9]+ bytes, more than a document may have"):
        read_docx(docx("x" * 2000))


INLINE = st.sampled_from(
    [
        run("dog "), run("cat"), run(" a &amp; b", "<w:b/>"), run(" ", "<w:i/>"), run("7", "<w:i/>"),
        "<w:bookmarkStart/>", "<w:r><w:tab/></w:r>", "<w:r><w:t>e</w:t><w:br/><w:drawing/></w:r>",
        *field("REF x", "ref"), *field("PAGE", "12"), "<w:hyperlink>{}</w:hyperlink>",
        "<w:sdt><w:sdtPr/><w:sdtContent>{}</w:sdtContent></w:sdt>", "<w:footnoteReference/>",
    ]
)  # fmt: skip


@given(st.lists(INLINE, max_size=9), st.lists(INLINE, max_size=4))
def test_translated_docx_preserves_codes(outer, inner):
    content = docx("<w:p>{}</w:p>".format("".join(outer).replace("{}", "".join(inner).replace("{}", ""))))
    document = read_docx(content)
    assert rendered(document, str)[0] == document.encode(document.text)
    written, skipped = rendered(document, str.upper)
    assert not skipped
    old, new = (ElementTree.fromstring(member(data, "word/document.xml")) for data in (content, written))

    def codes(root):
        return [element.tag for element in root.iter() if not element.tag.endswith(("}r", "}t", "}rPr", "}b", "}i"))]

    assert codes(old) == codes(new)
    words = "".join(old.itertext()), "".join(new.itertext())
    assert words[0].upper() == words[1].upper()
