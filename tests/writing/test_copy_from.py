"""COPY FROM: the rows of files in a table are those that DuckDB has there; a failure leaves the table as it was."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import fuseline
from tests.compare import assert_same, connected

TABLE = "i integer, s varchar"
# Content, statement and the table's columns
CASES = [
    ("i,s\n1,a\n2,b\n", "copy t from 'f.csv'", TABLE),
    ("x,y\n1,a\n2,b\n", "copy t from 'f.csv'", TABLE),
    ("1,a\n2,b\n", "copy t from 'f.csv'", TABLE),
    ("p,q\nr,s\n", "copy t from 'f.csv'", "a varchar, b varchar"),
    ("p,q\nr,s\n", "copy t from 'f.csv' (header false)", "a varchar, b varchar"),
    ("i,s\n", "copy t from 'f.csv'", TABLE),
    ("5\n6\n", "copy t(i) from 'f.csv'", TABLE),
    ("a,5\nb,6\n", "copy t(s, I) from 'f.csv'", TABLE),
    ("a\nb\n", "copy t(s) from 'f.csv' (header 0)", "i int default 7, s varchar"),
    ("5;a\n6;b\n", "copy t from 'f.csv' (format csv, sep ';', header 0)", TABLE),
    ("5,NA\n6,b\n", "copy t from 'f.csv' with (null 'NA')", TABLE),
    ('5,""\n6,\n', "copy main.t from 'f.csv'", TABLE),
    ("5,a\nx,b\n", "copy t from 'f.csv' (ignore_errors)", TABLE),
    ("zz\n5,a\n7,b\n", "copy t from 'f.csv' (skip 1)", TABLE),
    ("5,a\n7,b\n", "copy t from 'f.csv' (auto_detect false)", TABLE),
    ("05/06/2020,1.235\n", "copy t from 'f.csv' (dateformat '%d/%m/%Y')", "d date, x decimal(9, 2)"),
    ("True,10:00:00\n", "copy t from 'f.csv'", "b boolean, m time"),
    ("", "copy t from 'p.parquet'", "i integer, s varchar"),
    ("", "copy t from 'p.parquet'", "i smallint, x double"),
    ("", "copy t (x, i) from 'p.parquet'", "i varchar, x tinyint, d date default '2020-01-01'"),
]  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    duckdb.connect().sql(
        "copy (select 7 as a, '12' as b union all select null, null) to 'p.parquet'"
    )
    return tmp_path


@pytest.mark.parametrize(("content", "statement", "columns"), CASES)
def test_the_table_has_the_rows_that_duckdb_has(content, statement, columns, folder):
    (folder / "f.csv").write_text(content)
    with connected({}) as connection, duckdb.connect() as reference:
        for each in (connection, reference):
            each.sql(f"create table t({columns})")
        assert connection.sql(statement).fetchall() == reference.execute(statement).fetchall()
        assert_same(reference.sql("from t").to_arrow_table(), connection.sql("from t").to_arrow())


@pytest.mark.parametrize(
    ("content", "statement", "message"),
    [
        ("2,a\nx,b\n", "copy t from 'f.csv'", r'"x" is no INTEGER: file "f.csv", line 2, column "i"'),
        ("2,a\n2,b\n", "copy t from 'f.csv'", "primary key"),
        ("2,a\n1,b\n", "copy t from 'f.csv'", "primary key"),
        ("2,a\n3,\n", "copy t from 'f.csv'", "NOT NULL"),
        ("2,a\n-3,b\n", "copy t from 'f.csv'", "CHECK"),
        ("2\n3\n", "copy t from 'f.csv'", "for 2 columns"),
        ("", "copy t from 'no.csv'", "no.csv"),
        ("", "copy t (i) from 'p.parquet'", "takes 1 columns here, and the file has 2"),
        ("", "copy t from 'no.arrow'", "no.arrow"),
        ("", "copy t from 'f.csv' (format 'xlsx')", "xlsx is not supported|'xlsx' is not supported"),
        ("2,a\n", "copy t from 'f.csv' (types {'i': 'INTEGER'})", 'has no option "types"'),
        ("2,a\n", "copy t from 'f.csv' (buffer_size 100)", "buffer_size of COPY FROM .* is not supported"),
        ("2,a\n", "copy t (i, z) from 'f.csv'", 'has no column "z"'),
        ("2,a\n", "copy t (i, i) from 'f.csv'", "names a column twice"),
        ("2,a\n", "copy u from 'f.csv'", 'no table "u"'),
        ("2,a\n", "copy v from 'f.csv'", "is a view"),
        ("2,a\n", "copy (from t) from 'f.csv'", "fills a table"),
        ("2,a\n", "copy t from f", "takes a path in quotes"),
    ],
)  # fmt: skip
def test_what_is_wrong_leaves_the_table(content, statement, message, folder):
    (folder / "f.csv").write_text(content)
    with connected({}) as connection:
        connection.sql("create table t(i int primary key check (i > 0), s varchar not null)")
        connection.sql("insert into t values (1, 'one')")
        connection.sql("create view v as from t")
        with pytest.raises(fuseline.FuselineError, match=message):
            connection.sql(statement)
        assert connection.sql("from t").fetchall() == [(1, "one")]
