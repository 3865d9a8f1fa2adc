"""Python's operators on expressions: comparisons, `& | ~`, arithmetic; and aggregates as methods of the expression that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ...errors import InvalidQuery
from ...fence import fenced
from ...plan import infer
from ...plan.expr import AggregateCall, Expr
from ...plan.functions import AGGREGATE, aggregate_name, constants
from ...plan.node import walk
from ...plan.types import BOOLEAN
from .unbound import (
    Operand,
    Resolve,
    Unbound,
    call_name,
    column_operand,
    column_operands,
    operand,
    sort_key,
)

if TYPE_CHECKING:
    from .expression import Expression


@fenced
class OperatorMethods(Unbound):
    """`==`, `<` and so on build comparisons, `&`, `|`, `~` are AND, OR, NOT; plain Python values become literals."""

    __array_ufunc__ = None  # NumPy's scalars and arrays leave operators to this class

    def __hash__(self) -> int:
        return id(self)

    def __bool__(self) -> bool:
        raise InvalidQuery(
            "An expression has no truth value before it runs: combine conditions with & | ~, not and/or/not."
        )

    def __eq__(self, other: Operand) -> Expression:  # type: ignore[override]
        return self._compared("eq", other, "==", "is_null()")

    def __ne__(self, other: Operand) -> Expression:  # type: ignore[override]
        return self._compared("ne", other, "!=", "is_not_null()")

    def _compared(self, function: str, other: Operand, sign: str, remedy: str) -> Expression:
        if other is None:
            raise InvalidQuery(
                f"{self.name} {sign} None is NULL for each row, as in SQL: write col(...).{remedy}, or lit(None) if you mean it."
            )
        return self._call(function, other)

    def __lt__(self, other: Operand) -> Expression:
        return self._call("lt", other)

    def __le__(self, other: Operand) -> Expression:
        return self._call("le", other)

    def __gt__(self, other: Operand) -> Expression:
        return self._call("gt", other)

    def __ge__(self, other: Operand) -> Expression:
        return self._call("ge", other)

    def __and__(self, other: Operand) -> Expression:
        return self._call("and", other)

    def __rand__(self, other: Operand) -> Expression:
        return self._behind("and", other)

    def __or__(self, other: Operand) -> Expression:
        return self._call("or", other)

    def __ror__(self, other: Operand) -> Expression:
        return self._behind("or", other)

    def __invert__(self) -> Expression:
        return self._call("not")

    def __add__(self, other: Operand) -> Expression:
        return self._call("add", other)

    def __radd__(self, other: Operand) -> Expression:
        return self._behind("add", other)

    def __sub__(self, other: Operand) -> Expression:
        return self._call("sub", other)

    def __rsub__(self, other: Operand) -> Expression:
        return self._behind("sub", other)

    def __mul__(self, other: Operand) -> Expression:
        return self._call("mul", other)

    def __rmul__(self, other: Operand) -> Expression:
        return self._behind("mul", other)

    def __truediv__(self, other: Operand) -> Expression:
        return self._call("div", other)

    def __rtruediv__(self, other: Operand) -> Expression:
        return self._behind("div", other)

    def __floordiv__(self, other: Operand) -> Expression:
        return self._call("int_div", other)

    def __rfloordiv__(self, other: Operand) -> Expression:
        return self._behind("int_div", other)

    def __mod__(self, other: Operand) -> Expression:
        return self._call("mod", other)

    def __rmod__(self, other: Operand) -> Expression:
        return self._behind("mod", other)

    def __pow__(self, other: Operand) -> Expression:
        return self._call("power", other)

    def __rpow__(self, other: Operand) -> Expression:
        return self._behind("power", other)

    def __abs__(self) -> Expression:
        return self._call("abs")

    def __neg__(self) -> Expression:
        return self._call("neg")

    def _behind(self, function: str, first: Operand) -> Expression:
        """Return an operator whose left side is another value."""
        left = operand(first)
        name = call_name(function, [left.name, self.name])
        return self._made(lambda bound: infer.call(function, bound[::-1]), name, left)


@fenced
class AggregateMethods(Unbound):
    """`col("price").sum()` is `sum_("price")`; with `.over(...)` it stands beside each row."""

    def filter(self, condition: str | Expression) -> Expression:
        """FILTER (WHERE condition) of an aggregate."""
        chosen = column_operand(condition)

        def bind(resolve: Resolve) -> Expr:
            bound = self.bind(resolve)
            if not isinstance(bound, AggregateCall):
                raise InvalidQuery(f"{self.name} is no aggregate, so it takes no filter.")
            return replace(bound, filter=infer.coerce(chosen.bind(resolve), BOOLEAN))

        return self._new(bind, self.name)

    def order_by(self, *keys: str | Unbound | Sequence[str | Unbound]) -> Expression:
        """ORDER BY inside of an aggregate whose answer depends on it: `col("city").list().order_by("day")`."""
        order = [k for part in keys for k in column_operands(part)]

        def bind(resolve: Resolve) -> Expr:
            bound = self.bind(resolve)
            if not isinstance(bound, AggregateCall):
                raise InvalidQuery(f"{self.name} is no aggregate, so it takes no order_by.")
            return replace(bound, order=tuple(sort_key(k, k.bind(resolve)) for k in order))

        return self._new(bind, self.name)

    def sum(self) -> Expression:
        return self._aggregate("sum")

    def mean(self) -> Expression:
        return self._aggregate("avg")

    def min(self) -> Expression:
        return self._aggregate("min")

    def max(self) -> Expression:
        return self._aggregate("max")

    def count(self) -> Expression:
        """How many values there are, NULLs apart."""
        return self._aggregate("count")

    def n_unique(self) -> Expression:
        """How many different values there are, NULLs apart: COUNT(DISTINCT ...)."""
        return self._aggregate("count", distinct=True)

    def median(self) -> Expression:
        return self._aggregate("median")

    def quantile(self, fraction: float) -> Expression:
        """QUANTILE_CONT, between two values where the place lies between them."""
        return self._aggregate("quantile_cont", fraction)

    def std(self) -> Expression:
        return self._aggregate("stddev_samp")

    def var(self) -> Expression:
        return self._aggregate("var_samp")

    def product(self) -> Expression:
        return self._aggregate("product")

    def mode(self) -> Expression:
        return self._aggregate("mode")

    def first(self) -> Expression:
        """The value of the first row, NULL too; of any row unless the rows have an order, or `.order_by` says one."""
        return self._aggregate("first")

    def last(self) -> Expression:
        return self._aggregate("last")

    def any_value(self) -> Expression:
        """The value of a row that has one."""
        return self._aggregate("any_value")

    def implode(self) -> Expression:
        """All values as one LIST."""
        return self._aggregate("list")

    def all(self) -> Expression:
        """Whether all values are true: BOOL_AND."""
        return self._aggregate("bool_and")

    def any(self) -> Expression:
        """Whether a value is true: BOOL_OR."""
        return self._aggregate("bool_or")

    def _aggregate(self, function: str, *others: Operand, distinct: bool = False) -> Expression:
        made = aggregated(function, (self, *others), distinct)
        return self._new(made.bind, made.name)


def aggregated(function: str, args: Sequence[Operand], distinct: bool = False) -> Unbound:
    """Return an aggregate function; strings name columns, but for constants such as the separator of string_agg."""
    row = AGGREGATE.get(aggregate_name(function) or "")
    fixed = constants(row.signature) if row else ()
    operands = [operand(a) if i in fixed else column_operand(a) for i, a in enumerate(args)]
    listed = ", ".join(o.name for o in operands)
    name = f"{function}({'DISTINCT ' if distinct else ''}{listed})"

    def bind(resolve: Resolve) -> Expr:
        bound = [o.bind(resolve) for o in operands]
        if any(isinstance(e, AggregateCall) for b in bound for e in walk(b)):
            raise InvalidQuery(f"{name}: an aggregate takes no aggregate; call agg(...) twice.")
        return infer.aggregate(function, bound, distinct=distinct)

    return Unbound(bind, name)
