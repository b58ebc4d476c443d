"""Models of ``transformers``: translations, scores and alignments, compared with ``generate``."""

import functools
import json
from pathlib import Path

import pytest

transformers = pytest.importorskip("transformers")

from mt.config import DecodingChoice, SynthesisConfig  # noqa: E402
from mt.core.errors import InputError  # noqa: E402
from mt.core.language import AskedDirection  # noqa: E402
from mt.synthesis.command import synthesize  # noqa: E402
from mt.translation.engine import SearchRequest  # noqa: E402
from mt.translation.hypotheses import collate_sources  # noqa: E402
from mt.translation.transformers_system import _closest_language_code  # noqa: E402
from mt.translation.translator import Translator  # noqa: E402
from tests import toy, transformers_folder  # noqa: E402
from tests.in_process import call  # noqa: E402

ARCHITECTURES = [*transformers_folder.LANGUAGES]
LINES = [*toy.sentences(14, seed=9, longest=12), "", "  ba de  ", "漢 ba", "ba, de: <x> fi!"]

pytestmark = pytest.mark.filterwarnings("ignore:Recommended")


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    for architecture in ARCHITECTURES:
        transformers_folder.write_folder(folder / architecture, architecture)
    return folder


def load(folder: Path, **decoding: object) -> Translator:
    asked = AskedDirection("en", "xx" if folder.name == "marian" else "fr")
    return Translator.load(f"transformers:{folder}", DecodingChoice(**decoding), "cpu", asked=asked)


@functools.cache
def expected(folder: Path, beam_size: int | None = None) -> list[str]:
    return transformers_folder.generated(folder, LINES, beam_size)


@pytest.mark.parametrize("beam_size", [1, 4, None])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_translations_equal_those_of_generate(folders, architecture, beam_size):
    translator = load(folders / architecture, **({"beam_size": beam_size} if beam_size else {}))
    assert translator.translate(LINES) == expected(folders / architecture, beam_size)


def test_translations_do_not_depend_on_batch(folders):
    translator = load(folders / "nllb", batch_tokens=1)
    assert [translator.translate([line])[0] for line in LINES] == expected(folders / "nllb")


@pytest.mark.parametrize("architecture", ["madlad", "marian"])
def test_scores_equal_those_of_generate(folders, architecture):
    translator = load(folders / architecture, beam_size=3)
    network, tokens = translator.model.network, translator.tokenizers.source.encode(["ba de fi"])
    (hypotheses,) = translator.engine.search(SearchRequest(tokens, [()], n_best=3))
    settings = {"num_beams": 3, "num_return_sequences": 3, "output_scores": True, "return_dict_in_generate": True}
    inputs = translator.model.ids[collate_sources(tokens)]
    found = network.generate(inputs, **settings, max_new_tokens=hypotheses[0].length + 40)

    end = network.generation_config.eos_token_id
    scores = [
        float(score) for row, score in zip(found.sequences, found.sequences_scores, strict=True) if end in row[1:]
    ]
    assert scores
    assert [own.score(1.0) for own in hypotheses[: len(scores)]] == pytest.approx(scores, abs=1e-5)


def test_tags_and_alignments_follow_attention(folders):
    ((best,),) = load(folders / "mbart50").hypotheses(["ba **de fi** go"], aligned=True)
    assert best.text.count("**") == 2
    assert best.alignment


def test_tokenizer_spans_are_positions_of_tokens(folders):
    """The spans of the language token and of the unknown character are empty."""
    (spans,) = load(folders / "nllb").tokenizers.source.spans(["ba ba 漢 de"])
    assert [(span.start, span.end) for span in spans] == [(0, 0), (0, 2), (3, 5), (5, 5), (5, 5), (8, 10)]


def test_score_of_given_translations(folders):
    short, blank, long = load(folders / "nllb").score(["ba de"] * 3, ["ba", " ", "ba de fi go ku"])
    assert 0 > short.score != long.score < 0
    assert blank.score is None


