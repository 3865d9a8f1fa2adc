"""Where a string names a column in dataframe calls, and frames handed to other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import fuseline
from fuseline import coalesce, col, fn, lit
from fuseline.errors import UnknownName
from fuseline.frame.functions import Expression, scalar
from fuseline.plan.derived import DERIVED, signature
from fuseline.plan.functions import AGGREGATE, SCALAR, constants

ROWS = {"driver": ["99 ab", "driver", None], "other": ["ab", "x", "y"], "n": [2, 3, None]}


@pytest.fixture
def table() -> Any:
    with fuseline.connect(device="cpu") as connection:
        yield connection.register("t", ROWS)


@pytest.mark.parametrize(("expression", "sql"), [
    (lambda: fn.upper("driver"), "upper(driver)"),
    (lambda: fn.length("DRIVER"), "length(driver)"),
    (lambda: fn.contains("driver", "99"), "contains(driver, '99')"),
    (lambda: fn.contains("driver", col("other")), "contains(driver, other)"),
    (lambda: fn.upper(lit("driver")), "upper('driver')"),
    (lambda: fn.replace("driver", "driver", "other"), "replace(driver, 'driver', 'other')"),
    (lambda: fn.concat("driver", "other"), "concat(driver, 'other')"),
    (lambda: fn.concat_ws("-", "driver", "other"), "concat_ws('-', driver, 'other')"),
    (lambda: fn.greatest("n", 3), "greatest(n, 3)"),
    (lambda: fn.log("n"), "log(n)"),
    (lambda: fn.log(2, "n"), "log(2, n)"),
    (lambda: fn.coalesce("driver", "other"), "coalesce(driver, 'other')"),
    (lambda: coalesce("driver", "other"), "coalesce(driver, 'other')"),
    (lambda: fn.nullif("driver", "driver"), "nullif(driver, 'driver')"),
    (lambda: fn.starts_with("driver", fn.left("other", 1)), "starts_with(driver, left(other, 1))"),
])  # fmt: skip
def test_the_first_column_argument_names_a_column(
    expression: Callable[[], Expression], sql: str, table: Any
) -> None:
    expected = duckdb.sql(f"select {sql} from t", connection=loaded()).fetchall()
    assert table.select(x=expression()).fetchall() == expected


def loaded() -> Any:
    connection = duckdb.connect()
    connection.register("t", pa.table(ROWS))
    return connection


def test_units_and_formats_are_constants() -> None:
    days = fuseline.connect(device="cpu").register("d", {"day": ["2024-02-03 10:20:30"]})
    made = days.select(day=col("day").cast("timestamp")).select(
        a=fn.date_trunc("month", "day").cast("varchar"),
        b=fn.date_part("year", "day"),
        c=fn.date_diff("day", "day", lit("2024-02-05").cast("timestamp")),
        d=fn.strftime("day", "%d.%m."),
    )
    query = """select date_trunc('month', d)::varchar, year(d), date_diff('day', d, timestamp '2024-02-05'), strftime(d, '%d.%m.')
        from (select timestamp '2024-02-03 10:20:30' as d)"""
    assert made.fetchall() == duckdb.sql(query).fetchall()


def test_aggregates_over_functions_of_columns(table: Any) -> None:
    assert table.filter(fn.contains("driver", "99")).count() == 1
    assert table.agg(x=fn.sum(fn.length("driver"))).fetchall() == [(11,)]
    assert table.agg(x=fn.string_agg("other", "other")).fetchall() == [("abotherxothery",)]
    assert table.agg(x=fn.arg_max("driver", "n")).fetchall() == [("driver",)]


@pytest.mark.parametrize(
    "name", sorted({*DERIVED, *(n for n, f in SCALAR.items() if f.kind != "operator")})
)
def test_every_function_names_a_column_that_is_not_there(name: str, table: Any) -> None:
    """All but `pi`, which takes no argument: by the column argument's place as its signature has it."""
    if name == "pi":
        return
    before = len([i for i in constants(signature(name)) if i == 0]) and name != "log"
    arguments = [*(["day"] if before else []), "no such column"]
    with pytest.raises(UnknownName, match='no column "no such column"'):
        table.select(x=scalar(name, *arguments))


@pytest.mark.parametrize("name", sorted(AGGREGATE))
def test_every_aggregate_names_columns(name: str, table: Any) -> None:
    if name == "count_star":
        return
    with pytest.raises(UnknownName, match='no column "no such column"'):
        table.agg(x=getattr(fn, name)("no such column", "no such column"))


def test_pandas_gets_the_names(table: Any) -> None:
    assert list(pd.DataFrame(table).columns) == list(ROWS)
    assert list(table.to_pandas().columns) == list(ROWS)


def test_numpy_gets_rows(table: Any) -> None:
    assert np.asarray(table.select("n")).shape == table.to_numpy()[:, 2:].shape


def test_libraries_that_read_arrow_get_names(table: Any) -> None:
    assert pl.DataFrame(table).columns == list(ROWS)
    assert pa.table(table).column_names == list(ROWS)
    assert pd.DataFrame(table.fetchall(), columns=table.columns).shape == (3, 3)


def test_numpy_scalars_leave_operators_to_expressions(table: Any) -> None:
    assert table.select(x=np.float64(2) * col("n")).fetchall()[0] == (4.0,)
    assert table.filter(np.int64(2) == col("n")).count() == 1
