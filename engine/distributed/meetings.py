"""Rows that the workers of a cluster give each other while a query runs, over Dask's own connections between workers.

Every meeting has a number in its plan.  Each worker sends its part to those who are to have it, and those wait for the parts of all.
What a worker got stays until the query ends, so that an operator that runs again meets nobody twice.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, NamedTuple

import pyarrow as pa
from distributed import Worker
from distributed.protocol import to_serialize

from ..errors import ClusterError

WAIT_SECONDS = 0.05  # between two looks at the stop
NOT_MET = "Another worker has come to its answer without a meeting that this one waits in."
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
        # What was sent and not yet taken: to which workers, and what they answer
        self._on_their_way: defaultdict[
            int, list[tuple[list[int], Future[list[BaseException | None]]]]
        ] = defaultdict(list)
        self._left: dict[int, str] = {}  # why a query has no more meetings
        self._over: dict[int, frozenset[int]] = {}  # workers that have answered a query
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
        """Give each worker its part and return those for this one; raises `ClusterError` when another has failed.

        A message to each who gets something, and nobody waits until it is taken but for `settle`.
        """
        mine = parts[self.rank]
        sent = 0
        if number not in self._given[query]:
            packed: dict[int, bytes] = {}  # what several get is packed once
            to: dict[int, bytes] = {}
            for rank, part in enumerate(parts):
                if rank != self.rank and part is not None:
                    if id(part) not in packed:
                        packed[id(part)] = packed_rows(part)
                    to[rank] = packed[id(part)]
            sent = sum(map(len, to.values()))
            if to:
                self._on_their_way[query].append((list(to), self._begin(to, query, number)))
            self._given[query].add(number)
        if mine is None:
            return Exchanged([], sent, 0)
        with self._changed:
            self._arrived[query].setdefault((number, self.rank), b"")
        arrived = self._wait(check, query, [(number, rank) for rank in range(self.workers)])
        found: list[pa.RecordBatch] = []
        for rank, message in enumerate(arrived):
            found += mine if rank == self.rank else unpacked_rows(message)
        return Exchanged(found, sent, sum(map(len, arrived)))

    def _wait(self, check: Callable[[], None], query: int, wanted: list[Part]) -> list[bytes]:
        while True:
            with self._changed:
                arrived = self._arrived[query]
                if all(part in arrived for part in wanted):
                    return [arrived[part] for part in wanted]
                if query in self._left:
                    raise ClusterError(self._left[query])
                over = self._over.get(query, frozenset())
                if any(part not in arrived and part[1] in over for part in wanted):
                    raise ClusterError(NOT_MET)
                self._changed.wait(WAIT_SECONDS)
            self._have_been_taken(query)
            check()

    def settle(self, query: int, check: Callable[[], None]) -> None:
        """Wait until all parts that were sent in a query have been taken; raises `ClusterError` where one cannot be."""
        while not self._have_been_taken(query):
            with suppress(TimeoutError):
                self._on_their_way[query][0][1].result(WAIT_SECONDS)
            check()

    def _have_been_taken(self, query: int) -> bool:
        """Whether nothing is on its way any more; raises `ClusterError` where a part cannot be sent."""
        sent = self._on_their_way[query]
        for ranks, answers in [known for known in sent if known[1].done()]:
            for rank, answer in zip(ranks, answers.result(), strict=True):
                if isinstance(answer, BaseException):
                    raise ClusterError(
                        f"Worker {rank} ({self._addresses[rank]}) cannot be reached: {answer}."
                    )
            sent.remove((ranks, answers))
        return not sent

    def why_left(self, query: int) -> str | None:
        """Why a query has no more meetings, None where it has."""
        return self._left.get(query)

    def note_over(self, query: int, ranks: Collection[int]) -> None:
        """Note which workers have answered a query: what they sent has been taken, and no more comes."""
        with self._changed:
            self._over[query] = frozenset(ranks)
            self._changed.notify_all()

    def why_alone(self, query: int) -> str | None:
        """Why a meeting of all has no end, None where it may have."""
        return self.why_left(query) or (NOT_MET if self._over.get(query) else None)

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
            for kept in (self._arrived, self._given, self._on_their_way, self._left, self._over):
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

    async def _call(self, address: str, message: Mapping[str, Any], part: bytes) -> None:
        call = getattr(self._worker.rpc(address), self._handler)
        await call(**message, payload=to_serialize(part))


def packed_rows(batches: Sequence[pa.RecordBatch]) -> bytes:
    """Each batch as a stream of its own, since each has its own dictionaries."""
    sink = pa.BufferOutputStream()
    for batch in batches:
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def unpacked_rows(packed: bytes) -> list[pa.RecordBatch]:
    source = pa.BufferReader(packed)
    found: list[pa.RecordBatch] = []
    while source.tell() < source.size():
        found += pa.ipc.open_stream(source)
    return found
