"""The same pairs from every format: none torn apart, and none lost without being counted."""

import csv
import gzip
import json
import lzma
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import datasets
import pyarrow
import pytest
from datasets import packaged_modules
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from pydantic import TypeAdapter, ValidationError

from mt.config import DataConfig
from mt.config.data import FILE_FORMATS
from mt.core.errors import InputError, RunError
from mt.data.corpus import KEYS, PAIR_HASH, Corpus, SplitReport, load_corpus
from mt.text.slots import TAG

PAIRS = [(f"Satz Nummer {number}.", f'Sentence "number" {number}, here.') for number in range(40)]


LANGUAGES: dict[str, object] = {"source_language": "de", "target_language": "en"}


def load(**settings: object) -> Corpus:
    return load_corpus(TypeAdapter(DataConfig).validate_python(LANGUAGES | settings))


def write(path: Path, lines: list[str] | list[bytes]) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"".join((line.encode() if isinstance(line, str) else line) + b"\n" for line in lines))
    return str(path)


def write_files(folder: Path, pairs: list[tuple], name: str = "train") -> tuple[str, str]:
    source, target = ([pair[side] for pair in pairs] for side in (0, 1))
    return write(folder / f"{name}.de", source), write(folder / f"{name}.en", target)


def held_out(folder: Path) -> dict[str, object]:
    """Two splits, so that nothing is held out of the training pairs."""
    return {
        "valid": write_files(folder, [("gültig", "valid")], "valid"),
        "test": write_files(folder, [("Prüfung", "test")], "test"),
    }


def texts(pairs: datasets.Dataset) -> list[tuple[str, str]]:
    return list(zip(pairs["source"][:], pairs["target"][:], strict=True))


def cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


# Formats ----------------------------------------------------------------------------------------------------


def test_files(tmp_path: Path) -> None:
    corpus = load(kind="files", train=write_files(tmp_path, PAIRS), **held_out(tmp_path))
    assert texts(corpus.train) == PAIRS
    assert texts(corpus.valid) == [("gültig", "valid")]
    assert texts(corpus.test) == [("Prüfung", "test")]
    assert corpus.train["id"][:] == list(range(40))
    assert corpus.train["weight"][:] == [1.0] * 40
    assert (
        set(corpus.valid.column_names) == set(corpus.test.column_names) == {"id", "source", "target", *KEYS, PAIR_HASH}
    )
    assert [(entry.split, entry.read, entry.kept, entry.dropped) for entry in corpus.report] == [
        ("train", 40, 40, {}),
        ("valid", 1, 1, {}),
        ("test", 1, 1, {}),
    ]


@pytest.mark.parametrize(
    ("suffix", "compress"),
    [
        (".gz", gzip.compress),
        (".xz", lzma.compress),
        (".zst", lambda content: pyarrow.compress(content, codec="zstd", asbytes=True)),
    ],
)
def test_compressed_files(tmp_path: Path, suffix: str, compress: object) -> None:
    names = []
    for name in write_files(tmp_path, PAIRS):
        Path(name + suffix).write_bytes(compress(Path(name).read_bytes()))  # type: ignore[operator]
        names.append(name + suffix)
    assert texts(load(kind="files", train=names, **held_out(tmp_path)).train) == PAIRS


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("suffix", ["tsv", "csv", "tsv.gz"])
def test_separated_columns(tmp_path: Path, suffix: str, named: bool) -> None:
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


def test_quotes_in_tsv_are_text(tmp_path: Path) -> None:
    pairs = [('"offen', 'never closed"'), ('""', '"a" b'), *PAIRS]
    path = write(tmp_path / "train.tsv", ["\t".join(pair) for pair in pairs])
    splits = {split: write(tmp_path / f"{split}.tsv", ["a\tb"]) for split in ("valid", "test")}
    assert texts(load(kind="table", train=path, source_column=0, target_column=1, **splits).train) == pairs


def test_a_jsonl_table_in_the_hubs_layout(tmp_path: Path) -> None:
    rows = [{"id": "7", "translation": {"de": source, "en": target}} for source, target in PAIRS]
    path = write(tmp_path / "pairs.jsonl", [json.dumps(row) for row in rows])
    splits = {split: str(path) for split in ("train", "valid", "test")}
    assert texts(load(kind="table", source_column="de", target_column="en", **splits).train) == PAIRS


