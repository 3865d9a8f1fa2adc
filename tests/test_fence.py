"""What leaves the API is a FuselineError, whatever was raised inside; tests/test_faults.py plants faults at each floor."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import timeit
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import fuseline
from benchmarks.measure import Measurement, outcome
from fuseline import col, fence
from fuseline.errors import (
    ExecutionError,
    FuselineError,
    InternalError,
    InvalidQuery,
    MemoryLimitError,
    UnknownAttribute,
    WrongArguments,
)
from fuseline.fence import PASSED, fenced
from fuseline.frame import functions
from fuseline.frame.batches import Batches
from fuseline.frame.cursor import Cursor
from fuseline.frame.group_by import GroupBy
from tests.unforeseen import Unforeseen

CLASSES = (
    *(fuseline.Connection, fuseline.Frame, Cursor, Batches, GroupBy),
    *(functions.Expression, functions.When, functions.Then, type(fuseline.fn)),
)


@pytest.mark.parametrize("owner", CLASSES, ids=lambda c: c.__name__)
def test_each_public_method_is_fenced(owner: type) -> None:
    ours = [c for c in owner.__mro__ if c.__module__.startswith("fuseline")]
    for name in {name for each in ours for name in vars(each)}:
        member = inspect.getattr_static(owner, name)
        public = not name.startswith("_") or name.endswith("_")
        found = member.fget if isinstance(member, property) else member
        if public and name not in PASSED and inspect.isfunction(found):
            assert hasattr(found, "is_fenced"), name


def test_each_public_function_is_fenced() -> None:
    public = {name: getattr(fuseline, name) for name in fuseline.__all__}
    plain = {n for n, f in public.items() if inspect.isfunction(f) and not hasattr(f, "is_fenced")}
    assert plain == set()
    assert {type(f) for f in public.values() if not inspect.isfunction(f)} <= {
        type,
        type(fuseline.fn),
    }


def test_what_every_class_of_errors_is() -> None:
    assert issubclass(UnknownAttribute, FuselineError)
    assert issubclass(UnknownAttribute, AttributeError)
    assert issubclass(WrongArguments, FuselineError)
    assert issubclass(WrongArguments, TypeError)


def raising(error: BaseException) -> Callable[[], None]:
    @fenced
    def outer() -> None:
        inner()

    @fenced
    def inner() -> None:
        raise error

    return outer


@pytest.mark.faults
def test_an_unforeseen_error_becomes_internal_with_its_cause() -> None:
    planted = ZeroDivisionError("planted")
    with pytest.raises(InternalError) as caught:
        raising(planted)()
    assert caught.value.__cause__ is planted
    for part in ("ZeroDivisionError: planted", "report it with the query", "pyarrow", "Python"):
        assert part in str(caught.value)


def test_in_a_test_it_is_a_failure() -> None:
    with pytest.raises(Unforeseen):
        raising(ZeroDivisionError("planted"))()


@pytest.mark.parametrize(
    ("error", "becomes"),
    [
        (InvalidQuery("as it is"), InvalidQuery),
        (MemoryError(), MemoryLimitError),
        (pa.ArrowMemoryError("malloc of size 1 failed"), MemoryLimitError),
        (RecursionError(), InvalidQuery),
        (OSError(28, "No space left on device"), ExecutionError),
        (KeyboardInterrupt(), KeyboardInterrupt),
        (SystemExit(3), SystemExit),
        (GeneratorExit(), GeneratorExit),
    ],
)
def test_what_becomes_of_others(error: BaseException, becomes: type[BaseException]) -> None:
    with pytest.raises(becomes) as caught:
        raising(error)()
    assert type(caught.value) is becomes


@pytest.mark.parametrize(("method", "library"), [("pl", "polars"), ("df", "pandas")])
def test_a_library_that_is_not_installed_is_named_with_its_command(
    method: str, library: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)  # which no import finds
    with fuseline.connect("cpu") as connection:
        frame = connection.sql("select 1 as a")
        with pytest.raises(
            ExecutionError, match=f"{library} is not installed: pip install {library}"
        ):
            getattr(frame, method)()


@pytest.mark.faults
@pytest.mark.parametrize("name", ["fuseline.none", "json.none", None])
def test_a_missing_module_of_ours_is_a_fault(name: str | None) -> None:
    with pytest.raises(InternalError):
        raising(ModuleNotFoundError("No module", name=name))()


@pytest.mark.faults
def test_a_panic_of_rust_is_a_fault_although_it_is_no_exception() -> None:
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
    with pytest.raises(InternalError, match="PanicException"):
        raising(panic("index out of bounds"))()


@pytest.mark.faults
def test_an_error_between_two_rows_is_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = fuseline.connect(device="cpu").sql("from range(20000)")
    rows = iter(frame)
    next(rows)
    monkeypatch.setattr("fuseline.frame.cursor.rows", lambda table: 1 / 0)
    with pytest.raises(InternalError):
        list(rows)


@pytest.mark.parametrize("call", [
    lambda c: c.sql(), lambda c: c.sql("select 1", 2, 3),
    lambda c: c.sql("select 1").limit(count=1, rows=2),
    lambda c: c.sql("select 1 as a").rename(3), lambda c: col(),
])  # fmt: skip
def test_a_wrong_call_is_a_type_error_too(call: Callable[[Any], Any]) -> None:
    with pytest.raises(WrongArguments), fuseline.connect(device="cpu") as connection:
        call(connection)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda f: f.explain(analyze=True), 'Use explain("analyze").'),
        (lambda f: f.limit(rows=3), "It takes count, offset."),
        (lambda f: f.limit(counts=3), 'Did you mean "count"?'),
        (lambda f: f.filter(predicate="a"), "It takes *"),
        (lambda f: f.to_arrow(copies=1), "It takes no arguments."),
    ],
)
def test_a_wrong_keyword_is_told_what_there_is(call: Callable[[Any], Any], says: str) -> None:
    with fuseline.connect("cpu") as connection, pytest.raises(WrongArguments) as caught:
        call(connection.sql("select 1 as a"))
    assert says in str(caught.value)


def test_a_benchmark_counts_an_internal_error_as_a_failure() -> None:
    made = Measurement(hot=1.0)
    with outcome(made):
        raise InternalError("planted")
    assert (made.status, made.hot) == ("error", None)
    assert made.message == "InternalError: planted"


def test_attributes_that_are_not_there_are_none_for_hasattr() -> None:
    frame = fuseline.connect(device="cpu").sql("select 1 as a")
    assert not hasattr(frame, "collect")
    with pytest.raises(FuselineError, match=r"to_arrow\(\)"):
        frame.collect()


@pytest.mark.nightly
def test_a_fence_costs_less_than_a_microsecond() -> None:
    def plain() -> None:
        pass

    guarded = fenced(plain)
    seconds = min(timeit.repeat(guarded, number=100_000)) - min(
        timeit.repeat(plain, number=100_000)
    )
    assert seconds < 0.1


# The command line and the shell, in a process of their own where a function of the runtime fails once

FAULTY = """
import sys, fuseline.running as running
execute = running.execute
def fail_once(*args, **kwargs):
    running.execute = execute
    raise {fault}
