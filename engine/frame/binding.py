"""What dataframe calls share when they build projections: finding and binding columns, naming outputs, lifting out aggregates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import NAMES_SHOWN, AmbiguousName, InvalidQuery, UnknownName, nearest, shown
from ..plan import infer
from ..plan.expr import AggregateCall, Column, ColumnRef, Expr, columns_of, new_column
from ..plan.logical import Item, Logical, Project
from ..plan.node import walk
from ..plan.temporal import zones
from ..plan.types import DataType
from ..plan.udf.named_functions import with_functions
from .functions import Expression, Resolve

if TYPE_CHECKING:
    from ..connection import Connection


@contextmanager
def of_connection(connection: Connection) -> Iterator[None]:
    """Have casts and date parts use a connection's time zone, and `fn` know its Python functions."""
    functions = connection.catalog.session.functions
    with zones.of_session(connection.settings.timezone), with_functions(functions):
        yield


def flat(values: Sequence[Any]) -> list[Any]:
    """Return arguments with those of lists and tuples in their place: `select(["a", "b"])` is `select("a", "b")`."""
    return [v for value in values for v in (value if isinstance(value, list | tuple) else [value])]


def bind(
    expression: Expression,
    columns: Collection[Column],
    resolve: Resolve,
    aggregates: bool = False,
) -> Expr:
    """Bind an expression to a plan with these columns; raises `InvalidQuery` for one of another frame, or an aggregate."""
    bound = expression.bind(resolve)
    for column in columns_of(bound):
        if column not in columns:
            raise InvalidQuery(
                f'This frame does not have the column "{column.name}" of another frame, or has it under another name by now: '
                "write col(name) for one that it has, or join the frames."
            )
    if not aggregates and any(isinstance(e, AggregateCall) for e in walk(bound)):
        raise InvalidQuery(
            f"{expression.name} is an aggregate: it belongs in agg(...), after group_by(...) or without it."
        )
    return bound


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
    if not isinstance(bound, ColumnRef) or bound.column.name != name:
        return new_column(name, bound.type)
    taken = any(c == bound.column for c, _ in before)
    return new_column(name, bound.type) if taken else bound.column


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
    if not isinstance(name, str):
        raise InvalidQuery(f"A column is named by a string, not by {shown(name)}.")
    found = [c for c in columns if c.name.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise AmbiguousName(f'More than one column is called "{name}": rename one of them first.')
    names = [c.name for c in columns]
    hint = nearest(name, names)
    if not hint and 0 < len(names) <= NAMES_SHOWN:
        hint = " There are " + ", ".join(f'"{n}"' for n in names) + "."
    raise UnknownName(f'There is no column "{name}".{hint}')
