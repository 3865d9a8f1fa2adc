"""CREATE INDEX and DROP INDEX: a unique one is kept by all that writes rows, and all of them are listed."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import CatalogError, ConstraintError, FuselineError, UnknownName
from tests.compare import assert_same_as_duckdb

SETUP = [
    "create table u (k integer, v varchar)",
    "insert into u values (1, 'one'), (2, 'two'), (5, 'five'), (null, 'none')",
    "create unique index i on u (k)",
]
LISTED = "select database_name, schema_name, index_name, table_name, comment, is_unique, is_primary, expressions, sql from duckdb_indexes()"
CONSTRAINTS = (
    "select table_name, constraint_type, constraint_text, expression, constraint_column_indexes, constraint_column_names, constraint_name, "
    "referenced_table, referenced_column_names from duckdb_constraints() order by constraint_name"
)


@pytest.mark.by_day(2)
@pytest.mark.parametrize(
    ("statements", "query"),
    [
        (["insert into u values (1, 'x') on conflict (k) do nothing"], "from u order by all"),
        (["insert into u values (1, 'x'), (7, 'y') on conflict (k) do update set v = excluded.v || u.v"], "from u order by all"),
        (["insert or replace into u values (1, 'x')", "insert or ignore into u values (2, 'z'), (3, 'w')"], "from u order by all"),
        (["insert into u values (null, 'x')", "update u set k = k + 10 where k > 1"], "from u order by all"),
        (["drop index i", "insert into u values (1, 'x')"], "from u order by all"),
        (["alter table u add column z integer", "insert into u values (1, 'x', 3) on conflict do nothing"], "from u order by all"),
        (["create index e on u (lower(v), k desc)", "create index if not exists e on u (v)"], LISTED + " order by index_name"),
        (["create schema s", "create table s.x (a int)", "create index i on s.x using art (a)", "drop index s.i"], LISTED),
        (["begin", "drop index i", "rollback"], LISTED),
        (["create index j on u (v)", "drop index j", "create unique index j on u (v, k)"], LISTED + " order by index_name"),
        (["drop table u"], LISTED),
        (["drop index if exists nope", "drop index i cascade"], LISTED),
        (["create table p (x integer primary key, y integer unique, z integer not null check (z > 0 or y <> 7), unique (y, z))"], CONSTRAINTS),
        ([], "describe u"),
    ],
)  # fmt: skip
def test_indexes_answer_as_in_duckdb(statements, query):
    assert_same_as_duckdb(query, setup=[*SETUP, *statements], fuse=("always", "never"))


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("insert into u values (1, 'x')", ConstraintError, "k: 1"),
        ("update u set k = 5 where k = 1", ConstraintError, "k: 5"),
        (
            "merge into u using (select 2 as k) s on false when not matched then insert (k) values (s.k)",
            ConstraintError,
            "k: 2",
        ),
        ("create unique index w on dup (a)", ConstraintError, "a: 1"),
        ("create index i on dup (a)", CatalogError, '"i" already'),
        ("drop index nope", UnknownName, 'no index "nope"'),
        ("create index w on u (nope)", UnknownName, "no column"),
        ("create index w on nope (k)", UnknownName, "no table"),
        ("create index w on view_of (k)", CatalogError, "view"),
        ("create unique index w on u ((k + 1))", FuselineError, "over columns"),
        ("create index w on u (k, k)", FuselineError, "once"),
        ("create index w on u using hash (k)", FuselineError, "HASH"),
        ("create index w on u (k) where k > 1", FuselineError, "where"),
        ("create index on u (k)", FuselineError, "name"),
        ("alter table u drop column k", CatalogError, "drop the index first"),
        ("alter table u alter k type bigint", CatalogError, "drop the index first"),
    ],
)
def test_what_breaks_an_index_is_refused(text, error, message):
    with fuseline.connect("cpu") as connection:
        for statement in (
            *SETUP,
            "create table dup as select 1 as a from range(2)",
            "create view view_of as from u",
        ):
            connection.execute(statement)
        before = connection.sql("from u order by all").fetchall()
        with pytest.raises(error, match=f"(?i){message}"):
            connection.execute(text)
        assert connection.sql("from u order by all").fetchall() == before
        assert connection.sql("select count(*) from duckdb_indexes()").fetchall() == [(1,)]


def test_a_renamed_column_keeps_its_index():
    with fuseline.connect("cpu") as connection:
        for statement in (*SETUP, "alter table u rename k to kk", "alter table u add unique (v)"):
            connection.execute(statement)
        assert connection.sql("select sql from duckdb_indexes()").fetchall() == [
            ("CREATE UNIQUE INDEX i ON u(kk);",)
        ]
        with pytest.raises(ConstraintError, match="kk: 1"):
            connection.execute("insert into u values (1, 'x')")
