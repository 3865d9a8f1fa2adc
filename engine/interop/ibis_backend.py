"""The Ibis backend: `ibis.fuseline.connect()`, `ibis.connect("fuseline://")`.

Expressions become SQL by Ibis's DuckDB compiler, since Fuseline answers DuckDB's dialect; answers come as Arrow and get exactly the
types that Ibis expects.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import ibis
import ibis.common.exceptions as exc
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import pyarrow as pa
import pyarrow.compute as pc
from ibis.backends import DirectPyArrowExampleLoader, SupportsTempTables, UrlFromPath
from ibis.backends.sql import SQLBackend, compilers
from ibis.expr.operations.udf import InputType
from ibis.formats.pandas import PandasData

import fuseline

from ..errors import UnknownName
from ..plan.text.quoted_name import quoted_name

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pandas as pd
    from ibis.expr.schema import IntoSchema

    from ..frame.cursor import Cursor
    from ..frame.frame import Frame

Params = Mapping["ir.Scalar", object] | None
Limit = int | str | None


class SqlTree(Protocol):
    """A statement as sqlglot's tree, which Ibis builds."""

    def sql(self, *, dialect: object) -> str: ...


Statement = str | SqlTree
ONE_SCHEMA = (None, "main")  # what there is of `database` in Ibis's sense


