"""Frame: a lazy table.  Each method builds one logical node, the same that SQL would."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from typing import Literal as OneOf

from .errors import AmbiguousName, ExecutionError, InvalidQuery
from .functions import Expression, as_column, sort_key
from .group_by import GroupBy
from .plan import infer
from .plan.expr import (
    AggregateCall,
    Column,
    ColumnRef,
    Expr,
    conjunction,
    new_column,
    substitute,
)
from .plan.logical import (
    Distinct,
    Filter,
    Item,
    Join,
    JoinKind,
    Limit,
    Logical,
    Project,
    SetOperation,
    Sort,
    fresh,
)
from .plan.node import walk
from .plan.types import BOOLEAN, DataType
from .projection import cast_columns, find_column, output_column

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from .connection import Connection, Result
    from .explain import Stage
    from .runtime.profile import Profile

How = OneOf["inner", "left", "right", "full", "semi", "anti", "cross"]
JOIN_KINDS: dict[How, JoinKind] = {
    "inner": "inner",
    "left": "left",
    "right": "right",
    "full": "full",
    "semi": "semi",
    "anti": "anti",
    "cross": "inner",
}
SHOWN_ROWS = 20


class Frame:
    """A query that has not run: of `connection.sql`, of a table, or of the methods below.

    Column names are case-insensitive.  Where a method takes expressions, a string names a column.  Results are
    computed anew by each call that returns data; `profile` describes the latest of them.
    """

    def __init__(self, connection: Connection, plan: Logical, key: object = None) -> None:
        self._connection = connection
        self._plan = plan
        self._key = key
        self._profile: Profile | None = None

    # What it is

    @property
    def columns(self) -> list[str]:
        return [c.name for c in self._plan.columns]

    @property
    def schema(self) -> dict[str, DataType]:
        """Column name -> SQL type, in order."""
        return {c.name: c.type for c in self._plan.columns}

    @property
    def plan(self) -> Logical:
        return self._plan

    @property
    def profile(self) -> Profile:
        """What the latest run did: per node device, reason, time, rows and bytes.

        Raises `ExecutionError` before the first run.
        """
        if self._profile is None:
            raise ExecutionError("This frame has not run yet: call to_arrow() or show() first.")
        return self._profile

    def __getitem__(self, name: str) -> Expression:
        """Return a column as an expression that stays this frame's in a join with a table that has the name too."""
        column = self.resolve(name)
        return Expression(lambda _: column, name)

    # Relational algebra

    def select(self, *expressions: str | Expression, **named: Any) -> Frame:
        """Return these columns alone; keywords name expressions."""
        return self.over(Project(self._plan, self._items(expressions, named)))

    def with_columns(self, *expressions: Expression, **named: Any) -> Frame:
        """Return all columns and these; one with the name of a column takes its place."""
        new = {c.name.lower(): (c, e) for c, e in self._items(expressions, named)}
        kept = [new.pop(c.name.lower(), (c, ColumnRef(c))) for c in self._plan.columns]
        return self.over(Project(self._plan, (*kept, *new.values())))

    def drop(self, *names: str) -> Frame:
        """Return all columns but these."""
        dropped = {self._column(n) for n in names}
        items = tuple((c, ColumnRef(c)) for c in self._plan.columns if c not in dropped)
        return self.over(Project(self._plan, items))

    def rename(self, names: dict[str, str]) -> Frame:
        """Return the same columns under other names, given as {old: new}."""
        new = {self._column(old): name for old, name in names.items()}
        items = tuple(
            (new_column(new[c], c.type) if c in new else c, ColumnRef(c))
            for c in self._plan.columns
        )
        return self.over(Project(self._plan, items))

    def filter(self, *conditions: Expression) -> Frame:
        """Return the rows for which all conditions are true (not NULL)."""
        bound = [infer.coerce(c.bind(self.resolve), BOOLEAN) for c in conditions]
        return self.over(Filter(self._plan, conjunction(bound)))

    def join(
        self,
        other: Frame,
        on: str | Sequence[str] | Expression | None = None,
        how: How = "inner",
        suffix: str = "_right",
    ) -> Frame:
        """Join with another frame of the same connection.

        `on` is a column name or a list of names that both have, which come out once, or a condition such as
        `a["k"] == b["k"]`.  Other columns of `other` whose names are taken get `suffix`.  `cross` takes no `on`.
        """
        if how not in JOIN_KINDS:
            raise InvalidQuery(
                f'There is no join "{how}": expected one of {", ".join(JOIN_KINDS)}.'
            )
        if (on is None) != (how == "cross"):
            raise InvalidQuery(
                "A join takes `on`: a column name, a list of them or a condition; a cross join none."
            )
        right, renamed = other.plan, dict[Column, Column]()
        if {c.id for n in walk(self._plan) for c in n.columns} & {
            c.id for n in walk(right) for c in n.columns
        }:
            right, renamed = fresh(right)
        if isinstance(on, Expression):
            condition = self._join_condition(on, right, renamed, set(self._plan.columns))
            return self._joined(right, JOIN_KINDS[how], condition, {}, suffix)
        names = [on] if isinstance(on, str) else list(on or ())
        pairs = {self._column(n): find_column(right.columns, n) for n in names}
        parts = [infer.call("eq", [ColumnRef(a), ColumnRef(b)]) for a, b in pairs.items()]
        using = conjunction(parts) if parts else None
        return self._joined(right, JOIN_KINDS[how], using, pairs, suffix)

    def group_by(self, *keys: str | Expression, **named: Any) -> GroupBy:
        """Group rows of equal keys; follow with `.agg(...)`."""
        return GroupBy(self, self._items(keys, named))

    def agg(self, *aggregates: Expression, **named: Any) -> Frame:
        """Aggregate all rows into one."""
        return GroupBy(self, ()).agg(*aggregates, **named)

    def sort(self, *keys: str | Expression, descending: bool | Sequence[bool] = False) -> Frame:
        """Sort by the keys, stably and with NULLs last; `col(x).desc()` and `.nulls_first()` set it for one key."""
        expressions = [as_column(k) for k in keys]
        flags = [descending] * len(keys) if isinstance(descending, bool) else list(descending)
        if len(flags) != len(keys):
            raise InvalidQuery(f"`descending` has {len(flags)} values for {len(keys)} sort keys.")
        chosen = [e.desc() if d else e for e, d in zip(expressions, flags, strict=True)]
        return self.over(Sort(self._plan, tuple(sort_key(e, self.resolve) for e in chosen)))

    def limit(self, count: int, offset: int = 0) -> Frame:
        """Return at most `count` rows after the first `offset`."""
        if count < 0 or offset < 0:
            raise InvalidQuery("LIMIT and OFFSET are not negative.")
        return self.over(Limit(self._plan, count, offset))

    def distinct(self) -> Frame:
        """Return each different row once; NULL equals NULL."""
        return self.over(Distinct(self._plan))

    def union(self, other: Frame, distinct: bool = False) -> Frame:
        """Return the rows of both, by position; with `distinct` each different row once."""
        return self._set_operation(other, "union", not distinct)

    def intersect(self, other: Frame) -> Frame:
        """Return the different rows that both have."""
        return self._set_operation(other, "intersect", False)

    def except_(self, other: Frame) -> Frame:
        """Return the different rows that `other` has not."""
        return self._set_operation(other, "except", False)

    # Results

    def to_arrow(self) -> pa.Table:
        """Run and return a pyarrow.Table with the types of `schema`."""
        return self._run().to_arrow()

    def to_pandas(self) -> pd.DataFrame:
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        import polars as pl

        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def to_cudf(self) -> Any:
        """Run and return a cudf.DataFrame, without a copy when the result is on the GPU.

        Raises `DeviceError` where cudf is not installed.
        """
        from .interop.device import to_cudf

        return to_cudf(self._run())

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Run and return the rows as tuples of Python values."""
        table = self.to_arrow()
        return list(zip(*(c.to_pylist() for c in table.columns), strict=True))

    def cache(self) -> Frame:
        """Load the columns of this table ahead, in the encoded form that kernels read, and return the frame.

        They lie on the connection's device, within `column_cache_limit`; `SELECT * FROM fuseline_columns()` shows them.
        Raises `InvalidQuery` for a frame that is more than a table or some of its columns.
        """
        self._connection.load(self._plan)
        return self

    def show(self, rows: int = SHOWN_ROWS) -> None:
        """Print the first rows as a table."""
        from .display import print_table

        print_table(self._preview(rows), [c.type for c in self._plan.columns], rows)

    def explain(self, stage: Stage = "physical") -> str:
        """Return the plan at a stage: logical, rules, optimized, physical, analyze or all."""
        from .explain import explain

        return explain(self._connection, self._plan, stage)

    def __len__(self) -> int:
        """Run and return the number of rows."""
        return self._run().num_rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Run and export the result through the Arrow C stream interface."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        from .display import html_table

        return html_table(
            self._preview(SHOWN_ROWS), [c.type for c in self._plan.columns], SHOWN_ROWS
        )

    def __repr__(self) -> str:
        columns = ", ".join(f"{c.name} {c.type}" for c in self._plan.columns)
        return f"<Frame: {columns}; show() or to_arrow() runs it>"

    # Inside

    def _run(self) -> Result:
        result = self._connection.run(self._plan, self._key)
        self._profile = result.profile
        return result

    def _preview(self, rows: int) -> pa.Table:
        """One row more than shown, so that the display can say that there are more."""
        return self.limit(rows + 1).to_arrow()

    def over(self, plan: Logical) -> Frame:
        return Frame(self._connection, plan)

    def _column(self, name: str) -> Column:
        return find_column(self._plan.columns, name)

    def resolve(self, name: str) -> Expr:
        return ColumnRef(self._column(name))

    def _items(
        self, expressions: Iterable[str | Expression], named: dict[str, Any]
    ) -> tuple[Item, ...]:
        chosen = [as_column(e) for e in expressions]
        chosen.extend(as_column(e).alias(name) for name, e in named.items())
        items: list[Item] = []
        for expression in chosen:
            bound = expression.bind(self.resolve)
            if any(isinstance(e, AggregateCall) for e in walk(bound)):
                raise InvalidQuery(
                    f"{expression.name} is an aggregate: it belongs in agg(...), after group_by(...) or without it."
                )
            items.append((output_column(expression.name, bound, items), bound))
        return tuple(items)

    def _join_condition(
        self, on: Expression, right: Logical, renamed: dict[Column, Column], mine: set[Column]
    ) -> Expr:
        def resolve(name: str) -> Expr:
            found = [
                c for c in (*self._plan.columns, *right.columns) if c.name.lower() == name.lower()
            ]
            if len(found) > 1:
                raise AmbiguousName(
                    f'Both sides of the join have a column "{name}": write frame["{name}"].'
                )
            return ColumnRef(find_column((*self._plan.columns, *right.columns), name))

        bound = substitute(
            on.bind(resolve),
            lambda c: ColumnRef(renamed[c]) if c in renamed and c not in mine else None,
        )
        return infer.coerce(bound, BOOLEAN)

    def _joined(
        self,
        right: Logical,
        kind: JoinKind,
        condition: Expr | None,
        pairs: dict[Column, Column],
        suffix: str,
    ) -> Frame:
        join = Join(self._plan, right, kind, condition)
        if kind in ("semi", "anti"):
            return self.over(join)
        items: list[Item] = []
        for c in self._plan.columns:
            if c in pairs and kind in ("right", "full"):
                merged = infer.call("coalesce", [ColumnRef(c), ColumnRef(pairs[c])])
                items.append((new_column(c.name, merged.type), merged))
            else:
                items.append((c, ColumnRef(c)))
        taken = {c.name.lower() for c, _ in items}
        for c in right.columns:
            if c in pairs.values():
                continue
            renamed = new_column(c.name + suffix, c.type) if c.name.lower() in taken else c
            items.append((renamed, ColumnRef(c)))
        return self.over(Project(join, tuple(items)))

    def _set_operation(
        self, other: Frame, kind: OneOf["union", "intersect", "except"], all_: bool
    ) -> Frame:
        left, (right, _) = self._plan, fresh(other.plan)
        if len(left.columns) != len(right.columns):
            raise InvalidQuery(
                f"{kind} needs as many columns on both sides: {len(left.columns)} and {len(right.columns)} given."
            )
        types = [
            infer.common_type([a.type, b.type])
            for a, b in zip(left.columns, right.columns, strict=True)
        ]
        made = tuple(new_column(c.name, t) for c, t in zip(left.columns, types, strict=True))
        sides = (cast_columns(left, types), cast_columns(right, types))
        return self.over(SetOperation(*sides, kind, all_, made))
