"""A worker's side of a cluster: an actor with the whole engine in it, which runs each query's plan over its share of the tables."""

from __future__ import annotations

import asyncio
import os
import platform
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, WeakValueDictionary, ref

import pyarrow as pa
from distributed import get_worker

from ..backends import (
    cache_limits,
    column_store,
    context_of,
    device_memory,
    host_tier,
    load_backends,
    resolve_device,
)
from ..errors import ClusterError, FuselineError
from ..fence import internal_error
from ..operators.context import Context, PlanMemory
from ..operators.exchange.agree_columns import agree
from ..planner import Claim
from ..runtime.executor import execute
from ..runtime.run import RunOptions
from ..runtime.schedule import schedule_of
from ..settings import Settings, usable_cores
from ..stopping import Stop, Stoppable
from ..storage.columns.cache import ColumnCache
from ..storage.tables.cached_columns import cached_columns
from ..storage.tables.memory_table import MemoryTable, ShardedTable
from ..threads.fork_locks import new_lock
from .local_calls import LocalDoor
from .meetings import Meetings
from .orders import Part, QueryOrder, stream_of, unpacked, without_plan
from .own_plans import OwnPlan, check_files, own_plan
from .partitions import arrow_of, taken
from .query_calls import keep_freed_memory, serve
from .query_events import QueryEvents
from .query_peers import QueryPeers
from .trials import TrialKind, trial_seconds
from .versions import description
from .worker_link import WorkerLink

if TYPE_CHECKING:
    from distributed import Worker

KEPT_SCHEDULES = 512
KEPT_STOPS = 1000  # numbers of queries that were to end before they began
WATCH_SECONDS = 0.5  # between two looks whether the client is there

SESSIONS: WeakValueDictionary[str, WorkerSession] = WeakValueDictionary()  # by their actors' keys
_crews = count()
# Of each worker, held by what runs for any client: queries come in the threads of their lines, all else in the actors'
_alone: WeakKeyDictionary[Worker, threading.Lock] = WeakKeyDictionary()


