"""The workers as the operators of one query see them, over Dask's connections or, where their GPUs are linked, over the link.

Over the link all workers meet in the same order, and each meeting begins with what each tells the others.  So who has failed tells it
where the others meet next, which ends the query for all and leaves the link as it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

import numpy as np
import pyarrow as pa

from ..errors import ClusterError
from ..observe.profile import Meeting
from ..operators.context import MovedBytes
from .common_texts import as_codes, with_texts
from .meetings import Meetings, packed_rows, unpacked_rows

# What a message over the link begins with: it is one, or rows; there are too many for it; the worker has failed
WORDS, ROWS, MANY, FAILED = b"W", b"R", b"M", b"F"
PLACE_BYTES = 8  # before it, for the number of the meeting
MOST_TOLD = 1 << 20  # bytes of rows that workers tell each other over the link


class DeviceLink(Protocol):
    """Moves device memory between workers: `operators.gpu.exchange.nccl_link.NcclLink`."""

    @property
    def alive(self) -> bool: ...

    def tell(self, message: bytes, why_left: Callable[[], str | None]) -> list[bytes]: ...

    def move(
        self,
        outgoing: Sequence[MovedBytes],
        incoming: Sequence[MovedBytes],
        why_left: Callable[[], str | None],
    ) -> None: ...


class QueryPeers:
    """The workers as an operator of one query sees them: `operators.context.Peers`; notes each meeting.

    `expected` are the exchanges in which the others wait for this worker, each by what `over` has of it when it is done; None where it
    does not know its plan.  Texts of `dictionaries`, which all workers have, are sent as their codes.  `many` are the meetings for few rows
    in which a worker had too many: of those in the last run, `known_many`, nobody asks again, 0.3 to 0.9 ms each on four H200s.
    """

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
        self.owes = False
        self.over: set[int] = set()
        self.expected: Sequence[frozenset[int]] | None = None
        self.dictionaries: Mapping[str, pa.Array] = {}
        self.many: set[int] = set()
        self.known_many: frozenset[int] = frozenset()
        self._meetings, self._query, self._check = meetings, query, check
        self.has_link, self._link = has_link, link
        self._told: dict[int, list[bytes]] = {}  # by the number of the meeting
        self._has_ended = False
        self._start = time.perf_counter()

    @property
    def linked(self) -> bool:
        return self.has_link and self._link is not None and self._link.alive

    def exchange(
        self, number: int, parts: Sequence[Sequence[pa.RecordBatch] | None]
    ) -> list[pa.RecordBatch]:
        if self.has_link:
            found = self.exchange_few(number, parts)
            if found is not None:
                return found
            self.owes = True
        begun = time.perf_counter()
        given = as_codes(parts, self.dictionaries)
        by_host = self._meetings.exchange(self._query, self._check, number, given)
        self.owes = False
        self._note(number, begun, by_host.sent, by_host.received)
        return [with_texts(batch, self.dictionaries) for batch in by_host.batches]

    def exchange_few(
        self, number: int, parts: Sequence[Sequence[pa.RecordBatch] | None] | None
    ) -> list[pa.RecordBatch] | None:
        if number in self.known_many:
            self.many.add(number)
            return None
        if parts is not None:
            parts = as_codes(parts, self.dictionaries)
        if number not in self._told:
            known = [part for part in parts or () if part is not None]
            given = {id(part): part for part in known}.values()
            size = sum(batch.nbytes for part in given for batch in part)
            is_few = parts is not None and size <= MOST_TOLD
            told = ROWS + _message_of(parts or (), self.rank) if is_few else MANY
            self._tell(number, told)
        told_by = self._told[number]
        if parts is None or any(said[:1] == MANY for said in told_by):
            self.many.add(number)
            return None
        mine = parts[self.rank]
        if mine is None:
            return []
        found: list[pa.RecordBatch] = []
        for rank, said in enumerate(told_by):
            found += mine if rank == self.rank else _rows_for(self.rank, said[1:])
        return [with_texts(batch, self.dictionaries) for batch in found]

    def meet(self, number: int, message: bytes) -> Sequence[bytes]:
        if number not in self._told:
            self._tell(number, WORDS + message)
        return [said[1:] for said in self._told[number]]

    def _tell(self, number: int, message: bytes) -> None:
        """Tell all something and note what each tells; raises `ClusterError` where one has failed."""
        if not self.linked:
            raise ClusterError("The link between the GPUs is gone.")
        assert self._link is not None
        begun = time.perf_counter()
        place = number.to_bytes(PLACE_BYTES, "little", signed=True)
        why_alone = partial(self._meetings.why_alone, self._query)
        said_by = self._link.tell(place + message, why_alone)
        told = [said[PLACE_BYTES:] for said in said_by]
        others = [len(said) for rank, said in enumerate(said_by) if rank != self.rank]
        self._note(number, begun, len(message) * len(others), sum(others))
        failed = next((said[1:].decode() for said in told if said[:1] == FAILED), None)
        if failed is None and any(said[:PLACE_BYTES] != place for said in said_by):
            failed = "Workers do not come to the same meetings."
        if failed is not None:
            self._has_ended = True
            raise ClusterError(failed)
        self._told[number] = told

    def move(
        self, number: int, outgoing: Sequence[MovedBytes], incoming: Sequence[MovedBytes]
    ) -> None:
        assert self._link is not None
        begun = time.perf_counter()
        self._link.move(outgoing, incoming, self._why_left)
        sent, received = (sum(part.size for part in parts) for parts in (outgoing, incoming))
        self._note(number, begun, sent, received)

    def settle(self) -> None:
        """Wait until all that was sent has been taken."""
        self._meetings.settle(self._query, self._check)

    def fail(self, why: str) -> None:
        """Tell the others that nothing more comes from here, where they wait for it next."""
        if not self.linked or self.owes:
            self._meetings.fail(self._query, why)
        elif not self._has_ended and self._is_awaited:
            with suppress(ClusterError):  # of a worker that has failed too, or is lost
                self._tell(-1, FAILED + why.encode())
            if not self._has_ended:  # the link could not be used
                self._meetings.fail(self._query, why)

    @property
    def _is_awaited(self) -> bool:
        """Whether the others come to another meeting, or are there; else nobody would hear what this one tells."""
        return self.expected is None or any(not self.over & marks for marks in self.expected)

    def _why_left(self) -> str | None:
        return self._meetings.why_left(self._query)

    def _note(self, number: int, begun: float, sent: int, received: int) -> None:
        seconds = time.perf_counter() - begun
        self.met.append(Meeting(number, begun - self._start, seconds, sent, received))


def _message_of(parts: Sequence[Sequence[pa.RecordBatch] | None], own: int) -> bytes:
    """Rows for each worker in one message: where those of each begin and end in it; what several get is in it once."""
    bounds = np.zeros(2 * len(parts), np.int64)
    pieces: dict[int, tuple[int, int]] = {}
    packed: list[bytes] = []
    end = 0
    for rank, part in enumerate(parts):
        if rank == own or part is None:
            continue
        if id(part) not in pieces:
            packed.append(packed_rows(part))
            pieces[id(part)] = end, end + len(packed[-1])
            end += len(packed[-1])
        bounds[2 * rank : 2 * rank + 2] = pieces[id(part)]
    return len(parts).to_bytes(8, "little") + bounds.tobytes() + b"".join(packed)


def _rows_for(rank: int, message: bytes) -> list[pa.RecordBatch]:
    begin = 8 + 16 * int.from_bytes(message[:8], "little")
    bounds = np.frombuffer(message[8:begin], np.int64)
    first, last = bounds[2 * rank : 2 * rank + 2].tolist()
    return unpacked_rows(message[begin + first : begin + last])
