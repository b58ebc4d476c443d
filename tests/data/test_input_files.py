"""Corpora of many files: their order, pairing, errors and encodings."""

import csv
import gzip
import io
import json
import lzma
import os
import re
import resource
from pathlib import Path

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from mt.core.errors import InputError
from mt.core.text_files import text_lines
from mt.data.pairs import sentences_sha256
from mt.data.readers import find_input_files
from mt.data.split import MAX_FILE_LINES
from tests.data.corpora import config, load
from tests.toy import write_lines

PAIRS = [(f'Satz "{number}", hier.', f"sentence {number}") for number in range(70)]


def table(**settings):
    """Return the training files of a table."""
    return [str(*group) for group in find_input_files(config(kind="table", **settings), "train")]


def tsv(pairs):
    return "".join(f"{source}\t{target}\n" for source, target in [("de", "en"), *pairs]).encode()


def as_csv(pairs):
    text = io.StringIO()
    csv.writer(text).writerows([("de", "en"), *pairs])
    return text.getvalue().encode()


def as_jsonl(pairs):
    return "".join(json.dumps({"en": target, "de": source}) + "\n" for source, target in pairs).encode()


def as_tmx(pairs):
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{target}</seg></tuv><tuv xml:lang="de-AT"><seg>{source}</seg></tuv></tu>\n'
        for source, target in pairs
    )
    return f"<tmx><body>{units}</body></tmx>".encode()


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return str(path)


def mixed(folder, pairs=PAIRS):
    """Write five files of different formats with a fifth of the pairs each, not in the order of their names."""
    size = len(pairs) // 5
    portions = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    write(folder / "e.tsv.zst", pyarrow.compress(tsv(portions[4]), codec="zstd", asbytes=True))
    write(folder / "a.tsv", tsv(portions[0]))
    write(folder / "b.csv", as_csv(portions[1]))
    write(folder / "d.tmx.gz", gzip.compress(as_tmx(portions[3])))
    write(folder / "c.jsonl.xz", lzma.compress(as_jsonl(portions[2])))
    return folder


def checksums(corpus):
    return [sentences_sha256(pairs) for pairs in (corpus.train, corpus.valid, corpus.test)]


# Which files -------------------------------------------------------------------------------------------------


def test_many_files_equal_one_file(tmp_path):
    folder = mixed(tmp_path / "files")
    write(folder / "README.md", b"no table")
    write(folder / "dataset_info.json", b"{}")
    write(folder / ".hidden.tsv", b"")
    whole = load(kind="table", train=write(tmp_path / "whole.jsonl", as_jsonl(PAIRS)))
    for named in (str(folder), [f"{folder}/{name}" for name in ("a.tsv", "*.csv", "c*", "*.gz", "e*")]):
        corpus = load(kind="table", train=named)
        assert checksums(corpus) == checksums(whole)
        assert corpus.train["id"][:] == whole.train["id"][:]
        report = corpus.report[0]
        assert [Path(file.name).name[0] for file in report.files] == list("abcde")
        assert [file.pairs for file in report.files] == [14] * 5
        counts = [sum(start <= number < start + 14 for number in corpus.train["id"]) for start in range(0, 70, 14)]
        assert [file.kept for file in report.files] == counts
        assert sum(counts) == report.kept == 70 - len(corpus.valid) - len(corpus.test)
    assert not whole.report[0].files
    again, once_more = (load(kind="table", train=str(folder)).train for _ in range(2))
    assert again._fingerprint == once_more._fingerprint and again.cache_files == once_more.cache_files


def test_many_files_in_mixture_and_test_data(tmp_path):
    folder = mixed(tmp_path / "files")
    first = {"kind": "table", "train": write(tmp_path / "a.tsv", tsv([("x", "y")] * 20)), "valid": [f"{folder}/a*"]}
    first["test"] = str(folder)
    others = [(f"noch {number}", f"more {number}") for number in range(20)]
    second = {"kind": "table", "train": f"{mixed(tmp_path / 'more', others)}/*", "weight": 2.0}
    corpus = load(kind="mixture", corpora=[first, second])
    assert (len(corpus.train), len(corpus.valid), len(corpus.test)) == (40, 14, 70)
    assert [[file.kept for file in report.files] for report in corpus.report] == [[], [4] * 5, [14], [14] * 5]


NAMES = st.text("ab[?]!*{}^ .-", min_size=1, max_size=4).filter(lambda name: name.strip("."))


@given(
    stems=st.sets(st.tuples(st.sampled_from(["", "x/", "x/y/"]), NAMES), min_size=1, max_size=8),
    alone=st.sampled_from([None, "de", "en"]),
)
def test_patterns_pair_files_by_wildcards(tmp_path_factory, stems, alone):
    folder = tmp_path_factory.mktemp("pairs")
    pairs = [
        tuple(folder / code / f"{subfolder}n{stem}.{code}.txt" for code in ("de", "en")) for subfolder, stem in stems
    ]
    lone = pairs[0][1 if alone == "en" else 0]
    for path in (path for pair in pairs for path in pair):
        if alone is None or path not in pairs[0] or path == lone:
            write(path, b"text\n")
    corpus = config(kind="files", train=(f"{folder}/de/**/n*.de.txt", f"{folder}/en/**/n*.en.txt"))
    if alone is None:
        assert find_input_files(corpus, "train") == sorted(pairs)
    else:
        message = "matches no file" if len(pairs) == 1 else f"{re.escape(str(lone))}: .* match no file of"
        with pytest.raises(InputError, match=message):
            find_input_files(corpus, "train")


