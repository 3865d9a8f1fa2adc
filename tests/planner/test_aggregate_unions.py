"""Unions whose sources are joined and grouped one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.plan.node import walk
from fuseline.plan.physical import ConcatRows, Pipeline
from tests.compare import assert_same_as_duckdb, connected

ROWS = 3000


def _table(rows: int, seed: int) -> pa.Table:
    draw = np.random.default_rng(seed)

    def some(low: int, high: int) -> pa.Array:
        found = draw.integers(low - 1, high, rows)
        return pa.array(found, pa.int64(), mask=found == low - 1)

    return pa.table({"k": some(0, 40), "j": some(0, 9), "v": some(-50, 50), "f": draw.random(rows)})


TABLES: dict[str, Any] = {
    "t": _table(ROWS, 1),
    "u": _table(ROWS // 2, 2),
    "none": _table(0, 3),
    "side": pa.table(
        {
            "id": [*range(30), 3, 3, None, 99],
            "g": [f"g{n % 5}" for n in range(30)] + [None, "g1", "g2", "g3"],
            "w": [None if n == 7 else n * 3 % 11 for n in range(34)],
        }
    ),
    "small": pa.table({"g": ["g0", "g1", "g1", None], "x": [1, 2, 3, 4]}),
}
UNION = "(select k, j, v, f from t union all select k, j, v * 2, f from u where v > -40)"
CALLS = "count(*), sum(v), min(v), avg(f), max(w)"
# How each is joined, and by what its rows are grouped; its sources become pipelines of their own
JOINS = [
    f"select g, {CALLS} from side join {UNION} on k = id and v > w group by g",
    f"select j, sum(v) from {UNION} x where not exists (from side where id = k and w > v) group by j",
    f"select g, sum(v) from {UNION} cross join (select max(w) as most from side) join side on k = id where v < most group by g",
    f"select a.j, count(*) from {UNION} a join (select id from side union all select x from small) b on k = b.id group by a.j",
]
MORE_JOINS = [
    f"select g, {CALLS} from {UNION} join side on k = id group by g",
    f"select g, {CALLS} from {UNION} left join side on k = id group by g",
    f"select g, {CALLS} from {UNION} left join side on k = id and v > w group by g",
    f"select {CALLS} from {UNION} join side on k = id where v + w > 3",
    f"select j, count(*), sum(v) from {UNION} where k in (select id from side where w > 2) group by j",
    f"select j, count(*), sum(v) from {UNION} where k not in (select id from side where w > 2 and id is not null) group by j",
    f"select j, count(*) filter (where k in (select id from side)) from {UNION} group by j",
    f"select s.g, count(*), sum(x) from {UNION} join side s on k = id join small on s.g is not distinct from small.g group by s.g",
    f"select distinct g, j > 4 from {UNION} join side on k = id",
    "select g, sum(v) from (select k, v from t union all select j, k from none union all select j, v from u) join side on k = id group by g",
    "select g, sum(v) from (select k, v from t union all select id, x from side join small using (g)) join side on k = id group by g",
]


# Texts of sources are no keys of these, even if nothing else is one
NAMED = "(select 't' as s, k, v from t union all select 'u', k, v * 2 from u where v > -40 union all select 'none', k, v from none)"
LITERALS = [
    f"select s, g, {CALLS.replace('avg(f)', 'avg(v)')} from {NAMED} join side on k = id group by s, g",
    f"select s, count(*), sum(v) from {NAMED} group by s",
    f"select s || '!' as s, count(v) from {NAMED} where v > 48 and v < k - 1000 group by s",
    f"select s, n, sum(v) from (select s, 7 as n, v from {NAMED}) group by s, n",
    f"select s, k > 3 as few, min(v) from {NAMED} x where s <> 't' group by all",
]


@pytest.fixture(scope="module")
def connection(backend: str) -> Iterator[Any]:
    with connected(TABLES, backend, fuse="always", check=True) as opened:
        yield opened


def _pipelines(connection: Any, query: str) -> list[Pipeline]:
    """Return the pipelines that the groups of a union come from."""
    nodes = walk(connection.physical(connection.sql(query).plan))
    unions = [node for node in nodes if isinstance(node, ConcatRows)]
    below = (part for union in unions for child in union.inputs for part in walk(child))
    return list({id(p): p for p in below if isinstance(p, Pipeline) and p.steps.groups}.values())


@pytest.mark.parametrize(
    "query",
    [*JOINS, *LITERALS, *(pytest.param(query, marks=pytest.mark.nightly) for query in MORE_JOINS)],
)
def test_sources_are_joined_one_by_one(query: str, connection: Any, backend: str) -> None:
    assert len(_pipelines(connection, query)) >= 2
    assert_same_as_duckdb(query, TABLES, backend=backend, fuse=("always", "never"))


FULL = [
    f"select g, {CALLS} from t full join side on k = id group by g",
    f"select g, {CALLS} from {UNION} full join side on k = id group by g",
    "select j, count(*), count(id), sum(w) from t full join side on k = id and v > 0 group by j",
    "select count(*), count(k), count(id), avg(w) from t full join side on k = id where k is null or v is null",
    "select g, count(*), bool_or(k is null) from t full join side on k = id join small using (g) group by g",
    "select count(*), sum(w), count(k) from none full join side on k = id",
]


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", FULL)
def test_halves_of_full_joins_are_grouped_one_by_one(query: str) -> None:
    with connected(TABLES, "cpu", fuse="always", check=True) as connection:
        assert len(_pipelines(connection, query)) >= 2
    assert_same_as_duckdb(query, TABLES, fuse=("always", "never"))


@pytest.mark.parametrize(
    "query",
    [
        f"select g, {CALLS} from {UNION} right join side on k = id group by g",
        f"select g, count(v) from side left join {UNION} on k = id and v > w group by g",
        f"select g, median(v) from {UNION} join side on k = id group by g",
        f"select f, sum(w) from {UNION} join side on k = id group by f",
        "select sum(u.v) from (select w from side union all select x from small) join u on w = u.k",
    ],
)
def test_others_are_joined_as_one(query: str, connection: Any, backend: str) -> None:
    assert not _pipelines(connection, query)
    assert_same_as_duckdb(query, TABLES, backend=backend, fuse=("always", "never"))
