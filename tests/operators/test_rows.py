"""Filter, compute, constants, ranges, limit and union all."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from fuseline.plan import physical as p
from fuseline.plan.expr import Call, ColumnRef, Expr, Interval, Literal, new_column
from fuseline.plan.types import BIGINT, BOOLEAN, DATE, INTERVAL, VARCHAR, decimal
from tests.operators.relations import Relation, assert_node, dictionary, relation, run


def above(source: Relation, name: str, bound: int) -> Expr:
    return Call("gt", (ColumnRef(source[name]), Literal(bound, BIGINT)), BOOLEAN)


NUMBERS = {"x": [1, None, 3, 4], "s": ["a", "b", None, "d"]}


@pytest.mark.parametrize("bound", [0, 2, 9])
def test_filter_keeps_rows_that_are_true(backend: str, bound: int) -> None:
    source = relation(NUMBERS)
    node = p.FilterRows(input=source.scan, predicate=above(source, "x", bound))
    assert_node(backend, node, f"from t where x > {bound}", t=source)


def test_filter_passes_on_what_parents_read(backend: str) -> None:
    source = relation(NUMBERS)
    node = p.FilterRows(input=source.scan, predicate=above(source, "x", 2), keep=(source["s"],))
    assert_node(backend, node, "select s from t where x > 2", t=source)


def test_filter_by_a_constant(backend: str) -> None:
    source = relation(NUMBERS)
    node = p.FilterRows(input=source.scan, predicate=Literal(None, BOOLEAN))
    assert run(backend, node, source).num_rows == 0


def test_compute_columns(backend: str) -> None:
    source = relation(NUMBERS)
    x = ColumnRef(source["x"])
    items = (
        (new_column("twice", BIGINT), Call("add", (x, x), BIGINT)),
        (source["s"], ColumnRef(source["s"])),
        (new_column("one", BIGINT), Literal(1, BIGINT)),
    )
    node = p.ComputeColumns(input=source.scan, items=items)
    assert_node(backend, node, "select x + x, s, 1::bigint from t", ordered=True, t=source)


def test_values(backend: str) -> None:
    types = (BIGINT, VARCHAR, decimal(5, 2), DATE)
    made = tuple(new_column("v", t) for t in types)
    rows = (
        (Literal(1, BIGINT), Literal("a", VARCHAR), Literal(Decimal("-1.50"), types[2])),
        (Literal(None, BIGINT), Literal(None, VARCHAR), Literal(None, types[2])),
    )
    node = p.ValuesScan(made=made[:3], rows=rows)
    sql = "from (values (1::bigint, 'a', -1.5::decimal(5, 2)), (null, null, null))"
    assert_node(backend, node, sql, ordered=True)


def test_values_that_are_computed(backend: str) -> None:
    one = Literal(1, BIGINT)
    made = new_column("v", BIGINT)
    node = p.ValuesScan(made=(made,), rows=((Call("add", (one, one), BIGINT),), (one,)))
    assert run(backend, node)["c0"].to_pylist() == [2, 1]


def test_values_without_columns_is_one_row(backend: str) -> None:
    constant = new_column("c", BIGINT)
    node = p.ValuesScan(made=(), rows=((),))
    assert run(backend, node).num_rows == 1
    assert run(backend, p.ValuesScan(made=(constant,), rows=())).num_rows == 0


def test_values_of_intervals() -> None:
    node = p.ValuesScan(
        made=(new_column("v", INTERVAL),), rows=((Literal(Interval(1, 2, 3), INTERVAL),),)
    )
    assert run("cpu", node)["c0"].to_pylist() == [pa.MonthDayNano((1, 2, 3000))]


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 5, 1), (0, 0, 1), (5, 0, -2), (1, 0, 1), (2**63 - 3, 2**63, 1), (-(2**63), 2**63, 2**62)],
)
def test_range(backend: str, start: int, stop: int, step: int) -> None:
    node = p.RangeScan(made=new_column("i", BIGINT), start=start, stop=stop, step=step)
    assert run(backend, node)["c0"].to_pylist() == list(range(start, stop, step))


@pytest.mark.parametrize("count", [None, 0, 2, 9])
@pytest.mark.parametrize("offset", [0, 1, 4, 9])
def test_limit(backend: str, count: int | None, offset: int) -> None:
    source = relation(NUMBERS)
    node = p.LimitRows(input=source.scan, count=count, offset=offset)
    limit = "" if count is None else f"limit {count}"
    assert_node(backend, node, f"from t {limit} offset {offset}", ordered=True, t=source)


def test_union_all(backend: str) -> None:
    parts = (
        relation({"x": [1, 2], "s": dictionary(["a", "b"])}),
        relation({"x": pa.array([], pa.int64()), "s": pa.array([], pa.string())}),
        relation({"x": [None, 2], "s": dictionary(["c", None])}),
        relation({"x": [3], "s": pa.array(["a"], pa.large_string())}),
    )
    made = (new_column("x", BIGINT), new_column("s", VARCHAR))
    node = p.ConcatRows(inputs=tuple(r.scan for r in parts), made=made)
    sql = " union all ".join(f"from t{i}" for i in range(4))
    inputs = {f"t{i}": r for i, r in enumerate(parts)}
    assert_node(backend, node, sql, ordered=True, **inputs)


def test_filter_of_dictionaries(backend: str) -> None:
    source = relation({"x": [1, 2, 3], "s": dictionary(["a", None, "b"])})
    node = p.FilterRows(input=source.scan, predicate=above(source, "x", 1))
    assert_node(backend, node, "from t where x > 1", t=source)
