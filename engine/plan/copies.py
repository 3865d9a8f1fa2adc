"""Walks and copies of plans with all that belongs to them: the plans of subqueries, and the common queries that several places read.

Copies have other references, or ids of their own, so that a plan can stand twice in one tree.

A common query stands below none of its readers, so that a walk of the tree ends at each `CommonScan`; with 24 queries that each read the
one before twice, a walk through all of them would come 16 million times to the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from . import logical as rel
from .expr import Column, ColumnRef, Expr, Subquery, new_column, substitute
from .node import transform_up, walk
from .window.window_call import Window


def substitute_free(plan: rel.Logical, replacement: Callable[[Column], Expr | None]) -> rel.Logical:
    """Replace references to columns throughout a plan, its nested subqueries included; what nodes make stays."""
    return map_expressions(plan, lambda e: substitute(e, replacement))


def map_expressions(plan: rel.Logical, rewrite: Callable[[Expr], Expr]) -> rel.Logical:
    """Rewrite the expressions of all nodes of a plan; of subqueries within them, `rewrite` knows."""
    plan = plan.with_children([map_expressions(c, rewrite) for c in plan.children])
    return plan.map_expressions(rewrite)


def fresh(plan: rel.Logical) -> tuple[rel.Logical, dict[Column, Column]]:
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

    def visit(node: rel.Logical) -> rel.Logical:
        node = node.with_children([visit(c) for c in node.children])
        node = node.map_expressions(rewrite)
        return _renewed(node, renew)

    return visit(plan), renamed


def _renewed(node: rel.Logical, renew: Callable[[Column], Column]) -> rel.Logical:
    """Return a node that makes other columns."""
    changes: dict[str, object] = {}
    match node:
        case rel.Scan() | rel.CommonScan() | rel.Values() | rel.SetOperation():
            changes["made"] = tuple(renew(c) for c in node.made)
        case rel.Range():
            changes["made"] = renew(node.made)
        case rel.Project():
            changes["items"] = tuple((renew(c), e) for c, e in node.items)
        case rel.Aggregate():
            changes["keys"] = tuple((renew(c), e) for c, e in node.keys)
            changes["aggregates"] = tuple((renew(c), a) for c, a in node.aggregates)
            if node.grouping_id is not None:
                changes["grouping_id"] = renew(node.grouping_id)
        case Window():
            changes["calls"] = tuple((renew(c), call) for c, call in node.calls)
        case rel.Unnest():
            changes["items"] = tuple((renew(c), e) for c, e in node.items)
            if node.ordinality is not None:
                changes["ordinality"] = renew(node.ordinality)
        case rel.Join(mark=Column() as mark):
            changes["mark"] = renew(mark)
    return node.replaced(**changes) if changes else node


Rewrite = Callable[[rel.Logical], rel.Logical]


def nodes_of(plan: rel.Logical) -> Iterator[rel.Logical]:
    """Yield the nodes of a plan and of its subqueries, but not those of common queries."""
    for node in walk(plan):
        yield node
        for subquery in node.subqueries:
            yield from nodes_of(subquery.plan)


def replace_nodes(
    plan: rel.Logical, rule: Callable[[rel.Logical], rel.Logical | None]
) -> rel.Logical:
    """Rebuild a plan and its subqueries from the leaves up; `rule` gives the replacement of a node, or None to keep it."""

    def in_expression(part: Expr) -> Expr | None:
        if not isinstance(part, Subquery):
            return None
        inner = replace_nodes(part.plan, rule)
        return None if inner is part.plan else dataclasses.replace(part, plan=inner)

    def in_node(node: rel.Logical) -> rel.Logical | None:
        if node.subqueries:
            node = node.map_expressions(lambda e: transform_up(e, in_expression))
        return rule(node) or node

    return transform_up(plan, in_node)


def scans_of(plan: rel.Logical) -> list[rel.CommonScan]:
    """Return the places of a plan and its subqueries that read common queries."""
    return [node for node in nodes_of(plan) if isinstance(node, rel.CommonScan)]


def commons_of(plan: rel.Logical) -> list[rel.Common]:
    """Return the common queries that a plan reads, directly or through others, each once and after those that it reads itself."""
    order: list[rel.Common] = []
    met: set[int] = set()
    waiting = [(scan.common, False) for scan in scans_of(plan)]
    while waiting:
        common, complete = waiting.pop()
        if complete:
            order.append(common)
        elif id(common) not in met:
            met.add(id(common))
            waiting.append((common, True))
            waiting.extend((scan.common, False) for scan in scans_of(common.plan))
    return order


def with_commons(plan: rel.Logical, rewrite: Rewrite) -> rel.Logical:
    """Rewrite the plan of each common query once, and then the plan that reads them."""
    new: dict[int, rel.Common] = {}
    for common in commons_of(plan):
        inner = rewrite(reading(common.plan, new))
        new[id(common)] = common if inner is common.plan else rel.Common(common.name, inner)
    return rewrite(reading(plan, new))


def reading(plan: rel.Logical, new: dict[int, rel.Common]) -> rel.Logical:
    """Return `plan` with other common queries in place of those that it reads, by the identity of these."""

    def exchanged(node: rel.Logical) -> rel.Logical | None:
        if not isinstance(node, rel.CommonScan) or new[id(node.common)] is node.common:
            return None
        return dataclasses.replace(node, common=new[id(node.common)])

    return replace_nodes(plan, exchanged) if new else plan
