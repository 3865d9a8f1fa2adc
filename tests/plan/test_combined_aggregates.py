"""Aggregates that are expressions over others, and those that look at values twice: grouped, alone, over frames, by parts."""

from __future__ import annotations

import pytest

from fuseline.errors import Unsupported
from tests.compare import assert_same_as_duckdb, connected

ROWS = 300
TABLE = {
    "t": {
        "g": [n % 7 if n % 11 else None for n in range(ROWS)],
        "x": [None if n % 13 == 0 else (n * 37 % 101) / 4 + 1 for n in range(ROWS)],
        "y": [None if n % 17 == 0 else (n * 53 % 89) - 20.5 for n in range(ROWS)],
        "n": [n * 29 % 17 for n in range(ROWS)],
        "o": list(range(ROWS)),
    }
}
OF_ONE = ("sem", "fsum", "kahan_sum", "favg", "skewness", "kurtosis", "kurtosis_pop", "geomean", "entropy", "mad")  # fmt: skip
OF_TWO = ("regr_avgx", "regr_avgy", "regr_count", "regr_slope", "regr_intercept", "regr_r2", "regr_sxx", "regr_syy", "regr_sxy",
          "weighted_avg", "arg_min_null", "arg_max_null")  # fmt: skip
CALLS = (*(f"{f}(x)" for f in OF_ONE), *(f"{f}(y, x)" for f in OF_TWO), "sum_no_overflow(n)")  # fmt: skip


def select(calls: tuple[str, ...]) -> str:
    return ", ".join(f"{call} as v{i}" for i, call in enumerate(calls))


@pytest.mark.parametrize("rows", ["true", "false", "o = 5", "o < 4", "g = 3"])
def test_alone_and_by_group(rows: str, backend: str) -> None:
    for query in (f"select {select(CALLS)} from t where {rows}", f"select g, {select(CALLS)} from t where {rows} group by g order by g"):  # fmt: skip
        assert_same_as_duckdb(query, TABLE, backend=backend, fuse=("always", "never"))


def test_with_a_filter_and_over_frames() -> None:
    known = [call for call in CALLS if not call.startswith(("geomean", "weighted"))]  # macros there
    filtered = tuple(f"{call} filter (where n > 3)" for call in known)
    assert_same_as_duckdb(f"select g, {select(filtered)} from t group by g order by g", TABLE)
    window = "over (partition by g order by o rows 5 preceding)"
    # Sums of powers lose digits, here and there
    framed = tuple(
        f"round({c} {window}, 6)" if "ness" in c or "kurt" in c else f"{c} {window}" for c in known
    )
    assert_same_as_duckdb(f"select o, {select(framed)} from t order by o", TABLE)


def test_all_values_are_equal() -> None:
    setup = ["create table same as select 2.5 as x, range::double as y from range(9)"]
    calls = tuple(c for c in CALLS if "(n" not in c)
    assert_same_as_duckdb(f"select {select(calls)} from same", setup=setup)


@pytest.mark.parametrize("values", ["1e308, 1e308", "'1', 'inf'", "'inf', '-inf'", "'nan', '1'", "-1e308, -1e308, 1"])  # fmt: skip
def test_sums_beyond_the_greatest_double_are_infinite(values: str) -> None:
    rows = f"(select unnest([{values}]::double[]) as x)"
    assert_same_as_duckdb(f"select fsum(x), favg(x), kahan_sum(x), sum(x) from {rows}")


def test_quantiles_are_exact() -> None:
    with connected(TABLE) as connection:
        found = connection.sql("select approx_quantile(o, 0.25), approx_quantile(x, 0.5), quantile_cont(x, 0.5) from t")  # fmt: skip
        ((quarter, half, exact),) = found.fetchall()
    assert (quarter, half) == (75, exact)


@pytest.mark.parametrize("call", ["kurtosis(distinct x)", "regr_r2(distinct y, x)"])
def test_distinct_is_refused_where_other_values_are_added(call: str) -> None:
    with connected(TABLE) as connection, pytest.raises(Unsupported, match="DISTINCT in"):
        connection.sql(f"select {call} from t")


def test_distinct_of_the_values_themselves() -> None:
    calls = ("sem(distinct x)", "favg(distinct n)", "entropy(distinct n)", "mad(distinct x)")
    assert_same_as_duckdb(f"select {select(calls)} from t", TABLE)
