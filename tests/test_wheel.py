"""A wheel built from the sources works outside of a checkout: commands, config files, recipes, template."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from mt.core.installation import CONF, IS_INSTALLED, RECIPES, corpora
from tests import toy
from tests.lowest_versions import lowest_versions

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "setup.py", "MANIFEST.in", "LICENSE", "train.py", "translate.py", "mt", "conf", "data")
BRIEF = [
    "training.max_updates=3", "training.schedule.warmup=1", "training.validate_every=3", "training.batch_tokens=256",
    "training.device=cpu", "training.threads=1", "training.valid_bleu_pairs=4", "tokenizer.vocabulary_size=320",
    "model.width=16", "model.feed_forward=16", "model.encoder_layers=1", "model.decoder_layers=1", "name=toy",
    "decoding.beam_size=1", "decoding.max_length_ratio=1", "decoding.max_length_extra=2",
]  # fmt: skip


def _python(*words: object, **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@dataclass(frozen=True)
class Installed:
    """Runs an installed command in a folder that holds nothing but what commands wrote there."""

    place: Path
    folder: Path
    environment: dict[str, str]

    def __call__(self, name: str, *words: str, stdin: str = "") -> str:
        script = self.place / "bin" / name
        return _python(script, *words, cwd=self.folder, env=self.environment, input=stdin).stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built by way of a source distribution; a copy of the sources keeps what building leaves out of the checkout."""
    folder = tmp_path_factory.mktemp("build")
    sources = folder / "sources"
    sources.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            # The recipes of data/ lie beside the corpora that they fetched.
            fetched = {path.name for path in RECIPES.iterdir() if path.is_dir()} if name == "data" else set()
            shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__", *fetched))
        else:
            shutil.copy(ROOT / name, sources)
    build = "import sys; from setuptools import build_meta; print(getattr(build_meta, sys.argv[1])(sys.argv[2]))"
    _python("-c", build, "build_sdist", folder, cwd=sources)
    (archive,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    pip = ("-m", "pip", "--disable-pip-version-check", "wheel", "--no-build-isolation", "--no-deps", "--no-index")
    _python(*pip, "--wheel-dir", folder, unpacked)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def command(wheel, tmp_path_factory):
    """The wheel installed for a user whose cache holds a corpus under the default one's name."""
    installed, home = tmp_path_factory.mktemp("installed"), tmp_path_factory.mktemp("home")
    pip = ("-m", "pip", "--disable-pip-version-check", "install", "--no-deps", "--no-index", "--quiet")
    _python(*pip, "--target", installed, wheel)
    corpus = home / "cache/mt-trainer" / "tatoeba_en_fr"
    corpus.mkdir(parents=True)
    toy.write_corpus(corpus, "copy", train=300)
    for file in list(corpus.iterdir()):
        file.rename(file.with_suffix({".xx": ".en", ".yy": ".fr"}[file.suffix]))
    (home / "elsewhere").mkdir()
    environment = os.environ | {
        "PYTHONPATH": str(installed), "XDG_CACHE_HOME": str(home / "cache"), "OMP_NUM_THREADS": "1",
        "PIP_NO_INDEX": "1",
    }  # fmt: skip

    return Installed(installed, home / "elsewhere", environment)


def test_wheel_has_every_module_config_and_recipe(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {
        *(
            path.relative_to(ROOT).as_posix()
            for path in (ROOT / "mt").rglob("*")
            if path.suffix in (".py", ".typed", ".jinja", ".yaml", ".html", ".css", ".js")
        ),
        *(f"mt/conf/{path.relative_to(CONF).as_posix()}" for path in CONF.rglob("*.yaml")),
        *(f"mt/recipes/{path.name}" for path in RECIPES.glob("*.py")),
    }
    assert {name for name in names if ".dist-info/" not in name} == expected


def test_lowest_versions_are_those_of_pyproject():
    """``make test-lowest`` installs these."""
    assert {"datasets==4.3", "py3langid==0.4", "ruamel.yaml==0.18"} <= set(lowest_versions())


@pytest.mark.slow
def test_installed_commands_run(command):
    command("mt-train", *BRIEF)  # on the default corpus, found in the cache
    assert command("mt-translate", "run=runs/toy", stdin="ba de\n\nfi\n").count("\n") == 3
    shutil.copytree(command.folder / "runs/toy", command.folder / "runs/other")
    command("mt-compare", "first=runs/toy", "second=runs/other", "output=o", "studied_sentences=0", "timed_sentences=0")
    assert (command.folder / "o/report.html").is_file()
    assert json.loads((command.folder / "runs/toy/provenance.json").read_text())["starts"][0][
        "code_revision"
    ].startswith("mt-tr")


def test_help_shows_installed_commands(command):
    text = command("mt", "translate", "--help")
    assert text == command("mt-translate", "--help")
    assert re.search("^  mt translate ", text, re.MULTILINE) and "python" not in text


def test_checkout_uses_its_own_folders(monkeypatch):
    assert not IS_INSTALLED
    assert (CONF, RECIPES, corpora()) == (ROOT / "conf", ROOT / "data", ROOT / "data")


@pytest.mark.parametrize(
    ("system", "named", "expected"),
    [
        ("linux", "/there", "/there/mt-trainer"),
        ("linux", "", "/home/me/.cache/mt-trainer"),
        ("linux", "relative", "/home/me/.cache/mt-trainer"),
        ("darwin", "/there", "/home/me/Library/Caches/mt-trainer"),
    ],
)
def test_installed_corpora_are_in_user_cache(monkeypatch, system, named, expected):
    monkeypatch.setattr("mt.core.installation.IS_INSTALLED", True)
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    assert corpora() == Path(expected)
