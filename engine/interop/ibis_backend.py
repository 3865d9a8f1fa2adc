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
from ibis.backends import (
    CanCreateDatabase,
    CanListCatalog,
    DirectPyArrowExampleLoader,
    HasCurrentCatalog,
    HasCurrentDatabase,
    SupportsTempTables,
    UrlFromPath,
)
from ibis.backends.sql import SQLBackend, compilers
from ibis.expr.operations.udf import InputType
from ibis.formats.pandas import PandasData

import fuseline

from ..errors import UnknownName
from ..plan.text.quoted_name import quoted_name, quoted_path
from .ibis_answers import batches_with_types, pandas_of, with_types

if TYPE_CHECKING:
    import ibis.expr.datatypes as dt
    import ibis.expr.types as ir
    import pandas as pd
    from ibis.expr.schema import IntoSchema

    from ..frame.cursor import Cursor
    from ..frame.frame import Frame

Paths = Path | str | Iterable[Path | str]
Params = Mapping["ir.Scalar", object] | None
Limit = int | str | None
Place = tuple[str, str] | str | None  # of a table: a schema, alone or in a catalog


class SqlTree(Protocol):
    """A statement as sqlglot's tree, which Ibis builds."""

    def sql(self, *, dialect: object) -> str: ...


Statement = str | SqlTree
# How `create_function` calls what Ibis's decorators have wrapped
WAYS = {InputType.PYTHON: "native", InputType.PYARROW: "arrow"}


