"""Training of tokenizers, encoding and decoding, and positions of tokens."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import datasets
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt.config import TokenizerConfig
from mt.core.errors import InputError, Interrupted
from mt.storage import vocabulary
from mt.text.placeholders import PLACEHOLDER, all_placeholders, count_placeholders, placeholder
from mt.tokenizer.tokenizer import BOS, EOS, PAD, UNK, Tokenizer, TokenizerPair
from mt.tokenizer.training import _sample_rows, train_tokenizer, train_tokenizers
from tests.tokenizer.samples import samples_of

SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]


def sentences(count: int, seed: int = 1) -> list[str]:
    """Invented words, some of them common."""
    draw = random.Random(seed)
    words = ["".join(draw.choices(SYLLABLES, k=draw.randint(1, 4))) for _ in range(400)]
    return [" ".join(draw.choices(words, k=draw.randint(3, 12))).capitalize() + "." for _ in range(count)]


def trained(kind: str = "bpe", normalization: str = "nmt_nfkc", size: int = 600) -> Tokenizer:
    config = TokenizerConfig(kind=kind, normalization=normalization, vocabulary_size=size)
    return train_tokenizer(sentences(1500), ("xx",), config)


BPE = trained()
UNIGRAM = trained("unigram", size=900)
EXACT = {kind: trained(kind, "identity") for kind in ("bpe", "unigram", "char")}
ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2581"))
"""SentencePiece itself writes a space as U+2581."""


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
@given(text=ANY_TEXT)
@example("a\0b 👩‍👩‍👧 🇫🇷 a\u2028b \x01\x1b[0m\x7f a\nb\rc 龘")
@example("  a  b  ")
@example("<s> </s> <unk> <0x0A>")
@example("")
def test_decode_inverts_encode(kind, text):
    pieces = EXACT[kind].encode([text])[0]
    assert not {PAD, UNK, BOS, EOS} & set(pieces)
    assert EXACT[kind].decode([pieces]) == [text]


@given(text=ANY_TEXT)
def test_normalization_is_idempotent(text):
    once = BPE.decode(BPE.encode([text]))
    assert BPE.decode(BPE.encode(once)) == once


def test_normalization_is_compatibility_composition():
    assert BPE.decode(BPE.encode(["ﬁne  ①\u00a0e\u0301"])) == ["fine 1 é"]


def test_special_tokens_have_no_text():
    pieces = BPE.encode(["Bala."])[0]
    assert BPE.decode([[BOS, *pieces, EOS, PAD, PAD]]) == ["Bala."]
    assert BPE.decode([[], [PAD]]) == ["", ""]
    assert all(isinstance(text, str) for text in BPE.decode([[number] for number in range(BPE.vocabulary_size)]))


def test_training_is_deterministic():
    assert trained().model == BPE.model
    assert trained("unigram", size=900).model == UNIGRAM.model


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_error_suggests_the_largest_vocabulary_size(kind):
    text = sentences(50)
    with pytest.raises(InputError, match=r"tokenizer\.vocabulary_size=100000 .* at most \d+ tokens") as refused:
        train_tokenizer(text, ("xx",), TokenizerConfig(kind=kind, vocabulary_size=100_000))
    largest = int(re.findall(r"\d+", str(refused.value))[-1])
    config = TokenizerConfig(kind=kind, vocabulary_size=largest)
    assert train_tokenizer(text, ("xx",), config).vocabulary_size == largest


def test_error_suggests_the_smallest_vocabulary_size():
    text = ["".join(chr(0x4E00 + number) for number in range(500))]
    with pytest.raises(InputError, match=r"tokenizer\.vocabulary_size=\d+ or more") as refused:
        train_tokenizer(text, ("xx",), TokenizerConfig(vocabulary_size=300))
    smallest = int(re.findall(r"(\d+) or more", str(refused.value))[0])
    config = TokenizerConfig(vocabulary_size=smallest)
    assert train_tokenizer(text, ("xx",), config).vocabulary_size == smallest


def test_vocabulary_size_of_characters_is_an_upper_bound():
    assert trained("char", size=5000).vocabulary_size < 400


def test_train_tokenizer_refuses_empty_text():
    with pytest.raises(InputError):
        train_tokenizer([], ("xx",), TokenizerConfig())


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), Interrupted(15, "terminated"), OSError(28, "disk full")])
def test_train_tokenizer_raises_the_exception_of_its_reader(stop):
    def stopped() -> Iterator[str]:
        yield from sentences(50)
        raise stop

    with pytest.raises(type(stop)) as caught:
        train_tokenizer(stopped(), ("xx",), TokenizerConfig(vocabulary_size=300))
    assert caught.value is stop


def test_train_tokenizer_reads_long_sentences():
    long = " ".join(sentences(3000))
    assert train_tokenizer([long], ("xx",), TokenizerConfig(vocabulary_size=600)).vocabulary_size == 600


def test_rare_characters_of_chinese_become_bytes():
    common = "".join(chr(0x4E00 + number) for number in range(50))
    text = [common] * 1000 + ["\u9f98"]
    config = TokenizerConfig(vocabulary_size=320)

    def pieces_of_the_rare_one(language: str) -> int:
        tokenizer = train_tokenizer(text, ("en", language), config)
        assert tokenizer.decode(tokenizer.encode(["\u9f98"])) == ["\u9f98"]
        return sum(name.startswith("<0x") for name in tokenizer.subwords(tokenizer.encode(["\u9f98"])[0]))

    assert pieces_of_the_rare_one("xx") == 0
    assert pieces_of_the_rare_one("zh-TW") == 3


@pytest.mark.parametrize("content", [b"", b"text", BPE.model[:-5], BPE.model[:1000]])
def test_from_files_reports_corrupted_files(content):
    with pytest.raises(InputError, match="folder/tokenizer.model: corrupted, or no tokenizer"):
        TokenizerPair.from_files({"tokenizer.model": content}, Path("folder"))


@pytest.mark.parametrize("joint", [True, False])
def test_tokenizer_pairs_are_saved_and_loaded(tmp_path, joint):
    source, target = sentences(1500, seed=4), [text.upper() for text in sentences(1500, seed=5)]
    pairs = datasets.Dataset.from_dict({"source": source, "target": target})
    config = TokenizerConfig(vocabulary_size=500, joint=joint)
    tokenizers = train_tokenizers(pairs, [("xx", "yy")], config, seed=1)
    assert tokenizers.joint == joint
    for stale in ("tokenizer.model", "source.model", "target.model"):
        (tmp_path / stale).write_bytes(b"of an attempt before")
    tokenizers.save(tmp_path)
    names = {"tokenizer.model"} if joint else {"source.model", "target.model"}
    assert {path.name for path in tmp_path.iterdir()} == names
    loaded = TokenizerPair.from_files({path.name: path.read_bytes() for path in sorted(tmp_path.iterdir())}, tmp_path)
    assert loaded.joint == joint
    assert (loaded.source.model, loaded.target.model) == (tokenizers.source.model, tokenizers.target.model)
    # A tokenizer of one side knows the pieces of that side alone.
    lengths = [len(tokenizers.source.encode([text[1]])[0]) for text in (source, target)]
    assert (lengths[1] > 2 * lengths[0]) == (not joint)


def test_chinese_keeps_wide_punctuation():
    text = ["他说：“你好，世界！”（真的）。", "Ｆｉ ｎｏ， ba de！"] * 50
    chinese = train_tokenizer(text, ("en", "zh"), TokenizerConfig(kind="char", vocabulary_size=350))
    assert chinese.decode(chinese.encode(text[:2])) == text[:2]
    french = train_tokenizer(text, ("en", "fr"), TokenizerConfig(kind="char", vocabulary_size=350))
    assert french.decode(french.encode(text[1:2])) == ["Fi no, ba de!"]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
@pytest.mark.parametrize(("normalization", "coverage"), [("identity", 0.9995), ("nmt_nfkc_cf", 1.0), (None, None)])
def test_models_record_normalization_and_coverage(kind, normalization, coverage):
    config = TokenizerConfig(kind=kind, vocabulary_size=400, normalization=normalization, character_coverage=coverage)
    for language, usual in (("fr", ("nmt_nfkc", 1.0)), ("ja", ("identity", 0.9995))):
        tokenizer = train_tokenizer(sentences(200), (language,), config)
        found = vocabulary.normalization(tokenizer.model), vocabulary.character_coverage(tokenizer.model)
        assert found == ((normalization, coverage) if normalization else usual)


WITH_PLACEHOLDERS = {
    kind: train_tokenizer(
        [text + f" {number}" for number, text in enumerate(sentences(1500))],
        ("xx",),
        TokenizerConfig(kind=kind, vocabulary_size=700),
        placeholders=all_placeholders(6),
    )
    for kind in ("bpe", "unigram", "char")
}
SPAN_TEXTS = st.one_of(
    ANY_TEXT,
    st.lists(
        st.sampled_from(["ba", " ", "  ", "moku", "\u3000", "ﬁ", "①", "½", "é\u0301", "😀", placeholder(1), "12",
                         "\ufffd", "\u200b"])
    ).map("".join),
)  # fmt: skip


@given(
    tokenizer=st.sampled_from([BPE, UNIGRAM, *EXACT.values(), *WITH_PLACEHOLDERS.values()]),
    texts=st.lists(SPAN_TEXTS, max_size=3),
)
@example(tokenizer=BPE, texts=["ba \ud800 de"])
@settings(max_examples=300)
def test_spans_are_the_positions_of_tokens(tokenizer, texts):
    found = tokenizer.spans(texts)
    assert [[span.token for span in spans] for spans in found] == tokenizer.encode(texts)
    for text, spans in zip(texts, found, strict=True):
        end = 0
        for span, name in zip(spans, tokenizer.subwords([span.token for span in spans]), strict=True):
            assert end <= span.start <= span.end <= len(text)
            end = span.end
            stretch = text[span.start : span.end]
            assert stretch == stretch.lstrip()
            # A piece of a text that normalizing leaves as it is stands there itself.
            bare = name.removeprefix("▁")
            if re.fullmatch("[a-zA-Z]+", bare) and text.isascii() and text.isprintable():
                assert stretch == bare
        # All but whitespace, and what normalizing takes away, belongs to a piece.
        covered = {place for span in spans for place in range(span.start, span.end)}
        assert all(place in covered for place, one in enumerate(text) if one.isascii() and one.isalnum())


@given(
    tokenizer=st.sampled_from(list(WITH_PLACEHOLDERS.values())),
    words=st.lists(st.sampled_from(["ba", "dako", "  ", " ", *map(placeholder, range(6)), "1", "205"])),
    key=st.integers(0, 99),
)
def test_placeholders_and_digits_are_single_tokens(tokenizer, words, key):
    text = "".join(words)
    assert count_placeholders(TokenizerPair(tokenizer, tokenizer)) == 6
    samples = [samples_of(tokenizer, text, sampling, [key])[0] for sampling in (0.5, 0.0)]
    for pieces in (tokenizer.encode([text])[0], *samples):
        names = tokenizer.subwords(pieces)
        single = [one for one in text if PLACEHOLDER.match(one) or one.isdecimal()]
        assert [name for name in names if PLACEHOLDER.search(name) or re.search("[0-9]", name)] == single
        assert tokenizer.decode([pieces]) == tokenizer.decode([tokenizer.encode([text])[0]])


def test_vocabulary_without_placeholders():
    assert count_placeholders(TokenizerPair(BPE, BPE)) == 0
    assert all(WITH_PLACEHOLDERS["bpe"].has_subword(placeholder(number)) == (number < 6) for number in range(64))
    assert not any(map(WITH_PLACEHOLDERS["bpe"].has_subword, ["<s>", "</s>", "<unk>", "<pad>", "<0x0A>", "龘"]))


def test_normalize_removes_word_starts():
    assert BPE.normalize(" ﬁne  ①\u00a0e\u0301 \ud800") == "fine1é"
    assert EXACT["bpe"].normalize("ﬁ ①") == "ﬁ①"


def test_sample_rows_limits_sentences_and_characters():
    lines = sentences(400)
    pairs = datasets.Dataset.from_dict({"source": lines, "target": lines[::-1]})
    characters = [len(source) + len(target) for source, target in zip(lines, lines[::-1], strict=True)]

    def sampled(most: int, most_characters: int, seed: int = 1) -> list[int]:
        rows = _sample_rows(pairs, most, most_characters, seed)
        return list(range(400)) if rows is None else rows.tolist()

    assert sampled(400, sum(characters)) == list(range(400))
    few = sampled(100, sum(characters))
    assert few == sorted(set(few)) != sampled(100, sum(characters), seed=2)
    assert len(few) == 100
    for most in (100, 400):
        fewer = sampled(most, 3000)
        assert fewer == sorted(set(fewer)) == sampled(most, 3000) != sampled(most, 3000, seed=2)
        assert 3000 - max(characters) < sum(characters[row] for row in fewer) <= 3000
    assert set(sampled(100, 3000)) <= set(few)
    assert len(sampled(400, 1)) == 1  # there must be something to learn from


def test_languages_without_spaces_have_a_smaller_sample(monkeypatch):
    monkeypatch.setattr("mt.tokenizer.training.MAX_CHARACTERS_WITHOUT_SPACES", 2000)
    lines = sentences(800)
    pairs = datasets.Dataset.from_dict({"source": lines, "target": lines})
    config = TokenizerConfig(vocabulary_size=400)
    spaced, whole, part = (
        train_tokenizers(pairs, [("xx", code)], config, seed=1).target for code in ("yy", "ko", "zh")
    )
    assert whole.vocabulary_size == part.vocabulary_size == spaced.vocabulary_size
    assert len(part.encode([" ".join(lines)])[0]) > len(whole.encode([" ".join(lines)])[0])
