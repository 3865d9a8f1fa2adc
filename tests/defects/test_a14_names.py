"""A8, A14: columns without an alias had names that no version of DuckDB gives."""

import duckdb
import pytest

import fuseline

QUERIES = (
    "select max(null::decimal)",
    "select ~5",
    "select t + interval '1 day 2 hours' from (select timestamp '2024-01-01' as t)",
    "select string_agg(b, '|' order by b) from (select 'x' as b)",
    "select extract(epoch from t) from (select timestamp '2024-01-01' as t)",
    'select sum("distance") from (select 1 as distance)',
    "select +distance from (select 1 as distance)",
    "select (select max(x) from (select 1 as x) t) + 1",
)


@pytest.mark.parametrize("query", QUERIES)
def test_name_is_duckdbs(query):
    with fuseline.connect(device="cpu") as connection:
        assert connection.sql(query).columns == duckdb.sql(query).columns


@pytest.mark.parametrize(
    "query", ["select ~5 + 2", "select 'a' ^@ 'a' || 'b'", "select 'x' || 1 << 2"]
)
def test_operators_take_what_they_take_in_duckdb(query):
    with fuseline.connect(device="cpu") as connection:
        assert connection.sql(query).fetchall() == duckdb.sql(query).fetchall()
