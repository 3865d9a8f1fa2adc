"""Calls of Narwhals' SQL base as Expressions: its names of functions, and its windows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

import fuseline

from ...errors import UnknownName
from ...frame.expressions.expression import Expression, as_expression
from ...frame.functions import count, fn

if TYPE_CHECKING:
    from narwhals._utils import Version

    from ...frame.expressions.unbound import Operand, Resolve
    from ...plan.expr import Expr
    from .lazy_expression import NarwhalsExpression
    from .lazy_frame import NarwhalsFrame
    from .narwhals_namespace import NarwhalsNamespace

# What Narwhals calls otherwise than SQL does
_NAMED: dict[str, Callable[..., Expression]] = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floordiv": Expression.floor_div,
    "and": operator.and_,
    "isnull": Expression.is_null,
    "isnotnull": Expression.is_not_null,
    "count_distinct": Expression.n_unique,
}


def namespace_of(version: Version) -> NarwhalsNamespace:
    """Return the namespace of a version of the API, of which Narwhals keeps one."""
    found: NarwhalsNamespace = version.namespace.from_backend(fuseline).compliant
    return found


class MissingColumn(UnknownName):
    """There is no column of a name, for which Narwhals has an error of its own."""

    def __init__(self, column: str, message: str) -> None:
        super().__init__(message)
        self.column = column


def column(name: str) -> Expression:
    """Return a column by its name, which is no pattern even where it looks like one."""

    def bind(resolve: Resolve) -> Expr:
        try:
            return resolve(name)
        except UnknownName as error:
            raise MissingColumn(name, error.message) from error

    return Expression(bind, name)


def function(name: str, *args: Operand) -> Expression:
    """Return a function by the name that Narwhals has for it; COUNT without an argument is of all rows."""
    if name == "count" and not args:
        return count()
    given = [as_expression(a) for a in args]
    return _NAMED[name](*given) if name in _NAMED else getattr(fn, name)(*given)


def sort_keys(
    keys: Sequence[str | Expression], descending: Sequence[bool], nulls_last: Sequence[bool]
) -> list[Expression]:
    """Return keys of ORDER BY, each with its direction and the place of NULL."""
    made: list[Expression] = []
    for key, down, last in zip(keys, descending, nulls_last, strict=True):
        named = column(key) if isinstance(key, str) else key
        turned = named.desc() if down else named.asc()
        made.append(turned.nulls_last() if last else turned.nulls_first())
    return made


def windowed(
    expression: Expression,
    partition_by: Sequence[str | Expression] = (),
    order_by: Sequence[str | Expression] = (),
    rows: tuple[int | None, int | None] = (None, None),
    descending: Sequence[bool] | None = None,
    nulls_last: Sequence[bool] | None = None,
) -> Expression:
    """Return a call over a window; NULL comes first in it unless `nulls_last` says otherwise."""
    partition = [column(p) if isinstance(p, str) else p for p in partition_by]
    count_ = len(order_by)
    order = sort_keys(
        order_by, descending or [*repeat(False, count_)], nulls_last or [*repeat(False, count_)]
    )
    frame = None if rows == (None, None) else rows
    return expression.over(*partition, order_by=order, frame=frame)


def named_values(
    frame: NarwhalsFrame, expressions: Sequence[NarwhalsExpression]
) -> list[tuple[str, Expression]]:
    """Return the columns that expressions make of a frame, with their names."""
    made: list[tuple[str, Expression]] = []
    for expression in expressions:
        names = expression._evaluate_output_names(frame)
        if expression._alias_output_names is not None:
            names = expression._alias_output_names(names)
        made.extend(zip(names, expression(frame), strict=True))
    return made
