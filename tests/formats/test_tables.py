"""Tables: every format yields the same pairs, and rows that cannot be read are counted."""

import csv
import gzip
import json
import re

import pyarrow
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from mt.core.errors import InputError
from mt.data.pairs import pairs_table, side_texts
from mt.formats.registry import PAIR_READERS, pair_suffix
from tests.data.corpora import PAIRS, config, load, write, write_files

SENTENCES = [(f"Satz {n}", f"sentence {n}") for n in range(30)]


def read(path, columns=("de", "en"), **options):
    return list(PAIR_READERS[pair_suffix(path)](path, columns, **options))


def read_without_errors(*arguments, **options):
    for row in read(*arguments, **options):
        if isinstance(row, InputError):
            raise row


def cell(text):
    return '"' + text.replace('"', '""') + '"'


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("suffix", ["tsv", "csv", "tsv.gz"])
def test_tsv_and_csv_columns_by_name_or_number(tmp_path, suffix, named):
    rows = [[target, "note", source] for source, target in PAIRS]
    rows = [["english", "note", "german"], *rows] if named else rows
    lines = ["\t".join(row) if "tsv" in suffix else ",".join(map(cell, row)) for row in rows]
    path = tmp_path / f"train.{suffix}"
    write(path, lines)
    if suffix.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert read(path, ("german", "english") if named else (2, 0)) == PAIRS


def test_tsv_carriage_returns_and_quotes_are_text(tmp_path):
    long = "x " * 40_000
    pairs = [(f"a\rb{long}", long), ('"offen', 'never closed"'), ('""', '"a" b')]
    write(tmp_path / "a.tsv", ["\t".join(pair) for pair in pairs])
    assert read(tmp_path / "a.tsv", (0, 1)) == pairs


@pytest.mark.parametrize("quoting", [csv.QUOTE_ALL, csv.QUOTE_MINIMAL])
@pytest.mark.parametrize("special", ['ein "Haus"', "ein\tHaus", "ein\nHaus"])
def test_quoted_tsv_is_read_as_csv(tmp_path, caplog, special, quoting):
    caplog.set_level("INFO")
    pairs = [*SENTENCES, (special, '"a" house')]
    with (tmp_path / "a.tsv").open("w", newline="") as file:
        csv.writer(file, delimiter="\t", quoting=quoting).writerows([("de", "en"), *pairs])
    assert read(tmp_path / "a.tsv") == pairs
    assert "a.tsv: its cells are quoted, so it is read by the rules of CSV" in caplog.text


QUOTATIONS = [(cell(source), f'{cell(target)}, said "X".') for source, target in SENTENCES]
LONG_QUOTATIONS = [*SENTENCES, ('"eins', "one"), ('zwei"', "two"), ('"drei"', '"three"')]


@pytest.mark.parametrize("pairs", [QUOTATIONS, LONG_QUOTATIONS], ids=["in each row", "over several rows"])
def test_tsv_quotations_are_text(tmp_path, pairs):
    write(tmp_path / "a.tsv", map("\t".join, pairs))
    assert read(tmp_path / "a.tsv", (0, 1)) == pairs


def test_tsv_with_one_quoted_column_is_read_as_csv(tmp_path):
    write(tmp_path / "a.tsv", [f"{source}\t{cell(target)}" for source, target in SENTENCES])
    assert read(tmp_path / "a.tsv", (0, 1)) == SENTENCES


def test_jsonl_invalid_unicode_is_counted(tmp_path):
    rows = [b'{"de": "\\ud800", "en": "a"}', b'{"de": "\xff", "en": "a"}', b'{"de": null, "en": "a"}', b""]
    write(tmp_path / "a.jsonl", [*rows, b'{"de": "a", "en": "\\ud83d\\ude00"}'])
    table = pairs_table(read(tmp_path / "a.jsonl"))
    assert table["fault"].to_pylist() == ["not UTF-8", "not UTF-8", "empty", "empty", ""]
    assert side_texts(table)[1][-1] == "\U0001f600"


@pytest.mark.parametrize(("sources", "targets"), [(7, 5), (5, 7)])
def test_files_of_different_lengths_are_refused(tmp_path, sources, targets):
    files = write(tmp_path / "a.de", ["a"] * sources), write(tmp_path / "a.en", ["a"] * targets)
    with pytest.raises(InputError, match=f"a.de has {sources} lines but .*a.en has {targets}"):
        load(kind="files", train=files)