running.execute = fail_once
from fuseline.cli.commands import main
main()
"""


def run(
    *arguments: str, fault: str = "ValueError('planted')", stdin: str = "", **variables: str
) -> Any:

    command = [sys.executable, "-c", FAULTY.format(fault=fault), *arguments, "--device", "cpu"]
    return subprocess.run(
        command,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **variables},
    )


def test_the_command_line_ends_with_a_status_of_its_own() -> None:
    done = run("sql", "select 1")
    assert done.returncode == 70
    assert done.stderr.startswith("InternalError: Something went wrong inside Fuseline: ValueError")
    assert "Traceback" not in done.stderr


def test_with_debug_the_command_line_shows_the_traceback() -> None:
    done = run("sql", "select 1", FUSELINE_DEBUG="1")
    assert done.returncode == 70
    assert "ValueError: planted" in done.stderr
    assert "Traceback" in done.stderr


@pytest.mark.parametrize(
    ("fault", "printed"),
    [
        ("ValueError('planted')", "InternalError: Something"),
        ("MemoryError()", "MemoryLimitError: The host"),
    ],
)
def test_the_shell_goes_on(fault: str, printed: str) -> None:
    done = run("shell", fault=fault, stdin="select 1;\nselect 41 + 1 as a;\n")
    assert done.returncode == 1
    assert done.stderr.startswith(printed)
    assert "42" in done.stdout


def test_an_interrupt_stops_a_command() -> None:
    assert run("sql", "select 1", fault="KeyboardInterrupt()").returncode == 130


def test_the_test_suite_watches_the_fence() -> None:
    assert fence.internal_error.__module__ == "tests.unforeseen"
