"""Every shape of subquery gives DuckDB's answer, over NULLs, duplicates and no rows."""

from __future__ import annotations

from typing import Any

import pytest

import fuseline
from tests.compare import assert_same_as_duckdb
from tests.planner.subquery_tables import TABLES

pytestmark = pytest.mark.usefixtures("backend")

SETTINGS = {"check": True}

EXISTS = """
select a from t where exists (select 1 from u where u.k = t.a)
select a from t where not exists (select 1 from u where u.k = t.a)
select a from t where exists (select 1 from u)
select a from t where exists (select 1 from e)
select a from t where not exists (select 1 from e)
select a, b from t where exists (select 1 from u where u.k = t.a and u.x > t.b)
select a, b from t where not exists (select 1 from u where u.k = t.a and u.x > t.b)
select a, b from t where exists (select 1 from u where u.x > t.b)
select a, b from t where exists (select count(*) from u where u.x > t.b)
select a, b from t where exists (select x from u where u.k = t.a group by x)
select a, b from t where exists (select x from u where u.k = t.a group by x having count(*) > 1)
select a, b from t where exists (select 1 from u where u.k = t.a limit 1)
select a, b from t where exists (select 1 from u where u.k = t.a limit 0)
select a, b from t where exists (select 1 from u where u.k = t.a offset 1)
select a, b from t where exists (select 1 from u where u.k is not distinct from t.a)
select a, b from t where exists (select 1 from u where u.k + 1 = t.a + 1)
select a from t where b > 2 or exists (select 1 from u where u.k = t.a)
select a from t where not (b > 2 and exists (select 1 from u where u.k = t.a))
select a, case when exists (select 1 from u where u.k = t.a) then 'y' else 'n' end m from t
select a, sum(b) s from t group by a having exists (select 1 from u where u.k = t.a)
select count(*) filter (where exists (select 1 from u where u.k = t.a)) m from t
select a, b from t where exists (select 1 from (values (t.a), (5)) v(z) where v.z = 5)
select t1.a, t2.a from t t1, t t2 where t1.a = t2.b and exists (select 1 from u where u.k = t1.a and u.x = t2.a)
select exists (select 1 from t) and not exists (select 1 from e) m
select a, exists (select 1 from u where u.k = t.a or t.b is null) m from t
"""

IN = """
select a from t where a in (select k from u)
select a from t where a not in (select k from u)
select a from t where a not in (select k from u where k is not null)
select a from t where a in (select k from e)
select a from t where a not in (select k from e)
select a, a in (select k from u) m from t
select a, a not in (select k from u) m from t
select a, a in (select k from e) m from t
select a, a in (select k from u where k is not null) m from t
select a, null in (select k from u) m from t
select a, null in (select k from e) m from t
select a, 3 in (select k from u) m from t
select a, 1 in (select k from u where k > t.b) m from t
select a, b from t where a in (select k from u where u.x > t.b)
select a, b from t where a not in (select k from u where u.x > t.b)
select a, b, a in (select k from u where u.x > t.b) m from t
select a, b, a not in (select k from u where u.x = t.b) m from t
select a, b from t where a not in (select k from u where u.x = t.b)
select a, b from t where (a, b) in (select k, x from u)
select a, b from t where (a, b) not in (select k, x from u)
select a, b, (a, b) in (select k, x from u) m from t
select a, b, (a, b) not in (select k, x from u where x is not null) m from t
select a from t where b > 2 or a in (select k from u)
select a from t where b > 2 or a not in (select k from u)
select a from t where not (b > 2 or a in (select k from u))
select a, case when a in (select k from u) then 1 when b in (select x from u) then 2 end m from t
select a, b, b in (select count(*) from u where u.k = t.a group by x) m from t
select t.a, (select count(*) from u where u.x not in (select p from w) and u.k = t.a) n from t
with v as (select k, sum(x) s from u group by k) select a from t where a in (select k from v) and b < (select max(s) from v where v.k = t.a)
select * from t where a in (select a from t t2 where t2.b > t.b)
select * from t where (a in (select k from u)) = (b in (select x from u))
select * from t where (a in (select k from u)) is null
"""

