"""Logical plans: relational algebra, no algorithms; and what is known of a table without reading it, the input of every estimate.

Every node says which columns it makes (`columns`, in order).  Within a tree an id is made once; nodes that pass a column
on keep its id.  A plan that reads a column which it does not make is correlated (`free_columns`).
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Hashable, Mapping
from dataclasses import field
from typing import ClassVar, Literal as OneOf, Protocol, Self, TypeVar, cast

from ..errors import Span
from ..records import dataclass
from .expr import AggregateCall, Column, Expr, SortKey, Subquery, Value
from .join_kinds import JoinKind
from .node import Once, RelationNode
from .types import DataType


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Facts about one column; None means unknown.  `low` and `high` are bounds, not necessarily present values.

    `likely_distinct` and `likely_sorted` are no facts: guesses, for estimates alone, the second that values ascend with the rows.
    So is what `comes_again` finds in some rows: that text will be a dictionary though no dictionary is in the files.
    """

    low: Value = None
    high: Value = None
    nulls: int | None = None
    distinct: int | None = None
    unique: bool | None = None
    likely_distinct: int | None = None
    likely_sorted: bool = False
    comes_again: Callable[[], bool] = field(
        default=bool, compare=False, repr=False
    )  # bool() is False


@dataclass(frozen=True, slots=True)
class TableStatistics:
    """Row count, None when unknown, and what is known of each column by name."""

    rows: int | None = None
    columns: Mapping[str, ColumnStatistics] = field(default_factory=dict)


Item = tuple[Column, Expr]
T = TypeVar("T")


class CatalogTable(Protocol):
    """A catalog entry that can be scanned; compared by identity."""

    @property
    def name(self) -> str: ...

    @property
    def fields(self) -> tuple[tuple[str, DataType], ...]: ...

    @property
    def identity(self) -> Hashable:
        """What tells its rows from those of other tables and versions; None where each run may find others."""

    def statistics(self) -> TableStatistics: ...


class Logical(RelationNode):
    """A relation; `columns` are what it makes or passes on, in order."""

    __slots__ = ()

    EXPRESSIONS: ClassVar[tuple[str, ...]] = ()  # fields that hold some, maybe in tuples

    @Once
    def expressions(self) -> tuple[Expr, ...]:
        """The expressions that this node itself evaluates."""
        found: list[Expr] = []
        for name in self.EXPRESSIONS:
            found += nested_expressions(getattr(self, name))
        return tuple(found)

    @Once
    def subqueries(self) -> tuple[Subquery, ...]:
        """Those of its own expressions."""
        return tuple(q for e in self.expressions for q in e.subqueries)

    def map_expressions(self, rewrite: Callable[[Expr], Expr]) -> Self:
        """Return this node with each of its own expressions rewritten, or itself when all came back as they were."""
        old = {name: getattr(self, name) for name in self.EXPRESSIONS}
        new = {name: _rewritten(value, rewrite) for name, value in old.items()}
        changes = {name: value for name, value in new.items() if value is not old[name]}
        return self.replaced(**changes) if changes else self

    @Once
    def made_below(self) -> frozenset[Column]:
        """The columns of this node and of those below it."""
        return frozenset(self.columns).union(*(c.made_below for c in self.children))

    @Once
    def read_below(self) -> frozenset[Column]:
        """The columns that this node and those below it read."""
        own = (e.reads for e in self.expressions)
        return frozenset().union(*own, *(c.read_below for c in self.children))


@dataclass(frozen=True)
class Scan(Logical):
    """Columns of a table; `sources[i]` is the table's name for `made[i]`."""

    table: CatalogTable
    made: tuple[Column, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Common:
    """A query that a statement names several times, and that is planned and run once; it reads no columns of queries around it."""

    name: str
    plan: Logical
    known: dict[object, object] = dataclasses.field(default_factory=dict, repr=False)

    def once(self, work_out: Callable[[Logical], T]) -> T:
        """Return what a function says of the plan, which is asked once however many places read it."""
        if work_out not in self.known:
            self.known[work_out] = work_out(self.plan)
        return cast("T", self.known[work_out])


@dataclass(frozen=True)
class CommonScan(Logical):
    """Rows of a common query: `made[i]` is its column `sources[i]`.

    A leaf, so that no rule comes to the plan below it from several sides; its columns have ids of their own.
    """

    common: Common
    made: tuple[Column, ...]
    sources: tuple[Column, ...]


@dataclass(frozen=True)
class Range(Logical):
    """`range(start, stop, step)`: BIGINT values from start; generate_series makes `stop` inclusive before."""

    made: Column
    start: int
    stop: int
    step: int

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.made,)


@dataclass(frozen=True)
class Values(Logical):
    """Rows of constant expressions; one row without columns stands for a missing FROM."""

    EXPRESSIONS: ClassVar = ("rows",)
    made: tuple[Column, ...]
    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True)
class Filter(Logical):
    """The rows for which `predicate` is TRUE (neither FALSE nor NULL)."""

    EXPRESSIONS: ClassVar = ("predicate",)
    input: Logical
    predicate: Expr


