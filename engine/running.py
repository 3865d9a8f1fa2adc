"""How a connection runs bound queries: planned for the settings and files of now, executed on its device, stopped from outside."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet, ref

from . import backends
from .backends import context_of
from .catalog import Catalog
from .deep import deeply, is_deep, retried_deeply
from .errors import ClusterError, ConnectionClosed, FileError, FuselineError
from .operators.context import PlanMemory
from .plan.files.asked_columns import UnreadColumns, check_columns_read
from .plan.logical import CatalogTable, Logical
from .plan.node import Node
from .plan.physical import Physical
from .plan.statements import Statement
from .plan.udf.python_function import PythonFunction
from .plan.udf.settled_calls import contents_of, functions_of, settled
from .plan_cache import CachedPlan, PlanCache
from .progress.run_progress import Progress, QueryProgress
from .reading import Reading
from .runtime.executor import execute, load_columns, stream
from .runtime.in_pieces import Stream, stream_of
from .runtime.run import Result, RunOptions
from .runtime.schedule import Schedule
from .settings import FuseChoice, Settings
from .stopping import Stop, Stoppable, anywhere, current
from .storage.remote.object_stores import Patience
from .storage.spill_folders import SpillFolder
from .storage.tables.access import AccessRules
from .threads.fork_locks import new_reentrant_lock

if TYPE_CHECKING:
    import pyarrow as pa
    from dask import dataframe as dd

    from .observe.profile import PlanOrigin, Profile
    from .storage.tables.memory_table import MemoryTable

T = TypeVar("T")
Observer = Callable[[str, Node], None]
NO_REMOTE = "A cluster does not read remote files: copy them to a disk that its workers share."
CLOSED = "The connection of this answer is closed: no more of its rows are made."


class QueryRunner:
    """The settings, backends and caches of one connection, and the queries that run with them, maybe in several threads."""

    converts_files = True  # others than Parquet
    server = ""  # the address of the one that carries out texts, where that is not done here
    serves_shapes = True  # one plan for texts that differ in constants

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self.catalog = catalog
        self.settings = settings
        self.device = backends.resolve_device(settings)
        self.backends = backends.load_backends(self.device, settings)
        self.cache = backends.column_cache(self.device, settings)
        self.plans = PlanCache(catalog, self.serves_shapes)
        self.memory = PlanMemory()
        self._running: set[Stop] = set()
        self.listener: Callable[[QueryProgress], object] | None = None
        self._readings: set[ref[Reading]] = set()  # with rows that are still to be made
        catalog.restrict(self._rules(settings))
        catalog.plan_by(settings)
        self._lock = new_reentrant_lock()
        self._folders: WeakSet[SpillFolder] = WeakSet()

    def configure(self, new: Settings) -> None:
        """Go on with other settings; raises `DeviceError` and changes nothing where they ask for a GPU that cannot be used."""
        with self._lock:
            device = backends.resolve_device(new)
            self.backends = backends.load_backends(device, new)
            self.device, self.settings = device, new
            self.catalog.restrict(self._rules(new))
            self.catalog.plan_by(new)
            self.cache.to_host = backends.host_tier(device)
            self.cache.set_limits(backends.cache_limits(device, new))

    def _rules(self, settings: Settings) -> AccessRules:
        """Return which files may be opened, with the credentials that the session has."""
        patience = Patience(settings.http_timeout, settings.http_retries)
        rules = AccessRules.of(settings.external_access, settings.allowed_paths, patience)
        refusal = "" if self.converts_files else NO_REMOTE
        return rules.with_remote(self.catalog.access.rules.remote.secrets, refusal)

    def run(self, plan: Logical, key: object, timed: bool) -> Result:
        """Run a plan; where `key` is prepared already, that is run."""
        start = time.perf_counter()
        prepared = key if type(key) is CachedPlan else self.plans.of_plan(plan)
        return self._run(prepared, partial(self._execute, prepared, timed, start))

    def read(self, plan: Logical, key: object) -> Reading:
        """Run a plan, as far as there is room for its rows, and return what gives them one table after the other."""
        found = self._begin(plan, key, in_parts=True)
        assert isinstance(found, Reading)
        return found

    def kept(
        self, name: str, plan: Logical, key: object, columns: Sequence[str] = ()
    ) -> MemoryTable:
        """Run a plan and return its rows as a table, on a cluster where they are made; `columns` are its columns' names, if other ones."""
        from .storage.tables.memory_table import MemoryTable

        rows = self.run(plan, key, timed=False).to_arrow()
        named = rows.rename_columns(list(columns)) if columns else rows
        return MemoryTable(name, named, [c.type for c in plan.columns])

    def gathered(self, table: MemoryTable) -> MemoryTable:
        """Return a table with its rows here."""
        return table

    def taken(self, name: str, source: object) -> MemoryTable | None:
        """Return a table of an object whose rows a cluster's workers have; None of any other."""
        return None

    def dask_frame(self, plan: Logical, key: object) -> dd.DataFrame:
        """Return a plan's rows as a Dask dataframe; raises `ClusterError` where there is no cluster."""
        raise ClusterError(
            "to_dask() gives partitions of a cluster's workers: open the connection with connect(cluster=...)."
        )

    def answer(self, plan: Logical, key: object) -> Result | Reading:
        """Run a plan and return its result, or what makes its rows where there is no room for them."""
        return self._begin(plan, key, in_parts=False)

    def _begin(self, plan: Logical, key: object, in_parts: bool) -> Result | Reading:
        start = time.perf_counter()
        prepared = self._cached_plan(plan, key)
        return self._run(prepared, partial(self._begin_reading, prepared, start, in_parts))

    def _run(self, prepared: CachedPlan, work: Callable[[Stop], T]) -> T:
        """Do the work of a query, which can be stopped, and again with a large stack where it nests too deeply for this one."""
        if self.catalog.failed:
            self.catalog.check_transaction()
        outer = current()
        try:
            if outer is not None and outer in self._running:  # stopped together with what asks
                return self._run_with_progress(prepared, work, outer)
            with self.stoppable() as stop:
                return self._run_with_progress(prepared, work, stop)
        except FuselineError as error:
            self.catalog.fail()
            prepared.place(error)
            error.with_text(prepared.text)
            raise
        except RecursionError:
            if is_deep():
                raise
        return deeply(partial(self._run, prepared, work))

    def _run_with_progress(self, prepared: CachedPlan, work: Callable[[Stop], T], stop: Stop) -> T:
        """Do work that counts how far it is; rows that are made while they are read go on with it."""
        outer, run = stop.progress, partial(work, stop)
        stop.progress = progress = Progress(self.listener, outer)
        if self.settings.enable_progress_bar and outer is None:
            from .progress.progress_bar import with_bar

            run = partial(with_bar, run, progress, self.settings.progress_bar_time / 1e3)
        try:
            try:
                answer = run()
            except FileError:
                if not prepared.stale_tables():
                    raise
                answer = run()  # a file was written while it was read: nothing of that was kept
            if type(answer) is Result or not isinstance(answer, Reading) or answer.is_made:
                progress.end()
            else:
                outer = progress
            return answer
        finally:
            stop.progress = outer
            for table in prepared.passing:
                self.forget(table)

    def admit(self, statement: Statement) -> None:
        """Raise for a statement, other than a query, that is not to be carried out: a server's runner refuses some."""

    def planned(
        self, plan: Logical, key: object, observer: Observer | None
    ) -> tuple[Physical, PlanOrigin]:
        """Return the plan that a query runs by, made for its runs where there is none, and whose it is.

        With `observer` it is planned once more, to give that each step that changed something.
        """
        start = time.perf_counter()
        with self.stoppable():
            prepared = self._cached_plan(plan, key)
            schedule, is_known = retried_deeply(lambda: self._schedule(prepared))
            if observer is not None:
                retried_deeply(lambda: self._plan(prepared.plan, observer))
            return schedule.plan, prepared.take_planning(is_known, start)[2]

    def load(self, plan: Logical) -> None:
        """Bring a table's columns into the column cache; raises `InvalidQuery` for a plan that is more than that."""
        scan = backends.table_scan(self.planned(plan, None, None)[0])
        if self.settings.fuse == "never":
            self.run(plan, None, timed=False)
            return
        with self.stoppable() as stop:
            load_columns(
                scan, self.backends, context_of(self.settings, self.cache, stop, self.memory)
            )

    def interrupt(self) -> None:
        """Stop what runs: in its threads it raises `Interrupted`."""
        for stop in (*self._running, *(reading.stop for reading in self._read_now())):
            stop.ask()

    def stoppable(self) -> AbstractContextManager[Stop]:
        """Let `interrupt`, the time limit and Ctrl-C stop the work inside, together with the work that it is part of."""
        outer = current()
        if outer is not None and outer in self._running:
            return nullcontext(outer)
        return Stoppable(outer or Stop(self.settings.statement_timeout), self._running)

    def progress(self) -> QueryProgress | None:
        """Return how far the query is that runs, the one begun last if there are several; None if there is none."""
        stops = (*self._running, *(reading.stop for reading in self._read_now()))
        found = [s.progress.outermost for s in stops if s.progress is not None]
        running = [progress for progress in found if not progress.is_ended]
        return max(running, key=lambda each: each.began).snapshot() if running else None

    def forget(self, entry: object) -> None:
        """Drop the cached columns of a table that left the catalog; another entry, or None, has none."""
        identity = getattr(entry, "identity", None)
        if identity is not None:
            self.cache.drop(identity)

    def columns(self) -> pa.Table:
        """Return what `fuseline_columns()` tells."""
        from .storage.tables.cached_columns import cached_columns

        return cached_columns(self.cache, self.catalog.identities())

    def workers(self) -> pa.Table:
        """Return what `fuseline_workers()` tells: nothing without a cluster."""
        from .storage.tables.memory_table import WORKERS

        return WORKERS.empty_table()

    def clear(self) -> None:
        """Let plans, cached columns and answers whose rows are still to be made go."""
        for reading in self._read_now():
            reading.close(ConnectionClosed(CLOSED))
        self.cache.close()
        self.plans.clear()
        for folder in self._folders:
            folder.remove()

    def new_folder(self) -> SpillFolder:
        """Make a folder for rows that later queries read again; raises `OSError`."""
        folder = SpillFolder(self.settings.spill_dir)
        self._folders.add(folder)
        return folder

    def _cached_plan(self, plan: Logical, key: object) -> CachedPlan:
        return key if isinstance(key, CachedPlan) else self.plans.of_plan(plan)

    def _renew(self, prepared: CachedPlan, renewed: Mapping[CatalogTable, CatalogTable]) -> None:
        """Give a plan, and the names of the catalog, other tables for those that it has."""
        for old, new in renewed.items():
            if not hasattr(old, "stays_in_catalog"):
                self.catalog.replace_table(old, new)
                self.forget(old)
        prepared.replace_tables(renewed)

    def _execute(self, prepared: CachedPlan, timed: bool, start: float, stop: Stop) -> Result:
        """Plan a query for the files as they are now, where that is to be done, and run it."""
        schedule, options = self._schedule_and_options(prepared, timed, start)
        context = context_of(self.settings, self.cache, stop, self.memory)
        result = execute(schedule, self.backends, context, options)
        if self.settings.debug > 0:
            self._show(schedule, result.profile)
        return result

    def _show(self, schedule: Schedule, profile: Profile) -> None:
        from .observe.trace import show_run

        show_run(schedule.plan, profile, self.settings.debug)

    def _rows_to_the_end(
        self, answer: Stream, schedule: Schedule, progress: Progress, prepared: CachedPlan
    ) -> Generator[pa.Table]:
        try:
            yield from answer.tables
        except FuselineError as error:
            prepared.place(error)
            raise
        progress.end()
        if self.settings.debug > 0:
            self._show(schedule, answer.profile())

    def _begin_reading(
        self, prepared: CachedPlan, start: float, in_parts: bool, stop: Stop
    ) -> Result | Reading:
        schedule, options = self._schedule_and_options(prepared, False, start)
        context = context_of(self.settings, self.cache, stop, self.memory)
        answer = stream(schedule, self.backends, context, options)
        if isinstance(answer, Result):
            if self.settings.debug > 0:
                self._show(schedule, answer.profile)
            if not in_parts:
                return answer
            answer = stream_of(answer, schedule.plan, context)
        else:
            answer = replace(
                answer, tables=self._rows_to_the_end(answer, schedule, context.progress, prepared)
            )
        reading = Reading(answer, prepared.text, stop, self._running, self.stoppable)
        if not reading.is_made:
            self._readings.add(ref(reading, self._readings.discard))
        return reading

    def _read_now(self) -> list[Reading]:
        return [found for known in tuple(self._readings) if (found := known()) is not None]

    def _schedule_and_options(
        self, prepared: CachedPlan, timed: bool, start: float
    ) -> tuple[Schedule, RunOptions]:
        """Return what is to be executed, and how."""
        settings = self.settings
        schedule, cached = self._schedule(prepared)
        timed = timed or settings.debug > 0
        limits = settings.memory_limit, settings.spill_dir, settings.spill_memory
        return schedule, RunOptions(timed, *limits, prepared.take_planning(cached, start))

    def _schedule(self, prepared: CachedPlan) -> tuple[Schedule, bool]:
        """Return the physical plan under the settings of now, and whether it was known."""
        if stale := prepared.stale_tables():
            self._renew(prepared, {table: table.reopened() for table in stale})
        settings = self.settings
        if prepared.functions:
            prepared.look_at_functions(self._contents(prepared.functions))
        same = prepared.settings is settings or prepared.settings == settings
        if same and (schedule := prepared.schedule) is not None:
            return schedule, True
        observer = _observer(settings.debug)
        plan = partial(self._plan, observer=observer)
        while True:
            try:
                schedule = self.plans.schedule(prepared, plan, settings)
                break
            except UnreadColumns as unread:
                lacking = unread.columns
            self._renew(prepared, {t: t.with_columns(names) for t, names in lacking.items()})  # type: ignore[attr-defined]
        prepared.schedule, prepared.settings = schedule, settings
        return schedule, False

    def _contents(self, functions: Sequence[PythonFunction]) -> Sequence[object]:
        """Return what the values of Python functions depend on now."""
        return contents_of(functions)

    def _settle_functions(self, plan: Logical) -> Logical:
        """Return a plan with its Python functions as they are now."""
        if not functions_of(plan):
            return plan
        return settled(plan, backends.function_compiler(self.device, self.settings.cache_dir))

    def _fuse(self) -> FuseChoice:
        """Which chains of a plan become pipelines here."""
        return self.settings.fuse

    def _plan(self, plan: Logical, observer: Observer | None) -> Physical:
        from .planner import plan_query

        plan = self._settle_functions(plan)
        physical = anywhere(
            lambda: plan_query(
                plan,
                device=self.device,
                unsupported=self.backends[self.device].unsupported,
                observer=observer,
                check=self.settings.check,
                fuse=self._fuse(),
                look_at=partial(check_columns_read, plan),
            )
        )
        backends.check_placement(physical, self.backends, self.settings)
        return physical


def _observer(debug: int) -> Observer | None:
    if debug < 3:
        return None
    from .observe.trace import show_step

    return show_step
