"""Subqueries in every position, correlated and not, at any depth."""

from __future__ import annotations

import pytest

from fuseline.errors import InvalidQuery
from tests.compare import assert_same_as_duckdb, connected
from tests.sql.tables import TABLES

SCALAR = [
    "select (select max(z) from u) as v",
    "select x, (select max(z) from u where u.x = t.x) as m from t",
    "select x, (select count(*) from u where u.x = t.x) as n from t",
    "select x, (select count(*) + 1 from u where u.x = t.x) as n from t",
    "select x, (select z from u where false) as v from t",
    "select x, (select z from u where u.z = t.x * 100) as v from t",
    "select x from t where y > (select avg(z) / 20 from u)",
    "select x from t where y = (select max(y) from t i where i.x = t.x)",
    "select x, coalesce((select min(z) from u where u.x > t.x), -1) as v from t",
    "select x, (select sum(z) from u where u.x <= t.x) as v from t",
    "select x, case when (select count(*) from u where u.x = t.x) > 1 then 'many' end as v from t",
    "select x, (select z + t.y from u where u.x = t.x and z < 250) as v from t",
    "select sum((select max(z) from u where u.x = t.x)) as v from t",
    "select x, (select count(*) from u where u.x is not distinct from t.x) as v from t",
    "select x, (select z from u where u.x = t.x order by z desc limit 1) as v from t",
    "select x, (select string_agg(s, ',' order by s) from t i where i.x = t.x) as v from t",
    "select (select x), y from t",
    "select [(select max(z) from u)] as a, array[(select z from u where false)] as b, [(values (3))] as c",
    "select x, [(select max(z) from u where u.x = t.x)] as l, [[(from u select count(*))]] as n from t",
    "select x + 1 as k, (select max(z) from u where u.x = k) as v from t",
    "select x, (select (select max(z) from u where u.x = t.x) from t i limit 1) as v from t",
    "select x from t order by (select count(*) from u where u.x = t.x), x, y",
]
EXISTS = [
    "select x from t where exists (select 1 from u where u.x = t.x)",
    "select x from t where not exists (select 1 from u where u.x = t.x)",
    "select x from t where exists (select 1 from u where u.z > t.y * 15)",
    "select x from t where exists (select 1 from u)",
    "select x from t where exists (select 1 from empty)",
    "select x, exists (select 1 from u where u.x = t.x) as e from t",
    "select x from t where exists (select 1 from u where u.x = t.x) or y > 20",
    "select x from t where exists (select 1 from u where u.x = t.x and exists (select 1 from t i where i.y * 10 = u.z))",
    "select x from t where exists (select 1 from u where exists (select 1 from t i where i.x = t.x and i.x = u.x))",
    "select x from t where exists (select max(z) from u where u.x = t.x)",
    "select x from t where exists (select x from u group by x having count(*) > 1 and u.x = t.x)",
    "select count(*) from t where not (exists (select 1 from u where u.x = t.x) and y > 5)",
    "select x, x in (select x from u) and exists (select 1 from u where u.x = t.x) as v from t",
]
IN = [
    "select x from t where x in (select x from u)",
    "select x from t where x not in (select x from u)",
    "select x from t where x not in (select x from u where x is not null)",
    "select x from t where x not in (select x from empty)",
    "select x from t where null in (select x from u)",
    "select x, x in (select x from u) as i, x not in (select x from u) as n from t",
    "select x, x in (select x from u where u.z > t.y * 10) as v from t",
    "select x, x not in (select x from u where u.z > t.y * 10) as v from t",
    "select x from t where (x, y * 10) in (select x, z from u)",
    "select x from t where (x, y * 10) not in (select x, z from u)",
    "select x from t where x + 1 in (select x from u group by x having count(*) > 1)",
    "select x from t where y in (select z / 10 from u)",
    "select s from t where s in (select 'a' union select 'c')",
]
QUANTIFIED = [
    "select x, x = any (select x from u) as v from t",
    "select x, x > all (select x from u where x < 2) as v from t",
    "select x, x > all (select x from u) as v from t",
    "select x, x <> all (select x from u where x is not null) as v from t",
    "select x, y < any (select z / 10 from u) as v from t",
    "select x, x >= all (select x from empty) as v from t",
    "select x, x >= any (select x from empty) as v from t",
    "select x, y > any (select z / 20 from u where u.x = t.x) as v from t",
    "select x from t where y <= all (select z from u where u.x = t.x)",
    *[
        f"select x, y, (x, y) {sign} {word} (select x, z / 10 from u) as v, (y, null) {sign} {word} (select z, x from u) from t"
        for sign in ("<", "<=", ">", ">=", "=", "<>")
        for word in ("any", "all")
    ],
    "select row(1, 'b') < any (select x, s from t) as v, (1, 2, 3) >= all (values (1, 2, null), (0, 9, 9)) as w, (1, 2) < all (select x, y from t where false)",
]
# Aggregates of an outer query, over its columns alone
LIFTED = [
    "select (select sum(t.x)) from t",
    "select min(y), (select sum(t.x) + max(z) from u) from t",
    "select x, count(*), (select sum(z) + count(t.y) from u where z > max(t.y)) as v from t group by x",
    "select x, (select z from u order by z limit 1) + (select max(t.y)) as v from t group by all",
    "select (select x + sum(t.y) from u where x = 3 limit 1) as v from t",
    "select (select (select sum(t.x) + u.z) from u where u.z = 250) as v from t",
    "select x from t group by x having (select max(t.y) > 1) order by (select -count(t.s)), x",
    "select (select string_agg(t.s, '|' order by t.s desc)) as a, (select count(distinct t.x) filter (t.x > 1)) as b from t",
    "select x, sum(y) over () as w, (select max(t.y)) as v from t group by x, y",
    "select exists (select 1 from u having count(t.x) > 1) as v from t",
    "select x % 2 as k, count(*) from t group by k having count(*) > (select min(x) from u where x <> k + 1)",
    "select (select max(t.x + u.z) from u) as v from t",
    "select sum((select max(z) from u where u.x = t.x)) as v, (select count(t.x)) as w from t",
    "select x, s, (select sum(t.y)) as v from t group by rollup (x, s)",
]
PLACES = [
    "select x, (select max(i.y) from t i where (select min(x) from u where i.y = o.y) > 0) as v from t o",
    "select x from t o where exists (select 1 from t i where exists (select 1 from u where i.x = o.x))",
    "select q.m from (select (select max(z) from u) as m) q",
    "select * from t join u on t.x = u.x and u.z = (select max(z) from u i where i.x = t.x)",
    "select t.x, u.z from t left join u on t.x = u.x and u.z in (select 100 union all select 250)",
    "select x, count(*) from t group by x having count(*) = (select max(n) from (select count(*) as n from t group by x))",
    "select (select count(*) from t where t.x = u.x) as v, z from u",
    "select abs((select min(p) from u)) as v",
    "select x in (select x from u) as v, count(*) from t group by 1",
    "values ((select max(x) from t)), (1)",
    "select * from t where x = (select x from u where z = 100) or s in (select s from t where x = 4)",
]


@pytest.mark.parametrize("query", [*SCALAR, *EXISTS, *IN, *QUANTIFIED, *LIFTED, *PLACES])
def test_subqueries(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)


@pytest.mark.parametrize("query", [QUANTIFIED[-1], QUANTIFIED[-4], *LIFTED[:6]])
def test_fused_and_not(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("always", "never"))


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select x, (select sum(t.x)) from t", "neither in GROUP BY"),
        ("select x from t where (select sum(t.x)) > 1", "not allowed in WHERE"),
        ("select sum((select sum(t.x))) from t", "inside of one another"),
        ("select 1 from t, lateral (select sum(t.x)) q", "not allowed in FROM"),
    ],
)
def test_aggregates_of_outer_queries_have_their_places(query: str, message: str) -> None:
    with connected(TABLES) as connection, pytest.raises(InvalidQuery, match=message):
        connection.sql(query)
