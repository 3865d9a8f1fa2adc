"""Queries that are stopped: by another thread, by their time limit, by Ctrl-C; the next query is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import fuseline
from fuseline import planner, stopping
from fuseline.deep import deeply
from fuseline.errors import Interrupted
from fuseline.frame import cursor, library_columns
from fuseline.operators.cpu.functions import kernels_texts
from fuseline.stopping import Stop
from tests.compare import assert_same_as_duckdb

TABLES = {"t": {"a": list(range(1000)), "s": [f"x{i}" for i in range(1000)]}}


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Planning that never ends; set once it has begun."""
    begun = threading.Event()

    def plan(*_: object, **__: object) -> None:
        begun.set()
        while True:
            pass

    monkeypatch.setattr(planner, "optimize", plan)
    return begun


def after(event: threading.Event, act: Callable[[], object]) -> threading.Thread:
    def wait() -> None:
        event.wait()
        act()

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def answer(connection: fuseline.Connection) -> Any:
    return connection.sql("select sum(a)::bigint, max(s) from t").fetchall()


def test_interrupt_ends_planning(connection, endless, monkeypatch):
    thread = after(endless, connection.interrupt)
    with pytest.raises(Interrupted, match=r"interrupt\(\)"):
        answer(connection)
    thread.join()
    monkeypatch.undo()
    assert answer(connection) == [(499500, "x999")]


def test_statement_timeout_ends_planning(connection, endless, monkeypatch):
    connection.execute("set statement_timeout = '20ms'")
    with pytest.raises(Interrupted, match="SET statement_timeout"):
        answer(connection)
    monkeypatch.undo()
    connection.reset_option("statement_timeout")
    assert answer(connection) == [(499500, "x999")]


