"""Group keys that are strings made of several values, of which a kernel has no numbers: the values are grouped first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from ...plan.all_values import never_raises
from ...plan.expr import Case, Column, ColumnRef, Expr, Literal, columns_of, new_column
from ...plan.partial import in_parts
from ...plan.physical import ComputeColumns, HashAggregate, Physical
from ...plan.types import Kind
from ..estimates.chain_estimate import ChainEstimates, expected_column
from ..estimates.estimate import expected
from ..estimates.relation_estimate import RelationEstimate
from ..rewrite import pass_on
from .group_keys import has_no_numbers
from .probe_order import domain

MIN_ROWS_A_GROUP = 8.0  # for groups that others are made of to be worth more than the rows

MOST_LOOKED_UP = 1 << 16  # values of a column for which kernels have a table of strings


def by_parts_of_keys(node: HashAggregate, estimates: ChainEstimates) -> Physical | None:
    """Group by the values that a string is made of, and make one string for each of these groups.

        HashAggregate(a || b, sum(c), x)
          ->  HashAggregate(a || b, sum(s), ComputeColumns(a || b, s, HashAggregate(a, b, s: sum(c), x)))

    Six million strings of three flags, made and grouped by two CPU cores, take 517 ms, and so 9: the groups of the flags are few, and a
    kernel finds them.  Of CASE the values are its conditions.  `MIN_ROWS_A_GROUP` = inf switches it off.
    """
    below = node.input
    if not isinstance(below, ComputeColumns):
        return None
    items = dict(below.items)
    known = estimates.relation(below.input)
    made = {key: items[key] for key in node.keys if is_composed(items[key], known)}
    parts = in_parts(node)
    if not made or isinstance(parts, str):
        return None
    found = _KeyValues({expr: column for column, expr in items.items() if column in node.keys})
    labels = tuple((key, found.split(expr)) for key, expr in made.items())
    kept = [(column, expr) for column, expr in below.items if column not in made]
    new = [(column, expr) for expr, column in found.columns.items() if column not in items]
    keys = tuple(dict.fromkeys((*(k for k in node.keys if k not in made), *found.read)))
    inner = replace(below, items=(*kept, *new))
    if not _are_few(keys, dict(inner.items), below.input, estimates):
        return None
    early = replace(parts.partial, input=inner, keys=keys)
    passed = pass_on(c for c in parts.partial.columns if c not in made)
    groups: Physical = ComputeColumns(early, (*labels, *passed)).placed_as(node)
    for step in (*parts.merge, *parts.finish):
        groups = replace(step, estimate=node.estimate, reason=node.reason).with_children([groups])
    return groups


def is_composed(expr: Expr, known: RelationEstimate) -> bool:
    """Whether strings are made of several values, or of what a column of many values is compared with: a lookup table has others."""
    if expr.type.kind is not Kind.VARCHAR or isinstance(expr, ColumnRef):
        return False
    values, read = set(_values(expr)), columns_of(expr)
    if len(read) > 1 or not values:
        return len(values) > 1
    (column,) = read
    many = domain(expected_column(known, column)) > MOST_LOOKED_UP
    return many and all(e.type.kind is Kind.BOOLEAN for e in values)


def _values(expr: Expr) -> Iterator[Expr]:
    """Yield the outermost expressions below a string that are columns or no strings."""
    if isinstance(expr, ColumnRef) or expr.type.kind is not Kind.VARCHAR:
        if not isinstance(expr, Literal):
            yield expr
        return
    for child in expr.children:
        yield from _values(child)


@dataclass
class _KeyValues:
    """The values that strings are made of, each with the column that has it; `read` are those that were met.

    What may raise is none under a CASE, which may not come to it.
    """

    columns: dict[Expr, Column]
    read: list[Column] = field(default_factory=list)

    def split(self, expr: Expr, chosen: bool = False) -> Expr:
        """Return an expression of the columns of values; `chosen`: by a CASE."""
        if isinstance(expr, Literal):
            return expr
        chosen = chosen or isinstance(expr, Case)
        whole = expr.type.kind is not Kind.VARCHAR and (not chosen or never_raises(expr))
        if not whole and not isinstance(expr, ColumnRef):
            return expr.with_children([self.split(child, chosen) for child in expr.children])
        name = expr.column.name if isinstance(expr, ColumnRef) else "value"
        column = self.columns.setdefault(expr, new_column(name, expr.type))
        self.read.append(column)
        return ColumnRef(column)


def _are_few(
    keys: tuple[Column, ...],
    items: dict[Column, Expr],
    below: Physical,
    estimates: ChainEstimates,
) -> bool:
    """Whether a kernel has numbers for all keys, and they are few for the rows."""
    known = estimates.relation(below)
    if any(
        has_no_numbers(below, e.column) for e in map(items.get, keys) if isinstance(e, ColumnRef)
    ):
        return False
    values = [
        expected_column(known, e.column) if isinstance(e, ColumnRef) else expected(e, known)
        for e in (items[key] for key in keys)
    ]
    return math.prod(map(domain, values)) * MIN_ROWS_A_GROUP <= known.rows
