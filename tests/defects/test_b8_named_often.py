"""A WITH entry or view is bound and planned once, however often it is named, and answers as DuckDB does."""

from __future__ import annotations

import time
from typing import Any

import pytest

import fuseline
from fuseline.sql.binding import named_queries
from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits
from tests.planner.subquery_tables import TABLES
from tests.random_queries.deep import everyday_tables, numbers
from tests.work import planning_calls

MODES = ("never", "always")
QUERIES_A_TEST = 10
GENERATED = everyday_tables(6)
# Ways to read a query `q` more than once, and beside it `p`, each with a column c0
READINGS = (
    "select l.c0 as a, r.c0 as b from q l join q r on l.c0 = r.c0",
    "select c0 from q where c0 > 1 union all select c0 from q where c0 is null or c0 = 1",
    "select c0, (select count(*) from q) as n from q where c0 in (select max(c0) from q)",
    "select l.c0 from q l where exists (select 1 from q r where r.c0 < l.c0)",
    "select count(*) as n from q l, q r",
    "select l.c0, p.c0 as d from q l left join p on l.c0 = p.c0 where l.c0 in (select c0 from p where c0 > 0)",
    "select c0 from (select c0 from q except select c0 from p) union select c0 from (select c0 from p intersect select c0 from q)",
    "select l.c0, sum(r.c0) as s from q l full join p on l.c0 = p.c0 join q r on r.c0 is not distinct from l.c0 group by l.c0",
)


def joined(count: int, step: str = "select x.i from {0} x join {0} y on x.i = y.i") -> str:
    """Return a text in which each WITH entry reads the one before it twice."""
    entries = ["c0 as (select a as i from t where a in (1, 3))"]
    entries += [f"c{k} as ({step.format(f'c{k - 1}')})" for k in range(1, count + 1)]
    return f"with {', '.join(entries)} select * from c{count}"


STEPS = {
    "join": "select x.i from {0} x join {0} y on x.i = y.i",
    "union": "select i from {0} union select i + 1 from {0} where i < 9",
    "scalar subqueries": "select i + (select min(i) from {0}) - (select min(i) from {0}) as i from {0}",
    "semi join": "select i from {0} where i in (select i from {0} where i > 1)",
    "few rows": "select distinct x.i from (select i from {0} union all select a from t) x join {0} y using (i)",
    "aggregates": "select x.i, count(*) as n from {0} x, {0} y where x.i >= y.i group by x.i",
}


@pytest.mark.parametrize("step", STEPS)
def test_doublings(step: str) -> None:
    assert_same_as_duckdb(joined(9, STEPS[step]), TABLES, backend="cpu", ordered=False)


def test_doublings_with_kernels() -> None:
    assert_same_as_duckdb(joined(12), TABLES, backend="cpu", fuse=MODES, ordered=False)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("step", STEPS)
def test_more_doublings_are_no_more_work_than_their_text(step: str) -> None:
    with connected({"t": TABLES["t"]}, fuse="always", check=False) as connection:
        _, first, second, third = (  # the first with what is imported and worked out once
            planning_calls(connection, joined(n, STEPS[step])) for n in (11, 12, 24, 36)
        )
    assert third - second < 1.3 * (second - first)


def test_groups_by_texts_of_joins_are_no_more_work_than_their_text() -> None:
    """Each join might be looked up behind the groups: every one is tried once, however many ways lead to it."""
    rows = {"i": list(range(10)), "s": [f"n{i}" for i in range(10)]}
    step = "select x.i, x.s, y.v from {0} x join {0} y on x.i = y.i"

    def text(count: int) -> str:
        entries = ["c0 as (select i, s, s || 'x' as v from named)"]
        entries += [f"c{k} as ({step.format(f'c{k - 1}')})" for k in range(1, count + 1)]
        return f"with {', '.join(entries)} select s, v, count(*) as n from c{count} group by s, v"

    with connected({"named": rows}, fuse="never", check=False) as connection:
        planning_calls(connection, text(8))  # with what is imported and worked out once
        first, second, third = (planning_calls(connection, text(n)) for n in (12, 24, 36))
    assert third - second < 1.3 * (second - first)
    assert_same_as_duckdb(text(4), {"named": rows}, backend="cpu", fuse=MODES, ordered=False)


def test_more_namings_are_no_more_work_than_their_text() -> None:
    body = "select a, b, count(*) as n from t join u on a = k left join w on x = p group by a, b"
    with fuseline.connect(device="cpu", fuse="never", check=False) as connection:
        for name in ("t", "u", "w"):
            connection.register(name, TABLES[name])

        def work(namings: int) -> int:
            parts = " union all ".join([f"select a from q where n > {i}" for i in range(namings)])
            return planning_calls(connection, f"with q as ({body}) {parts}")

        few, many = work(20), work(40)
    assert many < 2.2 * few