def test_ctrl_c_ends_planning(connection, endless, monkeypatch):
    thread = after(endless, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        answer(connection)
    thread.join()
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert answer(connection) == [(499500, "x999")]


def test_parsing_ends_at_any_instruction(connection, monkeypatch):
    begun = threading.Event()

    def split(text: str) -> list[str]:
        begun.set()
        while True:
            pass

    monkeypatch.setattr("fuseline.sql.split", split)
    thread = after(begun, connection.interrupt)
    with pytest.raises(Interrupted):
        connection.sql("select 1")
    thread.join()


def test_finalizers_that_swallow_the_stop_do_not_keep_it(connection, monkeypatch):
    swallowed = threading.Event()

    class Swallows:
        def __del__(self) -> None:
            while not swallowed.wait(0.001):
                pass

    def plan(*_: object, **__: object) -> None:
        Swallows()
        while True:
            pass

    def said(raised: Any) -> None:
        raise AssertionError(raised)

    sent = []
    raise_in = stopping._raise_in

    def send(thread: int, error: Any) -> None:
        sent.append(error)
        raise_in(thread, error)

    monkeypatch.setattr(planner, "optimize", plan)
    monkeypatch.setattr("sys.unraisablehook", said)
    monkeypatch.setattr(stopping, "_raise_in", send)
    connection.set_option("statement_timeout", "50ms")
    with pytest.raises(Interrupted):
        answer(connection)
    assert len(sent) >= 2  # once into the finalizer, and once more
    monkeypatch.undo()
    connection.reset_option("statement_timeout")
    assert answer(connection) == [(499500, "x999")]


def test_nothing_is_left_on_its_way():
    """A debugger works after a stop: CPython 3.11 hangs in a traced function where an exception was sent and taken back."""
    program = """
import sys
from fuseline import stopping
from fuseline.errors import Interrupted
def work():
    stop.ask()
    while True:
        pass
stop = stopping.Stop()
try:
    stop.anywhere(work)
except Interrupted:
    called = []
def traced():
    return 1
sys.settrace(lambda frame, event, _: called.append(frame.f_code.co_name))
traced()
sys.settrace(None)
assert called == ["traced"]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_random_moments_leave_nothing_behind(connection):
    """What one thread raises in another never arrives elsewhere, however late it comes."""
    done = threading.Event()

    def ask() -> None:
        while not done.wait(0.0005):
            connection.interrupt()

    thread = threading.Thread(target=ask)
    thread.start()
    ends = {"stopped": 0, "answered": 0}
    try:
        for i in range(300):
            try:
                assert connection.sql(f"select {i} + 1").fetchall() == [(i + 1,)]
                ends["answered"] += 1
            except Interrupted:
                ends["stopped"] += 1
    finally:
        done.set()
        thread.join()
    assert ends["stopped"] > 0
    assert answer(connection) == [(499500, "x999")]


def test_ctrl_c_is_heard_where_work_looks_and_never_lost():
    steps: list[str] = []

    def work(*rest: str) -> None:
        with stopping.Stoppable(Stop()):
            for step in ("begin", *rest):
                steps.append(step)
                if step == "looks":
                    stopping.check()
                else:
                    signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        work("looks", "after")
    with pytest.raises(KeyboardInterrupt):
        work()  # looks no more
    with pytest.raises(KeyboardInterrupt):
        work("again", "after")  # a second one is heard at once
    assert steps == ["begin", "looks", "begin", "begin", "again"]


def test_a_program_that_handles_ctrl_c_keeps_its_handler():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with stopping.Stoppable(Stop()):
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [1]


def test_threads_carry_the_stop_of_whom_they_work_for():
    stop, raised = Stop(), []

    def work() -> None:
        stopping.check()
        stop.ask()
        try:
            stopping.check()
        except Interrupted:
            raised.append(True)

    with stopping.Stoppable(stop):
        thread = threading.Thread(target=stopping.carried(work))
        thread.start()
        thread.join()
    assert raised == [True]
    assert stopping.current() is None


def test_a_stop_before_a_deep_thread_begins_is_heard():
    stop = Stop()
    with stopping.Stoppable(stop):
        stop.ask()
        with pytest.raises(Interrupted):
            deeply(lambda: pytest.fail("began"))


def test_fetching_stops_and_loses_no_row(connection, monkeypatch, limits):
    rows = connection.execute("select a from t")
    limits(cursor__ROWS_AT_A_TIME=10)
    assert rows.fetchmany(15) == [(a,) for a in range(15)]
    some = cursor.Rows._some

    def stop(self: Any, table: Any, start: int, count: int) -> Any:
        if start > 500:
            connection.interrupt()
        return some(self, table, start, count)

    monkeypatch.setattr(cursor.Rows, "_some", stop)
    with pytest.raises(Interrupted):
        rows.fetchall()
    monkeypatch.undo()
    assert rows.fetchone() == (15,)
    assert rows.fetchall() == [(a,) for a in range(16, 1000)]
    assert rows.fetchall() == []


def test_each_statement_of_a_text_has_its_own_time(connection, monkeypatch):
    begun: list[float] = []
    restart = Stop.restart
    monkeypatch.setattr(Stop, "restart", lambda self: (begun.append(1), restart(self))[1])
    connection.execute("select 1; select 2; select 3")
    assert len(begun) == 2  # one for each statement after the first


@pytest.mark.parametrize("fuse", ["never", "always"])
@pytest.mark.parametrize(
    "query",
    [
        "select count(*) from t where regexp_matches(s, 'x(1|2)+$')",
        "select max(regexp_replace(s, '[0-9]', 'y', 'g')) from t",
        "select max(upper(s)) from t where s like '%9%1%'",
    ],
)
def test_texts_are_worked_on_in_pieces(connection, query, fuse, monkeypatch, limits):
    limits(kernels_texts__PIECE_BYTES=64)
    connection.set_option("fuse", fuse)
    table = {"t": connection.sql("from t").to_arrow()}
    assert_same_as_duckdb(query, table, connection=connection)
    looked = []

    def check() -> None:
        looked.append(1)
        if len(looked) == 5:
            connection.interrupt()
        stop = stopping.current()
        if stop is not None:
            stop.check()

    monkeypatch.setattr(kernels_texts.stopping, "check", check)
    fresh = connection.sql(f"{query} and true" if "where" in query else f"{query} where true")
    with pytest.raises(Interrupted):
        fresh.fetchall()
    monkeypatch.undo()
    assert_same_as_duckdb(query, table, connection=connection)


def test_values_for_pandas_are_made_some_at_a_time(connection, monkeypatch, limits):
    query = (
        "select a::decimal(9, 2) as d, a, interval (a) days as i, null::decimal(3, 1) as n from t"
    )
    frame = connection.sql(query)
    whole = frame.to_pandas()
    limits(OBJECTS_AT_A_TIME=10)
    assert frame.to_pandas().equals(whole)
    assert [whole[c].dtype for c in "dian"] == [object, "timedelta64[us]", "int64", object]
    assert list(whole.columns) == ["d", "a", "i", "n"]
    assert frame.select("d").to_pandas().equals(whole[["d"]])
    looked = []

    def check() -> None:
        looked.append(1)
        if len(looked) == 50:
            connection.interrupt()
        stop = stopping.current()
        assert stop is not None
        stop.check()

    monkeypatch.setattr(library_columns.stopping, "check", check)
    with pytest.raises(Interrupted):
        frame.to_pandas()
    monkeypatch.undo()
    assert answer(connection) == [(499500, "x999")]
