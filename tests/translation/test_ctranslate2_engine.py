"""CTranslate2 finds what the model finds; it follows the weights."""

import shutil
import sys
from collections import Counter
from pathlib import Path
from unittest.mock import Mock

import ctranslate2
import pytest
import torch

from mt.config import DecodingConfig, ExportConfig, TokenizerConfig
from mt.config.decoding import ENGINES
from mt.core.errors import InputError
from mt.export.ctranslate2 import export_ctranslate2
from mt.storage.model_folder import NativeFolder
from mt.storage.weights import weights_metadata, weights_of, write_tensors
from mt.tokenizer.tokenizer import BOS, PAD, UNK, TokenizerPair
from mt.tokenizer.training import train_tokenizer
from mt.translation.ctranslate2_conversion import ctranslate2_obstacles
from mt.translation.engine import SearchRequest, engine_class
from mt.translation.trained_model import open_model
from mt.translation.translator import Translator
from tests import toy
from tests.brief import train_briefly

TIE = 1e-4
"""Of hypotheses whose scores are this near each other, either engine may find either."""
LINES = toy.sentences(30, 4) + ["漢字 ba", "x" * 40, "", "ba de " * 30]
"""Also of pieces that are single bytes, blank, and longer than goes through the model at once."""


@pytest.fixture(scope="module")
def tokenizers():
    """Joint and separate vocabularies, of different sizes."""
    one, other = (
        train_tokenizer(toy.sentences(300, seed), ("xx",), TokenizerConfig(vocabulary_size=size))
        for seed, size in ((1, 315), (2, 320))
    )
    return {True: TokenizerPair(one, one), False: TokenizerPair(one, other)}


def _change_weights(run, change):
    trained = open_model(run)
    with torch.no_grad():
        change(trained.model)
    belonging = weights_metadata(trained.description.model, trained.tokenizers.files())
    write_tensors(run / "model.safetensors", weights_of(trained.model), belonging)


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory, tokenizers):
    return train_briefly(tmp_path_factory.mktemp("trained"), tokenizers[True])


@pytest.fixture
def run(trained_once, tmp_path):
    """A model folder for a test to do with as it likes."""
    return Path(shutil.copytree(trained_once, tmp_path / "run"))


def _translators(run, **decoding):
    values = {"max_source_length": 30, "max_length_extra": 20, "batch_tokens": 400} | decoding
    return (
        Translator.load(run, DecodingConfig(**values, engine=engine), device="cpu")
        for engine in ("torch", "ctranslate2")
    )


def _assert_equal(found, expected):
    assert len(found) == len(expected)
    for several, before in zip(found, expected, strict=True):
        assert len(several) == len(before)
        scores = [([one.score or 0.0 for one in some]) for some in (several, before)]
        assert scores[0] == pytest.approx(scores[1], abs=TIE)
        for one, two, score in zip(several, before, scores[1], strict=True):
            if one.text != two.text:
                near = [other for other in before if abs((other.score or 0.0) - score) < 2 * TIE]
                assert len(near) > 1, (several, before)


def _left(translator, checker=None):
    """How many of the lines' parts CTranslate2 leaves to the model, and how many there are."""
    cut = translator.segment(list(map(toy.line, LINES)))
    parts = [pieces for line in cut for pieces in line.sources]
    found = translator.engine.search_with_ctranslate2(SearchRequest(parts, parts, checkers=[checker] * len(parts)))
    return found.count([]), len(parts)


GREEDY, WIDE = {"beam_size": 1}, {"beam_size": 5, "n_best": 5}
BY_TOTAL, BETWEEN = {"beam_size": 4, "n_best": 2, "length_penalty": 0.0}, {"beam_size": 3, "length_penalty": 0.6}
MODELS = [
    ({}, True, [GREEDY, WIDE]),
    ({"norm": "post", "activation": "gelu", "tie_embeddings": False}, True, [BY_TOTAL, BETWEEN]),
    ({"activation": "gelu", "positions": "learned", "max_positions": 130}, False, [WIDE, BETWEEN]),
    ({"norm": "post", "tie_embeddings": False, "positions": "learned", "max_positions": 130}, False, [GREEDY]),
]
"""Settings of a model, whether its vocabulary is joint, and decoding settings to try."""


@pytest.mark.parametrize(("model", "joint", "decodings"), MODELS, ids=str)
def test_engines_find_the_same_hypotheses(tokenizers, tmp_path, model, joint, decodings):
    run = train_briefly(tmp_path / "run", tokenizers[joint], **model)
    for decoding in decodings:
        torch_, ctranslate2_ = _translators(run, **decoding)
        expected = torch_.hypotheses(LINES)
        assert len({several[0].text for several in expected}) > 10, "a test of one translation"
        _assert_equal(ctranslate2_.hypotheses(LINES), expected)
        left, all_ = _left(ctranslate2_)
        assert left < 2 * all_ / 3, "a test of the model against itself"


