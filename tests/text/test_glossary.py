"""Reading glossaries from tables, and the messages on invalid ones."""

import gzip

import pytest

from mt.core.errors import InputError
from mt.text.glossary import read_terms


def write(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


@pytest.mark.parametrize(
    ("name", "content", "terms"),
    [
        ("a.tsv", "dog\tchien|le chien\tnote\n\ncat\t chat \n", {"dog": ("chien", "le chien"), "cat": ("chat",)}),
        ("a.tsv", "en\tfr\ndog\tchien\n", {"dog": ("chien",)}),
        ("a.csv", 'Source,Target,Notes\n"dog, black",chien,\n', {"dog, black": ("chien",)}),
        ("a.csv", "sep=;\ndog;chien\n", {"dog": ("chien",)}),
        ("a.tsv", "\ufeffdog\tchien\r\n", {"dog": ("chien",)}),
        ("a.tsv.gz", gzip.compress(b"dog\tchien", mtime=0), {"dog": ("chien",)}),
        ("a.tsv", "dog\tchien".encode("utf-16"), {"dog": ("chien",)}),
        ("a.tsv", "Acme\tAcme\n", {"Acme": ("Acme",)}),
        ("a.csv", "Acme,Acme\n", {"Acme": ("Acme",)}),
    ],
)
def test_read_terms_accepts_tables_with_any_separator(tmp_path, name, content, terms, caplog):
    assert read_terms(write(tmp_path, name, content), "en", "fr") == terms
    assert not caplog.records


@pytest.mark.parametrize(
    ("name", "content", "separators"),
    [
        ("a.tsv", "station = gare\ntrain = train\n\nAcme   Acme\n", "tabs"),
        ("a.txt", "Acme\nAcme Cloud\nstation gare\n", "tabs"),
        ("a.csv", "station = gare\nAcme\nAcme Cloud\n", "commas"),
    ],
)
def test_read_terms_warns_of_missing_second_column(tmp_path, caplog, name, content, separators):
    path = write(tmp_path, name, content)
    terms = read_terms(path, "en", "fr")
    assert all(forms == (term,) for term, forms in terms.items())
    assert [record.getMessage() for record in caplog.records] == [
        f"text.terms={path}: has one column, so its terms stay untranslated: 3. If it has translations, separate them "
        f"from the terms by {separators}"
    ]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "dog\tchien\n\tchat\n", "line 2: the term is empty"),
        ("a.tsv", "dog\t|\n", "line 1: the translation is empty"),
        ("a.tsv", "dog\tchien\ncat\n", "line 2: has one column, but the first line has two or more columns"),
        ("a.tsv", "dog\ncat\tchat\n", "line 2: has two or more columns, but the first line has one column"),
        (
            "a.tsv",
            "dog\tchien\ndog\tchien\ndog\tcabot\n",
            "line 3: 'dog' has another translation at .*line 1; .*chien|cabot",
        ),
        ("a.tsv", b"dog\tchien\n" * 9 + b"caf\xe9\tcaf\xe9\n", "line 10: the term is not UTF-8"),
        ("a.tsv", "café\tétage\n".encode("latin-1") * 30, "invalid UTF-8; .* iconv -f ENCODING -t UTF-8"),
        ("a.tsv", "{name}\tnom\n", "line 1: '{name}' has a link, tag or placeholder, or no letter"),
        ("a.tsv", "12\tdouze\n", "line 1: '12' has a link"),
        ("a.tsv", "x" * 501, "line 1: has more than 500 characters"),
        ("a.csv", 'dog,"chien\n', "line 1 is not valid CSV"),
        ("a.csv", "dog;chien\n", "no ',' between its columns; .* for a glossary, begin the file with the line sep=;"),
        ("a.docx", b"PK\x03\x04 ...", "is a zip archive .*docx"),
        ("a.tsv", b"PK\x03\x04 ...", "is a zip archive .*docx"),
        ("a.tsv", "\n", "the glossary has no terms"),
        ("a.json", "{}", r"unknown format \(begins with '{}'\); give a .tsv or .csv file"),
        ("a.tbx", "<tbx><text>", "unknown format"),
    ],
)
def test_read_terms_reports_invalid_files(tmp_path, name, content, message):
    path = write(tmp_path, name, content)
    with pytest.raises(InputError, match=message) as error:
        read_terms(path, "en", "fr")
    assert path in str(error.value)


def test_read_terms_without_file(tmp_path):
    assert read_terms(None, "en", "fr") == {}
    with pytest.raises(InputError, match=r"none\.tsv: no such file"):
        read_terms(str(tmp_path / "none.tsv"), "en", "fr")