@pytest.mark.parametrize(
    ("name", "lines", "columns", "message"),
    [
        ("a.tsv", ["a\tb", "c"], (0, 1), "a.tsv: line 2 has 1 columns"),
        ("a.tsv", ["german\tenglish", "a\tb"], ("germn", "english"), "did you mean german"),
        ("a.tsv", [], ("de", "en"), "a.tsv"),
        ("a.csv", ["hallo,hello"], ("de", "en"), "no column 'de' among hallo, hello .*column numbers from 0"),
        ("a.csv", ["a,b", "c,d, e"], (0, 1), "a.csv: line 2 has 3 columns but the first has 2"),
        ("a.csv", ['"a,b'], (0, 1), "a.csv: line 1 is"),
        ("a.csv", ["sep=;", "de;en", "a"], ("de", "en"), "line 3 has 1 columns but the first has 2"),
        ("a.jsonl", ["1"], ("de", "en"), "a.jsonl: line 1: must be a JSON object or array"),
        ("a.jsonl", ['{"de": "a", "en": 5}'], ("de", "en"), "line 1: de and en must be text"),
        ("a.jsonl", ['{"de": "a", "eng": "b"}'], ("de", "en"), "no column 'en' among de, eng; did you mean eng"),
        ("a.jsonl", ['{"de": "a", "en": ' + "1" * 5000 + "}"], ("de", "en"), "a.jsonl: line 1 cannot be read"),
        ("a.jsonl", ['["x"]'], ("de", "en"), "a.jsonl: line 1: no column 'de' among 0"),
        ("a.jsonl", ['{"de": "a", "en": "b"}', "[" * 100_000], ("de", "en"), "line 2 is nested too deeply"),
        ("a.jsonl", ['{"de": "a", "translation": "b"}'], ("de", "en"), "no column 'en' among de, translation"),
        ("a.json", ['{"data": []}'], ("de", "en"), "a.json: must be a JSON array of pairs"),
        ("a.json", ['[{"de": "x", "en": "y"}, {"de": "x"}]'], ("de", "en"), "item 2: no column 'en' among de"),
        ("a.json", ["["], ("de", "en"), "a.json is not valid JSON"),
    ],
)
def test_table_errors_name_line_and_column(tmp_path, name, lines, columns, message):
    write(tmp_path / name, lines)
    with pytest.raises(InputError, match=message):
        read_without_errors(tmp_path / name, columns)


def test_corrupted_parquet_is_reported(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"de": list(map(str, range(2000))), "en": ["a"] * 2000}), path)
    content = bytearray(path.read_bytes())
    content[2000:2060] = b"\xff" * 60
    path.write_bytes(content)
    with pytest.raises(InputError, match="a.parquet: cannot be read"):
        read(path)


@pytest.mark.parametrize(
    ("names", "values", "message"),
    [
        (["de", "en", "en"], ["a", "b", "c"], "a.parquet: cannot be read"),
        (["de", "en"], ["a", 1], "en: the values are int64, not text"),
        (["de", "fr"], ["a", "b"], "no column 'en' among de, fr"),
    ],
)
def test_parquet_columns_must_be_text(tmp_path, names, values, message):
    table = pyarrow.Table.from_arrays([pyarrow.array([value]) for value in values], names=names)
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.parquet")


def test_line_breaks_in_parquet_become_spaces(tmp_path):
    parquet.write_table(pyarrow.table({"de": ["eins\nzwei"], "en": ["one\r\ntwo\nthree"]}), tmp_path / "a.parquet")
    assert side_texts(pairs_table(read(tmp_path / "a.parquet"))) == (["eins zwei"], ["one two three"])


PAIR = {"de": "gut", "en": "good"}


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        (PAIR, ("de", "en")),
        ({"de": "schlecht", "translation": PAIR}, ("de", "en")),
        (PAIR | {"translation": {"de": "innen", "en": "inside"}}, ("de", "en")),
        (["gut", "note", "good"], (0, 2)),
    ],
    ids=["object", "translation", "object before translation", "array"],
)
def test_json_and_jsonl_rows(tmp_path, row, columns):
    write(tmp_path / "a.json", [json.dumps([row, row], indent=1)])
    write(tmp_path / "a.jsonl", [json.dumps(row)] * 2)
    assert read(tmp_path / "a.json", columns) == read(tmp_path / "a.jsonl", columns) == [("gut", "good")] * 2


