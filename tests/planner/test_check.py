"""A broken plan is named with the step that broke it."""

from __future__ import annotations

import dataclasses

import pytest

from fuseline.plan.expr import Call, ColumnRef, Literal, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.logical import Filter, Join, Logical, Project, Scan
from fuseline.plan.physical import MemoryScan
from fuseline.plan.types import BIGINT, BOOLEAN, INTEGER, VARCHAR
from fuseline.planner.check import InvalidPlanError, check_logical, check_physical
from fuseline.planner.optimizer import optimize
from fuseline.planner.rewrite import Rule
from tests.planner.build import TABLES, bound, physical

A, S = new_column("a", INTEGER), new_column("s", VARCHAR)
SCAN = Scan(TABLES[0], (A, S), ("a", "s"))
OTHER = new_column("other", INTEGER)


def refused(plan: Logical, message: str, subqueries: bool = False) -> None:
    with pytest.raises(InvalidPlanError, match=f"After rule: .*{message}"):
        check_logical(plan, "rule", subqueries=subqueries)


def test_a_column_that_nothing_makes() -> None:
    refused(
        Project(SCAN, ((new_column("x", INTEGER), ColumnRef(OTHER)),)), "nothing below it makes"
    )


def test_an_id_that_is_made_twice() -> None:
    refused(Join(SCAN, SCAN, JoinKind.INNER), "made twice")


def test_a_comparison_of_two_types() -> None:
    refused(
        Filter(SCAN, Call("eq", (ColumnRef(A), ColumnRef(S)), BOOLEAN)),
        "compares INTEGER with VARCHAR",
    )


def test_a_filter_that_is_no_truth_value() -> None:
    refused(Filter(SCAN, ColumnRef(A)), "a filter by a INTEGER")


def test_a_column_of_another_type_than_its_expression() -> None:
    refused(Project(SCAN, ((new_column("x", BIGINT), ColumnRef(A)),)), "its expression INTEGER")


def test_a_null_aware_join_without_one_equality() -> None:
    other = Scan(TABLES[0], (OTHER,), ("a",))
    condition = Call("lt", (ColumnRef(A), ColumnRef(OTHER)), BOOLEAN)
    refused(Join(SCAN, other, JoinKind.ANTI, condition, null_aware=True), "one equality")


def test_a_subquery_after_decorrelation() -> None:
    refused(bound("select a from t where a in (select k from u)"), "still holds a subquery")


def test_a_correlated_subquery_before_it() -> None:
    plan = bound("select a from t where exists (select 1 from u where k = a)")
    check_logical(plan, "bind", subqueries=True)


def test_a_rule_that_loses_a_column_is_named() -> None:
    def lose_a_column(plan: Logical) -> Logical:
        return plan.children[0]

    rule = Rule(lose_a_column, "a test")
    with pytest.raises(InvalidPlanError, match="After lose_a_column: the columns"):
        optimize(bound("select a from t"), check=True, rules=(rule,))


def test_a_physical_operator_that_reads_what_is_not_there() -> None:
    plan = physical("select a + 1 from t")
    (scan,) = plan.children
    assert isinstance(scan, MemoryScan)
    emptied = plan.with_children([dataclasses.replace(scan, made=(), sources=())])
    with pytest.raises(InvalidPlanError, match="ComputeColumns reads"):
        check_physical(emptied, "lower", plan.columns)


def test_a_literal_is_a_plan_of_its_own() -> None:
    unit = bound("select 1")
    check_logical(unit, "bind", subqueries=False)
    assert [c.type for c in unit.columns] == [Literal(1, INTEGER).type]
