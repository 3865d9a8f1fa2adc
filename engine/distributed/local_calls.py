"""Queries that are asked for again, between a client and workers of its host: over Unix sockets, past Dask's event loops.

Who asks writes and reads itself, all workers at once, where Dask's loop of a client packs and unpacks one message after the other and
threads wait for each other's locks meanwhile.  Plans, stops and signs of life go over Dask, and all that goes to workers of other hosts,
whose sockets nobody finds here.
"""

from __future__ import annotations

import os
import pickle
import select
import socket
import struct
import threading
import time
from collections.abc import Collection, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

import pyarrow as pa
from distributed.protocol.pickle import dumps

from ..fence import internal_error
from .orders import Part, QueryOrder

if TYPE_CHECKING:
    from distributed import Worker

    from .query_calls import QuerySession

SIZES = struct.Struct("<QQ")  # of what is pickled, and of the rows behind it, if there are any
ROWS_ALIGNMENT = 64  # of where rows begin in a message, as Arrow has its buffers
TAKEN_AT_ONCE = 1 << 14  # of a message that is taken at once
USER = struct.Struct("3i")  # the process, the user and the group at the other end
ANSWER_SECONDS = 20  # for the other end to take or give more of an answer that has begun
SEND_LIMIT = struct.pack("ll", ANSWER_SECONDS, 0)  # `timeval`


class LocalDoor:
    """A worker's end: a line for each query that one of this user's processes has at a time, and a thread for each, in which the session runs them."""

    def __init__(self, worker: Worker, session: QuerySession) -> None:
        self.name = f"\0fuseline-{uuid4().hex}"  # which is no file
        self._worker, self._session = worker, session
        self._lines: set[socket.socket] = set()
        self._is_closed = False
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(self.name)
        self._door.listen()
        threading.Thread(target=self._accept, name="fuseline-door", daemon=True).start()

    def _accept(self) -> None:
        with self._door, suppress(OSError):  # closed
            while True:
                line, _ = self._door.accept()
                line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, SEND_LIMIT)
                self._lines.add(line)
                if self._is_closed:  # meanwhile
                    _end(line)
                reads = threading.Thread(target=self._read, args=(line,), name="fuseline-line")
                reads.daemon = True
                reads.start()

    def _read(self, line: socket.socket) -> None:
        with line, suppress(OSError, RuntimeError):  # closed, or the worker ends
            while _is_ours(line):
                given, _ = _received(line)
                self._answer(line, given)
        self._lines.discard(line)

    def _answer(self, line: socket.socket, given: memoryview) -> None:
        order: QueryOrder = pickle.loads(given)
        part = self._session.run(order)
        rows, part.rows = b"" if part.rows is None else memoryview(part.rows), None
        try:
            packed = dumps(part)
        except Exception as error:  # which the client is told, or it would take the worker for lost
            part = Part(part.rank, error=internal_error(error))
            packed, rows = dumps(part), b""
        try:
            _send(line, packed, rows)
        except OSError:  # of a client that takes no more
            _end(line)
        if order.logs:
            self._worker.loop.add_callback(self._session.tell, order, part)

    def close(self) -> None:
        """End all lines, as their clients see."""
        self._is_closed = True
        for end in (self._door, *self._lines):
            _end(end)


class LocalCall:
    """A query of which one worker has the order, as a future of its answer; who waits for it by `wait_for` or `result` reads that.

    No `Future`: only the thread that waits changes it, so that it needs no lock.
    """

    def __init__(self, lines: LocalLines, order: QueryOrder) -> None:
        self._lines = lines
        self._answer: Part | OSError | None = None
        self.line = lines.take()
        try:
            _send(self.line, order.packed)
        except OSError as error:
            self.end(error)

    def read(self) -> None:
        """Take the answer, which has begun to come."""
        try:
            packed, rows = _received(self.line)
        except OSError as error:
            self.end(error)
            return
        self._lines.free.append(self.line)
        part: Part = pickle.loads(packed)
        part.rows = pa.py_buffer(rows) if rows else None
        self._answer = part

    def done(self) -> bool:
        return self._answer is not None

    def exception(self) -> OSError | None:
        return self._answer if isinstance(self._answer, OSError) else None

    def result(self, timeout: float | None = None) -> Part:
        if self._answer is None:
            wait_for([self], timeout)
        match self._answer:
            case OSError() as error:
                raise error
            case None:
                raise TimeoutError
            case part:
                return part

    def end(self, error: OSError) -> None:
        self.line.close()
        self._answer = error


