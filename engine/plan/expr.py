"""Typed expressions over columns.

A `Column` is an identity, not a position: it keeps its id from the node that makes it to the last one that reads it, so
rules move expressions through a plan without renumbering.  Expressions are built by `infer` (which resolves overloads and
inserts casts), never with a guessed type.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, ClassVar, Literal as OneOf

from ..errors import Span
from ..records import dataclass
from .calendar import EPOCH, EPOCH_DAY, MICROS_A_DAY, MICROSECOND
from .node import Node, Once, transform_up
from .types import BOOLEAN, DIGITS, DataType, Kind

if TYPE_CHECKING:
    from .logical import Logical


@dataclass(frozen=True, slots=True)
class Column:
    """A column that some node of the plan makes; equal when the ids are."""

    id: int
    name: str = field(compare=False)
    type: DataType = field(compare=False)

    def __hash__(self) -> int:
        return self.id  # columns are in sets and mappings everywhere: cheaper than that of a tuple

    def __reduce__(self) -> tuple[Callable[..., Column], tuple[object, ...]]:
        return _received, (self.id, self.name, self.type)


_ids = itertools.count(1)


def _received(number: int, name: str, data_type: DataType) -> Column:
    """Return a column of a plan that another process has made: ids of this process go on behind it."""
    behind = number - next(_ids)
    deque(itertools.islice(_ids, max(0, behind)), maxlen=0)
    return Column(number, name, data_type)


def new_column(name: str, data_type: DataType) -> Column:
    """Return a column with an id that no other column of this process has."""
    return Column(next(_ids), name, data_type)


@dataclass(frozen=True, slots=True)
class Interval:
    """An INTERVAL value; the three parts are kept apart as in DuckDB (a month has no fixed number of days)."""

    months: int = 0
    days: int = 0
    micros: int = 0


# TIMESTAMP has a `datetime`, of which the other types of counts have no nanoseconds: theirs is the count
Value = None | bool | int | float | Decimal | str | bytes | date | datetime | Interval


def physical(value: Value, data_type: DataType) -> Value:
    """Return a constant as registers and columns hold it: unscaled decimals, days and microseconds since 1970, others as they are."""
    if isinstance(value, datetime):
        return (value - EPOCH) // MICROSECOND
    if isinstance(value, date):
        days = (value - EPOCH_DAY).days
        return days * MICROS_A_DAY if data_type.kind is Kind.TIMESTAMP else days
    if value is None or isinstance(value, Interval | bytes):
        return value
    if data_type.is_decimal:
        return int(Decimal(value).scaleb(data_type.scale, DIGITS))
    return float(value) if data_type.is_float else value


class Expr(Node):
    """A typed expression; `span` is its place in the query text and no part of its identity."""

    __slots__ = ()
    type: DataType
    span: Span | None

    @Once
    def reads(self) -> frozenset[Column]:
        found = frozenset[Column]().union(*(child.reads for child in self.children))
        if isinstance(self, Subquery):
            from .logical import free_columns  # the two families refer to each other

            found |= free_columns(self.plan)
        return found

    @Once
    def subqueries(self) -> tuple[Subquery, ...]:
        """It and those among its parts, parents first; each has a plan of its own, whose subqueries are not among them."""
        own = (self,) if isinstance(self, Subquery) else ()
        return own + tuple(q for child in self.children for q in child.subqueries)


@dataclass(frozen=True)
class Literal(Expr):
    """A constant; `value` is None for NULL of any type, an exact `Decimal` for DECIMAL.

    A plan that serves other texts too has those of its text as `shapes.guards.SlotLiteral`, where each look at `value` ties it to that value.
    The properties below tie it to nothing, and neither do `guards.decided` and `guards.computed`.
    """

    value: Value
    type: DataType
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def is_null(self) -> bool:
        return self.value is None

    @property
    def truth(self) -> bool | None:
        """The value of a BOOLEAN, None of anything else."""
        return self.value if isinstance(self.value, bool) else None

    @property
    def hint(self) -> Value:
        """The value, for estimates: no answer may depend on it."""
        return self.value

    def at(self, span: Span | None) -> Literal:
        """Return the same constant at another place of the text."""
        return Literal(self.value, self.type, span)


@dataclass(frozen=True)
class ColumnRef(Expr):
    """The value of a column in the current row."""

    column: Column
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> DataType:  # type: ignore[override]
        return self.column.type

    @Once
    def reads(self) -> frozenset[Column]:
        return frozenset((self.column,))


@dataclass(frozen=True)
class Call(Expr):
    """A scalar function of `functions.SCALAR`, operators included (`add`, `eq`, `and`, `like` ...)."""

    function: str
    args: tuple[Expr, ...]
    type: DataType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Cast(Expr):
    """CAST, or with `safe` TRY_CAST, which gives NULL where CAST raises `ConversionError`."""

    operand: Expr
    type: DataType
    safe: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Case(Expr):
    """CASE WHEN conditions[i] THEN results[i] ELSE default END; all results have the type of the expression."""

    conditions: tuple[Expr, ...]
    results: tuple[Expr, ...]
    default: Expr
    type: DataType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class InList(Expr):
    """operand IN (values); values are literals of the operand's type (other lists become OR of equalities).

    NOT IN is `not` of this.  NULL among the values makes a miss NULL.
    """

    CHILDREN: ClassVar = ("operand", "values")
    operand: Expr
    values: tuple[Literal, ...]
    type: DataType = BOOLEAN
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ListAggregate(Expr):
    """An aggregate of the elements of each list; `body` is over `element` alone, so that no walk has to look into it."""

    CHILDREN: ClassVar = ("operand",)
    operand: Expr
    element: Column
    body: Expr
    type: DataType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ListMap(Expr):
    """[body for element, place in operand if condition], places counted from 1; NULL for a list that is NULL.

    `body` and `condition` (BOOLEAN; None: all elements) are over `element`, `place` and the columns `captured`, which have the values that
    the expressions `captures` have in the list's row: no walk has to look into them.
    """

    CHILDREN: ClassVar = ("operand", "captures")
    operand: Expr
    captures: tuple[Expr, ...]
    element: Column
    place: Column
    captured: tuple[Column, ...]
    body: Expr
    condition: Expr | None
    type: DataType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ListReduce(Expr):
    """One value of a list: `body` of what has come of the elements before, the next element, and its place, from 1 on.

    `parameters` are these three.  Without an initial value the first element is what the second one meets, and an empty list raises
    `ExecutionError`.  Captures are as in `ListMap`.
    """

    CHILDREN: ClassVar = ("operand", "initial", "captures")
    operand: Expr
    initial: Expr | None
    captures: tuple[Expr, ...]
    parameters: tuple[Column, Column, Column]
    captured: tuple[Column, ...]
    body: Expr
    type: DataType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Try(Expr):
    """TRY(body): NULL in each row in which `body` raises an error of its values.

    `body` is over the columns `captured` alone, which have the values of `captures`: what another node of the plan computes may move into
    these, and its errors stay errors.
    """

    CHILDREN: ClassVar = ("captures",)
    captures: tuple[Expr, ...]
    captured: tuple[Column, ...]
    body: Expr
    type: DataType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class AggregateCall(Expr):
    """An aggregate function of `functions.AGGREGATE`; COUNT(*) is `count_star` without arguments.

    `filter` is the FILTER clause; `order` is the ORDER BY inside the call (string_agg, first, last).
    """

    CHILDREN: ClassVar = ("args", "filter", "order")
    function: str
    args: tuple[Expr, ...]
    type: DataType
    distinct: bool = False
    filter: Expr | None = None
    order: tuple[SortKey, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def fraction(self) -> float:
        """The constant of a quantile."""
        last = self.args[-1]
        assert isinstance(last, Literal)
        value = last.value
        assert isinstance(value, int | float)
        return float(value)


@dataclass(frozen=True)
class SortKey(Expr):
    """One ORDER BY item.  Not a value of its own; an `Expr` so that walks and substitutions reach `expr`."""

    expr: Expr
    descending: bool = False
    nulls_first: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def type(self) -> DataType:  # type: ignore[override]
        return self.expr.type


# Subqueries.  `plan` is no child: it is a tree of another family.  The columns that it reads and does not make are its
# correlation.  `decorrelate` removes all of these before `lower`.


@dataclass(frozen=True)
class ScalarSubquery(Expr):
    """The single value of a one-column plan; NULL for no row, `ExecutionError` for more than one."""

    plan: Logical
    type: DataType
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Exists(Expr):
    """Whether the plan has a row; never NULL."""

    plan: Logical
    type: DataType = BOOLEAN
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Quantified(Expr):
    """operands <op> ANY/ALL (plan), in three-valued logic; IN is `eq` ANY, NOT IN is `not` of that.

    `op` is a comparison function (`eq ne lt le gt ge`); several operands (row values) allow `eq` and `ne` alone.
    The plan's columns have the operands' types, one each.
    """

    op: str
    quantifier: OneOf["any", "all"]
    operands: tuple[Expr, ...]
    plan: Logical
    type: DataType = BOOLEAN
    span: Span | None = field(default=None, compare=False, repr=False)


Subquery = ScalarSubquery | Exists | Quantified

TRUE = Literal(True, BOOLEAN)
FALSE = Literal(False, BOOLEAN)


def columns_of(expr: Expr) -> frozenset[Column]:
    """Return the columns that `expr` reads, those free in its subqueries included."""
    return expr.reads


def substitute(expr: Expr, replacement: Callable[[Column], Expr | None]) -> Expr:
    """Replace column references, inside subqueries too; None keeps one."""

    def replace(node: Expr) -> Expr | None:
        if isinstance(node, ColumnRef):
            return replacement(node.column)
        if isinstance(node, Subquery):
            from .copies import substitute_free

            plan = substitute_free(node.plan, replacement)
            if plan is not node.plan:
                import dataclasses

                return dataclasses.replace(node, plan=plan)
        return None

    return transform_up(expr, replace)


def conjuncts(expr: Expr | None) -> Iterator[Expr]:
    """Yield the parts of a condition that AND joins."""
    if isinstance(expr, Call) and expr.function == "and":
        for arg in expr.args:
            yield from conjuncts(arg)
    elif expr is not None and expr != TRUE:
        yield expr


def conjunction(parts: list[Expr]) -> Expr:
    """Return the AND of `parts`, TRUE for none; AND is n-ary in the plan."""
    if not parts:
        return TRUE
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), BOOLEAN, parts[0].span)
