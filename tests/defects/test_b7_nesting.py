"""Deep and wide texts are answered as DuckDB answers them, or refused; none ends the process."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

import fuseline
from fuseline import deep
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

T = {"t": {"x": [1, -2, None, 4]}}
DEEP = {
    "parentheses": f"select {'(' * 990}1{')' * 990} as a",
    "functions": f"select {'abs(' * 500}x{')' * 500} as a from t",
    "scalar subqueries": f"select {'(select ' * 150}1{')' * 150} as a",
    "CASE": f"select {'case when x > 0 then ' * 50}1{' end' * 50} as a from t",
    "NOT": f"select {'not ' * 300}true as a",
    "sums": f"select {' + '.join(['x'] * 500)} as a from t",
    "conditions": f"select x from t where {' and '.join(f'x <> {i}' for i in range(5, 1000))}",
    "subqueries in FROM": f"select * from {'(select * from ' * 60}t{')' * 60}",
    "WITH entries": "with q0 as (select x from t)"
    + "".join(f", q{i} as materialized (select x + 1 as x from q{i - 1})" for i in range(1, 200))
    + " select * from q199",
    "views of views": "select * from v30",
}
VIEWS = ["create view v0 as select * from t"]
VIEWS += [f"create view v{i} as select x + 1 as x from v{i - 1}" for i in range(1, 31)]


@pytest.mark.parametrize("kind", DEEP)
def test_as_deep_as_duckdb_goes(kind: str) -> None:
    setup = VIEWS if "views" in kind else ()
    modes = ("auto", "never")
    assert_same_as_duckdb(DEEP[kind], T, setup=setup, backend="cpu", fuse=modes, ordered=False)


def test_many_branches_of_a_union() -> None:
    texts = [f"select {i} as a, {i % 3}.5 as b" for i in range(400)]
    assert_same_as_duckdb(" union all ".join(texts), ordered=True)
    assert_same_as_duckdb(" union ".join(texts), ordered=False)
    assert_same_as_duckdb(
        f"{' union all '.join(texts[:5])} union select 1, 1.5 except select 2, 2.5"
    )


@pytest.mark.parametrize(
    "text",
    [
        "select 1 union all select 2.5 union all select 'a' union all select 1",
        "select 1 union all select 2.5 union select 'a'",
        "select 1 union select 2.5 union select 'a'",
        "select 'a' union all (select 1 union all select 2.5)",
        "select 1 except select 2.5 union all select 'a'",
        "select 1 as a union all by name select 2.5 as a union all select 'a'",
        "select 1 as a union all by name select 2.5 as a union all by name select 'a' as a, 3 as b",
        "select 1 as a union by name select 2 as b union by name select 1 as a",
    ],
)
def test_branches_are_cast_to_the_types_of_all_of_their_kind(text: str) -> None:
    assert_same_as_duckdb(text, ordered=False)


@pytest.mark.parametrize("text", [
    f"select {'(' * 2000}1{')' * 2000}", f"select {'(' * 100_000}1{')' * 100_000}", "select " + "(" * 100_000,
    f"select {'abs(' * 2000}1{')' * 2000}", f"select {'- ' * 50_000}1", f"select {'not ' * 50_000}true",
    f"select {'case when true then ' * 2000}1{' end' * 2000}",
])  # fmt: skip
def test_beyond_that_it_is_an_error_and_the_connection_goes_on(text: str) -> None:
    with fuseline.connect(device="cpu") as connection:
        with pytest.raises(FuselineError):
            connection.sql(text).fetchall()
        assert connection.sql("select 1").fetchall() == [(1,)]


def test_a_long_chain_of_calls_runs() -> None:
    with fuseline.connect(device="cpu") as connection:
        frame = connection.sql("select range as x from range(3)")
        for _ in range(300):
            frame = frame.with_columns(x=fuseline.col("x") + 1)
        assert frame.fetchall() == [(300,), (301,), (302,)]


def test_a_thread_with_a_small_stack_survives() -> None:
    """In a process of its own, which a stack overflow would end."""
    texts = [
        f"select {'(' * n}1{')' * n}, {'abs(' * n}x{')' * n} from range(3) r(x)"
        for n in (4, deep.SHALLOW_NESTING - 1, deep.SHALLOW_NESTING + 1, 300)
    ]
    for n in (deep.SHALLOW_NESTING - 1, deep.SHALLOW_NESTING + 1):
        entries = "".join(f", q{i} as (select x + 1 as x from q{i - 1})" for i in range(1, n))
        texts.append(f"with q0 as (select x from range(3) r(x)){entries} select * from q{n - 1}")
    code = f"""
import threading, fuseline
def work():
    connection = fuseline.connect(device="cpu", fuse="never")
    for text in {texts!r}:
        print(len(connection.sql(text).fetchall()))
threading.stack_size(512 << 10)
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3"] * len(texts)


def test_the_limit_of_calls_is_put_back() -> None:
    before = sys.getrecursionlimit()
    with fuseline.connect(device="cpu") as connection:
        threads = [
            threading.Thread(target=lambda: connection.sql(DEEP["parentheses"]).fetchall())
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sys.getrecursionlimit() == before


def test_nesting_counts_what_is_open_and_operators_in_a_row() -> None:
    assert deep.nesting("select 1") == 0
    assert deep.nesting("select ((1)) + f(2, (3))") == 3
    assert deep.nesting("select '((((', \"((\" -- ((\n") == 0
    assert deep.nesting("select 1 + 2 - 3, 4 * 5") == 2
    assert deep.nesting("select case when a then (b) end") == 2
    assert deep.nesting("with a as (select 1), b AS not materialized(select 2) select 3") == 2


@pytest.mark.nightly
@pytest.mark.parametrize(("text", "most"), [
    (DEEP["parentheses"], 0.5), (DEEP["functions"], 0.5),
    (DEEP["scalar subqueries"], 0.5),
    (" union all ".join(f"select {i} as a" for i in range(10_000)), 5.0),
], ids=["parentheses", "functions", "scalar subqueries", "branches of a union"])  # fmt: skip
def test_deep_texts_take_no_longer_than_they_may(text: str, most: float) -> None:
    with fuseline.connect(device="cpu", fuse="never") as connection:
        connection.execute("create table t as select range as x from range(4)")
        connection.sql("select abs(x) from t").fetchall()
        start = time.process_time()
        connection.sql(text).fetchall()
        assert time.process_time() - start < most
