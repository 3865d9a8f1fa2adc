"""Lists side by side, texts split and searched by regular expressions, and structs with other fields answer as DuckDB."""

from __future__ import annotations

import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

TABLE = pa.table(
    {
        "l": [[1, None, 3], [4], [], None, [5, 6]],
        "b": [[True, False, True], [True, True], [], [True], None],
        "v": pa.array([[1.5, 2.0], [float("nan"), 1.0], [], None, [3.0]], pa.list_(pa.float64())),
        "w": pa.array([[3, 4], [1, 2], [], [1], [-1]], pa.list_(pa.int32())),
        "s": ["a1b22,c", None, "", "xay", "é;é 3"],
        "p": ["[0-9]+", "x", "a", None, "é"],
        "r": [{"x": 1, "y": "q"}, None, {"x": None, "y": "z"}, {"x": 4, "y": None}, {"x": 5, "y": ""}],
    }
)  # fmt: skip
QUERIES = (
    "select l && w, l @> [1], w <@ [1, 2, 3, 4], l && w or w @> [2], l || w && [2], [2] && (w || l) from t where not l && [99] or l is null",
    "select list_where(l, b), array_where(w, [true]), list_where(s_, [false, true]) from (select *, [s, p] s_ from t)",
    "select list_distance(v, w), list_dot_product(w, v), list_inner_product(v, v), list_negative_inner_product(v, w), list_negative_dot_product(w, w), list_distance(v::float[], w::float[]) is null from t",
    "select string_split_regex(s, p), regexp_split_to_array(s, '[;,] *'), str_split_regex(s, ''), string_split_regex(s, 'A', 'i') from t",
    "select string_split_regex(s, '^[a-z]'), string_split_regex(s, '\\b[a-z0-9]'), string_split_regex('aaa', '^a') from t",
    "select regexp_extract_all(s, p), regexp_extract_all(s, '([a-z])([0-9]+)', 2), regexp_extract_all(s, '.'), regexp_extract_all(s, 'X|A', 0, 'i') from t",
    "select struct_insert(r, z := l, n := 1), struct_update(r, Y := x_, m := 2), struct_concat(r, {'c': s}), struct_keys(r), struct_extract_at(r, 2) from (select *, 7 as x_ from t)",
)  # fmt: skip
WRONG = (
    "list_where([1], [null])", "list_distance([1], [1, 2])", "list_distance([1, null], [1, 2])", "list_distance(['a'], [1])",
    "regexp_extract_all('a', '(')", "regexp_extract_all('a', '(a)', 5)", "regexp_extract_all('a', 'a*')", "regexp_extract_all('ab', '(a)|b', 1)",
    "string_split_regex('a', 'x*')", "string_split_regex('a', 'x', 'q')", "struct_insert({'a': 1}, a := 2)", "struct_insert({'a': 1}, 2)", "struct_insert()", "struct_update()", "fmod([1], 1)",
    "struct_insert(1, a := 2)", "struct_concat({'a': 1}, {'A': 2})", "struct_extract_at({'a': 1}, 2)", "struct_keys(1)",
)  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_these_answer_as_duckdb(query: str) -> None:
    for rows in (TABLE, TABLE.slice(0, 0), TABLE.slice(3, 1)):
        assert_same_as_duckdb(query, {"t": rows}, backend="cpu")


def test_what_is_wrong_is_refused() -> None:
    with fuseline.connect("cpu") as connection:
        for call in WRONG:
            with pytest.raises(FuselineError):
                connection.sql(f"select {call}").fetchall()
        assert connection.sql("select 1").fetchall() == [(1,)]