@pytest.mark.parametrize("beam_size", [1, 4])
def test_at_the_length_limit_hypotheses_end_as_those_of_the_model(run, beam_size):
    for extra in (0, 4):
        torch_, ctranslate2_ = _translators(
            run, beam_size=beam_size, n_best=beam_size, max_length_ratio=0.2, max_length_extra=extra
        )
        _assert_equal(ctranslate2_.hypotheses(LINES), torch_.hypotheses(LINES))
        assert _left(ctranslate2_)[0] > 0
        # What a checker excludes anyway, the model need not search without constraints.
        assert (_left(ctranslate2_, Mock())[0] > 0) is (beam_size > 1)


def test_what_is_left_to_the_model_keeps_to_the_budget(run, monkeypatch):
    torch_, ctranslate2_ = _translators(run, beam_size=4, max_length_ratio=0.2, max_length_extra=0, batch_tokens=150)
    fallback, sizes = ctranslate2_.engine.fallback, []
    search = fallback.search

    def watched(request):
        count = len(request.sources)
        sizes.append((count, 4 * count * (len(request.sources[0]) + 1)))
        return search(request)

    monkeypatch.setattr(fallback, "search", watched)
    _assert_equal(ctranslate2_.hypotheses(LINES), torch_.hypotheses(LINES))
    assert all(sources == 1 or tokens <= 150 for sources, tokens in sizes)
    assert max(sources for sources, _ in sizes) > 1, "a test of single sources"


@pytest.mark.parametrize("beam_size", [1, 4])
def test_pieces_that_are_never_written_are_not_written(run, beam_size):
    texts = Translator.load(run, DecodingConfig(beam_size=beam_size), device="cpu").translate(LINES[:10])
    written = Counter(piece for pieces in open_model(run).tokenizers.target.encode(texts) for piece in pieces)
    ((most_frequent, _),) = written.most_common(1)

    def make_specials_likely(model):
        # Above the piece where its logit is positive, and where it is negative.
        model.output_weight[[PAD, UNK]] = torch.tensor([[1.3], [0.7]]) * model.output_weight[most_frequent]
        model.output_weight[BOS] = model.output_weight[most_frequent]

    _change_weights(run, make_specials_likely)
    torch_, ctranslate2_ = _translators(run, beam_size=beam_size, n_best=beam_size)
    _assert_equal(ctranslate2_.hypotheses(LINES), torch_.hypotheses(LINES))
    assert _left(ctranslate2_)[0] > 0


def test_sources_beyond_the_table_of_positions_are_translated(run):
    long = ["ba de " * 1050, "ba de fi"]
    settings = {"max_source_length": 3000, "max_length_ratio": 0.001, "beam_size": 1}
    torch_, ctranslate2_ = _translators(run, **settings)
    _assert_equal(ctranslate2_.hypotheses(long), torch_.hypotheses(long))


def test_a_wide_beam_takes_no_more_rows_at_a_time(run):
    def at_once(beam_size, compute_type=None):
        config = DecodingConfig(engine="ctranslate2", beam_size=beam_size, compute_type=compute_type)
        return Translator.load(run, config, device="cpu").engine.max_batch_size

    assert at_once(1) == at_once(5) == 128 and at_once(100) == 6
    assert at_once(5, "int8") == 32 and at_once(150, "int8") == 1


def test_cores_share_the_batches_and_torch_keeps_its_threads(run):
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    torch_, ctranslate2_ = _translators(run, beam_size=2, batch_tokens=60)
    assert torch.get_num_threads() == 3
    found = ctranslate2_.hypotheses(LINES)
    torch.set_num_threads(threads)
    _assert_equal(found, torch_.hypotheses(LINES))


def test_what_is_called_after_a_batch_may_stop(run):
    _, translator = _translators(run, batch_tokens=30)
    calls = []

    def stop_at_the_third(done, total):
        calls.append((done, total))
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        translator.translate(LINES, after_batch=stop_at_the_third)
    assert [done for done, _ in calls] == [1, 2, 3] and {total > 3 for _, total in calls} == {True}


def test_other_compute_types_translate(run):
    config = DecodingConfig(engine="ctranslate2", compute_type="int8_float32", max_source_length=30)
    translator = Translator.load(run, config, device="cpu")
    assert translator.engine._translator.compute_type == "int8_float32"
    assert [bool(text) for text in translator.translate(["ba de fi", "", "go ku"])] == [True, False, True]


@pytest.mark.parametrize("name", ENGINES)
def test_every_registered_engine_is_a_value_of_the_setting(name):
    assert engine_class(DecodingConfig(engine=name).engine).name == name


