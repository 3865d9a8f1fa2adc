"""What dataframe calls share when they build projections: finding columns, naming outputs, lifting out aggregates."""

from __future__ import annotations

from collections.abc import Sequence

from .errors import AmbiguousName, InvalidQuery, UnknownName, nearest
from .plan import infer
from .plan.expr import AggregateCall, Column, ColumnRef, Expr, new_column
from .plan.logical import Item, Logical, Project
from .plan.types import DataType


def lift_aggregates(
    bound: Expr, keys: tuple[Item, ...], calls: list[tuple[Column, AggregateCall]], name: str
) -> Expr:
    """Replace aggregates by columns, which are added to `calls`, and key expressions by the keys' columns."""
    for column, key in keys:
        if bound == key:
            return ColumnRef(column)
    if isinstance(bound, AggregateCall):
        column = new_column(name, bound.type)
        calls.append((column, bound))
        return ColumnRef(column)
    if isinstance(bound, ColumnRef):
        raise InvalidQuery(
            f'"{bound.column.name}" is neither a group key nor inside an aggregate: add it to group_by(...).'
        )
    return bound.with_children([lift_aggregates(c, keys, calls, name) for c in bound.children])


def output_column(name: str, bound: Expr, before: Sequence[Item]) -> Column:
    """The column of a projection item: passed on when it is a plain column under its own name."""
    passed_on = isinstance(bound, ColumnRef) and bound.column.name == name
    if passed_on and all(c != bound.column for c, _ in before):
        return bound.column
    return new_column(name, bound.type)


def cast_columns(plan: Logical, types: Sequence[DataType]) -> Logical:
    """Return the plan with its columns cast, by position; itself when nothing changes."""
    if all(c.type == t for c, t in zip(plan.columns, types, strict=True)):
        return plan
    items: list[Item] = []
    for c, t in zip(plan.columns, types, strict=True):
        same = c.type == t
        items.append((c if same else new_column(c.name, t), infer.coerce(ColumnRef(c), t)))
    return Project(plan, tuple(items))


def find_column(columns: Sequence[Column], name: str) -> Column:
    """Return the one column of that name; raises `AmbiguousName` or `UnknownName` with the nearest names."""
    found = [c for c in columns if c.name.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousName(f'More than one column is called "{name}": rename one of them first.')
    raise UnknownName(f'There is no column "{name}".' + nearest(name, [c.name for c in columns]))
