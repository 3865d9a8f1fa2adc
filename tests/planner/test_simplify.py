"""Simplified expressions mean what DuckDB means by the original ones."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import given, strategies as st

from fuseline.plan.expr import Call, Expr, Literal
from fuseline.plan.logical import Filter, Project
from fuseline.plan.text.expr_text import expression
from fuseline.planner.expressions.simplification import simplified
from tests.planner.build import bound


def item(sql: str) -> Expr:
    """The simplified expression of a select list over table t(a INTEGER, b INTEGER, c DOUBLE, s VARCHAR, f BOOLEAN)."""
    plan = bound(f"select {sql} as z from t")
    assert isinstance(plan, Project)
    return simplified(plan.items[0][1])


def condition(sql: str) -> str:
    plan = bound(f"select a from t where {sql}")
    assert isinstance(plan, Project)
    assert isinstance(plan.input, Filter)
    return expression(simplified(plan.input.predicate))


@pytest.mark.parametrize("sql", [
    "1 + 2 * 3", "7 // -2", "-7 % 3", "0.06 - 0.01", "1.10 * 2.5", "cast(2.5 as decimal(10, 0))",
    "cast(-2.5 as decimal(10, 0))", "cast('2024-02-29' as date)", "date '2024-01-31' + interval '1' month",
    "date '2024-03-31' - interval '1' month",
    "timestamp '2024-12-31 23:59:59' + interval '1' second",
    "date '1998-12-01' - interval '90' day", "date '2024-03-01' - date '2024-02-01'", "1 < 2 and null", "null or true",
    "not null", "3 in (1, 2, null)", "3 in (1, 3, null)", "null is null", "null is not distinct from 1",
    "coalesce(null, null, 4)",
    "case when 1 > 2 then 'a' when null then 'b' else 'c' end",
    "year(date '2024-05-06')", "'abc' < 'abd'", "cast(5 as double) / 2",
])  # fmt: skip
def test_constants_fold_to_what_duckdb_computes(sql: str) -> None:
    found = item(sql)
    assert isinstance(found, Literal), expression(found)
    assert found.value == duckdb.sql(f"select {sql}").fetchall()[0][0]


@pytest.mark.parametrize(
    "sql", ["1 // 0", "2147483647::integer + 1::integer", "300::tinyint", "1 / 0", "sqrt(-1)"]
)
def test_what_raises_or_is_not_plain_arithmetic_stays(sql: str) -> None:
    assert not isinstance(item(sql), Literal)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(a = 1 and b = 2) or (a = 1 and b = 3)", "a = 1 and b in (2, 3)"),
        ("a = 1 or (a = 1 and b = 2)", "a = 1"),
        ("a = 1 and (a = 1 and b = 2)", "a = 1 and b = 2"),
        ("not (a < 1 or b >= 2)", "a >= 1 and b < 2"),
        ("not not f", "f"),
        ("5 > a", "a < 5"),
        ("a > 1 and a >= 4 and a > 3", "a >= 4"),
        ("a::bigint = 5", "a = 5"),
        ("a::bigint < 3000000000", "a is not null or null"),
        ("a::bigint = 3000000000", "a is null and null"),
        ("a::decimal(12, 2) > 4.5", "a > 4"),
        ("a::decimal(12, 2) < -4.5", "a <= -5"),
        ("a in (3, 3)", "a = 3"),
        ("a in (1, 2) and a in (2, 1)", "a in (1, 2)"),
        ("a in (1, 2, 3) and b < 4 and a in (3, 2)", "b < 4 and a in (3, 2)"),
        ("a in (1, null) and a in (null, 2, 1)", "a in (1, null)"),
        ("a in (1, 2) and a in (2, 3)", "a in (1, 2) and a in (2, 3)"),
        ("a in (1, 2) and b in (1, 2)", "a in (1, 2) and b in (1, 2)"),
        ("a = 1 and a in (2, 3)", "a is null and null"),
        ("a <= 1 and b = 2 and a > 1", "b = 2 and a is null and null"),
        ("a in (1, 2) and a > 2", "a is null and null"),
        ("a in (1, 2) and a > 1", "a in (1, 2) and a > 1"),
        ("a >= 1 and a <= 1", "a >= 1 and a <= 1"),
        ("a in (1, null) and a = 2", "a in (1, null) and a = 2"),
        ("a is not distinct from 1 and a = 2", "a is not distinct from 1 and a = 2"),
        ("a::bigint in (1, 3000000000)", "a = 1"),
        ("a is not distinct from null", "a is null"),
        ("f and true", "f"),
        ("f or true", "true"),
        ("case when false then f else a = 1 end", "a = 1"),
    ],
)
def test_forms(before: str, after: str) -> None:
    assert condition(before) == after


def test_a_predicate_that_is_already_simple_stays_the_very_object() -> None:
    plan = bound("select a from t where a = 1 and b < 2")
    assert isinstance(plan.children[0], Filter)
    predicate = plan.children[0].predicate
    assert simplified(predicate) is predicate


TRUTH = st.sampled_from(["true", "false", "null"])
ATOMS = st.sampled_from(["p", "q", "not p", "not q", "p is null", "q is not null", "null", "true"])
PREDICATES = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda t: f"({' '.join(t)})"),
        inner.map(lambda i: f"not ({i})"),
    ),
    max_leaves=8,
)


@given(PREDICATES, TRUTH, TRUTH)
def test_three_valued_logic(predicate: str, p: str, q: str) -> None:
    """The table t has one BOOLEAN column only, so that `p` is f and `q` is a = 1."""
    found = item(predicate.replace("p", "f").replace("q", "(a = 1)"))
    expected = duckdb.sql(
        f"select {predicate} from (select {p}::boolean as p, {q}::boolean as q)"
    ).fetchall()[0][0]
    truth = {"true": True, "false": False, "null": None}
    assert _evaluate(found, truth[p], truth[q]) == expected


def _evaluate(expr: Expr, p: bool | None, q: bool | None) -> Any:
    """The value of an expression over f and a, computed as plainly as can be."""
    text = expression(expr)
    if text == "f":
        return p
    if text in ("a = 1", "a <> 1"):
        return q if text == "a = 1" or q is None else not q
    if isinstance(expr, Literal):
        return expr.value
    assert isinstance(expr, Call), text
    if expr.args and expression(expr.args[0]) == "a":  # (a = 1) is null, simplified
        raise AssertionError(text)
    values = [_evaluate(a, p, q) for a in expr.args]
    match expr.function:
        case "and":
            return False if False in values else None if None in values else True
        case "or":
            return True if True in values else None if None in values else False
        case "not":
            return None if values[0] is None else not values[0]
        case "is_null":
            return values[0] is None
        case "is_not_null":
            return values[0] is not None
    raise AssertionError(text)


VALUES = st.one_of(
    st.integers(-(2**40), 2**40),
    st.decimals(-1000, 1000, places=2, allow_nan=False),
)


@given(st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), VALUES, st.integers(-(2**31), 2**31 - 1))
def test_a_cast_moved_to_the_constant_answers_the_same(
    sign: str, value: int | Decimal, a: int
) -> None:
    wide = "decimal(18, 2)" if isinstance(value, Decimal) else "bigint"
    found = item(f"a::{wide} {sign} ({value})::{wide}")
    assert "::" not in expression(found)
    rewritten = expression(found).replace("a", f"({a})::integer", 1)
    if not isinstance(found, Literal):
        query = f"select ({a})::integer::{wide} {sign} ({value})::{wide}, {rewritten}"
        original, moved = duckdb.sql(query).fetchall()[0]
        assert original == moved


def test_dates_are_compared_as_dates() -> None:
    plan = bound("select n from days where d < timestamp '2024-05-01 12:00:00'")
    (filtered,) = plan.children
    assert isinstance(filtered, Filter)
    predicate = simplified(filtered.predicate)
    assert isinstance(predicate, Call)
    assert predicate.function == "le"
    assert predicate.args[1] == Literal(date(2024, 5, 1), predicate.args[1].type)
    assert not isinstance(predicate.args[1].value, datetime)  # type: ignore[attr-defined]
