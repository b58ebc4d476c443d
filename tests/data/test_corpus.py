"""Loading corpora: dropped, held-out, repeated, mixed and tagged pairs."""

import os
from pathlib import Path

import datasets
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.data.corpus import load_corpus
from mt.data.pairs import KEYS, PAIR_HASH
from mt.text.placeholders import CORPUS_TAG
from tests.data.corpora import PAIRS, config, held_out, load, texts, write_files


def test_load_corpus_reads_text_files(tmp_path):
    corpus = load(train=write_files(tmp_path, PAIRS), **held_out(tmp_path))
    assert texts(corpus.train) == PAIRS
    assert texts(corpus.valid) == [("gültig", "valid")]
    assert texts(corpus.test) == [("Prüfung", "test")]
    assert datasets.are_progress_bars_disabled()
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


SIDE = st.one_of(
    st.sampled_from([b"", b"  ", b"\xff\xfe", b"half \xc3", "\u2028\x00\x85".encode(), b"a\rb", b"\t", b'"']),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\r\ufffd")).map(str.encode),
)


@given(lines=st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=30))
@settings(max_examples=50)
def test_pair_ids_are_line_numbers(tmp_path_factory, lines):
    # A file of which most lines are not UTF-8, or with many control characters, would be refused.
    lines = [*[(b"gut " * 200, b"good " * 200)] * (len(lines) + 1), *lines]
    train = write_files(tmp_path_factory.mktemp("lines"), lines)
    corpus = load(train=train, valid=train, test=train)

    decoded = [tuple(side.decode("utf-8", "replace").replace("\r", " ") for side in line) for line in lines]
    with_text = {number: pair for number, pair in enumerate(decoded) if all(map(str.strip, pair))}
    assert dict(zip(corpus.test["id"], texts(corpus.test), strict=True)) == with_text
    usable = {number: pair for number, pair in with_text.items() if "\ufffd" not in "".join(pair)}
    assert dict(zip(corpus.train["id"], texts(corpus.train), strict=True)) == usable
    for report, kept in zip(corpus.report, (usable, with_text, with_text), strict=True):
        assert report.read == len(lines) and report.kept == len(kept) == len(lines) - sum(report.dropped.values())


def test_dropped_pairs_are_counted_by_reason(tmp_path):
    lines = [(b"", b"a"), (b"a", b" \t"), (b"\xff", b"a"), (b"a", b"\xc3("), (b"\xff", b""), (b"a", b"a")]
    files = write_files(tmp_path, lines)
    corpus = load(train=files, valid=files, test=files)
    assert corpus.report[0].dropped == {"empty": 3, "not UTF-8": 2}
    assert str(corpus.report[0]).endswith("6 pairs read, 1 kept, 3 empty, 2 not UTF-8")
    assert texts(corpus.valid) == [("\ufffd", "a"), ("a", "\ufffd("), ("a", "a")]
    assert str(corpus.report[1]).endswith("6 pairs read, 3 kept, 3 empty")


@pytest.mark.parametrize(("split", "line"), [("valid", (b"a", b" ")), ("test", (b"\xc2\xa0", b"a"))])
def test_evaluation_split_without_text_is_refused(tmp_path, split, line):
    files, blank = write_files(tmp_path, [(b"a", b"a")]), write_files(tmp_path / "blank", [line] * 5)
    splits = {"valid": files, "test": files} | {split: blank}
    with pytest.raises(InputError, match=f"blank.*: none of 5 {split} pairs can be used: 5 empty; check"):
        load(train=files, **splits)


@pytest.mark.parametrize(("warn", "messages"), [(True, 4), (False, 0)])
def test_load_corpus_logs_repetitions_only_with_warnings(tmp_path, caplog, warn, messages):
    caplog.set_level("INFO")
    train = write_files(tmp_path, [(b"a", b"a")] * 9)
    other = write_files(tmp_path / "v", [(b"a", b"y")])
    load_corpus(config(train=train, valid=other, test=other), warn=warn)
    assert len(caplog.records) == messages


@pytest.mark.parametrize("cores", [1, 2])
def test_several_processes_read_same_corpus(tmp_path, monkeypatch, cores):
    pairs = [(f"Satz {number}\r oder \u00e9".encode(), b"\xff" if number % 50 == 7 else b"x") for number in range(300)]
    monkeypatch.setattr("mt.data.split.ROWS_AT_ONCE", 7)
    monkeypatch.setattr("mt.data.parallel.FIRST_ITEMS", 2)
    monkeypatch.setattr("mt.data.parallel.available_cores", lambda: cores)
    corpus = load(train=write_files(tmp_path, pairs), **held_out(tmp_path))
    kept = [number for number in range(300) if number % 50 != 7]
    assert corpus.train["id"][:] == kept
    assert texts(corpus.train) == [(f"Satz {number}  oder \u00e9", "x") for number in kept]
    assert corpus.report[0].dropped == {"not UTF-8": 6}


def test_held_out_part_is_at_most_a_tenth(tmp_path, caplog):
    pairs = [(f"Satz {number}", f"sentence {number}") for number in range(100)]
    with caplog.at_level("INFO"):
        corpus = load(train=write_files(tmp_path, pairs), valid_pairs=30, test_pairs=5)
    assert (len(corpus.valid), len(corpus.test)) == (10, 5)
    assert "data.valid_pairs=30 is reduced to 10" in caplog.text and "data.test_pairs" not in caplog.text
    files = " + ".join(str(path) for path in sorted(tmp_path.iterdir()))
    assert [str(report) for report in corpus.report] == [
        f"train: {files}: 100 pairs read, 85 kept, 5 held out for test, 10 held out for valid",
        f"test: held out of {files}: 5 pairs read, 5 kept",
        f"valid: held out of {files}: 10 pairs read, 10 kept",
    ]


