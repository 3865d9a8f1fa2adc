"""Values of results in Python: nested ones, and what lies beyond Python's dates and times."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.frame.python_values import python_values


@pytest.mark.parametrize(
    "query",
    [
        "select t, [t], {'a': t} from (values ('infinity'::timestamp_ns), ('-infinity'), ('2024-01-01'), (null)) v(t)",
        "select [date '20000-01-01', date 'infinity', null], {'a': timestamp '20000-01-01'}, map {1: date '-infinity'}",
        "select [{'a': [date '20000-01-01']}, null], [time '24:00:00'], time '24:00:00', {'t': time '10:00'}",
        "select t from (values (time '24:00:00'), (null), (time '10:00')) x(t)",
        "select map {[1, 2]: 'a', [3]: 'b'}, map {{'a': 1}: 2}, [map {1: 'a'}], [map {[1]: [2]}], {'m': map {'k': 1}}",
        "select x from (values (map {1: 2}), (null), (map {})) t(x)",
        "select x from (values ([1, null]), (null), ([])) t(x)",
        "select x from (values (array_value(1, 2)), (null)) t(x)",
        "select x from (values ({'a': 1}), (null), ({'a': null})) t(x)",
        "select [row(1, 2)], {'a': row(1, array_value(1, 2))}, [interval '1 month'], [1::hugeint], ['a'::enum('a')]",
        "select x from (values ({'a': 1})) t(x) where false",
    ],
)
def test_they_are_those_of_duckdb(query: str) -> None:
    assert fuseline.connect(device="cpu").execute(query).fetchall() == duckdb.sql(query).fetchall()


def test_parts_of_columns() -> None:
    """Whose children begin before them."""
    pairs = pa.array([[(1, "a")], None, [], [(2, "b")]], pa.map_(pa.int64(), pa.string()))
    column = pa.chunked_array([pairs[1:3], pairs[3:]])
    assert python_values(column) == [None, {}, {2: "b"}]
    rows = pa.array([{"a": [1]}, {"a": [2, 3]}, None])
    assert python_values(pa.chunked_array([rows[1:]])) == [{"a": [2, 3]}, None]
