"""Queries over Unix sockets, between a client and a session of its own host."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from fuseline.distributed import local_calls
from fuseline.distributed.local_calls import LocalCall, LocalDoor, LocalLines, wait_for
from fuseline.distributed.orders import Part, QueryOrder, stream_of
from fuseline.errors import ClusterError, InternalError

BYTES = 1 << 20  # of an answer, more than a socket holds


class Session:
    """Answers as many bytes as the number of a query says; waits for `goes_on` before query 7."""

    def __init__(self) -> None:
        self.goes_on, self.told = Event(), list[int]()

    def run(self, order: QueryOrder) -> Part:
        if order.query == 7:
            self.goes_on.wait(10)
        if order.query == 0:
            return Part(error=ClusterError("none"))
        if order.query == 8:
            return Part(lost=self.goes_on)  # type: ignore[arg-type]
        return Part(order.query, pa.py_buffer(b"x" * order.query))

    def tell(self, order: QueryOrder, part: Part) -> None:
        self.told.append(part.rank)


def order(query: int, logs: bool = False) -> QueryOrder:
    return QueryOrder(query, 0, 0, timed=False, meets=False, logs=logs)


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def door(session: Session) -> Iterator[LocalDoor]:
    with ThreadPoolExecutor(1) as executor:
        loop = SimpleNamespace(add_callback=lambda call, *given: call(*given))
        worker: Any = SimpleNamespace(executors={"actor": executor}, loop=loop)
        made = LocalDoor(worker, session)
        yield made
        made.close()
        session.goes_on.set()


@pytest.fixture
def lines(door: LocalDoor) -> Iterator[LocalLines]:
    found = LocalLines.to(door.name)
    assert found is not None
    yield found
    found.close()


def test_answers_come_with_their_rows(lines: LocalLines, session: Session) -> None:
    calls = [LocalCall(lines, order(size, size == 3)) for size in (3, BYTES)]
    assert [len(call.result(10).rows or b"") for call in calls] == [3, BYTES]
    assert session.told == [3]
    assert isinstance(LocalCall(lines, order(0)).result(10).error, ClusterError)
    assert len(lines.free) == 2, "lines of queries that are over serve others"


def test_who_waits_comes_back_in_time(lines: LocalLines, session: Session) -> None:
    call, other = LocalCall(lines, order(7)), Future[Any]()
    assert wait_for([call, other], 0.01) == (set(), {call, other})
    with pytest.raises(TimeoutError):
        call.result(0.01)
    session.goes_on.set()
    other.set_result(None)
    assert wait_for([call, other], 10) == ({call, other}, set())


def test_a_query_that_is_dropped_gives_its_line_back_to_nobody(
    lines: LocalLines, session: Session
) -> None:
    call = LocalCall(lines, order(7))
    local_calls.drop([call, Future()])
    assert isinstance(call.exception(), OSError)
    assert not lines.free
    session.goes_on.set()
    assert LocalCall(lines, order(2)).result(10).rank == 2


@pytest.mark.parametrize("begin", [lambda call: call(), lambda call: None])
def test_a_session_that_ends_is_lost(
    begin: Callable[..., Any], lines: LocalLines, door: LocalDoor
) -> None:
    """While it runs a query, and before it has one."""
    running = begin(lambda: LocalCall(lines, order(7)))
    door.close()
    calls = [running or LocalCall(lines, order(1)), LocalCall(lines, order(2))]
    for call in calls:
        done, _ = wait_for([call], 10)
        assert isinstance(done.pop().exception(), OSError)


@pytest.mark.faults
def test_an_answer_that_cannot_be_packed_says_so(lines: LocalLines) -> None:
    answer = LocalCall(lines, order(8)).result(10)
    assert isinstance(answer.error, InternalError)
    assert LocalCall(lines, order(2)).result(10).rank == 2


def test_neither_end_trusts_another_user(
    door: LocalDoor, lines: LocalLines, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = LocalCall(lines, order(1))
    assert call.result(10).rank == 1
    monkeypatch.setattr(local_calls.os, "getuid", lambda: os.geteuid() + 1)
    assert LocalLines.to(door.name) is None
    assert LocalLines.to("\0fuseline-none") is None


ROWS: dict[str, pa.Table] = {
    "one": pa.table({"a": [1], "b": ["x"]}),
    "none": pa.table({"a": pa.array([], pa.int64())}),
    "a slice": pa.table({"a": range(4000), "b": [f"text {n}" for n in range(4000)]}).slice(1000, 7),
    "several batches": pa.concat_tables([pa.table({"a": [None, n]}) for n in range(3)]),
    "dictionaries": pa.table({"a": pa.array(["x", "y", "x"]).dictionary_encode()}),
    "dictionaries inside": pa.table({"a": pa.array([["x"], ["y"]]).cast(pa.list_(pa.dictionary(pa.int8(), pa.string())))}),
    "nested": pa.table({"a": [[1, None], []], "b": [{"c": 1, "d": "x"}, None]}),
    "many": pa.table({"a": range(100_000), "b": [f"text {n}" for n in range(100_000)]}),
}  # fmt: skip


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows_come_as_they_were_made(rows: pa.Table) -> None:
    for _ in range(2):  # the schema is known then
        stream, one_batch = stream_of(rows)
        part = Part(rows=stream, one_batch=one_batch)
        assert part.table().equals(rows.cast(rows.schema))
        assert pa.ipc.open_stream(stream).read_all().equals(rows), "any reader takes it"
    plain = not any(word in str(rows.schema) for word in ("dict", "list", "struct"))
    assert one_batch == (rows.num_rows in range(1, 513) and plain)
