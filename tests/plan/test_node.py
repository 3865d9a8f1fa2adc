"""Nodes of plan trees: rebuilding gives the very object where nothing changed, and forgets what it worked out where something did."""

from __future__ import annotations

import dataclasses

import pytest

from fuseline.plan.expr import Call, ColumnRef, Literal, columns_of, new_column
from fuseline.plan.logical import Filter, Project, Scan, free_columns
from fuseline.plan.node import transform_up, walk
from fuseline.plan.types import BIGINT, BOOLEAN
from fuseline.planner.rules.prune_columns import prune_columns
from fuseline.planner.rules.push_filters import push_filters
from fuseline.planner.rules.simplify import simplify
from tests.planner.build import bound, optimized, table

A, B = new_column("a", BIGINT), new_column("b", BIGINT)
ONE = Literal(1, BIGINT)


def equal(left: object, right: object) -> Call:
    return Call("eq", (left, right), BOOLEAN)  # type: ignore[arg-type]


def test_the_columns_of_an_expression_are_those_of_the_expression_that_replaced_it() -> None:
    test = equal(ColumnRef(A), ONE)
    assert columns_of(test) == {A}
    changed = test.with_children([ColumnRef(B), ONE])
    assert columns_of(changed) == {B}
    assert changed.children == (ColumnRef(B), ONE)
    assert columns_of(test) == {A}


def test_a_replaced_node_is_what_dataclasses_make_of_it() -> None:
    scan = Scan(table("t", 10, a=BIGINT, b=BIGINT), (A, B), ("a", "b"))
    made = Project(scan, ((A, ColumnRef(A)),))
    assert made.columns == (A,)
    items = ((B, ColumnRef(B)),)
    assert made.replaced(items=items) == dataclasses.replace(made, items=items)
    assert made.replaced(items=items).columns == (B,)
    with pytest.raises(AssertionError, match="Project has not all of"):
        made.replaced(item=items)


def test_the_same_children_give_the_same_node() -> None:
    test = equal(ColumnRef(A), ONE)
    assert test.with_children(test.children) is test
    assert transform_up(test, lambda node: None) is test


def test_parents_come_before_children_and_left_ones_before_right_ones() -> None:
    test = equal(equal(ColumnRef(A), ONE), ColumnRef(B))
    assert list(walk(test)) == [test, test.args[0], ColumnRef(A), ONE, ColumnRef(B)]


def test_expressions_that_come_back_as_they_were_leave_the_node_alone() -> None:
    plan = bound("select k + 1, sum(x) from u where y > 2 group by k order by 2 desc")
    for node in walk(plan):
        assert node.map_expressions(lambda expr: expr) is node


def test_free_columns_are_read_and_not_made() -> None:
    scan = Scan(table("t", 10, a=BIGINT), (A,), ("a",))
    assert free_columns(Filter(scan, equal(ColumnRef(A), ColumnRef(B)))) == {B}
    assert free_columns(Filter(scan, equal(ColumnRef(A), ONE))) == set()


@pytest.mark.parametrize("rule", [simplify, push_filters, prune_columns])
def test_a_finished_plan_stays_the_very_object(rule: object) -> None:
    plan = optimized(
        "select t.a, sum(u.x) from t join u on t.a = u.k left join w on w.p = t.b "
        "where u.y > 2 and t.c < 1 group by t.a having sum(u.x) > 5 order by 2 limit 3"
    )
    assert rule(plan) is plan  # type: ignore[operator]
