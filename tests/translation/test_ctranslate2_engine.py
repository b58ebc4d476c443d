"""The engine CTranslate2, which has to find the hypotheses of PyTorch, and the export for CTranslate2."""

import ast
import runpy
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
from mt.translation.engine import SearchRequest, engine_class
from mt.translation.trained_model import open_model
from mt.translation.translator import Translator
from tests import toy
from tests.brief import train_briefly

TIE = 1e-4
"""The order of hypotheses may differ between engines if their scores differ by less than this."""
LINES = toy.sentences(30, 4) + ["漢字 ba", "x" * 40, "", "ba de " * 30]
"""Some have byte tokens, are blank, or exceed the maximum source length."""


@pytest.fixture(scope="module")
def tokenizers():
    """Joint and separate vocabularies, of different sizes."""
    source, target = (
        train_tokenizer(toy.sentences(300, seed), ("xx",), TokenizerConfig(vocabulary_size=size))
        for seed, size in ((1, 315), (2, 320))
    )
    return {True: TokenizerPair(source, source), False: TokenizerPair(source, target)}


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory, tokenizers):
    return train_briefly(tmp_path_factory.mktemp("trained"), tokenizers[True])


@pytest.fixture
def run(trained_once, tmp_path):
    """A model folder that a test may change."""
    return Path(shutil.copytree(trained_once, tmp_path / "run"))


def _export_config(run, output, **settings):
    return ExportConfig(format="ctranslate2", run=str(run), output=str(output), **settings)


def _translators(run, **decoding):
    values = {"max_source_length": 30, "max_length_extra": 20, "batch_tokens": 400} | decoding
    return (
        Translator.load(run, DecodingConfig(**values, engine=engine), device="cpu")
        for engine in ("torch", "ctranslate2")
    )


def _assert_equal(found, expected):
    """Compare hypotheses. The order of those with nearly equal scores may differ."""
    assert list(map(len, found)) == list(map(len, expected))
    for n_best, expected_n_best in zip(found, expected, strict=True):
        scores, expected_scores = ([each.score or 0.0 for each in texts] for texts in (n_best, expected_n_best))
        assert scores == pytest.approx(expected_scores, abs=TIE)
        for each, other, score in zip(n_best, expected_n_best, expected_scores, strict=True):
            ties = [tie for tie in expected_scores if abs(tie - score) < 2 * TIE]
            assert each.text == other.text or len(ties) > 1, (n_best, expected_n_best)


def _count_fallbacks(translator, checker=None):
    """Return the number of sources that CTranslate2 leaves to PyTorch, and the number of all sources."""
    lines = translator.segment(list(map(toy.line, LINES)))
    sources = [source for line in lines for source in line.sources]
    request = SearchRequest(sources, sources, checkers=[checker] * len(sources))
    return translator.engine.search_with_ctranslate2(request).count([]), len(sources)


GREEDY, WIDE = {"beam_size": 1}, {"beam_size": 5, "n_best": 5}
BY_TOTAL, BETWEEN = {"beam_size": 4, "n_best": 2, "length_penalty": 0.0}, {"beam_size": 3, "length_penalty": 0.6}
MODELS = [
    ({}, True, [GREEDY, WIDE]),
    ({"norm": "post", "activation": "gelu", "tie_embeddings": False}, True, [BY_TOTAL, BETWEEN]),
    ({"activation": "gelu", "positions": "learned", "max_positions": 130}, False, [WIDE, BETWEEN]),
    ({"norm": "post", "tie_embeddings": False, "positions": "learned", "max_positions": 130}, False, [GREEDY]),
]
"""Settings of a model, whether its vocabulary is joint, and decoding settings."""


@pytest.mark.parametrize(("model", "joint", "decodings"), MODELS, ids=str)
def test_ctranslate2_finds_the_hypotheses_of_torch(tokenizers, tmp_path, model, joint, decodings):
    run = train_briefly(tmp_path / "run", tokenizers[joint], **model)
    for decoding in decodings:
        torch_, ctranslate2_ = _translators(run, **decoding)
        expected = torch_.hypotheses(LINES)
        assert len({n_best[0].text for n_best in expected}) > 10, "too few distinct translations"
        _assert_equal(ctranslate2_.hypotheses(LINES), expected)
        fallbacks, sources = _count_fallbacks(ctranslate2_)
        assert fallbacks < 2 * sources / 3, "PyTorch searches too many sources"


