"""Sorting, limits, set operations, constants, ranges, transfers and scans."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.plan import physical as p
from fuseline.plan.expr import Call, ColumnRef, Literal, new_column
from fuseline.plan.types import BIGINT, BOOLEAN, INTEGER, VARCHAR, decimal
from fuseline.storage.tables.parquet import ParquetTable
from tests.limits import SetLimits

from .plans import TYPES, assert_agree, column, run, scan

pytestmark = pytest.mark.gpu

DIRECTIONS = [(d, n) for d in (False, True) for n in (False, True)]


@pytest.mark.parametrize(("descending", "nulls_first"), DIRECTIONS)
@pytest.mark.parametrize("kind", TYPES)
def test_sort_is_stable(kind: str, descending: bool, nulls_first: bool) -> None:
    key, value = column("k", kind), column("v", "varchar")
    child = scan(np.random.default_rng(1), 120, [key, value])
    assert_agree(p.SortRows(child, (p.Order(key, descending, nulls_first),)), ordered=True)


@pytest.mark.parametrize("nulls", [0.0, 0.3])
@pytest.mark.parametrize(("count", "offset"), [(5, 0), (5, 3), (0, 2), (500, 0), (5, 500)])
def test_top_k(count: int, offset: int, nulls: float) -> None:
    columns = [column("a", "decimal"), column("b", "date"), column("c", "varchar")]
    child = scan(np.random.default_rng(2), 100, columns, nulls=nulls)
    keys = (p.Order(columns[0], True, False), p.Order(columns[1], False, True))
    assert_agree(p.TopK(child, keys, count, offset), ordered=True)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(
    "kind", ["integer", "bigint", "decimal", "wide", "double", "date", "varchar"]
)
def test_top_k_among_many(kind: str, descending: bool, limits: SetLimits) -> None:
    """With few rows the first keys would not be selected before the sort."""

    limits(TOP_K_ROWS=10)
    key, value = column("k", kind), column("v", "bigint")
    child = scan(np.random.default_rng(3), 300, [key, value], values=50, nulls=0.0)
    assert_agree(p.TopK(child, (p.Order(key, descending, False),), 12, 3), ordered=True)


@pytest.mark.parametrize(("count", "offset"), [(5, 0), (None, 3), (5, 98), (0, 0), (9, 200)])
def test_limit(count: int | None, offset: int) -> None:
    columns = [column("a", "varchar"), column("b", "wide"), column("c", "boolean")]
    child = scan(np.random.default_rng(4), 100, columns)
    assert_agree(p.LimitRows(child, count, offset), ordered=True)
    assert_agree(
        p.SortRows(p.LimitRows(child, count, offset), (p.Order(columns[0], False, False),))
    )


@pytest.mark.parametrize("sizes", [(60, 40), (0, 9), (9, 0), (0, 0)], ids=str)
@pytest.mark.parametrize("keep_all", [False, True])
@pytest.mark.parametrize("kind", ["intersect", "except"])
def test_set_operations(kind: Any, keep_all: bool, sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(5)
    for kinds in (("integer", "varchar"), ("double",), ("boolean", "date")):
        sides = [
            scan(rng, rows, [column(f"{side}{i}", k) for i, k in enumerate(kinds)], values=3)
            for side, rows in zip("lr", sizes, strict=True)
        ]
        if sizes[0] and sizes[1]:  # half of the right rows from the left
            both = p.ConcatRows(
                (p.LimitRows(sides[0], 20), sides[1]),
                tuple(column(f"u{i}", k) for i, k in enumerate(kinds)),
            )
        else:
            both = sides[1]  # type: ignore[assignment]
        made = tuple(column(f"m{i}", k) for i, k in enumerate(kinds))
        assert_agree(p.HashSetOperation(sides[0], both, kind, keep_all, made))


def test_concat() -> None:
    rng = np.random.default_rng(6)
    parts = [scan(rng, n, [column("a", "varchar"), column("b", "decimal")]) for n in (5, 0, 30)]
    made = (column("x", "varchar"), column("y", "decimal"))
    assert_agree(p.ConcatRows(tuple(parts), made), ordered=True)
    assert_agree(p.ConcatRows((parts[1], parts[1]), made), ordered=True)


@pytest.mark.parametrize("kind", TYPES)
def test_there_and_back(kind: str) -> None:
    child = scan(np.random.default_rng(7), 50, [column("a", kind)])
    assert_agree(child, ordered=True)
    assert_agree(p.LimitRows(child, 0))


def test_values() -> None:
    made = tuple(
        new_column(n, t) for n, t in (("a", INTEGER), ("b", VARCHAR), ("c", decimal(5, 2)))
    )
    rows = (
        (Literal(1, INTEGER), Literal("x", VARCHAR), Literal(Decimal("1.25"), decimal(5, 2))),
        (Literal(None, INTEGER), Literal(None, VARCHAR), Literal(None, decimal(5, 2))),
    )
    assert_agree(p.ValuesScan(made, rows), ordered=True)
    assert_agree(p.HashAggregate(p.ValuesScan((), ((), ())), (), ()))


@pytest.mark.parametrize(
    "bounds", [(0, 10, 3), (5, -5, -2), (3, 3, 1), (0, 1, 2**62), (2**63 - 3, 2**63, 1)], ids=str
)
def test_range(bounds: tuple[int, int, int]) -> None:
    assert_agree(p.RangeScan(new_column("i", BIGINT), *bounds), ordered=True)


def test_filter_without_columns() -> None:
    a, b = column("a", "integer"), column("b", "integer")
    child = scan(np.random.default_rng(8), 100, [a, b])
    below = Call("lt", (ColumnRef(a), ColumnRef(b)), BOOLEAN)
    assert_agree(p.FilterRows(child, below), ordered=True)
    assert_agree(p.FilterRows(child, below, (b,)), ordered=True)
    from fuseline.operators import cpu, gpu

    none = p.FilterRows(child, below, ())
    assert run(none, gpu).num_rows == run(none, cpu).num_rows > 0


@pytest.mark.parametrize(
    "selected", [None, ((0, (1,)), (1, (0,))), ((0, (0, 1, 2)),), ((1, (2,)),)], ids=str
)
@pytest.mark.parametrize("hot", [False, True])
def test_parquet(tmp_path: Path, selected: Any, hot: bool) -> None:
    rng = np.random.default_rng(9)
    columns = [column(name, name) for name in TYPES]
    for part in ("p=1", "p=2"):
        (tmp_path / part).mkdir()
        data = scan(rng, 90, columns).table.data  # type: ignore[attr-defined]
        pq.write_table(data, tmp_path / part / "x.parquet", row_group_size=30)
    table = ParquetTable.open([str(tmp_path / "*" / "*.parquet")], {"hive_partitioning": True})
    made = tuple(new_column(n, t) for n, t in table.fields)
    selection = selected and tuple(p.RowGroups(f, g) for f, g in selected)
    node = p.ParquetScan(table, made, tuple(n for n, _ in table.fields), selection)
    if hot:  # the second scan cuts its row groups out of what the first one read
        whole = p.ParquetScan(table, made, node.sources)
        top = p.ConcatRows((whole, node), tuple(new_column(c.name, c.type) for c in made))
        assert_agree(top, ordered=True)
    else:
        assert_agree(node, ordered=True)


def test_long_strings_leave_as_string() -> None:
    child = scan(np.random.default_rng(10), 20, [column("a", "varchar")])
    assert assert_agree(child).schema.field("a").type == pa.string()


@pytest.mark.parametrize("rows", [1, 27, 32, 60, 512, 2048])
def test_bits_that_begin_within_a_byte_arrive(rows: int) -> None:
    from fuseline.operators import gpu

    flags = pa.array([True, None, False, True, True] * 500)
    numbers = pa.array([1, 2, None, 4, 5, None, 7] * 400)
    columns = [new_column("b", BOOLEAN), new_column("n", BIGINT)]
    for offset in range(17):
        parts = [[v.slice(3, 0), v.slice(offset, rows)] for v in (flags, numbers)]
        given = pa.table([pa.chunked_array(chunks) for chunks in parts], ["b", "n"])
        found = gpu.to_arrow(gpu.from_arrow(given, columns), columns)
        assert [c.to_pylist() for c in found.columns] == [c.to_pylist() for c in given.columns]