class WorkerSession:
    """The engine of one worker; queries run one after the other."""

    def __init__(self, settings: Settings) -> None:
        keep_freed_memory()
        self._worker = get_worker()
        self._alone = _alone.setdefault(self._worker, new_lock())
        self._events = QueryEvents(self._worker)
        self._turn = next(_crews)
        self._team = -1
        self._rank, self._workers, self._neighbours = 0, 1, 1
        self._meetings: Meetings | None = None
        self._link = WorkerLink()
        self._cache = ColumnCache(0)
        self._schedules: OrderedDict[tuple[int, int], OwnPlan] = OrderedDict()  # by team and plan
        self._cut_rows: dict[Hashable, int] = {}  # at which keys of tables are cut
        self._confirmed: set[Claim] = set()
        self._tables: dict[
            Hashable, MemoryTable
        ] = {}  # by the identity that each has at the client
        self._read: dict[str, pa.Table] = {}  # of dataframes, until all workers have read theirs
        self._memory = PlanMemory()
        self._running: tuple[int, Stop] | None = None
        self._stopped: deque[int] = deque(maxlen=KEPT_STOPS)
        self._configure(settings)
        key = self._worker.get_current_task()
        SESSIONS[key] = self
        serve(self._worker, SESSIONS)
        self._door = LocalDoor(self._worker, self)
        self._worker.loop.add_callback(_watch, ref(self), self._worker, key)

    def _configure(self, settings: Settings) -> None:
        """Take settings over; what a host has is shared with the workers beside this one."""
        self._given = settings
        threads = max(1, min(settings.threads, usable_cores() // self._neighbours))
        self._settings = settings = replace(settings, threads=threads)
        self._device = resolve_device(settings)
        self._backends = load_backends(self._device, settings)
        limits = dict(cache_limits(self._device, settings))
        is_gpu = self._device == "gpu"
        if (settings.host_cache_limit if is_gpu else settings.column_cache_limit) is None:
            limits["cpu"] //= self._neighbours
        self._cache.to_host = host_tier(self._device)
        self._cache.set_limits(limits)
        if self._cache.store is None:
            self._cache.store = column_store(settings)
        self._schedules.clear()

    # What runs on the worker's event loop, also while its thread is busy

    async def join(
        self, crew: str, team: int, rank: int, addresses: list[str]
    ) -> tuple[int, int, str]:
        """Be one of a team, and say how many bytes of columns are kept here, how many crews were here before, and the name of the door.

        What was loaded stays; plans are made anew, for another share.
        """
        if self._meetings is not None:
            self._meetings.close()
        self._link.drop()
        self._meetings = Meetings(self._worker, crew, rank, addresses)
        self._team, self._rank, self._workers = team, rank, len(addresses)
        self._neighbours = sum(_host(address) == _host(addresses[rank]) for address in addresses)
        self._configure(self._given)
        return self._cache.limits[self._device], self._turn, self._door.name

    async def here(self) -> None:
        """Give a sign of life."""

    async def described(self) -> dict[str, str]:
        """What must be the same on all workers and the client."""
        return description(self._device)

    async def state(self) -> dict[str, object]:
        """What there is to say of this worker: a row of `fuseline_workers()`."""
        return await asyncio.to_thread(self._state)

    def _state(self) -> dict[str, object]:
        device = self._device
        backend = self._backends[device]
        free, total = device_memory(device)
        return {
            "worker": self._rank,
            "address": self._worker.address,
            "host": platform.node(),
            "process_id": os.getpid(),
            "device": device,
            "device_name": backend.device_name(self._settings.threads),
            "threads": self._settings.threads,
            "memory": total,
            "free_memory": free,
            "cached_bytes": self._cache.used(device),
            "cache_limit": self._cache.limits[device],
            "runs_query": self._running is not None,
        }

    async def columns(self, names: Mapping[Hashable, str]) -> pa.Table:
        """What is cached here of tables that the client knows by these identities: rows of `fuseline_columns()`."""
        known = dict(names)
        for identity, table in list(self._tables.items()):
            name = known.pop(identity, None)
            if name is not None:
                known[table.identity] = name
        return await asyncio.to_thread(cached_columns, self._cache, known, self._rank)

    async def note_over(self, query: int, ranks: list[int]) -> None:
        """Take note of the workers that have answered a query that runs here."""
        if self._meetings is not None and self._running is not None and self._running[0] == query:
            self._meetings.note_over(query, ranks)

    async def stop(self, query: int, why: str) -> None:
        """End a query, which may not have begun."""
        if self._meetings is not None:
            self._meetings.leave(query, why)
        running = self._running
        if running is not None and running[0] == query:
            running[1].ask()
        else:
            self._stopped.append(query)

    async def unlink(self) -> None:
        """Have rows go by way of the host."""
        self._link.drop()

    async def forget(self, tables: Iterable[Hashable]) -> None:
        """Let tables go that the client has no more, with their columns."""
        for identity in tables:
            table = self._tables.pop(identity, None)
            if table is not None:
                self._cache.drop(table.identity)

    async def close(self) -> None:
        """Let columns, plans and what other workers might send go, and end what runs."""
        self.leave()

    def leave(self) -> None:
        running = self._running
        if running is not None:
            running[1].ask()
        self._door.close()
        self._team = -1
        if self._meetings is not None:
            self._meetings.close()
        self._link.drop()
        self._cache.clear()
        self._schedules.clear()
        self._tables.clear()
        self._read.clear()

    # What runs one after the other

    def link_place(self) -> tuple[str, str]:
        return self._link.places(self._device)

    def link_identity(self) -> bytes:
        return self._link.identity()

    def link(self, identity: bytes) -> str:
        """Have the GPUs of the team linked, with all others; return why not."""
        with self._alone:
            return self._link.make(self._workers, self._rank, identity)

    def run(self, order: QueryOrder) -> Part:
        """Run a query; an error is part of the answer, since one that is raised here would reach the client without its place."""
        with self._alone:
            return self._run(order)

    def _run(self, order: QueryOrder) -> Part:
        meetings = self._meetings
        assert meetings is not None
        stop = Stop()
        self._running = order.query, stop
        if order.query in self._stopped:
            stop.ask()
        has_link = order.linked and order.team == self._team
        peers = QueryPeers(meetings, order.query, stop.check, has_link, self._link.made)
        try:
            part = self._part(order, peers, stop)
            if (part.missing or part.refuted) and order.meets:
                peers.fail(f"Worker {self._rank} needs another plan.")
        except BaseException as error:
            found = error if isinstance(error, FuselineError) else internal_error(error)
            found.__cause__ = found.__context__ = None  # whose frames no other process has
            if order.meets:
                peers.fail(f"Worker {self._rank} failed: {found.message}")
            lost = isinstance(error, ClusterError)
            part = Part(error=found.with_traceback(None), lost=lost)
        finally:
            self._running = None
            if order.meets:
                meetings.end(order.query)
        if order.linked and self._link.is_broken:
            part = replace(part, unlinked=True)
            self._link.end_if_lost()
        return part

    def tell(self, order: QueryOrder, part: Part) -> None:
        """Have Dask's log tell of a query; runs on the worker's event loop."""
        self._events.note(order, part)

    def copy_bandwidth(self) -> float:
        """The bytes a second that a copy on this worker's device moves, read and written."""
        return self._backends[self._device].copy_bandwidth(self._settings.threads)

    def trial(self, query: int, kind: TrialKind, nbytes: int, linked: bool) -> float:
        """Give so many bytes to those that an exchange of this kind gives them to; returns the seconds after all have met."""
        meetings = self._meetings
        assert meetings is not None
        peers = QueryPeers(meetings, query, lambda: None, linked, self._link.made)
        context = context_of(self._settings, self._cache, Stop(), self._memory)
        with self._alone:
            try:
                return trial_seconds(peers, kind, nbytes, context)
            finally:
                meetings.end(query)

    def read(self, reading: str, keys: list[Hashable]) -> tuple[pa.Schema, int]:
        """Take over partitions of a Dask dataframe that lie on this worker; return their columns, and how many rows they have."""
        found = [arrow_of(self._worker.data[key]) for key in keys]
        read = pa.concat_tables(found, promote_options="permissive") if found else pa.table({})
        self._read[reading] = read
        return read.schema, read.num_rows

    def take(self, reading: str, identity: Hashable, empty: ShardedTable) -> None:
        """Keep what was read as this worker's share of a table."""
        rows = taken(self._read.pop(reading), empty.data.schema)
        with self._alone:
            self._tables[identity] = empty.share(rows)

    def share(self, identity: Hashable) -> pa.Table:
        """This worker's rows of a table."""
        with self._alone:
            return self._tables[identity].data

    def _part(self, order: QueryOrder, peers: QueryPeers, stop: Stop) -> Part:
        begun = time.perf_counter()
        own = self._own(order)
        if own is None:
            return Part(missing=True)
        peers.expected = own.expected(order.agrees)
        peers.known_many = own.many if order.settled else frozenset()
        settings = self._settings
        with Stoppable(stop):
            context = context_of(settings, self._cache, stop, self._memory)
            context.peers = peers
            options = RunOptions(
                order.timed, settings.memory_limit, settings.spill_dir, settings.spill_memory
            )
            wrong = next((c for c in own.claims if not self._holds(c, context, options)), None)
            if wrong is not None:
                return Part(refuted=wrong.fact)
            if order.agrees:
                own.agreed = agree(own.schedule.plan, own.shared, self._backends, context)
            peers.dictionaries, context.bounds = own.agreed
            result = execute(own.schedule, self._backends, context, options)
            made = result.to_arrow() if order.answers else None
            peers.settle()
            own.many = frozenset(peers.many)
        if order.keep is not None and made is not None:
            identity, empty = order.keep
            self._tables[identity] = empty.share(made)
            rows, one_batch, kept = None, False, (made.num_rows, made.nbytes)
        else:
            rows, one_batch = (None, False) if made is None else stream_of(made)
            kept = 0, 0
        nodes = tuple(map(without_plan, result.profile.nodes)) if order.timed else ()
        seconds = time.perf_counter() - begun
        return Part(
            self._rank,
            rows,
            kept=kept,
            bytes_read=context.bytes_read,
            seconds=seconds,
            meetings=tuple(peers.met),
            nodes=nodes,
            one_batch=one_batch,
        )

    def _holds(self, claim: Claim, context: Context, options: RunOptions) -> bool:
        """Whether what a plan relies on is true of a column, which is loaded for it."""
        if claim not in self._confirmed:
            found = execute(schedule_of(claim.found), self._backends, context, options)
            if not claim.holds(*(column[0].as_py() for column in found.to_arrow().columns)):
                return False
            self._confirmed.add(claim)
        return True

    def _own(self, order: QueryOrder) -> OwnPlan | None:
        """What a plan is here; None where the client has to send it, as it has to those of other settings."""
        if order.team != self._team:
            return None
        sent = order.sent
        if sent is not None:
            if sent.settings != self._given:
                self._configure(sent.settings)
            for identity, table in sent.tables.items():
                self._tables.setdefault(identity, table)
            try:
                plan = unpacked(sent.plan, self._tables)
            except KeyError:
                return None
            check_files(plan)
            place = self._rank, self._workers, self._cut_rows
            own, claims, _ = own_plan(plan, self._settings, sent.placement, *place)
            self._schedules[order.team, order.plan] = OwnPlan.of(own, claims)
            while len(self._schedules) > KEPT_SCHEDULES:
                self._schedules.popitem(last=False)
        return self._schedules.get((order.team, order.plan))


async def _watch(session: ref[WorkerSession], worker: Worker, key: str) -> None:
    """End what a session does when its client is gone, with which Dask drops the actor."""
    while (known := session()) is not None:
        if key not in worker.state.actors and key not in worker.state.tasks:
            known.leave()
            return
        del known
        await asyncio.sleep(WATCH_SECONDS)


def _host(address: str) -> str:
    """Where a worker is: `tcp://10.0.0.7:4321` without its port."""
    return address.rpartition(":")[0]
