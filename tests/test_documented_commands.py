"""What README.md and docs/ tell to type, and what the Makefile types, is understood; and their links lead somewhere."""

import gzip
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import MagicMock

import pytest

import mt
from mt.cli.command_line import run_command
from mt.cli.commands import COMMANDS
from mt.cli.composition import compose_job
from mt.cli.config_files import example
from mt.core.errors import InputError
from mt.core.installation import CONF
from mt.core.process import exit_status
from mt.storage.folders import read_description
from mt.storage.model_description import ConfidenceConfig
from mt.storage.model_folder import write_description
from mt.storage.run_folder import read_config, read_results, write_config
from mt.training.command import train
from mt.training.trainer import ON_VALIDATION
from tests import toy

ROOT = Path(__file__).parents[1]
TYPED_AS = {command.typed.removeprefix("python "): command for command in COMMANDS.values()}
PAGES = [*sorted(ROOT.glob("*.md")), ROOT / "data" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WRITTEN = {page: page.read_text(encoding="utf-8") for page in PAGES}
DRY_RUN = ["make", "--dry-run", "--always-make", "demo", "compare", "SEEDS=2"]
MADE = subprocess.run(DRY_RUN, cwd=ROOT, capture_output=True, text=True, check=True).stdout
"""What make would type."""
TYPED = re.compile(rf"python ({'|'.join(map(re.escape, TYPED_AS))}) ([^`\n]*)")


def typed(texts: Sequence[str] = (*WRITTEN.values(), MADE.replace("&&", "\n"))) -> list[tuple[str, str]]:
    """Returns commands and what follows them, without redirections, comments, brackets round options, and words that
    hold an ellipsis. A variable of a loop is 1."""
    found = dict.fromkeys(command for text in texts for command in TYPED.findall(re.sub(r"\\\n *", "", text)))
    plain = [(command, re.sub(r"[<>|;].*| #.*|\[(\S+=\S+)\]|\S*…\S*", r"\1", words)) for command, words in found]
    flags = ("--help", "--config-dir", "-sc", "continue_from=")  # of these, continue_from reads a run
    plain = [(command, re.sub(r"\$[a-z]+", "1", words)) for command, words in plain]
    return [(command, words) for command, words in plain if not any(flag in words for flag in flags)]


def test_pages_document_every_command():
    assert {command for command, _ in typed()} == set(TYPED_AS)
    assert len(typed()) > 15


@pytest.mark.parametrize(("command", "words"), typed())
def test_documented_command_is_composed(command, words):
    found = TYPED_AS[command]
    assert compose_job(found.name, found.schema, shlex.split(words))


# Every command that needs no network and no larger data than a test has. What README.md and docs/ show runs as it
# stands, but for the size of what is trained and the time that a report takes.
SMALL = {
    "train": [
        "model.width=32", "model.encoder_layers=1", "model.decoder_layers=1", "tokenizer.vocabulary_size=320",
        "training.max_updates=4", "training.schedule.warmup=1", "training.batch_tokens=512", "data.valid_pairs=20",
        "data.test_pairs=20",
    ],
    "compare": ["studied_sentences=0", "timed_sentences=0", "bootstrap_samples=100", "randomization_trials=200"],
    "robustness": ["sentences=10"],
    "average": ["run=[runs/demo@100,runs/A]"],
}  # fmt: skip


def runnable() -> list[tuple[str, str]]:
    pages = [text for page, text in WRITTEN.items() if page.name != "coming-from.md"]
    found = []
    for command, words in typed(pages):
        reads_own_files = re.search(r"data=(files|table|mixture)", words)
        if command == "-m mt serve" or "Helsinki-NLP" in words or "transformers:" in words:
            continue  # the first does not end, and the others need a network
        if command != "train.py" or (reads_own_files and "init_from" not in words):
            found.append((command, words))
    return found


@pytest.fixture(scope="module")
def working_folder(tmp_path_factory):
    """Everything that the documented commands name: texts, tables, a translation memory, runs."""
    folder = tmp_path_factory.mktemp("documented")
    toy.write_corpus(folder, "reverse", train=300)
    training = {"max_updates": 100, "validate_every": 100}  # enough for some translations that are not loops
    config = toy.config(folder, "demo", decoding={"beam_size": 5}, training=training)
    train(config)
    fitted = ConfidenceConfig(**dict.fromkeys(ConfidenceConfig.model_fields, 0.0))  # the validation set is too small
    described = read_description(config.folder)
    write_description(config.folder, described.model_copy(update={"confidence": fitted}))
    seeds = dict.fromkeys(("transformer", "lstm", "A", "B", "C", "mine"), 1) | {
        f"{side}{seed}": seed for side in "AB" for seed in (1, 2, 3)
    }
    for name, seed in seeds.items():
        copy = toy.copy_to_change(config.folder, folder / "runs" / name)
        write_config(copy, read_config(copy).model_copy(update={"seed": seed}))
        toy.record_checksums(copy)
    for name in ("en-es", "en-es-1", "en-es-2", "es-en", "es-en-1", "es-en-2", "zh-en", "large"):
        copy = toy.copy_to_change(config.folder, folder / "runs" / name)
        languages = dict(zip(("source_language", "target_language"), f"{name}-en".split("-"), strict=False))
        write_description(copy, read_description(copy).model_copy(update=languages))
    corpus = toy.config(folder).data.model_dump(mode="json", include={"kind", "train", "valid", "test"})
    both = corpus | {"source_language": "en", "target_language": "es", "reverse": True}
    several = {
        "kind": "mixture",
        "cleaning": False,
        "corpora": [both, both | {"target_language": "zh", "reverse": False}],
    }
    for name, data in (("both", both | {"cleaning": False}), ("three", several)):
        values = toy.config(folder, name).model_dump(mode="json")
        train(type(config).model_validate(values | {"data": data}))
    sides = {side: (folder / f"train.{side}").read_text().splitlines() for side in ("xx", "yy")}
    for name in ("my", "other", "old", "before", "after", "news"):
        toy.write_lines(folder / f"{name}.en", sides["xx"])
        for target in ("es", "fr", "zh"):
            toy.write_lines(folder / f"{name}.{target}", sides["yy"])
    pairs = list(zip(sides["xx"], sides["yy"], strict=True))
    (folder / "pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs))
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{one}</seg></tuv>'
        + "".join(f'<tuv xml:lang="{code}"><seg>{other}</seg></tuv>' for code in ("es", "zh"))
        + "</tu>"
        for one, other in pairs
    )
    (folder / "memory.tmx").write_text(f'<tmx version="1.4"><header/><body>{units}</body></tmx>')
    for name in ("memories", "memories/old", "corpora"):
        (folder / name).mkdir()
    for memory in ("memories/new.tmx", "memories/old/first.tmx"):
        shutil.copy(folder / "memory.tmx", folder / memory)
    entries = "".join(f'\nmsgid "{one}"\nmsgstr "{other}"\n' for one, other in pairs)
    for name in ("messages.po", "po/es.po", "po/fr.po", "locale/a/messages.po", "app/messages.po"):
        (folder / name).parent.mkdir(exist_ok=True, parents=True)
        (folder / name).write_text(f'{entries}\nmsgid "ba de"\nmsgstr ""\n')
    (folder / "page.html").write_text("<p>ba <b>de</b></p>\n")
    (folder / "strings.json").write_text('{"where": "ba de", "tired": "de"}')
    with zipfile.ZipFile(folder / "letter.docx", "w") as archive:
        namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
        archive.writestr("word/document.xml", f'<w:document xmlns:w="{namespace}"/>')
    (folder / "more.csv").write_text("en,es\n" + "".join(f"{one},{other}\n" for one, other in pairs[:50]))
    glossary = "en\tes\n" + (folder / "pairs.tsv").read_text()
    (folder / "terms.tsv").write_text("ba\tba|de\n")
    (folder / "glossary.tsv.gz").write_bytes(gzip.compress(glossary.encode()))
    for name in ("corpora/news", "corpora/talks", "a", "b"):
        for code in ("en", "es"):
            shutil.copy(folder / f"my.{code}", folder / f"{name}.{code}")
    for code in ("en", "es", "zh"):
        shutil.copy(folder / "test.xx", folder / f"mono.{code}")
    for name in ("back", "distilled"):
        rows = (json.dumps({"en": one, "es": other, "fr": other}) for one, other in pairs)
        (folder / f"{name}.jsonl").write_text("".join(f"{row}\n" for row in rows))
    for name, split in (("wrong.en", "xx"), ("right.en", "xx"), ("train.src", "xx"), ("train.trg", "yy")):
        shutil.copy(folder / f"train.{split}", folder / name)
    references = (("reference.txt", "test.yy"), ("reference1.txt", "test.yy"), ("reference2.txt", "test.xx"))
    for name, split in (("in.txt", "test.xx"), ("source.txt", "test.xx"), *references):
        shutil.copy(folder / split, folder / name)
    for name in ("theirs.txt", "ours.txt"):
        shutil.copy(config.folder / "scored/test.hypothesis", folder / name)
    sentences = len((folder / "test.xx").read_text().splitlines())
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("".join(f"{len(name) + line % 7}\n" for line in range(sentences)))
    return folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("command", "words"), runnable())