def test_corpus_without_pairs_is_refused(tmp_path):
    with pytest.raises(InputError, match="no pairs found"):
        load(kind="files", train=write_files(tmp_path, []))


def test_corpus_too_small_for_held_out_pairs_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"data\.valid"):
        load(kind="files", train=write_files(tmp_path, [("a", "b")] * 3))


@pytest.mark.parametrize("delimiter", [";", "|", "\t"])
def test_csv_delimiter(tmp_path, delimiter):
    path = tmp_path / "a.csv"
    write(path, [f"de{delimiter}en", f'"Eins; |"{delimiter}One'])
    assert read(path, delimiter=delimiter) == [("Eins; |", "One")]
    with pytest.raises(
        InputError, match=re.escape(f"no ',' between its columns; set \"data.delimiter={delimiter!r}\"")
    ):
        read(path)


@pytest.mark.parametrize("first", ["sep=;", '"SEP=;"\r', "sep=\t"])
def test_csv_delimiter_of_excel_header(tmp_path, first):
    delimiter = first.strip('"\r')[-1]
    write(tmp_path / "a.csv", [first, f"de{delimiter}en", f"Eins{delimiter}One"])
    assert read(tmp_path / "a.csv") == [("Eins", "One")]


@pytest.mark.parametrize("delimiter", ["", ";;", "\n", '"'])
def test_delimiter_must_be_one_character(delimiter):
    assert config(kind="table", train="a.csv", delimiter=r"\t").delimiter == "\t"
    with pytest.raises(ValidationError, match="must be a single character"):
        config(kind="table", train="a.csv", delimiter=delimiter)


def test_delimiter_needs_a_csv_file(tmp_path):
    write(tmp_path / "a.tsv", ["de\ten", "a\tb"])
    with pytest.raises(InputError, match="data.delimiter: none of the files is .csv"):
        load(kind="table", train=str(tmp_path), delimiter=";")
    write(tmp_path / "a.csv", [f"{source};{target}" for source, target in [("de", "en"), *PAIRS]])
    assert len(load(kind="table", train=str(tmp_path), delimiter=";", valid_pairs=1, test_pairs=1).train) == 39


@pytest.mark.parametrize(
    ("name", "head", "row", "bad", "message"),
    [
        ("a.tsv", "de\ten\n", "Satz {n}\tsentence {n}\n", "no tab\n", "line 12 has 1 columns"),
        ("a.csv", "de,en\n", "Satz {n},sentence {n}\n", "a, b, c\n", "line 12 has 3 columns but the first has 2"),
        ("a.jsonl", "", '{{"de": "Satz {n}", "en": "sentence {n}"}}\n', '{"de": "x"}\n', "line 11: no column 'en'"),
    ],
)
def test_skip_bad_rows_counts_rows(tmp_path, name, head, row, bad, message, caplog):
    rows = [row.format(n=n) for n in range(30)]
    path = tmp_path / name
    path.write_text(head + "".join([*rows[:10], bad, *rows[10:20], bad, *rows[20:]]))
    options = {"kind": "table", "train": str(path), "valid_pairs": 1, "test_pairs": 1}
    with pytest.raises(InputError, match=f"(?s){message}.*data.skip_bad_rows=true"):
        load(**options)
    for _ in range(2):  # from the file, and from the cache
        caplog.clear()
        corpus = load(**options, skip_bad_rows=True)
        assert (len(corpus.train), corpus.report[0].dropped["unreadable"]) == (28, 2)
        assert f"{path}: 2 of 32 rows cannot be read and are skipped; the first: {message}" in caplog.text


def test_checksum_of_table_with_bad_rows_is_independent_of_its_name(tmp_path):
    lines = ["de\ten", *map("\t".join, SENTENCES), "no tab"]
    paths = [write(tmp_path / name, lines) for name in ("a.tsv", "b.tsv")]
    corpora = [load(kind="table", train=path, skip_bad_rows=True, valid_pairs=1, test_pairs=1) for path in paths]
    assert corpora[0].checksums == corpora[1].checksums


def test_skip_bad_rows_refuses_mostly_bad_files(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("de,en\n" + "a, b; c, d\n" * 16 + "a,b\n" * 15)
    message = r"a.csv: 16 of 31 rows cannot be read.* the first: line 2 has 3 columns.* data.delimiter=','"
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            load(kind="table", train=str(path), skip_bad_rows=True, valid_pairs=1, test_pairs=1)