@pytest.fixture(scope="module")
def twin_folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("twins")
    for code in ("de", "en"):
        for name in ("a", "aa", "ab", "b/a", "b/ab.a", "b/b/a", "ab/a", "a.b/b/b/ab"):
            write(folder / code / f"{name}.txt", b"text\n")
    return folder


@given(pattern=st.text("ab*/.", max_size=7).filter(lambda text: ".." not in text).map(lambda text: f"{text}*"))
def test_patterns_pair_files_of_equal_names(twin_folders, pattern):
    train = (f"{twin_folders}/de/{pattern}", f"{twin_folders}/en/{pattern}")
    try:
        groups = find_input_files(config(kind="files", train=train), "train") or []
    except InputError as error:
        assert "matches no file" in str(error)
        return
    assert groups and all(str(target) == str(source).replace("/de/", "/en/") for source, target in groups)


HALVES = [("0.de", "0.en"), ("1.de", "1.en")]


@pytest.fixture
def halves(tmp_path, monkeypatch):
    """The files HALVES in the current folder, with a part of PAIRS each."""
    monkeypatch.chdir(tmp_path)
    for files, part in zip(HALVES, (PAIRS[:30], PAIRS[30:]), strict=True):
        for path, lines in zip(files, zip(*part, strict=True), strict=True):
            write_lines(Path(path), lines)


def test_several_pairs_of_files_are_read_in_order(halves):
    whole = load(kind="table", train=write(Path("whole.tsv"), tsv(PAIRS)))
    assert checksums(load(kind="files", train=HALVES)) == checksums(whole)
    assert checksums(load(kind="files", train=HALVES[::-1])) != checksums(whole)


@pytest.mark.parametrize("train", [[("*.de", "*.en")], ("*.de", "*.en")], ids=str)
def test_pattern_pair_stands_for_all_its_files(halves, train):
    assert find_input_files(config(kind="files", train=train), "train") == [tuple(map(Path, pair)) for pair in HALVES]


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (("0.de", "*.en"), "must have the same wildcards"),
        (("*.de", "./*.de"), r"data\.train: 0.de is on both sides"),
        ([HALVES[0], ("*.de", "*.en")], r"0\.de \+ 0\.en: named 2 times"),
        ([HALVES[0], HALVES[1][::-1]], "has the de file first|has the en file first"),
    ],
    ids=["wildcards", "both sides", "repeated", "swapped"],
)
def test_unsuitable_pairs_of_files_are_refused(halves, train, message):
    with pytest.raises((InputError, ValidationError), match=message):
        load(kind="files", train=train)


def test_only_stars_are_wildcards(tmp_path):
    for name in ("a*.tsv", "ab.tsv", "[ab].tsv", "a?.tsv", "in/deep/c.tsv"):
        write(tmp_path / name, tsv(PAIRS))
    assert table(train=f"{tmp_path}/a*.tsv") == [f"{tmp_path}/a*.tsv"]
    assert table(train=[f"{tmp_path}/a?.tsv", f"{tmp_path}/[ab]*"]) == [f"{tmp_path}/a?.tsv", f"{tmp_path}/[ab].tsv"]
    assert table(train=f"{tmp_path}/**/c.tsv") == table(train=f"{tmp_path}/*/deep/*") == [f"{tmp_path}/in/deep/c.tsv"]
    assert len(table(train=f"{tmp_path}/**")) == 5


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("empty", "empty: this folder has no file whose name ends in .tsv"),
        ("pipe", "pipe: a pipe or device, which cannot be read again; write its text to a file"),
        ("empty/*", "README.md: unknown format; rename it so that it ends in"),
        (["files/a.tsv", "files/a.tsv"], r"a\.tsv: named 2 times"),
        (["files/a.tsv", "*.tsv"], r"a\.tsv and link\.tsv: named 2 times, under several names"),
        (["files/*.tsv", "files/a*", "files"], r"a\.tsv: named 3 times"),
    ],
    ids=str,
)
def test_find_input_files_reports_errors(tmp_path, monkeypatch, named, message):
    monkeypatch.chdir(tmp_path)
    mixed(Path("files"))
    write(Path("empty/README.md"), b"no table")
    Path("link.tsv").symlink_to("files/a.tsv")
    os.mkfifo("pipe")
    with pytest.raises(InputError, match=message):
        table(train=named)