def test_documented_command_runs(command, words, working_folder, monkeypatch, caplog, capsys):
    if "ctranslate2" in words or "argos" in words:
        pytest.importorskip("ctranslate2")
    name = TYPED_AS[command].name
    own_place = {"train": [f"runs={tempfile.mkdtemp(dir=working_folder)}"], "compare": []}.get(name, [])
    if name == "compare" and "output=" not in words:
        own_place = [f"output={tempfile.mkdtemp(dir=working_folder)}"]
    if name == "synthesize":
        own_place = [f"output={tempfile.mkdtemp(dir=working_folder)}/pairs.jsonl"]
    monkeypatch.chdir(working_folder)
    with Path("in.txt").open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        status = exit_status(
            lambda: run_command(COMMANDS[name], [*shlex.split(words), *SMALL.get(name, []), *own_place])
        )
    assert status == 0, caplog.text
    if name == "translate" and "output" not in words:
        assert len(capsys.readouterr().out.splitlines()) == len(Path("in.txt").read_text().splitlines())


PYTHON = [block for text in WRITTEN.values() for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)]


@pytest.mark.parametrize("block", PYTHON)
def test_documented_python_runs(block, working_folder, monkeypatch):
    monkeypatch.chdir(working_folder)
    trained: list[object] = []

    def train_nothing(config):  # an example trains the default corpus
        trained.append(config)
        if on_validation := ON_VALIDATION.get():
            on_validation(10, {"loss": 1.0, "bleu": 2.0, "chrf": 3.0})
        return mt.Results(**read_results(Path("runs/demo")))

    monkeypatch.setattr("mt.training.command.train", train_nothing)
    monkeypatch.setitem(sys.modules, "wandb", MagicMock())
    exec(block, {"__name__": "__main__"})  # what the project's own pages show
    assert bool(trained) == ("train(" in block)