QUANTIFIED = """
select a from t where b > any (select x from u)
select a from t where b > all (select x from u)
select a from t where b > all (select x from u where x is not null)
select a from t where b >= all (select x from u where u.k = t.a)
select a from t where b < any (select x from u where u.k = t.a)
select a, b, b > any (select x from u) m from t
select a, b, b <= all (select x from u) m from t
select a, b, b > all (select x from e) m from t
select a, b, b < any (select x from e) m from t
select a, b, b = all (select x from u) m from t
select a, b, b <> any (select x from u) m from t
select a, b, b = all (select x from u where u.k = t.a) m from t
select a, b, b <> all (select x from u where u.k = t.a) m from t
select a, b, b <> any (select x from u where u.k = t.a) m from t
select a, b, b >= any (select x from u where u.k = t.a) m from t
select a, b, b < all (select x from u where u.k = t.a) m from t
select a, b, b = any (select x from u where u.k = t.a) m from t
select a, b, b = any (select count(*) from u where u.k = t.a) m from t
select a, b, b > all (select count(*) from u where u.k = t.a) m from t
select a from t where not (a = any (select k from u))
select a from t where not (a <> all (select k from u))
"""

SCALAR = """
select a, (select max(x) from u where u.k = t.a) m from t
select a, (select count(*) from u where u.k = t.a) m from t
select a, (select count(x) from u where u.k = t.a) m from t
select a, (select count_if(x > 1) from u where u.k = t.a) m from t
select a, (select count(*) + 1 from u where u.k = t.a) m from t
select a, (select coalesce(sum(x), -1) from u where u.k = t.a) m from t
select a, (select sum(x) + t.b from u where u.k = t.a) m from t
select a, (select sum(x + t.b) from u where u.k = t.a) m from t
select a, (select sum(x + t.b) from u) m from t
select a, (select sum(x) from u) m from t
select a, (select sum(x) from e) m from t
select a, (select count(*) from e) m from t
select a, (select k from e) m from t
select a, (select count(*) from u where u.x > t.b) m from t
select a, (select max(x) from u where u.x < t.b) m from t
select a, (select max(x) from u where u.k = t.a and u.x < t.b) m from t
select a, (select count(*) from u where u.k = t.a and u.x < t.b) m from t
select a, (select count(*) from u where u.k = t.a having count(*) > 1) m from t
select a, (select count(*) from u where u.k = t.a having count(*) < 2) m from t
select a, (select count(*) from u where u.k = t.a having count(*) > t.b) m from t
select a, (select max(x) from u where u.k = t.a group by u.k) m from t
select a, (select max(x) from u where u.k = t.a having max(x) is null) m from t
select a, (select t.a) m from t
select a, (select t.a + 1) m from t
select a, (select t.a + 1 where t.b > 1) m from t
select a, (select (select t.a)) m from t
select a, (select max(x) from u where u.k = t.a) + (select min(x) from u where u.k = t.a) m from t
select a, (select x from u where u.k = t.a order by x desc, y limit 1) m from t
select a, (select x from u where u.k = t.a order by x nulls first limit 1) m from t
select a, (select x from u where u.x > t.b order by x, k limit 1) m from t
select a, (select x + t.b from u where u.x > t.b order by x, k limit 1) m from t
select a, (select x from u where u.k = t.a order by x limit 1 offset 1) m from t
select a, (select distinct x from u where u.k = t.a and x = 3) m from t
select a, (select count(distinct x) from u where u.k = t.a) m from t
select a, (select count(*) from (select distinct x from u where u.k = t.a)) m from t
select a, (select count(*) from (select distinct x from u where u.y > t.b)) m from t
select a, (select count(*) from (select x from u where u.k = t.a union all select p from w)) m from t
select a, (select count(*) from (select x from u where u.k = t.a intersect select p from w)) m from t
select a, (select string_agg(s, ',' order by s) from s where s.id = t.a) m from t
select a, (select max(c) from t t2 where t2.a = t.a and t2.b <> t.b) m from t
select a, (select k from u where u.k = t.a and u.x = 1 limit 1) m from t
select a, (select max(z) from (select x + t.b as z from u where u.k = t.a) q where z > 2) m from t
select a, (select min(x) from u where u.k in (t.a, t.b)) m from t
select a, (select min(x) from u where u.k between t.a and t.b) m from t
select a, (select min(x) from u where u.k = t.a or u.x = t.b) m from t
"""

