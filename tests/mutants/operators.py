"""Mutations that Cosmic Ray does not bring: slips of the kind that people make when they rearrange calls."""

from collections.abc import Iterator, Sequence

import parso
from cosmic_ray.operators.operator import Example, Operator
from parso.tree import BaseNode, NodeOrLeaf

Span = tuple[tuple[int, int], tuple[int, int]]
UPDATES = ("+=", "-=", "*=", "/=", "//=", "|=", "&=")


class DropStatement(Operator):
    """Replaces a call whose result nobody takes, or an assignment such as ``x += y``, by ``pass``."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Span]:
        if node.type == "simple_stmt" and isinstance(node, BaseNode):
            first = node.children[0]
            is_call = first.type in ("atom_expr", "power") and first.get_code().rstrip().endswith(")")
            is_update = first.type == "expr_stmt" and getattr(first.children[1], "value", "=") in UPDATES
            if is_call or is_update:
                yield first.start_pos, first.end_pos

    def mutate(self, node: BaseNode, index: int) -> BaseNode:
        indent = node.children[0].get_first_leaf().prefix
        node.children[0] = parso.parse(f"{indent}pass")
        return node

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("f(x)\n", "pass\n"), Example("x += 1\n", "pass\n"))


class SwapArguments(Operator):
    """Exchanges two neighbouring positional arguments of a call."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Span]:
        for first, second in self._pairs(node):
            yield node.children[first].start_pos, node.children[second].end_pos

    def mutate(self, node: BaseNode, index: int) -> BaseNode:
        first, second = self._pairs(node)[index]
        node.children[first], node.children[second] = node.children[second], node.children[first]
        return node

    @staticmethod
    def _pairs(node: NodeOrLeaf) -> list[tuple[int, int]]:
        if node.type != "arglist" or node.parent.type == "classdef":
            return []
        positional = [row for row, child in enumerate(node.children) if child.type not in ("argument", "operator")]
        return [
            (first, second)
            for first, second in zip(positional, positional[1:], strict=False)
            if node.children[first].get_code().strip() != node.children[second].get_code().strip()
        ]

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("f(x,y)", "f(y,x)"),)


class DropKeyword(Operator):
    """Leaves out a keyword argument, so that its default counts."""

    def mutation_positions(self, node: NodeOrLeaf) -> Iterator[Span]:
        # All at once: Cosmic Ray goes on asking after it has mutated the node.
        yield from [(node.children[row].start_pos, node.children[row].end_pos) for row in self._rows(node)]

    def mutate(self, node: BaseNode, index: int) -> BaseNode:
        row = self._rows(node)[index]
        start = max(row - 1, 0)  # with the comma before it, or after it if it is the first
        del node.children[start : start + 2]
        return node

    @staticmethod
    def _rows(node: NodeOrLeaf) -> list[int]:
        if node.type != "arglist" or node.parent.type == "classdef":
            return []
        return [
            row
            for row, child in enumerate(node.children)
            if child.type == "argument" and len(child.children) == 3 and child.children[1].get_code() == "="
        ]

    @classmethod
    def examples(cls) -> Sequence[Example]:
        return (Example("f(x, y=2)", "f(x)"),)