def test_long_line_is_split_into_sources(folders):
    translator = load(folders / "m2m100", max_source_length=4)
    sources = translator.segment(translator._as_lines(["ba de fi go ku la mo"], None, toy.line("")))[0].sources
    prefix = translator.tokenizers.source.prefix
    assert len(sources) > 1
    assert all(own[:1] == prefix and len(own) <= 4 for own in sources)


@pytest.mark.parametrize(
    ("code", "known", "own"),
    [
        ("fr", ["eng_Latn", "fra_Latn"], "fra_Latn"),
        ("fra", ["en_XX", "fr_XX"], "fr_XX"),
        ("zh_TW", ["zho_Hans", "zho_Hant"], "zho_Hant"),
        ("zho_Hant", ["zho_Hans", "zho_Hant"], "zho_Hant"),
        ("lv", ["lit_Latn", "lvs_Latn"], "lvs_Latn"),
    ],
)
def test_closest_language_code_is_one_of_the_model(code, known, own):
    assert _closest_language_code(code, known) == own


def test_closest_language_code_rejects_missing_language():
    with pytest.raises(InputError, match=r"bs: the model lacks this language.*such as .*srp_Cyrl"):
        _closest_language_code("bs", ["hrv_Latn", "srp_Cyrl", "eng_Latn"])


def words(folders: Path, architecture: str = "nllb") -> list[str]:
    return [f"run=transformers:{folders / architecture}", "source_language=en", "target_language=fr"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["translate", "decoding.method=sample"], "decoding.method=sample: transformers has a beam search of its own"),
        (["translate", "target_language=tlh"], "tlh: the model lacks this language"),
        (["synthesize", "method=distillation", "output=x.jsonl"], "set method=distillation input=FILE"),
        (["export", "format=ctranslate2", "output=x"], "take Seq2SeqTrainer of transformers"),
    ],
)
def test_unsupported_uses_are_rejected(folders, tmp_path, arguments, message):
    command, *own = arguments
    given = words(folders)[: 1 if command == "export" else None]
    names = {word.partition("=")[0] for word in own}
    result = call(command, *own, *(word for word in given if word.partition("=")[0] not in names), folder=tmp_path)
    assert (result.returncode, message in result.stderr) == (2, True), result.stderr


def test_pickled_weights_are_rejected(folders, tmp_path):
    pickled = tmp_path / "pickled"
    pickled.mkdir()
    for file in (folders / "nllb").glob("*.json"):
        (pickled / file.name).write_bytes(file.read_bytes())
    (pickled / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(InputError, match="To convert pickled weights: python -c"):
        load(pickled)


def test_distillation_writes_translations_of_generate(folders, tmp_path):
    toy.write_lines(tmp_path / "mono.en", LINES)
    settings = dict(word.split("=") for word in words(folders, "t5"))
    files = {"input": str(tmp_path / "mono.en"), "output": str(tmp_path / "table.jsonl")}
    synthesize(SynthesisConfig(method="distillation", threads=1, **settings, **files))
    rows = list(map(json.loads, (tmp_path / "table.jsonl").read_text().splitlines()))
    assert rows
    assert all(expected(folders / "t5")[row["line"] - 1] == row["fr"] for row in rows)


def test_compare_accepts_transformers_model(folders, shared_runs, tmp_path):
    teacher = f"transformers:{folders / 't5'}"
    quick = ["timed_sentences=4", "studied_sentences=2", "examples=2", "randomization_trials=100"]
    result = call(
        "compare", f"first={shared_runs['transformer-1']}", f"second={teacher}", "output=out", *quick, folder=tmp_path
    )

    assert result.returncode == 0, result.stderr
    student, system = json.loads((tmp_path / "out" / "comparison.json").read_text())["systems"]
    assert student["cost"]["parameters"] < system["cost"]["parameters"]
    assert system["cost"]["sentences_per_second_batched"] > 0
    assert system["cost"]["training_minutes"] is None