def test_values_lose_their_line_breaks(tmp_path: Path) -> None:
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


@pytest.mark.parametrize("nested", [True, False])
def test_a_local_folder_in_the_hubs_layout(tmp_path: Path, nested: bool) -> None:
    rows = [{"de": source, "en": target} for source, target in PAIRS]
    for split, part in (("train", rows), ("validation", rows[:3]), ("test", rows[:2])):
        lines = [json.dumps({"translation": row} if nested else row | {"note": 1}) for row in part]
        write(tmp_path / f"{split}.jsonl", lines)
    corpus = load(kind="hub", path=str(tmp_path))
    assert texts(corpus.train) == PAIRS
    assert texts(corpus.valid) == PAIRS[:3]
    assert texts(corpus.test) == PAIRS[:2]
    # Other columns of the same data set are other pairs, whatever the cache holds.
    swapped = load(kind="hub", path=str(tmp_path), source_column="en", target_column="de")
    assert texts(swapped.train) == [(target, source) for source, target in PAIRS]
    with pytest.raises(InputError, match="no column 'fr' among de, en"):
        load(kind="hub", path=str(tmp_path), target_language="fr")
    with pytest.raises(InputError, match=r"data\.valid_split=dev: .* has train, validation, test only"):
        load(kind="hub", path=str(tmp_path), valid_split="dev")


@pytest.mark.parametrize("nested", [True, False])
def test_a_streamed_data_set_has_the_same_pairs(tmp_path: Path, nested: bool) -> None:
    rows = [{"de": source, "en": target} for source, target in PAIRS]
    for split, part in (("train", rows), ("validation", rows[:3]), ("test", rows[:2])):
        lines = [json.dumps({"translation": row} if nested else row | {"note": 1}) for row in part]
        write(tmp_path / f"{split}.jsonl", lines)
    whole, streamed = (load(kind="hub", path=str(tmp_path), streaming=streaming) for streaming in (False, True))
    for split in ("train", "valid", "test"):
        assert getattr(streamed, split).to_dict() == getattr(whole, split).to_dict()
    # Of changed files, nothing is left in the cache.
    write(tmp_path / "train.jsonl", lines[:1] * 2)
    os.utime(tmp_path / "train.jsonl", (1, 1))
    assert texts(load(kind="hub", path=str(tmp_path), streaming=True).train) == PAIRS[:1] * 2
    with pytest.raises(InputError, match="no column 'fr' among de, en"):
        load(kind="hub", path=str(tmp_path), target_language="fr", streaming=True)


def test_no_more_of_a_data_set_is_read_than_asked_for(tmp_path: Path) -> None:
    rows = [{"de": source, "en": target} for source, target in PAIRS]
    for split, part in (("train-0", rows), ("validation", rows[:3]), ("test", rows[:2])):
        parquet.write_table(pyarrow.Table.from_pylist(part), tmp_path / f"{split}.parquet")
    settings = {"kind": "hub", "path": str(tmp_path), "most_pairs": 5}
    corpus = load(**settings)
    assert texts(corpus.train) == PAIRS[:5] and len(corpus.valid) == 3
    (tmp_path / "train-1.parquet").write_bytes(b"damaged")
    with pytest.raises(InputError, match="this data set cannot be loaded"):
        load(**settings)
    assert texts(load(**settings, streaming=True).train) == PAIRS[:5]
    with pytest.raises(InputError, match="this data set cannot be loaded"):
        load(**settings | {"most_pairs": len(PAIRS) + 1}, streaming=True)


class NoNetwork(Exception):
    """Like the errors of libraries for HTTP, it is no OSError."""


