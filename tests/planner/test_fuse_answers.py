"""Pipelines hold the query they were made of: their bodies, run as plain operators, give DuckDB's answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks import tpch as suite
from fuseline import planner
from fuseline.plan.physical import Physical, Pipeline, Stored
from fuseline.planner.pipelines import probe_order
from tests.compare import assert_same_as_duckdb, connected
from tests.conftest import SCALE
from tests.limits import SetLimits
from tests.planner.subquery_tables import TABLES
from tests.random_queries.deep import everyday, everyday_tables

QUERIES_A_TEST = 20
TPCH = suite.queries(SCALE)


def unfolded(plan: Physical) -> Physical:
    """The plan with the operators of each pipeline in its place, and its inputs in theirs."""
    done: dict[int, Physical] = {}

    def visit(node: Physical, inputs: tuple[Physical, ...]) -> Physical:
        if isinstance(node, Stored):
            return inputs[node.number]
        return node.with_children([visit(child, inputs) for child in node.children])

    def once(node: Physical) -> Physical:
        if id(node) not in done:
            below = node.with_children([once(child) for child in node.children])
            if isinstance(below, Pipeline):
                below = visit(below.body, below.inputs)
            done[id(node)] = below
        return done[id(node)]

    return once(plan)


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = planner.fuse_pipelines
    monkeypatch.setattr(planner, "fuse_pipelines", lambda plan, *_: unfolded(made(plan, "always")))
    with connected(TABLES, check=True) as opened:
        yield opened


def check(start: int, connection: Any) -> None:
    tables = everyday_tables(start)
    for name, table in tables.items():
        connection.register(name, table)
    for seed in range(start, start + QUERIES_A_TEST):
        query = everyday(seed)
        assert_same_as_duckdb(query, tables, backend="cpu", connection=connection, ordered=False)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("start", range(2000, 2000 + 160, QUERIES_A_TEST))
def test_random_queries(start: int, connection: Any) -> None:
    check(start, connection)


@pytest.mark.parametrize("start", range(3000, 3000 + 60, QUERIES_A_TEST))
def test_in_a_greedy_order(start: int, connection: Any, limits: SetLimits) -> None:
    limits(probe_order__MAX_UNITS=0)
    check(start, connection)


def test_with_what_only_adds_columns_last(connection: Any, limits: SetLimits) -> None:
    limits(probe_order__MAX_UNITS=2)
    check(3500, connection)


@pytest.mark.parametrize("start", range(4000, 4000 + 60, QUERIES_A_TEST))
def test_with_all_reductions(start: int, connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_order, "_is_worth_it", lambda *_: True)
    check(start, connection)


@pytest.mark.parametrize("joined", [
    "x join x y on x.a = y.a", "x left join x y on x.a = y.b", "x full join x y on x.a = y.b",
    "x join x y on x.a = y.b join w on w.p = y.a left join x z on z.b = w.q",
])  # fmt: skip
@pytest.mark.parametrize(
    "part",
    [
        "select t.a, w.q as b from t left join w on w.p = t.a",
        "select a, (select max(q) from w where p = t.a) as b from t",
        "select a, b from t where exists (select 1 from w where p = t.b)",
    ],
    ids=["left", "single", "semi"],
)
def test_joins_that_a_query_reads_twice(part: str, joined: str, connection: Any) -> None:
    query = f"with x as ({part}) select x.a, x.b, y.a as ya, y.b as yb from {joined}"
    assert_same_as_duckdb(query, TABLES, backend="cpu", connection=connection, ordered=False)


@pytest.mark.parametrize("name", TPCH)
def test_tpch(name: str, connection: Any, tpch_tables: Any) -> None:
    for table, path in tpch_tables.items():
        connection.execute(f"create or replace view {table} as select * from '{path}'")
    answer = assert_same_as_duckdb(TPCH[name], tpch_tables, backend="cpu", connection=connection)
    assert answer.num_rows > 0
