"""DuckDB's names of what a frame does, for code written for its relations: their expressions are texts of SQL.

Frames and the connection's tables: SQL over a frame, rows into tables, frames as tables and views.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Self, overload

from ...errors import WrongArguments, check_name, shown
from ...fence import fenced
from ...plan.changes.catalog_objects import TEMP, ObjectName, SchemaPlace, View
from ...plan.functions import AGGREGATE, WINDOW, aggregate_name, constants, window_name
from ...plan.text.quoted_name import quoted_name
from ...plan.types import DataType
from ..batches import MOST_ROWS, batch_rows
from ..binding import flat, is_aggregate
from ..cursor import Description, described
from ..expressions.expression import Expression, as_column, of_type
from ..expressions.unbound import made_by
from .planned import Planned, plan_of
from .result_methods import ResultMethods

# How DuckDB's relations call the arguments of functions behind the first, and then the rest
_ARGUMENTS = frozenset(["default_value", "num_buckets", "offset", "q", "sep", "value_column"])
_CALLED = ("groups", "window_spec", "projected_columns")
_OF_PYTHON = {int: "BIGINT", float: "DOUBLE", str: "VARCHAR", bool: "BOOLEAN"}

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import torch

    from ...plan_cache import Parameters
    from ..frame import Frame
    from ..python_values import Row


@fenced
class TableMethods(Planned):
    """SQL over the frame, and its rows as tables of the connection."""

    def sql(self, query: str, params: Parameters = None, name: str = "self") -> Frame:
        """Return a query in which the frame is a table: `frame.sql("SELECT city, sum(sold) FROM self GROUP BY ALL")`.

        Another `name` may stand for it; it goes before a table or view of that name.
        """
        check_name(name, "table")
        if not isinstance(query, str):
            raise WrongArguments(f"sql() takes a text, not {shown(query)}.")
        return self._connection.sql_over({name.lower(): self._plan}, query, params)

    def insert_into(self, table: str, by_name: bool = False) -> None:
        """Run and append the rows to a table of the connection, by position or by the columns' names: INSERT INTO."""
        check_name(table, "table")
        how = "BY NAME " if by_name else ""
        self.sql(f"INSERT INTO {quoted_name(table)} {how}FROM self")

    def create_table(self, name: str, replace: bool = False, if_not_exists: bool = False) -> Frame:
        """Run, keep the rows as a table of the connection, and return that: CREATE TABLE AS."""
        check_name(name, "table")
        start = "CREATE OR REPLACE TABLE" if replace else "CREATE TABLE"
        middle = " IF NOT EXISTS" if if_not_exists else ""
        self.sql(f"{start}{middle} {quoted_name(name)} AS FROM self")
        return self._connection.table(name)

    def create_view(self, name: str, replace: bool = True) -> Frame:
        """Make the query, which does not run now, usable in SQL under a name, as long as the connection is open.

        The view reads the tables that the frame reads: one that is created anew later is another one.
        """
        check_name(name, "view")
        catalog = self._connection.catalog
        in_folder = catalog.databases[catalog.current.database].folder is not None
        # A folder keeps texts alone
        place = ObjectName(name, SchemaPlace(TEMP)) if in_folder else name
        catalog.create(View(place, "", (), self._plan), "replace" if replace else "fail")
        return self._connection.table(name)


