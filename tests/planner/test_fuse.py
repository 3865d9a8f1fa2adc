"""Which chains of operators become pipelines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.plan.node import transform_up, walk
from fuseline.plan.physical import (
    ComputeColumns,
    ConcatRows,
    FilterRows,
    HashAggregate,
    HashJoin,
    Physical,
    Pipeline,
)
from fuseline.plan.text.plan_text import describe
from fuseline.planner.pipelines.fuse import SMALL_INPUT, fuse
from fuseline.settings import FuseChoice

TABLES = {
    "t": pa.table({"k": [1, 2], "v": [3, 4], "s": ["a", "b"]}),
    "other": pa.table({"k": [1, 2], "w": [5, 6]}),
    "large": pa.table({"v": np.arange(2 * SMALL_INPUT)}),
}
SETTINGS = {"fuse": "always"}


def _bodies(connection: fuseline.Connection, query: str) -> list[type[Physical]]:
    """What the pipelines of a query end in."""
    plan = connection.physical(connection.sql(query).plan)
    return [type(node.body) for node in walk(plan) if isinstance(node, Pipeline)]


def test_an_aggregate_above_filters_and_projections(connection: fuseline.Connection) -> None:
    query = "select k + 1, sum(v * 2) from (select * from t where v > 1) where s = 'a' group by 1"
    assert _bodies(connection, query) == [HashAggregate]


def test_an_aggregate_of_a_bare_scan(connection: fuseline.Connection) -> None:
    assert _bodies(connection, "select count(v) from t") == [HashAggregate]


def test_rows_that_are_known_are_counted_without_a_pipeline(
    connection: fuseline.Connection,
) -> None:
    assert _bodies(connection, "select count(*) from t") == []


def test_filters_on_both_sides_of_a_join(connection: fuseline.Connection) -> None:
    query = "select v, w from t join other using (k) where v > 3 and w < 6"
    plan = connection.physical(connection.sql(query).plan)
    (pipeline,) = [node for node in walk(plan) if isinstance(node, Pipeline)]
    parts = [type(node) for node in walk(pipeline.body)]
    assert (parts.count(HashJoin), parts.count(FilterRows)) == (1, 2)


def test_an_aggregate_above_a_join(connection: fuseline.Connection) -> None:
    assert _bodies(connection, "select sum(v + w) from t join other using (k)") == [HashAggregate]


@pytest.mark.parametrize(
    ("query", "bodies"),
    [
        ("select sum(t.v) from large join t on large.v = t.v", [HashAggregate]),
        ("select sum(v) from t join other using (k) where v > 3", []),
        ("select w, sum(v) from large join other on v = k group by w", [HashAggregate]),
        # as many groups as rows, which the operators number as fast
        (
            "select v * 7, count(*) from large join large as l using (v) group by 1",
            [ComputeColumns],
        ),
    ],
)
def test_joins_on_the_cpu(
    query: str, bodies: list[type[Physical]], connection: fuseline.Connection
) -> None:
    connection.set_option("fuse", "auto")
    assert _bodies(connection, query) == bodies


def test_rows_without_a_filter_are_not_fused(connection: fuseline.Connection) -> None:
    assert _bodies(connection, "select v + 1 from t") == []


@pytest.mark.parametrize(("side", "bodies"), [("large", [HashJoin]), ("other", [])])
def test_few_rows_that_are_looked_up(
    side: str, bodies: list[type[Physical]], connection: fuseline.Connection
) -> None:
    """A set of many keys is worth a kernel on the CPU, however few rows ask for one."""
    connection.set_option("fuse", "auto")
    key = {"large": "v", "other": "w"}[side]
    query = f"select k, s from t where v in (select {key} from {side} where {key} > 1)"
    assert [body for body in _bodies(connection, query) if body is HashJoin] == bodies


@pytest.mark.parametrize(("choice", "bodies"), [("always", HashAggregate), ("auto", FilterRows)])
def test_a_chain_that_two_operators_read(
    choice: FuseChoice, bodies: type[Physical], connection: fuseline.Connection
) -> None:
    """It costs less to filter twice than to store the rows; the CPU's operators do not filter twice."""
    connection.set_option("fuse", "never")
    plan = connection.physical(connection.sql("select sum(v) from large where v > 3").plan)
    (one,) = [node for node in walk(plan) if isinstance(node, HashAggregate)]
    other = replace(one)
    fused = fuse(ConcatRows((one, other), one.columns), choice)
    assert {type(node.body) for node in walk(fused) if isinstance(node, Pipeline)} == {bodies}


