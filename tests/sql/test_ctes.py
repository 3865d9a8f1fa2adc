"""WITH: several, nested, shadowing, named columns, read more than once."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb
from tests.sql.tables import TABLES


@pytest.mark.parametrize(
    "query",
    [
        "with a as (select x from t) select * from a",
        "with a as (select 1 as q), b as (select q + 1 as r from a) select * from a, b",
        "with a(p, q) as (select x, y from t) select p + q as n from a",
        "with a(p) as (select x, y from t) select p, y from a",
        "with t as (select 7 as x) select x from t",
        "with t as (select x from t where x > 1) select x from t",
        "with a as (with b as (select 3 as n) select n from b) select * from a",
        "with a as (select 1 as n), b as (with a as (select 2 as n) select n from a) select a.n, b.n from a, b",
        "with a as (select x, y from t) select l.x, r.y from a l join a r on l.x = r.x",
        "with a as materialized (select x from t) select sum(x) from a",
        "with a as not materialized (select x from t) select sum(x) from a",
        "with a as (select x from t) select x from u where x in (select x from a)",
        "select x from (with a as (select x from t) select x from a) q where x > 1",
        "with a as (select x from t) select (select max(x) from a) as v, x from u",
        "with a as (select x from t) select x from a union all select x from a order by x limit 4",
        "select x, (with a as (select z from u where u.x = t.x) select max(z) from a) as v from t",
        "with recursive a as (select x from t) select * from a",
        "with a as (values (1, 'x'), (2, 'y')) select * from a",
        "with A as (select x as K from t) select k from a",
        "with a as (from t) from a select x",
        "with a as (select x from t order by y limit 2) select * from a order by x",
        "with a as (select x, count(*) as n from t group by x) select * from a where n = (select max(n) from a)",
    ],
)
def test_with(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)
