"""Sums of a kernel's groups: nothing is measured where bounds are known, and what comes out stays as in registers for the next operator."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.context import Context
from fuseline.plan import physical as p
from fuseline.plan.expr import (
    AggregateCall,
    Call,
    Cast,
    Column,
    ColumnRef,
    Expr,
    Literal,
    new_column,
)
from fuseline.plan.partial import Average, FinishAverages
from fuseline.plan.types import BIGINT, DOUBLE, HUGEINT, SMALLINT, VARCHAR, DataType, decimal
from fuseline.storage.columns.cache import ColumnCache
from fuseline.storage.columns.encodings import REGISTER
from tests.compare import assert_same, assert_same_as_duckdb
from tests.gpu.test_fused_joins import run
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu

ROWS = 500
GRADE, COUNT, AMOUNT = (
    new_column("grade", VARCHAR), new_column("n", BIGINT), new_column("amount", decimal(38, 2))
)  # fmt: skip
GIVEN = p.ValuesScan((GRADE, COUNT, AMOUNT), ())
BOUNDS = {"small": (-(10**6), 10**6), "wide": (-(2**62), 2**62), "unknown": None}


@pytest.fixture(autouse=True)
def on_the_device(limits: SetLimits) -> None:
    limits(few_rows__MOST_ROWS=0)  # as of groups too many for the host


def rows(size: int = 10**6, known: tuple[int, int] | None = BOUNDS["small"]) -> Any:
    """What a kernel leaves: integers as in registers, and a key that is there."""
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.late_materialization import LateColumns
    from fuseline.operators.gpu.pipeline.finish import late_integers

    made = np.random.default_rng(3)

    def register(column: Column, share: float) -> Any:
        numbers = made.integers(-size, size, ROWS)
        array = pa.array(numbers, mask=made.random(ROWS) < share)
        return late_integers(gpu.plc.Column.from_arrow(array), column.type, known)

    grades = pa.array([None if g == 5 else f"g{g}" for g in made.integers(0, 6, ROWS)])
    columns = {GRADE.id: gpu.to_device(grades, VARCHAR)}
    columns |= {COUNT.id: register(COUNT, 0.0), AMOUNT.id: register(AMOUNT, 0.2)}
    return gpu.Table(LateColumns.of_one(columns), ROWS)


def plain(table: Any) -> Any:
    """The same rows as columns of which nothing is known."""
    return type(table)({i: table.columns[i] for i in table.columns}, table.num_rows)


def done(node: p.Physical, *tables: Any) -> Any:
    from fuseline.operators import gpu

    return gpu.OPERATORS[type(node)](node, tables, Context(ColumnCache(1 << 30), lambda: None, 1))


def on_host(node: p.Physical, table: Any) -> pa.Table:
    from fuseline.operators import gpu

    return gpu.to_arrow(table, node.columns)


def aggregate(
    below: p.Physical, keys: tuple[Column, ...], **calls: AggregateCall
) -> p.HashAggregate:
    made = tuple((new_column(name, call.type), call) for name, call in calls.items())
    return p.HashAggregate(below, keys, made)


def added(column: Column, **more: Any) -> AggregateCall:
    result = column.type if column.type.is_decimal else HUGEINT
    return AggregateCall("sum", (ColumnRef(column),), result, **more)


def calls() -> dict[str, AggregateCall]:
    return {
        "total": added(COUNT),
        "amounts": added(AMOUNT),
        "different": added(COUNT, distinct=True),
        "mean": AggregateCall("avg", (ColumnRef(AMOUNT),), DOUBLE),
        "known": AggregateCall("count", (ColumnRef(AMOUNT),), BIGINT),
        "all": AggregateCall("count_star", (), BIGINT),
        "least": AggregateCall("min", (ColumnRef(AMOUNT),), AMOUNT.type),
        "most": AggregateCall("max", (ColumnRef(GRADE),), VARCHAR),
    }


@pytest.mark.parametrize("bounds", [*BOUNDS])
@pytest.mark.parametrize("size", [3, 10**6, 2**62])
@pytest.mark.parametrize("keys", [(), (GRADE,)])
def test_sums_are_those_of_values(bounds: str, size: int, keys: tuple[Column, ...]) -> None:
    known = BOUNDS[bounds]
    if known is not None and known[1] < size:
        pytest.skip("no such values lie within these bounds")
    node, table = aggregate(GIVEN, keys, **calls()), rows(size, known)
    expected, found = on_host(node, done(node, plain(table))), on_host(node, done(node, table))
    assert_same(expected, found)


def test_nothing_is_measured_where_bounds_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    from fuseline.operators.gpu.functions import kernels_arithmetic

    def measured(columns: Any) -> Any:
        assert not columns, "a column was measured"
        return []

    monkeypatch.setattr(kernels_arithmetic, "measured", measured)
    first = aggregate(GIVEN, (GRADE,), total=added(COUNT), amounts=added(AMOUNT))
    (_, (total, _), (amounts, _)) = (None, *first.aggregates)
    again = aggregate(first, (), total=added(total), amounts=added(amounts))
    table = done(first, rows())
    for column in (total, amounts):
        assert table.columns.late(column.id).encoding == REGISTER
        low, high = table.columns.bounds(column.id)
        assert low <= -(10**6) * ROWS
        assert high >= 10**6 * ROWS
    found = done(again, table)
    monkeypatch.undo()
    assert_same(
        on_host(again, done(again, plain(done(first, plain(rows()))))), on_host(again, found)
    )


def test_averages_of_sums() -> None:
    node = aggregate(GIVEN, (GRADE,), total=added(AMOUNT), n=calls()["known"])
    (total, _), (count, _) = node.aggregates
    mean = new_column("mean", DOUBLE)
    made = (*node.columns, mean)
    finish = FinishAverages(node, (Average(mean, total, count),), made)
    expected = done(finish, done(node, plain(rows())))
    assert_same(on_host(finish, expected), on_host(finish, done(finish, done(node, rows()))))


def test_the_default_of_what_is_never_null_is_dropped() -> None:
    def computed(source: Column, target: DataType, safe: bool) -> tuple[p.ComputeColumns, Column]:
        cast = Cast(ColumnRef(source), target, safe)
        expr: Expr = Call("coalesce", (cast, Literal(0, cast.type)), cast.type)
        made = new_column("made", cast.type)
        return p.ComputeColumns(GIVEN, ((made, expr),)), made

    for source, target, safe, stays in (
        (COUNT, HUGEINT, False, True),
        (COUNT, SMALLINT, True, False),  # most of which are NULL then
        (AMOUNT, decimal(38, 2), False, False),
    ):
        node, made = computed(source, target, safe)
        found = done(node, rows())
        assert (made.id not in found.columns.there) is stays
        assert_same(on_host(node, done(node, plain(rows()))), on_host(node, found))


def test_rows_one_after_the_other_stay_as_in_registers() -> None:
    made = tuple(new_column(c.name, c.type) for c in GIVEN.columns)
    node = p.ConcatRows((GIVEN, GIVEN), made)
    found = done(node, rows(), rows(3))
    assert made[1].id not in found.columns.there
    assert found.columns.bounds(made[2].id) is not None
    assert_same(on_host(node, done(node, plain(rows()), plain(rows(3)))), on_host(node, found))
    mixed = done(node, rows(), plain(rows(3)))
    assert_same(on_host(node, found), on_host(node, mixed))


def test_totals_of_codes_are_codes() -> None:
    from fuseline.operators.gpu.columns import null_column
    from fuseline.operators.gpu.dictionaries import Coded, encoded
    from fuseline.operators.gpu.table import concat_held, plain, to_device

    some = encoded(to_device(pa.array(["b", "a", None, "b"]), VARCHAR))
    nothing = null_column(3, some.keys.type())
    empty = null_column(0, some.keys.type())
    wide = Coded(plain_codes(some), some.keys)
    for parts in ([some, nothing], [nothing, some], [empty, some, empty], [some, wide]):
        found = concat_held(parts)
        assert isinstance(found, Coded)
        expected = [value for part in parts for value in plain(part).to_arrow().to_pylist()]
        assert found.plain().to_arrow().to_pylist() == expected
    assert not isinstance(concat_held([nothing, nothing]), Coded)


def plain_codes(coded: Any) -> Any:
    """Codes of 32 bits, as extremes are."""
    from fuseline.operators.gpu.columns import INT32, cast

    return cast(coded.codes, INT32)


SALES = {
    "sales": pa.table({
        "item": [f"i{n % 701}" for n in range(3000)], "place": [n % 7 for n in range(3000)],
        "paid": pa.array([Decimal(n * 37 % 1000 - 300) / 4 for n in range(3000)], pa.decimal128(7, 2)),
        "n": pa.array([None if n % 11 == 0 else n % 50 for n in range(3000)], pa.int32()),
    })
}  # fmt: skip
QUERIES = [
    "select item, place, avg(paid), avg(n), sum(n), count(n) from sales group by rollup(item, place) order by 1, 2",
    "select place, sum(paid), sum(total) from (select item, place, sum(paid) as paid, sum(n) as total from sales"
    " group by item, place union all select item, place, paid, n from sales) x group by place",
    "select * from (select item, rank() over (order by total) as r from"
    " (select item, avg(paid) as total from sales group by item) x) y where r < 4 order by r, item",
    "select a.item, round(a.total / b.total, 2), a.n + b.n from"
    " (select item, sum(paid) as total, sum(n) as n from sales where place < 3 group by item) a join"
    " (select item, sum(paid) as total, count(n) as n from sales where place > 2 group by item) b on a.item = b.item",
]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("few", [0, 1 << 13])
def test_queries(query: str, few: int, limits: SetLimits) -> None:
    limits(few_rows__MOST_ROWS=few, compiled_pipeline__GROUP_LIMIT=4, LEAST_SLOTS=1 << 10)
    limits(LEAST_CUT=16, host_table__MOST_ROWS=64, LED_ROWS=4)
    assert_same_as_duckdb(query, SALES, fuse=("never", "always"))


def test_few_rows_are_computed_on_the_host(limits: SetLimits) -> None:
    limits(few_rows__MOST_ROWS=1 << 13)
    query = "select a.item, round(b.n / a.place, 2) from sales a join sales b on a.item = b.item where a.place > 4"
    expected, _ = run(query, SALES, fuse="never")
    found, receipts = run(query, SALES, fuse="always")
    assert any(receipt.fused for receipt in receipts)
    assert_same(expected, found)
