"""What a left join's build side joins in turn is NULL where the left join finds no row."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.codegen.fused import assert_fused_joins

TABLES = {
    "t": pa.table({"k": [1, 2, None, 4, 9], "v": [1, 2, 3, 4, 5]}),
    "u": pa.table({"k": [1, 2, 3, 4], "w": [7, None, 9, 10]}),
    "x": pa.table({"w": [7, 9, None], "y": [70, 90, 99]}),
}
ONE_ROW = "(select count(w) as n from x)"  # count(*) would be known without a join


@pytest.mark.by_day
@pytest.mark.parametrize("side", [
    f"select k, n as z from u cross join {ONE_ROW}",
    f"select k, n as z from u left join {ONE_ROW} on w > n * 3",
    f"select k, w + n as z from u cross join {ONE_ROW}",
    "select k, y as z from u left join x on u.w is not distinct from x.w",
    "select k, y as z from u join x on u.w is not distinct from x.w",
    "select k, y as z from u left join x on coalesce(u.w, 9) = x.w",
    "select k, y as z from u join x on coalesce(u.w, 9) = x.w",
])  # fmt: skip
@pytest.mark.parametrize("outer", ["t.k = s.k", "t.k = s.k and v < 4", "t.k + 100 = s.k"])
def test_no_row_no_value(side: str, outer: str) -> None:
    joined = f"from t left join ({side}) s on {outer}"
    assert_fused_joins(f"select count(*), count(z), sum(z) {joined}", TABLES)
