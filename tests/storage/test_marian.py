"""A MarianMT folder of ``transformers`` is a model of ours that cuts, computes and finds what the original does, and
goes back as it came; and what cannot be read is refused."""

import json
import os
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")

from mt.config import DecodingConfig, ExportConfig  # noqa: E402
from mt.core.errors import InputError  # noqa: E402
from mt.core.language import AskedDirection  # noqa: E402
from mt.data.batching.batch import collate  # noqa: E402
from mt.export.hugging_face import export_hugging_face  # noqa: E402
from mt.storage import folders  # noqa: E402
from mt.storage.folders import read_description, resolve_model_path  # noqa: E402
from mt.text.line import Line  # noqa: E402
from mt.tokenizer.tokenizer import PAD, UNK  # noqa: E402
from mt.translation.trained_model import open_model  # noqa: E402
from mt.translation.translator import Translator  # noqa: E402
from tests.marian_folder import EXTRA, LAYOUTS, sentences, write_folder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Recommended")

LINES = [*sentences("source", 40, seed=9), "漢 ba", "漢字 ½½", "zzz Q", "  Ba de\u00a0fi  ", "ｂａ"]
TARGETS = [*sentences("target", len(LINES) - 2, seed=9), "漢", "Qé"]
LIMIT = 25
SEARCH = {"max_length_ratio": 0.001, "max_length_extra": LIMIT}


@pytest.fixture(scope="module", params=LAYOUTS, ids=lambda layout: layout.name)
def folder(request, tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("marian"), request.param)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return write_folder(tmp_path_factory.mktemp("original"))


@pytest.fixture
def marian(original, tmp_path):
    """A folder for a test to change."""
    return shutil.copytree(original, tmp_path / "marian")


@pytest.fixture(scope="module")
def theirs(folder):
    return transformers.AutoTokenizer.from_pretrained(folder), _model(folder)


def _model(folder):
    model, info = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, output_loading_info=True)
    assert type(model) is transformers.MarianMTModel and not any(info.values()), info
    return model.eval()


def _originals(tokenizer, rows):
    return [[tokenizer.vocabulary.order[piece] for piece in row] for row in rows]


def _pairs(trained):
    return collate(trained.tokenizers.source.encode(LINES), trained.tokenizers.target.encode(TARGETS))


def test_pieces_and_texts_are_the_same(folder, theirs):
    tokenizer, pair = theirs[0], open_model(folder).tokenizers
    assert _originals(pair.source, pair.source.encode(LINES)) == [row[:-1] for row in tokenizer(LINES).input_ids]
    targets = [row[:-1] for row in tokenizer(text_target=TARGETS).input_ids]
    assert _originals(pair.target, pair.target.encode(TARGETS)) == targets
    assert any(UNK in row for row in pair.source.encode(LINES)), "a test without unknown pieces"
    texts = tokenizer.batch_decode(targets, skip_special_tokens=True)
    assert pair.target.decode(pair.target.encode(TARGETS)) == texts
    for line, spans in zip(LINES, pair.source.spans(LINES), strict=True):
        assert [span.token for span in spans] == pair.source.encode([line])[0]


