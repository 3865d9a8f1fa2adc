"""FROM before SELECT: sqlglot keeps the joins at another place of its tree, where nobody looked for them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.compare import assert_same_as_duckdb, connected

Q1 = pa.table({"a": [1, 3, None], "b": [2, 4, 6]})
Q2 = pa.table({"a": [1, 5, None], "c": [20, 40, 60]})
Q3 = pa.table({"c": [20, 20, 40], "d": ["x", "y", None]})
TABLES = {"q1": Q1, "q2": Q2, "q3": Q3}

# What may follow FROM, each to stand before SELECT, behind it, and in every kind of subquery.
SOURCES = [
    "q1, q2", "q1 join q2 on q1.a < q2.a", "q1 join q2 on q1.a = q2.a", "q1 left join q2 using (a)",
    "q1 full join q2 using (a), q3", "q1 natural join q2 natural left join q3",
    "q1 cross join q2, q3 x join q3 y on x.c = y.c",
    "q1 semi join q2 using (a)", "q1 x, q1 y anti join q2 on y.a = q2.a",
    "q1, lateral (select c + q1.b as s from q2) l, q3",
    "(q1 join q2 using (a)) j join q3 on j.c = q3.c",
    "q1 join q2 join q3 on q2.c = q3.c on q1.a = q2.a",
    "q1 left join (q2 join q3 on q2.c = q3.c) on q1.a = q2.a",
    "(select 1 as one) s, q1 join q2 on true",
    "(select * from (values (1), (2)) v(n)) s, (from q1, q2) w",
    "range(3) r, range(2) s", "range(2) r(n) join q1 on r.n = q1.a, q2",
]  # fmt: skip
SHAPES = [
    "from {}", "from {} select *", "from {} select count(*) as n", "select * from (from {}) s",
    "with c as (from {}) select count(*) as n from c",
    "select (from {} select count(*)) as n", "select b from q1 where exists (from {})",
    "select b from q1 where b in (from {} select count(*))",
    "(from {} select count(*) as n) union all (select count(*) from {})",
]  # fmt: skip


@pytest.mark.parametrize("source", SOURCES)
def test_joins_of_a_from_before_select_count(source: str) -> None:

    with connected(TABLES) as connection:
        for shape in SHAPES:
            assert_same_as_duckdb(shape.replace("{}", source), TABLES, connection=connection)


@pytest.mark.parametrize(
    "source", ["q1, q2", "q1 join q2 on q1.a < q2.a", "range(3) r, range(2) s"]
)
def test_tables_and_views_made_from_one(source: str, backend: str) -> None:
    setup = [
        "create table q1 as select * from (values (1, 2), (3, 4)) v(a, b)",
        "create table q2 as select * from (values (1, 20), (5, 40)) v(a, c)",
        f"create table made as from {source}",
        f"create view seen as from {source}",
    ]
    query = "select (select count(*) from made) as m, (select count(*) from seen) as s"
    assert_same_as_duckdb(query, setup=setup, backend=backend)
