"""The logical plans that queries become, before any rule."""

from __future__ import annotations

import pytest

import fuseline
from tests.sql import tables

PLANS = {
    "select x, y + 1 as k from t where x > 1 order by k desc limit 2 offset 1": """
Limit  2 offset 1
  Sort  k desc
    Project  x, y + 1 as k
      Filter  x > 1
        Scan  t  x, y, s, d""",
    "select s from t order by x desc nulls first limit 1": """
Project  s
  Limit  1
    Sort  x desc nulls first
      Project  s, x
        Scan  t  x, y, s, d""",
    "select distinct s from t order by y": """
Project  s
  Sort  y
    Distinct  on s
      Project  s, y
        Scan  t  x, y, s, d""",
    "select distinct on (s) s, x from t order by s, x": """
Sort  s, x
  Distinct  on s
    Sort  s, x
      Project  s, x
        Scan  t  x, y, s, d""",
    "select x, count(*) as n, sum(y) from t group by x having max(y) > 1 order by n": """
Sort  n
  Project  x, n, sum(y)
    Filter  max > 1
      Aggregate  by x  count(*) as n, sum(y), max(y) as max
        Scan  t  x, y, s, d""",
    "select x % 2 as k, sum(y) + sum(y) as v from t group by k": """
Project  k, sum + sum as v
  Aggregate  by x % 2 as k  sum(y) as sum
    Scan  t  x, y, s, d""",
    "select s, grouping(x) as g from t group by rollup (s, x)": """
Project  s#1, grouping_id % 2 as g
  Aggregate  by s#2 as s#1, x#2 as x#1  sets (s#1, x#1), (s#1), ()  grouping grouping_id
    Scan  t  x#2, y, s#2, d""",
    "select x, z from t full join u using (x)": """
Project  x#1, z
  Project  x#2, y, s, d, x#3, z, p, coalesce(x#2, x#3) as x#1
    Join full  x#2 = x#3
      Scan  t  x#2, y, s, d
      Scan  u  x#3, z, p""",
    "select * from t, u left join (values (1)) v(k) on t.x = k": """
Project  x#1, y, s, d, x#2, z, p, col0 as k
  Join left  x#1 = col0
    Join inner
      Scan  t  x#1, y, s, d
      Scan  u  x#2, z, p
    Values  col0: (1)""",
    "select t.x from t, t b right join u on b.x = u.x": """
Project  x#1
  Join inner
    Scan  t  x#1, y#1, s#1, d#1
    Join right  x#2 = x#3
      Scan  t  x#2, y#2, s#2, d#2
      Scan  u  x#3, z, p""",
    "select x, (select max(z) from u where u.x = t.x) as m from t where y in (select z from u)": """
Project  x#1, scalar(subquery 1) as m
  subquery 1:
    Aggregate  max(z#1) as max(z)
      Filter  x#2 = x#1
        Scan  u  x#2, z#1, p#1
  Filter  y::BIGINT = any(subquery 2)
    subquery 2:
      Project  z#2
        Scan  u  x#3, z#2, p#2
    Scan  t  x#1, y, s, d""",
    "select x from t union all select z from u": """
SetOperation union all  x#1
  Project  x#3::BIGINT as x#2
    Project  x#3
      Scan  t  x#3, y, s, d
  Project  z
    Scan  u  x#4, z, p""",
    "with a as (select x + 1 as k from t) select l.k from a l join a r on l.k = r.k": """
Project  k#1
  Join inner  k#1 = k#2
    Project  x#1 + 1 as k#1
      Scan  t  x#1, y#1, s#1, d#1
    Project  x#2 + 1 as k#2
      Scan  t  x#2, y#2, s#2, d#2""",
    "values ((select max(x) from t)), (1)": """
SetOperation union all  col0#1
  Project  scalar(subquery 1) as col0#2
    subquery 1:
      Aggregate  max(x)
        Scan  t  x, y, s, d
    Values  ()
  Project  1 as col0#3
    Values  ()""",
    "from generate_series(10, 1, -2) g": "Range  g from 10 to 0 by -2",
}


TABLES = tables.TABLES


@pytest.mark.parametrize(("query", "plan"), PLANS.items(), ids=PLANS.keys())
def test_plan(query: str, plan: str, connection: fuseline.Connection) -> None:
    assert connection.sql(query).explain("logical") == plan.strip()
