"""The same pairs from every format: none torn apart, and none lost without being counted."""

import csv
import gzip
import json
import re

import pyarrow
import pytest
from pyarrow import parquet
from pydantic import ValidationError

from mt.core.errors import InputError
from tests.data.corpora import PAIRS, load, texts, write, write_files


def cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("suffix", ["tsv", "csv", "tsv.gz"])
def test_separated_columns(tmp_path, suffix, named):
    rows = [[target, "note", source] for source, target in PAIRS]
    rows = [["english", "note", "german"], *rows] if named else rows
    lines = ["\t".join(row) if "tsv" in suffix else ",".join(map(cell, row)) for row in rows]
    path = tmp_path / f"train.{suffix}"
    write(path, lines)
    if suffix.endswith(".gz"):
        path.write_bytes(gzip.compress(path.read_bytes()))
    columns = ("german", "english") if named else (2, 0)
    corpus = load(kind="table", train=str(path), source_column=columns[0], target_column=columns[1])
    every_pair = texts(corpus.train) + texts(corpus.valid) + texts(corpus.test)
    assert sorted(every_pair) == sorted(PAIRS)


def test_a_carriage_return_in_a_long_line_ends_no_line(tmp_path):
    long = "x " * 40_000
    path = write(tmp_path / "a.tsv", [f"a\rb{long}\t{long}", *("\t".join(pair) for pair in PAIRS)])
    splits = {split: path for split in ("train", "valid", "test")}
    corpus = load(kind="table", source_column=0, target_column=1, **splits)
    assert texts(corpus.valid)[0] == (f"a b{long}", long)


def test_quotes_in_tsv_are_text(tmp_path):
    pairs = [('"offen', 'never closed"'), ('""', '"a" b'), *PAIRS]
    path = write(tmp_path / "train.tsv", ["\t".join(pair) for pair in pairs])
    splits = {split: write(tmp_path / f"{split}.tsv", ["a\tb"]) for split in ("valid", "test")}
    assert texts(load(kind="table", train=path, source_column=0, target_column=1, **splits).train) == pairs


