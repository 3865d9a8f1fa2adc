"""Results as columns of pandas, NumPy and Polars: the values that DuckDB's client gives."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import fuseline

QUERIES = [
    "select [1, 2, null] as l, {'a': 1, 'b': 'x'} as s, map {'k': 1} as m",
    "select [9007199254740993, null] as exact, [1.5::double, null] as d, [true, null] as b, [[1], [null]] as n",
    "select * from (values ({'a': 1}), ({'a': null})) t(a)",
    "select {'a': [1], 'd': date '2024-01-31'} as a, [{'a': [1]}] as b, [[{'a': 1.5}]] as c",
    "select [1, null]::int[2] as a, []::int[] as b, [null]::int[] as c",
    "select interval 1 day as a, interval 1 month as b, interval '-1 hour' as c",
    "select * from (values (interval 1 day), (null)) t(a)",
    "select map {[1]: 2} as a, map {'a': [1]} as b",
    "select date '2024-01-31' as a, null::date as b",
    "select 1 as a, 2 as a, 3 as A",
]


def shown(value: Any) -> Any:
    """Return values with their types, so that an array is not taken for a list, nor a float for an integer."""
    if isinstance(value, np.ma.MaskedArray):
        return "masked", str(value.dtype), [shown(v) for v in value.tolist()]
    if isinstance(value, np.ndarray):
        return "array", str(value.dtype), [shown(v) for v in value.tolist()]
    if isinstance(value, dict):
        return {k: shown(v) for k, v in value.items()}
    return type(value).__name__, repr(value)


def columns(found: Any) -> list[Any]:
    if isinstance(found, pd.DataFrame):
        return [(name, str(c.dtype), [shown(v) for v in c]) for name, c in found.items()]
    return [(name, shown(values)) for name, values in found.items()]


@pytest.mark.parametrize("query", QUERIES)
def test_pandas_and_numpy_have_the_values_of_duckdbs_client(query: str) -> None:
    with fuseline.connect(device="cpu") as here, duckdb.connect() as there:
        assert columns(here.sql(query).df()) == columns(there.sql(query).df())
        assert columns(here.sql(query).fetchnumpy()) == columns(there.sql(query).fetchnumpy())


def test_an_interval_beyond_timedelta64_is_an_object() -> None:
    with fuseline.connect(device="cpu") as connection:
        frame = connection.sql("select interval 300000 years as a").df()
    assert frame["a"].dtype == object


def test_polars_gets_names_that_differ() -> None:
    with fuseline.connect(device="cpu") as connection:
        assert connection.sql("select 1 as a, 2 as a").pl().columns == ["a", "a_1"]
