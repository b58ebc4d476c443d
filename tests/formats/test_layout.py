"""Layout: texts are cut into lines, and their translations are joined again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.core.coded_text import CodedText
from mt.formats.layout import (
    cut_paragraphs,
    insert_accelerator,
    insert_breaks,
    looks_like_html,
    remove_accelerator,
)
from mt.formats.tags import coded_markup


def lines(text, **options):
    return [line.text.written() for line in cut_paragraphs(text, **options).lines]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One.\nTwo.\n", ["One.", "Two."]),
        ("File\nEdit", ["File", "Edit"]),
        ("A sentence that is so long that it continues\nin the next line.\nAnother.", [
            "A sentence that is so long that it continues in the next line.", "Another."
        ]),
        ("Open\tCtrl+O", ["Open"]),
        ("Zoom\tF11", ["Zoom"]),
        ("  -v, --verbose    say more", ["say more"]),
        ("  -o, --output=FILE   where to write", ["where to write"]),
        ("  -D,  --domains=LIST      list of domains", ["list of domains"]),
        ("  -e|--control <deb> [<folder>] Extract files.", ["Extract files."]),
        ("  -A|--avail  <deb name>... | -R|--all <folder>...\n", []),
        ("  -x, --extract <name>.dsc [<folder>]\n        extract it.", ["extract it."]),
        ("  -g, --build=any,all      any and all", ["any and all"]),
        ("  --hook-<name>=<command> set <command> as the hook", ["set <command> as the hook"]),
        ("  -M, --members USER,...   set the list", ["set the list"]),
        ("  -u, --user LOGIN/RANGE   show records", ["show records"]),
        ("-p I<package> / --package I<package>", []),
        (" -o mdoc=NAME,SYNOPSIS,DESCRIPTION", []),
        ("-o <file> is written", ["-o <file> is written"]),
        ("--update given but missing", ["--update given but missing"]),
        ("Two  blanks", ["Two  blanks"]),
        ("\n \t", []),
        ("", []),
        ('<a href="x"\n  title="y">here</a>', ['<a href="x" title="y">here</a>']),
    ],
)  # fmt: skip
def test_cut_paragraphs_separates_texts(text, expected):
    assert lines(text) == expected


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("As soon as the box of old books has come,\nI will open it for you.", 1),
        ("We could not send the letter with your photos to\n%s because there is no stamp on it and\nno address.", 1),
        ("The boat that you have seen leaves the island at\n\t7 o'clock in the evening.", 1),
        ("Somebody has shown me that nobody ever opened\r\n<b>the blue door</b> before.", 1),
        ("The woman who sold us this old boat went back to live in\nLeeds with her brother.", 1),
        ("She read the long letter that came from Dr.\nMiller, who never\nwrote again.", 1),
        ("Open the box\nand look at it\ncarefully", 1),
        ("we could not open the big box because\nthe key is lost", 1),
        ("This document cannot be opened from this folder\nPlease choose another one.", 2),
        ("We went to the island by boat, where we saw\nthe old house that stands beside a tree\n \n%s.", 2),
        ("We went to the island by boat, where we saw\n- the old house.", 2),
        ("We went to the island by boat, where we saw\nthe house and all of these other things:\n%s from the sea.", 2),
        ("We went to the island by boat, where we saw\nthe house   the tree.", 3),
        ("We went to the island and back in one day by the old boat.\nThe house stands by the sea.\nIt is green.", 3),
        ("The house on the island that nobody has ever seen before\nThe boat that went there", 2),
        ("Open the box.\nlook at it", 2),
        ("The boat went slowly to the island in the night,\nWhile all the people of the village slept,\n"
         "And nobody has ever seen it come back home,\nThough many waited at the shore and wept.", 4),
        ("Ann Miller\n5 Green Street\nLeeds", 3),
        ("%s is not a valid name for a boat of the town\n%s is not a valid name for the island\nand its house.", 2),
        ("We went to the island by boat, where we saw\n%s from the sea and all of the old trees\nthe house", 2),
        ("HOME\n  the folder of the user", 2),
        ("push\npull\nclone a folder", 3),
    ],
)  # fmt: skip
def test_cut_paragraphs_joins_wrapped_lines(text, count):
    assert len(lines(text)) == count


@pytest.mark.parametrize("text", ["-pI<x>, ", "--a=x/", "-o a/", "-a [x] ", "-a ", "-a<", "a\n", "a   \n  "])
def test_cut_paragraphs_takes_linear_time(text):
    """With the square of the length, it would take minutes."""
    assert cut_paragraphs(text * 20_000 + " !").lines


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one\n  two\nthree", "one two three"),
        ("一二\n三四", "一二三四"),
        ("a\tb   c", "a\tb   c"),
        ("one\n\t\ttwo\n \tthree", "one two three"),
    ],
)
def test_cut_paragraphs_joins_lines_of_flowing_text(text, line):
    assert lines(text, flows=True) == [line]


def test_restore_wraps_translation_at_similar_point():
    layout = cut_paragraphs("Title\n\nThis is a sentence of a few words\nthat continues here.")
    assert [line.text.text for line in layout.lines][1] == "This is a sentence of a few words that continues here."
    translations = [CodedText("Titre"), CodedText("Voici une phrase de quelques mots qui continue ici.")]
    assert layout.restore(translations).text == "Titre\n\nVoici une phrase de quelques mots\nqui continue ici."


@pytest.mark.parametrize(
    ("text", "breaks", "expected"),
    [
        ("漢字漢字漢字", [(0.5, "\n")], "漢字漢\n字漢字"),
        ("word", [(0.5, "\n")], "word"),
        ("a b c d", [(0.9, "\n"), (0.9, "\n\n")], "a b\nc\n\nd"),
        ("a b", [(0.1, "\n"), (0.9, "\n\n")], "a\nb"),
        ("a - b", [(0.4, "\n")], "a -\nb"),
        ('<a title="x y">b</a> c', [(0.3, "\n")], '<a title="x y">b</a>\nc'),
    ],
)
def test_insert_breaks(text, breaks, expected):
    assert insert_breaks(coded_markup(text, "html"), breaks).written() == expected


@pytest.mark.parametrize(
    ("line", "is_html"),
    [
        ("a <b>c</b>", True), ("a <b>c</b> &amp; d", True), ("a <b>c</b> & d", False), ("a < b </b>", False),
        ("<b>c", False), ("a", False), ("1 < 2 <i>c</i>", False), ("<br/> a", False),
    ],
)  # fmt: skip
def test_looks_like_html(line, is_html):
    assert looks_like_html(line) == is_html
    assert cut_paragraphs(line).lines[0].is_plain != is_html


@given(
    st.text(st.sampled_from("ab .-\n\t\r\u2028<>/漢") | st.characters(codec="utf-8")),
    st.booleans(),
)
def test_restore_preserves_copied_lines(text, flows):
    layout = cut_paragraphs(text, accelerators=True, flows=flows)
    sources = [line.text for line in layout.lines]
    assert layout.restore(sources) == CodedText(text)
    assert all(source.written().strip() and len(source.written().splitlines()) == 1 for source in sources)


@pytest.mark.parametrize(
    ("text", "without", "translation", "expected"),
    [
        ("&File", "File", "Fichier", "&Fichier"),
        ("Save _As…", "Save As…", "Sous un autre nom…", "Sous un _autre nom…"),
        ("E_xit", "Exit", "Quitter", "_Quitter"),
        ("&Print %s", "Print %s", "%s imprimer", "%s im&primer"),
        ("_Open…", "Open…", "打开…", "打开(_O)…"),
        ("&File", "File", "Файл", "&Файл"),
    ],
)
def test_insert_accelerator_marks_key_of_translation(text, without, translation, expected):
    found, accelerator = remove_accelerator(text)
    assert found == without and accelerator
    assert insert_accelerator(accelerator, translation) == expected


@pytest.mark.parametrize(
    "text",
    ["AT&T", "R&D", "file_name", "set _id", "a & b", "_init_", "Tom &amp; Jerry", "snake_case_name",
     "This is it. &Yes.", "Black&White", "&One &Two", "100_000"],
)  # fmt: skip
def test_remove_accelerator_ignores_other_symbols(text):
    assert remove_accelerator(text) == (text, None)
