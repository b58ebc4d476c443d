"""The export for ``transformers``: logits, translations and tokenizers compared with the model, and obstacles."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.config import ExportConfig, TokenizerConfig, TransformerConfig
from mt.core.errors import InputError
from mt.data.batching.batch import collate
from mt.export.hugging_face import export_hugging_face, transformers_obstacles
from mt.text.placeholders import FIRST_NUMBER_PLACEHOLDER, all_placeholders, placeholder
from mt.tokenizer.tokenizer import BOS, EOS, PAD, SPECIAL_TOKENS, TokenizerPair
from mt.tokenizer.training import train_tokenizer
from mt.translation.engine import SearchRequest
from mt.translation.torch_engine import TorchEngine
from mt.translation.trained_model import open_model
from tests import toy
from tests.brief import train_briefly

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.filterwarnings("ignore:Recommended")

LINES = toy.sentences(40, 4)
DECODING = {"beam_size": 4, "max_length_ratio": 0.001, "max_length_extra": 40, "length_penalty": 0.7}
"""The limit is the same for all lines, as it is in ``transformers``."""


def _tokenizer(seed, size, slots=0, kind="bpe", **settings):
    config = TokenizerConfig.model_validate({"kind": kind, "vocabulary_size": size, **settings})
    return train_tokenizer(toy.sentences(300, seed), ("xx",), config, all_placeholders(slots))


@pytest.fixture(scope="module")
def tokenizers():
    """Joint and separate vocabularies, of different sizes."""
    one, other = _tokenizer(1, 315), _tokenizer(2, 320)
    return {True: TokenizerPair(one, one), False: TokenizerPair(one, other)}


LEARNED = {"positions": "learned", "max_positions": 130}
LAYOUTS = [
    ("PegasusForConditionalGeneration", True, {}),
    ("PegasusForConditionalGeneration", True, {"activation": "gelu", "dropout": 0.3, "heads": 8}),
    ("BlenderbotForConditionalGeneration", True, LEARNED),
    ("MarianMTModel", True, {"norm": "post"}),
    ("MarianMTModel", True, {"norm": "post", "activation": "gelu", "tie_embeddings": False}),
    ("MarianMTModel", False, {"norm": "post"}),
    ("MarianMTModel", False, {"norm": "post", "tie_embeddings": False}),
]


@pytest.fixture(scope="module", params=LAYOUTS, ids=str)
def exported(request, tokenizers, tmp_path_factory):
    """A model, and its tokenizer and model in ``transformers``."""
    name, joint, model = request.param
    place = tmp_path_factory.mktemp("exported")
    run = train_briefly(place / "run", tokenizers[joint], decoding=DECODING, **model)
    theirs = _load(run, place / "out")
    assert type(theirs[1]).__name__ == name
    return open_model(run), *theirs


def _load(run, output):
    export_hugging_face(ExportConfig(format="hugging_face", run=str(run), output=str(output)))
    model, problems = transformers.AutoModelForSeq2SeqLM.from_pretrained(output, output_loading_info=True)
    assert not any(problems.values()), problems
    return transformers.AutoTokenizer.from_pretrained(output), model.eval()


def _sources(trained, lines=LINES):
    return collate(trained.tokenizers.source.encode(lines), [[]] * len(lines)).source


def _search(trained, config):
    sources = trained.tokenizers.source.encode(LINES)
    return TorchEngine(trained.model, config).search(SearchRequest(sources, [(0,)] * len(LINES)))


@torch.inference_mode()
def test_logits_equal_those_of_the_model(exported):
    trained, _, model = exported
    pairs = collate(trained.tokenizers.source.encode(LINES), trained.tokenizers.target.encode(LINES[::-1]))
    ours = trained.model.project(trained.model.decode(trained.model.encode(pairs.source), pairs.target_input))
    mask = (pairs.source != PAD).long()
    theirs = model(input_ids=pairs.source, attention_mask=mask, decoder_input_ids=pairs.target_input).logits
    assert ours.std() > 0.5, "a test of next to nothing"
    assert torch.allclose(ours[pairs.target_output != PAD], theirs[pairs.target_output != PAD], atol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_generate_finds_translations_of_the_model(exported, beam_size):
    trained, tokenizer, model = exported
    config = trained.description.decoding.model_copy(update={"beam_size": beam_size})
    expected = _search(trained, config)
    batch = tokenizer(LINES, return_tensors="pt", padding=True)
    assert batch.input_ids.masked_fill(batch.attention_mask == 0, PAD).equal(_sources(trained))
    settings = {"return_dict_in_generate": True, "output_scores": True}
    found = model.generate(**batch, **({"num_beams": 1} if beam_size == 1 else {}), **settings)
    pieces = [[piece for piece in row if piece not in SPECIAL_TOKENS] for row in found.sequences.tolist()]
    ours = [best for (best, *_) in expected]
    # At the limit, the end counts as certain there.
    ended = [place for place, best in enumerate(ours) if len(best.tokens) < DECODING["max_length_extra"]]
    assert len({tuple(ours[place].tokens) for place in ended}) > 15, "a test of few translations"
    if beam_size > 1:
        scores = [ours[place].score(config.length_penalty) for place in ended]
        assert found.sequences_scores[ended].tolist() == pytest.approx(scores, abs=1e-4)
    assert [pieces[place] for place in ended] == [ours[place].tokens for place in ended]


def test_generate_has_length_limit_of_the_model(tokenizers, tmp_path):
    """Of a model that ends hardly any sentence by itself."""
    decoding = DECODING | {"beam_size": 1, "max_length_extra": 7}
    run = train_briefly(tmp_path / "run", tokenizers[True], updates=3, decoding=decoding)
    trained, (tokenizer, model) = open_model(run), _load(run, tmp_path / "out")
    expected = _search(trained, trained.description.decoding)
    assert any(len(best.tokens) == 7 for (best, *_) in expected)
    found = model.generate(**tokenizer(LINES, return_tensors="pt", padding=True)).tolist()
    ended = [[BOS, *best.tokens, EOS] for (best, *_) in expected]
    longest = max(map(len, ended))
    assert found == [one + [BOS] * (longest - len(one)) for one in ended]


HOSTILE = [
    "</s>", "<s>", "<pad>", "<unk>", "<0x41>", "▁", placeholder(0), placeholder(FIRST_NUMBER_PLACEHOLDER),
    placeholder(99), ">>", "<<", ">>fr<<", "e\u0301", "\uff41\u0301", "\u1112\u1161\u11ab", "½", "\u00a0", "\u200b",
    "\ufeff", "\r\n", "\u3000", "\u2028", "\0", "👨\u200d👩", "क्षि", "  ", "ba", "BA", "1984", "...", "漢字",
]  # fmt: skip


@pytest.fixture(scope="module", params=["bpe", "unigram", "char", "bpe separate", "bpe as it is"])
def both_tokenizers(request, tmp_path_factory):
    """Ours and theirs, with slots, of each kind and normalization."""
    kind, _, how = request.param.partition(" ")
    settings = {"normalization": "identity"} if how == "as it is" else {}
    source = _tokenizer(1, 304, slots=4, kind=kind, **settings)
    target = _tokenizer(2, 330, slots=4, kind=kind, **settings) if how == "separate" else source
    place = tmp_path_factory.mktemp("tokenizers")
    run = train_briefly(place / "run", TokenizerPair(source, target), updates=1, norm="post")
    return source, target, _load(run, place / "out")[0]


@given(line=st.lists(st.one_of(st.sampled_from(HOSTILE), st.text(max_size=4))).map("".join))
def test_tokenizer_encodes_like_the_model(both_tokenizers, line):
    source, target, theirs = both_tokenizers
    if line.startswith(">>") and "<<" in line:
        return  # README.md says what MarianTokenizer does with it
    assert theirs(line)["input_ids"] == [*source.encode([line])[0], EOS]
    assert theirs(text_target=line)["input_ids"] == [*target.encode([line])[0], EOS]


@given(data=st.data())
def test_tokenizer_decodes_like_the_model(both_tokenizers, data):
    _, target, theirs = both_tokenizers
    pieces = data.draw(st.lists(st.integers(len(SPECIAL_TOKENS), target.vocabulary_size - 1)))
    expected = target.decode([pieces])[0].replace("▁", " ").strip()
    assert theirs.decode([BOS, *pieces, EOS, PAD], skip_special_tokens=True) == expected


def test_save_pretrained_preserves_model_and_tokenizer(exported, tmp_path):
    _, tokenizer, model = exported
    for part in (tokenizer, model):
        part.save_pretrained(tmp_path)
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path).state_dict()
    assert all(weight.equal(again[name]) for name, weight in model.state_dict().items())
    assert transformers.AutoTokenizer.from_pretrained(tmp_path)(LINES) == tokenizer(LINES)


def test_ctranslate2_converts_pegasus(exported, tmp_path):
    ctranslate2 = pytest.importorskip("ctranslate2")
    _, tokenizer, model = exported
    if type(model).__name__ != "PegasusForConditionalGeneration":
        pytest.skip("the converter only supports Pegasus and the original vocabulary of MarianMT")
    folder = Path(model.name_or_path)
    assert "`beam_size=4` and `length_penalty=0.7`" in (folder / "README.md").read_text()
    ctranslate2.converters.TransformersConverter(str(folder)).convert(str(tmp_path / "converted"))
    batch = tokenizer(LINES, return_tensors="pt", padding=True)
    expected = [[id for id in row if id not in SPECIAL_TOKENS] for row in model.generate(**batch).tolist()]
    results = ctranslate2.Translator(str(tmp_path / "converted")).translate_batch(
        list(map(tokenizer.convert_ids_to_tokens, tokenizer(LINES)["input_ids"])),
        beam_size=DECODING["beam_size"],
        length_penalty=DECODING["length_penalty"],
        max_decoding_length=40,
    )
    found = [tokenizer.convert_tokens_to_ids(result.hypotheses[0]) for result in results]
    ended = {tuple(ids): row for ids, row in zip(found, expected, strict=True) if len(ids) < 40}
    assert len(ended) > 15, "a test of few translations"
    assert list(map(list, ended)) == list(ended.values())


REFUSED = [
    ("rnn", {}, True, ["model.architecture=rnn_attention"]),
    ("transformer", {"norm": "post", **LEARNED}, True, ["model.positions=learned with model.norm=post"]),
    ("transformer", {"tie_embeddings": False}, True, ["model.tie_embeddings=false with model.norm=pre"]),
    ("transformer", {}, False, ["tokenizer.joint=false with model.norm=pre"]),
    (
        "transformer",
        {"tie_embeddings": False},
        False,
        ["model.tie_embeddings=false with", "tokenizer.joint=false with"],
    ),
]


@pytest.mark.parametrize(("architecture", "model", "joint", "reasons"), REFUSED, ids=str)
def test_transformers_obstacles_are_all_reported(tokenizers, architecture, model, joint, reasons):
    config = toy.config(Path(), architecture=architecture, model=toy.MODELS[architecture] | model).model
    trained = SimpleNamespace(description=SimpleNamespace(model=config), tokenizers=tokenizers[joint])
    obstacles = transformers_obstacles(trained)
    assert len(obstacles) == len(reasons)
    assert all(map(str.startswith, obstacles, reasons))


def test_unsupported_model_is_not_exported(tokenizers, tmp_path):
    run = train_briefly(tmp_path / "run", tokenizers[False], updates=1)
    with pytest.raises(InputError, match="transformers cannot run this model: tokenizer.joint=false"):
        _load(run, tmp_path / "new" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_unknown_position_encoding_is_an_obstacle():
    config = TransformerConfig.model_construct(architecture="transformer", norm="pre", positions="rotary")
    trained = SimpleNamespace(description=SimpleNamespace(model=config))
    assert transformers_obstacles(trained) == ["model.positions=rotary with model.norm=pre: it has no such Transformer"]
