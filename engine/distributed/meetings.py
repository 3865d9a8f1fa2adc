"""Rows that the workers of a cluster give each other while a query runs, over Dask's own connections between workers.

Every meeting has a number in its plan.  Each worker sends its part to those who are to have it, and those wait for the parts of all.
What a worker got stays until the query ends, so that an operator that runs again meets nobody twice.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from distributed import Worker
from distributed.protocol import to_serialize

from ..errors import ClusterError
from ..observe.profile import Meeting
from ..operators.context import MovedBytes

WAIT_SECONDS = 0.05  # between two looks at the stop
Part = tuple[int, int]  # the number of a meeting, and the worker whose part it is


class Exchanged(NamedTuple):
    """What a worker has after a meeting, and the bytes that it gave others and got of them."""

    batches: list[pa.RecordBatch]
    sent: int
    received: int


class Meetings:
    """The parts that have come to one worker, by the number of the query."""

    def __init__(self, worker: Worker, crew: str, rank: int, addresses: list[str]) -> None:
        self._worker, self.rank, self._addresses = worker, rank, addresses
        self.workers = len(addresses)
        self._handler = f"fuseline_part_{crew}"
        self._arrived: defaultdict[int, dict[Part, bytes]] = defaultdict(dict)
        self._given: defaultdict[int, set[int]] = defaultdict(set)  # numbers of what was sent
        self._left: dict[int, str] = {}  # why a query has no more meetings
        self._ended = -1  # queries up to this one
        self._changed = threading.Condition()
        worker.handlers[self._handler] = self._take

    async def _take(
        self, query: int, number: int, rank: int, payload: Any, failure: str = ""
    ) -> None:
        """Take in a worker's part, or that it will send none; runs on the worker's event loop."""
        with self._changed:
            if query <= self._ended:
                return
            if failure:
                self._left.setdefault(query, failure)
            else:
                self._arrived[query][number, rank] = bytes(payload)
            self._changed.notify_all()

    def exchange(
        self,
        query: int,
        check: Callable[[], None],
        number: int,
        parts: Sequence[Sequence[pa.RecordBatch] | None],
    ) -> Exchanged:
        """Give each worker its part and return those for this one; raises `ClusterError` when another has failed."""
        mine = parts[self.rank]
        sent = 0
        if number not in self._given[query]:
            packed: dict[int, bytes] = {}  # what several get is packed once
            to: dict[int, bytes] = {}
            for rank, part in enumerate(parts):
                if rank != self.rank and part is not None:
                    if id(part) not in packed:
                        packed[id(part)] = _packed(part)
                    to[rank] = packed[id(part)]
            sent = sum(map(len, to.values()))
            self._send(check, to, query, number)
            self._given[query].add(number)
        if mine is None:
            return Exchanged([], sent, 0)
        with self._changed:
            self._arrived[query].setdefault((number, self.rank), b"")
        arrived = self._wait(check, query, [(number, rank) for rank in range(self.workers)])
        found: list[pa.RecordBatch] = []
        for rank, message in enumerate(arrived):
            found += mine if rank == self.rank else _unpacked(message)
        return Exchanged(found, sent, sum(map(len, arrived)))

    def _wait(self, check: Callable[[], None], query: int, wanted: list[Part]) -> list[bytes]:
        while True:
            with self._changed:
                arrived = self._arrived[query]
                if all(part in arrived for part in wanted):
                    return [arrived[part] for part in wanted]
                if query in self._left:
                    raise ClusterError(self._left[query])
                self._changed.wait(WAIT_SECONDS)
            check()

    def why_left(self, query: int) -> str | None:
        """Why a query has no more meetings, None where it has."""
        return self._left.get(query)

    def fail(self, query: int, why: str) -> None:
        """Tell the others that nothing more comes from here, without waiting for those that may be gone."""
        others = {r: b"" for r in range(self.workers) if r != self.rank}
        self._begin(others, query, -1, failure=why)

    def leave(self, query: int, why: str) -> None:
        """Wait for nobody any more in a query."""
        with self._changed:
            self._left.setdefault(query, why)
            self._changed.notify_all()

    def end(self, query: int) -> None:
        """Forget a query and those before it."""
        with self._changed:
            self._ended = max(self._ended, query)
            for kept in (self._arrived, self._given, self._left):
                for number in [n for n in kept if n <= self._ended]:
                    kept.pop(number, None)

    def close(self) -> None:
        """Take nothing any more."""
        self._worker.handlers.pop(self._handler, None)

    def _begin(
        self, to: Mapping[int, bytes], query: int, number: int, **more: str
    ) -> Future[list[BaseException | None]]:
        """Send each worker its part; raises nothing."""
        message = {"query": query, "number": number, "rank": self.rank, **more}

        async def send() -> list[BaseException | None]:
            calls = [self._call(self._addresses[rank], message, part) for rank, part in to.items()]
            return await asyncio.gather(*calls, return_exceptions=True)

        return asyncio.run_coroutine_threadsafe(send(), self._worker.loop.asyncio_loop)

    def _send(
        self, check: Callable[[], None], to: Mapping[int, bytes], query: int, number: int
    ) -> None:
        sent = self._begin(to, query, number)
        while not sent.done():
            with suppress(TimeoutError):
                sent.result(WAIT_SECONDS)
            check()
        for rank, answer in zip(to, sent.result(), strict=True):
            if isinstance(answer, BaseException):
                raise ClusterError(
                    f"Worker {rank} ({self._addresses[rank]}) cannot be reached: {answer}."
                )

    async def _call(self, address: str, message: Mapping[str, Any], part: bytes) -> None:
        call = getattr(self._worker.rpc(address), self._handler)
        await call(**message, payload=to_serialize(part))


def _packed(batches: Sequence[pa.RecordBatch]) -> bytes:
    """Each batch as a stream of its own, since each has its own dictionaries."""
    sink = pa.BufferOutputStream()
    for batch in batches:
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(packed: bytes) -> list[pa.RecordBatch]:
    source = pa.BufferReader(packed)
    found: list[pa.RecordBatch] = []
    while source.tell() < source.size():
        found += pa.ipc.open_stream(source)
    return found


class DeviceLink(Protocol):
    """Moves device memory between workers: `operators.gpu.exchange.nccl_link.NcclLink`."""

    @property
    def alive(self) -> bool: ...

    def move(
        self,
        outgoing: Sequence[MovedBytes],
        incoming: Sequence[MovedBytes],
        why_left: Callable[[], str | None],
    ) -> None: ...


class QueryPeers:
    """The workers as an operator of one query sees them: `operators.context.Peers`; notes each meeting."""

    def __init__(
        self,
        meetings: Meetings,
        query: int,
        check: Callable[[], None],
        has_link: bool = False,
        link: DeviceLink | None = None,
    ) -> None:
        self.workers, self.rank = meetings.workers, meetings.rank
        self.met: list[Meeting] = []
        self._meetings, self._query, self._check = meetings, query, check
        self.has_link, self._link = has_link, link
        self._start = time.perf_counter()

    @property
    def linked(self) -> bool:
        return self.has_link and self._link is not None and self._link.alive

    def exchange(
        self, number: int, parts: Sequence[Sequence[pa.RecordBatch] | None]
    ) -> list[pa.RecordBatch]:
        begun = time.perf_counter()
        found = self._meetings.exchange(self._query, self._check, number, parts)
        self._note(number, begun, found.sent, found.received)
        return found.batches

    def move(
        self, number: int, outgoing: Sequence[MovedBytes], incoming: Sequence[MovedBytes]
    ) -> None:
        assert self._link is not None
        begun = time.perf_counter()
        self._link.move(outgoing, incoming, partial(self._meetings.why_left, self._query))
        sent, received = (sum(part.size for part in parts) for parts in (outgoing, incoming))
        self._note(number, begun, sent, received)

    def _note(self, number: int, begun: float, sent: int, received: int) -> None:
        seconds = time.perf_counter() - begun
        self.met.append(Meeting(number, begun - self._start, seconds, sent, received))
