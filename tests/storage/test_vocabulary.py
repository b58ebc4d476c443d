"""A vocabulary of other numbers stays in a SentencePiece model's file, and special pieces get our numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.config import TokenizerConfig
from mt.storage.vocabulary import Vocabulary, normalization
from mt.tokenizer.tokenizer import BOS, EOS, PAD, UNK, Tokenizer
from mt.tokenizer.training import train_tokenizer
from tests import toy


def vocabulary(size=12, pad=11, unk=1, start=11, eos=0):
    return Vocabulary([f"p{number}é" for number in range(size)], pad, unk, start, eos, joint=True)


@given(st.data())
def test_special_pieces_get_our_numbers_and_few_others_move(data):
    size = data.draw(st.integers(4, 40))
    pad, unk, eos, other = data.draw(st.permutations(range(size)))[:4]
    start = data.draw(st.sampled_from([pad, other]))
    found = vocabulary(size, pad, unk, start, eos)
    assert sorted(found.order) == list(range(size))
    assert [found.order[number] for number in (PAD, UNK, EOS)] == [pad, unk, eos]
    assert start == pad or found.order[BOS] == start
    assert sum(ours != theirs for ours, theirs in enumerate(found.order)) <= 8
    assert found.special.keys() == ({PAD, UNK, EOS} if start == pad else {PAD, UNK, BOS, EOS})


def test_opus_vocabulary_changes_ids_of_three_tokens_only():
    assert vocabulary().order == [11, 1, 2, 0, 4, 5, 6, 7, 8, 9, 10, 3]


def test_it_is_kept_in_the_file_and_taken_out_again():
    model = train_tokenizer(toy.sentences(200, 1), ("xx",), TokenizerConfig(vocabulary_size=300)).model
    assert Vocabulary.from_model(model) is None
    kept = vocabulary().appended_to(model)
    assert Vocabulary.from_model(kept) == vocabulary()
    assert vocabulary().removed_from(kept) == model
    assert normalization(kept) == normalization(model)


@pytest.mark.parametrize(
    "wrong", [{"pad": 0}, {"eos": 12}, {"start": -1}, {"unk": "1"}, {"pieces": ["a"] * 12}, {"pieces": [1] * 12}]
)
def test_a_corrupted_one_is_refused(wrong):
    model = train_tokenizer(toy.sentences(200, 1), ("xx",), TokenizerConfig(vocabulary_size=300)).model
    values = vars(vocabulary()) | wrong
    with pytest.raises(ValueError, match="vocabulary is corrupted"):
        Tokenizer(Vocabulary(**values).appended_to(model))
