"""mode(): which of several most frequent values it returns."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb

TIES = ["boolean", "tinyint", "usmallint", "integer", "bigint", "enum('2', '1', '0')"]  # fmt: skip


@pytest.mark.parametrize("kind", TIES)
@pytest.mark.parametrize("rows", ["(2), (1), (0), (1), (2), (0), (null)", "(null)", "(1)"])
def test_of_several_most_frequent_values_mode_is_the_least(
    kind: str, rows: str, backend: str
) -> None:
    values = rows.replace("2", "1") if kind == "boolean" else rows
    setup = (
        f"create table t as select 1 as k, x::varchar::{kind} as x from (values {values}) v(x)",
    )
    for query in (
        "select mode(x), mode(x) filter (x::varchar <> '0') from t",
        "select k, mode(x) from t group by k",
        "select mode(x order by x desc), list_mode([1, 0]) from t",
        "select mode(x) over () from t",
    ):
        assert_same_as_duckdb(query, setup=setup, backend=backend, fuse=("always", "never"))
