"""Random queries give DuckDB's answers, as they are planned and with every rule pushed to its limits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits
from tests.random_queries.deep import everyday, everyday_tables

SETTINGS = {"check": True}
QUERIES_A_TEST = 20


def check(start: int, connection: Any, backend: str) -> None:
    tables = everyday_tables(start)
    for name, table in tables.items():
        connection.register(name, table)
    for seed in range(start, start + QUERIES_A_TEST):
        assert_same_as_duckdb(everyday(seed), tables, backend=backend, connection=connection, ordered=False)  # fmt: skip


@pytest.mark.parametrize("start", range(0, 160, QUERIES_A_TEST))
def test_same_as_duckdb(start: int, connection: Any, backend: str) -> None:
    check(start, connection, backend)


@pytest.mark.parametrize("start", range(1000, 1000 + 80, QUERIES_A_TEST))
def test_greedy_order_and_reduction_of_every_aggregate(
    start: int, connection: Any, backend: str, limits: SetLimits
) -> None:
    limits(
        join_order__MAX_UNITS=0,
        reduce_aggregates__MAX_SHARE=float("inf"),
        MIN_RATIO=0.0,
        MIN_ROWS_A_KEY=0.0,
    )
    check(start, connection, backend)