@dataclass(frozen=True)
class Project(Logical):
    """New columns from expressions; a column that is passed on is the item (c, ColumnRef(c))."""

    EXPRESSIONS: ClassVar = ("items",)
    input: Logical
    items: tuple[Item, ...]

    @Once
    def columns(self) -> tuple[Column, ...]:
        return tuple(column for column, _ in self.items)


@dataclass(frozen=True)
class Join(Logical):
    """A join of any kind; no condition means every pair.

    semi, anti  left rows with, without a match; the left columns alone
    mark        every left row and a BOOLEAN column `mark`: whether there is a match
    single      left outer that raises `ExecutionError` when a left row has two matches (scalar subqueries); `span` is the place
                of the subquery
    null_aware  for anti and mark, with a condition of one equality `left = right`: the semantics of NOT IN.  An unknown
                comparison keeps a row out of an anti join and makes a mark NULL instead of FALSE.
    A right side that reads columns of the left one is a dependent join (LATERAL), which `decorrelate` removes.
    """

    EXPRESSIONS: ClassVar = ("condition",)
    left: Logical
    right: Logical
    kind: JoinKind
    condition: Expr | None = None
    null_aware: bool = False
    mark: Column | None = None
    span: Span | None = dataclasses.field(default=None, compare=False, repr=False)

    @Once
    def columns(self) -> tuple[Column, ...]:
        return self.kind.outputs(self.left.columns, self.right.columns, self.mark)


@dataclass(frozen=True)
class Aggregate(Logical):
    """GROUP BY; without keys one row, of an empty input too.

    `grouping_sets` lists, for GROUPING SETS, ROLLUP and CUBE, the positions of the keys in each set; a key outside of its
    set is NULL.  `grouping_id`, when asked for, is a BIGINT column: bit i (from the last key) set when key i is aggregated away.
    """

    EXPRESSIONS: ClassVar = ("keys", "aggregates")
    input: Logical
    keys: tuple[Item, ...]
    aggregates: tuple[tuple[Column, AggregateCall], ...]
    grouping_sets: tuple[tuple[int, ...], ...] | None = None
    grouping_id: Column | None = None

    @Once
    def columns(self) -> tuple[Column, ...]:
        made = (*(c for c, _ in self.keys), *(c for c, _ in self.aggregates))
        return made if self.grouping_id is None else (*made, self.grouping_id)


@dataclass(frozen=True)
class Distinct(Logical):
    """Rows that differ in all columns, or with `on` the first row (in input order) for each value of `on`."""

    EXPRESSIONS: ClassVar = ("on",)
    input: Logical
    on: tuple[Expr, ...] | None = None


@dataclass(frozen=True)
class Unnest(Logical):
    """For each row one row for each element of its lists, side by side; where a list is shorter than another, NULL.

    A row whose lists have no element is left out, unless `outer` keeps it.  `ordinality` counts the rows of each, from 1 on.
    """

    EXPRESSIONS: ClassVar = ("items",)
    input: Logical
    items: tuple[Item, ...]  # an element's column, and the list
    ordinality: Column | None = None
    outer: bool = False

    @Once
    def made(self) -> tuple[Column, ...]:
        made = tuple(column for column, _ in self.items)
        return made if self.ordinality is None else (*made, self.ordinality)

    @Once
    def columns(self) -> tuple[Column, ...]:
        return (*self.input.columns, *self.made)


@dataclass(frozen=True)
class Sort(Logical):
    """Rows in order; stable for equal keys."""

    EXPRESSIONS: ClassVar = ("keys",)
    input: Logical
    keys: tuple[SortKey, ...]


@dataclass(frozen=True)
class Limit(Logical):
    """At most `count` rows (None: all) after the first `offset`; with `per`, of each group of rows with equal values of it."""

    EXPRESSIONS: ClassVar = ("per",)
    input: Logical
    count: int | None
    offset: int = 0
    per: tuple[Expr, ...] = ()


@dataclass(frozen=True)
class SetOperation(Logical):
    """UNION, INTERSECT or EXCEPT, by position; both inputs have the types of `made`.  NULL equals NULL."""

    left: Logical
    right: Logical
    kind: OneOf["union", "intersect", "except"]
    all: bool
    made: tuple[Column, ...]


def nested_expressions(value: object) -> list[Expr]:
    """Return the expressions in a field of a node, which may be one, or tuples of them."""
    if isinstance(value, Expr):
        return [value]
    return (
        [e for part in value for e in nested_expressions(part)] if isinstance(value, tuple) else []
    )


def _rewritten(value: object, rewrite: Callable[[Expr], Expr]) -> object:
    if isinstance(value, SortKey):
        return value.with_children([rewrite(value.expr)])
    if isinstance(value, Expr):
        return rewrite(value)
    if isinstance(value, tuple):
        new = tuple(_rewritten(part, rewrite) for part in value)
        return value if all(map(operator.is_, new, value)) else new
    return value


def free_columns(plan: Logical) -> frozenset[Column]:
    """Return the columns that `plan` reads and does not make: what makes it correlated."""
    return plan.read_below - plan.made_below
