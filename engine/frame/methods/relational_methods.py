"""Relational algebra as methods: each makes the logical node that SQL would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Concatenate, Self

from ...errors import InvalidQuery, WrongArguments, check_name, shown
from ...fence import fenced
from ...plan.expr import Column, ColumnRef, conjunction, new_column
from ...plan.functions import AGGREGATE
from ...plan.logical import Distinct, Filter, Limit, Project, Sort
from ...plan.text.quoted_name import quoted_name
from ...plan.types import BIGINT, DataType
from ...plan.window.window_call import Over, WindowCall
from ..binding import flat, lift_windows
from ..expressions.expression import Arguments, Expression, R, as_column
from ..expressions.unbound import Operand, made_by, sort_key
from ..group_by import GroupBy
from ..joins import (
    JOIN_KINDS,
    AsofStrategy,
    How,
    On,
    asof_plans,
    join_plans,
    set_operation,
    union_by_name,
)
from .planned import Columns, Planned, plan_of

if TYPE_CHECKING:
    from ..frame import Frame


@fenced
class RelationalMethods(Planned):
    """Selection, projection, joins, groups, order, set operations."""

    def select(self, *expressions: Columns, **named: Operand) -> Self:
        """Return these columns alone; keywords name expressions."""
        if not flat(expressions) and not named:
            raise InvalidQuery("select() needs at least one column.")
        plan, items = self._items(expressions, named)
        if not items:
            raise InvalidQuery("select() needs at least one column, and none was chosen.")
        return self.with_plan(Project(plan, items))

    def with_columns(self, *expressions: Columns, **named: Operand) -> Self:
        """Return all columns and these; one with the name of a column takes its place."""
        plan, items = self._items(expressions, named)
        new = {c.name.lower(): (c, e) for c, e in items}
        kept = [new.pop(c.name.lower(), (c, ColumnRef(c))) for c in self._plan.columns]
        return self.with_plan(Project(plan, (*kept, *new.values())))

    def with_row_index(self, name: str = "index", offset: int = 0) -> Self:
        """Return the rows with their numbers in a first column, in the order in which they come."""
        check_name(name, "column")
        if not isinstance(offset, int) or isinstance(offset, bool):
            raise WrongArguments(f"The offset is a whole number, not {shown(offset)}.")
        number = Expression(lambda _: Over(WindowCall("row_number", (), BIGINT)), name)
        index = number if offset == 1 else (number + (offset - 1)).alias(name)
        return self.select(index, [self._reference(c) for c in self._plan.columns])

    def drop(self, *names: str | Sequence[str]) -> Self:
        """Return all columns but these."""
        dropped = {self._column(n) for n in flat(names)}
        items = tuple((c, ColumnRef(c)) for c in self._plan.columns if c not in dropped)
        if not items:
            raise InvalidQuery("drop() has to leave at least one column.")
        return self.with_plan(Project(self._plan, items))

    def rename(self, names: dict[str, str] | Callable[[str], str]) -> Self:
        """Return the same columns under other names, given as {old: new} or by a function of the name."""
        if callable(names):
            names = {name: made_by(names, "rename()", name) for name in self.columns}
        if not isinstance(names, dict):
            raise WrongArguments(f"rename() takes a dictionary {{old: new}}, not {shown(names)}.")
        for name in names.values():
            check_name(name, "column")
        new = {self._column(old): name for old, name in names.items()}
        items = tuple(
            (new_column(new[c], c.type) if c in new else c, ColumnRef(c))
            for c in self._plan.columns
        )
        return self.with_plan(Project(self._plan, items))

    def cast(self, types: dict[str, str]) -> Self:
        """Return the frame with columns cast to types, given as {column: type}."""
        if not isinstance(types, dict):
            raise WrongArguments(f"cast() takes a dictionary {{column: type}}, not {shown(types)}.")
        return self.with_columns(
            [
                as_column(name).cast(target).alias(self._column(name).name)
                for name, target in types.items()
            ]
        )

    def filter(self, *conditions: Columns) -> Self:
        """Return the rows for which all conditions are true (not NULL); window functions may stand in them, as in QUALIFY.

        One text that is no column's name is a condition in SQL, as DuckDB's relations take it: `filter("sold > 3")`.
        """
        text = conditions[0] if len(conditions) == 1 else None
        if isinstance(text, str) and text.lower() not in map(str.lower, self.columns):
            return self._asked("", f"WHERE ({text})")
        plan, bound = self._condition(conditions)
        return self._back(Filter(plan, conjunction(bound))) if bound else self

    def drop_nulls(self, *names: str | Sequence[str]) -> Self:
        """Return the rows without NULL in these columns, by default in any."""
        return self.filter([self._ref(n).is_not_null() for n in flat(names) or self.columns])

    def fill_null(self, value: Operand, *names: str) -> Self:
        """Return the frame with a value for NULL in these columns, by default in each that can hold it."""
        columns = [self._column(n) for n in names] or [
            c for c in self._plan.columns if _takes(c.type, value)
        ]
        return self.with_columns([self._ref(c.name).fill_null(value) for c in columns])

    def _ref(self, name: str) -> Expression:
        return self._reference(self._column(name))

    def _reference(self, column: Column) -> Expression:
        """Return a column as an expression, whatever others are called."""
        return Expression(lambda _: ColumnRef(column), column.name)

    def join(
        self,
        other: Frame,
        on: On = None,
        how: How = "inner",
        suffix: str = "_right",
        *,
        left_on: str | Sequence[str] | None = None,
        right_on: str | Sequence[str] | None = None,
        condition: On = None,
    ) -> Self:
        """Join with another frame of the same connection.

        `on` is a column name or a list of names that both have, which come out once, a list of pairs `[("a", "b")]` as are `left_on` and
        `right_on`, or a condition such as `a["k"] == b["k"]`.  Other columns of `other` whose names are taken get `suffix`.  `how` is inner, left,
        right, full (or outer), semi, anti or cross, which takes no `on`.  A text that is no name, as "a.k = b.k", is a condition in SQL of
        the frames' aliases (`set_alias`); then columns of both sides keep their names.  `condition` is DuckDB's name of `on`.
        """
        if condition is not None and on is not None:
            raise WrongArguments("join() takes on or condition, which are two names of one thing.")
        on = condition if on is None else on
        if isinstance(on, str) and "=" in on and on.lower() not in map(str.lower, self.columns):
            return self._joined_by_text(other, on, how)
        with self.in_zone():
            joined = join_plans(
                self._plan, plan_of(other), _pairs(on, left_on, right_on), how, suffix
            )
        return self._with(other, joined)

    def _joined_by_text(self, other: Frame, condition: str, how: How) -> Self:
        right = plan_of(other)
        if how not in JOIN_KINDS or how == "cross":
            raise InvalidQuery(f"A join by a condition in SQL is no {shown(how)} join.")
        mine, theirs = quoted_name(self.alias), quoted_name(other._alias or "other")
        text = f"FROM self AS {mine} {how} JOIN other AS {theirs} ON ({condition})"
        return self._connection.sql_over({"self": self._plan, "other": right}, text, None)  # type: ignore[return-value]

    def cross_join(self, other: Frame, suffix: str = "_right") -> Self:
        """Pair each row with each row of another frame."""
        return self.join(other, how="cross", suffix=suffix)

    def join_asof(
        self,
        other: Frame,
        on: str | None = None,
        *,
        left_on: str | None = None,
        right_on: str | None = None,
        by: str | Sequence[str] | None = None,
        how: How = "left",
        strategy: AsofStrategy = "backward",
        suffix: str = "_right",
    ) -> Self:
        """Join each row with the one of `other` that is nearest before it in a column (ASOF JOIN), among rows of equal `by`.

        `strategy` is "backward" (the last at or before it) or "forward"; `how` is left, or inner for rows that find one.
        """
        with self.in_zone():
            pair = (left_on or on, right_on or on)
            joined = asof_plans(self._plan, plan_of(other), pair, by, how, strategy, suffix)
        return self._with(other, joined)

    def group_by(self, *keys: Columns, **named: Operand) -> GroupBy:
        """Group rows of equal keys; follow with `.agg(...)`."""
        for name, value in named.items():
            if isinstance(value, bool | list | tuple):
                raise WrongArguments(
                    f"group_by() has no option {name}=: it takes the keys, group_by('city'), and {name}=expression would name one."
                )
        plan, items = self._items(keys, named)
        if plan is not self._plan:
            raise InvalidQuery(
                "A window function is no group key: name it by with_columns(...) first."
            )
        return GroupBy(self, items)  # type: ignore[arg-type]

    def agg(self, *aggregates: Expression | Sequence[Expression], **named: Operand) -> Frame:
        """Aggregate all rows into one: `agg(total=sum_("price"), n=count())`."""
        return GroupBy(self, ()).agg(*aggregates, **named)  # type: ignore[arg-type]

    def sort(self, *keys: Columns, descending: bool | Sequence[bool] = False) -> Self:
        """Sort by the keys, stably and with NULLs last; `col(x).desc()` and `.nulls_first()` set it for one key."""
        expressions = [as_column(k) for k in flat(keys)]
        flags = [descending] * len(expressions) if isinstance(descending, bool) else [*descending]
        if len(flags) != len(expressions):
            raise InvalidQuery(
                f"`descending` has {len(flags)} values for {len(expressions)} sort keys."
            )
        chosen = [e.desc() if d else e for e, d in zip(expressions, flags, strict=True)]
        bound = [(e, value) for e in chosen for _, value in self._bind_each(e)]
        plan, values = lift_windows(self._plan, [value for _, value in bound])
        order = tuple(sort_key(e, v) for (e, _), v in zip(bound, values, strict=True))
        return self._back(Sort(plan, order))

    def top_k(self, k: int, by: Columns) -> Self:
        """Return the rows with the largest values."""
        return self.sort(by, descending=[True] * len(flat([by]))).limit(k)

    def bottom_k(self, k: int, by: Columns) -> Self:
        """Return the rows with the smallest values."""
        return self.sort(by).limit(k)

    def limit(self, count: int, offset: int = 0) -> Self:
        """Return at most `count` rows after the first `offset`."""
        if not all(isinstance(n, int) and 0 <= n < 2**63 for n in (count, offset)):
            raise InvalidQuery("LIMIT and OFFSET are whole numbers that are not negative.")
        return self.with_plan(Limit(self._plan, count, offset))

    def head(self, count: int = 5) -> Self:
        """Return at most `count` rows: the first of a sorted frame, any of another one."""
        return self.limit(count)

    def tail(self, count: int = 5) -> Self:
        """Return at most `count` rows: the last ones, in the order in which the rows come."""
        if not isinstance(count, int) or not 0 <= count < 2**63:
            raise InvalidQuery("tail() takes a number of rows that is not negative.")
        number = Expression(lambda _: Over(WindowCall("row_number", (), BIGINT)), "row_number")
        rows = Expression(
            lambda _: Over(WindowCall("count_star", (), AGGREGATE["count_star"].resolve(())[1])),  # type: ignore[index]
            "count",
        )
        return self.filter(number > rows - count)

    def distinct(self, *on: Columns) -> Self:
        """Return each different row once, or for each value of `on` its first row (DISTINCT ON); NULL equals NULL."""
        bound = [value for key in flat(on) for _, value in self._bind_each(as_column(key))]
        plan, keys = lift_windows(self._plan, bound)
        return self._back(Distinct(plan, tuple(keys) or None))

    def union(self, other: Frame, distinct: bool = False) -> Self:
        """Return the rows of both, by position; with `distinct` each different row once."""
        return self._with(other, set_operation(self._plan, plan_of(other), "union", not distinct))

    def union_by_name(self, other: Frame, distinct: bool = False) -> Self:
        """Return the rows of both, by names; a column that one side lacks is NULL there."""
        return self._with(other, union_by_name(self._plan, plan_of(other), not distinct))

    def intersect(self, other: Frame) -> Self:
        """Return the different rows that both have."""
        return self._with(other, set_operation(self._plan, plan_of(other), "intersect", False))

    def except_(self, other: Frame) -> Self:
        """Return the different rows that `other` has not."""
        return self._with(other, set_operation(self._plan, plan_of(other), "except", False))

    def pipe(
        self,
        function: Callable[Concatenate[Self, Arguments], R],
        *args: Arguments.args,
        **named: Arguments.kwargs,
    ) -> R:
        """Return what a function makes of the frame and other arguments: `frame.pipe(clean, limit=3)`."""
        return function(self, *args, **named)


def _pairs(on: On, left_on: object, right_on: object) -> On:
    """Return what a join is on, of `left_on` and `right_on` as pairs of names."""
    if left_on is None and right_on is None:
        return on
    if on is not None or left_on is None or right_on is None:
        raise InvalidQuery("A join takes `on`, or both `left_on` and `right_on`.")
    left, right = ([n] if isinstance(n, str) else n for n in (left_on, right_on))
    if not isinstance(left, list | tuple) or not isinstance(right, list | tuple):
        raise InvalidQuery("`left_on` and `right_on` are names of columns, or lists of them.")
    if len(left) != len(right):
        raise InvalidQuery(f"`left_on` has {len(left)} columns and `right_on` {len(right)}.")
    return list(zip(left, right, strict=True))


def _takes(data_type: DataType, value: object) -> bool:
    """Whether columns of a type take a value for NULL: text for text, a number for numbers, others for their own."""
    if isinstance(value, str):
        return str(data_type) == "VARCHAR"
    if isinstance(value, bool):
        return str(data_type) == "BOOLEAN"
    return bool(data_type.is_numeric)
