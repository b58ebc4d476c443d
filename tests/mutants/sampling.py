"""Which mutants are tried: some of every module in ``mt/``, drawn at random and alike each time."""

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.plugins import get_operator, operator_names

from tests.mutants.operators import DropKeyword, DropStatement, SwapArguments

NOT_MEANT = re.compile("Variable|Exception|RemoveDecorator|.*(Bit|Shift|Pow|Mod)")
"""Operators that need arguments, or whose mutants mostly raise TypeError wherever they run."""


@dataclass(frozen=True)
class Mutant:
    """One module with one mistake in it."""

    module: str
    """Its path from the root of the repository."""
    line: int
    before: str
    """The line without the mistake; of a mutation of several lines, the first that differs."""
    after: str
    code: str
    """The whole module with the mistake."""

    @property
    def name(self) -> str:
        """What identifies it as long as its line is as it is."""
        return f"{self.module}: {self.before.strip()} → {self.after.strip()}"


def sample(root: Path, count: int, seed: int) -> list[Mutant]:
    """Returns about ``count`` mutants, from every module as many as its share of all places to mutate, but at least
    one."""
    modules = sorted(path for path in (root / "mt").rglob("*.py") if "conf" not in path.relative_to(root).parts)
    places = {path: _places(path.read_text(encoding="utf-8")) for path in modules}
    total = sum(map(len, places.values()))
    found = []
    for path, there in places.items():
        random_here = random.Random(f"{seed} {path.relative_to(root)}")
        wanted = min(len(there), max(1, round(count * len(there) / total)))
        for place in random_here.sample(sorted(there), wanted):
            operator, occurrence = random_here.choice(there[place])
            found.append(_mutant(root, path, operator, occurrence))
    return [mutant for mutant in found if mutant is not None]


def _operators() -> Iterator[Operator]:
    for name in operator_names():
        if not NOT_MEANT.match(name.rpartition("/")[2]):
            yield get_operator(name)()
    yield from (DropStatement(), SwapArguments(), DropKeyword())


def _places(source: str) -> dict[tuple[int, int, str], list[tuple[Operator, int]]]:
    """Returns each place that can be mutated, with its mutations. All replacements of one ``+`` are one place, because
    there are twelve of them and only one way to leave out a statement."""
    annotations = [
        ((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
        for owner in ast.walk(ast.parse(source))
        for node in (getattr(owner, "annotation", None), getattr(owner, "returns", None))
        if node is not None
    ]
    nodes = list(ast_nodes(get_ast(source)))
    found: dict[tuple[int, int, str], list[tuple[Operator, int]]] = {}
    for operator in _operators():
        occurrence = 0
        for node in nodes:
            for start, _ in operator.mutation_positions(node):
                if not any(first <= start < last for first, last in annotations):
                    family = type(operator).__name__.partition("_")[0]
                    found.setdefault((*start, family), []).append((operator, occurrence))
                occurrence += 1
    return found


def _mutant(root: Path, path: Path, operator: Operator, occurrence: int) -> Mutant | None:
    """Returns None for what is not Python any more, such as ``break`` outside of a loop."""
    source = path.read_text(encoding="utf-8")
    code = mutate_code(source, operator, occurrence)
    try:
        if code is None or ast.dump(ast.parse(code)) == ast.dump(ast.parse(source)):
            return None
    except SyntaxError:
        return None
    before, after = source.splitlines(), code.splitlines()
    row = next((row for row, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), None)
    if row is None:
        return None
    return Mutant(str(path.relative_to(root)), row + 1, before[row], after[row], code)
