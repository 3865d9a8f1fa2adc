"""Conditions on the side of an outer join that may be missing: a list, a row or JSON of NULLs is a value, and keeps the rows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb, connected

TABLES = {
    "a": pa.table({"i": [1, 2]}),
    "b": pa.table({"x": [2], "s": ["q"], "l": [[1]]}),
    "none": pa.table({"i": pa.array([], pa.int64())}),
}
CONDITIONS = [
    *("len([x]) = 1", "[x] is not null", "[x] <> [7]", "array_value(x) is not null", "list_sort([x]) is not null"),
    *("{'x': x} is not null", "{'x': x} <> {'x': 7}", "row(x) <> row(7)", "b is not null", "map {1: x} is not null"),
    *("json_array(x)::varchar = '[null]'", "to_json([x])::varchar = '[null]'", "json_object('k', x) is not null"),
    *("list_concat(l, l) is not null", "list_zip(l, l) is not null", "len(list_append(l, x)) = 1", "list_prepend(x, l) is not null"),
    *("list_position([x], null) = 1", "list_distinct([x]) = []", "flatten([[x]]) is not null", "list_resize(l, 2) is null"),
    *("list_intersect([1], l) is not null", "list_intersect(l, [1]) is null", "list_intersect([1], null::int[]) = []"),
    *("coalesce([x], [1]) <> [1]", "coalesce(x, x) is not null", "greatest(x, 1) = 1", "(x > 1 or x < 1) is null", "concat_ws('-', s) = ''"),
    *("l || [1] is null", "map {} not in (map {'a': 1}, map {'b': 1})", "list_value() = []", "[1] in ([1], [2])"),
]  # fmt: skip


@pytest.mark.parametrize("join", ["a left join b on i = x", "a full join b on i = x", "none full join b on i = x"])  # fmt: skip
def test_conditions_over_rows_without_a_match(join: str) -> None:
    with connected(TABLES, fuse="never") as connection:
        for condition in CONDITIONS:
            query = f"select i, x from {join} where {condition}"
            assert_same_as_duckdb(query, TABLES, connection=connection)
