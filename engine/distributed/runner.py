"""What a connection to a cluster has in the place of `running.QueryRunner`: it plans, and the crew runs."""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from ..backends import context_of
from ..catalog import Catalog
from ..errors import Unsupported
from ..frame.frame import Frame
from ..observe.profile import NodeProfile, PlanOrigin, Profile, WorkerReceipt
from ..operators import cpu
from ..operators.run_unfused import Operators, run_operators
from ..plan.logical import Logical
from ..plan.node import walk_once
from ..plan.physical import Physical, Stored
from ..plan.types import to_arrow
from ..plan.udf.python_function import PythonFunction
from ..plan_cache import CachedPlan
from ..reading import Reading
from ..running import Observer, QueryRunner
from ..runtime.in_pieces import Stream
from ..runtime.memory import MemoryBudget, ask_for_answer
from ..runtime.run import NOT_RUN, Result
from ..settings import FuseChoice, Settings
from ..stopping import Stop
from ..storage.tables.memory_table import WORKERS, MemoryTable, ShardedTable
from .clusters import cluster_of
from .crew import Crew, CrewAnswer
from .kept import frame_over, gathered, table_of
from .orders import Part
from .own_plans import FIRST, placement_for, whole_plan
from .partitions import is_dask_frame
from .sent_functions import digests_of

if TYPE_CHECKING:
    from dask import dataframe as dd


AT_CLIENT = "run by the client"
LAST_STEPS = Operators(cpu.OPERATORS, cpu.num_bytes)


class ArrowResult(Result):
    """Rows that have come as Arrow."""

    def to_arrow(self) -> pa.Table:
        assert isinstance(self.table, pa.Table)
        if self.budget.limit is not None:
            ask_for_answer(self.budget, self.table.nbytes)
        return self.table

    def tables(self) -> Generator[pa.Table]:
        yield self.to_arrow()


