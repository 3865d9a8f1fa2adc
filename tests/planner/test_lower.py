"""Lowering, placing and sharing: which operators a query becomes."""

from __future__ import annotations

from collections.abc import Iterator

from fuseline.plan import physical as p
from fuseline.plan.node import walk
from tests.planner.build import physical


def operators(plan: p.Physical) -> list[str]:
    return [type(n).__name__ for n in walk(plan)]


def find(plan: p.Physical, kind: type) -> Iterator[p.Physical]:
    return (n for n in walk(plan) if isinstance(n, kind))


def test_sort_and_limit_are_top_k() -> None:
    assert operators(physical("select a, b from t order by b limit 3")) == ["TopK", "MemoryScan"]


def test_sort_keys_that_are_expressions_are_computed_below() -> None:
    plan = physical("select a, b from t order by a + b")
    assert operators(plan) == ["ComputeColumns", "SortRows", "ComputeColumns", "MemoryScan"]


def test_a_constant_orders_nothing() -> None:
    assert "SortRows" not in operators(physical("select a, b from t order by null"))


def test_the_smaller_side_is_hashed() -> None:
    (join,) = find(physical("select a, q from w join t on a = p"), p.HashJoin)
    assert isinstance(join, p.HashJoin)
    sides = {"left": join.left, "right": join.right}
    smaller = sides[join.build]
    assert isinstance(smaller, p.MemoryScan)
    assert smaller.table.name == "w"


def test_a_right_join_becomes_a_left_one() -> None:
    (join,) = find(physical("select a, q from w right join t on a = p"), p.HashJoin)
    assert isinstance(join, p.HashJoin)
    assert join.kind == "left"


def test_keys_and_a_residual() -> None:
    (join,) = find(
        physical("select a from t left join u on a + 1 = k and b < x and c is not distinct from y"),
        p.HashJoin,
    )
    assert isinstance(join, p.HashJoin)
    assert len(join.left_keys) == 2
    assert join.null_equal == (False, True)
    assert join.residual is not None


def test_no_equality_is_a_nested_loop() -> None:
    assert "NestedLoopJoin" in operators(physical("select a from t, u where b < x"))


def test_distinct_is_an_aggregation_without_aggregates() -> None:
    plan = physical("select distinct a, b from t")
    assert isinstance(plan, p.HashAggregate)
    assert plan.aggregates == ()


def test_unions_are_one_concatenation() -> None:
    plan = physical("select a from t union all select k from u union all select p from w")
    assert isinstance(plan, p.ConcatRows)
    assert len(plan.inputs) == 3


def test_union_takes_in_union_all() -> None:
    plan = physical("(select a from t union all select k from u) union select p from w")
    assert operators(plan)[:2] == ["HashAggregate", "ConcatRows"]
    assert operators(plan).count("ConcatRows") == 1


def test_union_all_keeps_union_apart() -> None:
    plan = physical("(select a from t union select k from u) union all select p from w")
    assert operators(plan).count("ConcatRows") == 2


def test_grouping_sets_read_one_input() -> None:
    plan = physical("select a, b, sum(c + 1) from t group by rollup (a, b)")
    concatenated = next(find(plan, p.ConcatRows))
    inputs = {id(node.input) for node in find(concatenated, p.HashAggregate)}  # type: ignore[attr-defined]
    assert len(list(find(concatenated, p.HashAggregate))) == 3
    assert len(inputs) == 1


def test_equal_arguments_are_computed_once() -> None:
    plan = physical("select sum(a * b), avg(a * b), min(a * b + 1) from t")
    computed = [e for node in find(plan, p.ComputeColumns) for _, e in node.items]  # type: ignore[attr-defined]
    products = [e for e in computed if getattr(e, "function", "") == "mul"]
    assert len(products) == 1


def test_a_part_of_a_branch_is_not_computed_for_all_rows() -> None:
    plan = physical(
        "select case when a > 0 then b // a end, case when a < 0 then b // a end from t"
    )
    assert operators(plan) == ["ComputeColumns", "MemoryScan"]


def test_a_count_needs_no_column() -> None:
    (scan, _) = find(
        physical("select count(*) from t where exists (select 1 from u)"), p.MemoryScan
    )
    assert scan.columns == ()


def test_a_count_of_a_table_needs_no_scan() -> None:
    assert operators(physical("select count(*) from t")) == ["ValuesScan"]


def test_a_cte_that_is_read_twice_runs_once() -> None:
    plan = physical(
        "with v as (select k, sum(x) as s from u where y > 1 group by k) "
        "select v1.k from v v1, v v2 where v1.s = v2.k"
    )
    assert len({id(n) for n in find(plan, p.HashAggregate)}) == 1


def test_sharing_keeps_the_columns_of_both_readers() -> None:
    plan = physical("select * from (select k from u where y > 1), (select x, y from u where y > 1)")
    (shared,) = {id(n): n for n in find(plan, p.FilterRows)}.values()
    assert {c.name for c in shared.columns} == {"k", "x", "y"}


def test_different_filters_are_not_shared() -> None:
    plan = physical("select * from (select k from u where y > 1), (select k from u where y > 2)")
    assert len({id(n) for n in find(plan, p.FilterRows)}) == 2


def test_two_scans_of_one_table_are_told_apart_in_a_join() -> None:
    one = "(select u1.x from u u1, u u2 where u1.k = u2.k and u1.y = 1)"
    other = "(select u2.x from u u1, u u2 where u1.k = u2.k and u1.y = 1)"
    plan = physical(f"select * from {one} a, {other} b")
    names = [c.id for c in plan.columns]
    assert len(set(names)) == 2


def test_everything_is_on_the_cpu_of_a_cpu_connection() -> None:
    plan = physical("select a from t where b = 1")
    assert {(n.device, n.reason) for n in walk(plan)} == {("cpu", "the connection runs on the CPU")}


def no_sort(node: p.Physical) -> str | None:
    return "the GPU is tired" if isinstance(node, p.SortRows) else None


def test_transfers_around_what_the_gpu_cannot_run() -> None:
    plan = physical("select a + 1 as z from (select a from t order by b)", "gpu", no_sort)
    devices = [(type(n).__name__, n.device) for n in walk(plan)]
    assert devices == [
        ("ComputeColumns", "gpu"),
        ("Transfer", "gpu"),
        ("SortRows", "cpu"),
        ("MemoryScan", "cpu"),
    ]
    reasons = [n.reason for n in walk(plan) if n.device == "cpu"]
    assert reasons == ["the GPU is tired", "only operators on the CPU read it"]


def test_a_table_that_two_operators_read_is_moved_once() -> None:
    query = "with v as (select k, x from u where y > 1 order by k) select * from v a, v b where a.x < b.x"
    plan = physical(
        query, "gpu", lambda n: None if not isinstance(n, p.FilterRows) else "no filters"
    )
    assert len({id(n) for n in find(plan, p.Transfer)}) == 1