@pytest.mark.parametrize(("read", "joins"), [("below", [2, 3]), ("twice", [1, 1])])
def test_joins_that_are_read_below_an_aggregate_too(
    read: str, joins: list[int], connection: fuseline.Connection
) -> None:
    """Each of two pipelines does few joins itself; one that would do them twice stores their rows."""
    query = "with x as (select t.k, w from t left join other using (k) where w is null or w > 0) "
    query += {
        "below": "select v, m from t join x using (k) "
        "join (select v, min(w) as m from t join x using (k) group by v) y using (v)",
        "twice": "select x.w, y.w from x join x y on x.k = y.w",
    }[read]
    plan = connection.physical(connection.sql(query).plan)
    pipelines = {id(node): node for node in walk(plan) if isinstance(node, Pipeline)}
    found = [sum(isinstance(p, HashJoin) for p in walk(n.body)) for n in pipelines.values()]
    assert sorted(found) == joins


def test_an_aggregate_that_two_operators_read_runs_once(connection: fuseline.Connection) -> None:
    query = """
        with few as (select k, sum(v) as v from t group by k)
        select count(*) from t join few using (k) where few.v > (select avg(v) from few)
    """
    plan = connection.physical(connection.sql(query).plan)
    pipelines = {id(node): node for node in walk(plan) if isinstance(node, Pipeline)}
    assert sum("by k" in describe(node.body) for node in pipelines.values()) == 1


@pytest.mark.parametrize(
    ("query", "held"),
    [
        ("select k, sum(v) from t group by k having sum(v) > 3", True),
        ("select k from t join other using (k) group by k having min(w) > 3", True),
        ("select count(v) from t having count(v) > 3", True),
        # read by others too
        (
            "with g as (select k, sum(v) as s from t group by k) "
            "select * from g where s > 3 and s = (select max(s) from g)",
            False,
        ),
        ("select k, sum(v) from t group by k having sum(v) > k", True),
        ("select s, sum(v) from t group by s having sum(v) > 3 or s = 'a'", False),
        ("select k, min(s) from t group by k having min(s) > 'a'", False),
        ("select k, sum(v) from t group by k having count(distinct v) > 1", False),
    ],
)
def test_a_condition_on_groups(connection: fuseline.Connection, query: str, held: bool) -> None:
    assert (FilterRows in _bodies(connection, query)) is held


def test_why_a_condition_on_groups_is_in_no_pipeline(connection: fuseline.Connection) -> None:
    query = "select s, sum(v) from t group by s having sum(v) > 3 or s = 'a'"
    text = connection.sql(query).explain()
    assert 'not fused: the condition on groups reads the key "s", a VARCHAR' in text


def test_a_condition_on_groups_keeps_the_expected_groups_of_the_aggregate(
    connection: fuseline.Connection,
) -> None:
    """By which a hash table is sized."""
    plan = connection.physical(
        connection.sql("select v, count(*) from large group by v having count(*) > 1").plan
    )
    assert isinstance(plan, Pipeline)
    groups = plan.steps.groups
    assert groups is not None
    assert groups.estimate is not None
    assert plan.estimate is not None
    assert plan.estimate < groups.estimate


def test_the_operators_of_an_input_stand_below_it(connection: fuseline.Connection) -> None:
    query = "select count(*) from other where k in (select k from t group by k having sum(v) > 3)"
    *lines, whose = connection.sql(query).explain().splitlines()
    assert whose == "plan: made for this text"
    assert [line.split("  [")[0].strip() for line in lines if "cpu:" not in line] == [
        "Pipeline",
        "MemoryScan  other  k#1",
        "HashJoin semi  k#1 = k#2  build=right  -> nothing",
        "Stored  0",
        "Pipeline",
        "MemoryScan  t  k#2, v",
        "HashAggregate  by k#2  sum(v) as sum",
        "FilterRows  sum > 3  -> k#2",
        "HashAggregate  count(*) as count_star()",
    ]


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
