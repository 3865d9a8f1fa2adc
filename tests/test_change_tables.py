"""Statements that change tables, one after the other here and in DuckDB: after each the answer, or that there is an error, and the rows are the same."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import (
    CatalogError,
    ConstraintError,
    FuselineError,
    TransactionError,
    UnknownName,
)

KEYED = "create table t (a int primary key, b varchar default 'z', c int check (c > 0))"
PLAIN = "create table t (a int, b int); insert into t values (1, 2), (2, 3), (3, 4), (null, 5)"
ASIDE = "create table u (k int, v int); insert into u values (1, 10), (2, 20), (2, 20), (9, 90)"
SCRIPTS = {
    "delete": [PLAIN, "delete from t where a > 1", "delete from t where b = 100", "delete from t"],
    "delete using": [
        PLAIN, ASIDE, "delete from t using u where a = k and v > 10", "delete from t as x using t as y where x.a = y.a",
        "delete from t using u, (select 5 as five) f where b = five",
    ],
    "delete by subqueries": [
        PLAIN, ASIDE, "delete from t where a in (select k from u)", "delete from t where b = (select max(b) from t)",
        "with q as (select 4 as m) delete from t where b < (select m from q)",
    ],
    "delete returning": [PLAIN, "delete from t where a = 1 returning b, a + 1 as n", "delete from t returning *"],
    "truncate": [PLAIN, "truncate t", "insert into t values (1, 1)", "truncate table t"],
    "inserts of one shape": [
        "create table t (a tinyint, b varchar default 'z', c decimal(6, 2))",
        *(f"insert into t values ({n}, 'x{n}', {n}.5)" for n in (1, 2, 3)), "insert into t values (200, 'x', 1.5)",
        "insert into t values (4, '', 0.555)", "insert into t values (4, 'it''s', 10000.0)", "insert into t (b) values ('p')",
        "insert into t (b) values ('q')", "alter table t alter column b set default 'y'", "insert into t (a) values (5)",
        "alter table t add column d int default 7", "insert into t (b) values ('r')", "insert into t values (1, 'x1', 1.5)",
        "drop table t", "insert into t (b) values ('s')", "create table t (b int, a varchar)", "insert into t (b) values (1)",
        "insert into t (b) values (2)", "insert into t values (3, 'x'), (4, 'y')", "insert into t values (5, 'v'), (6, 'v')",
    ],
    "inserts of one shape with rules": [
        KEYED, *(f"insert into t values ({n}, 'a{n}', {5 - n})" for n in (1, 2, 2, 3, 5, 4)),
        *(f"insert or ignore into t values ({n}, 'i', 1)" for n in (4, 6)),
        *(f"insert into t values ({n}, 'k', 1) on conflict do update set b = 'k{n}', c = 9 + {n}" for n in (4, 7, 6)),
        *(f"insert into t values ({n}, 'r', 2) returning a + {n}, b || '{n}'" for n in (10, 11, 11, 12)),
    ],
    "inserts of queries of one shape": [
        PLAIN, ASIDE, *(f"insert into t select k, v + {n} from u where v > {n}" for n in (5, 15)), "insert into u values (5, 50)",
        *(f"insert into t select k, v + {n} from u where v > {n}" for n in (5, 25)), "update u set v = 7",
        *(f"insert into t select a, b + {n} from t where b < {n}" for n in (4, 6, 6)),
        *(f"with q as (select {n} as m) insert into t select m, {n} from q" for n in (4, 6)),
    ],
    "inserts of one shape in a transaction": [
        PLAIN, "insert into t values (8, 8)", "begin", "insert into t values (9, 9)", "insert into t values (10, 10)",
        "insert into t values (99999999999, 1)", "insert into t values (11, 11)", "rollback", "insert into t values (12, 12)",
        "begin", "insert into t values (13, 13)", "rollback", "insert into t values (14, 14)",
    ],
    "inserts of a sequence of one shape": [
        "create sequence s; create table t (a int default nextval('s'), b int)",
        *(f"insert into t (b) values ({n})" for n in (4, 5, 6)), *(f"insert into t values (nextval('s') + {n}, {n})" for n in (7, 8)),
    ],
    "update": [
        PLAIN, "update t set b = b + 1", "update t set a = b, b = a where a > 1", "update t set a = 9 where b > 100",
        "update t set b = 2.5", "update t set a = (select max(b) from t)", "update t set (a, b) = (7, 8) where a = 3",
        "update t as x set a = 3 where x.b = 8 returning x.a, b", "update t set b = null where a is null returning *",
    ],
    "update from": [
        PLAIN, ASIDE, "update t set b = v from u where a = k", "update t set b = n from (select count(*) as n from u) s",
        "update t set a = x.v from u as x join u as y on x.k = y.k where t.a = x.k and y.v < 20",
        "with q as (select 1 as one) update t set b = one from q where a = 20",
    ],
    "update defaults": [
        "create table t (a int default 1 + 2, b varchar)", "insert into t default values", "insert into t(b) values ('x')",
        "insert into t values (default, default), (4, 'y')", "update t set a = default, b = default where b = 'y'",
    ],
    "keys": [
        KEYED, "insert into t values (1, 'x', 1), (2, 'y', 2)", "insert into t values (3, 'x', 1), (3, 'y', 2)",
        "insert into t values (4, 'x', 4), (1, 'x', 1)", "update t set a = 1", "update t set a = a + 1",
        "insert into t values (null, 'x', 1)", "update t set a = null where a = 2", "insert into t(a) select 10 + i from range(5) r(i)",
        "delete from t where a = 2", "insert into t values (2, 'again', 5)",
    ],
    "unique": [
        "create table t (a int unique, b int, unique (b, a))", "insert into t values (null, 1), (null, 1)", "insert into t values (1, 1)",
        "insert into t values (1, 2)", "insert into t values (2, 2), (3, 2)", "update t set a = 2 where a = 3",
    ],
    "not null": [
        "create table t (a int not null, b int)", "insert into t values (1, null)", "insert into t (b) values (1)", "update t set a = b",
        "insert into t select null, 2",
    ],
    "checks": [
        "create table t (a int check (a > 1 and a < 100), b int, check (a < b), constraint low check (b < 50))",
        "insert into t values (2, 3)", "insert into t values (1, 3)", "insert into t values (5, 4)", "insert into t values (null, 4)",
        "update t set b = 60", "update t set b = b + 1", "insert into t values (7, null)",
    ],
    "names of rules": [
        "create table t (a int constraint key primary key, b int null constraint low check (b < 9) constraint one unique, c int constraint four default 4 null, constraint odd check (c <> 3))",
        "insert into t(a, b) values (1, 2)", "insert into t(a, b) values (1, 3)", "insert into t(a, b) values (2, 2)", "insert into t(a, b) values (3, 9)",
        "insert into t values (3, null, null)", "insert into t values (4, 4, 3)", "insert into t(c) values (1)",
    ],
    "ignore": [
        KEYED, "insert into t values (1, 'x', 1)", "insert or ignore into t values (1, 'n', 1), (2, 'm', 1), (2, 'mm', 1)",
        "insert into t values (1, 'n', 1), (3, 'o', 1) on conflict do nothing returning *", "insert into t values (1, 'n', 1) on conflict (a) do nothing",
    ],
    "replace": [
        KEYED, "insert into t values (1, 'x', 1), (2, 'y', 1)", "insert or replace into t values (1, 'n', 7), (5, 'q', 1)",
        "insert or replace into t (a, b) values (2, 'only b') returning b, c", "insert or replace into t (a) values (2)", "insert or replace into t (a) values (2), (77) returning *",
    ],
    "upsert": [
        KEYED, "insert into t values (1, 'x', 1)", "insert into t values (1, 'y', 1) on conflict do update set b = b || excluded.b",
        "insert into t values (1, 'y', 1), (4, 'w', 2) on conflict (a) do update set b = t.b || excluded.b, c = default returning a, b",
        "insert into t values (1, 'y', 9) on conflict (a) do update set c = excluded.c where excluded.c > 5 returning *",
        "insert into t values (1, 'y', 2) on conflict (a) do update set c = excluded.c where excluded.c > 5",
        "insert into t as k values (1, 'y', 1) on conflict do update set b = k.b || '!'",
        "insert into t values (1, 'y', 1) on conflict (b) do nothing", "insert into t values (1, 'y', 1) on conflict do update set c = -1",
    ],
    "two keys": [
        "create table t (a int unique, b int unique)", "insert into t values (1, 2), (3, 4)",
        "insert into t values (1, 9), (8, 4), (5, 6) on conflict do nothing", "insert into t values (1, 7) on conflict (a) do update set b = 70",
        "insert into t values (1, 7) on conflict do update set b = 70", "insert into t values (1, 4) on conflict (a) do update set b = excluded.b",
    ],
    "by name": [
        "create table t (a int default 5, b int)", "insert into t by name select 1 as b", "insert into t by name select 3 as a, 4 as b returning a",
    ],
    "within a transaction": [
        KEYED, "insert into t values (1, 'x', 1)", "begin", "update t set a = 2", "insert into t values (1, 'y', 1)", "delete from t where a = 2",
        "rollback", "insert into t values (1, 'z', 1)", "begin", "insert into t values (2, 'z', 1)", "insert into t values (2, 'zz', 1)", "commit",
        "insert into t values (2, 'w', 1)",
    ],
    "alter columns": [
        PLAIN, "alter table t add column c int default 7", "alter table t add d varchar", "alter table t drop column b", "alter table t rename c to cc",
        "alter table t alter a type varchar using a || 'x'", "alter table t alter cc set default 9", "insert into t (a) values ('k')",
        "alter table t alter column a set not null", "delete from t where a is null", "alter table t alter a set not null", "insert into t (cc) values (1)",
        "alter table t alter a drop not null", "alter table t alter cc drop default", "insert into t (d) values ('q')",
        "alter table t add column if not exists a int", "alter table t drop column if exists nope", "alter table t drop column nope",
        "alter table t add column e int not null default 3", "alter table t rename column e to a", "alter table t alter a type int",
        "alter table t alter cc set data type bigint", "alter table if exists nope add column x int", "alter table nope add column x int",
        "alter table t drop if exists d", "alter table t add a int",
    ],
    "alter keys": [
        PLAIN, "alter table t add primary key (a)", "delete from t where a is null", "alter table t add primary key (a)", "insert into t values (1, 1)",
        "alter table t rename a to k", "insert into t values (1, 1)", "alter table t drop column k", "insert into t values (8, 1)",
        "insert into t values (8, 3) on conflict (k) do update set b = excluded.b",
    ],
    "alter checks": [
        "create table t (a int check (a > 1 or -a > 5), b int)", "alter table t rename a to x", "insert into t values (0, 1)", "insert into t values (2, 1)",
    ],
    "alter names": [PLAIN, "alter table t rename to s", "alter table s rename to t", "create view v as from t", "alter view v rename to w", "from w"],
    "create": [
        KEYED, KEYED, "create table if not exists t (z int)", "create or replace table t (z int not null)", "insert into t values (null)",
        "create table q (a int default b)", "create table q (a int check (z > 1))", "create table q (a int primary key, b int primary key)",
        "create table q (a int default (select 1))", "create table q (a int, primary key (nope))",
    ],
}  # fmt: skip
NAMES = ("t", "u", "w")


def _outcome(connection: Any, text: str) -> Any:
    try:
        return _rows(connection, text)
    except (FuselineError, duckdb.Error):
        return "an error"


def _rows(connection: Any, text: str) -> list[tuple[object, ...]]:
    cursor = connection.execute(text)
    return sorted(cursor.fetchall(), key=repr) if cursor.description else []


def _state(connection: Any) -> dict[str, Any]:
    state = {}
    for name in NAMES:
        for text in (f"from {name}", f"describe {name}"):
            state[text] = _outcome(connection, text)
    return state


def _failed(connection: Any) -> bool:
    """Whether a transaction is open that an error has ended."""
    return _outcome(connection, "select 1") == "an error"


def _same_steps(steps: list[str], device: str) -> None:
    with fuseline.connect(device) as ours, duckdb.connect() as theirs:
        for step in steps:
            # Ours says that a transaction which failed is rolled back, DuckDB rolls it back
            text = "rollback" if step == "commit" and _failed(ours) else step
            mine, yours = _outcome(ours, text), _outcome(theirs, text)
            asks = "returning" in text or text.startswith("from")
            assert (mine == "an error") == (yours == "an error"), (text, mine, yours)
            assert not asks or mine == yours, text
            assert _failed(ours) == _failed(theirs), text
            if not _failed(ours):
                assert _state(ours) == _state(theirs), text


@pytest.mark.by_day
@pytest.mark.parametrize("steps", SCRIPTS.values(), ids=SCRIPTS.keys())
def test_statements_leave_duckdbs_rows(steps: list[str], backend: str) -> None:
    _same_steps([part for text in steps for part in text.split("; ")], backend)


def _drawn(draw: random.Random) -> str:
    value = lambda: draw.choice(["null", *map(str, range(6))])  # noqa: E731
    row = lambda: f"({value()}, {value()}, {value()})"  # noqa: E731
    condition = draw.choice(
        [
            "a > 2",
            "b = c",
            "c is null",
            "a in (select b from t)",
            "true",
            "b between 1 and 3",
            "a % 2 = 0",
        ]
    )
    rows = ", ".join(row() for _ in range(draw.randint(1, 4)))
    change = draw.choice(
        ["b = b + 1", "c = a, b = c", "a = a + 1", "b = null", "c = default, b = 2"]
    )
    return draw.choice([
        f"insert into t values {rows}", f"insert or ignore into t values {rows}", f"insert into t values {row()} on conflict (a) do update set {change}",
        f"insert or replace into t values {row()} returning *", f"update t set {change} where {condition} returning *",
        f"update t set b = x.k from (values (1, 5), (2, 6)) x(j, k) where a = j and {condition}", f"delete from t where {condition} returning a",
        f"delete from t using (values (1), (4)) x(j) where a = j and {condition}", "begin", "commit", "rollback",
    ])  # fmt: skip


def _drawn_steps(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    create = "create table t (a int primary key, b int check (b < 6 or c > 2), c int default 3)"
    return [create, *(_drawn(draw) for _ in range(count))]


@pytest.mark.parametrize("seed", range(2))
def test_drawn_statements_leave_duckdbs_rows(seed: int) -> None:
    _same_steps(_drawn_steps(seed, 25), "cpu")


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(2, 42))
def test_more_drawn_statements_leave_duckdbs_rows(seed: int) -> None:
    _same_steps(_drawn_steps(seed, 100), "cpu")


def test_what_breaks_a_rule_is_named(connection: Any) -> None:
    connection.execute(KEYED)
    connection.execute("insert into t values (1, 'x', 1)")
    for text, said in {
        "insert into t values (1, 'y', 1)": "primary key a: 1",
        "insert into t values (null, 'y', 1)": 'column "a" of "t" is NOT NULL',
        "insert into t values (2, 'y', -4)": r"CHECK \(c > 0\): c: -4",
    }.items():
        with pytest.raises(ConstraintError, match=said) as raised:
            connection.execute(text)
        assert isinstance(raised.value, connection.IntegrityError)


def test_rows_that_run_keep_their_version(connection: Any) -> None:
    connection.execute("create table t as select i as a from range(10) r(i)")
    before = connection.table("t")
    connection.execute("delete from t where a < 5")
    assert len(before.fetchall()) == 10
    assert len(connection.table("t").fetchall()) == 5


def test_registered_tables_change_and_files_do_not(connection: Any, tmp_path: Any) -> None:
    import pyarrow.parquet as pq

    rows = pa.table({"s": pa.array(["x", "y", None]).dictionary_encode(), "n": [1, 2, 3]})
    source = rows.set_column(0, "s", rows["s"].cast(pa.large_string()))
    connection.register("r", source)
    connection.execute("update r set s = s || '!' where n = 1; delete from r where n = 2")
    assert connection.execute("from r").fetchall() == [("x!", 1), (None, 3)]
    assert source["s"].to_pylist() == ["x", "y", None]
    pq.write_table(source, tmp_path / "f.parquet")
    connection.read_parquet(tmp_path / "f.parquet", "f")
    for text in ("delete from f", "update f set n = 1", "alter table f drop column n"):
        with pytest.raises(CatalogError, match="made of files"):
            connection.execute(text)


def test_changes_have_places_and_remedies(connection: Any) -> None:
    connection.execute(KEYED)
    for text, kind, said in (
        ("update t set d = 1", UnknownName, 'no column "d"'),
        ("delete from t where d = 1", UnknownName, 'no column "d"'),
        ("update t set a = 1, a = 2", FuselineError, "two values"),
        ("insert into t values (1, 'x', 1) on conflict (c) do nothing", FuselineError, "no PRIMARY KEY or UNIQUE"),
        ("create table q (a int references t (a))", FuselineError, "not supported"),
        ("alter table t drop column c", CatalogError, "CHECK"),
        ("alter table t alter c type bigint", CatalogError, "part of a CHECK of the table, so its type stays"),
        ("alter table t add column e int check (e > 1)", FuselineError, "create it anew"),
    ):  # fmt: skip
        with pytest.raises(kind, match=said) as raised:
            connection.execute(text)
        assert raised.value.span is not None, text
    connection.execute("begin read only")
    with pytest.raises(TransactionError, match="only reads"):
        connection.execute("delete from t")
    connection.execute("rollback")