@pytest.mark.by_day(2)
@pytest.mark.parametrize("count", [12, 24])
def test_views_of_views(count: int) -> None:
    setup = ["create view v0 as select a, b from t where a > 0 group by a, b"]
    setup += [
        f"create view v{k} as select l.a, r.b from v{k - 1} l join v{k - 1} r on l.a = r.a"
        for k in range(1, count + 1)
    ]
    query = "select a, min(b) as b from (select distinct * from v2) group by a"
    assert_same_as_duckdb(query, TABLES, setup=setup[:3], backend="cpu", fuse=MODES, ordered=False)
    with connected({"t": TABLES["t"]}, fuse="never") as connection:
        for statement in setup:
            connection.execute(statement)
        frame = connection.sql(f"select * from v{count} where false")
        assert frame.fetchall() == []
        assert planning_calls(connection, f"select a from v{count} where a = 1") < 12_000 * count


@pytest.mark.by_day(3)
@pytest.mark.parametrize(
    "query",
    [
        "with q as (select a, b from t) select l.a, r.b from q l join q r on l.a = r.b",
        "with q(i, j) as (select a, b from t) select l.i, r.j from q l join q r on l.i = r.j",
        "with q as (from t) select l.e as x, r.* from q l(e, f) join q r on e = r.b, q s(i) where s.i = 2",
        "with q as (select a, sum(b) as s from t group by a) select * from q where s = (select max(s) from q)",
        "with q as (select a from t order by a desc limit 3) select * from q where a > 2 union all select a from q",
        "with q as (select a, b from t), q2 as (select * from q) select (select count(*) from q) as n, * from q2 natural join q",
        "select k, (with q as (select b from t where a = u.k) select count(*) from q l join q r on l.b = r.b) as n from u",
        "select k, (with q as (select max(b) as b from t) select count(*) from q l join q r on l.b >= u.k) as n from u",
        "with q as (with q as (select a from t) select l.a from q l, q r) select count(*) from q union all select max(a) from q",
        "with q as (select 1 as a, 2 as b) select (select a from q) as x, (select b from q) as y",
        "with q as (select count(*) as n from t) select n from q union all select n + 1 from q",
        "with q as (select a, b, c from t) select count(*) from q l, q r, q s",
        "with q as (select a from t where a > 100) select * from q l left join q r on true union all select a, 1 from q",
        "with q as (select distinct a from t) select t.a, q.a as d from t join q using (a) where a not in (select a from q where a > 2)",
        "with q as (select b, a from t) select a from q group by a having count(*) > (select count(*) from q) - 8 order by a",
    ],
)
@pytest.mark.parametrize("copied", [0, named_queries.COPIED_NODES])
def test_answers(query: str, copied: int, limits: SetLimits) -> None:
    limits(COPIED_NODES=copied)
    assert_same_as_duckdb(query, TABLES, backend="cpu", fuse=MODES)


@pytest.mark.by_day(2)
@pytest.mark.parametrize("start", range(0, 60, QUERIES_A_TEST))
def test_generated_queries(start: int, limits: SetLimits) -> None:
    limits(COPIED_NODES=0)
    with connected(GENERATED, fuse="never", check=True) as connection:
        for seed in range(start, start + QUERIES_A_TEST):
            check(seed, connection)


@pytest.mark.nightly
def test_many_generated_queries(limits: SetLimits) -> None:
    limits(COPIED_NODES=0)
    with connected(GENERATED, fuse="never", check=True) as connection:
        for seed in range(1000, 2000):
            check(seed, connection)


def check(seed: int, connection: Any) -> None:
    reading = READINGS[seed % len(READINGS)]
    q, p = (f"select x0 as c0 from ({numbers(s)}) s" for s in (seed, seed + 5000))
    query = f"with q as ({q}), p as ({p}) {reading}"
    assert_same_as_duckdb(query, GENERATED, connection=connection, ordered=False)


def test_a_view_named_twice_is_bound_anew_by_each_statement() -> None:
    with fuseline.connect(device="cpu") as connection:
        connection.execute("create table s as select 1 as a, 2 as b")
        connection.execute("create view v as select max(a) as a from s group by b")
        text = "select l.a from v l join v r on l.a = r.a"
        assert connection.sql(text).fetchall() == [(1,)]
        connection.execute("create or replace table s as select 5 as a, 2 as b")
        assert connection.sql(text).fetchall() == [(5,)]
        script = f"create or replace table s as select 6 as a, 3 as b; {text}"
        assert connection.execute(script).fetchall() == [(6,)]


def test_files_below_a_common_query_are_read_anew(tmp_path: Any, limits: SetLimits) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    limits(COPIED_NODES=0)
    path = tmp_path / "f.parquet"
    text = f"with q as (select max(a) as a from '{path}') select l.a from q l join q r on l.a = r.a"
    with fuseline.connect(device="cpu") as connection:
        for value in (1, 22, 333):
            pq.write_table(pa.table({"a": [value] * value}), path)
            assert connection.sql(text).fetchall() == [(value,)]


@pytest.mark.nightly
def test_24_doublings_take_no_second() -> None:
    with connected({"t": TABLES["t"]}, fuse="never") as connection:
        connection.sql(joined(2)).fetchall()
        start = time.process_time()
        connection.sql(joined(24)).fetchall()
    assert time.process_time() - start < 0.5
