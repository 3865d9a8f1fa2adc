"""Aggregates below left joins: rows without a match, NULL keys, repeated keys on both sides, no rows at all."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

TABLES = {
    "x": pa.table({"j": [1, 1, 2, None, 4, 5], "g": [0, 0, 0, 1, 1, 2]}),
    "y": pa.table(
        {"j": [1, 1, 1, 2, None, 9, 5], "v": [1, None, 3, None, 5, 6, -7], "s": list("abcdefg")}
    ),
    "none": pa.table({"j": pa.array([], pa.int64()), "v": pa.array([], pa.int64())}),
}
CALLS = "count(*), count(v), count(y.j), sum(v), min(v), max(v), bit_xor(v)"


@pytest.fixture
def connection(limits: SetLimits, backend: str) -> Any:
    limits(MIN_ROWS_A_KEY=0.0)
    with connected(TABLES, backend, check=True) as opened:
        yield opened


@pytest.mark.parametrize("right", ["y", "none as y"])
@pytest.mark.parametrize("test", ["x.j = y.j", "x.j is not distinct from y.j", "x.j + 1 = y.j * 2"])
@pytest.mark.parametrize("keys", ["g", "x.j", "x.j, g", "g + x.j"])
def test_groups(right: str, test: str, keys: str, connection: Any, backend: str) -> None:
    query = f"select {keys}, {CALLS} from x left join {right} on {test} group by {keys}"
    assert _is_pushed(connection, query)
    assert_same_as_duckdb(query, TABLES, backend=backend, connection=connection, ordered=False)


@pytest.mark.parametrize("left", ["x", "(select * from x where g > 9) as x"])
def test_without_keys(left: str, connection: Any, backend: str) -> None:
    query = f"select {CALLS} from {left} left join y on x.j = y.j"
    assert _is_pushed(connection, query)
    assert_same_as_duckdb(query, TABLES, backend=backend, connection=connection)


@pytest.mark.parametrize("calls", [
    "count(distinct v)", "avg(v)", "sum(v) filter (v > 1)", "sum(coalesce(v, 1))",
    "string_agg(s, ',' order by s) as all_s", "sum(v::double)", "sum(v), sum(x.j)",
])  # fmt: skip
def test_what_stays_above(calls: str, connection: Any, backend: str) -> None:
    query = f"select g, {calls} from x left join y on x.j = y.j group by g"
    assert not _is_pushed(connection, query)
    assert_same_as_duckdb(query, TABLES, backend=backend, connection=connection, ordered=False)


def _is_pushed(connection: Any, query: str) -> bool:
    return "-- push_aggregates" in connection.sql(query).explain("rules")
