"""Layers of the package: a module imports only from its own folder and from the folders below it, without cycles."""

import ast
import io
import tokenize
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
FOLDERS = (
    "cli", "serving", "synthesis", "export", "evaluation", "training", "translation", "data", "models",
    "text", "tokenizer", "metrics", "formats", "reporting", "storage", "config", "distributed", "core",
)  # fmt: skip
"""The folders of mt/, from the top layer to the bottom. docs/code.md shows them in the same order."""


@cache
def _modules() -> dict[str, Path]:
    files = sorted((PROJECT / "mt").rglob("*.py"))
    return {".".join(file.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


def _imports(file: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of this package that a file imports, imports inside functions included."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                imported = inner if inner in modules else node.module
                if imported in modules:
                    yield imported


@cache
def _graph() -> dict[str, set[str]]:
    modules = _modules()
    return {name: set(_imports(file, modules)) - {name} for name, file in modules.items()}


def _folder(module: str) -> str:
    return module.split(".")[1]


def test_modules_import_only_lower_folders():
    wrong = [
        f"{module} imports {imported}"
        for module, imports in _graph().items()
        for imported in imports
        if module not in ("mt", "mt.__main__")
        and (imported in ("mt", "mt.__main__") or FOLDERS.index(_folder(imported)) < FOLDERS.index(_folder(module)))
    ]
    assert sorted(wrong) == []


def _cyclic(graph: dict[str, set[str]]) -> list[str]:
    """Return the nodes of a graph that are in a cycle, or from which one is reached."""
    graph = dict(graph)
    while leaves := [node for node, targets in graph.items() if not targets & graph.keys()]:
        for node in leaves:
            del graph[node]
    return sorted(graph)


def test_modules_have_no_import_cycles():
    assert _cyclic(_graph()) == []


def _container(module: str) -> str:
    """Return the innermost folder of a module, as a package: ``mt.data.batching`` for ``mt.data.batching.plan``."""
    return module if _modules()[module].name == "__init__.py" else module.rpartition(".")[0]


def test_subfolders_have_no_import_cycles():
    graph: dict[str, set[str]] = {}
    for module, imports in _graph().items():
        for imported in imports:
            pair = importing, target = _container(module), _container(imported)
            is_inner = importing != target and "mt" not in pair and _folder(importing) == _folder(target)
            if is_inner:
                graph.setdefault(importing, set()).add(target)
    assert _cyclic(graph) == []


def test_package_has_only_folders_at_top():
    names = {path.name for path in (PROJECT / "mt").iterdir() if path.name != "__pycache__"}
    assert names - {"__init__.py", "__main__.py", "py.typed"} == set(FOLDERS)


def test_code_page_lists_every_folder_in_order():
    page = (PROJECT / "docs/code.md").read_text()
    positions = [page.find(f"`{folder}/`") for folder in FOLDERS]
    assert -1 not in positions
    assert positions == sorted(positions)


UNCOUNTED = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def _docstring_lines(code: str) -> set[int]:
    bodies = [node.body for node in ast.walk(ast.parse(code)) if isinstance(getattr(node, "body", None), list)]
    statements = [statement for body in bodies for statement in body if isinstance(statement, ast.Expr)]
    strings = [node for node in statements if isinstance(getattr(node.value, "value", None), str)]
    return {line for node in strings for line in range(node.lineno, node.end_lineno + 1)}


@pytest.mark.parametrize("folder", ["mt", "tests"])
def test_code_size_is_below_limit(folder):
    """Whoever goes over a limit takes something out, or raises it as a decision of its own."""
    limit = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["size"][folder]
    tokens = 0
    for file in (PROJECT / folder).rglob("*.py"):
        code = file.read_text()
        docstrings = _docstring_lines(code) if folder == "mt" else ()
        tokens += sum(
            token.type not in UNCOUNTED and token.start[0] not in docstrings
            for token in tokenize.generate_tokens(io.StringIO(code).readline)
        )
    assert tokens <= limit, f"{folder}/ has {tokens:,} tokens of code; [tool.size] in pyproject.toml allows {limit:,}"
