"""Tests of custom symbols and of extended vocabularies in training, translation and export."""

import json
import re
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from sentencepiece import SentencePieceProcessor

from mt.config import DecodingChoice, ExportConfig, TokenizerConfig
from mt.core.errors import InputError
from mt.data.pairs import ID_COLUMNS, side_texts
from mt.data.samples import SAMPLES, SampleMaker, SampleRequest, corpus_statistics
from mt.export.hugging_face import export_hugging_face
from mt.models.embedding import TokenEmbedding
from mt.text.line import Line
from mt.tokenizer.tokenizer import TokenizerPair
from mt.tokenizer.training import extend_tokenizer, train_tokenizer
from mt.training.command import train
from mt.translation.hypotheses import Hypothesis
from mt.translation.trained_model import load_weights_from, open_model
from mt.translation.translator import Translator
from tests import toy
from tests.brief import train_briefly
from tests.tokenizer.samples import samples_of
from tests.training.runs import has_weights_of, train_until

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
    statistics = corpus_statistics(data.train, ["xx"], np.zeros(len(data.train), int), needs_lexicon=True)
    make = SampleMaker([data.layer], config.text.augmentation, config.tokenizer.sampling, 1, statistics)
    encoded = data.train.with_format("arrow").select_columns(["id", *ID_COLUMNS])[:].cast(SAMPLES).combine_chunks()
    rows = np.arange(len(encoded))
    made = make(
        SampleRequest(0, encoded, rows, [(row,) for row in rows], *side_texts(data.train.with_format("arrow")[:]))
    )
    return zip(*(made[name].to_pylist() for name in ID_COLUMNS), strict=True)


def pieces_of(translator, line):
    return [
        piece for source in translator.segment([Line().with_text(line, "auto")])[0].sources
        for piece in translator.tokenizers.source.subwords(source)
    ]  # fmt: skip


@pytest.mark.parametrize("enabled", [True, False])
def test_symbols_are_single_tokens(folder, enabled):
    text = {"augmentation": toy.CHANGED} if enabled else {"enabled": False, "slots": 10}
    tokenizer = {"symbols": SYMBOLS, "sampling": 0.5}
    config = toy.config(folder, tokenizer=tokenizer, data={"cleaning": ("items", "numbers")}, text=text)
    data = toy.prepared(config)
    assert len(data.train) == 600, "cleaning ignores a symbol on one side only"
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
    seen = []
    translator._aligner.links = lambda *sides: seen.extend(sides) or [[]]
    assert translator.score([TYPED[0]], [TYPED[1]], aligned=True)[0].text == TYPED[1]
    assert not any(symbol in text for side in seen for text in side for symbol in SYMBOLS)


@pytest.mark.parametrize(
    ("symbols", "message"),
    [
        (("a b",), "symbols=a b: has whitespace, is reserved or is given twice"),
        (("<0x0A>",), "symbols=<0x0A>: has whitespace, is reserved or is given twice"),
        (("</s>",), "symbols=</s>: has whitespace, is reserved or is given twice"),
        (("\U0010f000",), "has whitespace, is reserved or is given twice"),
        (("#", "##", "#"), "symbols=#: has whitespace, is reserved or is given twice"),
        (("",), "at least 1 character"),
    ],
)
def test_symbols_refuse_invalid_values(symbols, message):
    with pytest.raises(ValidationError, match=re.escape(message)):
        TokenizerConfig(symbols=symbols)


def write_domain(folder):
    """A corpus of another domain, whose words are made of two syllables of the toy language, with a new symbol."""
    toy.write_corpus(folder, "copy", train=600)
    for path in folder.glob("*.*"):
        lines = [line.split() for line in path.read_text().splitlines()]
        toy.write_lines(path, ("@new " + " ".join(map("".join, pairwise(words))) for words in lines))


def fine_tuned(folder, base, name, architecture="transformer", **tokenizer):
    training = {"init_from": str(base.folder), "threads": 1}
    config = toy.config(folder, name, architecture, training=training, text={"augmentation": toy.CHANGED})
    return config.model_copy(update={"tokenizer": TokenizerConfig(**tokenizer)})


