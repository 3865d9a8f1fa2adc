"""Every kind of join, with NULL keys, repeated keys, no matches and empty sides."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb
from tests.sql.tables import TABLES

KINDS = ["join", "inner join", "left join", "right join", "full join", "left outer join"]
CONDITIONS = [
    "on t.x = u.x", "on t.x = u.x and t.y > 5", "on t.x = u.x and u.z > 150", "on t.x = u.x and t.y * 10 < u.z",
    "on t.x < u.x", "on t.x = u.x or t.y = u.z", "on t.x is not distinct from u.x", "on t.x + 1 = u.x", "on true",
    "on false",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_outer_joins_on_any_condition(kind: str, condition: str, backend: str) -> None:
    assert_same_as_duckdb(
        f"select t.x, y, u.x, z from t {kind} u {condition}", TABLES, backend=backend
    )


@pytest.mark.parametrize("kind", ["semi join", "anti join"])
@pytest.mark.parametrize("condition", [*CONDITIONS, "using (x)"])
def test_semi_and_anti_joins(kind: str, condition: str, backend: str) -> None:
    assert_same_as_duckdb(f"select * from t {kind} u {condition}", TABLES, backend=backend)


@pytest.mark.parametrize("kind", KINDS)
def test_using_shows_one_column(kind: str, backend: str) -> None:
    assert_same_as_duckdb(f"select * from t {kind} u using (x)", TABLES, backend=backend)
    assert_same_as_duckdb(
        f"select x, t.x, u.x, z from t {kind} u using (x) where x is not null",
        TABLES,
        backend=backend,
    )
    assert_same_as_duckdb(f"select t.*, u.* from t {kind} u using (x)", TABLES, backend=backend)


@pytest.mark.parametrize("kind", ["", "left", "right", "full", "semi", "anti"])
def test_natural_join(kind: str, backend: str) -> None:
    assert_same_as_duckdb(f"select * from t natural {kind} join u", TABLES, backend=backend)


@pytest.mark.parametrize("kind", KINDS)
def test_empty_sides(kind: str, backend: str) -> None:
    assert_same_as_duckdb(f"select * from t {kind} empty e on t.x = e.x", TABLES, backend=backend)
    assert_same_as_duckdb(f"select * from empty e {kind} t on t.x = e.x", TABLES, backend=backend)
    assert_same_as_duckdb(
        f"select * from empty a {kind} empty b using (x)", TABLES, backend=backend
    )


@pytest.mark.parametrize(
    "query",
    [
        "select a.x, b.x from t a, t b where a.x = b.y / 10",
        "select count(*) from t a cross join u b",
        "select a.x, b.x, c.x from t a, t b join u c on b.x = c.x where a.x = 1",
        "select count(*) from t a, t b full join u on b.x = u.x",
        "select a.y, b.y, u.z from t a, t b left join u on a.x = u.x and b.x = u.x",
        "select * from t join u using (x) join (select 1 as x, 'w' as w) v using (x)",
        "select x, z from t full join u using (x) full join (values (3), (9)) v(x) using (x)",
        "select * from (t join u on t.x = u.x) left join (values (2, 'two')) n(k, name) on k = t.x",
        "select j.x, z from (t join u using (x)) j",
        "select j.x, z from ((t join u using (x))) j",
        "select u.z from ((t join u using (x)) join t o on t.x = o.x)",
        "select a, c from (t join u on t.x = u.x) as j(a, b, c)",
        "select * from (t join u on t.x = u.x) as j",
        "select j.a, j.x, j.p from (t join u on t.x = u.x) as j(a, b)",
        "select * from t left join (u join (values (1)) v(k) on u.x = k) on t.x = u.x",
        "select x, v.x from (select 2 as x) v cross join (t semi join u using (x))",
        "select * from t left join ((values (1), (7)) v(k) full join u on u.x = k) on t.x = u.x",
        "select a.x, b.x from t as a left join t as b on a.x = b.x and a.y < b.y",
        "select t.x, u.x from t join u on t.s = 'a' and u.z = 100",
        "select t.x from t join u on t.x = u.z / 100 and t.y is not null",
        "select t.d, v.d from t left join (select date '2024-02-29' as d) v on t.d = v.d",
        "select t.s, v.s from t join (values ('a'), (null)) v(s) on t.s = v.s",
        "select t.x, v.p from t join (select p::int as p from u) v on t.x = v.p",
        "select t.x, u.p from t join u on t.x > u.p",
    ],
)
def test_joins_of_several_tables(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)


@pytest.mark.parametrize("query", [
    "select * from t, (select t.x + 1 as k) q",
    "select * from t, lateral (select max(z) as m from u where u.x = t.x) q",
    "select t.x, z from t left join lateral (select z from u where u.x = t.x) q on true",
    "select t.x, z from t join lateral (select z from u where u.z > t.y * 10) q on z > 200",
    "select t.x, n from t, lateral (select count(*) as n from u where u.x < t.x) q where n > 0",
    "select x, a, b from t, (select x + 1 as a) p, (select a * 2 as b) q",
])  # fmt: skip
def test_lateral_subqueries_read_the_tables_before_them(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)
