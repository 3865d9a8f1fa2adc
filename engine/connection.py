"""The connection: a catalog, and the way of a query from its text to what `running` runs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

from .catalog import Catalog, file_paths
from .deep import deeply_for
from .errors import (
    ClusterError,
    ConnectionClosed,
    FuselineError,
    InvalidQuery,
    WrongArguments,
    install,
    shown,
)
from .fence import fenced
from .import_ahead import import_ahead
from .plan.expr import new_column
from .plan.logical import CatalogTable, Logical, Scan
from .plan.physical import Physical
from .plan.statements import Query
from .plan_cache import CachedPlan, Parameters
from .running import Observer, QueryRunner
from .runtime.run import Result
from .settings import Settings
from .settings_lock import check_change
from .stopping import Stop
from .storage.columns.cache import ColumnCache
from .storage.spill_folders import sweep

if TYPE_CHECKING:
    from .frame.cursor import Cursor
    from .frame.frame import Frame
    from .reading import Reading
    from .run_statements import Answer
    from .storage.tables.memory_table import MemoryTable

__all__ = ["Connection", "Result", "connect"]

Path = str | PathLike[str]
MakeRunner = Callable[[Catalog, Settings], QueryRunner]


@fenced
def connect(
    device: str | None = None,
    *,
    cluster: object = None,
    workers: object = None,
    **settings: object,
) -> Connection:
    """Open a connection with an empty catalog.

    `device` is "auto" (the GPU when one can be used), "gpu" or "cpu"; the other settings are those of `Settings`, such as
    `memory_limit="4GB"` or `require_gpu=True`.  What is not given comes from `FUSELINE_*` variables.  Raises `DeviceError`,
    saying what is missing, for a GPU that cannot be used.

    With `cluster` queries run on a Dask cluster: "local" starts one with so many `workers` (by default one for each GPU, or for a few
    cores), a scheduler's address or a Dask client names one that runs.  Raises `ClusterError` for one that cannot be used.
    """
    chosen = Settings.from_environment()
    for name, value in {"device": device, **settings}.items():
        if value is not None:
            chosen = chosen.with_option(name, value)
    if cluster is None:
        if workers is not None:
            raise WrongArguments('workers= goes with cluster="local".')
        return Connection(chosen)
    if workers is not None and (not isinstance(workers, int) or workers < 1):
        raise WrongArguments(f"workers= takes a number of processes, not {shown(workers)}.")
    try:
        from .distributed.runner import ClusterRunner
    except ModuleNotFoundError as error:
        raise ClusterError(f"{error.name} is not installed: {install('dask')}.") from error
    return Connection(chosen, partial(ClusterRunner, cluster=cluster, workers=workers))


@fenced
class Connection:
    """Runs SQL over Parquet files, registered objects and its own tables.

    Goes on working after every error.  May be used by several threads: changes of the catalog are atomic, and a query
    keeps the tables that it began with.
    """

    def __init__(self, settings: Settings | None = None, runner: MakeRunner = QueryRunner) -> None:
        self.catalog = Catalog(
            {
                "fuseline_columns": partial(self._live, "fuseline_columns", "columns"),
                "fuseline_workers": partial(self._live, "fuseline_workers", "workers"),
            }
        )
        self._initial = settings or Settings.from_environment()
        self._runner = runner(self.catalog, self._initial)
        self._closed = False
        sweep(self._initial.spill_dir)
        import_ahead(self.device)

    @property
    def device(self) -> str:
        """Where queries run: gpu or cpu."""
        return self._runner.device

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
        from .frame.frame import Frame

        answer = self._answer(text, params)
        if isinstance(answer, CachedPlan):
            return Frame(self, answer.source, answer, answer.text)
        from .storage.tables.memory_table import MemoryTable

        return self._scan(MemoryTable("answer", answer.table))

    def execute(self, text: str, params: Parameters = None) -> Cursor:
        """Run all statements of a text and return a cursor over the rows of the last."""
        from .frame.cursor import Cursor

        with self.stoppable():
            answer = self._answer(text, params)
            if isinstance(answer, CachedPlan):
                found = self._runner.answer(answer.source, answer)
                table = found.to_arrow() if isinstance(found, Result) else found
                types, written = [c.type for c in answer.source.columns], None
            else:
                from .plan.types import from_arrow

                table, written = answer.table, answer.written
                types = [from_arrow(t) for t in table.schema.types]
        return Cursor(table, types, written, self.stoppable)

    def table(self, name: str) -> Frame:
        """Return a table or view of the catalog; raises `UnknownName`."""
        self._check_open()
        table = self.catalog.table(name)
        if table is not None:
            return self._scan(table)
        if self.catalog.view(name) is None:
            raise self.catalog.unknown(name)
        quoted = name.replace('"', '""')
        return self.sql(f'SELECT * FROM "{quoted}"')

    def read_parquet(
        self, path: Path | Sequence[Path], name: str | None = None, **options: object
    ) -> Frame:
        """Return the table of a file, a list of files, a glob or a directory; reads the footers alone.

        With `name` it can be used in SQL.  Options: hive_partitioning, hive_types_autocast, filename.  Raises `DataError`,
        naming the file, for files that are missing, damaged or of different columns.
        """
        self._check_open()
        table = self.catalog.read_parquet(file_paths(path), options)
        if name is not None:
            table = replace(table, name=name)
            self.forget(self.catalog.put(table))
        _warn_of_columns(table.name, table.unsupported)
        return self._scan(table)

    def register(self, name: str, source: object) -> Frame:
        """Make an object usable in SQL, in the place of what had the name; returns it as a Frame.

        Takes pyarrow Tables, RecordBatches, RecordBatchReaders and Datasets, pandas and Polars frames, dictionaries of
        arrays, cuDF frames, CuPy arrays, a Frame, and anything with `__arrow_c_stream__`; on a cluster a Dask dataframe too, of
        which each worker takes the partitions that it has.
        """
        from .interop.device_frames import ingest_device
        from .interop.ingest import ingest
        from .storage.tables.memory_table import MemoryTable

        self._check_open()
        table = self._runner.taken(name, source)
        if table is None and self.device == "gpu":
            table = ingest_device(name, source)
        if table is None:
            table = MemoryTable(name, ingest(source))
        self.forget(self.catalog.put(table))
        _warn_of_columns(name, table.unsupported)
        return self._scan(table)

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
        self._check_open()
        return self._runner.run(plan, key, timed)

    def stream(self, plan: Logical, key: object = None) -> Reading:
        """Run a plan, as far as there is room for its rows, and return what gives them one table after the other."""
        self._check_open()
        return self._runner.read(plan, key)

    def physical(self, plan: Logical, observer: Observer | None = None) -> Physical:
        """Return the placed physical plan of a query; `observer` gets each step that changed something."""
        self._check_open()
        return self._runner.physical(plan, observer)

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
        """Let tables, plans and cached columns go; later calls raise `ConnectionClosed`, but for another `close`."""
        self._closed = True
        self.catalog = Catalog()
        self._runner.clear()

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        tables = len(self.catalog.names())
        state = "closed" if self._closed else f"on the {self.device}, {tables} tables"
        return f"<fuseline.Connection: {state}>"

    # Inside

    def _check_open(self) -> None:
        if self._closed:
            raise ConnectionClosed(
                "This connection is closed: open another with fuseline.connect()."
            )

    def _live(self, name: str, what: str) -> CatalogTable:
        from .storage.tables.live_table import LiveTable

        return LiveTable(name, getattr(self._runner, what))

    def _scan(self, table: CatalogTable) -> Frame:
        from .frame.frame import Frame

        made = tuple(new_column(name, data_type) for name, data_type in table.fields)
        return Frame(self, Scan(table, made, tuple(name for name, _ in table.fields)))

    def _answer(self, text: str, params: Parameters) -> CachedPlan | Answer:
        """Return the last statement's rows, or for a query what is needed to run it."""
        self._check_open()
        start = time.perf_counter()
        answer: CachedPlan | Answer | None = self._runner.plans.find_text(text, params)
        if not isinstance(answer, CachedPlan) or answer.stale_tables():
            with self._runner.stoppable() as stop:
                answer = deeply_for(text, partial(self._bind, text, params, stop))
        if isinstance(answer, CachedPlan):
            answer.spent = time.perf_counter() - start
        return answer

    def _bind(self, text: str, params: Parameters, stop: Stop) -> CachedPlan | Answer:
        from .run_statements import run_statement
        from .sql import plan_sql

        version = self.catalog.version
        answers: list[CachedPlan | Answer] = []
        try:
            statements = plan_sql(text, self.catalog, params)
            while (statement := stop.anywhere(partial(next, statements, None))) is not None:
                if answers:
                    stop.restart()
                if answers and isinstance(answers[-1], CachedPlan):
                    self.run(answers[-1].source, answers[-1])  # its rows go nowhere, its errors do
                if isinstance(statement, Query):
                    answers.append(stop.anywhere(partial(CachedPlan, statement.plan, text)))
                else:
                    answers.append(run_statement(self, statement))
        except FuselineError as error:
            error.with_text(text)
            raise
        if not answers:
            raise InvalidQuery("There is no statement in the text.")
        if len(answers) == 1 and isinstance(answers[0], CachedPlan):
            self._runner.plans.keep_text(text, params, answers[0], version)
        return answers[-1]


def _warn_of_columns(name: str, unsupported: Mapping[str, object]) -> None:
    """Say which columns a Frame does not have; SQL that asks for one raises instead."""
    if unsupported:
        columns = ", ".join(f'"{column}" ({kind})' for column, kind in unsupported.items())
        warnings.warn(
            f'The table "{name}" is without the columns {columns}, of types that queries cannot read.',
            stacklevel=3,
        )
