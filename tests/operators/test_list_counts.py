"""Aggregates over the list of a group's values, and functions that count: as DuckDB, for NULL, no rows, extremes and windows."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

ROWS = {
    "g": [1, 1, 1, 2, 2, 3, 3, 3],
    "x": [3, 1, 3, None, 4, -5, 7, 7],
    "d": [1.5, float("inf"), 0.25, None, 2.0, -1.0, None, 0.25],
    "s": ["b", "", "b", None, "ab", "é", "a", "a"],
}
GROUPED = [
    "histogram(x), histogram(s), histogram([x]), histogram({'a': x}), histogram(distinct x)",
    "histogram(x, [-1, 3, 3, 1]), histogram(d, [0.25]), histogram(s, ['a', 'b']), histogram(x > 1, [false])",
    "histogram_exact(x, [3, 7]), histogram_exact(s, ['a']), histogram(x, []), histogram(s, ['']) filter (where s = '')",
    "approx_top_k(s, 1), approx_top_k(x, 9), reservoir_quantile(x, 0.9), reservoir_quantile(d, [0.0, 1.0], 5)",
    "max(x, 2), min(s, 1), max(distinct x, 3), arg_max(s, x, 2), arg_min(x, s, 3), min_by(g, s, 1)",
    "arg_max_nulls_last(s, x), arg_min_nulls_last(s, d), arg_max_nulls_last(s, x, 2), arg_min_nulls_last(x, s, 9)",
    "quantile_cont(x, [0.25, 0.5]), quantile_disc(s, [0.5, 1]), approx_quantile(x, [0.5]), quantile(d, []::double[])",
    "decimal_average(x::decimal(9, 2)), decimal_average((x / 2)::decimal(4, 1)), percentile_cont([0.5]) within group (order by x)",
]
WINDOWS = "histogram(x) over w as a, max(x, 2) over w as b, approx_top_k(s, 1) over w as c, arg_max_nulls_last(s, x) over (partition by g) as d"
SCALARS = [
    "list_cosine_similarity(l, m), list_cosine_distance(l, m), list_cosine_similarity([1e200, 1e200], [1e200, 0.0])",
    "list_cosine_distance([1::float, 2], [2::float, 1]), list_cosine_similarity([]::double[], []), list_cosine_distance([0.0], [1.0])",
    "overlay(s placing 'xyz' from n for 2), overlay(s, 'né', n), overlay(s, '', n, -1), overlay(s, null, n)",
    "parse_path(s), parse_path(s, 'backslash'), path_join(s, 'b', '..', 'c/'), path_join('s3://a/b', s), path_join(s)",
    "round_even(n / 2, 0), round_even(n * 5, -1), round_even(n / 4::decimal(4, 2), 1), round_even(n::hugeint * 50, -n)",
    "round_even(n, -2147483648)",
    "decimal_division(n, 3), decimal_division(n::decimal(5, 1), 2::decimal(3, 2), 0), decimal_division(n, null)",
    "in_search_path(s, 'main'), in_search_path('MEMORY', 'main')",
    "current_schemas(true), current_schemas(false), current_query(), case when n > 99 then error(s) else n end",
]
VALUES = """from (values ([1.0, 2], [2.0, 4], 'a/b', 1), ([1e-200, 0], [1e-200, 1e-200], '', -3), (null, [1, 2], null, null),
    ([3.0, 4], [-3.0, -4], './é//c\\d/', 25)) t(l, m, s, n)"""
REFUSED = {
    "histogram(x, [1, null])": "not NULL",
    "histogram(x, null)": "not NULL",
    "histogram(x, [x])": "constants",
    "histogram(d, ['nan'::double])": "not NaN",
    "histogram(x::hugeint, [1])": "39 digits",
    "histogram_exact(x, [2147483647])": "as its key",
    "approx_top_k(x, 0)": "at least one",
    "max(x, g)": "constant",
    "max(x, 1000000)": "less than 1,000,000",
    "arg_max(distinct x, g, 2)": "DISTINCT",
    "reservoir_quantile(x, 1.5)": "from 0 to 1",
    "reservoir_quantile(x, 0.5, 0)": "above 0",
    "quantile_cont(x, [g])": "fraction",
    "decimal_division(sum(x), 0)": "Division by zero|digits",
    "round_even(127::tinyint, -1)": "Overflow",
    "path_join('a', '/b')": "is not in",
    "error('no')": "no",
}


@pytest.mark.parametrize("calls", GROUPED)
def test_groups(calls: str) -> None:
    query = f"select g, {calls} from t group by g order by g"
    assert_same_as_duckdb(query, {"t": ROWS}, fuse=("always", "never"))


@pytest.mark.parametrize("calls", GROUPED)
def test_no_rows_and_only_null(calls: str) -> None:
    assert_same_as_duckdb(
        f"select {calls} from t where g > 9 or x is null and s is null", {"t": ROWS}
    )


def test_windows() -> None:
    query = f"select g, x, s, {WINDOWS} from t window w as (partition by g order by s rows 1 preceding) order by all"
    assert_same_as_duckdb(query, {"t": ROWS})


@pytest.mark.parametrize("calls", SCALARS)
def test_functions(calls: str) -> None:
    assert_same_as_duckdb(f"select {calls} {VALUES}")


@pytest.mark.parametrize("call", REFUSED)
def test_refused(call: str, connection: Any) -> None:
    connection.execute("create or replace table t as select 1 as g, 2 as x, 0.5::double as d")
    with pytest.raises(FuselineError, match=REFUSED[call]):
        connection.sql(f"select {call} from t").fetchall()
