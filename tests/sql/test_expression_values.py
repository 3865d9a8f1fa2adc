from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import (
    Ordering,
    assert_same_as_duckdb,
    connected,
    difference,
    duckdb_answer,
    fuseline_answer,
)
from tests.plan.columns import TYPES

EXPRESSIONS = (Path(__file__).parent / "typed_expressions.txt").read_text().splitlines()
# Ties have no rule: DuckDB's hash table decides.
DETERMINED = [e for e in EXPRESSIONS if not e.startswith("mode")]
ROWS = """
    (1, 2, 3, 4, 5, 6, 7, 8, 9, 1.5, 2.25, 3.125, 1.5, 1.5, 1.5, 2.5, true,
     '2020-02-29', '2020-02-29 13:14:15.123456', '1 day', '1', NULL),
    (-7, -300, -70000, -5000000000, 200, 60000, 4000000000, 9000000000, -9, -99.9, -1234567.89,
     -5.5, -1.5, -1.5, -0.5, -2.5, false,
     '1969-12-31', '1969-12-31 23:59:59.999999', '-3 months 2 days', '0', NULL),
    (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, true,
     '2000-01-03', '2000-01-03 00:00:00', '0 days', '7', NULL),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
     NULL, NULL, NULL, NULL, NULL, NULL, NULL)
"""


@cache
def reference() -> duckdb.DuckDBPyConnection:
    """DuckDB with rows of each type: ordinary, negative, zero, NULL."""
    casts = ", ".join(f"{name}::{data_type} AS {name}" for name, data_type in TYPES.items())
    columns = ", ".join([*TYPES, "n"])
    made = duckdb.connect()
    made.execute(f"CREATE TABLE t AS SELECT {casts}, n FROM (VALUES {ROWS}) AS v({columns})")
    return made


@pytest.fixture(scope="module")
def connection(backend: str) -> Iterator[fuseline.Connection]:
    with connected({"arrow": reference().sql("FROM t").to_arrow_table()}, backend) as made:
        made.execute("CREATE VIEW t AS SELECT * REPLACE (hi::HUGEINT AS hi) FROM arrow")
        yield made


@pytest.mark.parametrize("sql", DETERMINED)
def test_values_are_duckdbs(sql: str, connection: fuseline.Connection) -> None:
    """A value that DuckDB has no result for (a cast that fails, an overflow) is an error here too."""
    query = f"SELECT {sql} AS result FROM t"
    try:
        expected = duckdb_answer(reference(), query)
    except duckdb.Error:
        with pytest.raises(FuselineError):
            connection.sql(query).to_arrow()
        return
    actual = fuseline_answer(connection, query)
    assert difference(expected, actual, Ordering(ordered=True)) is None


@pytest.mark.parametrize("call", [
    "mode() within group (order by x)", "mode() within group (order by x desc)", "mode(x order by i desc)",
    "mode(x order by s desc, i) filter (where i <> 3)",
    "mode(distinct x order by x desc)",
])  # fmt: skip
def test_of_the_most_frequent_values_mode_is_the_first_in_its_order(
    call: str, backend: str
) -> None:
    columns = {"k": [1, 1, 1, 1, 2, 2, 3], "x": [3, 1, 1, 3, 5, None, None], "i": range(7)}
    table = pa.table({**columns, "s": ["a", "b", None, "a", "b", "a", "c"]})
    assert_same_as_duckdb(f"select k, {call} as m from t group by k", {"t": table}, backend=backend)