@pytest.mark.parametrize("extra", [0, 4])
@pytest.mark.parametrize("beam_size", [1, 4])
def test_hypotheses_end_at_length_limit(run, beam_size, extra):
    limits = {"max_length_ratio": 0.2, "max_length_extra": extra}
    torch_, ctranslate2_ = _translators(run, beam_size=beam_size, n_best=beam_size, **limits)
    _assert_equal(ctranslate2_.hypotheses(LINES), torch_.hypotheses(LINES))
    assert _count_fallbacks(ctranslate2_)[0] > 0
    # A greedy hypothesis that a checker rejects is not searched again without constraints.
    assert (_count_fallbacks(ctranslate2_, Mock())[0] > 0) is (beam_size > 1)


def test_fallback_respects_batch_tokens(run, monkeypatch):
    torch_, ctranslate2_ = _translators(run, beam_size=4, max_length_ratio=0.2, max_length_extra=0, batch_tokens=150)
    fallback, batches = ctranslate2_.engine.fallback, []
    search = fallback.search

    def recorded_search(request):
        batches.append(request.sources)
        return search(request)

    monkeypatch.setattr(fallback, "search", recorded_search)
    _assert_equal(ctranslate2_.hypotheses(LINES), torch_.hypotheses(LINES))
    assert all(len(batch) == 1 or 4 * len(batch) * (len(batch[0]) + 1) <= 150 for batch in batches)
    assert max(map(len, batches)) > 1, "only batches of one source"


@pytest.mark.parametrize("beam_size", [1, 4])
def test_suppressed_tokens_are_not_generated(run, beam_size):
    trained = open_model(run)
    texts = Translator.load(run, DecodingConfig(beam_size=beam_size), device="cpu").translate(LINES[:10])
    generated = Counter(token for tokens in trained.tokenizers.target.encode(texts) for token in tokens)
    ((most_frequent, _),) = generated.most_common(1)
    with torch.no_grad():
        # Logits of PAD and UNK exceed those of the token where these are positive, and where they are negative.
        frequent = trained.model.output_weight[most_frequent]
        trained.model.output_weight[[PAD, UNK]] = torch.tensor([[1.3], [0.7]]) * frequent
        trained.model.output_weight[BOS] = frequent
    metadata = weights_metadata(trained.description.model, trained.tokenizers.files())
    write_tensors(run / "model.safetensors", weights_of(trained.model), metadata)
    torch_, ctranslate2_ = _translators(run, beam_size=beam_size, n_best=beam_size)
    _assert_equal(ctranslate2_.hypotheses(LINES), torch_.hypotheses(LINES))
    assert _count_fallbacks(ctranslate2_)[0] > 0


def test_sources_beyond_position_table_are_translated(run):
    lines = ["ba de " * 1050, "ba de fi"]
    torch_, ctranslate2_ = _translators(run, max_source_length=3000, max_length_ratio=0.001, beam_size=1)
    _assert_equal(ctranslate2_.hypotheses(lines), torch_.hypotheses(lines))


@pytest.mark.parametrize(
    ("beam_size", "compute_type", "expected"),
    [(1, None, 128), (5, None, 128), (100, None, 6), (5, "int8", 32), (150, "int8", 1)],
)
def test_max_batch_size_decreases_with_beam_size(trained_once, beam_size, compute_type, expected):
    config = DecodingConfig(engine="ctranslate2", beam_size=beam_size, compute_type=compute_type)
    assert Translator.load(trained_once, config, device="cpu").engine.max_batch_size == expected


def test_ctranslate2_keeps_the_threads_of_torch(run):
    torch.set_num_threads(3)
    torch_, ctranslate2_ = _translators(run, beam_size=2, batch_tokens=60)
    threads, hypotheses = torch.get_num_threads(), ctranslate2_.hypotheses(LINES)
    torch.set_num_threads(1)
    assert threads == 3
    _assert_equal(hypotheses, torch_.hypotheses(LINES))


