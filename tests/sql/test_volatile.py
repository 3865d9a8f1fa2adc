"""random(), setseed() and samples: how many rows, from which range, and when again the same ones."""

from __future__ import annotations

import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb


@pytest.fixture(scope="module")
def connection():
    with fuseline.connect("cpu") as made:
        made.sql("create table t as select range as i, 0.0::double as x from range(20000)")
        yield made


@pytest.mark.parametrize(
    "query",
    [
        "select random() between 0 and 1 as u, random() = random() as e, typeof(random()) as t from range(3)",
        "select count(distinct r) as n, min(r) >= 0 and max(r) < 1 as u, abs(avg(r) - 0.5) < 0.02 as m, "
        "abs(corr(r, i)) < 0.05 as c, abs(stddev_pop(r) - 0.2887) < 0.01 as d from (select random() as r, range as i from range(20000))",
        "select count(*) between 1700 and 2300 as n from range(20000) where random() < 0.1",
        "select i % 3 as k, avg(random()) between 0.45 and 0.55 as a, random() < 1 as b, count(*) as n "
        "from range(9000) r(i) group by all order by k",
        "select count(*) as n, count(distinct i) as d, sum(i) as s from (select i from range(1000) r(i) order by random())",
        "select i from range(1000) r(i) order by random() limit 0",
        "select setseed(0.5), setseed(-1)",
        "select count(*) as n from (values (random()), (random())) v(x) where x >= 0",
        "select count(*) as n from range(20000) using sample 33.35% (reservoir)",
        "select count(*) as n, count(distinct i) as d from range(20000) r(i) tablesample 10",
        "select count(*) as n from range(10) tablesample 25% (reservoir)",
        "select count(*) as n from range(10) using sample 100 rows",
        "select count(*) as n from range(10) using sample 1.5",
        "select count(*) as n from range(10) using sample 2.5 rows",
        "select count(*) as n from range(10) tablesample reservoir(0.5 rows)",
        "select i from range(10) r(i) where i < 5 using sample 100%",
        "select i from range(10) r(i) using sample 0%",
        "select count(*) as n from (select * from range(50) tablesample reservoir(7 rows)), range(9) tablesample 2 rows",
        "select count(*) as n from (select range from range(0) using sample 10%)",
        "select count(*) between 1800 and 2200 as n from range(20000) using sample 10 percent (bernoulli, 3)",
    ],
)
def test_what_is_drawn_has_duckdbs_counts_and_types(query):
    assert_same_as_duckdb(query, fuse=("always", "never"))


def test_system_takes_whole_blocks(connection):
    query = (
        "select i // 2048 as b, count(*) from t tablesample system(50%) repeatable (1) group by b"
    )
    found = dict(connection.sql(query).fetchall())
    assert 1 <= len(found) <= 9
    assert all(count == (2048 if block < 9 else 20000 - 9 * 2048) for block, count in found.items())


def test_repeatable_samples_and_seeds_are_drawn_again(connection):
    for query in (
        "select i from t using sample 5 rows (reservoir, 42)",
        "select i from t tablesample bernoulli(0.1%) repeatable (9)",
    ):
        first, second = (connection.sql(query).fetchall() for _ in range(2))
        assert first == second
        assert first
    one, two = (connection.sql("select i from t using sample 5").fetchall() for _ in range(2))
    assert one != two
    again = [
        connection.sql("select setseed(0.25); select random(), random() from range(2)").fetchall()
        for _ in range(2)
    ]
    assert again[0] == again[1]
    assert len({value for row in again[0] for value in row}) == 4


def test_plans_are_not_kept_and_places_draw_apart(connection):
    connection.sql("create view v as select random() as r; prepare p as select random()")
    for query in ("select random()", "from v", "execute p"):
        assert connection.sql(query).fetchall() != connection.sql(query).fetchall()
    query = "select (select random()), (select random()), a.r, b.r from (select random() as r) a, (select random() as r) b"
    assert len(set(connection.sql(query).fetchall()[0])) == 4
    query = (
        "with q as (select random() as r from range(3)) select count(*) from q a join q b using (r)"
    )
    assert connection.sql(query).fetchall() == [(3,)]
    query = "select count(*) from (select i, random() as r from t) where i < 10 and r < 2"
    assert connection.sql(query).fetchall() == [(10,)]


def test_draws_beside_groups(connection):
    query = "select count(*) from (select {} from t group by all)"
    for drawn in ("i % 3 as k, uuid() as u, count(*)", "i % 3 as k, count(*) + random()"):
        assert connection.sql(query.format(drawn)).fetchall() == [(3,)]
    keys = "(select i % 3 as k, i % 3 + random() as r from t)"
    query = f"select count(*) from (select k, r, count(*) from {keys} group by all)"
    (rows,) = connection.sql("select count(*) from t").fetchall()
    assert connection.sql(query).fetchall() == [rows]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select count(*) from t group by random()", "in GROUP BY"),
        ("select i, i + random() as r, count(*) from t group by all", "in GROUP BY ALL"),
        ("select 1 from t join t u on random() < 0.5", "join condition"),
        ("select sum(random()) over () from t", "in a window"),
        ("select list_transform([1], lambda a: a + random())", "lambda"),
        ("delete from t where random() < 0.5", "WHERE of a change"),
        ("select random() as r from t where r > 0.5", "draw anew"),
        ("select (select random() + t.i) from t", "query around it"),
        (
            "with recursive q as (select 1 n union all select n + random() from q) from q",
            "RECURSIVE",
        ),
        ("select random(1)", "argument"),
        ("select setseed(2)", "from -1 to 1"),
        ("select setseed(x) from t", "constant"),
        ("select 1 from t using sample 10 rows (bernoulli)", "percentage"),
        ("select 1 from t using sample 101%", "at most 100%"),
        ("select 1 from t using sample 2 (foo)", "no method FOO"),
        ("select 1 from t using sample 1000000001 rows", "at most 1,000,000,000 rows"),
    ],
)
def test_what_cannot_be_drawn_is_refused(query, said, connection):
    with pytest.raises(FuselineError, match=said):
        connection.sql(query)
