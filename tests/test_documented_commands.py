"""What README.md and docs/ tell to type, and what the Makefile types, is understood; and their links lead somewhere."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from mt.config import CompareConfig, ExportConfig, Section, TrainConfig, TranslateConfig
from mt.config.composition import compose_jobs
from mt.errors import InputError

ROOT = Path(__file__).parents[1]
COMMANDS: dict[str, tuple[str, type[Section]]] = {
    "train.py": ("train", TrainConfig),
    "translate.py": ("translate", TranslateConfig),
    "-m mt.comparison": ("compare", CompareConfig),
    "-m mt.translation.ctranslate2": ("export", ExportConfig),
}
PAGES = [*sorted(ROOT.glob("README*.md")), ROOT / "data" / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
WRITTEN = {page: page.read_text(encoding="utf-8") for page in PAGES}
DRY_RUN = ["make", "--dry-run", "--always-make", "demo", "compare", "SEEDS=2"]
MADE = subprocess.run(DRY_RUN, cwd=ROOT, capture_output=True, text=True, check=True).stdout
"""What make would type."""
TYPED = re.compile(rf"python ({'|'.join(map(re.escape, COMMANDS))}) ([^`\n]*)")


def typed() -> list[tuple[str, str]]:
    """Commands and what follows them, without redirections, comments, brackets round options, and words that hold an
    ellipsis."""
    texts = [*WRITTEN.values(), MADE.replace("&&", "\n")]
    found = dict.fromkeys(command for text in texts for command in TYPED.findall(text))
    plain = [(command, re.sub(r"[<>|].*| #.*|\[(\S+=\S+)\]|\S*…\S*", r"\1", words)) for command, words in found]
    return [(command, words) for command, words in plain if "--help" not in words and words != "data=mixture "]


def test_there_are_commands() -> None:
    assert {command for command, _ in typed()} == set(COMMANDS)
    assert len(typed()) > 15


@pytest.mark.parametrize(("command", "words"), typed())
def test_it_is_composed(command: str, words: str) -> None:
    name, schema = COMMANDS[command]
    options = shlex.split(words)
    settings = [word for word in options if word != "--multirun"]
    assert compose_jobs(name, schema, settings, multirun=settings != options)


SETTINGS = re.compile(r"`((?:'?[a-z_]+(?:\.[a-z_]+)*=[^\s`…]+ ?)+)`")
NAMED = dict.fromkeys(words for text in WRITTEN.values() for words in SETTINGS.findall(text))


@pytest.mark.parametrize("words", [words for words in NAMED if words not in ("key.sub=value", "key=value")])
def test_settings_named_in_passing_are_possible(words: str) -> None:
    around = [
        ("train", TrainConfig, []),
        ("train", TrainConfig, ["model=rnn_attention"]),
        ("translate", TranslateConfig, ["run=runs/demo"]),
        ("translate", TranslateConfig, ["run=runs/demo", "decoding.engine=ctranslate2"]),
        ("compare", CompareConfig, ["first=runs/A", "second=runs/B"]),
        ("compare", CompareConfig, []),
    ]
    reasons = []
    for name, schema, others in around:
        try:
            compose_jobs(name, schema, [*others, *shlex.split(words)], multirun=False)
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


def test_there_are_links() -> None:
    assert len(links()) > 10


@pytest.mark.parametrize(("page", "link"), links(), ids=lambda value: str(value).rpartition("/")[2])
def test_a_link_leads_to_a_file_and_its_heading(page: Path, link: str) -> None:
    file, _, anchor = link.partition("#")
    target = page.parent / file if file else page
    assert target.is_file()
    if anchor:
        headings = HEADING.findall(target.read_text(encoding="utf-8"))
        assert anchor in [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, new = set(), {ROOT / "README.md"}
    while new:
        page = new.pop()
        reached.add(page)
        new |= {(page.parent / link.partition("#")[0]).resolve() for at, link in links() if at == page} & set(PAGES)
        new -= reached
    assert reached == set(PAGES)