def test_values_lose_their_line_breaks(tmp_path):
    broken = ("eins\nzwei", "one\r\ntwo\nthree")
    rows = [{"de": source, "en": target} for source, target in [broken, *PAIRS]]
    write(tmp_path / "train.jsonl", [json.dumps(row) for row in rows])
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "train.parquet")
    with (tmp_path / "train.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["de", "en"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    for suffix in ("jsonl", "parquet", "csv"):
        splits = {split: str(tmp_path / f"train.{suffix}") for split in ("train", "valid", "test")}
        corpus = load(kind="table", source_column="de", target_column="en", **splits)
        for pairs in (corpus.train, corpus.valid, corpus.test):
            assert texts(pairs) == [("eins zwei", "one two three"), *PAIRS]


def test_json_that_is_no_text_in_utf_8(tmp_path):
    rows = [b'{"de": "\\ud800", "en": "a"}', b'{"de": "\xff", "en": "a"}', b'{"de": null, "en": "a"}', b""]
    path = write(tmp_path / "a.jsonl", [*rows, b'{"de": "a", "en": "\\ud83d\\ude00"}'])
    corpus = load(kind="table", train=path, valid=path, test=path, source_column="de", target_column="en")
    assert texts(corpus.train) == [("a", "\U0001f600")]
    assert corpus.report[0].dropped == {"not UTF-8": 2, "empty": 2}


def test_different_lengths_name_both_counts(tmp_path):
    for source, target in ((7, 5), (5, 7)):
        files = write(tmp_path / "a.de", ["a"] * source), write(tmp_path / "a.en", ["a"] * target)
        with pytest.raises(InputError, match=f"a.de has {source} lines but .*a.en has {target}"):
            load(kind="files", train=files)


def test_missing_empty_and_useless_files(tmp_path):
    with pytest.raises(InputError, match="data.train: .*gone.de: no such file"):
        load(kind="files", train=(str(tmp_path / "gone.de"), str(tmp_path / "gone.en")))
    with pytest.raises(InputError, match="it has no pairs"):
        load(kind="files", train=write_files(tmp_path, []))
    with pytest.raises(InputError, match="none of 3 train pairs can be used: 3 empty"):
        load(kind="files", train=write_files(tmp_path, [("", "a")] * 3))
    with pytest.raises(InputError, match=r"data\.valid"):
        load(kind="files", train=write_files(tmp_path, [("a", "b")] * 3))


@pytest.mark.parametrize(
    ("name", "lines", "columns", "message"),
    [
        ("a.tsv", ["a\tb", "c"], (0, 1), "a.tsv: line 2 has 1 columns"),
        ("a.tsv", ["german\tenglish", "a\tb"], ("germn", "english"), "did you mean german"),
        ("a.csv", ["hallo,hello"], ("de", "en"), "no column 'de' among hallo, hello .*column numbers from 0"),
        ("a.csv", ["a,b", "c,d, e"], (0, 1), "a.csv: line 2 has 3 columns but the first has 2"),
        ("a.csv", ['"a,b'], (0, 1), "a.csv: line 1 is no CSV"),
        ("a.jsonl", ["1"], ("de", "en"), "a.jsonl: line 1: is no JSON object or array"),
        ("a.jsonl", ['{"de": "a", "en": 5}'], ("de", "en"), "line 1: de and en must be text"),
        ("a.jsonl", ['{"de": "a", "eng": "b"}'], ("de", "en"), "no column 'en' among de, eng; did you mean eng"),
        ("a.jsonl", ['{"de": "a", "en": ' + "1" * 5000 + "}"], ("de", "en"), "a.jsonl: line 1 cannot be read"),
        ("a.jsonl", ['["x"]'], ("de", "en"), "a.jsonl: line 1: no column 'de' among 0"),
        ("a.jsonl", ['{"de": "a", "en": "b"}', "[" * 100_000], ("de", "en"), "line 2 is nested too deeply"),
        ("a.json", ['{"data": []}'], ("de", "en"), "a.json: is no JSON array of pairs"),
        ("a.json", ["[1]"], ("de", "en"), "a.json: item 1: is no JSON object or array"),
        ("a.json", ['[{"de": "x", "en": "y"}, {"de": "x"}]'], ("de", "en"), "item 2: no column 'en' among de"),
        ("a.json", ['[{"de": "x", "en": 5}]'], ("de", "en"), "a.json: item 1: de and en must be text"),
        ("a.json", ["["], ("de", "en"), "a.json is no JSON"),
        ("a.xlsx", ["text"], ("de", "en"), "rename it so that it ends in .tsv, .csv, .json, .jsonl, .parquet"),
        ("a.tsv", [], ("de", "en"), "a.tsv"),
    ],
)
def test_broken_tables(tmp_path, name, lines, columns, message):
    path = write(tmp_path / name, lines)
    with pytest.raises(InputError, match=message):
        load(kind="table", train=path, source_column=columns[0], target_column=columns[1])


def test_damaged_parquet_is_named(tmp_path):
    path = tmp_path / "a.parquet"
    rows = {side: [f"{side} {number * 7919}" for number in range(2000)] for side in ("de", "en")}
    parquet.write_table(pyarrow.table(rows), path)
    content = bytearray(path.read_bytes())
    content[2000:2060] = b"\xff" * 60
    path.write_bytes(content)
    with pytest.raises(InputError, match="a.parquet: cannot be read"):
        load(kind="table", train=str(path), source_column="de", target_column="en")
    parquet.write_table(pyarrow.Table.from_arrays([pyarrow.array(["a"])] * 3, names=["de", "en", "en"]), path)
    with pytest.raises(InputError, match="a.parquet: cannot be read"):
        load(kind="table", train=str(path), source_column="de", target_column="en")


def test_parquet_columns_must_be_text(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"de": ["a"], "en": [1]}), path)
    with pytest.raises(InputError, match="en: the values are int64, not text"):
        load(kind="table", train=str(path), source_column="de", target_column="en")
    with pytest.raises(InputError, match="no column 'fr' among de, en"):
        load(kind="table", train=str(path), source_column="de", target_column="fr")


def test_columns_of_jsonl_are_those_of_the_row_or_else_of_its_translation(tmp_path):
    columns = {"source_column": "de", "target_column": "en"}

    def read(row: dict[str, object]) -> list[tuple[str, str]]:
        path = write(tmp_path / "pairs.jsonl", [json.dumps(row)])
        return texts(load(kind="table", train=path, valid=path, test=path, **columns).train)

    inner = {"de": "innen", "en": "inside"}
    assert read({"translation": inner}) == [("innen", "inside")]
    assert read({"de": "gut", "translation": inner}) == [("innen", "inside")]
    assert read({"de": "gut", "en": "good", "translation": inner}) == [("gut", "good")]
    with pytest.raises(InputError, match=r"pairs\.jsonl: line 1: .*no column 'en' among de, translation"):
        read({"de": "gut", "translation": "good"})


@pytest.mark.parametrize(("delimiter", "typed"), [(";", ";"), ("|", "|"), ("\t", "\t"), ("\t", r"\t")])
def test_csv_with_other_delimiters(tmp_path, delimiter, typed):
    cells = delimiter.join
    path = tmp_path / "a.csv"
    path.write_text(f"{cells(['de', 'en'])}\n" + "".join(cells([f'"Eins, {n}; |"', f"One {n}\n"]) for n in range(30)))
    corpus = load(kind="table", train=str(path), delimiter=typed, valid_pairs=1, test_pairs=1)
    assert len(corpus.train) == 28 and corpus.train["source"][0].startswith("Eins, ")
    with pytest.raises(
        InputError, match=re.escape(f"no ',' between its columns; set \"data.delimiter={delimiter!r}\"")
    ):
        load(kind="table", train=str(path))


