"""ALTER TABLE of the fields of structs, also within lists and maps, against DuckDB."""

from __future__ import annotations

import duckdb
import pytest

from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb, connected

TABLE = (
    "create table s (id int, a struct(i int, j struct(k int, l varchar)) default {'i': 5, 'j': null}, b struct(x int, y int)[],"
    ' m map(varchar, struct(y int, z int)), n int, "c d" struct("e\'f" int, g int))',
    "insert into s values (1, {'i': 1, 'j': {'k': 2, 'l': 'x'}}, [{'x': 1, 'y': 2}, null], map {'a': {'y': 1, 'z': 2}, 'b': null}, 1, {'e''f': 1, 'g': 2}),"
    " (2, null, null, null, null, null), (3, {'i': null, 'j': null}, [], map {}, 3, {'e''f': null, 'g': null})",
)
CHANGES = [
    ("add column a.n int",),
    ("add a.n int default 3 + 4", "add column a.j.d varchar default 'x'", "add a.o int[] default [1]"),
    ("add column if not exists A.I int", "add column if not exists a.p int default 1"),
    ("add column b.element.z int default 9", "drop b.element.x", "rename b.element.y to w"),
    ("add column m.value.q int default 9", "drop column m.value.y", "rename m.value.z to zz"),
    ("drop column a.j.k", "drop column if exists a.nosuch", "drop if exists nosuch.a", "drop a.i cascade"),
    ("rename column a.j.k to kk", "rename A.I to \"I i\"", "add column a.i int"),
    ('rename "c d"."e\'f" to "h i"', 'add column "c d"."j k" int default 1', 'drop "c d".g'),
]  # fmt: skip
REFUSED = [
    "add column a.i int",
    "add column a.nosuch.i int",
    "add column a.j.k.n int",
    "add column b.z int",
    "add column n.z int",
    "add column nosuch.z int",
    "add column a.q int not null",
    "add column a.q int check (a.q > 1)",
    "add column a.q int default random()",
    "add column a.q int default 'x'",
    "add column a.q",
    "drop column a.nosuch",
    "drop column n.z",
    "rename a.nosuch to b",
    "rename a.i to j",
    "rename a.i to b.c",
    "rename a.i to i",
    "drop column a.i behind",
]


@pytest.mark.parametrize("changes", CHANGES)
def test_fields_are_changed(changes: tuple[str, ...], backend: str) -> None:
    setup = (*TABLE, *(f"alter table s {change}" for change in changes))
    more = (*setup, "insert into s (id, n) values (4, 4)")
    assert_same_as_duckdb("select * from s order by id", setup=more, backend=backend)
    types = "select column_name, column_type from (describe s)"
    assert_same_as_duckdb(types, setup=setup, backend=backend)


@pytest.mark.parametrize("change", REFUSED)
def test_what_duckdb_refuses_is_refused(change: str) -> None:
    rival = duckdb.connect()
    with connected({}) as connection:
        for statement in TABLE:
            rival.execute(statement)
            connection.execute(statement)
        with pytest.raises(duckdb.Error):
            rival.execute(f"alter table s {change}")
        with pytest.raises(FuselineError) as refused:
            connection.execute(f"alter table s {change}")
        assert refused.value.span is not None
        assert connection.sql("select a.j.l from s where id = 1").fetchall() == [("x",)]


def test_rules_of_a_table_keep_its_fields() -> None:
    with connected({}) as connection:
        connection.execute("create table t (a struct(i int, j int), check (a.i > 0))")
        for change in ("drop a.i", "add a.k int", "rename a.i to z"):
            with pytest.raises(FuselineError, match="part of a CHECK"):
                connection.execute(f"alter table t {change}")
        connection.execute("alter table if exists nosuch add column a.b int")
        connection.execute("create table u (a struct(i int, j int) not null)")
        connection.execute("alter table u drop column a.i")
        with pytest.raises(FuselineError, match="NOT NULL"):
            connection.execute("insert into u values (null)")
