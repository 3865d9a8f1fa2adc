"""Expressions for dataframe calls: `col("a") * 2`, `sum_("b")`, `when(...).then(...).otherwise(...)`.

An `Expression` knows no table yet; a `Frame` binds it to its columns, through the same type rules as SQL.  `sql_functions` has
SQL's functions under their names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol, TypeAlias

from ..errors import InvalidQuery, check_name, shown
from ..fence import fenced
from ..plan import infer
from ..plan.expr import AggregateCall, Expr, SortKey, Value
from ..plan.functions import AGGREGATE, aggregate_name, constants
from ..plan.node import walk
from ..plan.text.expr_text import literal_text
from ..plan.types import BOOLEAN, DataType
from .expression_names import call_name

Resolve = Callable[[str], Expr]
Call = Callable[[str, Sequence[Expr]], Expr]


class NumPyScalar(Protocol):
    """A scalar or an array of no dimension."""

    @property
    def dtype(self) -> object: ...

    def item(self) -> object: ...


# What may stand where an expression may: anything but an expression becomes a constant, or is refused
Operand: TypeAlias = "Expression | Value | timedelta | NumPyScalar"


@fenced
@dataclass(frozen=True, eq=False)
class Expression:
    """An expression without a table: `bind` types it once the columns are known; `name` is its output name.

    `==`, `<` and so on build comparisons, `&`, `|`, `~` are AND, OR, NOT; plain Python values become literals.

    >>> (col("price") * (1 - col("discount"))).alias("net").name
    'net'
    """

    __array_ufunc__ = None  # NumPy's scalars and arrays leave operators to this class

    bind: Callable[[Resolve], Expr]
    name: str
    descending: bool = False
    nulls_first_: bool | None = None

    def alias(self, name: str) -> Expression:
        check_name(name, "column")
        return replace(self, name=name)

    def __repr__(self) -> str:
        return f"<Expression {self.name}>"

    def cast(self, data_type: DataType | str, safe: bool = False) -> Expression:
        """CAST, or with `safe` TRY_CAST, to a type or the SQL name of one."""
        if not isinstance(data_type, DataType | str):
            raise InvalidQuery(
                f'cast takes the SQL name of a type, such as "integer", not {shown(data_type)}.'
            )
        target = infer.parse_type(data_type) if isinstance(data_type, str) else data_type
        return replace(self, bind=lambda resolve: infer.cast(self.bind(resolve), target, safe=safe))

    def is_null(self) -> Expression:
        return call("is_null", self)

    def is_not_null(self) -> Expression:
        return call("is_not_null", self)

    def fill_null(self, value: Operand) -> Expression:
        """COALESCE: `value` where this is NULL, under the same name."""
        return coalesce(self, value).alias(self.name)

    def between(self, low: Operand, high: Operand) -> Expression:
        return (self >= low) & (self <= high)

    def is_in(self, values: Iterable[Operand]) -> Expression:
        """IN a list of values; for the values of another frame, use a join with `how="semi"`."""
        single = isinstance(values, str | bytes | Expression) or getattr(values, "ndim", 1) == 0
        if single or not isinstance(values, Iterable):
            raise InvalidQuery(f"is_in takes a list of values, not {shown(values)}.")
        if hasattr(values, "to_arrow") and hasattr(values, "plan"):
            raise InvalidQuery('is_in takes values: for those of a frame, join it with how="semi".')
        items = [as_expression(v) for v in values]

        def bind(resolve: Resolve) -> Expr:
            return infer.in_list(self.bind(resolve), [i.bind(resolve) for i in items])

        return Expression(bind, f"({self.name} IN ({', '.join(i.name for i in items)}))")

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

    def filter(self, condition: str | Expression) -> Expression:
        """FILTER (WHERE condition) of an aggregate."""
        chosen = as_column(condition)

        def bind(resolve: Resolve) -> Expr:
            bound = self.bind(resolve)
            if not isinstance(bound, AggregateCall):
                raise InvalidQuery(f"{self.name} is no aggregate, so it takes no filter.")
            return replace(bound, filter=infer.coerce(chosen.bind(resolve), BOOLEAN))

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

    def __eq__(self, other: Operand) -> Expression:  # type: ignore[override]
        return call("eq", self, other)

    def __ne__(self, other: Operand) -> Expression:  # type: ignore[override]
        return call("ne", self, other)

    def __lt__(self, other: Operand) -> Expression:
        return call("lt", self, other)

    def __le__(self, other: Operand) -> Expression:
        return call("le", self, other)

    def __gt__(self, other: Operand) -> Expression:
        return call("gt", self, other)

    def __ge__(self, other: Operand) -> Expression:
        return call("ge", self, other)

    def __and__(self, other: Operand) -> Expression:
        return call("and", self, other)

    def __rand__(self, other: Operand) -> Expression:
        return call("and", other, self)

    def __or__(self, other: Operand) -> Expression:
        return call("or", self, other)

    def __ror__(self, other: Operand) -> Expression:
        return call("or", other, self)

    def __invert__(self) -> Expression:
        return call("not", self)

    def __add__(self, other: Operand) -> Expression:
        return call("add", self, other)

    def __radd__(self, other: Operand) -> Expression:
        return call("add", other, self)

    def __sub__(self, other: Operand) -> Expression:
        return call("sub", self, other)

    def __rsub__(self, other: Operand) -> Expression:
        return call("sub", other, self)

    def __mul__(self, other: Operand) -> Expression:
        return call("mul", self, other)

    def __rmul__(self, other: Operand) -> Expression:
        return call("mul", other, self)

    def __truediv__(self, other: Operand) -> Expression:
        return call("div", self, other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return call("div", other, self)

    def __floordiv__(self, other: Operand) -> Expression:
        return call("int_div", self, other)

    def __rfloordiv__(self, other: Operand) -> Expression:
        return call("int_div", other, self)

    def __mod__(self, other: Operand) -> Expression:
        return call("mod", self, other)

    def __rmod__(self, other: Operand) -> Expression:
        return call("mod", other, self)

    def __pow__(self, other: Operand) -> Expression:
        return call("power", self, other)

    def __rpow__(self, other: Operand) -> Expression:
        return call("power", other, self)

    def __abs__(self) -> Expression:
        return call("abs", self)

    def __neg__(self) -> Expression:
        return call("neg", self)


@fenced
def col(name: str) -> Expression:
    """Return the column of that name (case-insensitive, as in SQL)."""
    if not isinstance(name, str):
        raise InvalidQuery(
            f"A column is named by a string, not by {shown(name)}: lit(...) is a constant."
        )
    return Expression(lambda resolve: resolve(name), name)


@fenced
def lit(value: Operand) -> Expression:
    """Return a constant: None, bool, int, float, Decimal, str, date, datetime, timedelta or a numpy scalar."""
    literal = infer.literal(value)
    return Expression(lambda _: literal, literal_text(literal))


def as_expression(value: Operand) -> Expression:
    """Return an expression as it is and anything else as a constant."""
    return value if isinstance(value, Expression) else lit(value)


def as_column(value: Operand) -> Expression:
    """Like `as_expression`, but a string names a column."""
    return col(value) if isinstance(value, str) else as_expression(value)


@fenced
def call(function: str, *args: Operand, how: Call = infer.call) -> Expression:
    """Return a scalar function or operator over expressions and constants; `how` binds it."""
    operands = [as_expression(a) for a in args]

    def bind(resolve: Resolve) -> Expr:
        return how(function, [o.bind(resolve) for o in operands])

    return Expression(bind, call_name(function, [o.name for o in operands]))


@fenced
def aggregate(function: str, *args: Operand, distinct: bool = False) -> Expression:
    """Return an aggregate function; strings name columns, but for constants such as the separator of string_agg."""
    row = AGGREGATE.get(aggregate_name(function) or "")
    fixed = constants(row.signature) if row else ()
    operands = [as_expression(a) if i in fixed else as_column(a) for i, a in enumerate(args)]
    listed = ", ".join(o.name for o in operands)
    name = f"{function}({'DISTINCT ' if distinct else ''}{listed})"

    def bind(resolve: Resolve) -> Expr:
        bound = [o.bind(resolve) for o in operands]
        if any(isinstance(e, AggregateCall) for b in bound for e in walk(b)):
            raise InvalidQuery(f"{name}: an aggregate takes no aggregate; call agg(...) twice.")
        return infer.aggregate(function, bound, distinct=distinct)

    return Expression(bind, name)


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


def sort_key(expression: Expression, bound: Expr) -> SortKey:
    """Return one bound sort key; NULLs come last unless it says otherwise."""
    return SortKey(bound, expression.descending, bool(expression.nulls_first_))


__all__ = [
    "Expression",
    "aggregate",
    "avg",
    "call",
    "coalesce",
    "col",
    "count",
    "lit",
    "max_",
    "min_",
    "sum_",
    "when",
]
