"""GROUP BY in all its forms, HAVING, and what may be read of a group."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb
from tests.sql.tables import TABLES

KEYS = [
    "select x, count(*), sum(y) from t group by x",
    "select x, s, count(y) from t group by x, s",
    "select s, max(x) from t group by 1",
    "select x + 1, count(*) from t group by 1",
    "select x % 2 as parity, count(*) from t group by parity",
    "select x + 1 as k, k * 2, sum(y) from t group by x + 1",
    "select x, sum(y) from t group by all",
    "select x % 2 as p, s, count(*) from t group by all",
    "select 1, count(*) from t where false group by all",
    "select 1 + 1 as a, [1] as l, 'x'::blob as b, (select max(x) from t) as m, count(*) from t where false group by all",
    "select 1 + 1 as a, now() is null as n from t group by all",
    "select 2 * 3 as a, list_transform([1], lambda v: v + 1) as l, sum(x), x > 1 as more from t where false group by all",
    "select x as y, count(*) from t group by x",
    "select -x as y, count(*) from t group by t.x",
    "select upper(s), count(*) from t group by upper(s)",
    "select year(d), min(d) from t group by year(d)",
    "select x from t group by x",
    "select count(*) from t group by x",
    "select t.x, u.z, count(*) from t join u using (x) group by t.x, u.z",
    "select x + y, sum(x) + count(*) * 2 from t group by x + y",
    "select case when x > 1 then 'big' else 'small' end as size, count(*) from t group by size",
]
WITHOUT_KEYS = [
    "select count(*), count(x), sum(x), avg(x), min(s), max(d) from t",
    "select count(*), count(x), sum(x), avg(x), min(s), max(d) from empty",
    "select x, count(*) from empty group by x",
    "select sum(x) as total, total + 1 from t",
    "select sum(x) / count(*) from t",
    "select 5 from t having count(*) > 1",
    "select 5 from t having count(*) > 100",
    "select count(*) from t having sum(x) is null",
    "select count(distinct x), sum(distinct y), count(distinct s) from t",
    "select count(*) filter (where x > 1), sum(y) filter (where s is not null) from t",
    "select sum(p), avg(p), min(p), max(p) from u",
    "select count_if(x > 100), count_if(x > 1), count_if(null::boolean) as n from t",
    "select count_if(x > 1) from empty",
]
HAVINGS = [
    "select sum(y) as y from t group by x having sum(y) > 20",
    "select x, count(*) from t group by x having count(*) > 1",
    "select x, count(*) as n from t group by x having n = 1",
    "select x, sum(y) as y from t group by x having y > 20",
    "select x as k from t group by k having k > 1",
    "select x + 1 as x, count(*) from t group by t.x having x > 1",
    "select s from t group by s having sum(y) > 1 and s > 'a'",
    "select x from t group by x having max(y) > (select min(z) / 10 from u)",
    "select count(*) from empty having count_if(x > 1) is not null",
]
SETS = [
    "select s, x, count(*), grouping(s), grouping(x), grouping(s, x) from t group by rollup (s, x)",
    "select s, x, sum(y) from t group by cube (s, x)",
    "select s, x, count(*) from t group by grouping sets ((s), (x), ())",
    "select s, count(*) from t group by s, rollup (x)",
    "select s, x, y, count(*) from t group by rollup ((s, x), y)",
    "select s, grouping(s), count(*) from empty group by rollup (s)",
    "select a, b, max(b) from (select distinct x as a, x as b from t) group by cube (a, b)",
    "select coalesce(a, 5) from (select avg(n) as a from range(3) r(n) where n > 5 group by cube (n))",
    "select s, count(*) from t group by grouping sets (s, rollup (s))",
    "select x + 1 as k, grouping(x + 1), count(*) from t group by rollup (x + 1)",
    "select x, grouping(x) from t group by x",
    "select s, x, grouping(x, s), count(*) from t group by grouping sets ((s, x), (s)) having grouping(x) = 1",
]
SUBQUERIES = [
    "select x, (select max(z) from u where u.x = t.x) as v from t group by x",
    "select x, count(*) from t group by x having exists (select 1 from u where u.x = t.x)",
    "select x, sum(y) + (select count(*) from u) as v from t group by x",
    "select max(n) from (select count(*) as n from t group by x) q",
    "select n, count(*) from (select x, count(*) from t group by x) q(k, n) group by n",
]


@pytest.mark.parametrize("query", [*KEYS, *WITHOUT_KEYS, *HAVINGS, *SETS, *SUBQUERIES])
def test_group_by(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)


@pytest.mark.parametrize(
    "query",
    [
        "select s, x, grouping(s) from t group by rollup (s, x)",
        "select grouping(s) from empty group by cube (s, x)",
        "select 3 from t group by grouping sets ((), (s), ())",
    ],
)
def test_groups_of_no_keys_and_no_calls(query: str, backend: str) -> None:
    """One row, whatever is below; kernels were generated for it that could not be compiled."""
    assert_same_as_duckdb(query, TABLES, backend=backend, fuse=("always", "never"))
