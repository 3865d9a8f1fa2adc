"""Functions for dataframe calls: `sum_("b")`, `when(...).then(...).otherwise(...)`, `coalesce("a", 0)`.

An `Expression` knows no table yet; a `Frame` binds it to its columns, through the same type rules as SQL.  `sql_functions` has
SQL's functions under their names, `expressions` what an expression can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..fence import fenced
from ..plan import infer
from ..plan.expr import Expr
from ..plan.types import BOOLEAN
from .expressions.expression import (
    Expression as Expression,
    as_column,
    as_expression,
    call as call,
    col as col,
    lit as lit,
    plain,
)
from .expressions.operator_methods import aggregated
from .expressions.unbound import Operand, Resolve


@fenced
def aggregate(function: str, *args: Operand, distinct: bool = False) -> Expression:
    """Return an aggregate function; strings name columns, but for constants such as the separator of string_agg."""
    return plain(aggregated(function, args, distinct))


@fenced
def sum_(value: Operand) -> Expression:
    """SUM: exact for integers and decimals, `OutOfRange` beyond 38 digits."""
    return aggregate("sum", value)


@fenced
def avg(value: Operand) -> Expression:
    return aggregate("avg", value)


@fenced
def min_(value: Operand) -> Expression:
    return aggregate("min", value)


@fenced
def max_(value: Operand) -> Expression:
    return aggregate("max", value)


@fenced
def count(value: Operand = None, distinct: bool = False) -> Expression:
    """COUNT of the values that are not NULL, or without an argument of all rows."""
    if value is None:
        return aggregate("count_star").alias("count_star()")
    return aggregate("count", value, distinct=distinct)


@fenced
def coalesce(*values: Operand) -> Expression:
    """The first of the values that is not NULL; as the first of them a string names a column, then it is a constant."""
    return call("coalesce", *(as_column(v) if i == 0 else v for i, v in enumerate(values)))


@fenced
@dataclass(frozen=True, eq=False)
class When(Expression):
    """CASE under construction: further `when(...)` add branches; without `otherwise` the rest is NULL."""

    branches: tuple[tuple[Expression, Expression], ...] = ()

    def when(self, condition: str | Expression) -> Then:
        return Then(self.branches, as_column(condition))

    def otherwise(self, value: Operand) -> Expression:
        return _case(self.branches, as_expression(value))


@fenced
@dataclass(frozen=True)
class Then:
    """A condition that waits for its value."""

    branches: tuple[tuple[Expression, Expression], ...]
    condition: Expression

    def then(self, value: Operand) -> When:
        branches = (*self.branches, (self.condition, as_expression(value)))
        return When(_case(branches, lit(None)).bind, "case", branches=branches)


@fenced
def when(condition: str | Expression) -> Then:
    """Begin a CASE: `when(c).then(x).when(d).then(y).otherwise(z)`; a string as a condition names a column."""
    return Then((), as_column(condition))


def _case(branches: Sequence[tuple[Expression, Expression]], default: Expression) -> Expression:
    def bind(resolve: Resolve) -> Expr:
        return infer.case(
            [infer.coerce(c.bind(resolve), BOOLEAN) for c, _ in branches],
            [v.bind(resolve) for _, v in branches],
            default.bind(resolve),
        )

    return Expression(bind, "case")
