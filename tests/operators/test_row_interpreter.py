"""Expressions over a few rows, one row after the other: they give what arrays give, bit by bit, or leave it to these."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.groups.results import Registers
from fuseline.errors import FuselineError
from fuseline.operators import cpu
from fuseline.operators.context import Context, PlanMemory
from fuseline.operators.gpu.compute_few_rows import kept_pairs, kept_rows, row_by_row
from fuseline.operators.gpu.memory.host_table import HostColumns
from fuseline.operators.row_interpreter import MOST_ROWS, Unsure, columns_read, compiled
from fuseline.plan import physical as p
from fuseline.plan.arrow.arrow_types import from_arrow
from fuseline.plan.expr import Call, Column, ColumnRef, Expr, Literal, new_column
from fuseline.plan.join_kinds import JoinKind
from fuseline.plan.logical import Scan
from fuseline.plan.types import BOOLEAN, INTEGER
from fuseline.storage.columns.cache import ColumnCache
from tests.operators.evaluated import items_of, plan_of

WIDE = 10**38 - 1
CELLS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "i": (pa.int32(), [-(2**31), -3, 0, 1, 7, 2**31 - 1]),
    "j": (pa.int64(), [-(2**63), -1, 0, 2, 2**53 + 1, 2**63 - 1]),
    "s": (pa.int8(), [-128, 0, 1, 127]),
    "d": (pa.decimal128(15, 2), [-(10**15) + 1, -1, 0, 5, 123456, 10**15 - 1]),
    "m": (pa.decimal128(18, 4), [-(10**18) + 1, 0, 3, 2**53 + 1, -(2**53) - 7, 10**18 - 1]),
    "w": (pa.decimal128(38, 4), [-WIDE, -(2**64) - 1, -1, 0, 2**63, 2**64 + 3, 10**20, WIDE]),
    "h": (pa.decimal128(38, 0), [-WIDE, -(2**63) - 1, 0, 12, 2**63 - 1, 2**100, WIDE]),
    "x": (pa.float64(), [-0.0, 0.0, 1.5, -2.25, 1e308, -1e-308, math.inf, -math.inf, math.nan]),
    "y": (pa.float64(), [0.1, -7.0, 3.0, 0.0, math.nan, math.inf]),
    "b": (pa.bool_(), [False, True]),
}
EXPRESSIONS = [
    *("w::double / h::double", "(100.00 * w)::double / w::double", "w::double / 7.0", "h * 0.0001"),
    *("0.2 * x", "x / y", "x + y", "x - y", "x * y", "-x", "i + j", "i * s", "s - i", "-i", "-d"),
    *("d + m", "d - w", "d * i", "d * m", "w + w", "w - h", "w * d", "m::double", "d::double"),
    *("j::double", "i::double * x", "h::double", "i::bigint + j", "d::decimal(20, 4) + w"),
    *("i < j", "d >= m", "w = h", "x < y", "x <> y", "x = x", "b = (i > 0)", "b and i > 0"),
    *("b or x > 1", "not b", "b is null", "x is not null and i <> 0", "coalesce(d, m, 1)"),
    *("coalesce(x, y)", "case when b then d else 0 end", "case when i > 0 then x / y end"),
    *("case when i <> 0 then d * i when b then w else m end", "case when b then null else j end"),
    *("null + i", "b and null", "i > 0 or null or b", "s::smallint + 1", "1.5 * d", "i + 1.25"),
    *(
        "i // s",
        "j % s",
        "i % 7",
        "-i // 7 % 2",
        "'a'",
        "null::varchar",
        "null::bigint",
        "date '2000-02-03'",
        "12.5",
        "0.5::double",
    ),
]


def unscaled(kind: pa.DataType, cell: Any) -> Any:
    return Decimal(f"{cell}e-{kind.scale}") if pa.types.is_decimal(kind) else cell


def rows_of(seed: int, rows: int) -> pa.Table:
    rng = random.Random(seed)
    arrays = {}
    for name, (kind, cells) in CELLS.items():
        picked = rng.choices([None, *cells], k=rows)
        arrays[name] = pa.array([None if c is None else unscaled(kind, c) for c in picked], kind)
    return pa.table(arrays)


def bound(expression: str, rows: pa.Table) -> tuple[p.ComputeColumns, tuple[Column, ...]]:
    plan = plan_of(f"select {expression} as c from t", rows)
    node = plan
    while node.children:
        (node,) = node.children
    made = node.made if isinstance(node, Scan) else ()
    return p.ComputeColumns(p.ValuesScan(made, ()), items_of(plan)), made


def held(rows: pa.Table, columns: tuple[Column, ...], lies: bool) -> HostColumns:
    """Columns as arrays, or as in registers where these hold them."""
    found: dict[Column, Any] = {}
    for column in columns:
        array = rows.column(column.name).combine_chunks()
        found[column] = array
        if lies and not (column.type.is_decimal and column.type.precision > 18):
            kind = CELLS[column.name][0]
            cells = [0 if c is None else c for c in array.to_pylist()]
            if pa.types.is_decimal(kind):
                cells = [int(Decimal(c).scaleb(kind.scale)) for c in cells]
            values = np.array(cells, np.float64 if column.type.is_float else np.int64)
            valid = np.asarray(array.is_valid()) if array.null_count else None
            found[column] = Registers(values, valid, column.type)
    return HostColumns(found.items(), lambda arrays: {})


def bits(array: pa.Array) -> list[str]:
    """NaN equals itself; -0.0 is not 0.0."""
    return ["nan" if v != v else repr(v) for v in array.to_pylist()]


def by_arrays(node: p.ComputeColumns, rows: pa.Table) -> pa.Array | None:
    try:
        given = cpu.from_arrow(rows, node.input.columns)
        made = cpu.operate(node, (given,), Context(ColumnCache(0), lambda: None, 1))
    except FuselineError:
        return None
    return cpu.to_arrow(made, node.columns).column(0).combine_chunks()


@pytest.mark.by_day(2)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_each_row_is_what_arrays_give(expression: str) -> None:
    node, columns = bound(expression, rows_of(0, 1))
    decided = 0
    for seed in range(36):
        rows = rows_of(seed, 1 if seed % 3 else 5)
        given = rows.select([c.name for c in columns])
        wanted = by_arrays(node, given)
        for lies in (False, True):
            found = row_by_row(node, held(rows, columns, lies), rows.num_rows, PlanMemory())
            if found is None:
                continue
            decided += 1
            assert wanted is not None, "what raises was computed"
            (made,) = node.columns
            array = found.array(made)
            assert from_arrow(array.type, "c") == made.type
            assert bits(array) == bits(wanted)
    assert decided > 10


def expr_of(expression: str) -> tuple[Expr, tuple[Column, ...]]:
    node, columns = bound(expression, rows_of(0, 1))
    return node.items[0][1], columns


@pytest.mark.parametrize(("expression", "row"), [
    ("i * 1::integer", {"i": 2**31}),
    ("-i", {"i": -(2**31)}), ("w + w", {"w": WIDE}),
    ("x / y", {"x": 1.0, "y": 0.0}),
    ("x < y", {"x": math.nan, "y": 0.0}),
    ("d::decimal(16, 4)", {"d": 10**15 - 1}),
])  # fmt: skip
def test_what_raises_or_is_no_number_is_left_to_arrays(
    expression: str, row: dict[str, Any]
) -> None:
    expr, _ = expr_of(expression)
    read = sorted(columns_read(expr), key=lambda c: c.name)
    compute = compiled([expr], read)
    assert compute is not None
    with pytest.raises(Unsure):
        compute([[row[c.name] for c in read]])


@pytest.mark.parametrize(
    "condition", ["i > 0", "x < y", "b or x > 1", "d >= m and i <> 0", "i > 0 or null or b", "b"]
)
def test_rows_are_kept_whose_condition_holds_as_arrays_have_it(condition: str) -> None:
    node, columns = bound(condition, rows_of(0, 1))
    decided = 0
    for seed in range(36):
        rows = rows_of(seed, 7)
        wanted = by_arrays(node, rows.select([c.name for c in columns]))
        filter_ = p.FilterRows(node.input, node.items[0][1])
        found = kept_rows(filter_, held(rows, columns, True), rows.num_rows, PlanMemory())
        if found is None:
            continue
        decided += 1
        assert wanted is not None
        kept, count = found
        places = [place for place, holds in enumerate(wanted.to_pylist()) if holds]
        assert count == len(places)
        for column in filter_.columns:
            all_rows = held(rows, [column], True).array(column)
            assert bits(kept.array(column)) == bits(all_rows.take(pa.array(places, pa.int64())))
    assert decided > 5 or condition == "b"  # a bare column


@pytest.mark.parametrize("single", ["d", "m"])
def test_pairs_with_a_single_row_are_those_of_a_join(single: str) -> None:
    node, all_columns = bound("d >= m", rows_of(0, 1))
    columns = [c for c in all_columns if c.name in "dm"]
    scans = [p.ValuesScan((column,), ()) for column in columns]
    join = p.NestedLoopJoin(*scans, JoinKind.INNER, node.items[0][1])
    for seed in range(12):
        rows = rows_of(seed, 6)
        counts = [1 if c.name == single else 6 for c in columns]
        parts = [rows.select([c.name])[:n] for c, n in zip(columns, counts, strict=True)]
        given = zip(parts, columns, strict=True)
        sides = [held(part, (column,), True) for part, column in given]
        found = kept_pairs(join, sides, counts, PlanMemory())
        assert found is not None
        tables = (cpu.from_arrow(a, (c,)) for a, c in zip(parts, columns, strict=True))
        wanted = cpu.operate(join, tuple(tables), Context(ColumnCache(0), lambda: None, 1))
        assert found[1] == wanted.num_rows
        for column, array in zip(join.columns, cpu.to_arrow(wanted, join.columns), strict=True):
            assert bits(found[0].array(column)) == bits(array)
    assert kept_pairs(join, sides, (6, 6), PlanMemory()) is None
    left = replace(join, kind=JoinKind.LEFT)
    assert kept_pairs(left, sides, counts, PlanMemory()) is None


@pytest.mark.parametrize(
    "expression", ["i::varchar", "d::integer", "x::integer", "d % i", "b::integer", "x::float"]
)
def test_other_expressions_are_left_to_arrays(expression: str) -> None:
    expr, columns = expr_of(expression)
    assert compiled([expr], columns) is None


@pytest.mark.parametrize(
    "expression", ["null", "null::interval", "1e20::decimal(38, 0)", "case when true then null end"]
)
def test_columns_of_other_types_are_left_to_arrays(expression: str) -> None:
    node, columns = bound(expression, rows_of(0, 1))
    assert row_by_row(node, held(rows_of(1, 3), columns, True), 3, PlanMemory()) is None


@pytest.mark.parametrize("parts", [10, 60, 150])
@pytest.mark.parametrize("sign", ["and", "add"])
def test_long_expressions_are_computed_or_left_to_arrays(sign: str, parts: int) -> None:
    column = new_column("i", INTEGER)
    value: Expr = ColumnRef(column)
    if sign == "and":
        value = Call("and", (Call("gt", (value, Literal(0, INTEGER)), BOOLEAN),) * parts, BOOLEAN)
    else:
        for _ in range(parts):
            value = Call("add", (value, Literal(1, INTEGER)), INTEGER)
    compute = compiled([value], [column])
    wanted = 5 + parts if sign == "add" else True
    assert compute is None if parts == 150 else compute is not None
    assert compute is None or compute([(5,), (None,)]) == [[wanted, None]]


def test_texts_that_differ_in_constants_share_code() -> None:
    column = new_column("i", INTEGER)
    made = [
        compiled([Call("add", (ColumnRef(column), Literal(n, INTEGER)), INTEGER)], [column])
        for n in (1, 2)
    ]
    assert [compute([(5,)]) for compute in made if compute is not None] == [[[6]], [[7]]]
    assert len({compute.__code__ for compute in made}) == 1  # type: ignore[union-attr]


def test_a_quotient_of_integers_is_left_to_arrays() -> None:
    expr, columns = expr_of("i + i")
    assert isinstance(expr, Call)
    quotient = Call("div", expr.args, expr.type)
    assert compiled([quotient], columns) is None


def test_what_was_prepared_belongs_to_its_expressions() -> None:
    rows = rows_of(1, 3)
    node, columns = bound("i::bigint + 1", rows)
    here = held(rows, columns, True)
    memory = PlanMemory()
    first = row_by_row(node, here, 3, memory)
    assert first is not None
    assert row_by_row(node, here, MOST_ROWS + 1, memory) is None
    other = bound("i::bigint + 2", rows)[0].items[0][1]
    assert isinstance(other, Call)
    same = Call(other.function, (node.items[0][1].children[0], other.args[1]), other.type)
    changed = p.ComputeColumns(node.input, ((node.columns[0], same),))
    second = row_by_row(changed, here, 3, memory)
    assert second is not None
    (made,) = node.columns
    for a, b in zip(first.array(made).to_pylist(), second.array(made).to_pylist(), strict=True):
        assert a == b == None or b == a + 1  # noqa: E711


def test_columns_that_are_passed_on_stay_as_they_lie() -> None:
    rows = rows_of(2, 4)
    node, columns = bound("i::bigint + 1", rows)
    passed = {c.name: c for c in columns}["i"]
    here = held(rows, columns, True)
    both = p.ComputeColumns(
        node.input,
        (*node.items, (passed, node.items[0][1].children[0].children[0])),
    )
    found = row_by_row(both, here, 4, PlanMemory())
    assert found is not None
    assert found.held[passed.id][1] is here.held[passed.id][1]
