"""Vocabularies of one's own: symbols reach the model whole, and come out of it as typed."""

import re

import numpy as np
import pytest
from pydantic import ValidationError

from mt.config import TokenizerConfig
from mt.data.pairs import ID_COLUMNS, side_texts
from mt.data.samples import SAMPLES, SampleMaker, SampleRequest, corpus_statistics
from mt.text.line import Line
from mt.training.command import train
from mt.translation.hypotheses import Hypothesis
from mt.translation.translator import Translator
from tests import toy

SYMBOLS = ("<tech>", "#url#", "⟨Ent⟩")
TYPED = [
    "<tech> ba de #url# fi",
    "⟨Ent⟩",
    "BA DE <tech> FI GO",
    "ba<tech>de http://a.example/#url#",
    "[b]ba #url#[/b] de, 12 ⟨Ent⟩",
]


@pytest.fixture
def folder(tmp_path):
    toy.write_corpus(tmp_path, "copy", train=600)
    for path in tmp_path.glob("*.xx"):  # a tag of a domain, which the targets lack
        toy.write_lines(path, (f"<tech> {line} #url#" for line in path.read_text().splitlines()))
    for path in tmp_path.glob("*.yy"):
        toy.write_lines(path, (f"{line} #url#" for line in path.read_text().splitlines()))
    return tmp_path


def echo(translator):
    """A translator whose model copies its sources."""
    translator.search = lambda request, after_batch: [[Hypothesis(tokens, -1.0)] for tokens in request.sources]
    return translator


def samples(config, data):
    """Pairs of tokens as the trainer gets them, all of them augmented and sampled."""
    statistics = corpus_statistics(data.train, "xx", needs_lexicon=True)
    make = SampleMaker(data.layer, config.text.augmentation, config.tokenizer.sampling, 1, statistics)
    encoded = data.train.with_format("arrow").select_columns(["id", *ID_COLUMNS])[:].cast(SAMPLES).combine_chunks()
    rows = np.arange(len(encoded))
    made = make(
        SampleRequest(0, encoded, rows, [(row,) for row in rows], *side_texts(data.train.with_format("arrow")[:]))
    )
    return zip(*(made[name].to_pylist() for name in ID_COLUMNS), strict=True)


def pieces_of(translator, line):
    return [
        piece for source in translator.segment([Line().with_written(line, "auto")])[0].sources
        for piece in translator.tokenizers.source.subwords(source)
    ]  # fmt: skip


@pytest.mark.parametrize("enabled", [True, False])
def test_symbols_are_tokens_in_training_and_translation(folder, enabled):
    text = {"augmentation": toy.CHANGED} if enabled else {"enabled": False, "slots": 10}
    tokenizer = {"symbols": SYMBOLS, "sampling": 0.5}
    config = toy.config(folder, tokenizer=tokenizer, data={"cleaning": ("items", "numbers")}, text=text)
    data = toy.prepared(config)
    assert len(data.train) == 600, "a symbol on one side only is no fault"
    tech, url = (data.tokenizers.source.subwords(range(320)).index(symbol) for symbol in SYMBOLS[:2])
    for source, target in samples(config, data):
        assert source.count(tech) == source.count(url) == target.count(url) == 1
        assert tech not in target
    train(config)
    translator = echo(Translator.load(config.folder))
    for line in TYPED:
        symbols = re.findall("|".join(SYMBOLS), line)
        assert [piece for piece in pieces_of(translator, line) if piece in SYMBOLS] == symbols
        assert translator.translate([line]) == [line]


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (("a b",), "symbols: 'a b' has whitespace, or is reserved"),
        (("<0x0A>",), "symbols: '<0x0A>' has whitespace, or is reserved"),
        (("</s>",), "symbols: '</s>' has whitespace, or is reserved"),
        (("\U0010f000",), "has whitespace, or is reserved"),
        (("#", "##", "#"), "symbols: '#' is given 2 times"),
        (("",), "at least 1 character"),
    ],
)
def test_symbols_that_cannot_be_are_refused(symbols, message):
    with pytest.raises(ValidationError, match=re.escape(message)):
        TokenizerConfig(symbols=symbols)
