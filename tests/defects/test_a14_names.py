"""A8, A14: columns without an alias had names that no version of DuckDB gives."""

import pytest

from tests.compare import assert_same_as_duckdb

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
    assert_same_as_duckdb(query)


@pytest.mark.parametrize(
    "query", ["select ~5 + 2", "select 'a' ^@ 'a' || 'b'", "select 'x' || 1 << 2"]
)
def test_operators_take_what_they_take_in_duckdb(query):
    assert_same_as_duckdb(query)
