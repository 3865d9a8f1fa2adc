"""EXPLAIN of statements that write: the plan of their rows, and nothing is written."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.errors import Unsupported


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
    ("query", "message"),
    [
        ("explain analyze delete from t", "EXPLAIN ANALYZE would write"),
        ("explain create view v as select 1", "EXPLAIN takes a query"),
        ("explain drop table t", "EXPLAIN takes a query"),
    ],
)
def test_what_is_not_explained(query: str, message: str) -> None:
    with fuseline.connect(device="cpu") as connection:
        connection.execute("create table t (a int)")
        with pytest.raises(Unsupported, match=message):
            connection.sql(query)