@torch.inference_mode()
def test_logits_are_the_same(folder, theirs):
    trained, (tokenizer, model) = open_model(folder), theirs
    pairs = _pairs(trained)
    ours = trained.model.project(trained.model.decode(trained.model.encode(pairs.source), pairs.target_input))
    batch = tokenizer(LINES, text_target=TARGETS, return_tensors="pt", padding=True)
    logits = model(**batch).logits[..., trained.tokenizers.target.vocabulary.order]
    written = pairs.target_output != PAD
    assert ours.std() > 0.5, "a test of next to nothing"
    assert torch.allclose(ours[written], logits[written], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_both_engines_translate_as_generate(folder, theirs, beam_size):
    """Lines are skipped whose translation reaches the limit there, where the end counts as certain."""
    tokenizer, model = theirs
    found = _generate(tokenizer, model, beam_size)
    ended = [place for place, (_, _, length) in enumerate(found) if length < LIMIT]
    assert len({found[place][0] for place in ended}) >= (4 if beam_size > 1 else 2), "a test of few translations"
    for engine in ("torch", "ctranslate2"):
        config = DecodingConfig(engine=engine, beam_size=beam_size, **SEARCH)
        ours = Translator.load(folder, config, device="cpu").hypotheses(LINES)
        assert [ours[place][0].text for place in ended] == [found[place][0] for place in ended]
        if beam_size > 1:
            scores = [ours[place][0].score for place in ended]
            assert scores == pytest.approx([found[place][1] for place in ended], abs=1e-4)


def _generate(tokenizer, model, beam_size):
    """Returns the text, the score and the length of each translation that ``generate`` finds, of what our search may
    write."""
    config = model.config
    found = model.generate(
        **tokenizer(LINES, return_tensors="pt", padding=True),
        num_beams=beam_size,
        early_stopping=beam_size > 1,
        max_length=LIMIT + 2,
        length_penalty=1.0,
        suppress_tokens=sorted({config.pad_token_id, config.decoder_start_token_id, tokenizer.unk_token_id, 1}),
        return_dict_in_generate=True,
        output_scores=True,
    )
    texts = tokenizer.batch_decode(found.sequences, skip_special_tokens=True)
    special = {config.pad_token_id, config.decoder_start_token_id, config.eos_token_id}
    lengths = [sum(piece not in special for piece in row) for row in found.sequences.tolist()]
    scores = found.sequences_scores.tolist() if beam_size > 1 else [0.0] * len(texts)
    return list(zip(texts, scores, lengths, strict=True))


def test_it_comes_back_as_it_was(folder, tmp_path):
    """To the bit, with the numbers that the pieces had."""
    export_hugging_face(ExportConfig(format="hugging_face", run=str(folder), output=str(tmp_path / "out")))
    before, after = load_file(folder / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert after.keys() == before.keys() - {"model.shared.weight"} | (after.keys() & {"model.shared.weight"})
    assert all(torch.equal(after[name], before[name]) for name in after)
    for name in ("source.spm", "target.spm"):
        assert (tmp_path / "out" / name).read_bytes() == (folder / name).read_bytes()
    for name in ("vocab.json", "target_vocab.json"):
        if (folder / name).exists():
            assert json.loads((tmp_path / "out" / name).read_text()) == json.loads((folder / name).read_text())
    _model(tmp_path / "out")
    kept = ("pad_token_id", "eos_token_id", "decoder_start_token_id", "activation_function", "scale_embedding")
    configs = [json.loads((place / "config.json").read_text()) for place in (folder, tmp_path / "out")]
    same = {"silu": "swish"}
    assert [same.get(configs[1][name], configs[1][name]) for name in kept] == [
        same.get(configs[0][name], configs[0][name]) for name in kept
    ]


def test_names_of_target_languages_are_pieces(folder):
    source = open_model(folder).tokenizers.source
    plain, named = source.encode(["ba de", ">>xx<< ba de"])
    assert source.subwords(named) == [">>xx<<", *source.subwords(plain)]
    assert source.encode([">>qq<< ba"])[0] != source.encode(["ba"])[0]
    assert source.spans([">>xx<< ba"])[0][0] == (named[0], 0, 6)
    assert EXTRA[2] == ">>xx<<"


@pytest.mark.parametrize(("source", "known"), [("en", "en"), ("ROMANCE", "und")])
def test_a_language_token_is_put_in_front_of_lines_without_one(marian, source, known):
    for file, old, new in (("vocab", ">>xx<<", ">>fra<<"), ("tokenizer_config", '"xx"', f'"{source}"')):
        path = marian / f"{file}.json"
        path.write_text(path.read_text().replace(old, new))
    description = read_description(marian)
    assert [*map(str, description.layers)] == [f"{known}→fra", f"{known}→yy"] and description.target_language == "und"
    typed = [f">>fra<< {line}" for line in LINES]
    expected = Translator.load(marian, device="cpu").translate(typed)
    for target, lines in (("fra", LINES), ("fr", LINES), ("fr", typed), ("yy", typed)):
        asked = AskedDirection("en", target)
        assert Translator.load(marian, device="cpu", asked=asked).translate(["\u200b", *lines]) == ["", *expected]


def test_each_part_of_a_long_line_has_the_name_of_the_language(marian):
    translator = Translator.load(marian, DecodingConfig(max_source_length=9), device="cpu")
    line = ">>yy<< " + " ".join(LINES[:6])
    parts = translator.segment([Line().with_text(line)])[0].sources
    language, *pieces = translator.tokenizers.source.encode([line])[0]
    assert len(parts) > 5 and all(len(part) <= 9 and part[0] == language for part in parts)
    assert [piece for part in parts for piece in part[1:]] == pieces


def _change_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def _without(name):
    return lambda tensors: tensors.pop(name)


def _replaced(name, tensor):
    return lambda tensors: tensors.update({name: tensor})


def _renamed(tensors):
    tensors["model.encoder.layers.0.fc9.weight"] = tensors.pop("model.encoder.layers.0.fc1.weight")


def _misshapen(tensors):
    tensors["final_logits_bias"] = tensors["final_logits_bias"][:, 1:].contiguous()


def _untied(tensors):
    tensors["lm_head.weight"] = tensors["model.shared.weight"] + 1


@pytest.mark.parametrize(
    "change, message",
    [
        (_without("model.decoder.layers.1.fc2.bias"), r"model\.decoder\.layers\.1\.fc2\.bias is missing; copy"),
        (_renamed, r"fc1\.weight is missing; model\.encoder\.layers\.0\.fc9\.weight is not part of the model"),
        (_misshapen, r"final_logits_bias has shape \(1, 816\), but config\.json says \(1, 817\)"),
        (_untied, r"model\.shared\.weight and lm_head\.weight differ, but config\.json says that they are the same"),
        *(
            (
                _replaced("model.encoder.embed_positions.weight", table),
                r"embed_positions\.weight is not part of the model",
            )
            # The last takes no byte in the file, but a table of so many positions would take 128 TB.
            for table in (torch.ones(512, 32), torch.tensor(1.0), torch.ones(10**12, 0))
        ),
        (
            lambda tensors: tensors["model.decoder.layers.0.fc1.bias"].fill_(float("nan")),
            r"model\.decoder\.layers\.0\.fc1\.bias has numbers that are not finite;",
        ),
        (
            lambda tensors: tensors.update({"final_logits_bias": tensors["final_logits_bias"].to(torch.int8)}),
            r"final_logits_bias is torch\.int8;",
        ),
    ],
)
def test_marian_reports_tensors_that_do_not_fit(marian, change, message):
    _change_tensors(marian, change)
    with pytest.raises(InputError, match=rf"model\.safetensors: .*{message}"):
        open_model(marian)


def test_tables_of_positions_that_are_computed_anyway_are_read_over(marian):
    table = _model(marian).model.encoder.embed_positions.weight.detach().clone()
    _change_tensors(marian, _replaced("model.encoder.embed_positions.weight", table))
    open_model(marian)


@pytest.mark.parametrize(
    "file, changes, message",
    [
        ("config.json", {"model_type": "mbart"}, r"model_type='mbart' is not supported: .* only marian"),
        ("config.json", {"activation_function": "tanh"}, r"activation_function='tanh': supported are relu, gelu"),
        ("config.json", {"encoder_ffn_dim": 64}, r"encoder_ffn_dim=64 and decoder_ffn_dim=48: only the same"),
        ("config.json", {"normalize_before": True}, r"normalize_before: Input should be False"),
        ("config.json", {"d_model": "wide"}, r"d_model: Input should be a valid integer"),
        ("config.json", {"d_model": 31}, r"config\.json: heads=4 does not divide width=31; .*: sinusoidal positions"),
        ("config.json", {"d_model": 10**9}, r"config\.json: d_model: Input should be less than or equal to 65536;"),
        ("config.json", {"max_position_embeddings": 1}, r"max_position_embeddings=1: a sentence has"),
        (
            "generation_config.json",
            {"num_beams": 10**9},
            r"generation_config\.json: num_beams: Input should be less than or equal to 1000; correct",
        ),
        ("vocab.json", {"\ud800": 817}, r"vocab\.json: cannot be read: .* surrogates not allowed; correct"),
        ("vocab.json", {"nothing": 816}, r"vocab\.json: has 818 pieces, but must number from 0 to 816, once each"),
        ("config.json", {"vocab_size": 816, "decoder_vocab_size": 816}, r"vocab\.json: has 817 pieces, but must"),
        ("config.json", {"vocab_size": 10**15, "decoder_vocab_size": 10**15}, r"vocab\.json: has 817 pieces, but must"),
        ("config.json", {"pad_token_id": 0}, r"does not fit vocab\.json: its special pieces do not have different"),
        ("config.json", {"decoder_start_token_id": 0}, r"decoder_start_token_id is eos_token_id"),
        ("config.json", {"encoder_layers": 3}, r"model\.encoder\.layers\.2\.self_attn\.k?q?v?_?proj.* is missing"),
        ("tokenizer_config.json", {"separate_vocabs": True}, r"separate_vocabs=true contradicts share_encoder_decoder"),
    ],
)
def test_marian_checks_config(marian, file, changes, message):
    path = marian / file
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(InputError, match=rf"(?s){message}"):
        open_model(marian)


def test_a_vocabulary_of_other_tokenizers_is_refused(marian):
    path = marian / "vocab.json"
    others = {name: f"⟨{name}⟩" for name in json.loads(path.read_text()) if name not in ("</s>", "<unk>", "<pad>")}
    numbers = json.loads(path.read_text())
    path.write_text(json.dumps({others.get(name, name): number for name, number in numbers.items()}))
    with pytest.raises(InputError, match=r"vocab\.json: fits another tokenizer than source\.spm: it has 0 of its"):
        read_description(marian)


@pytest.mark.parametrize("name", ["source.spm", "vocab.json", "config.json", "model.safetensors"])
@pytest.mark.parametrize("damage", ["missing", "corrupted"])
def test_marian_reports_missing_and_corrupted_files(marian, name, damage):
    if damage == "missing":
        (marian / name).unlink()
    else:
        (marian / name).write_bytes(b"\x08rubbish")
    named = "model.yaml" if (name, damage) == ("config.json", "missing") else name
    with pytest.raises(
        InputError, match=rf"{named}:? .*(no such file|cannot be read|corrupted|give the folder of a run)"
    ):
        open_model(marian)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_weights_of_other_precisions_are_read_as_fp32(marian, kind):
    _change_tensors(marian, lambda tensors: tensors.update({name: one.to(kind) for name, one in tensors.items()}))
    read = load_file(marian / "model.safetensors")["model.encoder.layers.0.fc1.bias"].float()
    weights = dict(open_model(marian).model.named_parameters())
    assert torch.equal(weights["encoder.layers.0.feed_forward.inner.bias"], read)


@pytest.mark.parametrize(
    ("weights", "index", "reason"),
    [
        ("pytorch_model.bin", "none", "pickles are not read, "),
        (
            "model-00001-of-00001.safetensors",
            "model.safetensors.index.json",
            r"weights in several files are not read\. ",
        ),
    ],
)
def test_other_files_of_weights_are_never_read(marian, weights, index, reason):
    """transformers puts several together; no MarianMT model is so large that they would have to be apart."""
    (marian / "model.safetensors").rename(marian / weights)
    (marian / index).write_text("{}")
    with pytest.raises(InputError, match=reason + ".*save_pretrained"):
        open_model(marian)


def test_marian_warns_of_generation_settings_not_supported(marian, caplog):
    path = marian / "generation_config.json"
    generation = json.loads(path.read_text())
    pad = generation["pad_token_id"]
    path.write_text(json.dumps(generation | {"suppress_tokens": [pad], "min_length": 0, "do_sample": False}))
    read_description(marian)
    assert "ignores" not in caplog.text
    path.write_text(json.dumps(generation | {"bad_words_ids": [[pad], [7]], "forced_bos_token_id": 9, "min_length": 5}))
    read_description(marian)
    assert "ignores min_length=5, forced_bos_token_id=9, bad_words_ids=" in caplog.text


def test_without_a_network_a_name_of_the_hub_is_one_message(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    with pytest.raises(InputError, match=r"^Helsinki-NLP/opus-mt-xx-yy@main: no such folder, and the model"):
        open_model(resolve_model_path("Helsinki-NLP/opus-mt-xx-yy@main"))


def test_a_folder_that_exists_is_never_looked_for_on_the_hub(tmp_path, monkeypatch):
    """Nor is what should be inside of one, such as a run whose name has a typing error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("it was looked for"))
    (tmp_path / "runs").mkdir()
    for name in ("runs/tpyo", "runs", "nowhere", "/a/b", "../x"):
        assert str(resolve_model_path(name)) == name
    with pytest.raises(InputError, match=r"^runs/tpyo: no such run or model folder; give the folder of a run"):
        read_description(resolve_model_path("runs/tpyo"))


def test_a_model_of_the_hub_is_where_the_hub_puts_it(tmp_path, monkeypatch):
    """With the revision that was asked for, and through links, of which the hub's cache consists."""
    folder = write_folder(tmp_path / "blobs")
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    for path in folder.iterdir():
        (snapshot / path.name).symlink_to(path)
    asked = []

    def download(name, revision, allow_patterns):
        asked.append((name, revision))
        assert not any(pattern.endswith((".bin", "*")) for pattern in allow_patterns)
        return str(snapshot)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    folders.download.cache_clear()
    expected = Translator.load(folder).translate(LINES[:5])
    assert Translator.load("owner/model@v2").translate(LINES[:5]) == expected
    assert Translator.load("owner/model").translate(LINES[:5]) == expected
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(InputError, match=r"^owner/pickled: has no .*from_pretrained\('owner/pickled'\)"):
        Translator.load("owner/pickled")
    asked.pop()
    assert dict.fromkeys(asked) == dict.fromkeys([("owner/model", "v2"), ("owner/model", None)])