def test_after_batch_may_stop_translation(run):
    _, translator = _translators(run, batch_tokens=30)
    calls = []

    def stop_at_the_third(done, total):
        calls.append((done, total))
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        translator.translate(LINES, after_batch=stop_at_the_third)
    assert [done for done, _ in calls] == [1, 2, 3] and {total > 3 for _, total in calls} == {True}


def test_compute_type_is_passed_to_ctranslate2(run):
    config = DecodingConfig(engine="ctranslate2", compute_type="int8_float32", max_source_length=30)
    translator = Translator.load(run, config, device="cpu")
    assert translator.engine._translator.compute_type == "int8_float32"
    assert list(map(bool, translator.translate(["ba de fi", "", "go ku"]))) == [True, False, True]


@pytest.mark.parametrize("name", ENGINES)
def test_engine_names_are_values_of_the_setting(name):
    assert engine_class(DecodingConfig(engine=name).engine).name == name


def test_unsupported_compute_type_is_rejected_before_loading():
    unsupported = {"float16", "int8_float16"} - ctranslate2.get_supported_compute_types("cpu")
    if not unsupported:
        pytest.skip("this processor supports all compute types")
    config = DecodingConfig(engine="ctranslate2", compute_type=min(unsupported))
    with pytest.raises(InputError, match=f"compute_type={min(unsupported)} .* supported are .*float32"):
        Translator.load("nowhere", config, device="cpu")


def test_missing_ctranslate2_package_is_reported(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(InputError, match="pip install"):
        Translator.load(run, DecodingConfig(engine="ctranslate2"), device="cpu")
    with pytest.raises(InputError, match="pip install"):
        export_ctranslate2(_export_config(run, tmp_path / "out"))
    assert Translator.load(run, DecodingConfig(), device="cpu").translate(["ba"])


def test_unsupported_model_is_translated_by_torch_with_one_warning(tmp_path, tokenizers, caplog):
    run = train_briefly(tmp_path, tokenizers[True], architecture="rnn", updates=1)
    torch_, ctranslate2_ = _translators(run, beam_size=200, max_length_extra=3, max_length_ratio=0.1)
    (warning,) = caplog.messages
    assert "model.architecture=rnn_attention" in warning and "decoding.beam_size=200" in warning
    assert ctranslate2_.hypotheses(LINES[:2]) == torch_.hypotheses(LINES[:2])
    with pytest.raises(InputError, match="model.architecture=rnn_attention"):
        export_ctranslate2(_export_config(run, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("joint", [True, False], ids=["joint", "separate"])
def test_code_of_model_card_translates_with_the_export(tokenizers, tmp_path, monkeypatch, capsys, joint):
    run = train_briefly(tmp_path / "run", tokenizers[joint])
    output = tmp_path / "new" / "export"
    export_ctranslate2(_export_config(run, output))
    lines = [line for line in LINES[:20] if line]
    expected = Translator.load(run, DecodingConfig(beam_size=2), device="cpu").translate(lines)
    code = (output / "README.md").read_text().split("```python\n")[1].split("```")[0]
    (tmp_path / "card.py").write_text(code.replace("FOLDER", str(output)).replace('["Hello."]', repr(lines)))
    runpy.run_path(str(tmp_path / "card.py"))
    translations = ast.literal_eval(capsys.readouterr().out)
    same = [text == other for text, other in zip(translations, expected, strict=True)]
    assert sum(same) >= 0.8 * len(lines)  # CTranslate2's length limits are different
    assert next(iter(NativeFolder(output).read_tokenizer_files().values())) == tokenizers[joint].source.model


def test_quantized_export_is_smaller(run, tmp_path):
    sizes = {}
    for quantization in (None, "int8", "float16"):
        output = tmp_path / str(quantization)
        export_ctranslate2(_export_config(run, output, quantization=quantization))
        sizes[quantization] = (output / "model.bin").stat().st_size
        assert ctranslate2.Translator(str(output)).translate_batch([["▁ba"]])[0].hypotheses
    assert max(sizes["int8"], sizes["float16"]) < sizes[None]
