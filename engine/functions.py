"""Expressions for dataframe calls: `col("a") * 2`, `sum_("b")`, `when(...).then(...).otherwise(...)`.

An `Expression` knows no table yet; a `Frame` binds it to its columns, through the same type rules as SQL.  Any SQL function
is there under its name as `fn.<name>(...)`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .errors import InvalidQuery
from .plan import infer
from .plan.expr import AggregateCall, Expr, SortKey
from .plan.types import BOOLEAN, DataType

Resolve = Callable[[str], Expr]


@dataclass(frozen=True, eq=False)
class Expression:
    """An expression without a table: `bind` types it once the columns are known; `name` is its output name.

    `==`, `<` and so on build comparisons, `&`, `|`, `~` are AND, OR, NOT; plain Python values become literals.

    >>> (col("price") * (1 - col("discount"))).alias("net").name
    'net'
    """

    bind: Callable[[Resolve], Expr]
    name: str
    descending: bool = False
    nulls_first_: bool | None = None

    def alias(self, name: str) -> Expression:
        return replace(self, name=name)

    def cast(self, data_type: DataType | str, safe: bool = False) -> Expression:
        """CAST, or with `safe` TRY_CAST, to a type or the SQL name of one."""
        target = infer.parse_type(data_type) if isinstance(data_type, str) else data_type
        return replace(self, bind=lambda resolve: infer.cast(self.bind(resolve), target, safe=safe))

    def is_null(self) -> Expression:
        return call("is_null", self)

    def is_not_null(self) -> Expression:
        return call("is_not_null", self)

    def between(self, low: Any, high: Any) -> Expression:
        return (self >= low) & (self <= high)

    def is_in(self, values: Sequence[Any]) -> Expression:
        items = [as_expression(v) for v in values]

        def bind(resolve: Resolve) -> Expr:
            return infer.in_list(self.bind(resolve), [i.bind(resolve) for i in items])

        return Expression(bind, f"{self.name} in list")

    def like(self, pattern: str) -> Expression:
        return call("like", self, pattern)

    def desc(self) -> Expression:
        """As a sort key: largest first."""
        return replace(self, descending=True)

    def asc(self) -> Expression:
        return replace(self, descending=False)

    def nulls_first(self) -> Expression:
        return replace(self, nulls_first_=True)

    def nulls_last(self) -> Expression:
        return replace(self, nulls_first_=False)

    def filter(self, condition: Expression) -> Expression:
        """FILTER (WHERE condition) of an aggregate."""

        def bind(resolve: Resolve) -> Expr:
            bound = self.bind(resolve)
            if not isinstance(bound, AggregateCall):
                raise InvalidQuery(f"{self.name} is no aggregate, so it takes no filter.")
            return replace(bound, filter=infer.coerce(condition.bind(resolve), BOOLEAN))

        return replace(self, bind=bind)

    def sum(self) -> Expression:
        return sum_(self)

    def mean(self) -> Expression:
        return avg(self)

    def min(self) -> Expression:
        return min_(self)

    def max(self) -> Expression:
        return max_(self)

    def count(self) -> Expression:
        return count(self)

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise InvalidQuery(
            "An expression has no truth value before it runs: combine conditions with & | ~, not and/or/not."
        )

    def __eq__(self, other: object) -> Expression:  # type: ignore[override]
        return call("eq", self, other)

    def __ne__(self, other: object) -> Expression:  # type: ignore[override]
        return call("ne", self, other)

    def __lt__(self, other: Any) -> Expression:
        return call("lt", self, other)

    def __le__(self, other: Any) -> Expression:
        return call("le", self, other)

    def __gt__(self, other: Any) -> Expression:
        return call("gt", self, other)

    def __ge__(self, other: Any) -> Expression:
        return call("ge", self, other)

    def __and__(self, other: Any) -> Expression:
        return call("and", self, other)

    def __rand__(self, other: Any) -> Expression:
        return call("and", other, self)

    def __or__(self, other: Any) -> Expression:
        return call("or", self, other)

    def __ror__(self, other: Any) -> Expression:
        return call("or", other, self)

    def __invert__(self) -> Expression:
        return call("not", self)

    def __add__(self, other: Any) -> Expression:
        return call("add", self, other)

    def __radd__(self, other: Any) -> Expression:
        return call("add", other, self)

    def __sub__(self, other: Any) -> Expression:
        return call("sub", self, other)

    def __rsub__(self, other: Any) -> Expression:
        return call("sub", other, self)

    def __mul__(self, other: Any) -> Expression:
        return call("mul", self, other)

    def __rmul__(self, other: Any) -> Expression:
        return call("mul", other, self)

    def __truediv__(self, other: Any) -> Expression:
        return call("div", self, other)

    def __rtruediv__(self, other: Any) -> Expression:
        return call("div", other, self)

    def __floordiv__(self, other: Any) -> Expression:
        return call("int_div", self, other)

    def __mod__(self, other: Any) -> Expression:
        return call("mod", self, other)

    def __neg__(self) -> Expression:
        return call("neg", self)


def col(name: str) -> Expression:
    """Return the column of that name (case-insensitive, as in SQL)."""
    return Expression(lambda resolve: resolve(name), name)


def lit(value: Any) -> Expression:
    """Return a constant: None, bool, int, float, Decimal, str, date, datetime, timedelta or a numpy scalar."""
    return Expression(lambda _: infer.literal(value), str(value))


def as_expression(value: Any) -> Expression:
    """Return an expression as it is and anything else as a constant."""
    return value if isinstance(value, Expression) else lit(value)


def as_column(value: Any) -> Expression:
    """Like `as_expression`, but a string names a column."""
    return col(value) if isinstance(value, str) else as_expression(value)


def call(function: str, *args: Any) -> Expression:
    """Return a scalar function or operator over expressions and constants."""
    operands = [as_expression(a) for a in args]

    def bind(resolve: Resolve) -> Expr:
        return infer.call(function, [o.bind(resolve) for o in operands])

    return Expression(bind, f"{function}({', '.join(o.name for o in operands)})")


def aggregate(function: str, *args: Any, distinct: bool = False) -> Expression:
    """Return an aggregate function; strings name columns."""
    operands = [as_column(a) for a in args]

    def bind(resolve: Resolve) -> Expr:
        return infer.aggregate(function, [o.bind(resolve) for o in operands], distinct=distinct)

    return Expression(bind, f"{function}({', '.join(o.name for o in operands)})")


def sum_(value: Any) -> Expression:
    """SUM: exact for integers and decimals, `OutOfRange` beyond 38 digits."""
    return aggregate("sum", value)


def avg(value: Any) -> Expression:
    return aggregate("avg", value)


def min_(value: Any) -> Expression:
    return aggregate("min", value)


def max_(value: Any) -> Expression:
    return aggregate("max", value)


def count(value: Any = None, distinct: bool = False) -> Expression:
    """COUNT of the values that are not NULL, or without an argument of all rows."""
    if value is None:
        return aggregate("count_star").alias("count_star()")
    return aggregate("count", value, distinct=distinct)


def coalesce(*values: Any) -> Expression:
    """The first of the values that is not NULL."""
    return call("coalesce", *values)


class _Functions:
    """`fn.upper(col("name"))`: every SQL function under its name; arguments are expressions and constants."""

    def __getattr__(self, name: str) -> Callable[..., Expression]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args: call(name, *args)


fn = _Functions()


@dataclass(frozen=True, eq=False)
class When(Expression):
    """CASE under construction: further `when(...)` add branches; without `otherwise` the rest is NULL."""

    branches: tuple[tuple[Expression, Expression], ...] = ()

    def when(self, condition: Expression) -> Then:
        return Then(self.branches, condition)

    def otherwise(self, value: Any) -> Expression:
        return _case(self.branches, as_expression(value))


@dataclass(frozen=True)
class Then:
    """A condition that waits for its value."""

    branches: tuple[tuple[Expression, Expression], ...]
    condition: Expression

    def then(self, value: Any) -> When:
        branches = (*self.branches, (self.condition, as_expression(value)))
        return When(_case(branches, lit(None)).bind, "case", branches=branches)


def when(condition: Expression) -> Then:
    """Begin a CASE: `when(c).then(x).when(d).then(y).otherwise(z)`."""
    return Then((), condition)


def _case(branches: Sequence[tuple[Expression, Expression]], default: Expression) -> Expression:
    def bind(resolve: Resolve) -> Expr:
        return infer.case(
            [infer.coerce(c.bind(resolve), BOOLEAN) for c, _ in branches],
            [v.bind(resolve) for _, v in branches],
            default.bind(resolve),
        )

    return Expression(bind, "case")


def sort_key(expression: Expression, resolve: Resolve) -> SortKey:
    """Bind one sort key; NULLs come last unless it says otherwise."""
    return SortKey(expression.bind(resolve), expression.descending, bool(expression.nulls_first_))


__all__ = [
    "Expression",
    "aggregate",
    "avg",
    "call",
    "coalesce",
    "col",
    "count",
    "fn",
    "lit",
    "max_",
    "min_",
    "sum_",
    "when",
]