SETTINGS = re.compile(r"`((?:'?[a-z_]+(?:\.[a-z_]+)*=[^\s`…]+ ?)+)`")
NAMED = dict.fromkeys(words for text in WRITTEN.values() for words in SETTINGS.findall(text))


@pytest.mark.parametrize("words", [words for words in NAMED if words not in ("key.sub=value", "key=value")])
def test_documented_settings_are_valid(words):
    around = [
        ("train", []),
        ("train", ["model=rnn_attention"]),
        ("train", shlex.split(example(CONF / "data" / "table.yaml") or "")),
        ("train", shlex.split(example(CONF / "data" / "hub.yaml") or "")),
        ("train", ["training.init_from=runs/first"]),
        ("translate", ["run=runs/demo"]),
        ("translate", ["run=runs/demo", "decoding.engine=ctranslate2"]),
        ("compare", ["first=runs/A", "second=runs/B"]),
        ("compare", ["first=[runs/A1,runs/A2,runs/A3]", "second=[runs/B1,runs/B2,runs/B3]"]),
        ("compare", []),
        ("robustness", ["run=runs/A"]),
        ("synthesize", ["method=back_translation", "run=a", "input=b", "output=c.jsonl"]),
        ("clean", [*shlex.split(example(CONF / "clean.yaml") or "")]),
        ("export", ["format=argos", "run=runs/demo", "output=demo.argosmodel"]),
        ("serve", ["run=runs/A"]),
    ]
    keys = {word.partition("=")[0].partition(".")[0] for word in shlex.split(words)}
    around.sort(key=lambda case: not keys <= COMMANDS[case[0]].schema.model_fields.keys())  # the likeliest first
    reasons = []
    for name, others in around:
        try:
            compose_job(name, COMMANDS[name].schema, [*others, *shlex.split(words)])
            return
        except InputError as error:
            reasons.append(str(error))
    pytest.fail("\n".join(reasons))


LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def links() -> list[tuple[Path, str]]:
    """Those to other places of the project."""
    found = [(page, link) for page, text in WRITTEN.items() for link in LINK.findall(text)]
    return [(page, link) for page, link in found if not re.match("https?://", link)]


@pytest.mark.parametrize(("page", "link"), links(), ids=lambda value: str(value).rpartition("/")[2])
def test_link_leads_to_file_and_heading(page, link):
    file, _, anchor = link.partition("#")
    target = page.parent / file if file else page
    assert target.is_file()
    if anchor:
        headings = HEADING.findall(target.read_text(encoding="utf-8"))
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_readme_leads_to_every_page():
    reached, new = set(), {ROOT / "README.md"}
    while new:
        page = new.pop()
        reached.add(page)
        new |= {(page.parent / link.partition("#")[0]).resolve() for at, link in links() if at == page} & set(PAGES)
        new -= reached
    assert reached == set(PAGES)
