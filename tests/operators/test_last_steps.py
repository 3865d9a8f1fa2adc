"""The last steps of plans over few rows: they give what operators over arrays give, or leave it to these."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from fuseline.operators import cpu
from fuseline.operators.context import Context
from fuseline.operators.last_steps import MOST_ROWS, STEPS, LastSteps
from fuseline.operators.run_unfused import Operators, run_operators
from fuseline.plan import physical as p
from fuseline.plan.node import walk_once
from fuseline.plan.partial import PartialAggregate, in_parts
from fuseline.storage.columns.cache import ColumnCache
from tests.compare import connected

KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "g": (pa.int32(), [1, 2, 3]),
    "s": (pa.string(), ["b", "", "ä", "a"]),
    "day": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(2000, 2, 3)]),
    "b": (pa.bool_(), [True, False]),
    "n": (pa.int64(), [-(2**62), 0, 7, 2**62]),
    "d": (pa.decimal128(15, 2), [Decimal("-1.25"), Decimal("0.00"), Decimal("123.45")]),
    "w": (pa.decimal128(38, 2), [Decimal("1e30"), Decimal("-2.50")]),
    "h": (pa.decimal128(38, 0), [Decimal(10**37), Decimal(-(10**37)), Decimal(3)]),
    "x": (pa.float64(), [1.5, -0.0, 0.0, 1e300]),
    "t": (pa.timestamp("us"), [datetime.datetime(2000, 1, 1), datetime.datetime(1999, 1, 1, 7)]),
}
QUERIES = [
    "select g, s, sum(d), sum(n), min(x), max(d) from t group by g, s order by s, g",
    "select day, b, sum(w) as w from t group by day, b order by w desc nulls last, b, day",
    "select sum(n), max(n), min(w), sum(h) from t",
    "select s, t, x, w from t order by x desc, d nulls first, s, n limit 5 offset 2",
    "select g + 1, d * 2, 3, -x from t order by b, g, s desc, x, n, d, w, h",
    "select g, sum(n) from t where n < 5 group by g having sum(n) > 0 order by 1",
    "select g, s from t where d > 0 and b limit 3",
    "select distinct g, day from t order by day, g",
]
LEFT = [
    "select t from t order by t",
    "select x, count(*) from t group by x",
    "select median(n) from t",
    "select upper(s) from t",
    "select bool_or(b) from t",
    "select sum(n) filter (g > 1) from t",
]


def rows_of(seed: int, rows: int) -> pa.Table:
    rng = random.Random(seed)
    made = {}
    for name, (kind, values) in KINDS.items():
        picked = rng.choices([*values, None], k=rows)
        made[name] = pa.array(picked, kind)
    return pa.table(made)


def steps_of(plan: p.Physical) -> p.Physical:
    """Return a plan over rows that are there."""
    if not isinstance(plan, tuple(STEPS)):
        return p.Stored(0, plan.columns, device="cpu")
    return plan.with_children([*map(steps_of, plan.children)])


def plan_of(query: str) -> p.Physical:
    with connected({"t": rows_of(9, 60)}, "cpu", fuse="never") as connection:
        return connection.physical(connection.sql(query).plan)


def both(query: str, table: pa.Table) -> tuple[pa.Table | None, pa.Table]:
    rest = steps_of(plan_of(query))
    return results(rest, table)


def results(rest: p.Physical, table: pa.Table) -> tuple[pa.Table | None, pa.Table]:
    """Return what the last steps make of a table's columns, and what arrays do."""
    stored = rest
    while not isinstance(stored, p.Stored):
        (stored,) = stored.children
    given = table.select([c.name for c in stored.columns])
    context = Context(ColumnCache(0), lambda: None, 1)
    held = cpu.from_arrow(given, stored.columns)
    operators = Operators(cpu.OPERATORS, cpu.num_bytes)
    made = run_operators(rest, (held,), context, operators)
    return LastSteps(rest).run(given), cpu.to_arrow(made, rest.columns)


@pytest.mark.parametrize("rows", [0, 1, 7, 60])
@pytest.mark.parametrize("query", QUERIES)
def test_they_give_what_arrays_give(query: str, rows: int) -> None:
    found, expected = both(query, rows_of(rows, rows))
    if found is None:
        assert rows == 0, "without rows a sum is one row of arrays"
        return
    assert found.schema == expected.schema
    ordered = "order by" in query
    given, wanted = ([*zip(*t.to_pydict().values(), strict=True)] for t in (found, expected))
    assert given == wanted if ordered else sorted(given, key=repr) == sorted(wanted, key=repr)


def test_averages_of_parts_are_those_of_arrays() -> None:
    plan = plan_of("select g, avg(d), avg(x), avg(g) from t group by g")
    (aggregate,) = (node for node in walk_once(plan) if isinstance(node, p.HashAggregate))
    parts = in_parts(aggregate)
    assert isinstance(parts, PartialAggregate)
    rest: p.Physical = p.Stored(0, parts.partial.columns, device="cpu")
    for step in (*parts.merge, *parts.finish):
        rest = step.with_children([rest])
    text = "select g, sum(d)::decimal(38, 2) d, count(d) c, sum(x) x, count(x) e, sum(g)::hugeint n, count(g) f from t group by g"
    shares = []
    for seed in range(3):
        with connected({"t": rows_of(seed, 20)}, "cpu") as connection:
            shares.append(connection.sql(text).to_arrow())
    given = pa.concat_tables(shares).rename_columns([c.name for c in parts.partial.columns])
    found, expected = results(rest, given)
    assert found is not None
    assert sorted(found.to_pylist(), key=repr) == sorted(expected.to_pylist(), key=repr)


@pytest.mark.parametrize("query", LEFT)
def test_what_they_do_not_know_is_left_to_arrays(query: str) -> None:
    assert both(query, rows_of(3, 20))[0] is None


def test_many_rows_are_left_to_arrays() -> None:
    assert both(QUERIES[0], rows_of(1, MOST_ROWS + 1))[0] is None


def test_values_that_are_in_doubt_are_left_to_arrays() -> None:
    nan = rows_of(5, 2).set_column(8, "x", pa.array([1.0, float("nan")]))
    assert both("select x from t order by x", nan)[0] is None
    assert both("select max(x) from t", nan)[0] is None
