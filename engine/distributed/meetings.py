"""Rows that the workers of a cluster give each other while a query runs, over Dask's own connections between workers.

Every meeting has a number in its plan.  Each worker sends its part to those who are to have it, and those wait for the parts of all.
What a worker got stays until the query ends, so that an operator that runs again meets nobody twice.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from distributed import Worker
from distributed.protocol import to_serialize

from ..errors import ClusterError

WAIT_SECONDS = 0.05  # between two looks at the stop
FIRST = 0  # the worker that gathers

Part = tuple[int, int]  # the number of a meeting, and the worker whose part it is


class Meetings:
    """The parts that have come to one worker, by the number of the query."""

    def __init__(self, worker: Worker, crew: str, rank: int, addresses: list[str]) -> None:
        self._worker, self._rank, self._addresses = worker, rank, addresses
        self._handler = f"fuseline_part_{crew}"
        self._arrived: defaultdict[int, dict[Part, bytes]] = defaultdict(dict)
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

    def meet(
        self, query: int, check: Callable[[], None], number: int, kind: str, rows: pa.Table
    ) -> list[pa.Table]:
        """Give this worker's rows, and return those of all workers that it is to have; raises `ClusterError` when one has failed."""
        mine = _packed(rows)
        everybody = range(len(self._addresses))
        to = everybody if kind == "broadcast" else [FIRST]
        if (number, self._rank) not in self._arrived[query]:
            self._send(check, [r for r in to if r != self._rank], query, number, mine)
        if self._rank not in to:
            return [rows.slice(0, 0)]
        with self._changed:
            self._arrived[query][number, self._rank] = mine
        wanted = [(number, rank) for rank in everybody]
        return [_unpacked(part) for part in self._wait(check, query, wanted)]

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

    def fail(self, query: int, why: str) -> None:
        """Tell the others that nothing more comes from here."""
        others = [r for r in range(len(self._addresses)) if r != self._rank]
        self._send(lambda: None, others, query, -1, b"", failure=why)

    def leave(self, query: int, why: str) -> None:
        """Wait for nobody any more in a query."""
        with self._changed:
            self._left.setdefault(query, why)
            self._changed.notify_all()

    def end(self, query: int) -> None:
        """Forget a query and those before it."""
        with self._changed:
            self._ended = max(self._ended, query)
            for kept in (self._arrived, self._left):
                for number in [n for n in kept if n <= self._ended]:
                    kept.pop(number, None)

    def close(self) -> None:
        """Take nothing any more."""
        self._worker.handlers.pop(self._handler, None)

    def _send(
        self,
        check: Callable[[], None],
        to: list[int],
        query: int,
        number: int,
        mine: bytes,
        **more: str,
    ) -> None:
        message = {"query": query, "number": number, "rank": self._rank, **more}

        async def send() -> list[Any]:
            calls = [self._call(self._addresses[rank], message, mine) for rank in to]
            return await asyncio.gather(*calls, return_exceptions=True)

        sent = asyncio.run_coroutine_threadsafe(send(), self._worker.loop.asyncio_loop)
        while True:
            try:
                answers = sent.result(WAIT_SECONDS)
                break
            except TimeoutError:
                check()
        for rank, answer in zip(to, answers, strict=True):
            if isinstance(answer, BaseException) and not more:
                raise ClusterError(
                    f"Worker {rank} ({self._addresses[rank]}) cannot be reached: {answer}."
                )

    async def _call(self, address: str, message: Mapping[str, Any], mine: bytes) -> None:
        call = getattr(self._worker.rpc(address), self._handler)
        await call(**message, payload=to_serialize(mine))


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(packed: bytes) -> pa.Table:
    return pa.ipc.open_stream(packed).read_all()