class ClusterRunner(QueryRunner):
    """Plans queries here and runs them on the workers of a cluster; answers come back as Arrow."""

    converts_files = False  # to a folder of this machine
    serves_shapes = False

    def __init__(
        self, catalog: Catalog, settings: Settings, cluster: object, workers: int | None
    ) -> None:
        super().__init__(catalog, settings)
        self._cluster = cluster_of(cluster, workers, self.device)
        try:
            self.crew = Crew(self._cluster, settings, self.device)
        except BaseException:
            self._cluster.close()
            raise

    def _fuse(self) -> FuseChoice:
        return "never"  # each worker makes pipelines of its own plan

    def _execute(self, prepared: CachedPlan, timed: bool, start: float, stop: Stop) -> ArrowResult:
        schedule, options = self._schedule_and_options(prepared, timed, start)
        begun = time.perf_counter()
        plan = schedule.plan
        answer = self.crew.run(plan, self.settings, options.timed, stop)
        rows, parts, _, placement = answer
        assert rows is not None
        table = self._ended(answer, plan, stop)
        seconds = time.perf_counter() - begun
        read = sum(part.bytes_read for part in parts)
        own = partial(whole_plan, plan, self.settings, placement, FIRST, self.crew.size)
        apart = seconds - max(part.seconds for part in parts)
        received = apart, rows.num_rows, rows.nbytes
        profile = Profile(
            lambda: _nodes(own().plan, parts, received),
            seconds,
            read,
            *options.planned,
            timed=options.timed,
            workers=tuple(map(_receipt, parts)),
        )
        return ArrowResult(
            table,
            plan.columns,
            "cpu",
            profile,
            self.backends["cpu"],
            MemoryBudget(options.memory_limit),
        )

    def _ended(self, answer: CrewAnswer, plan: Physical, stop: Stop) -> pa.Table:
        """Return the rows of a plan, of which its last steps may be left to do."""
        rows, rest = answer.rows, answer.rest
        assert rows is not None
        if rest is None:
            return rows.rename_columns([c.name for c in plan.columns])
        few = self.memory.last_steps(rest).run(rows)
        if few is not None:
            return few
        (stored,) = (node for node in walk_once(rest) if isinstance(node, Stored))
        given = cpu.from_arrow(rows, stored.columns)
        context = context_of(self.settings, self.cache, stop, self.memory)
        return cpu.to_arrow(run_operators(rest, (given,), context, LAST_STEPS), plan.columns)

    def _begin_reading(
        self, prepared: CachedPlan, start: float, in_parts: bool, stop: Stop
    ) -> Result | Reading:
        result = self._execute(prepared, False, start, stop)
        if not in_parts:
            return result
        profile = result.profile
        answer = Stream(result.tables(), result.columns, result.num_rows, lambda: profile)
        return Reading(answer, prepared.text, stop, self._running, self.stoppable)

    def kept(
        self, name: str, plan: Logical, key: object, columns: Sequence[str] = ()
    ) -> MemoryTable:
        """Run a plan and leave its rows where they are made, but for few or those of one worker."""
        names = list(columns) or [c.name for c in plan.columns]
        types = [c.type for c in plan.columns]
        fields = [(str(i), to_arrow(data_type)) for i, data_type in enumerate(types)]
        table = ShardedTable(name, pa.schema(fields).empty_table().rename_columns(names), types)
        prepared, start = self._cached_plan(plan, key), time.perf_counter()

        def run(stop: Stop) -> MemoryTable:
            schedule, _ = self._schedule_and_options(prepared, False, start)
            answer = self.crew.run(schedule.plan, self.settings, False, stop, table)
            parts = answer.parts
            if answer.rows is not None:
                rows = self._ended(answer, schedule.plan, stop)
                return MemoryTable(name, rows.rename_columns(names), types)
            table.rows, nbytes = (sum(part.kept[i] for part in parts) for i in range(2))
            is_small = nbytes < self.crew.placement(self.settings).whole_below
            return gathered(self.crew, table, stop.check) if is_small else table

        return self._run(prepared, run)

    def gathered(self, table: MemoryTable) -> MemoryTable:
        if not isinstance(table, ShardedTable):
            return table
        with self.stoppable() as stop:
            return gathered(self.crew, table, stop.check)

    def taken(self, name: str, source: object) -> MemoryTable | None:
        if isinstance(source, Frame) and source.runs_on(self):
            return self.kept(name, source.plan, None)
        if not is_dask_frame(source):
            return None
        with self.stoppable() as stop:
            return table_of(self.crew, name, source, stop.check)

    def dask_frame(self, plan: Logical, key: object) -> dd.DataFrame:
        table = self.kept("frame", plan, key)
        with self.stoppable() as stop:
            if isinstance(table, ShardedTable):
                return frame_over(self.crew, table, self.device == "gpu", stop.check)
        from dask.dataframe import from_pandas

        return from_pandas(table.data.to_pandas(), npartitions=1)

    def configure(self, new: Settings) -> None:
        super().configure(new)
        self.crew.configure(new)

    def planned(
        self, plan: Logical, key: object, observer: Observer | None
    ) -> tuple[Physical, PlanOrigin]:
        """Return the plan that the first worker runs, and whose it is."""
        (made, origin), crew = super().planned(plan, key, observer), self.crew
        placement = crew.placement(self.settings)
        placement, _ = placement_for(made, self.settings, placement, crew.size)
        return whole_plan(made, self.settings, placement, FIRST, crew.size).plan, origin

    def _contents(self, functions: Sequence[PythonFunction]) -> Sequence[object]:
        return digests_of(functions)

    def load(self, plan: Logical) -> None:
        raise Unsupported(
            "cache() has no meaning on a cluster yet: its workers keep the columns that queries read."
        )

    def columns(self) -> pa.Table:
        found = self.crew.ask_all("columns", self.catalog.identities())
        none = super().columns().slice(0, 0)
        return pa.concat_tables([none, *(table for table in found if table is not None)])

    def workers(self) -> pa.Table:
        """A row a worker; of one that says nothing the address alone."""
        said = self.crew.ask_all("state")
        rows = [
            found or {"worker": rank, "address": address}
            for rank, (address, found) in enumerate(zip(self.crew.addresses, said, strict=True))
        ]
        return pa.Table.from_pylist(rows, WORKERS)

    def clear(self) -> None:
        super().clear()
        self.crew.close()


def _receipt(part: Part) -> WorkerReceipt:
    return WorkerReceipt(part.rank, part.seconds, part.bytes_read, part.meetings, part.nodes)


def _nodes(
    plan: Physical, parts: list[Part], received: tuple[float, int, int]
) -> tuple[NodeProfile, ...]:
    """The nodes of the first worker's plan: the time of the slowest worker, and the rows and bytes of all together.

    `received` are the seconds, rows and bytes of what came here: a gather at the end is the client's.
    """
    nodes = list(walk_once(plan))
    measured = [part.nodes for part in parts if part.nodes]
    above = len(nodes) - len(measured[0]) if measured else 0
    if above > 0:
        found = map(_together, nodes[above:], zip(*measured, strict=True))
        last = NodeProfile(nodes[above - 1], above - 1, *received)
        steps = (
            NodeProfile(n, i, *NOT_RUN, remark=AT_CLIENT) for i, n in enumerate(nodes[: above - 1])
        )
        return *steps, last, *(replace(n, depth=n.depth + above) for n in found)
    if not measured or len(measured[0]) != len(nodes):
        return tuple(NodeProfile(node, 0, *NOT_RUN) for node in nodes)
    return tuple(map(_together, nodes, zip(*measured, strict=True)))


def _together(node: Physical, of_workers: tuple[NodeProfile, ...]) -> NodeProfile:
    times = [found.seconds for found in of_workers]
    remark = f"{len(times)} workers, {min(times) * 1e3:.2f} to {max(times) * 1e3:.2f} ms"
    rows, size = sum(w.rows for w in of_workers), sum(w.bytes for w in of_workers)
    return replace(
        of_workers[0], node=node, seconds=max(times), rows=rows, bytes=size, remark=remark
    )