def test_missing_files_of_all_splits_are_reported_together():
    with pytest.raises(InputError, match=r"(?s)data\.train: x\*: matches no file.*data\.valid: gone: no such file"):
        load(kind="table", train="x*", valid="gone")


# Bad files ---------------------------------------------------------------------------------------------------

ROWS = [(f"gut {number} {os.urandom(20).hex()}", f"good {number}") for number in range(3000)]
BAD = {
    "cut.tsv.gz": (gzip.compress(tsv(ROWS))[:-1000], "cut.tsv.gz: cannot be read: Compressed file ended"),
    "row.csv": (as_csv(ROWS) + b"one,two,three\n", "row.csv: line 3002 has 3 columns but the first has 2"),
    "one.tmx": (as_tmx(ROWS).replace(b"de-AT", b"fr"), "one.tmx: no language 'de' among en, fr"),
    "columns.tsv": (tsv(ROWS).replace(b"de\ten", b"it\ten", 1), "columns.tsv: no column 'de' among it, en"),
    "zip.tsv": (b"PK\x03\x04" + lzma.compress(tsv(ROWS)), "zip.tsv: is a zip archive .*unpack"),
    "cr.tsv": (tsv(ROWS).replace(b"\n", b"\r"), r"cr.tsv: its lines end in CR alone.*: tr '\\r' '\\n' < "),
}


@pytest.mark.parametrize("name", BAD)
def test_on_bad_file_stops_or_skips_whole_file(tmp_path, name, caplog):
    folder = mixed(tmp_path / "files")
    good = load(kind="table", train=str(folder))
    content, message = BAD[name]
    bad = write(folder / name, content)
    with pytest.raises(InputError, match=f"(?s){message}.*data.on_bad_file=skip"):
        load(kind="table", train=str(folder))
    for _ in range(2):  # the second time with the good files in the cache
        corpus = load(kind="table", train=str(folder), on_bad_file="skip")
        assert checksums(corpus) == checksums(good)
        assert caplog.text.count("the whole file is skipped") == 1
        caplog.clear()
    assert [(file.paths, file.pairs) for file in corpus.report[0].files if file.left_out] == [((bad,), 0)]
    (line,) = (line for line in corpus.report[0].file_lines() if "skipped" in line)
    assert re.search(f"(?s)train:   .*{message}", line.replace("skipped: ", ""))
    with pytest.raises(InputError, match=r"data\.train: none of 1 files can be read"):
        load(kind="table", train=[bad], on_bad_file="skip")


def test_report_lists_limited_number_of_files(tmp_path):
    for number in range(50):
        empty = [("", "")] * 3 if number in (7, 49) else []
        write(tmp_path / "files" / f"{number:02}.tsv", tsv([*PAIRS[:5], *empty]))
    files = {split: write(tmp_path / f"{split}.tsv", tsv([("a", "b")])) for split in ("valid", "test")}
    report = load(kind="table", train=str(tmp_path / "files"), **files).report[0]
    lines = report.file_lines()
    assert len(lines) == MAX_FILE_LINES + 1
    assert lines[-1] == "train:   30 more files"
    assert [line.split("/")[-1] for line in lines[:2]] == [f"{n}.tsv: 8 pairs read, 5 kept" for n in ("07", "49")]
    assert str(report) == f"train: {tmp_path}/files (50 files): 256 pairs read, 250 kept, 6 empty"


# Other encodings ---------------------------------------------------------------------------------------------

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\t\n\r\ufeff"), min_size=1)


@given(
    lines=st.lists(TEXTS, min_size=1, max_size=20),
    encoding=st.sampled_from(["utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]),
    pack=st.sampled_from([lambda content: content, gzip.compress]),
    end=st.sampled_from(["\n", "\r\n"]),
)
@settings(max_examples=50)
def test_text_lines_reads_byte_order_marks(tmp_path_factory, lines, encoding, pack, end):
    text = ("" if encoding == "utf-8-sig" else "\ufeff") + end.join(lines)
    path = tmp_path_factory.mktemp("wide") / ("a.tsv.gz" if pack is gzip.compress else "a.tsv")
    write(path, pack(text.encode(encoding)))
    assert list(text_lines(path)) == lines


def test_text_lines_reports_truncated_utf_16(tmp_path):
    path = Path(write(tmp_path / "odd.tsv", tsv(PAIRS).decode().encode("utf-16")[:-1]))
    with pytest.raises(InputError, match=r"odd\.tsv: has the byte order mark of UTF-16, but is not in UTF-16"):
        list(text_lines(path))


def test_text_lines_refuses_other_encoding(tmp_path):
    path = write(tmp_path / "a.tsv", "Er hört schöne Töne im Grünen.\n".encode("latin-1"))
    with pytest.raises(InputError, match="invalid UTF-8; convert the file with: iconv -f ENCODING -t UTF-8"):
        list(text_lines(Path(path)))


def test_too_many_open_files_are_not_skipped(tmp_path):
    folder = mixed(tmp_path / "files")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.close(lowest_free := os.dup(0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            load(kind="table", train=str(folder), on_bad_file="skip")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
