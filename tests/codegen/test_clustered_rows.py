"""Rows that are moved beside others of nearby groups before they are grouped: results as DuckDB's, and which rows stay where they are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cpu.hash_groups import HashGroups
from tests.codegen.fused import assert_fused
from tests.codegen.test_groups import CALLS, counted
from tests.compare import connected
from tests.limits import SetLimits

ROWS, GROUPS = 100_000, 90_000  # whose codes take four bytes
RANDOM = np.random.default_rng(21)
QUERY = f"select k, {CALLS} from t group by k"


@pytest.fixture(autouse=True)
def small(limits: SetLimits) -> None:
    limits(clustered_rows__LEAST_GROUPS=1 << 16, ROWS_A_RANGE=1 << 12, clustered_rows__STEP=1 << 14)


def _table(keys: object, rows: int = ROWS) -> pa.Table:
    values = RANDOM.integers(-1000, 1000, rows)
    numbers = np.where(values == 7, np.nan, np.where(values == 8, -np.inf, values * 0.5))
    return pa.table(
        {
            "k": pa.array(keys, pa.int64()),
            "v": values,
            "f": pa.array(numbers, mask=values == 9),
            "n": pa.array(values * 2**40, mask=values % 2 == 0),
        }
    )


def _keys(rows: int = ROWS) -> np.ndarray:
    return RANDOM.permutation(np.append(RANDOM.integers(0, GROUPS, rows - 2), [0, GROUPS]))


@pytest.mark.parametrize("query", [QUERY, f"{QUERY} having sum(v) > 900"])
def test_rows_in_no_order_are_moved(query: str) -> None:
    with counted(HashGroups, "by_parts") as moved:
        assert_fused(query, {"t": _table(_keys() - 70_000)})
    assert moved


KEYS: dict[str, Callable[[], object]] = {
    "ascending": lambda: np.sort(_keys()),
    "most of one part": lambda: np.where(RANDOM.random(ROWS) < 0.6, 5, _keys()),
    "of few groups": lambda: RANDOM.choice(_keys()[:5_000], ROWS),
    "in stretches": lambda: np.repeat(_keys(ROWS // 10), 10),
    "NULL": lambda: pa.nulls(ROWS, pa.int64()),
    "one number": lambda: np.full(ROWS, 70_000),
    "sparse": lambda: RANDOM.integers(0, 2**30, ROWS),
    "wide": lambda: RANDOM.integers(0, 2**50, ROWS),
    "with NULL": lambda: pa.array(_keys(), mask=RANDOM.random(ROWS) < 0.1),
    "few": lambda: _keys() % 60_000,
}


@pytest.mark.parametrize("keys", KEYS)
def test_other_rows_stay_where_they_are(keys: str) -> None:
    with counted(HashGroups, "by_parts") as moved:
        assert_fused(QUERY, {"t": _table(KEYS[keys]())})
    assert not moved


def test_rows_of_filters_and_joins_stay_where_they_are() -> None:
    table = _table(_keys())
    with counted(HashGroups, "by_parts") as moved:
        assert_fused(f"{QUERY.replace('group', 'where v > -900 group')}", {"t": table})
        assert_fused(
            "select t.k, sum(t.v) from t, t as s where t.k = s.k group by t.k", {"t": table}
        )
    assert not moved


def test_sums_of_doubles_are_the_same_with_any_number_of_threads(limits: SetLimits) -> None:
    limits(DETERMINISTIC_ROWS=1 << 14)
    table = _table(_keys() % 80_000).set_column(2, "f", pa.array(RANDOM.random(ROWS) * 1e9))
    found = []
    with counted(HashGroups, "by_parts") as moved:
        for threads in (1, 3):
            with connected(
                {"t": table}, fuse="always", threads=threads, deterministic=True
            ) as connection:
                found.append(
                    connection.sql("select k, sum(f) as f from t group by k order by k").to_arrow()
                )
    assert moved
    assert found[0].equals(found[1])
