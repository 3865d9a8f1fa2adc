"""DuckDB's constructors of expressions, for code written for its module: `ColumnExpression("a") > ConstantExpression(2)`."""

from __future__ import annotations

from collections.abc import Iterable

from ..errors import Unsupported, WrongArguments, shown
from ..fence import fenced
from ..plan.functions import aggregate_name, scalar_name, window_name
from ..records import dataclass
from .expressions.expression import Expression, as_expression, call, col, exclude, lit
from .expressions.sql_text import SqlText
from .expressions.unbound import Operand
from .functions import When, aggregate, count, scalar, window


@fenced
def ColumnExpression(*names: str) -> Expression:  # noqa: N802
    """Return the column of a name; raises `Unsupported` for a name with its table."""
    if len(names) != 1:
        raise Unsupported(
            "ColumnExpression() takes the column's name alone: of a join, frame['name'] is the column of one side."
        )
    return col(names[0])


@fenced
def ConstantExpression(value: Operand) -> Expression:  # noqa: N802
    """Return a constant, as `lit` does."""
    return lit(value)


@fenced
def StarExpression(*, exclude: Iterable[str | Expression] = ()) -> Expression:  # noqa: N802
    """Return every column but some."""
    return _all_but(*(e.name if isinstance(e, Expression) else e for e in exclude))


_all_but = exclude
star = StarExpression


@fenced
def FunctionExpression(name: str, *args: Operand) -> Expression:  # noqa: N802
    """Return a function by its name in SQL: of rows, of groups or of windows; texts among the arguments are constants."""
    if not isinstance(name, str):
        raise WrongArguments(f"FunctionExpression() takes a function's name, not {shown(name)}.")
    made = [as_expression(a) for a in args]
    if scalar_name(name) is None:
        if aggregate_name(name) is not None:
            return count() if name.lower() == "count" and not made else aggregate(name, *made)
        if window_name(name) is not None:
            return window(name, *made)
    return scalar(name, *made)


@fenced
def CoalesceOperator(*values: Operand) -> Expression:  # noqa: N802
    """Return the first of some values that is not NULL."""
    return call("coalesce", *values)


@fenced
def SQLExpression(text: str) -> Expression:  # noqa: N802
    """Return an expression that is written in SQL, of columns of the frame that it is given to."""
    if not isinstance(text, str):
        raise WrongArguments(f"SQLExpression() takes a text, not {shown(text)}.")
    return Expression(lambda resolve: resolve(SqlText(text)), text)


@fenced
@dataclass(frozen=True, eq=False)
class DuckDBCase(When):
    """CASE by DuckDB's calls: `CaseExpression(condition, value).when(condition, value).otherwise(value)`."""

    def when(self, condition: Expression, value: Operand) -> DuckDBCase:  # type: ignore[override]
        made = super().when(condition).then(value)
        return DuckDBCase(made.bind, made.name, branches=made.branches)


@fenced
def CaseExpression(condition: Expression, value: Operand) -> DuckDBCase:  # noqa: N802
    """Begin a CASE; without `otherwise` the rest is NULL."""
    return DuckDBCase(lit(None).bind, "case").when(condition, value)


@fenced
def count_all() -> Expression:
    """Return COUNT(*)."""
    return count()
