"""Frame: a lazy table.  Each method builds one logical node, the same that SQL would."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import (
    ExecutionError,
    FuselineError,
    InvalidQuery,
    WrongArguments,
    check_name,
    in_text,
    shown,
)
from ..fence import fenced
from ..plan import infer
from ..plan.expr import Column, ColumnRef, Expr, conjunction, new_column
from ..plan.logical import Distinct, Filter, Item, Limit, Logical, Project, Sort
from ..plan.types import BOOLEAN, DataType
from .api_hints import missing
from .batches import MOST_ROWS, Batches, batch_rows
from .binding import bind, find_column, flat, of_connection, output_column
from .exported import exported
from .file_methods import FileMethods
from .functions import Expression, Operand, as_column, count, sort_key
from .group_by import GroupBy
from .joins import How, join_plans, set_operation
from .notebook_methods import NotebookMethods

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from ..connection import Connection, Result
    from ..observe.explain import Stage
    from ..observe.profile import Profile
    from ..reading import Reading
    from .python_values import Row

SHOWN_ROWS = 20
Columns = str | Expression | Sequence[str | Expression]  # what a method takes any number of


@fenced
class Frame(FileMethods, NotebookMethods):
    """A query that has not run: of `connection.sql`, of a table, or of the methods below.

    Column names are case-insensitive.  Where a method takes expressions, a string names a column, and a list of them is
    as good as several.  Results are computed anew by each call that returns data; `profile` describes the latest of them.

    >>> import fuseline
    >>> sales = fuseline.connect(device="cpu").register("sales", {"city": ["Oslo", "Rome", "Oslo"], "sold": [3, 5, 4]})
    >>> sales.group_by("city").agg(total=fuseline.sum_("sold")).sort("city").fetchall()
    [('Oslo', 7), ('Rome', 5)]
    """

    def __init__(
        self, connection: Connection, plan: Logical, key: object = None, text: str | None = None
    ) -> None:
        self._connection = connection
        self._plan = plan
        self._key = key
        self._text = text  # the SQL that all places of the plan's expressions are in
        self._profile: Callable[[], Profile] | None = None

    # What it is

    @property
    def columns(self) -> list[str]:
        return [c.name for c in self._plan.columns]

    @property
    def _types(self) -> list[DataType]:
        return [c.type for c in self._plan.columns]

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
        return self._profile()

    def __getitem__(self, name: str) -> Expression:
        """Return a column as an expression that stays this frame's in a join with a table that has the name too."""
        if not isinstance(name, str):
            raise InvalidQuery(
                "frame[...] takes one column name: use select(...) for columns, limit(...) for rows."
            )
        column = self.resolve(name)
        return Expression(lambda _: column, name)

    def __getattr__(self, name: str) -> Any:
        """Say what a method of other libraries is called here."""
        raise missing(Frame, name, () if name.startswith("_") else self.columns)

    # Relational algebra

    def select(self, *expressions: Columns, **named: Operand) -> Frame:
        """Return these columns alone; keywords name expressions."""
        if not flat(expressions) and not named:
            raise InvalidQuery("select() needs at least one column.")
        return self.over(Project(self._plan, self._items(expressions, named)))

    def with_columns(self, *expressions: Columns, **named: Operand) -> Frame:
        """Return all columns and these; one with the name of a column takes its place."""
        new = {c.name.lower(): (c, e) for c, e in self._items(expressions, named)}
        kept = [new.pop(c.name.lower(), (c, ColumnRef(c))) for c in self._plan.columns]
        return self.over(Project(self._plan, (*kept, *new.values())))

    def drop(self, *names: str | Sequence[str]) -> Frame:
        """Return all columns but these."""
        dropped = {self._column(n) for n in flat(names)}
        items = tuple((c, ColumnRef(c)) for c in self._plan.columns if c not in dropped)
        if not items:
            raise InvalidQuery("drop() has to leave at least one column.")
        return self.over(Project(self._plan, items))

    def rename(self, names: dict[str, str]) -> Frame:
        """Return the same columns under other names, given as {old: new}."""
        if not isinstance(names, dict):
            raise WrongArguments(f"rename() takes a dictionary {{old: new}}, not {shown(names)}.")
        for name in names.values():
            check_name(name, "column")
        new = {self._column(old): name for old, name in names.items()}
        items = tuple(
            (new_column(new[c], c.type) if c in new else c, ColumnRef(c))
            for c in self._plan.columns
        )
        return self.over(Project(self._plan, items))

    def filter(self, *conditions: Columns) -> Frame:
        """Return the rows for which all conditions are true (not NULL)."""
        bound = [infer.coerce(self._bind(as_column(c)), BOOLEAN) for c in flat(conditions)]
        return self.over(Filter(self._plan, conjunction(bound))) if bound else self

    def drop_nulls(self, *names: str | Sequence[str]) -> Frame:
        """Return the rows without NULL in these columns, by default in any."""
        return self.filter([self[n].is_not_null() for n in flat(names) or self.columns])

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
        with self.in_zone():
            joined = join_plans(self._plan, _plan_of(other), on, how, suffix)
        return self._with(other, joined)

    def group_by(self, *keys: Columns, **named: Operand) -> GroupBy:
        """Group rows of equal keys; follow with `.agg(...)`."""
        return GroupBy(self, self._items(keys, named))

    def agg(self, *aggregates: Expression | Sequence[Expression], **named: Operand) -> Frame:
        """Aggregate all rows into one: `agg(total=sum_("price"), n=count())`."""
        return GroupBy(self, ()).agg(*aggregates, **named)

    def sort(self, *keys: Columns, descending: bool | Sequence[bool] = False) -> Frame:
        """Sort by the keys, stably and with NULLs last; `col(x).desc()` and `.nulls_first()` set it for one key."""
        expressions = [as_column(k) for k in flat(keys)]
        flags = [descending] * len(expressions) if isinstance(descending, bool) else [*descending]
        if len(flags) != len(expressions):
            raise InvalidQuery(
                f"`descending` has {len(flags)} values for {len(expressions)} sort keys."
            )
        chosen = [e.desc() if d else e for e, d in zip(expressions, flags, strict=True)]
        return self.over(Sort(self._plan, tuple(sort_key(e, self._bind(e)) for e in chosen)))

    def limit(self, count: int, offset: int = 0) -> Frame:
        """Return at most `count` rows after the first `offset`."""
        if not all(isinstance(n, int) and 0 <= n < 2**63 for n in (count, offset)):
            raise InvalidQuery("LIMIT and OFFSET are whole numbers that are not negative.")
        return self.over(Limit(self._plan, count, offset))

    def head(self, count: int = 5) -> Frame:
        """Return at most `count` rows: the first of a sorted frame, any of another one."""
        return self.limit(count)

    def distinct(self, *on: Columns) -> Frame:
        """Return each different row once, or for each value of `on` its first row (DISTINCT ON); NULL equals NULL."""
        keys = tuple(self._bind(as_column(k)) for k in flat(on))
        return self.over(Distinct(self._plan, keys or None))

    def union(self, other: Frame, distinct: bool = False) -> Frame:
        """Return the rows of both, by position; with `distinct` each different row once."""
        return self._with(other, set_operation(self._plan, _plan_of(other), "union", not distinct))

    def intersect(self, other: Frame) -> Frame:
        """Return the different rows that both have."""
        return self._with(other, set_operation(self._plan, _plan_of(other), "intersect", False))

    def except_(self, other: Frame) -> Frame:
        """Return the different rows that `other` has not."""
        return self._with(other, set_operation(self._plan, _plan_of(other), "except", False))

    # Results

    def to_arrow(self) -> pa.Table:
        """Run and return a pyarrow.Table with the types of `schema`."""
        with self._connection.stoppable():
            return exported(self._run().to_arrow())

    def to_batches(self, rows: int = MOST_ROWS) -> Batches:
        """Run and return an iterator over `pyarrow.RecordBatch`es of at most so many rows.

        For answers larger than memory: what does not fit into `memory_limit` is made while it is read.  The Arrow schema is its `schema`.
        """
        most = batch_rows(rows)
        reading = self._stream()
        return Batches(reading, reading.schema, most, reading.close)

    def to_pandas(self) -> pd.DataFrame:
        """Run and return a pandas frame; dates are datetime64, which has years that Python's `date` has not."""
        from .python_values import to_pandas

        with self._connection.stoppable():
            return to_pandas(self._run().to_arrow())

    def to_polars(self) -> pl.DataFrame:
        """Run and return a polars.DataFrame; raises `TypeMismatch` for columns that Polars cannot hold."""
        from .python_values import to_polars

        return to_polars(self.to_arrow())

    def to_cudf(self) -> Any:
        """Run and return a cudf.DataFrame, without a copy when the result is on the GPU.

        Raises `DeviceError` where cudf is not installed.
        """
        from ..interop.device_frames import to_cudf

        return to_cudf(self._run())

    def fetchall(self) -> list[Row]:
        """Run and return the rows as tuples of Python values."""
        from .cursor import Rows

        with self._connection.stoppable():
            return Rows([self._run().to_arrow()], self._types).take(None)

    def count(self) -> int:
        """Run and return how many rows there are; columns that the answer does not need stay unread."""
        frame = self.agg(count())
        ((rows,),) = frame
        self._profile = frame._profile
        return int(rows)

    def cache(self) -> Frame:
        """Load the columns of this table ahead, in the encoded form that kernels read, and return the frame.

        They lie on the connection's device, within `column_cache_limit`; `SELECT * FROM fuseline_columns()` shows them.
        Raises `InvalidQuery` for a frame that is more than a table or some of its columns.
        """
        self._connection.load(self._plan)
        return self

    def persist(self) -> Frame:
        """Run and return a frame over the rows: a cluster's workers keep what each has made, until the last frame over it is gone."""
        return self._connection.persisted(self._plan, self._key)

    def to_dask(self) -> Any:
        """Run and return a Dask dataframe, with a partition on each worker that has made rows; raises `ClusterError` without a cluster."""
        return self._connection.dask_frame(self._plan, self._key)

    def show(self, rows: int | None = SHOWN_ROWS) -> None:
        """Print the first rows as a table; all with `rows=None`."""
        from .display import print_table

        print_table(self._preview(rows), self._types, rows)

    def explain(self, stage: Stage = "physical") -> str:
        """Return the plan at a stage: logical, rules, optimized, physical, analyze or all."""
        from ..observe.explain import explain

        with in_text(self._text):
            return explain(self._connection, self._plan, stage)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        """Raise: the truth of a frame could mean that it is there or that it has rows, which takes a run."""
        raise InvalidQuery(
            "A frame has no truth value: ask `frame is None` or `frame.count() > 0`."
        )

    def __iter__(self) -> Iterator[Row]:
        """Run and give the rows as tuples of Python values, a part of them in memory at a time."""
        from .cursor import Rows

        return Rows(self._stream(), self._types)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Run and export the result through the Arrow C stream interface."""
        return self.to_batches().__arrow_c_stream__(requested_schema)

    def __array__(self, *_: object, **__: object) -> Any:
        """Raise: `pd.DataFrame(frame)` asks for an array, which would lose the names of the columns."""
        raise InvalidQuery(
            "A frame is no array, which would lose its columns' names: use to_pandas(), to_polars(), to_arrow() or fetchall()."
        )

    def __repr__(self) -> str:
        columns = ", ".join(f"{c.name} {c.type}" for c in self._plan.columns)
        return f"<Frame: {columns}; show() or to_arrow() runs it>"

    # Inside

    def _run(self) -> Result:
        try:
            result = self._connection.run(self._plan, self._key)
        except FuselineError as error:
            error.with_text(self._text)
            raise
        profile = result.profile
        self._profile = lambda: profile
        return result

    def _stream(self) -> Reading:
        try:
            reading = self._connection.stream(self._plan, self._key)
        except FuselineError as error:
            error.with_text(self._text)
            raise
        self._profile = reading.profile
        return reading

    def _preview(self, rows: int | None) -> pa.Table:
        """One row more than shown, so that the display can say that there are more."""
        return (self if rows is None else self.limit(rows + 1))._run().to_arrow()

    def runs_on(self, runner: object) -> bool:
        return self._connection.runs_on(runner)

    def over(self, plan: Logical) -> Frame:
        return Frame(self._connection, plan, text=self._text)

    def _with(self, other: Frame, plan: Logical) -> Frame:
        """Return a frame of both; errors show no place where that could be in either of two texts."""
        text = self._text if self._text == other._text else None
        return Frame(self._connection, plan, text=text)

    def _column(self, name: str) -> Column:
        return find_column(self._plan.columns, name)

    def resolve(self, name: str) -> Expr:
        return ColumnRef(self._column(name))

    def _items(self, expressions: Iterable[Columns], named: dict[str, Operand]) -> tuple[Item, ...]:
        chosen = [as_column(e) for e in flat(list(expressions))]
        chosen.extend(as_column(e).alias(name) for name, e in named.items())
        items: list[Item] = []
        for expression in chosen:
            bound = self._bind(expression)
            items.append((output_column(expression.name, bound, items), bound))
        return tuple(items)

    def _bind(self, expression: Expression) -> Expr:
        with self.in_zone():
            return bind(expression, self._plan.columns, self.resolve)

    def in_zone(self) -> AbstractContextManager[None]:
        """Have what is bound inside use the connection's `timezone` and Python functions."""
        return of_connection(self._connection)


def _plan_of(other: object) -> Logical:
    if not isinstance(other, Frame):
        raise InvalidQuery(
            f"The other side has to be a Frame, not a {type(other).__name__}: connection.register(name, table) makes one."
        )
    return other.plan