ELSEWHERE = """
select a from t where b > (select avg(x) from u where u.k = t.a)
select a from t where b > (select avg(x) from u)
select a from t where (select count(*) from u where u.k = t.a) = 0
select a from t where (select count(*) from u where u.k = t.a) = 0 or b > 2
select a, case a when (select max(k) from u) then 'max' else 'not' end m from t
select a, sum(b) s from t group by a having sum(b) > (select avg(x) from u where u.k = t.a)
select a, sum(b) s from t group by a having sum(b) > (select avg(x) from u)
select a, b from t order by (select max(x) from u where u.k = t.a), a, b
select sum((select max(x) from u where u.k = t.a)) m from t
select a, sum(b + (select count(*) from u where u.k = t.a)) m from t group by a
select (select max(x) from u where u.k = t.a) g, count(*) n from t group by 1
select (select max(x) from u where u.k = t.a) g, count(*) n from t group by g having count(*) > 1
select a, b, (select max(z) from (values (t.a), (2)) v(z)) m from t
select a, b, (select sum(z) from (select x from u where u.k = t.a union all select t.b) v(z)) m from t
select t.a, (select sum(s) from (select sum(x) s from u where u.k = t.a group by y)) n from t
select t.a, (select sum(s) from (select count(*) s from u where u.k = t.a)) n from t
select t.a, (select max(s) from (select count(*) s from u where u.k = t.a) q, w where q.s = w.p) n from t
select a from t where a = (select max(k) from u) and b = (select min(x) from u where u.k = t.a)
select distinct (select max(x) from u where u.k = t.a) m from t
select a, row from (select a, (select count(*) from u where u.k = t.a) as row from t) where row > 1
select a from t where (select max(x) from u where u.k = t.a) is null
select a from t where coalesce((select max(x) from u where u.k = t.a), 100) > 50
values ((select max(a) from t)), ((select min(a) from t))
select (select max(a) from t) m, (select count(*) from e) n
select a, array_n from (select a, (select count(*) from (select 1 from u where u.k = t.a limit 2)) as array_n from t)
select t.a, (select count(*) from u, w where u.k = t.a and w.p = t.b) n from t
select t.a, (select count(*) from u, w where u.k = t.a and w.p = u.x and w.q <> t.b) n from t
select a from t where b = (select x from u where u.k = t.a and u.y = 99)
"""

NESTED = """
select a from t where exists (select 1 from u where u.k = t.a and exists (select 1 from w where w.p = u.x))
select a from t where exists (select 1 from u where u.k = t.a and exists (select 1 from w where w.p = t.b))
select a from t where exists (select 1 from u where exists (select 1 from w where w.p = t.b and w.q = u.y))
select a from t where exists (select 1 from u where u.k = t.a and not exists (select 1 from w where w.p = t.b and w.q = u.y))
select a from t where not exists (select 1 from u where not exists (select 1 from w where w.p = t.a and w.q = u.y))
select a from t where a in (select k from u where x in (select p from w where w.q = t.b))
select a from t where a in (select k from u where x not in (select p from w where w.q = t.b))
select a, (select max(x) from u where u.k = t.a and u.x < (select max(p) from w where w.q = t.b)) m from t
select a, (select sum((select count(*) from w where w.p = u.x and w.q = t.b)) from u where u.k = t.a) m from t
select a, (select count(*) from u where u.x = (select max(p) from w where w.q = t.b)) m from t
select a, (select count(*) from u where u.k = t.a and u.x > (select avg(p) from w where w.p > t.b)) m from t
select a, (select count(*) from (select x from u where u.k = t.a union select p from w where w.q = t.b)) m from t
select a, (select count(*) from (select x from u where u.k = t.a except select p from w where w.q = t.b)) m from t
select a, b from t where b in (select x from u where u.k = t.a union select p from w where w.q = t.b)
select a, b from t where b in (select x from u where u.x > t.a except select p from w where w.q = t.b)
select t.a, (select count(*) from u where u.x in (select p from w where w.q = t.b)) n from t
select t.a, (select count(*) from u where u.x not in (select p from w where w.q = t.b)) n from t
select t.a, (select count(*) from u where (u.x in (select p from w where w.q = t.b)) is null) n from t
select a, b from t where (select count(*) from u where u.k = t.a) > (select count(*) from w where w.p = t.b)
select a from t where exists (select 1 from u where u.k = t.a and u.x > 100) or exists (select 1 from w where w.p = t.a)
select a, (select max(x) from u where u.k = t.a and (select count(*) from w where w.p = u.x) > 0) m from t
select a, (select avg(x) from u where u.k = t.a and exists (select 1 from w where w.p = u.x and w.q >= t.b)) m from t
"""

