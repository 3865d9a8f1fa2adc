"""Columns that are fetched when somebody asks: every operator over them gives what it gives over columns that are there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.plan.expr import Column, new_column
from fuseline.plan.types import BIGINT, DATE, INTEGER, VARCHAR, decimal, to_arrow
from tests.compare import assert_same, connected
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu

RELATION = 500
ROWS = 300
KINDS = (BIGINT, INTEGER, DATE, decimal(12, 2), decimal(30, 3), VARCHAR)


def relation(seed: int) -> dict[Column, pa.Array]:
    rng = np.random.default_rng(seed)
    arrays = {}
    for kind in KINDS:
        numbers = [None if rng.random() < 0.1 else int(rng.integers(60)) for _ in range(RELATION)]
        if kind is VARCHAR:
            array = pa.array([None if n is None else f"text {n}" * (n % 4) for n in numbers])
        elif kind is DATE:
            array = pa.array(numbers, pa.int32()).cast(pa.date32())
        else:
            array = pa.array(numbers, pa.int64()).cast(pa.decimal128(25)).cast(to_arrow(kind))
        arrays[new_column(str(kind), kind)] = array
    return arrays


def tables(optional: bool = False) -> tuple[Any, Any, list[Column]]:
    """The same rows of two relations: columns that are there, and columns that are not."""
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.late_materialization import Fetch, LateColumns, Places

    there: dict[int, Any] = {}
    fetches, places, columns = {}, [], []
    for number in range(2):
        rng = np.random.default_rng(10 + number)
        rows = rng.integers(-1 if optional else 0, RELATION, ROWS).astype(np.int32)
        places.append(Places(gpu.plc.Column.from_arrow(pa.array(rows)), optional))
        wanted = pa.array([None if r < 0 else r for r in rows.tolist()], pa.int32())
        for column, array in relation(number).items():
            there[column.id] = gpu.to_device(array.take(wanted), column.type)
            lying = gpu.to_device(array, column.type)
            fetches[column.id] = number, Fetch(lying, None, lambda picked: picked)
            columns.append(column)
    return (
        gpu.Table(there, ROWS),
        gpu.Table(LateColumns({}, places, fetches), ROWS),
        columns,
    )


def assert_alike(there: Any, late: Any, columns: list[Column]) -> None:
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.memory.to_host import to_arrow as to_host

    expected = gpu.to_arrow(there, columns)
    assert to_host(late, columns).equals(expected)
    assert late.num_rows == there.num_rows
    assert gpu.to_arrow(late, columns).equals(expected)


@pytest.mark.parametrize("optional", [False, True])
def test_rows_are_picked_without_fetching(optional: bool) -> None:
    from fuseline.operators.gpu import table as gpu

    there, late, columns = tables(optional)
    rows = gpu.plc.Column.from_arrow(pa.array([5, 3, 3, 99, 0], pa.int32()))
    mask = gpu.plc.Column.from_arrow(pa.array([i % 3 == 0 for i in range(ROWS)]))
    steps = [
        lambda t: gpu.gather(t, rows),
        lambda t: gpu.gather(t, rows, columns[3:8]),
        lambda t: gpu.keep_rows(t, mask),
        lambda t: gpu.slice_rows(t, 7, 50),
        lambda t: gpu.slice_rows(gpu.gather(gpu.keep_rows(t, mask), rows), 1, 3),
        lambda t: gpu.slice_rows(t, 400),
    ]
    for step in steps:
        one, other = step(there), step(late)
        assert not other.columns.there, "something was fetched"
        kept = [c for c in columns if c.id in one.columns]
        assert set(other.columns) == {c.id for c in kept}
        assert gpu.num_bytes(other) >= 0
        assert not other.columns.there
        assert_alike(one, other, kept)


def test_what_is_there_and_what_is_not_go_together() -> None:
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.late_materialization import together

    there, late, columns = tables()
    late.columns.fetch([columns[1].id, columns[8].id])
    rows = gpu.plc.Column.from_arrow(pa.array([9, 8, 250], pa.int32()))
    assert_alike(gpu.gather(there, rows), gpu.gather(late, rows), columns)
    more = new_column("more", BIGINT)
    values = {more.id: gpu.to_device(pa.array(range(ROWS)), BIGINT)}
    assert_alike(
        gpu.Table({**there.columns, **values}, ROWS),
        gpu.Table(together(late.columns, values), ROWS),
        [*columns, more],
    )
    assert_alike(
        gpu.gather(there, rows, nullify=True), gpu.gather(late, rows, nullify=True), columns
    )


QUERIES = (
    "select c.name, c.note, sum(o.amount) as total from o join c on o.customer = c.id "
    "group by c.id, c.name, c.note order by total desc, c.name limit 7",
    "select c.name, c.note, sum(o.amount) as total from o join c on o.customer = c.id "
    "group by c.id, c.name, c.note having sum(o.amount) > 900 order by c.note desc, c.name",
    "select c.note, o.amount, c.grade from o join c on o.customer = c.id "
    "where o.amount > 40 and c.grade <> 2 order by c.note nulls first, o.amount, c.grade limit 20 offset 3",
    "select o.amount, c.name, c.note || '!' as loud from o left join c on o.customer = c.id "
    "where o.amount > 95 order by c.name nulls last, o.amount, loud",
    "select name, count(*) from (select c.name, c.id from o join c on o.customer = c.id "
    "where o.amount > 10) group by name order by name",
    "select * from (select c.name, c.note from o join c on o.customer = c.id where o.amount > 97) "
    "union all select name, note from c where grade = 1 order by name, note",
    "select a.name, b.note from (select c.name, c.id from o join c on o.customer = c.id where amount > 98) a "
    "left join (select c.id, c.note from o join c on o.customer = c.id where amount > 97) b on a.id = b.id "
    "order by a.name, b.note",
)


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("moved", [True, False])
def test_queries(query: str, moved: bool, limits: SetLimits) -> None:

    if not moved:
        limits(to_host__MOST_BYTES=-1)  # the device sorts and libcudf copies
    rng = np.random.default_rng(4)
    customers, orders = 400, 6000
    c = pa.table({
        "id": rng.permutation(customers).astype(np.int64),
        "name": [None if i % 17 == 0 else f"name {i * 7919 % 1000:04d}" for i in range(customers)],
        "note": [("ab", "b", "", None, "Ärger")[i % 5] for i in range(customers)],
        "grade": pa.array([i % 4 for i in range(customers)], pa.int32()),
    })  # fmt: skip
    o = pa.table(
        {
            "customer": rng.integers(0, customers + 20, orders),
            "amount": rng.integers(0, 100, orders),
        }
    )
    answers = []
    for fuse in ("never", "always"):
        with connected({"c": c, "o": o}, "gpu", fuse=fuse) as connection:
            answers.append(connection.sql(query).to_arrow())
    expected, found = answers
    assert_same(expected, found)
    assert expected.column(0).equals(found.column(0)), "the order"
