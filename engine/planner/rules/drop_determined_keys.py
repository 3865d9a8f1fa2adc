"""Rule `drop_determined_keys`: a group key that follows from others is computed of these, once a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...plan.all_values import never_raises
from ...plan.expr import Column, ColumnRef, Expr, columns_of
from ...plan.logical import Aggregate, Logical, Project
from ...plan.node import transform_up, walk
from ...plan.types import DataType, Kind
from ...plan.udf.python_function import PythonCall, PythonFold
from ..rewrite import pass_on, replace_columns


def drop_determined_keys(plan: Logical) -> Logical:
    """Group by the keys from which the others follow.

        Aggregate((k, f(k) as x), a, y)  ->  Project(k, f(k) as x, a, Aggregate(k, a, y))

    A million rows by an address and three differences of it take two cores 31 ms of CPU time, and 78 by four keys (a busy machine).
    What may raise stays a key where nobody reads it, since it would not be computed at all.
    """
    read = {c for node in walk(plan) for expr in node.expressions for c in columns_of(expr)}
    read.update(plan.columns)
    return transform_up(plan, lambda node: _drop(node, read))


def _drop(node: Logical, read: set[Column]) -> Logical | None:
    if not isinstance(node, Aggregate) or node.grouping_sets is not None or len(node.keys) < 2:
        return None
    below = dict(node.input.items) if isinstance(node.input, Project) else {}
    kept = {column: replace_columns(expr, below) for column, expr in node.keys}
    dropped: list[tuple[Column, Expr]] = []
    for column, expr in reversed(list(kept.items())):
        if expr == ColumnRef(column) or not (column in read or never_raises(expr)):
            continue
        if len(kept) > 1 and _is_a_function(expr):
            found = _over(expr, {e: c for c, e in kept.items() if c is not column})
            if found is not None:
                dropped.append((column, found))
                del kept[column]
    if not dropped:
        return None
    made: dict[Column, Expr] = {}
    for column, found in reversed(dropped):  # which may be of keys that were dropped later
        made[column] = replace_columns(found, made)
    groups = replace(node, keys=tuple(item for item in node.keys if item[0] in kept))
    if isinstance(node.input, Project):  # which may make the column that a key is
        wanted = {c for expr in groups.expressions for c in columns_of(expr)}
        items_below = tuple(item for item in node.input.items if item[0] in wanted)
        groups = replace(groups, input=replace(node.input, items=items_below or node.input.items))
    items = (*pass_on(groups.columns), *made.items())
    return Project(groups, tuple(sorted(items, key=lambda item: node.columns.index(item[0]))))


def _is_a_function(expr: Expr) -> bool:
    """Whether an expression has one value for the same values of its columns, whenever it is computed."""
    calls = any(isinstance(part, PythonCall | PythonFold) for part in walk(expr))
    return not calls and not expr.subqueries


def _over(expr: Expr, keys: Mapping[Expr, Column]) -> Expr | None:
    """Return an expression over the columns of keys that its parts are; None where another column is in it."""
    unknown = False

    def visit(part: Expr) -> Expr:
        nonlocal unknown
        column = keys.get(part)
        if column is not None and _is_one_value(column.type):
            return ColumnRef(column)
        unknown |= isinstance(part, ColumnRef)
        return part.with_children([visit(child) for child in part.children])

    found = visit(expr)
    return None if unknown else found


def _is_one_value(data_type: DataType) -> bool:
    """Whether equal values are the same: not of DOUBLE, whose zeros differ as text, nor of INTERVAL, of which 30 days equal a month."""
    if data_type.kind in (Kind.VARCHAR, Kind.BLOB, Kind.UUID):
        return True
    return data_type.fits_register and not data_type.is_float
