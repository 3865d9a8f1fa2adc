"""DEFECTS D2: interrupt() was not heard while parsing, planning, compiling or in a kernel, and raised KeyboardInterrupt."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import fuseline
from fuseline import planner
from fuseline.codegen.compile import compile_pool
from fuseline.errors import Interrupted


def interrupted(connection: fuseline.Connection, begun: threading.Event, text: str) -> None:
    def ask() -> None:
        begun.wait()
        connection.interrupt()

    thread = threading.Thread(target=ask)
    thread.start()
    with pytest.raises(Interrupted) as raised:
        connection.sql(text).fetchall()
    thread.join()
    assert isinstance(raised.value, Exception)  # which `except Exception` catches
    assert connection.sql("select 40 + 2").fetchall() == [(42,)]


def test_planning_hears_it(monkeypatch: Any) -> None:
    begun = threading.Event()

    def endless(*_: object, **__: object) -> None:
        begun.set()
        while True:
            pass

    with fuseline.connect("cpu") as connection:
        connection.sql("select 40 + 2").fetchall()
        monkeypatch.setattr(planner, "as_physical", endless)
        interrupted(connection, begun, "select 40 + 3")


def test_compiling_hears_it(monkeypatch: Any, tmp_path: Any) -> None:
    begun = threading.Event()
    wait = compile_pool.stopping.wait

    def waits(future: Any) -> Any:
        begun.set()
        return wait(future)

    monkeypatch.setattr(compile_pool.stopping, "wait", waits)
    # A process that takes no job, as one that compiles for long
    monkeypatch.setattr(compile_pool.CompilePool, "_serve", lambda self: None)
    monkeypatch.setattr(compile_pool, "pool", lambda: made)
    made = compile_pool.CompilePool(1)
    with fuseline.connect("cpu", fuse="always", cache_dir=tmp_path) as connection:
        connection.register("t", {"a": list(range(1000))})
        interrupted(connection, begun, "select sum(a) from t where a > 10")
    assert not made._waiting


def test_a_time_limit_is_a_setting() -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute("set statement_timeout = '500ms'")
        assert connection.settings.statement_timeout == 0.5
