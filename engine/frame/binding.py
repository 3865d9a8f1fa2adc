"""What dataframe calls share when they build projections: finding and binding columns, naming outputs, lifting out aggregates."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import InvalidQuery
from ..plan.dialect import read_in
from ..plan.expr import AggregateCall, Column, ColumnRef, Expr, columns_of, new_column
from ..plan.logical import Item, Logical
from ..plan.node import walk
from ..plan.temporal import zones
from ..plan.window.windowed import WindowRewriter, has_window
from .expressions.selected import Selected, SeveralColumns
from .expressions.unbound import Resolve, Unbound
from .expressions.window_binding import over_all
from .functions import with_functions

if TYPE_CHECKING:
    from ..connection import Connection


@contextmanager
def of_connection(connection: Connection) -> Iterator[None]:
    """Have casts, date parts and divisions use a connection's settings, and `fn` know its Python functions."""
    functions, settings = connection.catalog.session.functions, connection.settings
    dialect = read_in(connection.catalog.dialect)
    with zones.of_session(settings.timezone), dialect, with_functions(functions):
        yield


def flat(values: Sequence[Any]) -> list[Any]:
    """Return arguments with those of lists and tuples in their place: `select(["a", "b"])` is `select("a", "b")`."""
    return [v for value in values for v in (value if isinstance(value, list | tuple) else [value])]


def bind(
    expression: Unbound,
    columns: Collection[Column],
    resolve: Resolve,
    aggregates: bool = False,
) -> Expr:
    """Bind an expression to a plan with these columns; raises `InvalidQuery` for one of another frame, or an aggregate."""
    bound = over_all(expression.bind(resolve))
    for column in columns_of(bound):
        if column not in columns:
            raise InvalidQuery(
                f'This frame does not have the column "{column.name}" of another frame, or has it under another name by now: '
                "write col(name) for one that it has, or join the frames."
            )
    if not aggregates and any(isinstance(e, AggregateCall) for e in walk(bound)):
        raise InvalidQuery(
            f"{expression.name} is an aggregate: it belongs in agg(...), after group_by(...) or without it, or takes .over(...) "
            "for a value beside each row."
        )
    return bound


def is_aggregate(expression: Unbound, columns: Sequence[Column], resolve: Resolve) -> bool:
    """Whether an aggregate stands in an expression."""
    found = bind_columns(expression, columns, resolve, aggregates=True)
    return any(isinstance(e, AggregateCall) for _, bound in found for e in walk(bound))


def bind_columns(
    expression: Unbound,
    columns: Sequence[Column],
    resolve: Resolve,
    aggregates: bool = False,
    hidden: Collection[Column] = (),
) -> list[tuple[str, Expr]]:
    """Bind an expression, once for each column where it stands for several; returns values with their names.

    `all_()` and its like choose among the columns that are not `hidden`.
    """
    chosen: dict[str, list[Column]] = {}
    choosable = [c for c in columns if c not in hidden]
    while True:
        count = max(map(len, chosen.values()), default=1)
        try:
            return [
                _named(
                    expression, columns, resolve, aggregates, {k: v[i] for k, v in chosen.items()}
                )
                for i in range(count)
            ]
        except SeveralColumns as error:
            selected = error.selected
            if selected in chosen:
                raise
            chosen[selected] = selected.choose(choosable)
            if len({len(found) for found in chosen.values()}) > 1:
                raise InvalidQuery(
                    f"{expression.name} combines different numbers of columns."
                ) from None
            if not chosen[selected]:
                return []


def _named(
    expression: Unbound,
    columns: Collection[Column],
    resolve: Resolve,
    aggregates: bool,
    chosen: dict[str, Column],
) -> tuple[str, Expr]:
    """Bind an expression with one column in the place of each choice, after which it is named as by COLUMNS(...) in SQL."""
    first: list[str] = []

    def resolved(name: str) -> Expr:
        bound = (
            ColumnRef(chosen[name])
            if name in chosen and isinstance(name, Selected)
            else resolve(name)
        )
        if isinstance(bound, ColumnRef):
            first.append(bound.column.name)
        return bound

    bound = bind(expression, columns, resolved, aggregates)
    name = expression.name
    for label, column in chosen.items():
        if label in name:  # else it has an alias
            name = column.name
            break
    if expression.rename_ is not None and first:
        name = expression.rename_(first[0])
    return name, bound


def lift_windows(plan: Logical, exprs: Sequence[Expr]) -> tuple[Logical, list[Expr]]:
    """Return a plan that computes the window functions of some expressions, and the expressions over its columns.

    Window functions of window functions are nodes above those of the inner ones.
    """
    found = list(exprs)
    while has_window(found):
        rewriter = WindowRewriter(plan)
        found = [rewriter.rewrite_innermost(e) for e in found]
        plan = rewriter.plan()
    return plan, found


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
