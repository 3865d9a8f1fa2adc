"""A worker's side of a cluster: an actor with the whole engine in it, which runs each query's plan over its share of the tables."""

from __future__ import annotations

import platform
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import cast

import pyarrow as pa
from distributed import get_worker

from ..backends import cache_limits, load_backends, resolve_device
from ..errors import ClusterError, FuselineError
from ..fence import internal_error
from ..observe.profile import NodeProfile
from ..operators.plan_memory import PlanMemory
from ..plan.node import walk_once
from ..plan.physical import ConcatRows, ParquetScan, Physical
from ..planner import plan_of_worker
from ..running import context_of
from ..runtime.executor import execute
from ..runtime.run import RunOptions
from ..runtime.schedule import Schedule, schedule_of
from ..settings import Settings, usable_cores
from ..stopping import Stop, Stoppable
from ..storage.columns.cache import ColumnCache
from ..storage.shards import share_of
from ..storage.tables.parquet import ParquetTable
from .meetings import Meetings, QueryPeers

FIRST = 0  # the worker that gathers
COMPARED = ("fuseline", "pyarrow", "numpy", "numba", "distributed")


@dataclass(frozen=True)
class QueryOrder:
    """A query as all workers get it: its number, the number of its plan, the plan where it was not sent before, and settings."""

    query: int
    plan: int
    sent: Physical | None
    settings: Settings
    below: int  # bytes of columns that each worker reads whole
    timed: bool


@dataclass(frozen=True)
class Part:
    """What one worker says after a query: rows (the first worker alone), or the error that ended it; `lost`: another worker's.

    `nodes` are those of its plan in the order of its profile, without the plan, where the run was timed.
    """

    rows: pa.Table | None = None
    error: FuselineError | None = None
    lost: bool = False
    bytes_read: int = 0
    nodes: tuple[NodeProfile, ...] = ()


class WorkerSession:
    """The engine of one worker; queries run one after the other, in the actor's thread."""

    def __init__(self, crew: str, rank: int, addresses: list[str], settings: Settings) -> None:
        self._rank, self._workers = rank, len(addresses)
        self._meetings = Meetings(get_worker(), crew, rank, addresses)
        self._neighbours = sum(_host(address) == _host(addresses[rank]) for address in addresses)
        self._cache = ColumnCache(0)
        self._configure(settings)
        self._memory = PlanMemory()
        self._running: tuple[int, Stop] | None = None
        self._stopped = -1  # queries up to this one

    def _configure(self, settings: Settings) -> None:
        """Take settings over; what a host has is shared with the workers beside this one."""
        self._given = settings
        threads = max(1, min(settings.threads, usable_cores() // self._neighbours))
        self._settings = settings = replace(settings, threads=threads)
        self._device = resolve_device(settings)
        self._backends = load_backends(self._device, settings)
        limits = dict(cache_limits(self._device, settings))
        if settings.column_cache_limit is None:
            limits["cpu"] //= self._neighbours
        self._cache.set_limits(limits)
        self._schedules: dict[int, Schedule] = {}

    def room(self) -> int:
        """The bytes of columns that this worker keeps."""
        return self._cache.limit(self._device)

    def described(self) -> dict[str, str]:
        """What must be the same on all workers and the client."""
        return description(self._device)

    async def stop(self, query: int, why: str) -> None:
        """End a query, also while its thread is busy; runs on the worker's event loop."""
        self._stopped = max(self._stopped, query)
        self._meetings.leave(query, why)
        running = self._running
        if running is not None and running[0] <= query:
            running[1].ask()

    async def close(self) -> None:
        """Let columns, plans and what other workers might send go."""
        self._meetings.close()
        self._cache.clear()
        self._schedules.clear()

    def run(self, order: QueryOrder) -> Part:
        """Run a query; an error is part of the answer, since one that is raised here would reach the client without its place."""
        try:
            return self._run(order)
        except BaseException as error:
            found = error if isinstance(error, FuselineError) else internal_error(error)
            found.__cause__ = found.__context__ = None  # whose frames no other process has
            self._meetings.fail(order.query, f"Worker {self._rank} failed: {found.message}")
            lost = isinstance(error, ClusterError)
            return Part(error=found.with_traceback(None), lost=lost)
        finally:
            self._meetings.end(order.query)

    def _run(self, order: QueryOrder) -> Part:
        if order.settings != self._given:
            self._configure(order.settings)
        settings = self._settings
        if order.sent is not None:
            check_files(order.sent)
            own = own_plan(order.sent, settings, order.below, self._rank, self._workers)
            self._schedules[order.plan] = schedule_of(own)
        schedule = self._schedules[order.plan]
        stop = Stop()
        self._running = order.query, stop
        if order.query <= self._stopped:
            stop.ask()
        with Stoppable(stop):
            context = context_of(settings, self._cache, stop, self._memory)
            context.peers = QueryPeers(self._meetings, order.query, stop.check)
            options = RunOptions(
                order.timed, settings.memory_limit, settings.spill_dir, settings.spill_memory
            )
            result = execute(schedule, self._backends, context, options)
            rows = result.to_arrow() if self._rank == FIRST else None
        nodes = tuple(map(_sent, result.profile.nodes)) if order.timed else ()
        return Part(rows, bytes_read=context.bytes_read, nodes=nodes)


def own_plan(plan: Physical, settings: Settings, below: int, rank: int, workers: int) -> Physical:
    """Return what one worker runs of a placed plan; `below` are the bytes of columns that each reads whole."""
    own = partial(share, below, rank, workers)
    return plan_of_worker(plan, own, workers=workers, small=below, fuse=settings.fuse)


def share(below: int, rank: int, workers: int, scan: ParquetScan) -> ParquetScan | None:
    """Return a worker's share of a scan; None where its columns take less than so many bytes, so that each worker has all of them."""
    table = cast("ParquetTable", scan.table)
    chosen = table.all_row_groups if scan.selection is None else scan.selection
    if sum(table.sizes.plain(scan.sources, part) for part in chosen) < below:
        return None
    return scan.replaced(selection=share_of(table, chosen, rank, workers))


def check_files(plan: Physical) -> None:
    """Raise `ClusterError` where a worker's files are not those of the client."""
    for node in walk_once(plan):
        table = getattr(node, "table", None)
        if isinstance(table, ParquetTable) and not table.is_current():
            raise ClusterError(f"The files of {table.name} are not the same on all workers.")


def _sent(node: NodeProfile) -> NodeProfile:
    """What is known of a node, without its plan and programs, which the client has no use for."""
    receipt = node.receipt
    if receipt is not None:
        builds = tuple(replace(build, program=None) for build in receipt.builds)
        receipt = replace(receipt, program=None, builds=builds)
    return replace(
        node, node=ConcatRows((), ()), receipt=receipt, host_values=dict(node.host_values)
    )


def _host(address: str) -> str:
    """Where a worker is: `tcp://10.0.0.7:4321` without its port."""
    return address.rpartition(":")[0]


def description(device: str) -> dict[str, str]:
    """Return what must be the same on all workers and the client."""
    found = {"device": device, "Python": ".".join(platform.python_version_tuple()[:2])}
    for package in COMPARED:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
