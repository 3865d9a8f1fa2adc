"""The body of a pipeline as a tree of operators: what it probes, and how it runs where no kernel holds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..plan import physical as p
from .context import Context

Operator = Callable[[Any, tuple[Any, ...], Context], Any]

# Joins that give for all rows of the probe side what they give for parts of it, put together
DIVISIBLE_JOINS = frozenset(("inner", "left", "semi", "anti", "mark", "single"))


@dataclass(frozen=True)
class Operators:
    """What a backend runs a body with: its operators, and the bytes that a table takes."""

    by_node: Mapping[type[p.Physical], Operator]
    num_bytes: Callable[[Any], int]


def probed(node: p.Physical) -> int | None:
    """Return which child the rows come from that go through a node one by one, or None for a leaf or another node."""
    match node:
        case p.FilterRows() | p.ComputeColumns() | p.HashAggregate():
            return 0
        case p.HashJoin(kind=kind):
            if kind not in DIVISIBLE_JOINS:
                return None
            return 1 if kind == "inner" and node.build == "left" else 0
        case p.NestedLoopJoin(kind=kind):
            return 0 if kind in DIVISIBLE_JOINS else None
    return None


def probed_leaf(body: p.Physical) -> p.Physical:
    """Return the node whose rows go through the body one by one: a leaf, unless a join keeps rows of both sides."""
    while (place := probed(body)) is not None:
        body = body.children[place]
    return body


def run_operators(
    body: p.Physical, stored: tuple[Any, ...], context: Context, operators: Operators
) -> Any:
    """Run a body one operator at a time; `stored` are the tables of the pipeline's inputs.

    Tables in between count towards the memory limit.
    """
    held = 0

    def hold(node: p.Physical, nbytes: int) -> None:
        nonlocal held
        held += nbytes
        context.hold(node, nbytes)

    def run(node: p.Physical) -> Any:
        if isinstance(node, p.Stored):
            return stored[node.number]
        inputs = tuple(run(child) for child in node.children)
        context.check()
        table = operators.by_node[type(node)](node, inputs, context)
        for child, given in zip(node.children, inputs, strict=True):
            if not isinstance(child, p.Stored):
                hold(child, -operators.num_bytes(given))
        hold(node, operators.num_bytes(table))
        return table

    try:
        return run(body)
    finally:
        context.hold(body, -held)


def with_stored_builds(body: p.Physical, count: int) -> tuple[p.Physical, list[p.Physical]]:
    """Return a body that reads its build sides from inputs, numbered from `count` on, and those sides."""
    sides: list[p.Physical] = []

    def stored(node: p.Physical) -> p.Physical:
        if isinstance(node, p.Stored):
            return node
        sides.append(node)
        return p.Stored(count + len(sides) - 1, node.columns, device=node.device)

    def visit(node: p.Physical) -> p.Physical:
        place = probed(node)
        if place is None:
            return node
        return node.with_children(
            [visit(c) if i == place else stored(c) for i, c in enumerate(node.children)]
        )

    return visit(body), sides
