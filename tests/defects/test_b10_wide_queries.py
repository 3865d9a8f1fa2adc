"""Queries of many joins, columns and aggregates: planned in time, with DuckDB's answers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from fuseline.planner import join_order
from tests.compare import assert_same_as_duckdb
from tests.work import planning_calls

if TYPE_CHECKING:
    from collections.abc import Callable

    import fuseline
    from tests.limits import SetLimits

ROWS = {"t": {"i": [1, 2, 3, None], "j": [1, 1, 2, 5]}}
WIDE = {"t": {f"c{i}": [i, None, i + 2] for i in range(3000)}}


def joins(count: int) -> str:
    tables = ", ".join(f"t t{k}" for k in range(count))
    equal = " and ".join(f"t{k}.i = t{k + 1}.i" for k in range(count - 1))
    return f"select count(*) as n, min(t0.j) as a, max(t{count - 1}.j) as b from {tables} where {equal}"


def sums(count: int) -> str:
    return f"select {', '.join(f'sum(c{i})' for i in range(count))} from t"


def sorted_by_all(count: int) -> str:
    return f"select {', '.join(f'c{i}' for i in range(count))} from t order by all"


def some(count: int) -> str:
    return f"(select {', '.join(f'c{i}' for i in range(count))} from t)"


def naturally_joined(count: int) -> str:
    return f"select * from {some(count)} a natural join {some(count)} b"


def unpivoted(count: int) -> str:
    return f"unpivot {some(count)} on columns(*)"


SETTINGS = {"fuse": "never", "check": False}


@pytest.mark.parametrize("count", [11, 64])
def test_comma_joins(count: int) -> None:
    assert_same_as_duckdb(joins(count), ROWS, backend="cpu", fuse=("never",))


def test_a_star_and_a_reduced_chain_in_greedy_order(limits: SetLimits) -> None:
    limits(join_order__MAX_UNITS=0)
    star = "select a.i, d.j from t a, t b, t c, t d where a.i = b.i and a.i = c.i and a.j = d.i"
    exists = f"{star} and exists (select 1 from t e where e.i = b.j) and d.i not in (select 7)"
    for query in (star, exists):
        assert_same_as_duckdb(query, ROWS, backend="cpu", ordered=False)


def test_joins_are_weighed_once(
    connection: fuseline.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of n tables n (n - 1) / 2 pairs, and with each join those of the joined set."""
    weighed = []
    of_pair = join_order._joined
    monkeypatch.setattr(join_order, "_joined", lambda *pair: (weighed.append(1), of_pair(*pair))[1])
    connection.execute("create table t as select range as i, range as j from range(5)")
    connection.physical(connection.sql(joins(64)).plan)
    assert len(weighed) < 64 * 64


@pytest.mark.parametrize("query", [
    sums(600),
    f"select {', '.join(f'c{i}' for i in range(600))} from t",
    f"{sorted_by_all(300)} limit 2", f"select distinct on (c1, c2) * from ({sorted_by_all(200)}) order by all",
    f"select c1 + 1 as k, {', '.join(f'max(c{i}) as m{i}' for i in range(200))} from t group by all",
    f"select {', '.join(f'c{i}' for i in range(200))} from t group by {', '.join(f'c{i}' for i in range(200))}",
    "select c1 + 1 as k, c1 + 1 as l, count(*) + c1 + 1 as n, sum(c2), sum(c2) as s from t group by c1 + 1, c1, c1 + 1",
    "select c1, grouping(c1, c2) as g, count(*) as n, count(*) as m from t group by rollup (c1, c2, c1) having grouping(c2) = 0 or count(*) > 1",
])  # fmt: skip
def test_wide_selects(query: str) -> None:
    assert_same_as_duckdb(query, WIDE, backend="cpu", fuse=("never",), ordered=False)


@pytest.mark.parametrize("query", [sums, sorted_by_all, naturally_joined, unpivoted])
def test_twice_the_columns_are_twice_the_work(
    query: Callable[[int], str], connection: fuseline.Connection
) -> None:
    calls = []
    for count in (400, 800):
        columns = ", ".join(f"range as c{k}" for k in range(count))
        connection.execute(f"create or replace table t as select {columns} from range(3)")
        calls.append(planning_calls(connection, query(count)))
    assert calls[1] < 2.3 * calls[0]


@pytest.mark.nightly
def test_wide_queries_take_no_longer_than_they_may(connection: fuseline.Connection) -> None:
    import pyarrow as pa

    connection.register("t", pa.table(ROWS["t"]))
    connection.sql(joins(3)).fetchall()
    start = time.process_time()
    connection.physical(connection.sql(joins(64)).plan)
    assert time.process_time() - start < 0.3
    connection.register("t", pa.table({f"c{i}": [i, i + 1, i + 2] for i in range(3000)}))
    seconds = []
    for _ in range(4):
        start = time.process_time()
        connection.sql(sums(3000)).fetchall()
        seconds.append(time.process_time() - start)
    assert seconds[0] < 1.5
    assert min(seconds[1:]) < 0.1
