"""Walks of plans with all that belongs to them: the plans of subqueries, and the common queries that several places read.

A common query stands below none of its readers, so that a walk of the tree ends at each `CommonScan`; with 24 queries that each read the
one before twice, a walk through all of them would come 16 million times to the first.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from .expr import Expr, Subquery
from .logical import Common, CommonScan, Logical
from .node import transform_up, walk

Rewrite = Callable[[Logical], Logical]


def nodes_of(plan: Logical) -> Iterator[Logical]:
    """Yield the nodes of a plan and of its subqueries, but not those of common queries."""
    for node in walk(plan):
        yield node
        for expr in node.expressions:
            for part in walk(expr):
                if isinstance(part, Subquery):
                    yield from nodes_of(part.plan)


def replace_nodes(plan: Logical, rule: Callable[[Logical], Logical | None]) -> Logical:
    """Rebuild a plan and its subqueries from the leaves up; `rule` gives the replacement of a node, or None to keep it."""

    def in_expression(part: Expr) -> Expr | None:
        if not isinstance(part, Subquery):
            return None
        inner = replace_nodes(part.plan, rule)
        return None if inner is part.plan else dataclasses.replace(part, plan=inner)

    def in_node(node: Logical) -> Logical | None:
        if any(isinstance(part, Subquery) for e in node.expressions for part in walk(e)):
            node = node.map_expressions(lambda e: transform_up(e, in_expression))
        return rule(node) or node

    return transform_up(plan, in_node)


def scans_of(plan: Logical) -> list[CommonScan]:
    """Return the places of a plan and its subqueries that read common queries."""
    return [node for node in nodes_of(plan) if isinstance(node, CommonScan)]


def commons_of(plan: Logical) -> list[Common]:
    """Return the common queries that a plan reads, directly or through others, each once and after those that it reads itself."""
    order: list[Common] = []
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


def with_commons(plan: Logical, rewrite: Rewrite) -> Logical:
    """Rewrite the plan of each common query once, and then the plan that reads them."""
    new: dict[int, Common] = {}
    for common in commons_of(plan):
        inner = rewrite(reading(common.plan, new))
        new[id(common)] = common if inner is common.plan else Common(common.name, inner)
    return rewrite(reading(plan, new))


def reading(plan: Logical, new: dict[int, Common]) -> Logical:
    """Return `plan` with other common queries in place of those that it reads, by the identity of these."""

    def exchanged(node: Logical) -> Logical | None:
        if not isinstance(node, CommonScan) or new[id(node.common)] is node.common:
            return None
        return dataclasses.replace(node, common=new[id(node.common)])

    return replace_nodes(plan, exchanged) if new else plan