LATERAL = """
select t.a, l.x from t, lateral (select x from u where u.k = t.a) l
select t.a, l.x from t left join lateral (select x from u where u.k = t.a) l on true
select t.a, l.x from t left join lateral (select x from u where u.k = t.a) l on l.x > t.b
select t.a, l.m from t, lateral (select max(x) m from u where u.k = t.a) l
select t.a, l.n from t, lateral (select count(*) n from u where u.k = t.a) l
select t.a, l.n from t left join lateral (select count(*) n from u where u.k = t.a) l on l.n > 0
select t.a, l.n from t join lateral (select count(*) n from u where u.k = t.a) l on l.n = t.b
select t.a, l.n, m.z from t, lateral (select t.a + 1 as n) l, lateral (select l.n * 2 as z) m
select t.a, l.x, m.p from t, lateral (select x from u where u.k = t.a) l, lateral (select p from w where w.p = l.x) m
select t.a, l.x from t, lateral (select x from u where u.k = t.a order by x, y limit 2) l
select t.a, l.x from t, lateral (select x from u where u.x > t.b order by x, y limit 2 offset 1) l
select t.a, l.x, l.n from t, lateral (select x, count(*) n from u where u.k = t.a group by x) l
select t.a, l.x, l.n from t, lateral (select x, y, count(*) n from u where u.k = t.a group by grouping sets ((x), (y))) l
select t.a, l.x from t, lateral (select u.x from u left join w on u.x = w.p and w.q = t.b where u.k = t.a) l
select t.a, l.x, l.p from t, lateral (select u.x, w.p from u full join w on u.x = w.p and w.q = t.b) l
select t.a, l.x, l.p from t, lateral (select u.x, w.p from u left join (select * from w where w.q = t.b) w on u.x = w.p where u.k = t.a) l
select t.a, l.n from t left join lateral (select count(*) n from u where u.x > t.b having count(*) > 1) l on true
"""

JOINS = """
select t.a, u.x from t join u on t.a = u.k and u.x > (select avg(x) from u)
select t.a, u.x from t join u on t.a = u.k and exists (select 1 from w where w.p = u.x)
select t.a, u.x from t left join u on t.a = u.k and u.x > (select avg(x) from u)
select t.a, u.x from t left join u on t.a = u.k and exists (select 1 from w where w.p = u.x)
select t.a, u.x from t left join u on t.a = u.k and exists (select 1 from w where w.p = t.b)
select t.a, u.x from t left join u on t.a = u.k and exists (select 1 from w where w.p = t.b and w.q > u.x)
select t.a, u.x from t right join u on t.a = u.k and exists (select 1 from w where w.p = t.b)
select t.a, (select count(w.p) from u left join w on u.x = w.p and w.q > t.b where u.k = t.a) n from t
select t.a, (select count(*) from u right join w on u.x = w.p and u.k = t.a) n from t
select t.a, (select count(*) from u full join w on u.x = w.p and u.k = t.a) n from t
select t.a, (select count(*) from u semi join w on u.x = w.p and w.q = t.b) n from t
select t.a, (select count(*) from u anti join w on u.x = w.p and w.q = t.b) n from t
select t.a, (select count(*) from (select count(*) s from u where u.k = t.a) q join w on q.s < w.p) n from t
select t1.a, t2.a from t t1 left join t t2 on t1.a = t2.b where (select count(*) from u where u.k = t2.a) = 0
select t1.a, (select count(*) from u where u.k = t2.a) n from t t1 left join t t2 on t1.a = t2.b
select t1.a, t2.b, (select count(*) from u where u.x < t2.b) n from t t1 left join t t2 on t1.a = t2.b
"""


def queries(*texts: str) -> list[str]:
    return [line for text in texts for line in text.strip().splitlines()]


@pytest.mark.by_day
@pytest.mark.parametrize(
    "query", queries(EXISTS, IN, QUANTIFIED, SCALAR, ELSEWHERE, NESTED, LATERAL, JOINS)
)
def test_same_as_duckdb(query: str, connection: Any, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend, connection=connection)


def test_a_scalar_subquery_with_two_rows_is_an_error(connection: Any) -> None:
    with pytest.raises(fuseline.errors.ExecutionError, match="More than one row"):
        connection.sql("select (select k from u)").to_arrow()


def test_a_correlated_scalar_subquery_with_two_rows_is_an_error(connection: Any) -> None:
    with pytest.raises(fuseline.errors.ExecutionError, match="More than one row"):
        connection.sql("select (select x from u where u.k = t.a) from t").to_arrow()


def test_row_values_in_a_correlated_subquery(connection: Any) -> None:
    """DuckDB refuses this one."""
    query = "select a, b, (a, b) in (select k, x from u where u.y > t.c) m from t order by all"
    marks = connection.sql(query).to_arrow()["m"].to_pylist()
    assert marks == [True, False, None, False, None, False, None, None]
