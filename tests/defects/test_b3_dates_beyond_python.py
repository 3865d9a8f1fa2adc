"""Dates and timestamps that DuckDB has and Python's datetime has not: text, as DuckDB's client gives them."""

import duckdb
import pytest

import fuseline
from fuseline.cli.shell.output_modes import ROW_MODES, Header
from fuseline.frame.fitted_table import csv_columns, rows_of_batches
from fuseline.plan.types import DATE
from tests.compare import assert_same_as_duckdb

MOMENTS = (
    "date '9999-12-31' + 1", "date '0001-01-01' - 1", "make_date(12345, 1, 1)", "make_date(-5, 1, 1)",
    "make_date(5881580, 7, 10)", "make_date(-5877641, 6, 25)", "date '12345-01-01'", "date '0044-03-15 (BC)'",
    "date '-44-03-15'", "timestamp '12345-01-01 01:02:03.5'", "timestamp '0044-03-15 (BC) 01:02:03'",
    "make_timestamp(9223372036854775806)", "make_timestamp(12345, 1, 1, 0, 0, 0.5)",
    "date '9999-12-31' + interval 1 day",
    "timestamp '9999-12-31 23:59:59' + interval 1 second",
    "timestamp '0001-01-01 00:00:00' - interval 1 microsecond",
)  # fmt: skip
COLUMN = "select d + 0 as d, d::timestamp as t from (values (date '2024-01-01'), (null), (date '12345-01-01')) v(d)"


@pytest.mark.parametrize("moment", MOMENTS)
def test_fetched_as_by_duckdb(connection, moment):
    query = f"select {moment}, ({moment})::varchar, null"
    expected = duckdb.sql(query).fetchall()
    assert connection.sql(query).fetchall() == expected
    assert [connection.execute(query).fetchone()] == expected
    assert connection.execute(query).fetchmany(2) == expected
    assert list(connection.sql(query)) == expected


@pytest.mark.parametrize("moment", MOMENTS)
def test_parts_are_duckdbs(moment):
    parts = ("year", "month", "day", "doy", "isodow", "century")
    assert_same_as_duckdb(
        "select " + ", ".join(f"date_part('{p}', {moment}) as {p}_" for p in parts)
    )


def test_values_within_pythons_years_stay_dates(connection):
    assert connection.sql(COLUMN).fetchall() == duckdb.sql(COLUMN).fetchall()


def test_pandas_and_polars_get_the_days(connection):
    frame = connection.sql(COLUMN).to_pandas()
    assert frame.astype("string").equals(duckdb.sql(COLUMN).df().astype("string"))
    assert frame.dtypes.equals(duckdb.sql(COLUMN).df().dtypes)
    assert connection.sql(COLUMN).to_polars()["d"].dt.year().to_list() == [2024, None, 12345]


def test_shown_and_written_as_text(connection, capsys):
    connection.sql(COLUMN).show()
    assert "12345-01-01 00:00:00" in capsys.readouterr().out
    table = connection.sql(
        "select date '0044-03-15 (BC)' as d, timestamp '12345-01-01 00:00:00.5' as t"
    ).to_arrow()
    assert csv_columns(table).to_pylist() == [
        {"d": "0044-03-15 (BC)", "t": "12345-01-01 00:00:00.5"}
    ]
    header = Header(tuple(table.column_names), (DATE,) * table.num_columns)
    lines = ROW_MODES["json"](header, rows_of_batches(table.to_batches(), header.types))
    assert "".join(lines) == '[{"d": "0044-03-15 (BC)", "t": "12345-01-01 00:00:00.5"}]\n'


@pytest.mark.parametrize(
    "outside",
    [
        "date '5881580-07-11'",
        "make_date(5881580, 7, 11)",
        "make_date(9223372036854775807, 1, 1)",
    ],
)
def test_days_outside_of_the_calendar_are_refused(connection, outside):
    with pytest.raises(fuseline.FuselineError):
        connection.sql(f"select {outside}").fetchall()
