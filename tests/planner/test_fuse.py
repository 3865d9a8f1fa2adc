"""Which chains of operators become pipelines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.plan.node import transform_up, walk
from fuseline.plan.physical import ConcatRows, FilterRows, HashAggregate, Physical, Pipeline
from fuseline.planner.fuse import SMALL_INPUT, fuse


@pytest.fixture
def connection() -> Iterator[fuseline.Connection]:
    with fuseline.connect(device="cpu", fuse="always") as made:
        made.register("t", pa.table({"k": [1, 2], "v": [3, 4], "s": ["a", "b"]}))
        made.register("other", pa.table({"k": [1, 2], "w": [5, 6]}))
        made.register("large", pa.table({"v": np.arange(SMALL_INPUT)}))
        yield made


def _bodies(connection: fuseline.Connection, query: str) -> list[type[Physical]]:
    """What the pipelines of a query end in."""
    plan = connection.physical(connection.sql(query).plan)
    return [type(node.body) for node in walk(plan) if isinstance(node, Pipeline)]


def test_an_aggregate_above_filters_and_projections(connection: fuseline.Connection) -> None:
    query = "select k + 1, sum(v * 2) from (select * from t where v > 1) where s = 'a' group by 1"
    assert _bodies(connection, query) == [HashAggregate]


def test_an_aggregate_of_a_bare_scan(connection: fuseline.Connection) -> None:
    assert _bodies(connection, "select count(*) from t") == [HashAggregate]


def test_filters_on_both_sides_of_a_join(connection: fuseline.Connection) -> None:
    query = "select * from t join other using (k) where v > 3 and w < 6"
    assert _bodies(connection, query) == [FilterRows, FilterRows]


def test_an_aggregate_above_a_join_is_not_fused(connection: fuseline.Connection) -> None:
    assert _bodies(connection, "select sum(v + w) from t join other using (k)") == []


def test_rows_without_a_filter_are_not_fused(connection: fuseline.Connection) -> None:
    assert _bodies(connection, "select v + 1 from t") == []


def test_rows_that_two_operators_read_are_not_fused(connection: fuseline.Connection) -> None:
    connection.set_option("fuse", "never")
    plan = connection.physical(connection.sql("select sum(v) from t where v > 3 and s = 'a'").plan)
    (one,) = [node for node in walk(plan) if isinstance(node, HashAggregate)]
    other = replace(one)
    fused = fuse(ConcatRows((one, other), one.columns), "always")
    bodies = {type(node.body) for node in walk(fused) if isinstance(node, Pipeline)}
    assert bodies == {FilterRows}


def test_never_and_auto(connection: fuseline.Connection) -> None:
    small, large = "select sum(v) from t where v > 3", "select sum(v) from large where v > 3"
    connection.set_option("fuse", "never")
    assert _bodies(connection, large) == []
    connection.set_option("fuse", "auto")
    assert _bodies(connection, small) == []
    assert _bodies(connection, large) == [HashAggregate]


def test_auto_fuses_any_input_on_the_gpu(connection: fuseline.Connection) -> None:
    connection.set_option("fuse", "never")
    plan = connection.physical(connection.sql("select sum(v) from t where v > 3").plan)
    on_gpu = transform_up(plan, lambda node: replace(node, device="gpu"))
    assert [type(n.body) for n in walk(fuse(on_gpu, "auto")) if isinstance(n, Pipeline)] == [
        HashAggregate
    ]
    assert not any(isinstance(n, Pipeline) for n in walk(fuse(plan, "auto")))