Call: TypeAlias = LocalCall | Future[Any]  # of a worker, by a line or by Dask


class LocalLines:
    """A client's lines to one worker, of which each query has one until it is answered."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.free: list[socket.socket] = []

    @classmethod
    def to(cls, name: str) -> LocalLines | None:
        """Return lines to a worker's door, None where it is not on this host or not this user's."""
        found = cls(name)
        line = found.take()
        found.free.append(line)
        return found if line.fileno() >= 0 else None

    def take(self) -> socket.socket:
        """A line that no other query has, which is closed where there is no worker of this user."""
        with suppress(IndexError):
            return self.free.pop()
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(ANSWER_SECONDS)
        try:
            line.connect(self._name)
            if not _is_ours(line):
                line.close()
        except OSError:
            line.close()
        return line

    def close(self) -> None:
        while self.free:
            self.free.pop().close()


def wait_for(calls: Collection[Call], seconds: float | None) -> tuple[set[Call], set[Call]]:
    """Wait for calls as `concurrent.futures.wait` does, until all are done or one has failed; returns these, and those that are not done."""
    end = None if seconds is None else time.monotonic() + seconds

    def left() -> float | None:
        return None if end is None else max(0.0, end - time.monotonic())

    local = [call for call in calls if isinstance(call, LocalCall)]
    lines = {call.line.fileno(): call for call in local if not call.done()}
    has_failed = len(lines) < len(local) and any(call.exception() for call in local)
    poll = select.poll()
    for line in lines:
        poll.register(line, select.POLLIN)
    while lines and not has_failed:
        most = left()
        ready = poll.poll(None if most is None else most * 1e3)
        if not ready:
            break
        for line, _ in ready:
            poll.unregister(line)
            call = lines.pop(line)
            call.read()
            has_failed = has_failed or call.exception() is not None
    if len(local) < len(calls):
        others = [call for call in calls if isinstance(call, Future)]
        wait(others, 0.0 if lines or has_failed else left(), FIRST_EXCEPTION)
    done = {call for call in calls if call.done()}
    return done, {*calls} - done


def _end(line: socket.socket) -> None:
    with suppress(OSError):  # which has ended already
        line.shutdown(socket.SHUT_RDWR)


def drop(calls: Iterable[Call]) -> None:
    """Wait no more for those that are not answered."""
    for call in calls:
        if isinstance(call, LocalCall) and not call.done():
            call.end(OSError("the answer was not waited for"))


def _is_ours(line: socket.socket) -> bool:
    """Whether the process at the other end is this user's, whom both trust with what they unpickle."""
    given = line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, USER.size)
    return bool(USER.unpack(given)[1] == os.getuid())


def _send(line: socket.socket, packed: bytes, rows: bytes | memoryview = b"") -> None:
    """Send a message by one call of the system, if the line takes it at once: two would wake the other end twice."""
    padding = -(SIZES.size + len(packed)) % ROWS_ALIGNMENT if rows else 0
    head = SIZES.pack(len(packed) + padding, len(rows)) + packed + bytes(padding)
    sent = line.sendmsg((head, rows))
    for part in (head, rows):
        if sent < len(part):
            line.sendall(memoryview(part)[sent:])
        sent = max(0, sent - len(part))


def _received(line: socket.socket) -> tuple[memoryview, memoryview]:
    """Return what is pickled and the rows behind it, by one call of the system if they are few."""
    found = memoryview(bytearray(TAKEN_AT_ONCE))
    count = 0
    while count < SIZES.size:
        count += _more(line, found[count:])
    begin = SIZES.size + SIZES.unpack_from(found)[0]
    end = SIZES.size + sum(SIZES.unpack_from(found))
    if end > len(found):  # memory that nothing fills before, which the pool has used before
        whole = memoryview(pa.allocate_buffer(end)).cast("B")
        whole[:count] = found[:count]
        found = whole
    while count < end:
        count += _more(line, found[count:end])
    return found[SIZES.size : begin], found[begin:end]


def _more(line: socket.socket, into: memoryview) -> int:
    count = line.recv_into(into)
    if not count:
        raise OSError("the other end has gone")
    return count
