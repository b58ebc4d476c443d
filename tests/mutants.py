"""Plants errors in ``mt/``, one at a time, and counts those that the tests notice: ``make mutants``.

    python -m tests.mutants [count=300] [seed=1] [seconds=90] [under=mt/text]

Draws mutants at random, the same with the same seed. Each is put into a copy of the repository, one copy for each
processor. There, the tests run that import the module, and then those of the folder that mirrors its own, for at most
``seconds``. Prints each mutant that survives, and in the end the share of those that were noticed.
"""

import ast
import copy
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

import pytest

from tests import options

ROOT = Path(__file__).parents[1]
OTHER_OPERATORS = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
}  # fmt: skip


class Options(options.Options):
    count: int = 300
    seed: int = 1
    seconds: float = 90
    under: Path = Path("mt")


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what may stand in the place of a node by an error."""
    match node:
        case ast.Compare(ops=[operator]) if type(operator) in OTHER_OPERATORS:
            yield _with(node, ops=[OTHER_OPERATORS[type(operator)]()])
        case ast.BinOp(op=operator) | ast.BoolOp(op=operator) if type(operator) in OTHER_OPERATORS:
            yield _with(node, op=OTHER_OPERATORS[type(operator)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int()):
            yield ast.Constant(node.value + 1)
        case ast.IfExp() | ast.If():
            yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue():
            yield ast.Pass()
        case ast.Call():
            for number in range(1, len(node.args)):
                swapped = [*node.args[: number - 1], node.args[number], node.args[number - 1], *node.args[number + 1 :]]
                yield _with(node, args=swapped)
            for number in range(len(node.keywords)):
                yield _with(node, keywords=node.keywords[:number] + node.keywords[number + 1 :])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.copy(node)
    vars(changed).update(fields)
    return changed


def plant(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Plant each error in a module, one at a time. Yields its line and what it changes. Annotations stay."""
    owners = list(ast.walk(tree))
    annotations = [getattr(owner, name, None) for owner in owners for name in ("annotation", "returns")]
    skipped = {id(node) for part in annotations if part for node in ast.walk(part)}
    for owner in owners:
        for name, value in ast.iter_fields(owner):
            nodes = value if isinstance(value, list) else [value]
            for number, node in enumerate(nodes):
                if not isinstance(node, ast.expr | ast.stmt) or id(node) in skipped:
                    continue
                for changed in changes(node):
                    setattr(
                        owner, name, [*nodes[:number], changed, *nodes[number + 1 :]] if nodes is value else changed
                    )
                    yield node.lineno, f"{ast.unparse(node)} → {ast.unparse(changed)}"
                    setattr(owner, name, value)


def mutant(path: Path, number: int) -> tuple[str, str]:
    """Return the error, and the whole module with it."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    line, error = next(islice(plant(tree), number, None))
    return f"{path}:{line} {error}", ast.unparse(tree)


def tests_of(path: Path) -> list[str]:
    """Return the test files that may notice an error in a module, the likeliest first."""
    module = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    package, _, name = module.rpartition(".")
    imports = (f"{module} import", f"import {module}", f"from {package} import {name}")
    folder = ROOT / "tests" / path.parent.relative_to("mt")
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    near = [file for file in files if file.is_relative_to(folder)]
    chosen = [file for file in files if any(words in file.read_text(encoding="utf-8") for words in imports)]
    chosen.sort(key=lambda file: (file.name != f"test_{name}.py", file not in near))
    return [str(file.relative_to(ROOT)) for file in dict.fromkeys([*chosen, *near])]


def is_noticed(code: str, path: Path, repository: Path, seconds: float) -> bool:
    """Return whether a test fails within the time in a copy of the repository whose module is replaced."""
    (repository / path).write_text(code, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(repository), "PYTHONDONTWRITEBYTECODE": "1"}
    end = time.monotonic() + seconds
    try:
        return any(_fails(file, repository, environment, end) for file in tests_of(path) if time.monotonic() < end)
    finally:
        shutil.copy(ROOT / path, repository / path)


def _fails(file: str, repository: Path, environment: dict[str, str], end: float) -> bool:
    command = [sys.executable, "-m", "pytest", "-xqm", "not slow", "-p", "no:cacheprovider", file]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=repository, env=environment, process_group=0, **quiet) as process:
        try:
            return process.wait(end - time.monotonic()) not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        except subprocess.TimeoutExpired:
            return False
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def main() -> None:
    options = Options.parse(__doc__)
    modules = sorted(path.relative_to(ROOT) for path in (ROOT / options.under).rglob("*.py"))
    counts = {path: sum(1 for _ in plant(ast.parse((ROOT / path).read_text(encoding="utf-8")))) for path in modules}
    possible = [(path, number) for path, count in counts.items() for number in range(count)]
    drawn = random.Random(options.seed).sample(possible, min(options.count, len(possible)))
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(os.cpu_count() or 1):
            ignored = shutil.ignore_patterns(".*", "runs", "__pycache__")
            copies.put(Path(shutil.copytree(ROOT, Path(folder, str(number)), ignore=ignored)))

        def attempt(place: tuple[Path, int]) -> bool:
            (error, code), repository = mutant(*place), copies.get()
            noticed = is_noticed(code, place[0], repository, options.seconds)
            copies.put(repository)
            if not noticed:
                print(f"survived: {error}", flush=True)
            return noticed

        with ThreadPoolExecutor(copies.qsize()) as pool:
            noticed = sum(pool.map(attempt, drawn))
    print(f"{noticed} of {len(drawn)} noticed")


if __name__ == "__main__":
    main()
