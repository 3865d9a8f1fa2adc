"""rowid, the number of a row in its table, which * does not show."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb

from .both_engines import assert_same_steps

SETUP = [
    "create table t (a int, b varchar)",
    "insert into t values (1, 'x'), (1, null), (2, 'y'), (null, 'x'), (3, 'z'), (1, 'x')",
    "create table u (a int, c double)",
    "insert into u values (1, 0.5), (3, 'nan'), (null, null)",
    "create table e (a int)",
    "create view v as select rowid as r, * from t",
]
QUERIES = """
select rowid, * from t order by rowid desc
select RowID from t order by 1
select a from t where rowid between 1 and 3 order by rowid
select min(rowid), max(rowid), count(*), sum(rowid) from t where b = 'x'
select t.rowid, u.rowid, c from t join u using (a) order by all
select t.rowid, u.rowid from u full join t on u.a = t.a order by all
select z.rowid, z.q from t as z(q) order by all
select * from t where rowid in (select min(rowid) from t group by a, b) order by a, b
select a, (select count(*) from t z where z.rowid < t.rowid and z.a = t.a) as before from t order by rowid
select a, row_number() over (partition by a order by rowid desc) as n from t order by rowid
select typeof(rowid), rowid + 0.5 from t order by 2 limit 1
select r, a from v order by r
select rowid from e
select count(*) from t natural join (select rowid, a from u)
select * from t qualify rowid = max(rowid) over (partition by a) order by rowid
"""


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES.strip().splitlines())
def test_rows_have_numbers(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, setup=SETUP, backend=backend, fuse=("always", "never"))


STEPS = [
    *SETUP, "delete from t where rowid not in (select max(rowid) from t group by a, b)", "select * from t order by all",
    "update u set c = rowid where rowid > 0", "from u order by all", "update u set c = x.r from (select rowid as r, a from u) x where x.r = u.rowid",
    "from u order by all", "update t set rowid = 1", "insert into t (rowid) values (1)", "merge into u using (select rowid as r, a from u) s on u.rowid = s.r when matched then update set c = s.a",
    "from u order by all", "delete from t using t z where z.b = t.b and z.rowid > t.rowid", "from t order by all", "create table w (rowid varchar, a int)",
    "insert into w values ('own', 7)", "select rowid, a from w", "delete from w where rowid = 'own'", "from w",
]  # fmt: skip


def test_changes_find_rows_by_their_numbers() -> None:
    assert_same_steps(STEPS, device="cpu")


@pytest.mark.parametrize(
    "query",
    [
        "select rowid from t join u using (a)",
        "select rowid from (from t)",
        "with z as (from t) select rowid from z",
        "select rowid from range(3)",
        "select rowid from duckdb_tables()",
        "select columns('rowid') from t",
        "create view y as select a from t; select rowid from y",
    ],
)
def test_only_rows_of_tables_have_numbers(query: str) -> None:
    assert_same_steps([*SETUP, *query.split("; ")], device="cpu")