@pytest.mark.parametrize(
    ("architecture", "tokenizer"),
    [("transformer", {}), ("rnn", {"joint": False}), ("transformer", {"kind": "unigram"})],
)
def test_fine_tuning_extends_the_vocabulary(tmp_path, architecture, tokenizer):
    toy.write_corpus(tmp_path, "copy", train=600)
    base = toy.config(
        tmp_path, "base", architecture, tokenizer={**tokenizer, "vocabulary_size": 300, "symbols": SYMBOLS}
    )
    train(base)
    write_domain(tmp_path)
    tuned, stopped = (
        fine_tuned(tmp_path, base, name, architecture, extend=5, symbols=("@new",)) for name in ("tuned", "stopped")
    )
    train(tuned)
    train_until(stopped, 7)
    train(stopped)
    assert has_weights_of(tuned, stopped)
    old, new = (open_model(config.folder) for config in (base, tuned))
    assert new.description.tokenizer.symbols == (*SYMBOLS, "@new")
    assert new.description.tokenizer.vocabulary_size == new.tokenizers.target.vocabulary_size == 306
    load_weights_from(base.folder, new.model, new.description.model, new.tokenizers)
    for side, place in (("source", 0), ("target", -1)):
        before, after = getattr(old.tokenizers, side), getattr(new.tokenizers, side)
        assert after.subwords(range(301)) == [*before.subwords(range(300)), "@new"]
        familiar = ["x <tech> x. 12 #url#"]
        assert before.encode(familiar) == after.encode(familiar)
        *others, word = after.subwords(range(301, 306))
        assert all(len(after.encode([piece[1:]])[0]) == 1 for piece in others)
        (token,), parts = *after.encode([word[1:]]), *before.encode([word[1:]])
        old_rows, rows = (
            [part.weight for part in model.modules() if isinstance(part, TokenEmbedding)][place]
            for model in (old.model, new.model)
        )
        assert token > 300 and len(parts) > 1
        torch.testing.assert_close(rows[:300], old_rows)
        torch.testing.assert_close(rows[token], old_rows[parts].mean(dim=0))
        samples_of(after, word[1:], 0.5, range(9))  # BPE-dropout knows the new merges


def test_extend_refuses_impossible_values(tmp_path, shared_runs):
    base = SimpleNamespace(folder=shared_runs["transformer-1"])
    write_domain(tmp_path)
    with pytest.raises(
        InputError, match=r"extend=9999 is more than .* it has \d+ frequent .* set tokenizer.extend=\d+"
    ):
        train(fine_tuned(tmp_path, base, "more", extend=9999))
    with pytest.raises(InputError, match=r"symbols: 'b' is a token of the base tokenizer"):
        train(fine_tuned(tmp_path, base, "taken", symbols=("b",)))
    with pytest.raises(
        ValidationError, match=r"tokenizer.extend=5 needs a tokenizer to extend: set training.init_from"
    ):
        toy.config(tmp_path, tokenizer={"extend": 5})


def test_extended_does_not_learn_words_in_symbols():
    config = TokenizerConfig(vocabulary_size=300, symbols=("@bade",))
    base = train_tokenizer(toy.sentences(300, 1), ("xx",), config)
    grown = extend_tokenizer(
        base,
        ["@bade @bade @bade #figo figo gofi gofi"] * 9,
        config.model_copy(update={"symbols": ("@bade", "#figo"), "extend": 2}),
    )
    assert {"▁gofi", "▁figo"} & set(grown.subwords(range(301, 303)))
    assert not any("bade" in piece for piece in grown.subwords(range(301, 303)))


def test_export_has_symbols_and_new_tokens(tmp_path):
    config = TokenizerConfig(vocabulary_size=300, symbols=("<tech>",))
    tokenizer = extend_tokenizer(
        train_tokenizer(toy.sentences(300, 1), ("xx",), config),
        ["bade figo"] * 3,
        config.model_copy(update={"symbols": (*config.symbols, "@new"), "extend": 4}),
    )
    run = train_briefly(tmp_path / "run", TokenizerPair(tokenizer, tokenizer), updates=10)
    lines = ["<tech> bade figo @new", "ba de fi"]
    torch_engine, ctranslate2_engine = (
        Translator.load(run, DecodingChoice(engine=engine, max_length_extra=9)) for engine in ("torch", "ctranslate2")
    )
    assert torch_engine.translate(lines) == ctranslate2_engine.translate(lines)
    export_hugging_face(ExportConfig(format="hugging_face", run=str(run), output=str(tmp_path / "hf")))
    numbers = json.loads((tmp_path / "hf/vocab.json").read_text())
    pieces = SentencePieceProcessor(model_file=str(tmp_path / "hf/source.spm")).encode(lines, out_type=str)
    layer = toy.layer(TokenizerPair(tokenizer, tokenizer), enabled=False)
    own = tokenizer.encode(list(map(layer.hide_symbols, lines)))
    assert [[numbers[piece] for piece in line] for line in pieces] == own
    assert {"<tech>", "▁bade", "@new"} < set(pieces[0])
