"""Text keys of GROUP BY by the numbers of a column's values: the groups are those of the texts, in every operator behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.operators.context import Context
from fuseline.plan import physical as p
from fuseline.plan.expr import AggregateCall, ColumnRef, new_column
from fuseline.plan.types import BIGINT, HUGEINT, VARCHAR
from fuseline.storage.columns.cache import CacheKey, ColumnCache
from tests.compare import assert_same, assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu

RELATION, ROWS = 80, 300
NAME, COUNT = new_column("name", VARCHAR), new_column("n", BIGINT)
GIVEN = p.ValuesScan((NAME, COUNT), ())
TOTAL = AggregateCall("sum", (ColumnRef(COUNT),), HUGEINT)
ORIGIN = CacheKey("a table", ("encoded", None), "name", "gpu")
NAMES: dict[str, list[str | None]] = {
    "repeated": [f"näme {i % 30}" for i in range(RELATION)],
    "different": [f"{i:04d}" * (i % 5) + "x" * i for i in range(RELATION)],
    "missing": [None if i % 7 == 0 else f"n{i % 9}" for i in range(RELATION)],
    "nothing": [None] * RELATION,
}


@pytest.fixture(autouse=True)
def on_the_device(limits: SetLimits) -> None:
    limits(few_rows__MOST_ROWS=0)  # as of groups too many for the host


def rows(names: list[str | None], origin: Any = ORIGIN, optional: bool = False) -> Any:
    """What a kernel leaves of a join: row numbers of a relation, whose text is fetched later."""
    from fuseline.operators.gpu import table as gpu
    from fuseline.operators.gpu.late_materialization import Fetch, LateColumns, Places

    made = np.random.default_rng(2)
    places = made.integers(-1 if optional else 0, RELATION, ROWS).astype(np.int32)
    texts = gpu.to_device(pa.array(names, pa.string()), VARCHAR)
    numbers = gpu.to_device(pa.array(made.integers(0, 99, ROWS)), BIGINT)
    fetch = Fetch(texts, None, lambda lying: lying, origin=origin)
    place = Places(gpu.plc.Column.from_arrow(pa.array(places)), optional)
    return gpu.Table(LateColumns({COUNT.id: numbers}, [place], {NAME.id: (0, fetch)}), ROWS)


def grouped(node: p.HashAggregate, table: Any, cache: ColumnCache) -> Any:
    from fuseline.operators import gpu

    context = Context(cache, lambda: None, 1)
    return gpu.OPERATORS[type(node)](node, (table,), context)


def on_host(node: p.HashAggregate, table: Any) -> pa.Table:
    from fuseline.operators import gpu

    return gpu.to_arrow(table, node.columns)


@pytest.mark.parametrize("optional", [False, True])
@pytest.mark.parametrize("names", [*NAMES])
@pytest.mark.parametrize("calls", [(), ((new_column("total", HUGEINT), TOTAL),)])
def test_groups_are_those_of_texts(names: str, calls: Any, optional: bool) -> None:
    from fuseline.operators.gpu.dictionaries import Coded

    node, cache = p.HashAggregate(GIVEN, (NAME,), calls), ColumnCache(1 << 30)
    expected = on_host(node, grouped(node, rows(NAMES[names], None, optional), cache))
    keys = []
    for _ in range(2):
        found = grouped(node, rows(NAMES[names], ORIGIN, optional), cache)
        assert_same(expected, on_host(node, found))
        held = found.columns[NAME.id]
        assert isinstance(held, Coded) is (names != "nothing")
        keys.append(getattr(held, "keys", None))
    assert keys[0] is keys[1], "numbered twice"


def test_what_is_long_or_not_of_a_table_stays_text(limits: SetLimits) -> None:
    from fuseline.operators.gpu.dictionaries import Coded

    node, cache = p.HashAggregate(GIVEN, (NAME,), ()), ColumnCache(1 << 30)
    for limit, origin in ((1 << 18, "no key"), (RELATION - 1, ORIGIN)):
        limits(text_keys__NUMBERED_TEXTS=limit)
        found = grouped(node, rows(NAMES["repeated"], origin), cache)
        assert not isinstance(found.columns[NAME.id], Coded)


ITEMS = 600
TABLES = {
    "item": pa.table({
        "sk": range(ITEMS), "id": [f"item {n // 2:05d}" for n in range(ITEMS)],
        "kind": [None if n % 13 == 0 else f"k{n % 5}" for n in range(ITEMS)],
    }),
    "sales": pa.table({
        "sk": [n * 7 % ITEMS for n in range(4000)], "place": [n % 3 for n in range(4000)],
        "paid": [n * 31 % 1000 - 300 for n in range(4000)],
    }),
}  # fmt: skip
JOINED = "sales join item on sales.sk = item.sk"
TOTALS = f"(select id, place, sum(paid) as total from {JOINED} group by id, place)"
QUERIES = [
    f"select id, kind, sum(paid), avg(paid) from {JOINED} group by rollup(id, kind) order by 1 nulls first, 2 nulls first limit 50",
    f"select a.id, a.total, b.total from {TOTALS} a join {TOTALS} b on a.id = b.id where a.place = 1 and b.place = 2",
    f"select upper(id) || kind, count(*) from {JOINED} group by id, kind having sum(paid) > 100",
    f"select id, total, rank() over (partition by id order by total) from {TOTALS} x",
    f"select distinct id from {JOINED} where paid > 600 union all select id from item where sk < 5",
    f"select min(id), max(id), count(distinct id) from {TOTALS} x where total > 0",
    f"select x.id, item.kind from {TOTALS} x join item on x.id = item.id where x.place = 0 and x.total > 1000",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries(query: str, limits: SetLimits) -> None:
    limits(compiled_pipeline__GROUP_LIMIT=4, LEAST_SLOTS=1 << 10)
    assert_same_as_duckdb(query, TABLES, fuse=("never", "always"))
