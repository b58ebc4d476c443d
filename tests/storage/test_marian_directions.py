"""The directions of a MarianMT folder are those of the language tokens in its vocabulary."""

import json
import os

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers")

from mt.core.direction import AskedDirection, Direction  # noqa: E402
from mt.core.errors import InputError  # noqa: E402
from mt.storage.folders import read_description  # noqa: E402
from mt.translation.trained_model import read_tokenizers  # noqa: E402
from mt.translation.translator import Translator  # noqa: E402
from tests.marian_folder import sentences, write_folder  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:Recommended")

LINES = sentences("source", 6, seed=9)


def _renamed(folder, *tokens, **languages):
    """A folder with other language tokens and other languages in its tokenizer's config."""
    write_folder(folder)
    for name, changes in (
        ("vocab.json", dict(zip((">>xx<<", ">>yy<<"), tokens, strict=True))),
        ("tokenizer_config.json", {}),
    ):
        content = json.loads((folder / name).read_text())
        content = {changes.get(key, key): value for key, value in content.items()} | (languages if not changes else {})
        (folder / name).write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="module")
def romance(tmp_path_factory):
    folder = tmp_path_factory.mktemp("romance")
    return _renamed(folder, ">>fra<<", ">>pt_br<<", source_lang="en", target_lang="ROMANCE")


def _translate(folder, lines, **asked):
    return Translator.load(folder, device="cpu", asked=AskedDirection(**asked)).translate(lines)


@pytest.mark.parametrize("target", ["fra", "fr"])
def test_the_token_of_a_language_is_put_in_front_of_its_lines(romance, target):
    typed = [f">>fra<< {line}" for line in LINES]
    expected = _translate(romance, typed)
    assert expected != _translate(romance, LINES), "the token matters"
    assert _translate(romance, LINES, target=target) == expected
    assert _translate(romance, typed, target=target) == expected, "a typed token is not doubled"
    assert _translate(romance, typed, target="pt") == expected, "a typed token wins"
    assert _translate(romance, ["", "\u200b"], target=target) == ["", ""]


def test_other_languages_are_refused_with_those_that_there_are(romance):
    with pytest.raises(InputError, match=r"translates en→fra, en→pt_br, and was not trained for any language→de"):
        _translate(romance, LINES, target="de")
    assert list(read_description(romance).layers) == [Direction("en", "fra"), Direction("en", "pt_br")]


@pytest.mark.parametrize("source", [None, "und", "ROMANCE"])
def test_a_group_or_no_language_as_source_stays_unknown(tmp_path, source):
    folder = _renamed(tmp_path, ">>fra<<", ">>cmn_Hans<<", source_lang=source, target_lang="mul")
    assert list(read_description(folder).layers) == [Direction("und", "fra"), Direction("und", "cmn_Hans")]
    assert _translate(folder, LINES, target="zh", source="en") == _translate(folder, LINES, target="cmn_Hans")


def test_a_language_of_the_tokens_is_not_taken_for_that_of_all_lines(tmp_path):
    folder = _renamed(tmp_path, ">>fr<<", ">>de<<", source_lang="en", target_lang="fr")
    assert read_description(folder).target_language == "und"
    typed = [f">>de<< {line}" for line in LINES]
    assert _translate(folder, typed) == _translate(folder, LINES, target="de")


def test_a_vocabulary_without_such_tokens_has_one_direction(tmp_path):
    description = read_description(_renamed(tmp_path, ">>1<<", "fr"))
    assert description.directions == () and list(description.layers) == [Direction("xx", "yy")]


def test_tokenizers_of_several_languages_share_their_pieces(romance):
    source = read_tokenizers(romance).source
    first, second = source.towards("fra"), source.towards("pt_br")
    assert first.scores is second.scores
    assert [own.subwords(own.encode(["ba"])[0])[0] for own in (first, second)] == [">>fra<<", ">>pt_br<<"]
    assert source.own_code("fr") == "fra" and source.own_code("pt") == "pt_br" and source.own_code("de") is None