@fenced
class RelationNames(TableMethods, ResultMethods):
    """`project`, `aggregate`, `order`, `df` and their kin."""

    def project(self, *columns: str | Expression) -> Self:
        """Return the columns of a SELECT list: `project("city, sold * 2 AS twice")`; expressions are those of `select`."""
        if any(isinstance(c, Expression) for c in columns):
            return self.select(*columns)
        return self._asked(f"SELECT {', '.join(_text(c, 'project') for c in columns)}")

    def aggregate(
        self,
        aggregates: str | Expression | Sequence[str | Expression],
        groups: str | Sequence[str | Expression] = "",
    ) -> Frame:
        """Return aggregates by GROUP BY, without groups by ALL: `aggregate("city, sum(sold)", "city")`.

        In a list of expressions those that are no aggregates are the groups, unless these are given.
        """
        if isinstance(aggregates, str):
            by = _text(groups, "aggregate") or "ALL"
            return self._asked(f"SELECT {_text(aggregates, 'aggregate')}", f"GROUP BY {by}")  # type: ignore[return-value]
        asked = flat([aggregates])
        keys = flat([groups])
        if isinstance(groups, str):
            keys = [k.strip() for k in groups.split(",") if k]
        with self.in_zone():
            folded = [
                isinstance(e, Expression) and is_aggregate(e, self._plan.columns, self.resolve)
                for e in asked
            ]
        mine = [as_column(e) for e, is_folded in zip(asked, folded, strict=True) if not is_folded]
        made = self.group_by(*(keys or mine)).agg(
            *(e for e, is_folded in zip(asked, folded, strict=True) if is_folded)
        )
        return made.select(*(as_column(e).name for e in asked))

    def _function_method(self, function: str) -> Callable[..., Frame]:
        """Return a function of columns as DuckDB's relations have it: its own arguments, and how it is called.

        `sum("sold", "city")`, `quantile("sold", 0.9)`, `sum("sold", window_spec="over ()")`, `lag("sold", "over (order by day)", 2)`.
        """
        name = aggregate_name(function)
        row = WINDOW[str(window_name(function))] if name is None else AGGREGATE[name]
        taken = row.signature.partition("(")[2].rstrip(")]").split(",")
        of_column = name is not None or taken[0].startswith("any")
        own = [f"argument{i}" for i, parameter in enumerate(taken) if parameter]
        if of_column:
            own[0] = "column"
        fixed = {own[i] for i in constants(row.signature)}
        places = [*own, *_CALLED]
        if name is None:  # columns stand before the window, constants behind it
            places = [*own[:of_column], "window_spec", *own[of_column:], "projected_columns"]

        def method(*given: object, **named: object) -> Frame:
            found = dict(zip(places, given, strict=False))
            for word, value in named.items():
                free = [place for place in own if place not in found]
                found[free[0] if free and word in _ARGUMENTS else word] = value
            if len(given) > len(places) or not found.keys() <= {*places}:
                raise WrongArguments(f"{function}() takes {', '.join(places)}.")
            if of_column and "column" not in found:
                raise WrongArguments(
                    f"{function}() missing 1 required positional argument: 'column'"
                )
            if of_column:
                _text(found["column"], function)
            groups, window, beside = (_text(found.pop(word, ""), function) for word in _CALLED)
            values = {p: v for p, v in found.items() if p in fixed or not isinstance(v, str)}
            arguments = (f"${p}" if p in values else str(found[p]) for p in own if p in found)
            call = f"{function}({', '.join(arguments)}) {window}"
            items = f"{beside}, {call}" if beside else call
            by = "" if window else f"GROUP BY {groups or 'ALL'}"
            return self._asked(f"SELECT {items}", by, values or None)  # type: ignore[return-value]

        method.__name__ = method.__qualname__ = function
        return fenced(method)

    @overload
    def count(self) -> int: ...
    @overload
    def count(self, column: str, *called: str, **named: str) -> Frame: ...
    def count(self, *called: str, **named: str) -> int | Frame:
        """Run and return how many rows there are; with a column, or "*", as other functions of columns: `count("sold", "city")`."""
        return self._function_method("count")(*called, **named) if called else super().count()

    def order(self, keys: str | Expression) -> Self:
        """Return the rows in the order of ORDER BY: `order("sold DESC, city")`; an expression is one of `sort`."""
        if isinstance(keys, Expression):
            return self.sort(keys)
        return self._asked("", f"ORDER BY {_text(keys, 'order')}")

    def cross(self, other: Frame) -> Self:
        """Pair each row with each row of another frame, whose columns keep their names."""
        return self._connection.sql_over(  # type: ignore[return-value]
            {"self": self._plan, "other": plan_of(other)}, "FROM self CROSS JOIN other", None
        )

    def apply(
        self,
        function_name: str,
        function_aggr: str,
        group_expr: str = "",
        function_parameter: str = "",
        projected_columns: str = "",
    ) -> Frame:
        """Return an aggregate of each of some columns, by groups: `apply("sum", "sold, paid", "city", projected_columns="city")`."""
        given = (function_name, function_aggr, group_expr, function_parameter, projected_columns)
        for each in given:
            _text(each, "apply")
        behind = f", {function_parameter}" if function_parameter else ""
        calls = [f"{function_name}({column}{behind})" for column in function_aggr.split(",")]
        items = ", ".join([*([projected_columns] if projected_columns else ()), *calls])
        return self._asked(f"SELECT {items}", f"GROUP BY {group_expr or 'ALL'}")  # type: ignore[return-value]

    def map(
        self,
        function: Callable[[pd.DataFrame], pd.DataFrame],
        schema: Mapping[str, str | type | DataType] | None = None,
    ) -> Frame:
        """Run, and return what a function makes of the rows as a pandas frame; `schema` are names and types of its columns."""
        if not callable(function):
            raise WrongArguments(f"map() takes a function, not {shown(function)}.")
        made = self._connection.from_df(made_by(function, "map()", self.df()))
        if schema is None:
            return made
        if [*schema] != made.columns:
            raise WrongArguments(
                f"The function made the columns {shown(made.columns)}, and its schema is {shown([*schema])}."
            )
        types = [
            _OF_PYTHON.get(t, t.__name__) if isinstance(t, type) else t for t in schema.values()
        ]
        return made.select(*(as_column(n).cast(t) for n, t in zip(schema, types, strict=True)))

    def offset(self, count: int) -> Self:
        """Return the rows after the first ones."""
        return self.limit(2**63 - 1, count)

    def select_types(self, types: Sequence[str | DataType]) -> Self:
        """Return the columns of some types: `select_types(["INTEGER", "DATE"])`."""
        return self.select(of_type(*flat([types])))

    select_dtypes = select_types

    def materialize(self) -> Frame:
        """Do what `persist` does."""
        return self.persist()

    def iter_rows(self) -> Iterator[Row]:
        """Run and give the rows as tuples, a part of them in memory at a time."""
        return iter(self)

    @property
    def types(self) -> list[str]:
        """The SQL type of each column, as text."""
        return [str(t) for t in self._types]

    dtypes = types

    @property
    def description(self) -> list[Description]:
        """Seven values for each column, as a cursor's: the name and the SQL type are the first."""
        return described(self.columns, self._types)

    @property
    def shape(self) -> tuple[int, int]:
        """Run, and return how many rows and columns there are."""
        return self.count(), len(self.columns)

    def query(self, name: str, text: str) -> Frame:
        """Return a query of this frame under a name: `query("sales", "SELECT * FROM sales")`."""
        return self.sql(text, name=name)

    def df(self, *, date_as_object: bool = False) -> pd.DataFrame:
        """Run and return a pandas frame of DuckDB's dtypes: `to_pandas` with DECIMAL as float64; dates are objects if asked for."""
        from ..library_columns import to_pandas

        with self._connection.stoppable():
            return to_pandas(self._run().to_arrow(), self._types, True, date_as_object)

    fetchdf = fetch_df = to_df = df

    @overload
    def pl(self, *, lazy: Literal[False] = False) -> pl.DataFrame: ...
    @overload
    def pl(self, *, lazy: Literal[True]) -> pl.LazyFrame: ...
    def pl(self, *, lazy: bool = False) -> pl.DataFrame | pl.LazyFrame:
        """Do what `to_polars` does; `lazy` gives a lazy frame of the rows."""
        return self.to_polars().lazy() if lazy else self.to_polars()

    def arrow(self, rows: int | None = None) -> pa.Table:
        """Do what `to_arrow` does, for a number of rows in chunks of so many."""
        table = self.to_arrow()
        if rows is None:
            return table
        import pyarrow as pa

        most = min(batch_rows(rows), max(table.num_rows, 1))
        return pa.Table.from_batches(table.to_batches(most), table.schema)

    to_arrow_table = fetch_arrow_table = arrow

    def to_arrow_reader(self, rows: int = MOST_ROWS) -> pa.RecordBatchReader:
        """Run and return a reader of record batches of at most so many rows."""
        import pyarrow as pa

        return pa.RecordBatchReader.from_stream(self.to_batches(rows))

    fetch_arrow_reader = fetch_record_batch = to_arrow_reader

    def torch(self) -> dict[str, torch.Tensor]:
        """Do what `to_torch` does."""
        return self.to_torch()

    def to_table(self, name: str) -> None:
        """Do what `create_table` does."""
        self.create_table(name)

    create = to_table

    def to_view(self, name: str, replace: bool = True) -> Frame:
        """Do what `create_view` does."""
        return self.create_view(name, replace=replace)


def _text(given: object, method: str) -> str:
    if not isinstance(given, str):
        raise WrongArguments(
            f"{method}() takes SQL as text, as DuckDB's does, not {shown(given)}: select, agg and sort take expressions."
        )
    return given
