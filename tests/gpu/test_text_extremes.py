"""The least and greatest texts of groups by a kernel: beside other aggregates, of NULLs, and of texts that begin alike."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

pytestmark = pytest.mark.gpu
ROWS = 4000
QUERIES = (
    "select min(s) as a, max(s) as b from t",
    "select min(s) as a, max(s) as b, count(*) as n, sum(v) as x from t where v % 3 = 1",
    "select k, min(s) as a, max(s) as b from t group by k order by k",
    "select k, g, max(s) as b, min(o) as c, sum(v) as x, count(s) as n from t group by k, g order by k, g",
    "select v, min(s) as a from t group by v order by v",
    "select k, min(s) filter (where v % 2 = 0) as a, max(s) filter (where v < 0) as b from t group by k order by k",
    "select k, max(o) as a, count(distinct g) as n, min(distinct s) as b from t group by k order by k",
    "select g, min(alike) as a, max(alike) as b, max(nothing) as c from t group by g order by g",
    "select min(alike) as a, max(nothing) as b, max(o) as c from t",
    "select k, min(s || o) as a, max(left(s, 2) || o) as b from t group by k order by k",
    "select w, max(s) as a from t group by w order by w",
    "select min(s) as a, max(o) as b from t where v < 0",
)


def table(rows: int) -> pa.Table:
    """Texts in random order, ascending, alike but for the end or whole, and NULL alone, by keys with and without NULL and of all 64 bits."""
    n = range(rows)
    endings = ["", "\0", "z", "é", "日", "\U0010ffff", " "]
    return pa.table(
        {
            "v": pa.array([i * 7919 % 2003 for i in n], pa.int32()),
            "k": pa.array([None if i % 11 == 0 else i % 7 - 3 for i in n], pa.int8()),
            "g": ["north" if i % 3 else "south" for i in n],
            "w": pa.array([(-(2**63), 2**63 - 1, 0)[i % 3] for i in n], pa.int64()),
            "s": [None if i % 17 == 0 or i % 7 == 4 else f"{i * 31337 % 9973}{endings[i % 7]}" for i in n],
            "o": [f"{i:09d}" for i in n],
            "alike": [f"the same beginning{i * 7 % rows // 2:07d}" for i in n],
            "nothing": pa.array([None] * rows, pa.string()),
        }
    )  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("rows", "first"), [(ROWS, 64), (ROWS, 1 << 14), (1, 64)])
def test_text_extremes(query: str, rows: int, first: int, limits: SetLimits) -> None:
    limits(packed_keys__LEAST_ROWS=1, few_rows__MOST_ROWS=0, SPREAD_ROWS=first)
    assert_same_as_duckdb(query, {"t": table(rows)}, backend="gpu", fuse=("always", "never"))
