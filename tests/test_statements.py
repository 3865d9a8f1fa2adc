"""Statements around queries: tables, views, DESCRIBE, EXPLAIN, scripts."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuseline.errors import (
    CatalogError,
    ConversionError,
    FuselineError,
    OutOfRange,
    ParseError,
    UnknownName,
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a": [1, 2, 3], "s": ["x", "y", None]}), path)
    return path


def rows(connection, text, params=None):
    return connection.sql(text, params).fetchall()


def test_a_table_is_created_filled_and_dropped(connection):
    connection.execute("create table t (a integer, b varchar)")
    cursor = connection.execute("insert into t values (1, 'x'), (2, null)")
    assert (cursor.description, cursor.rowcount) == (None, 2)
    connection.execute("insert into t (b) select 'y'")
    assert rows(connection, "select * from t order by b") == [(1, "x"), (None, "y"), (2, None)]
    connection.execute("drop table t")
    with pytest.raises(UnknownName, match='"t"'):
        connection.sql("from t")
    connection.execute("drop table if exists t")


def test_create_as_keeps_types_and_rows(connection):
    cursor = connection.execute(
        "create table t as select 1::decimal(9,2) d, date '2024-01-01' t, 'x' s"
    )
    assert cursor.rowcount == 1
    assert [str(t) for t in connection.table("t").schema.values()] == [
        "DECIMAL(9,2)",
        "DATE",
        "VARCHAR",
    ]
    connection.execute("create or replace table t as select d + 1 as d from t")
    assert rows(connection, "select d::integer from t") == [(2,)]


def test_names_are_without_regard_to_case(connection):
    connection.execute("create table Mixed as select 1 as a")
    assert rows(connection, "select A from MIXED") == [(1,)]
    assert connection.catalog.names() == ["Mixed"]


def test_a_name_that_is_taken_is_an_error_unless_told_otherwise(connection):
    connection.execute("create table t as select 1 a; create view v as select 2 a")
    for text in ("create table t (a int)", "create view v as select 3 a", "create table v (a int)"):
        with pytest.raises(CatalogError, match="already"):
            connection.execute(text)
    connection.execute("create table if not exists t as select 5 a")
    assert rows(connection, "from t") == [(1,)]
    with pytest.raises(CatalogError, match="is a table, which a view does not replace"):
        connection.execute("create or replace view t as select 1")
    with pytest.raises(CatalogError, match="DROP VIEW"):
        connection.execute("drop table v")


def test_a_view_reads_what_its_tables_hold_now(connection):
    connection.execute("create table t as select 1 a; create view v as select a + 1 as b from t")
    assert rows(connection, "from v") == [(2,)]
    connection.execute("insert into t values (10)")
    assert rows(connection, "from v order by b") == [(2,), (11,)]
    assert connection.table("v").columns == ["b"]


def test_nothing_is_inserted_into_views_and_files(connection, file):
    connection.read_parquet(file, "f")
    connection.execute("create view v as select 1 a")
    for name in ("f", "v"):
        with pytest.raises((CatalogError, FuselineError)):
            connection.execute(f"insert into {name} select 1")


def test_a_failed_insert_changes_nothing(connection):
    connection.execute("create table t as select 1::tinyint a")
    with pytest.raises((ConversionError, OutOfRange)):
        connection.execute("insert into t values (2), (300)")
    assert rows(connection, "from t") == [(1,)]


def test_describe_and_show_answer_as_duckdb_does(connection):
    connection.execute("create table t (a integer, b decimal(5,1))")
    cursor = connection.execute("describe t")
    assert [d[0] for d in cursor.description] == [
        "column_name",
        "column_type",
        "null",
        "key",
        "default",
        "extra",
    ]
    assert cursor.fetchall() == [
        ("a", "INTEGER", "YES", None, None, None),
        ("b", "DECIMAL(5,1)", "YES", None, None, None),
    ]
    connection.execute("create view v as select 1")
    assert rows(connection, "show tables") == [("t",), ("v",)]


def test_explain_gives_the_plan_as_a_row(connection):
    ((key, text),) = rows(connection, "explain select 1 as a")
    assert key == "physical_plan"
    assert text
    ((key, text),) = rows(connection, "explain analyze select 1 as a")
    assert key == "analyzed_plan"
    assert "rows" in text


def test_a_text_of_several_statements_answers_with_the_last(connection):
    text = "create table t (a int); insert into t values (1), (2); select sum(a)::int as s from t;"
    assert rows(connection, text) == [(3,)]


def test_an_error_in_the_middle_keeps_what_came_before(connection):
    with pytest.raises(UnknownName):
        connection.execute("create table t as select 1 a; select nothing from t; drop table t")
    assert rows(connection, "from t") == [(1,)]


def test_a_text_without_a_statement_is_an_error(connection):
    with pytest.raises(FuselineError):
        connection.sql("  ")


def test_statements_that_do_nothing_are_accepted(connection):
    connection.execute("create table t (a int)")
    assert connection.execute("create index i on t (a)").description is None


@pytest.mark.parametrize(
    "made", ["table if not exists t (a int)", "view if not exists v as select 1", "macro if not exists m(x) as x", "type if not exists i as int", "secret if not exists s (type s3)"]
)  # fmt: skip
def test_what_is_there_is_either_replaced_or_left(connection, made):
    with pytest.raises(ParseError, match="exclude each other"):
        connection.execute(f"create or replace {made}")