class IbisBackend(
    SupportsTempTables,
    SQLBackend,
    CanListCatalog,
    CanCreateDatabase,
    HasCurrentCatalog,
    HasCurrentDatabase,
    UrlFromPath,
    DirectPyArrowExampleLoader,
):
    """Runs Ibis expressions on a `fuseline.Connection`.

    What Ibis calls a database is a schema of SQL, and its catalog is a database.
    """

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
        # As Ibis's DuckDB backend has them: moments are of UTC, and names are never those of Python's variables
        self.con.execute("SET python_enable_replacements = false")
        if "timezone" not in map(str.lower, settings):
            self.con.execute("SET TimeZone = 'UTC'")

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

    def _transpile_sql(self, query: str, *, dialect: str | None = None) -> str:
        known = None if dialect == self.name else dialect
        return str(super()._transpile_sql(query, dialect=known))

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: Statement, **_: object) -> Iterator[Cursor]:
        with contextlib.closing(self.raw_sql(query)) as cursor:
            yield cursor

    # Databases

    @property
    def current_catalog(self) -> str:
        return self._names("SELECT current_database()")[0]

    @property
    def current_database(self) -> str:
        return self._names("SELECT current_schema()")[0]

    def list_catalogs(self, *, like: str | None = None) -> list[str]:
        names = self._names("SELECT DISTINCT catalog_name FROM information_schema.schemata")
        return self._filter_with_like(names, like)

    def list_databases(self, *, like: str | None = None, catalog: str | None = None) -> list[str]:
        query = "SELECT DISTINCT schema_name FROM information_schema.schemata WHERE catalog_name = coalesce($1, catalog_name)"
        return self._filter_with_like(self._names(query, catalog), like)

    def create_database(
        self, name: str, /, *, catalog: str | None = None, force: bool = False
    ) -> None:
        """Make a schema; `force` asks for no error where it is there."""
        self.raw_sql(f"CREATE SCHEMA {'IF NOT EXISTS ' * force}{quoted_path(catalog, name)}")

    def drop_database(
        self, name: str, /, *, catalog: str | None = None, force: bool = False
    ) -> None:
        """Drop a schema that is empty; `force` asks for no error where there is none."""
        self.raw_sql(f"DROP SCHEMA {'IF EXISTS ' * force}{quoted_path(catalog, name)}")

    def _names(self, query: str, *values: str | None) -> list[str]:
        return sorted(str(name) for (name,) in self.con.execute(query, values).fetchall())

    # Tables

    def list_tables(self, *, like: str | None = None, database: Place = None) -> list[str]:
        """Return the names of tables and views of a schema, and of temporary ones."""
        catalog, schema = self._place(database)
        names = self._names(
            "SELECT DISTINCT table_name FROM information_schema.tables WHERE table_catalog IN ($1, 'temp') AND table_schema = $2",
            catalog or self.current_catalog,
            schema or self.current_database,
        )
        return self._filter_with_like(names, like)

    def get_schema(
        self, name: str, *, catalog: str | None = None, database: str | None = None
    ) -> sch.Schema:
        """Return the columns of a table or view; raises Ibis's `TableNotFound`."""
        try:
            return self._get_schema_using_query(quoted_path(catalog, database, name))
        except UnknownName as error:
            raise exc.TableNotFound(name) from error

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        of_text = self.compiler.type_mapper.from_string
        rows = self.con.execute(f"DESCRIBE {query}").fetchall()
        return sch.Schema({n: of_text(str(t), nullable=null == "YES") for n, t, null, *_ in rows})

    def _place(self, database: Place) -> tuple[str | None, str | None]:
        """Return catalog and schema of what Ibis takes as `database`: a name, `catalog.schema` or a pair."""
        catalog, schema = self._to_catalog_db_tuple(self._to_sqlglot_table(database))
        return catalog or None, schema or None

    def create_table(
        self,
        name: str,
        /,
        obj: object = None,
        *,
        schema: IntoSchema | None = None,
        database: Place = None,
        temp: bool | None = False,
        overwrite: bool = False,
    ) -> ir.Table:
        """Make a table of an expression or of rows in memory, or an empty one of a schema."""
        catalog, within = self._place(database)
        if temp and catalog:
            raise exc.UnsupportedArgumentError(
                f"A temporary table is in the catalog temp, and not in {catalog}: give no catalog."
            )
        rows: ir.Table | None = None
        if obj is not None:
            rows = obj if isinstance(obj, ibis.Expr) else ibis.memtable(obj, schema=schema)
        if schema is not None:
            wanted = ibis.schema(schema)
        elif rows is not None:
            wanted = rows.schema()
        else:
            raise ValueError("Either `obj` or `schema` must be specified")
        if wanted.null_fields:
            raise exc.IbisTypeError(
                f"A column of a table has a type: cast {', '.join(wanted.null_fields)}, which are NULL alone."
            )
        path = quoted_path(catalog, within, name)
        target = f"CREATE {'OR REPLACE ' * bool(overwrite)}{'TEMP ' * bool(temp)}TABLE {path}"
        needed = [n for n, kind in wanted.items() if not kind.nullable]
        if rows is None:
            columns = (f"{quoted_name(n)} {self._type(t)}" for n, t in wanted.items())
            self.raw_sql(f"{target} ({', '.join(columns)})")
        else:
            self.raw_sql(f"{target} AS {self._typed(rows.cast(wanted))}")
        for column in needed:
            self.raw_sql(f"ALTER TABLE {path} ALTER {quoted_name(column)} SET NOT NULL")
        return self.table(name, database=None if within is None else (catalog, within))

    def _typed(self, rows: ir.Table, params: Params = None) -> str:
        """Return a query whose columns have exactly the types that Ibis says."""
        self._run_pre_execute_hooks(rows)
        types = {quoted_name(n): self._type(t) for n, t in rows.schema().items()}
        columns = ", ".join(f"CAST({n} AS {kind}) AS {n}" for n, kind in types.items())
        return f"SELECT {columns} FROM ({self.compile(rows, params=params)})"

    def _type_of_values(self, kind: dt.DataType) -> object:
        return kind.to_pyarrow() if kind.is_nested() else self._type(kind)

    def _type(self, kind: dt.DataType) -> str:
        return str(self.compiler.type_mapper.to_string(kind))

    def read_parquet(
        self, paths: Paths, /, *, table_name: str | None = None, **options: object
    ) -> ir.Table:
        """Return a table over Parquet files: a path, a glob, a folder or a list; `options` as `Connection.read_parquet` has them."""
        return self._read("read_parquet", paths, table_name, options)

    def read_csv(
        self, paths: Paths, /, *, table_name: str | None = None, **options: object
    ) -> ir.Table:
        """Return a table over CSV files: a path, a glob or a list; `options` as `Connection.read_csv` has them."""
        return self._read("read_csv", paths, table_name, options)

    def read_json(
        self, paths: Paths, /, *, table_name: str | None = None, **options: object
    ) -> ir.Table:
        """Return a table over JSON files: a path, a glob or a list; `options` as `Connection.read_json` has them."""
        return self._read("read_json", paths, table_name, options)

    def _read(
        self, way: str, paths: Paths, wish: str | None, options: Mapping[str, object]
    ) -> ir.Table:
        name = wish or ibis.util.gen_name(way)
        getattr(self.con, way)(ibis.util.normalize_filenames(paths), name, **options)
        return self.table(name)

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        give = getattr(op.data, "to_pyarrow_dataset", op.data.to_pyarrow)
        self.con.register(op.name, give(op.schema))

    def _make_memtable_finalizer(self, name: str) -> None:
        """Have nothing done at the end of the process, which ends the connection."""

    def _drop_cached_table(self, name: str) -> None:
        """Drop what `cache()` made; Ibis asks when an expression is collected, which may be after `disconnect`."""
        if not self.con.is_closed:
            super()._drop_cached_table(name)

    def drop_table(self, name: str, /, *, database: Place = None, force: bool = False) -> None:
        self._drop("TABLE", name, database, force)

    def drop_view(self, name: str, /, *, database: Place = None, force: bool = False) -> None:
        self._drop("VIEW", name, database, force)

    def _drop(self, kind: str, name: str, database: Place, force: bool) -> None:
        """Drop as text: Ibis 12 builds a tree for it that sqlglot 30 writes without the name."""
        path = quoted_path(*self._place(database), name)
        self.raw_sql(f"DROP {kind} {'IF EXISTS ' * force}{path}")

    def _register_udfs(self, expr: ir.Expr) -> None:
        """Give the connection the Python functions that an expression calls."""
        for function in expr.op().find(ops.ScalarUDF):
            if function.__input_type__ is InputType.BUILTIN:
                continue
            name, way = type(function).__name__, WAYS.get(function.__input_type__)
            if way is None:
                raise exc.UnsupportedOperationError(
                    f"{name}() takes pandas' Series: use ibis.udf.scalar.pyarrow or python."
                )
            with contextlib.suppress(UnknownName):
                self.con.remove_function(name)
            parameters = function.__signature__.parameters.values()
            self.con.create_function(
                name,
                function.__func__,
                [self._type_of_values(p.annotation.pattern.dtype) for p in parameters],
                self._type_of_values(function.dtype),
                type=way,
                **function.__config__,
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
        return pa.RecordBatchReader.from_batches(wanted, batches_with_types(batches, wanted))

    def execute(
        self, expr: ir.Expr, /, *, params: Params = None, limit: Limit = None, **_: object
    ) -> pd.DataFrame | pd.Series | object:
        table = expr.as_table()
        found = self._frame(table, params, limit).to_arrow()
        rows = pandas_of(found, table.schema().to_pyarrow())
        frame = PandasData.convert_table(rows, table.schema())
        return expr.__pandas_result__(frame)

    def to_parquet(
        self, expr: ir.Table, /, path: str | Path, *, params: Params = None, **options: object
    ) -> None:
        """Write a Parquet file, or a folder of them; `options` are those of COPY."""
        self._copy(expr, path, params, {"FORMAT": "parquet", **options})

    def to_csv(
        self,
        expr: ir.Table,
        /,
        path: str | Path,
        *,
        params: Params = None,
        header: bool = True,
        **options: object,
    ) -> None:
        """Write a CSV file; `options` are those of COPY."""
        self._copy(expr, path, params, {"FORMAT": "csv", "HEADER": header, **options})

    def to_json(
        self, expr: ir.Table, /, path: str | Path, *, params: Params = None, **options: object
    ) -> None:
        """Write a JSON file with one list of all rows; `options` are those of COPY."""
        self._copy(expr, path, params, {"FORMAT": "json", "ARRAY": True, **options})

    def _copy(
        self, expr: ir.Table, path: str | Path, params: Params, options: Mapping[str, object]
    ) -> None:
        given = ", ".join(f"{name} {_literal(value)}" for name, value in options.items())
        self.raw_sql(f"COPY ({self._typed(expr, params)}) TO {_literal(str(path))} ({given})")


Backend = IbisBackend  # the name by which Ibis finds it
# Where `ibis.to_sql(..., dialect="fuseline")` looks for a module by the dialect's name
setattr(compilers, IbisBackend.name, compilers.duckdb)


def _literal(value: object) -> str:
    """Return a value of an option of COPY as SQL."""
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_literal, value))})"
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
