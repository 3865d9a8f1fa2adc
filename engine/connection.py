"""The connection: a catalog, and the way of a query from its text to what `running` runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from threading import local
from typing import TYPE_CHECKING

from .catalog import Catalog, TableFunction
from .connection_files import FileReaders, Path, warn_of_columns
from .db_api import HasErrors, RunsStatements
from .errors import (
    ConnectionClosed,
    WrongArguments,
    shown,
)
from .fence import fenced
from .import_ahead import frame_class, import_ahead
from .interop.duckdb_connection import DuckDBSteps
from .interop.function_registry import FunctionRegistry
from .metadata.objects import Here
from .metadata.snapshots import snapshot_functions
from .metadata.system_views import SYSTEM_VIEWS
from .plan.changes.catalog_objects import path_in_query
from .plan.expr import new_column
from .plan.logical import CatalogTable, Logical, Scan
from .plan.physical import Physical
from .plan.text.quoted_name import quoted_name
from .plan_cache import CachedPlan, Parameters
from .progress.run_progress import TellsProgress
from .run_text import run_text
from .running import Observer, QueryRunner
from .runtime.run import Result
from .setting_values.of_duckdb import SWITCHES, is_fixed
from .settings import Settings
from .settings_lock import check_change
from .storage.columns.cache import ColumnCache
from .storage.spill_folders import sweep

if TYPE_CHECKING:
    import pyarrow as pa

    from .file_tables.converted_table import UnreadTable
    from .frame.batches import Rowset
    from .frame.frame import Frame
    from .observe.profile import PlanOrigin
    from .plan.changes.stand_in import Recursion
    from .reading import Reading
    from .storage.tables.access import Access
    from .storage.tables.memory_table import MemoryTable
    from .storage.tables.parquet import ParquetTable

__all__ = ["Connection", "Result", "connect"]

MakeRunner = Callable[[Catalog, Settings], QueryRunner]


@fenced
def connect(
    database: Path | None = None,
    read_only: bool = False,
    config: object = None,
    *,
    device: str | None = None,
    cluster: object = None,
    workers: object = None,
    login: object = None,
    **settings: object,
) -> Connection:
    """Open a connection to a database: a folder, which is made where there is none, or `:memory:` for one that ends with it.

    With `read_only` the folder has to be there, and another process may write it meanwhile.  The words "auto", "gpu" and "cpu" stand
    for a device, "./cpu" for a folder of that name.  Raises `FileError` for what is no database.

    `device` is "auto" (the GPU when one can be used), "gpu" or "cpu"; the other settings are those of `Settings`, such as
    `memory_limit="4GB"` or `require_gpu=True`; `config` has such settings by name.  What is not given comes from `FUSELINE_*` variables.  Raises `DeviceError`,
    saying what is missing, for a GPU that cannot be used.

    An address as "grpc://host:port" or "grpc+tls://host:port" is that of a server (`fuseline serve`), which carries out all texts; `login`, a dictionary,
    has what it asks for: `token`, or `user` and `password`, and `certificates`, the file of those that sign its own.

    With `cluster` queries run on a Dask cluster: "local" starts one with so many `workers` (by default one for each GPU, or for a few
    cores), a scheduler's address or a Dask client names one that runs.  Raises `ClusterError` for one that cannot be used.
    """
    from .database_statements.attach import DEVICES, IN_MEMORY, is_address, open_home

    if isinstance(database, str) and database in DEVICES and device is None:
        database, device = IN_MEMORY, str(database)
    if config is not None and not isinstance(config, Mapping):
        raise WrongArguments(f"config= takes a dictionary of settings, not {shown(config)}.")
    chosen = Settings.from_environment()
    given = {**(config or {}), "device": device, **settings}
    read_only = read_only or str(given.pop("access_mode", "")).upper() == "READ_ONLY"
    for name, value in given.items():
        if value is not None and name not in SWITCHES and not is_fixed(name, value):
            chosen = chosen.with_option(name, value)
    if is_address(database):
        from .client.remote_runner import open_remote

        others = (read_only, cluster, workers)
        return Connection(chosen, open_remote(str(database), login, others))
    if login is not None:
        raise WrongArguments('login= goes with the address of a server: "grpc://host:port".')
    if cluster is None:
        if workers is not None:
            raise WrongArguments('workers= goes with cluster="local".')
        return open_home(Connection(chosen), database, read_only)
    from .distributed.open_cluster import cluster_runner

    made = Connection(chosen, cluster_runner(cluster, workers))
    return open_home(made, database, read_only)


@fenced
class Connection(
    FileReaders, FunctionRegistry, TellsProgress, RunsStatements, DuckDBSteps, HasErrors
):
    """Runs SQL over Parquet files, registered objects and its own tables.

    Goes on working after every error.  May be used by several threads: changes of the catalog are atomic, and a query
    keeps the tables that it began with.
    """

    def __init__(self, settings: Settings | None = None, runner: MakeRunner = QueryRunner) -> None:
        told = snapshot_functions(lambda: Here(self.catalog, self.settings))
        for name, what in (("fuseline_columns", "columns"), ("fuseline_workers", "workers")):
            told[name] = TableFunction(partial(self._live, name, what))
        self.catalog = Catalog(
            told,
            SYSTEM_VIEWS,
            lambda plan: self.run(plan).to_arrow(),
            self._open_files,
            self._recursive,
        )
        self._initial = settings or Settings.from_environment()
        self._runner = runner(self.catalog, self._initial)
        self._closed, self._executed = False, local()
        sweep(self._initial.spill_dir)
        import_ahead(self.device)

    @property
    def device(self) -> str:
        """Where queries run: gpu or cpu."""
        return self._runner.device

    @property
    def server(self) -> str:
        """The address of the server that carries out texts; empty where they are carried out here."""
        return self._runner.server

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def settings(self) -> Settings:
        return self._runner.settings

    @property
    def cache(self) -> ColumnCache:
        """The columns that are kept for the next query."""
        return self._runner.cache

    def set_option(self, name: str, value: object) -> None:
        """Change a setting, as SET does; raises `UnknownName`, `InvalidQuery` or `DeviceError` and changes nothing."""
        self._check_open()
        self._change(name, self.settings.with_option(name, value))

    def reset_option(self, name: str) -> None:
        """Give a setting back the value that it had when the connection was opened, as RESET does."""
        self._check_open()
        self._change(name, self.settings.with_value_of(name, self._initial))

    def _change(self, name: str, new: Settings) -> None:
        check_change(self.settings, new, name)
        self._runner.configure(new)

    # Tables and queries

    def sql(self, text: str, params: Parameters = None) -> Frame:
        """Run all statements of a text but the last, and return that one as a Frame; a query runs when asked for rows.

        `params` are the values for `?` and `$1` (a sequence) or `$name` (a dictionary).
        """
        return self._sql({}, text, params)

    query = from_query = sql

    def sql_over(self, tables: Mapping[str, Logical], text: str, params: Parameters) -> Frame:
        """Do what `sql` does with plans as further tables, by their names in lower case."""
        return self._sql(tables, text, params)

    def table(self, name: str) -> Frame:
        """Return a table or view, also by `schema.name` or with its database; raises `UnknownName`."""
        self._check_open()
        if self.server:
            parts = (quoted_name(part) for part in name.split("."))
            return self.sql(f"SELECT * FROM {'.'.join(parts)}")
        name = self.catalog.named(name)
        table = self.catalog.table(name)
        return (
            self.sql(f"SELECT * FROM {path_in_query(name)}") if table is None else self._scan(table)
        )

    view = table

    def register(self, name: str, source: object) -> Frame:
        """Make an object usable in SQL, in the place of what had the name; returns it as a Frame.

        Takes pyarrow Tables, RecordBatches, RecordBatchReaders and Datasets, pandas and Polars frames, dictionaries of
        arrays, cuDF frames, CuPy arrays, a Frame, and anything with `__arrow_c_stream__`; on a cluster a Dask dataframe too, of
        which each worker takes the partitions that it has.
        """
        self._check_open()
        table = self.table_of(name, source)
        self.forget(self.catalog.put(table))
        warn_of_columns(name, table.unsupported)
        return self._scan(table)

    def from_df(self, source: object) -> Frame:
        """Return a table of another library as a Frame, without a name in SQL; takes what `register` does."""
        self._check_open()
        return self._scan(self.table_of("df", source))

    from_arrow = from_df

    def table_of(self, name: str, source: object) -> MemoryTable:
        """Return an object of another library as a table; raises `TypeMismatch`."""
        from .interop.device_frames import ingest_device
        from .interop.ingest import ingest
        from .storage.tables.memory_table import MemoryTable

        table = self._runner.taken(name, source)
        if table is None and self.device == "gpu":
            table = ingest_device(name, source)
        return MemoryTable(name, ingest(source)) if table is None else table

    def unregister(self, name: str) -> None:
        """Remove a table or view; raises `UnknownName`."""
        self._check_open()
        found = self.catalog.drop(name)
        if found is None:
            raise self.catalog.unknown(name)
        self.forget(found)

    # Running

    def run(self, plan: Logical, key: object = None, timed: bool = False) -> Result:
        """Run a plan; `key` is what `sql` gave the Frame, `timed` waits for the GPU after each node."""
        if self._closed:
            self._check_open()
        return self._runner.run(plan, key, timed)

    def stream(self, plan: Logical, key: object = None) -> Reading:
        """Run a plan, as far as there is room for its rows, and return what gives them one table after the other."""
        self._check_open()
        return self._runner.read(plan, key)

    def physical(self, plan: Logical) -> Physical:
        """Return the placed physical plan that a query runs by."""
        return self.planned(plan)[0]

    def planned(
        self, plan: Logical, key: object = None, observer: Observer | None = None
    ) -> tuple[Physical, PlanOrigin]:
        """Return the plan that a query runs by, and whose it is; with `observer` it is planned once more, which gives that each step that changed something."""
        self._check_open()
        return self._runner.planned(plan, key, observer)

    def kept(
        self, name: str, plan: Logical, key: object = None, columns: Sequence[str] = ()
    ) -> MemoryTable:
        """Run a plan and return its rows as a table, on a cluster where they are made."""
        self._check_open()
        return self._runner.kept(name, plan, key, columns)

    def gathered(self, table: MemoryTable) -> MemoryTable:
        """Return a table with its rows here, should a cluster's workers have them."""
        return self._runner.gathered(table)

    def persisted(self, plan: Logical, key: object) -> Frame:
        """Run a plan and return a frame over its rows."""
        return self._scan(self.kept("persisted", plan, key))

    def dask_frame(self, plan: Logical, key: object) -> object:
        """Return a plan's rows as a Dask dataframe; raises `ClusterError` where there is no cluster."""
        self._check_open()
        return self._runner.dask_frame(plan, key)

    def load(self, plan: Logical) -> None:
        """Bring a table's columns into the column cache; raises `InvalidQuery` for a plan that is more than that."""
        self._check_open()
        self._runner.load(plan)

    def runs_on(self, runner: object) -> bool:
        return self._runner is runner

    def interrupt(self) -> None:
        """Stop what other threads run on this connection, or plan or fetch: there it raises `Interrupted`."""
        self._runner.interrupt()

    def stoppable(self) -> AbstractContextManager[object]:
        """Let `interrupt`, `statement_timeout` and Ctrl-C stop what is done inside a `with`."""
        return self._runner.stoppable()

    def forget(self, entry: object) -> None:
        """Drop the cached columns of a table that left the catalog; another entry, or None, has none."""
        self._runner.forget(entry)

    def close(self) -> None:
        """Let tables, plans and cached columns go; later calls raise `ConnectionClosed`."""
        self._check_open()
        self._closed = True
        try:
            left, self.catalog = self.catalog, Catalog()
            self._runner.clear()
            left.release()
            self._executed = local()
        except BaseException:
            self._closed = False  # another call ends it
            raise

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._closed:
            self.close()

    def __repr__(self) -> str:
        here = f"on the {self.device}, {len(self.catalog.names())} tables"
        on = f"to the server at {self.server}" if self.server else here
        state = "closed" if self._closed else on
        return f"<fuseline.Connection: {state}>"

    # Inside

    def _check_open(self) -> None:
        if self._closed:
            raise ConnectionClosed(
                "This connection is closed: open another with fuseline.connect()."
            )

    def _sql(self, tables: Mapping[str, Logical], text: str, params: Parameters) -> Frame:
        if self._closed:
            self._check_open()
        answer = run_text(self, self._runner, text, params, tables=tables)
        if type(answer) is CachedPlan:
            return frame_class()(self, answer.source, answer, answer.text)
        from .storage.tables.memory_table import MemoryTable

        return self._scan(MemoryTable("answer", answer.table, answer.types))

    def _rowset(self, text: str, params: Parameters, rows: pa.Table | None = None) -> Rowset:
        """Run all statements of a text and return what the last gave.

        `rows` has a column for each parameter of an INSERT ... VALUES that stores them all; raises `NotByRows` for other statements.
        """
        from .frame.batches import Rowset

        self._check_open()
        with self.stoppable():
            answer = run_text(self, self._runner, text, params, rows)
            if not isinstance(answer, CachedPlan):
                if not answer.is_asked:
                    return Rowset(None, count=-1 if answer.written is None else answer.written)
                from .plan.arrow.arrow_types import from_arrow

                types = answer.types or tuple(map(from_arrow, answer.table.schema.types))
                return Rowset(answer.table, types, answer.table.num_rows, self.stoppable)
            found = self._runner.answer(answer.source, answer)
            types = tuple(c.type for c in answer.source.columns)
            if isinstance(found, Result):
                return Rowset(found.to_arrow(), types, found.num_rows, self.stoppable, True)
            count = -1 if found.num_rows is None else found.num_rows
            return Rowset(found, types, count, found.stoppable, True)

    def _open_files(
        self, form: str, paths: Sequence[str], options: Mapping[str, object], access: Access
    ) -> ParquetTable | UnreadTable:
        from .lakes.open_lake import open_lake_or_files

        return open_lake_or_files(self._runner, form, paths, options, access)

    def _recursive(self, recursion: Recursion) -> CatalogTable:
        from .storage.tables.recursive_table import RecursiveTable, Rounds

        return RecursiveTable(recursion, Rounds(self.catalog.rows, lambda: self.settings))

    def _live(self, name: str, what: str) -> CatalogTable:
        from .storage.tables.memory_table import LiveTable

        return LiveTable(name, getattr(self._runner, what))

    def _scan(self, table: CatalogTable) -> Frame:
        made = tuple(new_column(name, data_type) for name, data_type in table.fields)
        return frame_class()(self, Scan(table, made, tuple(name for name, _ in table.fields)))
