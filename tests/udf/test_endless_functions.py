"""Python functions that never end: the query that calls one is stopped all the same, and the next one is right."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import pytest

import fuseline
from fuseline.errors import Interrupted

Stopping = Callable[[fuseline.Connection, Callable[[], object]], None]


def by_interrupt(connection: fuseline.Connection, run: Callable[[], object]) -> None:
    threading.Timer(0.2, connection.interrupt).start()
    with pytest.raises(Interrupted):
        run()


def by_timeout(connection: fuseline.Connection, run: Callable[[], object]) -> None:
    connection.execute("set statement_timeout = '200ms'")
    with pytest.raises(Interrupted):
        run()
    connection.reset_option("statement_timeout")


def by_keyboard(connection: fuseline.Connection, run: Callable[[], object]) -> None:
    threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        run()


WAYS = (by_interrupt, by_timeout, by_keyboard)


@pytest.fixture
def connection() -> Any:
    with fuseline.connect(device="cpu", fuse="never") as opened:
        opened.execute("create table t as select range as x from range(200000)")
        yield opened


def query(connection: fuseline.Connection, call: str) -> Any:
    return connection.sql(f"select max({call}) from t").fetchall()


@pytest.mark.parametrize("stop", WAYS)
@pytest.mark.parametrize("options", [{}, {"type": "arrow"}, {"exception_handling": "return_null"}])
def test_a_loop_in_python_ends(
    connection: fuseline.Connection, stop: Stopping, options: dict[str, Any]
) -> None:
    ended = threading.Event()

    def spins(x: Any) -> str:
        try:
            while True:
                pass
        finally:
            ended.set()

    connection.create_function("spins", spins, ["BIGINT"], "VARCHAR", **options)
    stop(connection, lambda: query(connection, "spins(x)"))
    assert ended.wait(20)
    assert query(connection, "x") == [(199_999,)]


@pytest.mark.parametrize("stop", WAYS)
@pytest.mark.parametrize("options", [{}, {"type": "arrow"}])
def test_a_call_that_waits_is_left_behind(
    connection: fuseline.Connection, stop: Stopping, options: dict[str, Any]
) -> None:
    first, go_on = threading.Event(), threading.Event()

    def waits(x: Any) -> Any:
        if not first.is_set():
            first.set()
            go_on.wait(60)
        return x

    connection.create_function("waits", waits, ["BIGINT"], "BIGINT", **options)
    stop(connection, lambda: query(connection, "waits(x)"))
    try:
        assert query(connection, "waits(x)") == [(199_999,)]
    finally:
        go_on.set()


@pytest.mark.parametrize("stop", WAYS)
def test_a_query_inside_of_a_function_ends(connection: fuseline.Connection, stop: Stopping) -> None:
    large = "select sum(a.range * b.range) from range(100000) a, range(100000) b"

    def asks(x: int) -> str:
        return str(other.sql(large if x >= 0 else "select 42").fetchall())

    with fuseline.connect(device="cpu", fuse="never") as other:
        connection.create_function(
            "asks", asks, ["BIGINT"], "VARCHAR", exception_handling="return_null"
        )
        stop(connection, lambda: query(connection, "asks(x)"))
        assert connection.sql("select asks(-1)").fetchall() == [("[(42,)]",)]
        assert other.sql("select 43").fetchall() == [(43,)]


def test_a_function_may_call_one_by_a_query(connection: fuseline.Connection) -> None:
    def outer(x: int) -> str:
        return str(connection.sql(f"select inner_one({x})").fetchall()[0][0])

    connection.create_function("inner_one", lambda x: f"<{x}>", ["BIGINT"], "VARCHAR")
    connection.create_function("outer_one", outer, ["BIGINT"], "VARCHAR")
    assert connection.sql("select outer_one(7)").fetchall() == [("<7>",)]


def test_a_function_sees_the_context_of_its_query(connection: fuseline.Connection) -> None:
    user: ContextVar[str] = ContextVar("user")
    user.set("Ada")
    connection.create_function(
        "who", lambda x: user.get() + str(x), ["BIGINT"], "VARCHAR", side_effects=True
    )
    assert connection.sql("select who(1)").fetchall() == [("Ada1",)]


COMPILED = """
import sys
import fuseline
from fuseline.errors import Interrupted

def spins(x: int) -> int:
    i = 0
    while x > 299_000:
        i = (i + 1) % 1000
    return i + x

with fuseline.connect(device="cpu", fuse="always", cache_dir=sys.argv[1]) as connection:
    connection.create_function("spins", spins, ["BIGINT"], "BIGINT")
    for table, most in (("ends", 299_000), ("t", 299_001)):
        rows = f"case when r < 199000 then r else {most} end"
        connection.execute(f"create table {table} as select {rows} as x from range(400000) as g(r)")
    connection.sql(sys.argv[2].format("ends")).fetchall()
    connection.execute("set statement_timeout = '1s'")
    for _ in range(2):
        try:
            connection.sql(sys.argv[2].format("t")).fetchall()
        except Interrupted:
            print("stopped")
    connection.execute("reset statement_timeout")  # a busy machine may take longer for the next query
    print(connection.sql("select max(x) from t").fetchall())
"""


@pytest.mark.parametrize("text", [
    "select max(spins(x)) from {}",
    pytest.param("select spins(x) from {} order by 1", marks=pytest.mark.nightly),
])  # fmt: skip
def test_a_compiled_loop_is_left_behind_and_the_process_ends(tmp_path: Any, text: str) -> None:
    command = [sys.executable, "-c", COMPILED, str(tmp_path), text]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout.split("\n")[:3] == ["stopped", "stopped", "[(299001,)]"]
