"""The client's side of a cluster: an actor on each worker, called all at once for a query, and again where a worker was lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from itertools import count
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import ref

import pyarrow as pa
from distributed.actor import BaseActorFuture

from ..errors import ClusterError, Interrupted
from ..plan.node import walk_once
from ..plan.partial import Exchange
from ..plan.physical import Physical
from ..settings import Settings
from ..stopping import Stop
from .clusters import Cluster
from .session import FIRST, Part, QueryOrder, WorkerSession, description, own_plan

START_SECONDS = 60.0  # for a worker to load the engine
GRACE_SECONDS = 20.0  # for a worker to come back
LEAVE_SECONDS = 5.0  # for workers to come back from a query that was stopped
LOOK_SECONDS = 0.02  # between two looks at the stop
ALIVE_SECONDS = 0.2  # between two looks at who is there
NO_WORKER = "The cluster has no worker: start one with `dask worker ADDRESS`."
WHOLE_SHARE = 128  # of the column cache of the worker that has least, which is half of its memory
TRIES = 3
STOPPED = "The query was stopped."
LOST = (OSError, RuntimeError, ValueError)  # what Dask raises of an actor whose worker is gone


class _Sent(NamedTuple):
    """A plan that workers have: its number, whether they meet in it, and what tells that it is gone."""

    number: int
    meets: bool
    plan: ref[Physical]


class Crew:
    """An actor on each worker; queries take turns.  After the loss of a worker a new crew of those that are there goes on."""

    def __init__(self, cluster: Cluster, settings: Settings, device: str) -> None:
        self._cluster, self._settings, self._device = cluster, settings, device
        self._numbers, self._plans = count(), count()
        self._sent: dict[int, _Sent] = {}
        self._sent_under = settings
        self._wanted = len(cluster.addresses())
        self._actors: list[Any] = []
        self._addresses: list[str] = []
        self._start()

    @property
    def size(self) -> int:
        """How many workers there are."""
        return len(self._addresses)

    @property
    def addresses(self) -> Sequence[str]:
        return self._addresses

    def _start(self) -> None:
        """Put an actor on each worker that is there, waiting a while for all; raises `ClusterError` where versions differ."""
        for left in range(TRIES - 1, -1, -1):
            self._dismiss()
            self._sent.clear()
            with suppress(TimeoutError):
                self._cluster.client.wait_for_workers(self._wanted, timeout=GRACE_SECONDS)
            self._addresses = self._cluster.addresses()
            if not self._addresses:
                raise ClusterError(NO_WORKER)
            # Those who have not come back are not waited for again
            self._wanted = len(self._addresses)
            try:
                made = self._made()
                self._actors = [self._answer(rank, call) for rank, call in enumerate(made)]
                calls = [(actor.described(), actor.room()) for actor in self._actors]
                found = [
                    (self._answer(rank, described), self._answer(rank, room))
                    for rank, (described, room) in enumerate(calls)
                ]
                break
            except LOST as error:
                if not left:
                    raise ClusterError(f"The workers do not stay: {error}.") from error
            except ClusterError:
                if not left:
                    raise
        self._compare([described for described, _ in found])
        self._room = min(room for _, room in found)

    def _made(self) -> list[Any]:
        """Ask for an actor on each worker."""
        name = uuid4().hex
        placed = {"actor": True, "allow_other_workers": False, "pure": False}
        return [
            self._cluster.client.submit(
                WorkerSession,
                name,
                rank,
                self._addresses,
                self._settings,
                workers=[address],
                **placed,
            )
            for rank, address in enumerate(self._addresses)
        ]

    def _answer(self, rank: int, call: Any, stop: Stop | None = None) -> Any:
        """Wait for what a worker says; raises `ClusterError` where one is lost, or takes too long where nobody could stop it."""
        begun = looked = time.monotonic()
        pending = self._pending(call)
        try:
            while True:
                try:
                    return pending.result(timeout=LOOK_SECONDS)
                except TimeoutError:
                    now = time.monotonic()
                    if stop is not None:
                        stop.check()
                    if now - looked > ALIVE_SECONDS:
                        looked = now
                        self._check_all()
                    if stop is None and now - begun > START_SECONDS:
                        raise self._lost(rank) from None
        except LOST as error:
            raise self._lost(rank) from error
        finally:
            pending.cancel()

    def _pending(self, call: Any) -> Future[Any]:
        """What is waited for as often as one likes: Dask's own `result(timeout)` may come back with neither an answer nor an error."""
        client = self._cluster.client

        async def answer() -> Any:
            if isinstance(call, BaseActorFuture):
                return await call
            return await client.gather(call, asynchronous=True)

        return asyncio.run_coroutine_threadsafe(answer(), client.loop.asyncio_loop)

    def below(self, settings: Settings) -> int:
        """The bytes of a scan's columns below which each worker reads them whole: the same for all, whatever memory each has."""
        given = settings.replicate_below
        return self._room // WHOLE_SHARE if given is None else given

    def _compare(self, workers: list[dict[str, str]]) -> None:
        own = description(self._device)
        differing = [
            f"worker {rank} ({address}) has {what} {found[what]}, the client {own[what]}"
            for rank, (address, found) in enumerate(zip(self._addresses, workers, strict=True))
            for what in own
            if found.get(what) != own[what]
        ]
        if differing:
            raise ClusterError(f"All workers must be as the client is: {'; '.join(differing)}.")

    def run(
        self, plan: Physical, settings: Settings, timed: bool, stop: Stop
    ) -> tuple[pa.Table, list[Part]]:
        """Run a plan on all workers and return its rows, and what each worker says of its part; again where a worker was lost."""
        with self._cluster.turn.held(stop.check):
            for left in range(TRIES - 1, -1, -1):
                try:
                    return self._run(plan, settings, timed, stop)
                except ClusterError:
                    if not left:
                        raise
                    self._start()
        raise AssertionError

    def _run(
        self, plan: Physical, settings: Settings, timed: bool, stop: Stop
    ) -> tuple[pa.Table, list[Part]]:
        query, below = next(self._numbers), self.below(settings)
        if settings != self._sent_under:  # under others, workers make plans anew
            self._sent.clear()
            self._sent_under = settings
        known = self._sent.get(id(plan))
        if known is None:
            own = own_plan(plan, replace(settings, fuse="never"), below, FIRST, self.size)
            meets = any(isinstance(node, Exchange) for node in walk_once(own))
            known = self._sent[id(plan)] = _Sent(next(self._plans), meets, self._gone(plan))
            order = QueryOrder(query, known.number, plan, settings, below, timed)
        else:
            order = QueryOrder(query, known.number, None, settings, below, timed)
        # Where nobody meets, each would make the same rows
        actors = self._actors if known.meets else self._actors[: FIRST + 1]
        try:
            parts = self._parts(actors, order, stop)
        except BaseException:
            self._forget(plan)  # of which it is not known who has it
            raise
        errors = [part for part in parts if part.error is not None]
        if errors:
            self._forget(plan)
            first = min(errors, key=lambda part: part.lost)
            assert first.error is not None
            raise first.error
        rows = parts[FIRST].rows
        assert rows is not None
        return rows, parts

    def _parts(self, actors: list[Any], order: QueryOrder, stop: Stop) -> list[Part]:
        """Call workers; where one is lost or the query is to end, the others are told to stop, and waited for."""
        calls: list[Any] = []
        found: list[Part] = []
        try:
            for rank, actor in enumerate(actors):
                try:
                    calls.append(actor.run(order))
                except LOST as error:
                    raise self._lost(rank) from error
            for rank, call in enumerate(calls):
                found.append(self._answer(rank, call, stop))
        except BaseException as error:
            why = STOPPED if isinstance(error, Interrupted | KeyboardInterrupt) else str(error)
            self._stop(order.query, why, calls)
            raise
        return found

    def _check_all(self) -> None:
        """Raise `ClusterError` where any worker is gone: those that are there may wait for its rows."""
        there = set(self._cluster.addresses())
        for rank, address in enumerate(self._addresses):
            if address not in there:
                raise self._lost(rank)

    def _lost(self, rank: int) -> ClusterError:
        return ClusterError(f"Worker {rank} ({self._addresses[rank]}) was lost while a query ran.")

    def _stop(self, query: int, why: str, calls: list[Any]) -> None:
        """End a query on workers, and wait a while until those that are there have, so that the next one finds them free."""
        there = set(self._cluster.addresses())
        ranks = [r for r in range(len(calls)) if self._addresses[r] in there]
        stops = []
        for rank in ranks:
            with suppress(*LOST):
                stops.append(self._actors[rank].stop(query, why))
        self._await([*stops, *(calls[rank] for rank in ranks)])

    def _await(self, calls: list[Any]) -> None:
        """Wait for calls whose answers do not matter, for a while."""
        end = time.monotonic() + LEAVE_SECONDS
        for call in calls:
            with suppress(TimeoutError, *LOST):
                self._pending(call).result(timeout=max(0.0, end - time.monotonic()))

    def _gone(self, plan: Physical) -> ref[Physical]:
        """Forget a plan when it is gone."""
        key = id(plan)
        return ref(plan, lambda _: self._sent.pop(key, None))

    def _forget(self, plan: Physical) -> None:
        self._sent.pop(id(plan), None)

    def close(self) -> None:
        """Let the actors go, and the cluster if this connection has started it."""
        with self._cluster.turn.held(lambda: None):
            self._dismiss()
        self._cluster.close()

    def _dismiss(self) -> None:
        """Let the actors go, with what they hold."""
        there = set(self._cluster.addresses()) if self._actors else set()
        calls = []
        for address, actor in zip(self._addresses, self._actors, strict=False):
            if address in there:
                with suppress(*LOST):
                    calls.append(actor.close())
        self._await(calls)
        self._actors = []
