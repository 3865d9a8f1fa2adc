"""A query's call from the client to a worker's session, and the worker's answer, over Dask's own connections.

Not by a method of the actor: Dask wraps each argument and answer by itself, and watches the thread that runs them.  That is some 800
calls of Python in a worker's event loop where this takes 350, and twice as many in the client's; a call to two workers took 0.8 ms at
best where it took 1.7, on two busy CPU cores.
"""

from __future__ import annotations

import ctypes
import pickle
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from distributed.actor import ProxyRPC
from distributed.protocol import to_serialize

from .orders import Part, QueryOrder

if TYPE_CHECKING:
    from distributed import Client, Worker

HANDLER = "fuseline_run"
INSIDE_BYTES = (
    1 << 16
)  # of rows, which then go inside the message; more go beside it, without a copy
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # as glibc's malloc.h numbers them
MOST_MAPPED = 1 << 25  # bytes, to which glibc raises the second one by itself
NO_SESSION = "The worker has no session of this client any more."


class QuerySession(Protocol):
    """What runs a query on a worker: `session.WorkerSession`."""

    def run(self, order: QueryOrder) -> Part: ...

    def tell(self, order: QueryOrder, part: Part) -> None: ...


async def ask(client: Client, address: str, actor: str, order: QueryOrder) -> Part:
    """Have the session of an actor run a query; raises `OSError` or `RuntimeError` where it, or its worker, is gone."""
    direct = client.direct_to_workers
    worker = client.rpc(address) if direct else ProxyRPC(client.scheduler, address)
    given = order.packed if order.is_short else to_serialize(order)
    answer = await getattr(worker, HANDLER)(actor=actor, order=given)
    if isinstance(answer, bytes):
        part: Part = pickle.loads(answer)
        return part
    if isinstance(answer, dict):
        return answer["part"]
    raise RuntimeError(NO_SESSION)  # of a worker that has started anew where the old one was


def serve(worker: Worker, sessions: Mapping[str, QuerySession]) -> None:
    """Have a worker take queries for the sessions of its actors, which it runs in the thread of these."""

    async def run(actor: str, order: bytes | QueryOrder) -> bytes | dict[str, object]:
        session = sessions.get(actor)
        if session is None:
            raise RuntimeError(NO_SESSION)
        loop = worker.loop.asyncio_loop
        found, part, answer = await loop.run_in_executor(
            worker.executors["actor"], _run, session, order
        )
        if found.logs:
            loop.call_soon(session.tell, found, part)  # once the answer is on its way
        return answer

    worker.handlers[HANDLER] = run


def _run(
    session: QuerySession, given: bytes | QueryOrder
) -> tuple[QueryOrder, Part, bytes | dict[str, object]]:
    order: QueryOrder = pickle.loads(given) if isinstance(given, bytes) else given
    part = session.run(order)
    is_few = part.rows is None or part.rows.size <= INSIDE_BYTES
    is_short = is_few and part.error is None and not part.nodes
    return order, part, pickle.dumps(part, 5) if is_short else {"part": to_serialize(part)}


def keep_freed_memory() -> None:
    """Have glibc keep what is freed as it does in other processes at most: Dask has it given back from 64 KB on, and mapped anew for each array."""
    with suppress(AttributeError, OSError):  # of another library
        set_limit = ctypes.CDLL(None).mallopt
        set_limit(TRIM_THRESHOLD, 2 * MOST_MAPPED)
        set_limit(MMAP_THRESHOLD, MOST_MAPPED)
