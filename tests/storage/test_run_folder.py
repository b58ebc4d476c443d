"""Whatever is changed in a file that a resume or a translation depends on is noticed, and the file is named."""

import random

import datasets
import pytest
import safetensors.torch
import torch
from safetensors.torch import save_file

from mt.config import MixtureConfig, TokenizerConfig
from mt.core.errors import InputError
from mt.models.build import build_model
from mt.storage.folders import read_description
from mt.storage.model_description import AlignmentConfig, ModelDescription, TextLayerDescription
from mt.storage.model_folder import write_description
from mt.storage.run_folder import config_differences, read_config
from mt.storage.validation import read_yaml_mapping, sealed
from mt.storage.weights import (
    CHECKSUMS,
    checksum,
    read_metadata,
    read_tensors,
    refuse_other_tokenizer,
    weights_metadata,
    weights_of,
    write_tensors,
)
from mt.storage.weights import TENSORS as TENSORS_KEY
from mt.tokenizer.training import train_tokenizers
from mt.training.checkpoint import Progress, newest_checkpoint, save_checkpoint
from mt.translation.trained_model import open_model
from tests import toy
from tests.damage import assert_each_flipped_bit_is_named

TENSORS = {"bias": torch.arange(3.0), "weight": torch.ones(2, 1)}


def test_every_flipped_bit_of_progress_is_noticed(tmp_path):
    save_checkpoint(tmp_path, Progress(update=7, seconds=1.5, scaler={"scale": 2.0}), TENSORS, {}, TENSORS)
    assert newest_checkpoint(tmp_path).progress == Progress(update=7, seconds=1.5, scaler={"scale": 2.0})
    path = tmp_path / "checkpoints/step_7/progress.json"
    assert_each_flipped_bit_is_named(path, lambda: newest_checkpoint(tmp_path))


def test_every_flipped_bit_of_a_safetensors_file_is_noticed(tmp_path):
    """Metadata with all that weights can have, names, shapes, blanks at the header's end and the numbers themselves."""
    path = tmp_path / "model.safetensors"
    write_tensors(path, TENSORS, {"architecture": {"heads": 4}, "tokenizer.model": "0" * 64})
    assert_each_flipped_bit_is_named(path, lambda: read_tensors(path))


