"""Copies of plans: with other references, or with ids of their own, so that a plan can stand twice in one tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from .expr import Column, ColumnRef, Expr, Subquery, new_column, substitute
from .logical import (
    Aggregate,
    CommonScan,
    Join,
    Logical,
    Project,
    Range,
    Scan,
    SetOperation,
    Unnest,
    Values,
)
from .node import transform_up
from .window.window_node import Window


def substitute_free(plan: Logical, replacement: Callable[[Column], Expr | None]) -> Logical:
    """Replace references to columns throughout a plan, its nested subqueries included; what nodes make stays."""

    def visit(node: Logical) -> Logical:
        node = node.with_children([visit(c) for c in node.children])
        return node.map_expressions(lambda e: substitute(e, replacement))

    return visit(plan)


def fresh(plan: Logical) -> tuple[Logical, dict[Column, Column]]:
    """Copy a plan with new ids for every column that it makes, so that it can stand twice in one tree."""
    renamed: dict[Column, Column] = {}

    def renew(column: Column) -> Column:
        if column not in renamed:
            renamed[column] = new_column(column.name, column.type)
        return renamed[column]

    def replacement(column: Column) -> Expr | None:
        return ColumnRef(renamed[column]) if column in renamed else None

    def rewrite(expr: Expr) -> Expr:
        def copy_subquery(e: Expr) -> Expr | None:
            if isinstance(e, Subquery):
                inner = visit(e.plan)
                return dataclasses.replace(e, plan=inner)
            return None

        return substitute(transform_up(expr, copy_subquery), replacement)

    def visit(node: Logical) -> Logical:
        node = node.with_children([visit(c) for c in node.children])
        node = node.map_expressions(rewrite)
        return _renewed(node, renew)

    return visit(plan), renamed


def _renewed(node: Logical, renew: Callable[[Column], Column]) -> Logical:
    """Return a node that makes other columns."""
    changes: dict[str, object] = {}
    match node:
        case Scan() | CommonScan() | Values() | SetOperation():
            changes["made"] = tuple(renew(c) for c in node.made)
        case Range():
            changes["made"] = renew(node.made)
        case Project():
            changes["items"] = tuple((renew(c), e) for c, e in node.items)
        case Aggregate():
            changes["keys"] = tuple((renew(c), e) for c, e in node.keys)
            changes["aggregates"] = tuple((renew(c), a) for c, a in node.aggregates)
            if node.grouping_id is not None:
                changes["grouping_id"] = renew(node.grouping_id)
        case Window():
            changes["calls"] = tuple((renew(c), call) for c, call in node.calls)
        case Unnest():
            changes["items"] = tuple((renew(c), e) for c, e in node.items)
            if node.ordinality is not None:
                changes["ordinality"] = renew(node.ordinality)
        case Join(mark=Column() as mark):
            changes["mark"] = renew(mark)
    return node.replaced(**changes) if changes else node
