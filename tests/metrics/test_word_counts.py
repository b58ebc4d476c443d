"""The counts are BLEU's, and what a folder from elsewhere holds is checked before it is believed."""

import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.core.errors import InputError
from mt.metrics import word_counts
from mt.metrics.sacrebleu import bleu_words
from mt.metrics.word_counts import TARGET_WORDS, count_words, read_word_counts, write_word_counts
from tests.damage import assert_each_flipped_bit_is_named

LINES = ["The cat, 3.5 kg, sat.", "", "the cat's  well-known «mat»!", "Zürich\u3000ist 1,000-fach schön…"]


def _plain(sentences, language):
    return Counter(word for cut in bleu_words(sentences, language) for word in cut)


@example(["9. a", ".9"])  # in Chinese the end of a line is no blank
@given(st.lists(st.text(alphabet=st.sampled_from("aB9.,-'\"&;ltq< >!\t\u3000é漢"), max_size=30)))
@pytest.mark.parametrize("language", ["fr", "zh", "th"])
def test_words_are_counted_as_bleu_counts_them(language, sentences):
    assert count_words(sentences, language) == _plain(sentences, language)


def test_counts_in_parts_are_the_same(monkeypatch):
    monkeypatch.setattr(word_counts, "MAX_PARTS", 2)
    assert count_words(LINES * 3, "fr") == _plain(LINES * 3, "fr")


def test_what_is_written_is_read_back(tmp_path):
    write_word_counts(tmp_path, iter(LINES), "fr")
    assert read_word_counts(tmp_path, "fr") == _plain(LINES, "fr")
    write_word_counts(tmp_path, [], "fr")
    assert read_word_counts(tmp_path, "fr") == Counter()


def test_every_flipped_bit_is_noticed(tmp_path):
    write_word_counts(tmp_path, LINES[:1], "fr")
    assert_each_flipped_bit_is_named(tmp_path / TARGET_WORDS, lambda: read_word_counts(tmp_path, "fr"))


@pytest.mark.parametrize("language", ["fr", "zh"])
def test_too_many_words_are_not_kept_in_part(tmp_path, monkeypatch, caplog, language):
    monkeypatch.setattr(word_counts, "MAX_COUNTED_WORDS", 3)
    write_word_counts(tmp_path, ["a b c d"], language)
    assert (
        read_word_counts(tmp_path, language) is None
        and "different words, and the training targets have more" in caplog.text
    )
    write_word_counts(tmp_path, ["a b c"], language)
    assert len(read_word_counts(tmp_path, language)) == 3


def test_too_much_text_is_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(word_counts, "MAX_FILE_BYTES", 2000)
    write_word_counts(tmp_path, ["a" * 2000], "fr")
    assert (tmp_path / TARGET_WORDS).stat().st_size < 200 and read_word_counts(tmp_path, "fr") is None


def test_other_tokenizers_give_none_and_say_why(tmp_path, caplog):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_word_counts(tmp_path, "fr")
    write_word_counts(tmp_path, LINES, "fr")
    assert read_word_counts(tmp_path, "zh") is None and "BLEU's tokenizer 13a, and now it is zh" in caplog.text


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", "null", "[" * 100_000, '{"tokenizer": "13a"}',
     *('{"tokenizer": "13a", "words": 1}\n' + line
       for line in ("1", "1\ta\n1\tb", "1\ta\n1\ta", "-1\ta", "x\ta", "9" * 5000 + "\ta", "1\ta\tb")),
     '{"tokenizer": "13a", "words": 2}\n1\ta\n1\ta', "\ufffd" * 10],
)  # fmt: skip
def test_forged_files_are_named(tmp_path, content):
    encoded = content.encode("latin-1", errors="replace")
    (tmp_path / TARGET_WORDS).write_bytes(word_counts._seal(encoded) + b"\n" + encoded)
    with pytest.raises(InputError, match=re.escape(TARGET_WORDS)):
        read_word_counts(tmp_path, "fr")


def test_a_huge_file_is_not_read_whole(tmp_path, monkeypatch):
    write_word_counts(tmp_path, ["some words"], "fr")
    monkeypatch.setattr(word_counts, "MAX_FILE_BYTES", 50)
    with pytest.raises(InputError, match=TARGET_WORDS):
        read_word_counts(tmp_path, "fr")