def test_what_the_machine_cannot_compute_is_refused_first():
    supported = ctranslate2.get_supported_compute_types("cpu")
    missing = {"float16", "int8_float16"} - supported
    if not missing:
        pytest.skip("this processor computes everything")
    config = DecodingConfig(engine="ctranslate2", compute_type=min(missing))
    with pytest.raises(InputError, match=f"compute_type={min(missing)} .* supported are .*float32"):
        Translator.load("nowhere", config, device="cpu")


def test_without_the_package_one_message_says_what_to_install(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(InputError, match="pip install"):
        Translator.load(run, DecodingConfig(engine="ctranslate2"), device="cpu")
    with pytest.raises(InputError, match="pip install"):
        export_ctranslate2(ExportConfig(format="ctranslate2", run=str(run), output=str(tmp_path / "out")))
    assert Translator.load(run, DecodingConfig(), device="cpu").translate(["ba"])


def test_every_reason_against_it_is_reported_at_once_and_the_model_translates(tmp_path, tokenizers, caplog):
    run = train_briefly(tmp_path, tokenizers[True], architecture="rnn", updates=1)
    settings = {"beam_size": 200, "max_length_extra": 3, "max_length_ratio": 0.1}
    torch_, ctranslate2_ = _translators(run, **settings)
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "model.architecture=rnn_attention" in warning and "decoding.beam_size=200" in warning
    assert ctranslate2_.hypotheses(LINES[:2]) == torch_.hypotheses(LINES[:2])
    with pytest.raises(InputError, match="model.architecture=rnn_attention"):
        export_ctranslate2(ExportConfig(format="ctranslate2", run=str(run), output=str(tmp_path / "out")))
    assert not (tmp_path / "out").exists() and len(ctranslate2_obstacles(open_model(run).description.model)) == 1


def test_the_engine_follows_the_weights_and_reads_and_writes_no_export_in_the_run(run):
    (run / "ctranslate2").mkdir()
    (run / "ctranslate2" / "model.bin").write_bytes(b"forged")
    before = sorted(run.rglob("*"))
    torch_, first = _translators(run)
    _assert_equal(first.hypotheses(LINES), torch_.hypotheses(LINES))
    _change_weights(run, lambda model: model.output_weight[5:].mul_(-1))
    torch_, second = _translators(run)
    _assert_equal(second.hypotheses(LINES), torch_.hypotheses(LINES))
    assert second.translate(LINES) != first.translate(LINES)
    assert sorted(run.rglob("*")) == before and (run / "ctranslate2" / "model.bin").read_bytes() == b"forged"


def test_ctranslate2_alone_loads_the_plain_export(run, tmp_path, tokenizers):
    output = tmp_path / "new" / "export"
    export_ctranslate2(ExportConfig(format="ctranslate2", run=str(run), output=str(output)))
    torch_, _ = _translators(run, beam_size=3)
    source, target = tokenizers[True].source, tokenizers[True].target
    lines = [line for line in LINES[:20] if line]
    pieces = [source.subwords(ids) for ids in source.encode(lines)]
    results = ctranslate2.Translator(str(output)).translate_batch(pieces, beam_size=3, max_decoding_length=60)
    numbers = {name: number for number, name in enumerate(target.subwords(range(target.vocabulary_size)))}
    texts = target.decode([[numbers[name] for name in result.hypotheses[0]] for result in results])
    same = [text == expected for text, expected in zip(texts, torch_.translate(lines), strict=True)]
    assert sum(same) >= 0.8 * len(lines)  # its limits are other ones
    assert next(iter(NativeFolder(output).read_tokenizer_files().values())) == source.model


def test_a_quantized_export_is_smaller_and_leaves_the_run_as_it_was(run, tmp_path):
    def files():
        return {path.name: path.read_bytes() for path in run.iterdir() if path.is_file()}, sorted(run.iterdir())

    before = files()
    sizes = {}
    for quantization in (None, "int8", "float16"):
        output = tmp_path / f"as {quantization}"
        export_ctranslate2(
            ExportConfig(format="ctranslate2", run=str(run), output=str(output), quantization=quantization)
        )
        sizes[quantization] = (output / "model.bin").stat().st_size
        assert ctranslate2.Translator(str(output)).translate_batch([["▁ba"]])[0].hypotheses
    assert sizes["int8"] < sizes[None] and sizes["float16"] < sizes[None]
    assert files() == before


def test_an_export_overwrites_nothing(run, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "precious").write_text("mine")
    for output in (tmp_path / "taken", run / "model.yaml"):
        with pytest.raises(InputError, match="exists"):
            export_ctranslate2(ExportConfig(format="ctranslate2", run=str(run), output=str(output)))
    assert (tmp_path / "taken" / "precious").read_text() == "mine"
    (tmp_path / "empty").mkdir()
    export_ctranslate2(ExportConfig(format="ctranslate2", run=str(run), output=str(tmp_path / "empty")))
    assert (tmp_path / "empty" / "model.bin").exists()