def test_too_few_pairs_to_hold_out_are_refused(tmp_path):
    with pytest.raises(InputError, match="2 training pairs are too few to hold test and valid pairs out of"):
        load(train=write_files(tmp_path, PAIRS[:2]))


def test_missing_splits_are_held_out_of_training_pairs(tmp_path):
    # Every second sentence has two translations.
    pairs = [(f"Satz {number // 2 if number % 4 > 1 else number}", f"sentence {number}") for number in range(400)]
    corpus = load(train=write_files(tmp_path, pairs), valid_pairs=30, test_pairs=20)
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


def test_single_missing_split_is_held_out(tmp_path):
    splits = held_out(tmp_path) | {"test": None}
    corpus = load(train=write_files(tmp_path, PAIRS), **splits)
    assert texts(corpus.valid) == [("gültig", "valid")]
    assert len(corpus.test) == 4
    assert sorted(texts(corpus.train) + texts(corpus.test)) == sorted(PAIRS)


def test_mixture_concatenates_corpora_with_weights(tmp_path):
    more = [(f"mehr {number}", f"more {number}") for number in range(10)]
    first = {"kind": "files", "train": write_files(tmp_path, [*PAIRS, ("", "")]), **held_out(tmp_path)}
    second = {"kind": "files", "train": write_files(tmp_path / "more", more), "weight": 2.5}
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


def test_load_corpus_rereads_changed_file_of_same_size(tmp_path):
    files = write_files(tmp_path, PAIRS)
    splits = held_out(tmp_path)
    before, same = (load(train=files, **splits).train for _ in range(2))
    assert same.cache_files == before.cache_files and same._fingerprint == before._fingerprint
    status = os.stat(files[0])
    source = Path(files[0]).read_text()
    for word in ("Satz", "Wort", "Text"):
        changed = tmp_path / ("train.de" if word == "Wort" else "another.de")  # written anew, or replaced
        changed.write_text(source.replace("Satz", word))
        os.utime(changed, ns=(status.st_atime_ns, status.st_mtime_ns))
        changed.replace(files[0])
        assert (os.stat(files[0]).st_size, os.stat(files[0]).st_mtime_ns) == (status.st_size, status.st_mtime_ns)
        assert texts(load(train=files, **splits).train)[0][0] == f"{word} Nummer 0."


def test_tagged_corpus_gets_tag_before_each_source(tmp_path):
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
    expected = plain.train.to_list()
    for row in expected[plain.report[0].kept :]:
        row["source"] = f"{CORPUS_TAG} {row['source']}"
    assert tagged.train.to_list() == expected
    assert texts(tagged.valid) == texts(plain.valid) and texts(tagged.test) == texts(plain.test)
    assert tagged.train._fingerprint != plain.train._fingerprint


NEAR_COPIES = ["{}", "« {} »", "{}\u202f!", "{}."]


def near(text, number):
    return NEAR_COPIES[number % 4].format(text.upper() if number % 3 else text)


def bare(text):
    return "".join(c for c in text.casefold() if c.isalnum())


def test_mixture_drops_near_copies_of_held_out_pairs(tmp_path):
    pairs = [(f"source {number}", f"target {number}") for number in range(200)]
    other = [(near(f"source {number}", number), f"other {number}") for number in range(200)]
    first, second = ({"kind": "files", "train": write_files(tmp_path / n, p)} for n, p in (("a", pairs), ("b", other)))
    corpus = load(kind="mixture", corpora=[first, second], valid_pairs=10, test_pairs=10)
    held_out = {bare(text) for text in [*corpus.valid["source"], *corpus.test["source"]]}
    assert not held_out & {bare(text) for text in corpus.train["source"]}
    dropped = corpus.report[1].dropped
    assert dropped == {"shared with valid or test": 20} and len(held_out) == 20
    assert {"id", "source", "target", "weight", *KEYS, PAIR_HASH} == set(corpus.train.column_names)


def test_log_repetitions_counts_near_copies(tmp_path, caplog):
    caplog.set_level("INFO")
    pairs = [("a", "b"), ("A!", "b"), ("a", "b"), ("c", "d"), ("e", "E"), ("f", "f"), ("", "")]
    test = write_files(tmp_path / "test", [("c", "x"), ("C.", "y"), ("\u00ab c \u00bb", "z"), ("new", "neu")])
    valid = write_files(tmp_path / "valid", [("(A)", "w")])
    corpus = load(train=write_files(tmp_path / "train", pairs), test=test, valid=valid)
    assert len(corpus.train) == 6
    forms = "ignoring case, punctuation and whitespace"
    assert f"train: 2 of 6 pairs repeat an earlier pair, {forms}" in caplog.text
    assert f"train: 2 of 6 pairs have equal sides, {forms}" in caplog.text
    assert f"test: 3 of its 4 sources also occur in the training data, {forms}" in caplog.text
    assert f"valid: 1 of its 1 sources also occur in the training data, {forms}" in caplog.text
    caplog.clear()
    load(train=valid, valid=test, test=test)
    assert not [
        record for record in caplog.records if "pairs repeat" in record.message or "equal sides" in record.message
    ]