class IbisBackend(SupportsTempTables, SQLBackend, UrlFromPath, DirectPyArrowExampleLoader):
    """Runs Ibis expressions on a `fuseline.Connection`."""

    name = "fuseline"
    compiler = compilers.duckdb.compiler
    supports_temporary_tables = True
    con: fuseline.Connection

    # Connecting

    @property
    def version(self) -> str:
        return fuseline.__version__

    def do_connect(
        self,
        database: str | Path = ":memory:",
        read_only: bool = False,
        device: str | None = None,
        **settings: object,
    ) -> None:
        """Open a connection; the arguments are those of `fuseline.connect`."""
        flags = {"true": True, "false": False}  # as a URL has them
        only = flags.get(str(read_only).lower(), read_only)
        self.con = fuseline.connect(database, only, device=device, **settings)

    @classmethod
    def from_connection(cls, con: fuseline.Connection, /) -> IbisBackend:
        """Return a backend over a connection that is open."""
        made = cls()
        made._can_reconnect = False
        made.con = con
        return made

    def raw_sql(self, query: Statement, **_: object) -> Cursor:
        """Run statements, text or sqlglot's, and return a cursor over the rows of the last."""
        text = query if isinstance(query, str) else query.sql(dialect=self.dialect)
        return self.con.execute(text)

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: Statement, **_: object) -> Iterator[Cursor]:
        with contextlib.closing(self.raw_sql(query)) as cursor:
            yield cursor

    # Tables

    def list_tables(
        self, *, like: str | None = None, database: tuple[str, str] | str | None = None
    ) -> list[str]:
        self._only_schema(database)
        rows = self.con.sql("SHOW TABLES").fetchall()
        return self._filter_with_like([str(name) for name, *_ in rows], like)

    def get_schema(
        self, name: str, *, catalog: str | None = None, database: str | None = None
    ) -> sch.Schema:
        """Return the columns of a table or view; raises Ibis's `TableNotFound`."""
        self._only_schema(database)
        try:
            return self._schema(self.con.table(name))
        except UnknownName as error:
            raise exc.TableNotFound(name) from error

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        return self._schema(self.con.sql(query))

    def _schema(self, frame: Frame) -> sch.Schema:
        of_text = self.compiler.type_mapper.from_string
        return sch.Schema({name: of_text(str(kind)) for name, kind in frame.schema.items()})

    def _only_schema(self, database: tuple[str, str] | str | None) -> None:
        *_, schema = (database,) if isinstance(database, str | None) else database
        if schema not in ONE_SCHEMA:
            raise exc.UnsupportedOperationError(
                f"There is one database, main, and not {schema} beside it."
            )

    def create_table(
        self,
        name: str,
        /,
        obj: object = None,
        *,
        schema: IntoSchema | None = None,
        database: str | None = None,
        temp: bool = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """Make a table of an expression or of rows in memory, or an empty one of a schema."""
        self._only_schema(database)
        replace = "OR REPLACE " * overwrite + "TEMP " * temp
        target = f"CREATE {replace}TABLE {quoted_name(name)}"
        if obj is None:
            if schema is None:
                raise ValueError("Either `obj` or `schema` must be specified")
            types = {n: self._type(t) for n, t in ibis.schema(schema).items()}
            columns = ", ".join(f"{quoted_name(n)} {text}" for n, text in types.items())
            self.raw_sql(f"{target} ({columns})")
            return self.table(name)
        rows = obj if isinstance(obj, ibis.Expr) else ibis.memtable(obj, schema=schema)
        if schema is not None:
            rows = rows.cast(ibis.schema(schema))
        self._run_pre_execute_hooks(rows)
        types = {n: self._type(t) for n, t in rows.schema().items()}
        columns = ", ".join(
            f"CAST({quoted_name(n)} AS {t}) AS {quoted_name(n)}" for n, t in types.items()
        )
        self.raw_sql(f"{target} AS SELECT {columns} FROM ({self.compile(rows)})")
        return self.table(name)

    def _type(self, kind: dt.DataType) -> str:
        return str(self.compiler.type_mapper.to_string(kind))

    def read_parquet(
        self,
        paths: Path | str | Iterable[Path | str],
        /,
        *,
        table_name: str | None = None,
        **options: object,
    ) -> ir.Table:
        """Return a table over Parquet files: a path, a glob, a folder or a list; `options` as `Connection.read_parquet` has them."""
        name = table_name or ibis.util.gen_name("read_parquet")
        self.con.read_parquet(paths, name, **options)
        return self.table(name)

    def read_csv(
        self,
        paths: Path | str | Iterable[Path | str],
        /,
        *,
        table_name: str | None = None,
        **options: object,
    ) -> ir.Table:
        """Return a table over CSV files: a path, a glob or a list; `options` as `Connection.read_csv` has them."""
        name = table_name or ibis.util.gen_name("read_csv")
        self.con.read_csv(paths, name, **options)
        return self.table(name)

    def read_json(
        self,
        paths: Path | str | Iterable[Path | str],
        /,
        *,
        table_name: str | None = None,
        **options: object,
    ) -> ir.Table:
        """Return a table over JSON files: a path, a glob or a list; `options` as `Connection.read_json` has them."""
        name = table_name or ibis.util.gen_name("read_json")
        self.con.read_json(paths, name, **options)
        return self.table(name)

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        self.con.register(op.name, op.data.to_pyarrow(op.schema))

    def _make_memtable_finalizer(self, name: str) -> None:
        """Have nothing done at the end of the process, which ends the connection."""

    def _drop_cached_table(self, name: str) -> None:
        """Drop what `cache()` made; Ibis asks when an expression is collected, which may be after `disconnect`."""
        if not self.con.is_closed:
            super()._drop_cached_table(name)

    def drop_table(
        self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False
    ) -> None:
        self._drop("TABLE", name, database, force)

    def drop_view(
        self, name: str, /, *, database: tuple[str, str] | str | None = None, force: bool = False
    ) -> None:
        self._drop("VIEW", name, database, force)

    def _drop(
        self, kind: str, name: str, database: tuple[str, str] | str | None, force: bool
    ) -> None:
        """Drop as text: Ibis 12 builds a tree for it that sqlglot 30 writes without the name."""
        self._only_schema(database)
        self.raw_sql(f"DROP {kind} {'IF EXISTS ' * force}{quoted_name(name)}")

    def _register_udfs(self, expr: ir.Expr) -> None:
        for function in expr.op().find(ops.ScalarUDF):
            if function.__input_type__ is not InputType.BUILTIN:
                raise exc.UnsupportedOperationError(
                    f"{type(function).__name__}() is a function of Python, which Fuseline cannot call: use one of SQL by ibis.udf.scalar.builtin."
                )

    # Answers

    def _frame(self, expr: ir.Table, params: Params, limit: Limit) -> Frame:
        self._run_pre_execute_hooks(expr)
        return self.con.sql(self.compile(expr, params=params, limit=limit))

    def to_pyarrow(
        self, expr: ir.Expr, /, *, params: Params = None, limit: Limit = None, **_: object
    ) -> pa.Table | pa.ChunkedArray | pa.Scalar:
        table = expr.as_table()
        wanted = table.schema().to_pyarrow()
        return expr.__pyarrow_result__(
            with_types(self._frame(table, params, limit).to_arrow(), wanted)
        )

    def to_pyarrow_batches(
        self,
        expr: ir.Expr,
        /,
        *,
        params: Params = None,
        limit: Limit = None,
        chunk_size: int = 1_000_000,
        **_: object,
    ) -> pa.RecordBatchReader:
        """Return a reader that makes what does not fit into memory while it is read."""
        table = expr.as_table()
        wanted = table.schema().to_pyarrow()
        batches = self._frame(table, params, limit).to_batches(chunk_size)
        return pa.RecordBatchReader.from_batches(wanted, _with_types(batches, wanted))

    def execute(
        self, expr: ir.Expr, /, *, params: Params = None, limit: Limit = None, **_: object
    ) -> pd.DataFrame | pd.Series | object:
        table = expr.as_table()
        rows = self.to_pyarrow(table, params=params, limit=limit)
        frame = PandasData.convert_table(_to_pandas(rows), table.schema())
        return expr.__pandas_result__(frame)


Backend = IbisBackend  # the name by which Ibis finds it


def with_types(table: pa.Table, wanted: pa.Schema) -> pa.Table:
    """Return a table with the types of a schema: decimals rounded to their scale, intervals as durations.

    Raises `pyarrow.ArrowInvalid` for a value that the type does not hold.
    """
    columns = [_cast(column, f.type) for column, f in zip(table.columns, wanted, strict=True)]
    return pa.table(columns, schema=wanted)


def _with_types(batches: Iterable[pa.RecordBatch], wanted: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from with_types(pa.Table.from_batches([batch]), wanted).to_batches()


def _cast(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    if column.type == wanted:
        return column
    if pa.types.is_decimal(column.type) and not pa.types.is_floating(wanted):
        column = pc.round(column, getattr(wanted, "scale", 0), "half_towards_infinity")
    if pa.types.is_interval(column.type) and pa.types.is_duration(wanted):
        return pa.chunked_array([pa.array(column.to_pylist(), wanted)])
    if pa.types.is_floating(column.type) and pa.types.is_integer(wanted):
        column = pc.trunc(column)
    return column.cast(wanted)


def _to_pandas(table: pa.Table) -> pd.DataFrame:
    """Return a pandas frame with lists of Python for nested values, where pyarrow would give arrays."""
    import pandas as pd

    return pd.DataFrame(
        {
            name: column.to_pylist() if pa.types.is_nested(column.type) else column.to_pandas()
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )
