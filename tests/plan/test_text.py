"""Trees and expressions as text."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import ClassVar

import pytest

from fuseline.plan import infer
from fuseline.plan.expr import (
    Call,
    Column,
    ColumnRef,
    Exists,
    Expr,
    Interval,
    Literal,
    SortKey,
    new_column,
)
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.logical import Join, Limit, Range
from fuseline.plan.physical import ConcatRows, LimitRows, Order, Physical, RangeScan, SortRows
from fuseline.plan.text.plan_text import describe, expression, tree
from fuseline.plan.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INTERVAL,
    NULL,
    TIMESTAMP,
    VARCHAR,
    decimal as decimal_type,
)
from fuseline.records import dataclass

A, B, S = (ColumnRef(new_column(n, t)) for n, t in (("a", BIGINT), ("b", BIGINT), ("s", VARCHAR)))
ONE, TWO = Literal(1, BIGINT), Literal(2, BIGINT)


def of(name: str, *args: Expr) -> Expr:
    return infer.call(name, args)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (of("mul", of("add", A, B), TWO), "(a + b) * 2"),
        (of("add", A, of("mul", B, TWO)), "a + b * 2"),
        (of("sub", A, of("sub", B, ONE)), "a - (b - 1)"),
        (of("sub", of("sub", A, B), ONE), "a - b - 1"),
        (of("int_div", A, of("neg", B)), "a // -b"),
        (of("or", of("eq", A, ONE), of("and", of("gt", A, B), of("ne", B, TWO))), "a = 1 or a > b and b <> 2"),
        (of("and", of("or", of("eq", A, ONE), of("gt", A, B)), of("lt", B, TWO)), "(a = 1 or a > b) and b < 2"),
        (of("not", of("or", of("eq", A, ONE), of("gt", A, B))), "not (a = 1 or a > b)"),
        (of("not", of("eq", A, ONE)), "not a = 1"),
        (of("eq", of("eq", A, ONE), of("eq", B, ONE)), "(a = 1) = (b = 1)"),
        (of("is_null", of("add", A, B)), "a + b is null"),
        (of("is_distinct", A, B), "a is distinct from b"),
        (infer.in_list(A, [ONE, TWO]), "a in (1, 2)"),
        (of("not", infer.in_list(A, [ONE, TWO])), "a not in (1, 2)"),
        (of("like", S, Literal("it's%", VARCHAR)), "s like 'it''s%'"),
        (of("concat", S, of("upper", S)), "s || upper(s)"),
        (infer.cast(of("add", A, B), DOUBLE), "(a + b)::DOUBLE"),
        (infer.cast(S, BIGINT, safe=True), "try_cast(s as BIGINT)"),
        (infer.case([of("gt", A, ONE)], [S], None), "case when a > 1 then s else null end"),
        (infer.aggregate("sum", [A], distinct=True), "sum(distinct a)"),
        (infer.aggregate("count", [], filter=of("gt", A, ONE)), "count(*) filter (where a > 1)"),
        (infer.aggregate("first", [A], order=[SortKey(B, descending=True)]), "first(a order by b desc)"),
        (Exists(Range(new_column("r", BIGINT), 0, 1, 1)), "exists(subquery)"),
        (Call("new_function", (A, ONE), BOOLEAN), "new_function(a, 1)"),
    ],
)  # fmt: skip
def test_expression(expr: Expr, text: str) -> None:
    assert expression(expr) == text


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        (Literal(None, NULL), "null"),
        (Literal(True, BOOLEAN), "true"),
        (Literal(1.0, DOUBLE), "1.0"),
        (Literal(float("nan"), DOUBLE), "nan"),
        (Literal(Decimal("1.50"), decimal_type(5, 2)), "1.50"),
        (Literal(Decimal("1E+3"), decimal_type(5, 0)), "1000"),
        (Literal(date(2024, 2, 29), DATE), "date '2024-02-29'"),
        (Literal(datetime(2024, 2, 29, 12), TIMESTAMP), "timestamp '2024-02-29 12:00:00'"),
        (Literal(Interval(1, 2, 0), INTERVAL), "interval '1 month 2 days'"),
        (Literal(Interval(), INTERVAL), "interval '0 days'"),
    ],
)
def test_literal(literal: Literal, text: str) -> None:
    assert expression(literal) == text


def numbers(name: str = "i") -> Range:
    return Range(new_column(name, BIGINT), 0, 10, 1)


def test_columns_are_numbered_only_where_two_share_a_name() -> None:
    plan = Join(numbers(), Join(numbers(), numbers("k"), JoinKind.INNER), JoinKind.INNER)
    assert tree(plan) == (
        "Join inner\n"
        "  Range  i#1 from 0 to 10\n"
        "  Join inner\n"
        "    Range  i#2 from 0 to 10\n"
        "    Range  k from 0 to 10"
    )


def test_ids_do_not_show() -> None:
    assert tree(Limit(numbers(), 3)) == tree(Limit(numbers(), 3))


def scan(**fields: object) -> RangeScan:
    return RangeScan(made=Column(-1, "i", BIGINT), start=0, stop=1000, step=1, **fields)  # type: ignore[arg-type]


def test_a_physical_node_shows_device_and_estimate() -> None:
    plan = LimitRows(input=scan(device="gpu", estimate=1000.0), count=5, offset=2, device="gpu")
    assert (
        tree(plan)
        == "LimitRows  5 offset 2  [gpu]\n  RangeScan  i from 0 to 1000  [gpu, ~1,000 rows]"
    )


def test_reasons_stand_below_the_tree_once() -> None:
    plan = LimitRows(input=scan(reason="no kernel"), count=5, reason="no kernel")
    assert tree(plan) == "LimitRows  5  [cpu]\n  RangeScan  i from 0 to 1000  [cpu]\ncpu: no kernel"
    two = LimitRows(input=scan(reason="no kernel"), count=5, reason="too small")
    assert tree(two).splitlines() == [
        "LimitRows  5  [cpu 1]",
        "  RangeScan  i from 0 to 1000  [cpu 2]",
        "cpu 1: too small",
        "cpu 2: no kernel",
    ]


def test_a_shared_node_is_written_out_once() -> None:
    shared = LimitRows(input=scan(), count=5)
    plan = ConcatRows(inputs=(shared, shared), made=(new_column("i", BIGINT),))
    assert tree(plan).splitlines()[3:] == ["  LimitRows  5  (as above)"]


@dataclass(frozen=True)
class Unheard(Physical):
    """A node that the printer does not know."""

    CHILDREN: ClassVar = ("input",)
    input: Physical
    kind: str
    keys: tuple[Order, ...]
    wanted: Expr
    extra: tuple[tuple[Column, Expr], ...] = ()
    nothing: int | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.input.columns


def test_an_unknown_node_shows_its_fields() -> None:
    column = Column(-1, "i", BIGINT)
    node = Unheard(
        input=scan(),
        kind="odd",
        keys=(Order(column, descending=True, nulls_first=False),),
        wanted=of("eq", ColumnRef(column), ONE),
        extra=((column, ColumnRef(column)), (A.column, ONE)),
    )
    assert describe(node) == "Unheard odd  keys=i desc  wanted=i = 1  extra=i, 1 as a"


def test_describe_is_the_line_of_the_root_alone() -> None:
    order = Order(Column(-1, "i", BIGINT), descending=False, nulls_first=True)
    assert describe(SortRows(input=scan(), keys=(order,))) == "SortRows  i nulls first"
