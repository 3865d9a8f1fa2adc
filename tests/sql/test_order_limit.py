"""ORDER BY, LIMIT, OFFSET, DISTINCT and DISTINCT ON."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb
from tests.sql.tables import TABLES

ORDERS = [
    "select s, x from t order by s collate nocase desc, x, y", "select s as n from t order by n collate nocase.noaccent, x, y",
    "select s, x from t where s collate nocase in ('A', 'b') or s = 'B' collate nocase or s between 'B' and 'C' collate noaccent order by s collate c, x, y",
    "select string_agg(s, ',' order by s collate nocase, s), s < 'b' collate nocase as l from t group by l order by l",
    "select x, y from t order by x, y", "select x, y from t order by x desc, y desc",
    "select x, y from t order by x nulls first, y",
    "select x, y from t order by x desc nulls first, y desc nulls last",
    "select x, y from t order by 2 desc, 1", "select y as x, x as w from t order by x",
    "select y as x from t order by -x, y", "select x + 1 as k, y from t order by k, y",
    "select x, y from t order by x + y, y", "select s from t order by s, y",
    "select y, x from t order by #2 desc, #1", "select y, x from t order by #1 + 1, -y", "select y as q, x from t union select 5, 6 order by #2, #1",
    "select s from t order by upper(s) desc, x desc",
    "select x, y from t order by all",
    "select x, y from t order by all desc nulls first",
    "select * from t order by t.y",
    "select x, count(*) as n from t group by x order by n desc, x",
    "select x, count(*) as n from t group by x order by n + 1, -x",
    "select x from t group by x order by sum(y) desc nulls last",
    "select sum(x) as x from t group by y order by x, y",
    "select x from t order by (select max(z) from u where u.x = t.x) desc, x, y",
    "select d from t order by d", "select x, p from u order by p, x", "select x from empty order by x",
]  # fmt: skip
LIMITS = [
    "select x, y from t order by y limit 2",
    "select x, y from t order by y limit 2 offset 1",
    "select x, y from t order by y offset 3",
    "select x, y from t order by y limit 0",
    "select x, y from t order by y limit 100 offset 2",
    "select x, y from t order by y limit 1 + 1",
    "select x, y from t order by y limit null",
    "select x, y from t order by y fetch first 2 rows only",
    "select x, y from t order by y fetch next row only",
    "select count(*) from (select * from t limit 3)",
    "select * from (select y from t order by y desc limit 2) q order by y",
    "select y from t order by x, y limit 2",
    "values (3), (1), (2) order by 1 limit 2",
    "values (3), (1), (2) order by col0 desc",
    "(select y from t order by y limit 3) order by y desc limit 2",
    "select y from t order by y limit (select count(*) from u) - 1 offset (select 1)",
    "with q as (select 2 as n) select y from t order by y limit (select n from q)",
    "select y from t order by y limit (select 1.7) offset greatest(1, 1)",
    "select y from t order by y limit (select 2 where false)",
    "select x, y from t order by x, y limit 50%",
    "select x, y from t order by x desc, y limit 99.9 percent offset 1",
    "select x + 1 as k from t order by -y limit (select 30)% offset 2",
    "select distinct x from t order by x limit 100%",
    "select y from empty limit 50%",
    "select count(*) from (select * from t limit 40%)",
    "select y from t limit null%",
    "from range(10) order by range desc limit 3",
]
DISTINCTS = [
    "select distinct on (#2) y, x from t order by #2, y",
    "select distinct x from t",
    "select distinct x, s from t order by s, x",
    "select distinct * from (select x from t union all select x from t)",
    "select distinct x > 1 from t",
    "select distinct x from t order by x desc limit 2",
    "select distinct x % 2 as k from t order by k",
    "select distinct on (x) x, y from t order by x, y desc",
    "select distinct on (x) x, y from t order by x desc nulls first, y",
    "select distinct on (1) x, y from t order by y",
    "select distinct on (k) x + 0 as k, y from t order by y",
    "select distinct on (x % 2) x, y from t order by x % 2, y, x limit 2",
    "select distinct count(*) from t group by x",
    "select distinct x from empty",
    "select count(distinct x) from t",
]


@pytest.mark.parametrize("query", [*ORDERS, *LIMITS, *DISTINCTS])
def test_order_limit_distinct(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)


def test_nulls_come_last_unless_asked_for(backend: str) -> None:
    for direction in ("", "asc", "desc"):
        answer = assert_same_as_duckdb(
            f"select x from t order by x {direction}", TABLES, backend=backend
        )
        assert answer["x"][-1].as_py() is None