@pytest.mark.parametrize(
    ("failure", "expected", "message"),
    [
        (NoNetwork("no route to host"), InputError, "this data set cannot be loaded: no route to host"),
        (MemoryError("no room"), MemoryError, "^no room$"),  # neither is the data set's fault
        (RunError("disk full"), RunError, "^disk full$"),
    ],
)
def test_a_failure_while_pairs_stream_is_one_message(
    failure: Exception, expected: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for split in ("train", "validation", "test"):
        write(tmp_path / f"{split}.jsonl", ['{"de": "a", "en": "b"}'])

    def iterate(self: object, batch_size: int) -> Iterator[pyarrow.Table]:
        yield pyarrow.table({"de": ["a"], "en": ["b"]})
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr("datasets.IterableDataset.iter", iterate)
        with pytest.raises(expected, match=message):
            load(kind="hub", path=str(tmp_path), streaming=True)
    assert texts(load(kind="hub", path=str(tmp_path), streaming=True).train) == [("a", "b")]


# Odd text ---------------------------------------------------------------------------------------------------

SIDE = st.one_of(
    st.sampled_from([b"", b"  ", b"\xff\xfe", b"half \xc3", "\u2028\x00\x85".encode(), b"a\rb", b"\t", b'"']),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r")).map(str.encode),
)


@given(lines=st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=30), crlf=st.booleans(), bom=st.booleans())
def test_ids_tell_the_line_of_every_pair(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[bytes, bytes]], crlf: bool, bom: bool
) -> None:
    folder = tmp_path_factory.mktemp("lines")
    # A file of which most lines are not UTF-8 would be refused.
    lines = [*[(b"gut", b"good")] * (len(lines) + 1), *lines]
    for side, language in enumerate(("de", "en")):
        end = b"\r\n" if crlf else b"\n"
        content = b"".join(line[side] + end for line in lines)
        (folder / f"train.{language}").write_bytes((b"\xef\xbb\xbf" if bom else b"") + content)
    train = (str(folder / "train.de"), str(folder / "train.en"))
    corpus = load(kind="files", train=train, valid=train, test=train)

    def shown(side: bytes) -> str:
        return side.decode("utf-8", "replace").replace("\r", " ")

    def usable(side: bytes) -> bool:
        try:
            return bool(side.decode().strip())
        except UnicodeDecodeError:
            return False

    kept = {pair["id"]: (pair["source"], pair["target"]) for pair in corpus.train}
    for number, (source, target) in enumerate(lines):
        assert (number in kept) == (usable(source) and usable(target))
        if number in kept:
            assert kept[number] == (shown(source), shown(target))
    report = corpus.report[0]
    assert report.read == len(lines) == report.kept + sum(report.dropped.values())
    assert report.kept == len(kept)
    # Evaluation keeps every line.
    assert corpus.test["id"][:] == list(range(len(lines)))
    whole = [(source, target) for source, target in texts(corpus.test)]
    decodable = [
        (shown(source), shown(target)) if b"\xff" not in source + target and b"\xc3" not in source + target else None
        for source, target in lines
    ]
    assert all(expected in (None, found) for found, expected in zip(whole, decodable, strict=True))


def test_faults_are_counted_by_reason(tmp_path: Path) -> None:
    lines = [(b"", b"a"), (b"a", b" \t"), (b"\xff", b"a"), (b"a", b"\xc3("), (b"\xff", b""), (b"a", b"a")]
    files = write_files(tmp_path, lines)
    corpus = load(kind="files", train=files, valid=files, test=files)
    assert corpus.report[0].dropped == {"empty": 2, "not UTF-8": 3}
    assert str(corpus.report[0]).endswith("6 pairs read, 1 kept, 2 empty, 3 not UTF-8")
    assert texts(corpus.valid)[2:4] == [("\ufffd", "a"), ("a", "\ufffd(")]


def test_repeated_pairs_and_identical_sides_are_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    pairs = [(b"a", b"b"), (b"a", b"c"), (b"a", b"b"), (b"d", b"d"), (b"e", b"e"), (b"a", b"b"), (b"", b"")]
    files, held_out = write_files(tmp_path, pairs), write_files(tmp_path / "v", [(b"x", b"y")])
    corpus = load(kind="files", train=files, valid=held_out, test=held_out)
    assert len(corpus.train) == 6
    said = [record.message for record in caplog.records]
    assert "train: 2 of 6 pairs repeat an earlier one" in said
    assert "train: 2 of 6 pairs have one text on both sides" in said
    caplog.clear()
    load(kind="files", train=held_out, valid=held_out, test=held_out)
    assert not [record for record in caplog.records if "pairs repeat" in record.message or "both" in record.message]


