"""Syntax that was accepted and had no effect: it answers as in DuckDB, or it is refused at its place."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import InvalidQuery, ParseError, Unsupported
from tests.compare import assert_same_as_duckdb
from tests.marks import assert_marks

SETUP = [
    "create table t as select * from (values (1, 'x', 1.5), (2, 'y', 2.5), (null, null, null)) v(i, s, d)",
    "create table u as select * from (values (1, 10), (3, 30)) v(i, n)",
]
REFUSED = [
    (Unsupported, "from (from t qualify ^row_number() over (order by i) = 1^)", "QUALIFY"),
    (Unsupported, "select '2024-01-01 10:00:00.5'::timestamp(^0^)", "TIMESTAMP(6) alone"),
    (Unsupported, "create table w (x timestamp(^3^))", "TIMESTAMP(6) alone"),
    (Unsupported, "from ^range(3)^ with ordinality", "ORDINALITY"),
    (InvalidQuery, "select ^count(distinct *)^ from t", "count(*) alone"),
]


@pytest.fixture(scope="module")
def connection() -> fuseline.Connection:
    opened = fuseline.connect(device="cpu")
    for statement in SETUP:
        opened.sql(statement)
    return opened


@pytest.mark.parametrize(("kind", "marked", "message"), REFUSED, ids=[r[1] for r in REFUSED])
def test_it_is_refused(connection, kind, marked, message) -> None:
    with pytest.raises(kind) as error:
        connection.sql(marked.replace("^", ""))
    assert_marks(error.value, marked, message)


def test_rows_of_values_have_values(connection) -> None:
    with pytest.raises(ParseError, match="needs values"):
        connection.sql("values ()")


@pytest.mark.parametrize("words", ["with no data", "with data", ""])
def test_a_table_with_no_data_is_empty(words: str) -> None:
    setup = [*SETUP, f"create table w as select i + 1 as j, s from t {words}"]
    assert_same_as_duckdb("from w", setup=setup)


def test_microseconds_are_what_a_timestamp_keeps() -> None:
    assert_same_as_duckdb("select '2024-01-01 10:00:00.123456'::timestamp(6) as x")
