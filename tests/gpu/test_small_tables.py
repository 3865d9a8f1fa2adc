"""Small tables on the device: they come to the host in one turn, are sorted there, and nodes over few rows run there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuseline
from fuseline.operators.context import Context
from fuseline.plan import physical as p
from fuseline.plan.expr import Column, new_column
from fuseline.plan.types import VARCHAR
from fuseline.storage.cache import ColumnCache

from .plans import TYPES, column, run, scan, scan_of
from .test_pipeline import assert_same

pytestmark = pytest.mark.gpu


def device_table(node: p.MemoryScan) -> Any:
    from fuseline.operators import gpu

    return gpu.OPERATORS[type(node)](node, (), Context(ColumnCache(1 << 30), lambda: None, 1))


def all_columns() -> list[Column]:
    return [column(kind, kind) for kind in TYPES]


@pytest.mark.parametrize("rows", [0, 1, 7, 64, 1000])
@pytest.mark.parametrize("nulls", [0.0, 0.3, 1.0])
def test_every_type_comes_to_the_host(rows: int, nulls: float) -> None:
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.to_host import on_host

    columns = all_columns()
    table = device_table(scan(np.random.default_rng(rows), rows, columns, nulls=nulls))
    held = on_host(table, columns)
    assert held is not None
    assert_same(gpu.to_arrow(table, columns), held.to_arrow(columns))


@pytest.mark.parametrize("offset", [1, 8, 13])
def test_slices_come_to_the_host(offset: int) -> None:
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.to_host import on_host

    columns = all_columns()
    table = device_table(scan(np.random.default_rng(3), 100, columns))
    part = gpu.slice_rows(table, offset, 41)
    held = on_host(part, columns)
    assert held is not None
    assert_same(gpu.to_arrow(table, columns).slice(offset, 41), held.to_arrow(columns))


def test_large_tables_stay() -> None:
    from fuseline.operators.gpu.table import from_arrow
    from fuseline.operators.gpu.to_host import MOST_BYTES, on_host

    text = new_column("s", VARCHAR)
    long = pa.table({"s": [f"{i:01000d}" for i in range(MOST_BYTES // 900)]})
    table = from_arrow(long, [text])
    assert on_host(table, [text]) is None
    assert on_host(table, [text], most_rows=5) is None


@pytest.mark.parametrize("kind", list(TYPES))
@pytest.mark.parametrize("moved", [True, False])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("nulls_first", [False, True])
def test_order(
    kind: str, moved: bool, descending: bool, nulls_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fuseline.operators import cpu, gpu
    from fuseline.operators.gpu import to_host

    if not moved:
        monkeypatch.setattr(to_host, "MOST_BYTES", -1)  # the device sorts
    key, second, place = column("k", kind), column("t", "varchar"), column("n", "bigint")
    rows = 700
    random = scan(np.random.default_rng(5), rows, [key, second], values=30)
    data = random.table.data
    node: p.Physical = scan_of(
        {"k": data.column("k"), "t": data.column("t"), "n": list(range(rows))}, [key, second, place]
    )
    keys = (p.Order(key, descending, nulls_first), p.Order(second, not descending, nulls_first))
    for plan in (
        p.SortRows(node, keys),
        p.TopK(node, keys, 40, 0),
        p.TopK(node, keys, 10, 5),
        p.TopK(node, keys, 600, 90),
    ):
        expected, found = run(plan, cpu), run(plan, gpu)
        assert found.column("n").to_pylist() == expected.column("n").to_pylist()


@pytest.mark.parametrize("rows", [5000, 30_000, 40_000])
@pytest.mark.parametrize("lead", ["integer", "decimal", "double", "varchar", "wide"])
def test_the_first_of_more_rows(rows: int, lead: str) -> None:
    from fuseline.operators import cpu, gpu

    key, second, place = column("k", lead), column("t", "varchar"), column("n", "bigint")
    random = scan(np.random.default_rng(rows), rows, [key, second], values=200, nulls=0.01)
    data = random.table.data
    node = scan_of(
        {"k": data.column("k"), "t": data.column("t"), "n": list(range(rows))}, [key, second, place]
    )
    keys = (p.Order(key, True, False), p.Order(second, False, False), p.Order(place, False, False))
    for plan in (p.TopK(node, keys, 20, 0), p.TopK(node, keys, 700, 3), p.SortRows(node, keys)):
        expected, found = run(plan, cpu), run(plan, gpu)
        assert found.column("n").to_pylist() == expected.column("n").to_pylist()


QUERIES = (
    ("select sum(a) * 2.5 / count(*) as x, max(s) || '!' as y from t", 1),
    (
        "select s, sum(a) as x from t group by s having sum(a) > 100 and s <> 'x1' order by x desc, s",
        2,
    ),
    (
        "select count(*), max(x), sum(x), avg(x), min(s) from (select s, sum(a) as x from t group by s)",
        1,
    ),
    (
        "select x % 5 as k, count(*), sum(x) from (select s, sum(a) as x from t group by s) group by k order by k",
        1,
    ),
)


@pytest.mark.parametrize(("query", "least"), QUERIES)
def test_nodes_over_few_rows_run_on_the_host(query: str, least: int) -> None:
    table = pa.table(
        {"a": range(5000), "s": [f"x{i % 11}" if i % 13 else None for i in range(5000)]}
    )
    answers = []
    for device, fuse in (("cpu", "never"), ("gpu", "never"), ("gpu", "always")):
        with fuseline.connect(device=device, fuse=fuse) as connection:
            connection.register("t", table)
            frame = connection.sql(query)
            answers.append(frame.to_arrow())
            notes = [str(n.note) for n in frame.profile.nodes]
    assert sum("on the host" in note for note in notes) >= least, notes
    assert_same(answers[0], answers[1])
    assert_same(answers[0], answers[2])
