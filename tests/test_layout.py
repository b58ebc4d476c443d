"""docs/code.md names every file, and each imports only from files on its own line of the table or above."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1]
NAME = re.compile(r"`((?:mt/)?[\w/]+\.py|mt/[\w/]+/)`")


def lines_of_files() -> dict[str, int]:
    """Returns the line of the table that each file stands on."""
    text = (PROJECT / "docs/code.md").read_text()
    table = text.split("| stage | files |")[1].split("\n\n")[0]
    found: dict[str, int] = {}
    for number, line in enumerate(table.splitlines()):
        folder = Path()
        for name in NAME.findall(line):
            path = Path(name)
            if name.endswith("/"):
                for file in sorted((PROJECT / name).glob("*.py")):
                    found.setdefault(str(file.relative_to(PROJECT)), number)
                folder = path
                continue
            folder = path.parent if "/" in name else folder
            found.setdefault(str(folder / path.name), number)
    return found


def files() -> Iterator[Path]:
    for file in sorted(PROJECT.glob("mt/**/*.py")):
        if not file.name.startswith("__"):
            yield file


def imported_by(file: Path) -> Iterator[str]:
    """Yields the files of this project that a file imports from, also inside of functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "mt":
            module = node.module.replace(".", "/")
            if (PROJECT / f"{module}.py").is_file():
                yield f"{module}.py"
                continue
            for name in node.names:
                if (PROJECT / module / f"{name.name}.py").is_file():
                    yield f"{module}/{name.name}.py"


def test_every_file_is_in_the_table():
    lines = lines_of_files()
    assert [str(file.relative_to(PROJECT)) for file in files() if str(file.relative_to(PROJECT)) not in lines] == []
    assert [name for name in lines if not (PROJECT / name).is_file()] == []


def test_files_import_from_their_own_line_and_from_above():
    lines = lines_of_files()
    commands = "mt/entry_points.py"  # it only names what the commands import once their config has been checked
    wrong = [
        f"{name} imports {other}"
        for name in (str(file.relative_to(PROJECT)) for file in files())
        if name != commands
        for other in imported_by(PROJECT / name)
        if other != commands and lines.get(other, 0) > lines.get(name, 99)
    ]
    assert wrong == []