def test_what_is_often_a_mistake_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """One of several workers tells it."""
    caplog.set_level("INFO")
    files = write_files(tmp_path, [(b"a", b"a")] * 9)
    held_out = write_files(tmp_path / "v", [(b"a", b"y")])
    config = {"kind": "files", "train": files, "valid": held_out, "test": held_out}
    silent = load_corpus(TypeAdapter(DataConfig).validate_python(config | LANGUAGES), tell=False)
    assert not caplog.records
    assert silent.train._fingerprint == load(**config).train._fingerprint
    assert len(caplog.records) == 4


def test_several_processes_read_what_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = [(f"Satz {number}\r oder \u00e9".encode(), b"\xff" if number % 50 == 7 else b"x") for number in range(300)]
    rows = 7
    for module in ("formats", "corpus", "cache"):
        monkeypatch.setattr(f"mt.data.{module}.ROWS_AT_ONCE", rows)
    monkeypatch.setattr("mt.data.parallel.FIRST_ITEMS", 2)
    found = []
    for cores in (1, 2):
        monkeypatch.setattr("mt.data.parallel._cores", lambda cores=cores: cores)
        files = write_files(tmp_path / str(cores), pairs)
        corpus = load(kind="files", train=files, **held_out(tmp_path))
        found.append((corpus.train.to_list(), corpus.report[0].dropped))
    assert found[0] == found[1]
    assert found[0][1] == {"not UTF-8": 6}
    assert [row["id"] for row in found[0][0]] == [number for number in range(300) if number % 50 != 7]


