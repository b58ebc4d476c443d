"""Ensembles of runs: their members, and the parts that come from the first member."""

import shutil

import pytest

from mt.config import DecodingConfig, TranslateConfig
from mt.core.errors import InputError
from mt.core.language import Direction
from mt.core.process import exit_status
from mt.storage.folders import read_description
from mt.storage.model_folder import write_description, write_words
from mt.training.command import train
from mt.translation.trained_model import read_spelling
from mt.translation.translator import Translator
from tests import toy

LINES = ["ba de fi", "", "go ku la mo 12 https://a.example/b", "ne \u2028 pi", "ra ne " * 50, "su ti. vo wa!"]


@pytest.fixture(scope="module")
def runs(shared_runs, tmp_path_factory):
    """Runs on one corpus, by name."""
    folder = tmp_path_factory.mktemp("ensembles")
    toy.write_corpus(folder, "reverse", train=200)
    briefly = {"max_updates": 1, "validate_every": 1, "schedule": {"kind": "inverse_sqrt"}}
    small = toy.config(folder, tokenizer={"vocabulary_size": 310}, training=briefly)
    train(small)
    shared = {"first": "transformer-1", "second": "transformer-2", "rnn": "rnn-1"}
    found = {name: shared_runs[run] for name, run in shared.items()} | {"small": small.folder}
    found["text"] = toy.copy_to_change(found["second"], folder / "text")
    described = read_description(found["text"])
    text = described.text.model_copy(update={"slots": 3})
    write_description(found["text"], described.model_copy(update={"text": text}))
    return {name: str(run) for name, run in found.items()}


def test_alignment_and_attention_are_those_of_first_member(runs):
    several, first = Translator.load([runs["first"], runs["rnn"]]), Translator.load(runs["first"])
    references = ["fi de ba" for _ in LINES]
    alignments = [[one.alignment for one in each.score(LINES, references, True)] for each in (several, first)]
    assert alignments[0] == alignments[1] and any(alignments[0])
    assert (
        several.attention(LINES[0], references[0]).maps.keys() == first.attention(LINES[0], references[0]).maps.keys()
    )


def test_members_with_other_tokenizer_or_text_layer_are_rejected(runs):
    with pytest.raises(InputError) as refused:
        Translator.load([runs["first"], runs["small"], runs["second"], runs["text"]])
    message = str(refused.value)
    assert f"{runs['small']} (another tokenizer); {runs['text']} (another text.slots)" in message
    assert f"tokenizer.reuse={runs['first']}" in message
    assert runs["second"] not in message


def test_members_with_other_languages_are_rejected(runs, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(runs["second"], other)
    write_description(other, read_description(other).model_copy(update={"target_language": "zz"}))
    with pytest.raises(InputError, match=f"{other} \\(xx→zz instead of xx→yy\\): cannot be in an ensemble with"):
        Translator.load([runs["first"], other])


def test_spelling_is_that_of_first_member(runs, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(runs["second"], other)
    known = read_spelling(other, Direction("xx", "yy"))
    write_words(other, known.counts | {"zebra": 1000}, {}, {})
    assert Translator.load([runs["first"], other]).layer.spelling.counts == known.counts
    assert "zebra" in Translator.load([other, runs["first"]]).layer.spelling.counts


def test_ctranslate2_engine_is_rejected(runs):
    members = (runs["first"], runs["second"])
    with pytest.raises(ValueError, match="run has 2 models, and CTranslate2 cannot combine models"):
        TranslateConfig.model_validate({"run": members, "decoding": {"engine": "ctranslate2"}})
    config = DecodingConfig(engine="ctranslate2")
    assert exit_status(lambda: Translator.load(members, config) and None) == 2
    TranslateConfig.model_validate({"run": members[:1], "decoding": {"engine": "ctranslate2"}})