@pytest.mark.parametrize("delimiter", ["", ";;", "\n", '"'])
def test_a_delimiter_is_one_character(delimiter):
    with pytest.raises(ValidationError, match="must be a single character"):
        load(kind="table", train="a.csv", delimiter=delimiter)


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        (lambda pair: dict(zip(("de", "en"), pair, strict=True)), {}),
        (lambda pair: {"id": 1, "translation": dict(zip(("de", "en"), pair, strict=True))}, {}),
        (list, {"source_column": 0, "target_column": 1}),
    ],
)
def test_json_arrays_and_lines_of_arrays(tmp_path, row, columns):
    pairs = [(f"Satz {n}", f"sentence {n}") for n in range(30)]
    (tmp_path / "a.json").write_text(json.dumps([row(pair) for pair in pairs], indent=1))
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(row(pair))}\n" for pair in pairs))
    for suffix in ("json", "jsonl"):
        corpus = load(kind="table", train=str(tmp_path / f"a.{suffix}"), **columns, valid_pairs=1, test_pairs=1)
        assert {*zip(corpus.train["source"], corpus.train["target"], strict=True)} < set(pairs)
        assert len(corpus.train) == 28


BAD_ROWS = {
    "a.tsv": ("de\ten\n", "Satz {n}\tsentence {n}\n", "no tab\n", "line 12 has 1 columns"),
    "a.csv": ("de,en\n", "Satz {n},sentence {n}\n", "a, b, c\n", "line 12 has 3 columns but the first has 2"),
    "a.jsonl": (
        "",
        '{{"de": "Satz {n}", "en": "sentence {n}"}}\n',
        '{"de": "x"}\n',
        "line 11: no column 'en' among de",
    ),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows_stop_or_are_left_out_and_counted(tmp_path, name, caplog):
    head, row, bad, message = BAD_ROWS[name]
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
        warning = f"{path}: 2 of 32 rows cannot be read and are left out; the first: {message}"
        assert warning in caplog.text


def test_a_moved_file_with_bad_rows_has_the_same_checksum(tmp_path):
    rows = "de\ten\n" + "".join(f"Satz {n}\tsentence {n}\n" for n in range(9)) + "no tab\n"
    paths = [tmp_path / name for name in ("a.tsv", "b.tsv")]
    for path in paths:
        path.write_text(rows)
    corpora = [load(kind="table", train=str(p), skip_bad_rows=True, valid_pairs=1, test_pairs=1) for p in paths]
    assert corpora[0].checksums == corpora[1].checksums


def test_rows_that_are_bad_for_the_most_part_stop_and_name_the_delimiter(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("de,en\n" + "a, b; c, d\n" * 16 + "a,b\n" * 15)
    message = r"a.csv: 16 of 31 rows cannot be read.* the first: line 2 has 3 columns.* data.delimiter=','"
    for _ in range(2):
        with pytest.raises(InputError, match=message):
            load(kind="table", train=str(path), skip_bad_rows=True, valid_pairs=1, test_pairs=1)


def test_a_delimiter_for_files_that_have_none_is_refused(tmp_path):
    for suffix, text in (("jsonl", '{"de": "a", "en": "b"}\n'), ("tsv", "de\ten\na\tb\n")):
        (tmp_path / f"a.{suffix}").write_text(text)
        with pytest.raises(InputError, match="data.delimiter: none of the files is .csv"):
            load(kind="table", train=str(tmp_path / f"a.{suffix}"), delimiter=";")
    write(tmp_path / "a.csv", [f"{source};{target}" for source, target in [("de", "en"), *PAIRS]])
    assert len(load(kind="table", train=str(tmp_path), delimiter=";", valid_pairs=1, test_pairs=1).train) == 40


@pytest.mark.parametrize("first", ["sep=;", '"SEP=;"\r', "sep=\t"])
def test_the_first_line_of_excel_sets_the_delimiter(tmp_path, first):
    delimiter = first.strip('"\r')[-1]
    rows = [f"{source}{delimiter}{target}" for source, target in [("de", "en"), *PAIRS]]
    path = tmp_path / "a.csv"
    write(path, [first, *(row.replace('"', "") for row in rows)])
    splits = {split: str(path) for split in ("train", "valid", "test")}
    assert texts(load(kind="table", **splits).train) == [(a, b.replace('"', "")) for a, b in PAIRS]
    write(path, [first, "de", f"a{delimiter}b"])
    with pytest.raises(InputError, match="no column 'en' among de"):
        load(kind="table", train=str(path))
    write(path, [first, f"de{delimiter}en", "a"])
    with pytest.raises(InputError, match="line 3 has 1 columns but the first has 2"):
        load(kind="table", train=str(path))
