"""EXPLAIN of statements that write: the plan of their rows, and nothing is written; ANALYZE carries them out."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.catalog import Catalog
from fuseline.connection import Connection
from fuseline.errors import AccessDenied, ConstraintError, UnknownName, Unsupported
from fuseline.server.server_runner import Permissions, ServerRunner
from fuseline.settings import Settings
from tests.marks import assert_marks


@pytest.mark.parametrize(
    ("statement", "parts"),
    [
        ("insert into t select a + 1, b from t where b > 1", ["FilterRows", "MemoryScan  t"]),
        ("insert into t values (1, 2)", ["ValuesScan"]),
        ("update t set a = 2 where b = 2", ["b = 2", "MemoryScan  t  b, row number", "~3 rows"]),
        ("delete from t where a = 1", ["a = 1", "MemoryScan  t  a, row number"]),
        (
            "merge into t using (values (1)) s(k) on t.a = s.k when matched then delete",
            ["HashJoin inner  a = col0"],
        ),
        ("create table made as select sum(b) from t", ["sum(b)"]),
        ("copy t to '{path}'", ["MemoryScan  t  a, b"]),
    ],
)
def test_a_write_shows_its_plan(statement: str, parts: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with fuseline.connect(device="cpu") as connection:
        connection.execute("create table t as from (values (1, 1), (2, 2), (3, 3)) v(a, b)")
        ((key, text),) = connection.sql(f"explain {statement.format(path=path)}").fetchall()
        assert key == "physical_plan"
        for part in parts:
            assert part in text
        assert connection.sql("select count(*), sum(a) from t").fetchall() == [(3, 6)]
        assert connection.sql("show tables").fetchall() == [("t",)]
        assert not path.exists()


@pytest.mark.parametrize(
    ("statement", "told", "parts", "query"),
    [
        ("insert into t select a + 1, b from t where b > 1", "Insert: 2 rows", ["FilterRows", "MemoryScan  t"], "select count(*), sum(a) from t"),
        ("insert into t values (9, nextval('s'))", "Insert: 1 rows", ["ValuesScan"], "select a, b from t order by a, b"),
        ("insert into k values (1, 5), (2, 6) on conflict do update set b = excluded.b", "Insert: 2 rows", ["ValuesScan", "HashJoin"], "from k order by a"),
        ("update t set a = 2 where b = 2 returning a", "Update: 1 rows", ["b = 2", "row number"], "from t order by all"),
        ("delete from t where a = 1", "Delete: 1 rows", ["a = 1"], "from t order by all"),
        ("merge into t using (values (1)) s(k) on t.a = s.k when matched then delete", "Merge: 1 rows", ["HashJoin inner"], "from t order by all"),
        ("create table made as select sum(b) as s from t", "CreateTable: 1 rows", ["sum(b)"], "from made"),
        ("copy t to '{path}'", "CopyTo: 3 rows", ["MemoryScan  t"], "from '{path}' order by all"),
    ],
)  # fmt: skip
def test_analyze_carries_out_what_writes(
    statement: str, told: str, parts: list[str], query: str, tmp_path: Path
) -> None:
    made = [
        "create table t as from (values (1, 1), (2, 2), (3, 3)) v(a, b)",
        "create sequence s start 5",
        "create table k (a int primary key, b int)",
        "insert into k values (1, 1)",
    ]
    path = tmp_path / "t.csv"
    with fuseline.connect(device="cpu") as connection, duckdb.connect() as reference:
        for engine in (connection, reference):
            for text in made:
                engine.execute(text)
        explained = connection.sql(f"explain analyze {statement.format(path=path)}")
        ((key, text),) = explained.fetchall()
        assert key == "analyzed_plan"
        assert text.startswith(told)
        assert text.count("device  node") == text.count("plan: ")
        for part in parts:
            assert part in text
        reference.execute(statement.format(path=path))
        asked = query.format(path=path)
        assert connection.sql(asked).fetchall() == reference.sql(asked).fetchall()


def test_an_analyzed_write_that_fails_writes_nothing() -> None:
    with fuseline.connect(device="cpu") as connection:
        connection.execute("create table k (a int primary key)")
        connection.execute("insert into k values (1)")
        with pytest.raises(ConstraintError):
            connection.sql("explain analyze insert into k values (2), (1)")
        assert connection.sql("from k").fetchall() == [(1,)]
        with pytest.raises(UnknownName) as caught:
            connection.sql("explain analyze update k set b = 1")
        assert_marks(caught.value, "explain analyze update k set ^b^ = 1")


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("explain analyze drop table t", "EXPLAIN takes a query"),
        ("explain create view v as select 1", "EXPLAIN takes a query"),
        ("explain drop table t", "EXPLAIN takes a query"),
    ],
)
def test_what_is_not_explained(query: str, message: str) -> None:
    with fuseline.connect(device="cpu") as connection:
        connection.execute("create table t (a int)")
        with pytest.raises(Unsupported, match=message):
            connection.sql(query)


@pytest.mark.parametrize("before", ["", "select 1; "])
def test_who_may_not_write_may_not_analyze_a_write(before: str) -> None:
    def runner(catalog: Catalog, settings: Settings) -> ServerRunner:
        return ServerRunner(catalog, settings, Permissions(read_only=True))

    with Connection(Settings(device="cpu"), runner) as connection:
        connection.register("t", pa.table({"a": [1]}))
        connection.sql(f"{before}explain insert into t values (2)")
        with pytest.raises(AccessDenied, match="only reads"):
            connection.sql(f"{before}explain analyze insert into t values (2)")
        assert connection.sql("from t").fetchall() == [(1,)]