def test_json_nested_too_deeply(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", [b'{"de": "a", "en": "b"}', b"[" * 100_000])
    with pytest.raises(InputError, match="line 2 is nested too deeply"):
        load(kind="table", train=path, valid=path, test=path, source_column="de", target_column="en")


def test_json_that_is_no_text_in_utf_8(tmp_path: Path) -> None:
    rows = [b'{"de": "\\ud800", "en": "a"}', b'{"de": "\xff", "en": "a"}', b'{"de": null, "en": "a"}', b""]
    path = write(tmp_path / "a.jsonl", [*rows, b'{"de": "a", "en": "\\ud83d\\ude00"}'])
    corpus = load(kind="table", train=path, valid=path, test=path, source_column="de", target_column="en")
    assert texts(corpus.train) == [("a", "\U0001f600")]
    assert corpus.report[0].dropped == {"not UTF-8": 2, "empty": 2}


# Held-out pairs, mixtures, the cache ------------------------------------------------------------------------


def test_a_held_out_part_larger_than_a_tenth_is_cut_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pairs = [(f"Satz {number}", f"sentence {number}") for number in range(100)]
    with caplog.at_level("INFO"):
        corpus = load(kind="files", train=write_files(tmp_path, pairs), valid_pairs=30, test_pairs=5)
    assert (len(corpus.valid), len(corpus.test)) == (10, 5)
    assert "data.valid_pairs=30 is cut to 10" in caplog.text and "data.test_pairs" not in caplog.text
    files = " + ".join(str(path) for path in sorted(tmp_path.iterdir()))
    assert [str(report) for report in corpus.report] == [
        f"train: {files}: 100 pairs read, 85 kept, 5 held out for test, 10 held out for valid",
        f"test: held out of {files}: 5 pairs read, 5 kept",
        f"valid: held out of {files}: 10 pairs read, 10 kept",
    ]


def test_what_is_held_out_leaves_something_to_learn_from(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="2 training pairs are too few to hold test and valid pairs out of"):
        load(kind="files", train=write_files(tmp_path, PAIRS[:2]))


def test_missing_splits_are_held_out(tmp_path: Path) -> None:
    # Every second sentence has two translations.
    pairs = [(f"Satz {number // 2 if number % 4 > 1 else number}", f"sentence {number}") for number in range(400)]
    corpus = load(kind="files", train=write_files(tmp_path, pairs), valid_pairs=30, test_pairs=20)
    assert [len(corpus.valid), len(corpus.test)] in ([30, 20], [31, 20], [30, 21], [31, 21])
    parts = [texts(part) for part in (corpus.train, corpus.valid, corpus.test)]
    assert sorted(sum(parts, [])) == sorted(pairs)
    for side in (0, 1):
        sentences = [{pair[side] for pair in part} for part in parts]
        assert not sentences[0] & sentences[1] | sentences[0] & sentences[2] | sentences[1] & sentences[2]
    for part in (corpus.train, corpus.valid, corpus.test):
        assert [pairs[number] for number in part["id"]] == texts(part)
    report = corpus.report[0]
    assert report.dropped == {"held out for valid": len(corpus.valid), "held out for test": len(corpus.test)}
    assert report.read == report.kept + sum(report.dropped.values()) == 400

    shuffled = load(kind="files", train=write_files(tmp_path / "b", pairs[::-1]), valid_pairs=30, test_pairs=20)
    assert sorted(texts(shuffled.test)) == sorted(texts(corpus.test))


def test_one_missing_split_is_held_out(tmp_path: Path) -> None:
    splits = held_out(tmp_path) | {"test": None}
    corpus = load(kind="files", train=write_files(tmp_path, PAIRS), **splits)
    assert texts(corpus.valid) == [("gültig", "valid")]
    assert len(corpus.test) == 4
    assert sorted(texts(corpus.train) + texts(corpus.test)) == sorted(PAIRS)


def test_mixtures(tmp_path: Path) -> None:
    more = [(f"mehr {number}", f"more {number}") for number in range(10)]
    first = {"kind": "files", "train": write_files(tmp_path, [*PAIRS, ("", "")]), **held_out(tmp_path)}
    rows = [json.dumps({"de": source, "en": target}) for source, target in more]
    second = {
        "kind": "table",
        "train": write(tmp_path / "more.jsonl", rows),
        "source_column": "de",
        "target_column": "en",
        "weight": 2.5,
    }
    corpus = load(kind="mixture", corpora=[first, second])
    assert texts(corpus.train) == PAIRS + more
    assert corpus.train["id"][:] == [*range(40), *range(41, 51)]
    assert corpus.train["weight"][:] == [1.0] * 40 + [2.5] * 10
    assert texts(corpus.test) == [("Prüfung", "test")]
    assert [(entry.split, entry.read, entry.kept) for entry in corpus.report] == [
        ("train", 41, 40),
        ("train", 10, 10),
        ("valid", 1, 1),
        ("test", 1, 1),
    ]
    again = load(kind="mixture", corpora=[first, second])
    assert again.train._fingerprint == corpus.train._fingerprint


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    files = write_files(tmp_path, PAIRS)
    splits = held_out(tmp_path)
    before = load(kind="files", train=files, **splits).train
    same = load(kind="files", train=files, **splits).train
    assert same.cache_files == before.cache_files
    assert same._fingerprint == before._fingerprint
    status = os.stat(files[0])
    write_files(tmp_path, [("Katz Nummer 0.", "Cat number 0."), *PAIRS[1:]])
    os.utime(files[0], ns=(status.st_atime_ns, status.st_mtime_ns + 1_000_000_000))
    assert texts(load(kind="files", train=files, **splits).train)[0] == ("Katz Nummer 0.", "Cat number 0.")


def test_a_file_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    files = write_files(tmp_path, PAIRS)
    splits = held_out(tmp_path)
    status = os.stat(files[0])
    source = Path(files[0]).read_text()
    for word in ("Satz", "Wort", "Text"):
        changed = tmp_path / ("train.de" if word == "Wort" else "another.de")  # written anew, or replaced
        changed.write_text(source.replace("Satz", word))
        os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
        changed.replace(files[0])
        assert (os.stat(files[0]).st_size, os.stat(files[0]).st_mtime_ns) == (status.st_size, status.st_mtime_ns)
        assert texts(load(kind="files", train=files, **splits).train)[0][0] == f"{word} Nummer 0."


# Refusals ---------------------------------------------------------------------------------------------------


def test_different_lengths_name_both_counts(tmp_path: Path) -> None:
    for source, target in ((7, 5), (5, 7)):
        files = write(tmp_path / "a.de", ["a"] * source), write(tmp_path / "a.en", ["a"] * target)
        with pytest.raises(InputError, match=f"a.de has {source} lines but .*a.en has {target}"):
            load(kind="files", train=files)


def test_missing_empty_and_useless_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="data.train: .*gone.de: no such file"):
        load(kind="files", train=(str(tmp_path / "gone.de"), str(tmp_path / "gone.en")))
    with pytest.raises(InputError, match="not one pair"):
        load(kind="files", train=write_files(tmp_path, []))
    with pytest.raises(InputError, match="none can be used: 3 empty"):
        load(kind="files", train=write_files(tmp_path, [("", "a")] * 3))
    with pytest.raises(InputError, match=r"data\.valid"):
        load(kind="files", train=write_files(tmp_path, [("a", "b")] * 3))
    cut = tmp_path / "cut.de.gz"
    cut.write_bytes(gzip.compress(b"line\n" * 1000)[:-10])
    with pytest.raises(InputError, match="cut.de.gz"):
        load(kind="files", train=(str(cut), write(tmp_path / "b.en", ["line"] * 1000)))


@pytest.mark.parametrize(
    ("name", "lines", "columns", "message"),
    [
        ("a.tsv", ["a\tb", "c"], (0, 1), "a.tsv: line 2 has 1 columns"),
        ("a.tsv", ["german\tenglish", "a\tb"], ("germn", "english"), "did you mean german"),
        ("a.csv", ["hallo,hello"], ("de", "en"), "no column 'de' among hallo, hello .*column numbers from 0"),
        ("a.csv", ["a,b", "c,d, e"], (0, 1), "a.csv: line 2 has 3 columns but the first has 2"),
        ("a.csv", ['"a,b'], (0, 1), "a.csv: line 1 is no CSV"),
        ("a.jsonl", ['{"de": "a", "en": "b"}', "{"], ("de", "en"), "a.jsonl: line 2 is no JSON"),
        ("a.jsonl", ["[1]"], ("de", "en"), "a.jsonl: line 1 is no JSON object"),
        ("a.jsonl", ['{"de": "a", "en": 5}'], ("de", "en"), "line 1: de and en must be text"),
        (
            "a.jsonl",
            ['{"de": "a", "eng": "b"}'],
            ("de", "en"),
            "no column 'en' among de, eng; did you mean eng",
        ),
        ("a.jsonl", ['{"de": "a", "en": ' + "1" * 5000 + "}"], ("de", "en"), "a.jsonl: line 1 cannot be read"),
        ("a.parquet", ["text"], ("de", "en"), "a.parquet: cannot be read"),
        ("a.xlsx", ["text"], ("de", "en"), "the name of a table ends in .tsv, .csv, .jsonl, .parquet"),
        ("a.tsv", [], ("de", "en"), "a.tsv"),
    ],
)
def test_broken_tables(
    tmp_path: Path, name: str, lines: list[str], columns: tuple[str | int, str | int], message: str
) -> None:
    path = write(tmp_path / name, lines)
    with pytest.raises(InputError, match=message):
        load(kind="table", train=path, source_column=columns[0], target_column=columns[1])


def test_damaged_parquet_is_named(tmp_path: Path) -> None:
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


def test_parquet_columns_must_be_text(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pyarrow.table({"de": ["a"], "en": [1]}), path)
    with pytest.raises(InputError, match="en: the values are int64, not text"):
        load(kind="table", train=str(path), source_column="de", target_column="en")
    with pytest.raises(InputError, match="no column 'fr' among de, en"):
        load(kind="table", train=str(path), source_column="de", target_column="fr")


def test_an_unreachable_or_damaged_data_set_names_the_way_out(tmp_path: Path) -> None:
    write(tmp_path / "damaged" / "train.jsonl", ['{"de": "a", "en": bad'])
    with pytest.raises(InputError, match=r"(?s)data\.path=.*damaged: this data set cannot be loaded.*data=files"):
        load(kind="hub", path=str(tmp_path / "damaged"))
    with pytest.raises(InputError, match=r"(?s)data\.path=.*nothing: this data set cannot be loaded.*data=files"):
        load(kind="hub", path=str(tmp_path / "nothing"))


class TouchesAFile:
    """Its pickle, when it is loaded, does."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("path", ["pandas", "json", "hf://datasets/csv", "webdataset"])
def test_a_file_format_is_no_data_set(path: str) -> None:
    with pytest.raises(ValidationError, match=r"no data set but a file format.*data=files and data=table"):
        load(kind="hub", path=path)
    with pytest.raises(ValidationError, match="no data set but a file format"):
        load(kind="mixture", corpora=[{"kind": "hub", "path": path}])


def test_all_file_formats_are_known() -> None:
    assert set(packaged_modules._PACKAGED_DATASETS_MODULES) <= FILE_FORMATS


@pytest.mark.filterwarnings("ignore:The Pandas builder:FutureWarning")
def test_nothing_that_a_data_set_brings_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A name that a later version of the library may know, which then reads what lies in the current folder.
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    (tmp_path / "train.pkl").write_bytes(pickle.dumps(TouchesAFile(run)))
    monkeypatch.setattr("mt.config.data.FILE_FORMATS", frozenset())
    with pytest.raises(InputError, match=r"data\.path=pandas: its files are for the module pandas"):
        load(kind="hub", path="pandas")

    write(tmp_path / "set" / "train.json", ['{"de": "a", "en": "b"}'])
    write(tmp_path / "set" / "set.py", [f"open({str(run)!r}, 'w')"])
    for path in ("set", "set/set.py"):
        with pytest.raises(InputError, match=r"set\.py is a script, and nothing that a data set brings is run"):
            load(kind="hub", path=path)

    write(tmp_path / "markup" / "train.xml", ["<a/>"])
    with pytest.raises(InputError, match=r"data\.path=markup: its files are for the module xml"):
        load(kind="hub", path="markup")
    with pytest.raises(InputError, match="data.path=/: this data set cannot be loaded"):
        load(kind="hub", path="/")
    assert not run.exists()


def test_recipes_know_their_languages() -> None:
    with pytest.raises(InputError, match="data=tatoeba_en_fr has en and fr, not de"):
        load(kind="recipe", recipe="tatoeba_en_fr")


def test_a_report_is_readable() -> None:
    report = SplitReport("train", "a.de + a.en", 12345, 12340, {"empty": 5})
    assert str(report) == "train: a.de + a.en: 12,345 pairs read, 12,340 kept, 5 empty"


def test_a_mixture_never_trains_on_what_it_holds_out(tmp_path: Path) -> None:
    pairs = [(f"source {number}", f"target {number}") for number in range(200)]
    halves = [(f"source {number}", f"other {number}") for number in range(200)]
    folders = {name: write_files(tmp_path / name, lines) for name, lines in (("a", pairs), ("b", pairs), ("c", halves))}
    corpora = [{"kind": "files", "train": folders[name]} for name in "abc"]
    corpus = load(kind="mixture", corpora=corpora, valid_pairs=10, test_pairs=10)
    held_out = set(corpus.valid["source"]) | set(corpus.test["source"])
    assert len(held_out) >= 20
    assert not held_out & set(corpus.train["source"])
    train = [report for report in corpus.report if report.split == "train"]
    assert [report.dropped.get("shared with valid or test") for report in train] == [None, len(held_out), len(held_out)]
    assert all(report.read == report.kept + sum(report.dropped.values()) for report in train)


def test_a_tagged_corpus_has_a_tag_in_front_of_each_source_and_nowhere_else(tmp_path: Path) -> None:
    pairs = [(f"source {number}", f"target {number}") for number in range(100)]
    more = [(f"more {number}" if number else "source 5", f"target {number + 50}") for number in range(100)]
    first, second = (
        {"kind": "files", "train": write_files(tmp_path / name, lines)} for name, lines in (("a", pairs), ("b", more))
    )
    plain, tagged = (
        load(kind="mixture", corpora=[first, second | {"tagged": value}], valid_pairs=10, test_pairs=10)
        for value in (False, True)
    )
    assert tagged.report == plain.report and "shared with valid or test" in tagged.report[1].dropped
    own = tagged.report[0].kept
    assert texts(tagged.train)[:own] == texts(plain.train)[:own]
    assert texts(tagged.train)[own:] == [(f"{TAG} {source}", target) for source, target in texts(plain.train)[own:]]
    for name in ("id", "weight"):
        assert tagged.train[name][:] == plain.train[name][:]
    assert texts(tagged.valid) == texts(plain.valid) and texts(tagged.test) == texts(plain.test)
    assert tagged.train._fingerprint != plain.train._fingerprint


def test_a_test_set_inside_the_training_data_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    pairs = [(f"source {number}", f"target {number}") for number in range(50)]
    train = write_files(tmp_path / "train", pairs)
    test = write_files(tmp_path / "test", [*pairs[:3], ("new", "neu")])
    load(kind="files", train=train, test=test, valid=write_files(tmp_path / "valid", [("v", "w")]))
    assert "test: 3 of its 4 sources also stand in the training data" in caplog.text
    assert "valid:" not in caplog.text


NEAR_COPIES = ["{}", "« {} »", "{}\u202f!", "{}."]


def near(text: str, number: int) -> str:
    return NEAR_COPIES[number % 4].format(text.upper() if number % 3 else text)


def bare(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


def test_held_out_pairs_have_no_near_copies_in_training(tmp_path: Path) -> None:
    pairs = [(near(f"Satz {number // 3}", number), f"sentence {number}") for number in range(600)]
    files = write_files(tmp_path, pairs)
    corpus = load(kind="files", train=files, valid_pairs=40, test_pairs=40)
    assert sorted(texts(corpus.train) + texts(corpus.valid) + texts(corpus.test)) == sorted(pairs)
    forms = [{bare(text) for text in split["source"][:]} for split in (corpus.train, corpus.valid, corpus.test)]
    assert not forms[0] & forms[1] | forms[0] & forms[2] | forms[1] & forms[2]


def test_a_mixture_never_trains_on_near_copies_of_what_it_holds_out(tmp_path: Path) -> None:
    pairs = [(f"source {number}", f"target {number}") for number in range(200)]
    other = [(near(f"source {number}", number), f"other {number}") for number in range(200)]
    first, second = ({"kind": "files", "train": write_files(tmp_path / n, p)} for n, p in (("a", pairs), ("b", other)))
    corpus = load(kind="mixture", corpora=[first, second], valid_pairs=10, test_pairs=10)
    held_out = {bare(text) for text in [*corpus.valid["source"], *corpus.test["source"]]}
    assert not held_out & {bare(text) for text in corpus.train["source"]}
    dropped = corpus.report[1].dropped
    assert set(dropped) == {
        "shared with valid or test",
        "shared with valid or test with other case, punctuation or white space",
    }
    assert sum(dropped.values()) == len(held_out) == 20
    assert {"id", "source", "target", "weight", *KEYS, PAIR_HASH} == set(corpus.train.column_names)


def test_near_copies_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    pairs = [("a", "b"), ("A!", "b"), ("a", "b"), ("c", "d")]
    test = write_files(tmp_path / "test", [("c", "x"), ("C.", "y"), ("\u00ab c \u00bb", "z"), ("new", "neu")])
    valid = write_files(tmp_path / "valid", [("(A)", "w")])
    load(kind="files", train=write_files(tmp_path / "train", pairs), test=test, valid=valid)
    form = "with other case, punctuation or white space"
    assert "train: 1 of 4 pairs repeat an earlier one\n" in caplog.text
    assert f"train: 1 of 4 pairs repeat an earlier one {form}" in caplog.text
    assert f"test: 1 of its 4 sources also stand in the training data, 2 more {form}" in caplog.text
    assert f"valid: 0 of its 1 sources also stand in the training data, 1 more {form}" in caplog.text


def test_columns_of_jsonl_are_those_of_the_row_or_else_of_its_translation(tmp_path: Path) -> None:
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
