"""What Dask's log of events says of queries, so that its dashboard and others see them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .orders import Part, QueryOrder

if TYPE_CHECKING:
    from distributed import Worker

TOPIC = "fuseline"
TELL_SECONDS = 0.05  # for queries that end together to be told together: the scheduler may be in the client's process


class QueryEvents:
    """The queries of which a worker has yet to tell; used on its event loop."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._waiting: list[dict[str, object]] = []

    def note(self, order: QueryOrder, part: Part) -> None:
        if not self._waiting:
            self._worker.loop.asyncio_loop.call_later(TELL_SECONDS, self._tell)
        self._waiting.append(_told(order, part))

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, []
        for event in waiting:
            self._worker.log_event(TOPIC, event)


def _told(order: QueryOrder, part: Part) -> dict[str, object]:
    """A query as the log has it, of the first worker that ran it."""
    return {
        "query": order.query,
        "plan": order.plan,
        "meets": order.meets,
        "seconds": part.seconds,
        "bytes_read": part.bytes_read,
        "meetings": len(part.meetings),
        "met_seconds": sum(m.seconds for m in part.meetings),
        "sent": sum(m.sent for m in part.meetings),
        "received": sum(m.received for m in part.meetings),
        "error": None if part.error is None else str(part.error.message),
    }