@pytest.mark.parametrize("text", ["{}", '{"sha256": 1}', "[1,", "\ud800", "7"])
def test_forged_metadata_are_refused(tmp_path, text):
    path = tmp_path / "forged.safetensors"
    save_file(TENSORS, path, metadata={"checksums": text.encode(errors="replace").decode()})
    with pytest.raises(InputError, match=r"forged\.safetensors: corrupted"):
        read_tensors(path)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model folder, untrained."""
    folder = tmp_path_factory.mktemp("model")
    config = toy.config(folder)
    tokenizer = TokenizerConfig(kind="bpe", vocabulary_size=300)
    pairs = {side: toy.sentences(200, 1) for side in ("source", "target")}
    tokenizers = train_tokenizers(datasets.Dataset.from_dict(pairs), [("xx", "yy")], tokenizer, seed=1)
    tokenizers.save(folder)
    write_description(folder, toy.description(config, tokenizers))
    weights = weights_of(build_model(config.model, tokenizers))
    write_tensors(folder / "model.safetensors", weights, weights_metadata(config.model, tokenizers.files()))
    return folder


def _copy(model, to):
    for path in model.iterdir():
        (to / path.name).write_bytes(path.read_bytes())
    return to


def test_a_flipped_bit_of_the_tokenizer_is_noticed(model, tmp_path):
    folder = _copy(model, tmp_path)
    path = folder / "tokenizer.model"
    places = random.Random(1).sample(range(path.stat().st_size), 20)
    assert_each_flipped_bit_is_named(path, lambda: refuse_other_tokenizer(folder, folder / "model.safetensors"), places)
    content = path.read_bytes()
    place = content.index("▁t".encode()) + 3
    path.write_bytes(content[:place] + b"q" + content[place + 1 :])
    with pytest.raises(InputError, match=r"tokenizer\.model: corrupted"):
        open_model(folder)
    path.unlink()
    with pytest.raises(InputError, match=r"tokenizer\.model: no such file"):
        open_model(folder)


def test_a_tokenizer_that_is_added_is_not_taken_for_the_right_one(model, tmp_path):
    folder = _copy(model, tmp_path)
    for name in ("source.model", "target.model"):
        (folder / name).write_bytes((folder / "tokenizer.model").read_bytes())
    with pytest.raises(InputError, match=r"source\.model: corrupted, or not"):
        open_model(folder)


def test_weights_are_not_read_as_another_model_of_the_same_shapes(model, tmp_path):
    folder = _copy(model, tmp_path)
    description = folder / "model.yaml"
    text = description.read_text()
    for key, trained, changed in (("heads", "2", "1"), ("activation", "relu", "gelu")):
        assert f"  {key}: {trained}\n" in text
        description.write_text(text.replace(f"  {key}: {trained}\n", f"  {key}: {changed}\n"))
        with pytest.raises(InputError, match=f"model.{key} is {changed} in the description, but was {trained}"):
            open_model(folder)
    assert "  dropout: 0.1\n" in text
    description.write_text(text.replace("  dropout: 0.1\n", "  dropout: 0.3\n"))
    open_model(folder)


def test_a_changed_description_is_reported_of(tmp_path, caplog):
    """It is for people, who may set another default decoding; but the change may be a flipped bit."""
    config, path = toy.config(tmp_path), tmp_path / "model.yaml"
    description = ModelDescription.of(config, {config.data.direction: TextLayerDescription()}, AlignmentConfig())
    write_description(tmp_path, description)
    whole = path.read_bytes()
    assert read_description(tmp_path) == description and not caplog.records
    path.write_bytes(whole.replace(b"beam_size: 2", b"beam_size: 3"))
    assert read_description(tmp_path).decoding.beam_size == 3
    assert "model.yaml: edited or corrupted since training wrote it" in caplog.text
    caplog.clear()
    path.write_text(path.read_text().rpartition("sha256: ")[0])
    assert read_description(tmp_path).decoding.beam_size == 3 and not caplog.records
    chance = random.Random(1)
    for _ in range(300):
        place = chance.randrange(len(whole))
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
        caplog.clear()
        try:
            read_description(tmp_path)
        except InputError as error:
            assert "model.yaml" in str(error)
        else:
            assert "model.yaml: edited or corrupted" in caplog.text


@pytest.mark.parametrize(
    "dtype",
    [torch.int64, torch.bool, *({torch.complex64} & safetensors.torch._SIZE.keys())],  # since 0.6
)
def test_weights_in_a_format_that_no_weights_have_are_refused(model, tmp_path, dtype):
    folder = _copy(model, tmp_path)
    path = folder / "model.safetensors"
    tensors = {name: tensor.to(dtype) for name, tensor in read_tensors(path).items()}
    save_file(tensors, path, metadata={CHECKSUMS: sealed(read_metadata(path) | {TENSORS_KEY: checksum(tensors)})})
    with pytest.raises(InputError, match=f"is {dtype}"):
        open_model(folder)


def test_a_path_may_be_written_in_two_ways(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def config(train):
        corpora = [{"kind": "files", "train": train}, {"kind": "files", "train": ["c.xx", "c.yy"], "weight": 0.5}]
        return toy.config(tmp_path).model_copy(
            update={
                "data": MixtureConfig.model_validate(
                    {"kind": "mixture", "source_language": "xx", "target_language": "yy", "corpora": corpora}
                )
            }
        )

    one = config(["a.xx", "a.yy"])
    assert config_differences(one, config(["./a.xx", str(tmp_path / "a.yy")])) == {}
    assert config_differences(one, config(["b.xx", "a.yy"])).keys() == {"data.corpora"}


@pytest.mark.parametrize(("name", "read"), [("model.yaml", read_description), ("config.yaml", read_config)])
def test_a_bomb_of_merge_keys_is_refused_at_once(tmp_path, name, read):
    levels = "".join(f"a{n}: &a{n}\n  <<: [{', '.join([f'*a{n - 1}'] * 20)}]\n" for n in range(1, 12))
    (tmp_path / name).write_text(f"format: 1\na0: &a0 {{x: 1}}\n{levels}")
    with pytest.raises(InputError, match=rf"{name}: cannot be read: merge keys .<<. are not allowed"):
        read(tmp_path)


@pytest.mark.parametrize("value", ["[" * 5000, "\x00", "2020-99-99", "!!bool x", "!!timestamp x", "!!python/name:a"])
def test_read_yaml_mapping_refuses_invalid_values(tmp_path, value):
    path = tmp_path / "model.yaml"
    path.write_text(f"format: {value}")
    with pytest.raises(InputError, match=r"model\.yaml: cannot be read: "):
        read_yaml_mapping(path)
