"""Joins that only ask whether there is a match, where rows may as well come once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb, connected

TABLES: dict[str, Any] = {
    "x": pa.table(
        {
            "a": [1, 1, 2, 3, None, 4, 9],
            "b": ["p", "q", "p", None, "r", "q", "s"],
            "v": [5, 1, 2, 0, 7, None, 3],
        }
    ),
    "y": pa.table({"k": [1, 1, 1, 2, None, None, 4, 4, 7], "w": [1, 2, 3, None, 5, 6, 0, 9, 1]}),
    "z": pa.table({"k": [2, 2, 4, None, 8, 1, 1], "c": ["p", "p", "q", "r", None, "x", "x"]}),
}
SPARED = [
    "select distinct b from x join y on a = k",
    "select distinct upper(b), v > 2 from x join y on a = k and w > v",
    "select distinct b from x, y where a = k and coalesce(v, 1) < w",
    "select distinct b from y join x on a is not distinct from k",
    "select distinct b from x join (y join z using (k)) on a = y.k",
    "select b from x join y on a = k intersect select c from z join y on z.k = y.k",
    "select b from x join y on a = k except select c from z join y on z.k = y.k and w > 1",
    "select b from x join y on a = k union select c from z join y using (k)",
    "select count(distinct b), count(distinct v) from x join y on a = k",
    "select v > 2 as o, count(distinct b) from x join y on a = k group by o",
    "select b from x join y on a = k group by b having b > 'o'",
    "select w from y where k in (select a from x join y o on v = o.k)",
    "select w from y where k not in (select a from x join y o on v = o.k where a is not null)",
    "select w, k in (select a from x join y o on v = o.k) as i from y",
    "select w from y where exists (from x join y o on v = o.k where a = y.k and v < w)",
]
REPEATED = [
    "select b from x join y on a = k",
    "select b, count(*) from x join y on a = k group by b",
    "select distinct b, w from x join y on a = k",
    "select distinct b from x cross join y",
    "select distinct b from x join (select k, max(w) as m from y group by k) on a = k where m > 1",
    "select b from x join y on a = k union all select c from z",
    "select b from x join y on a = k intersect all select c from z",
    "select distinct b from x left join y on a = k and w > 100",
    "select distinct on (b) b from x join y on a = k",
]


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with connected(TABLES, check=True) as opened:
        yield opened


def _is_changed(connection: Any, query: str) -> bool:
    return "-- prefer_semi_joins" in connection.sql(query).explain("rules")


@pytest.mark.parametrize("query", SPARED)
def test_rows_come_once(query: str, connection: Any) -> None:
    assert _is_changed(connection, query)
    assert_same_as_duckdb(query, TABLES, connection=connection, ordered=False)


@pytest.mark.parametrize("query", REPEATED)
def test_rows_come_as_often_as_there_are_matches(query: str, connection: Any) -> None:
    assert not _is_changed(connection, query)
    assert_same_as_duckdb(query, TABLES, connection=connection, ordered=False)


@pytest.mark.nightly
@pytest.mark.parametrize("query", SPARED)
def test_kernels_ask_once(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("always", "never"), ordered=False)
