"""Names of types with parameters that say how long a text or how exact a number is: the same types as in DuckDB."""

from __future__ import annotations

import duckdb
import pytest

import fuseline
from fuseline.errors import ParseError, UnknownName
from tests.compare import assert_same_as_duckdb

TYPES = [
    "char(5)", "CHAR (5)", "character(3)", "character varying(3)", "nchar(3)", "nvarchar(3)", "bpchar(3)", "text(4)", "varchar(20)",
    "float", "float(1)", "float(24)", "float(25)", "float(53)",
]  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_a_type_of_a_cast_is_duckdbs(name: str) -> None:
    assert_same_as_duckdb(f"select cast(12 as {name}) as a, typeof('7'::{name}) as b, {{'x': 1::{name}}} as c")  # fmt: skip


def test_columns_have_them() -> None:
    columns = ", ".join(f"c{i} {name}" for i, name in enumerate(TYPES))
    query = "select column_name, data_type from information_schema.columns where table_name = 'of_names' order by all"
    with fuseline.connect(device="cpu") as connection, duckdb.connect() as reference:
        for each in (connection, reference):
            each.execute(f"create table of_names ({columns}, primary key (c0))")
            each.execute("alter table of_names add column more char(3)")
        assert connection.sql(query).fetchall() == reference.sql(query).fetchall()


@pytest.mark.parametrize(("query", "error"), [
    ("select char(65)", UnknownName),
    ("select 1, char(65)", UnknownName),
    ("select 1::float(54)", ParseError),
    ("select 1::float(0)", ParseError),
    ("select cast('a' as character(3, 4))", ParseError),
])  # fmt: skip
def test_what_is_no_type_is_refused(query: str, error: type[Exception]) -> None:
    with fuseline.connect(device="cpu") as connection, pytest.raises(error):
        connection.sql(query)
    with pytest.raises(duckdb.Error):
        duckdb.sql(query)
