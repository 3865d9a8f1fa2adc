"""Groups by an ascending key and others, each done where the key's next value begins: results as DuckDB's, by tables that are full early, too."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cpu.hash_groups import HashGroups
from tests.codegen.fused import assert_fused
from tests.codegen.test_groups import CALLS, counted
from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

ROWS = 20_000
RANDOM = np.random.default_rng(33)
WIDE = 1 << 20  # that keys are apart, so that there is no table with a place for each number


@pytest.fixture(autouse=True)
def small(limits: SetLimits) -> None:
    limits(hash_groups__SLOTS=64, LISTING_SLOTS=128, hash_groups__GROWTH=2, ROWS_A_RANGE=4096)


def _runs(length: int) -> np.ndarray:
    """Ascending keys, each for about so many rows."""
    gaps = RANDOM.integers(1, WIDE, ROWS)
    return np.cumsum(np.where(RANDOM.random(ROWS) < 1 / length, gaps, 0))


KEYS = {
    "each row another": _runs(1),
    "few rows each": _runs(4),
    "from below zero": _runs(3) - ROWS * WIDE,
    "up to 60 rows each": np.repeat(_runs(1), RANDOM.integers(1, 60, ROWS))[:ROWS],
}


def _table(keys: np.ndarray, rows: int = ROWS) -> pa.Table:
    values = RANDOM.integers(-1000, 1000, rows)
    numbers = np.where(values == 7, np.nan, np.where(values == 8, -np.inf, values * 0.5))
    return pa.table(
        {
            "k": keys[:rows],
            "s": pa.array(RANDOM.integers(0, 3, rows), mask=values % 5 == 0),
            "w": RANDOM.integers(0, 2**20, rows),
            "v": values,
            "f": pa.array(numbers, mask=values == 9),
            "n": pa.array(values * 2**40, mask=values % 2 == 0),
        }
    )


@pytest.mark.parametrize("by", ["s, k", "k, s", "k, w"])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("having", ["", "having sum(v) > 500"])
def test_groups_are_done_where_the_next_key_begins(having: str, keys: str, by: str) -> None:
    with counted(HashGroups, "in_order") as ordered:
        assert_fused(
            f"select {by}, {CALLS} from t group by {by} {having}", {"t": _table(KEYS[keys])}
        )
    assert ordered


@pytest.mark.parametrize("where", ["v > 990", "v > -900", "v > 5000", "k < 100000000"])
def test_some_rows(where: str) -> None:
    table = _table(KEYS["few rows each"])
    assert_fused(f"select k, s, {CALLS} from t where {where} group by k, s", {"t": table})


@pytest.mark.parametrize("rows", [0, 1, 2, 65])
def test_few_rows(rows: int) -> None:
    table = _table(KEYS["few rows each"], rows)
    query = f"select k, s, {CALLS} from t group by k, s"
    assert_same_as_duckdb(query, {"t": table}, fuse=("always", "never"))


def test_rows_that_joins_find() -> None:
    """Some twice, which may be more groups than rows."""
    tables = {
        "t": _table(KEYS["few rows each"]),
        "u": pa.table({"s": [0, 0, 1, 2], "c": [5, 6, 5, 7], "d": [2**33, 0, 1, 2]}),
    }
    for query in (
        "select k, c, sum(v), count(*) from t join u using (s) group by k, c",
        "select k, d, max(v) from t left join u using (s) group by k, d",
        "select k, s, sum(v) from t where s in (select s from u where c > 5) group by k, s",
    ):
        assert_same_as_duckdb(query, tables, fuse=("always", "never"))


@pytest.mark.parametrize("keys", ["shuffled", "NULL"])
def test_rows_in_another_order_are_grouped_as_before(keys: str) -> None:
    given = RANDOM.permutation(KEYS["few rows each"])
    if keys == "NULL":
        given = pa.array(KEYS["few rows each"], mask=RANDOM.random(ROWS) < 0.01)
    with counted(HashGroups, "in_order") as ordered:
        assert_fused(f"select k, s, {CALLS} from t group by k, s", {"t": _table(given)})
    assert not ordered
