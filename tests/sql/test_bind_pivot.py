"""PIVOT and UNPIVOT in both spellings."""

import pytest

import fuseline
from fuseline.errors import FuselineError, InvalidQuery
from tests.compare import assert_same_as_duckdb

SALES = [
    "create table t (city varchar, y int, q varchar, x int, p decimal(9, 2), d double, day date)",
    "insert into t values ('Oslo', 2020, 'a', 1, 1.5, 0.5, '2024-01-01'), ('Oslo', 2021, 'b', 2, 2.5, 'nan', '2024-01-02'), "
    "('Rome', 2020, 'a', 3, 3.5, 0.5, null), ('Rome', 2020, 'b', 4, 4.5, null, '2024-01-01'), (null, 2021, null, 5, 5.5, 1, '2024-01-02'), "
    "('Bern', null, 'a', null, null, -0.0, '2024-01-03')",
    "create table u (id int, jan int, feb int, mar bigint, s varchar)",
    "insert into u values (1, 10, 20, null, 'x'), (2, null, null, null, 'y'), (3, 5, null, 7, null)",
    "create table e (a int, b int)",
    "create type kinds as enum ('b', 'a', 'c')",
]
QUERIES = """
pivot t on y using sum(x)
pivot t on y using sum(x) group by city
pivot_wider t on y using sum(x) as s group by city
with p as (pivot_longer (select x, q::varchar as q from t) on x) from p
pivot t on y using sum(x), max(p) group by city
pivot t on y using sum(x) as s, max(p) as m group by city
pivot t on y using sum(x), count(*) group by city
pivot t on y, q using sum(x) group by city
pivot t on y || '_' || q using sum(x) group by city
pivot t on y group by city
pivot t on y in (2020, 2022) using sum(x) group by city
pivot t on d using count(*) group by city
pivot t on p using sum(x) group by city
pivot t on day using min(x), max(x) group by q
pivot t on city using sum(x) group by y
pivot t on y using coalesce(sum(x), 0) group by city
pivot t on q using sum(x) group by city order by city desc limit 2
pivot t on y using first(x order by x) as f group by city
pivot (select city, y, x from t) on y using sum(x)
pivot t on y using sum(x) group by city, q
pivot (from t where y > 2020) on y using sum(x) group by city union all select 'z', 1
pivot e on a using sum(b) group by b
from (pivot t on q using count(*) group by y) where y > 1
with z as (pivot t on q using count(*) group by y) from z
with z as (select city, y, x from t) pivot z on y using sum(x)
from t pivot (sum(x) for y in (2020, 2021) group by city)
from t pivot (sum(x) as s, count(*) as c for y in (2020 as a, 2021) q in ('a', 'b') group by city)
from t pivot (sum(x), max(p) for y in (2020, 2021) group by city) as pp(a, b)
select p.city, p."2020" from t pivot (sum(x) for y in (2020, null) group by city) p where p."2020" > 1
select * from t pivot (sum(x) for q in (a, b) group by city)
from t pivot (sum(x) for (y, q) in ((2020, 'a'), (2021, 'b')) group by city)
from t pivot (sum(x) for day in (date '2024-01-01') group by city)
select * from t pivot (sum(x) for y in (2020) group by city) join (select 'Oslo' as city) using (city)
pivot t on y in (2020 as first, '2021' as "second") using sum(x) group by city
pivot t on y in (2020 as 'the first', null) using sum(x) as s group by city
pivot t on y in (select y from t where x > 1 order by y desc), q using sum(x) group by city
pivot t on day in (select day from t) using count(*) group by city
pivot t on q in kinds using sum(x) group by city
from t pivot (count(*) for q in kinds group by city)
pivot t on q in (')' as closing, '[', 'a' as a) using sum(x) group by city
pivot (select *, x > 2 as big from t) on big in (true, false, null) using count(*) group by city
pivot t using sum(x) group by city
pivot t using sum(x), count(*), max(p) as m group by city, y
pivot t using sum(x)
pivot t group by city
pivot e using sum(a), count(*)
from (select *, x > 2 as big from t) pivot (sum(p) as s for big in (true, false) group by city)
select city, x in (select x as z from t) as there from t
unpivot u on (jan + 1)::bigint, feb::bigint
from u unpivot (v for m in (jan as 'the first', feb))
unpivot u on jan, feb, mar into name month value n
unpivot u on jan, feb
unpivot u on (jan, feb), (mar, id) into name k value a, b
from u unpivot (v for m in (jan, feb, mar))
from u unpivot include nulls (v for m in (jan as J, feb))
from u unpivot ((a, b) for m in ((jan, feb) as h1, (mar, id) as h2))
from u unpivot include nulls ((a, b) for m in ((jan, feb) as h1))
unpivot u on jan + 1 as j, feb into name m value v
unpivot u on * exclude (id, s)
unpivot u on jan as a, feb as b
from (select id, null as a, s as b, jan as c, null as d from u) unpivot include nulls ((v, w) for n in ((a, b), (c, d)))
select i, n, v from range(2) r(i), lateral (unpivot (select r.i as a, r.i + 1 as b) on a, b into name n value v)
unpivot (select id, jan, feb from u) on jan, feb into name m value v order by v, id limit 2
unpivot e on a, b
unpivot u on JAN, Feb::bigint into name m value v
from u unpivot ((a, b) for m in ((Jan, FEB), (mar, id)))
unpivot (select id as "Id", jan as "Jan", feb as "FEB" from u) on jan + 1, feb into name m value v
unpivot (select id, jan, s from u) on columns(*)::varchar
unpivot u on columns('jan|feb') * 2 into name m value v
unpivot u on (columns('jan|feb') * 2) as x into name m value v
select m, sum(v) from (unpivot u on jan, feb into name m value v) group by m
"""


@pytest.mark.by_day
@pytest.mark.parametrize("query", QUERIES.strip().splitlines())
def test_rows_become_columns_and_back(query, backend, fuse) -> None:
    assert_same_as_duckdb(query, setup=SALES, backend=backend, fuse=(fuse,))


KINDS = [
    "create table t (i int, n int, e enum ('sad', 'ok', 'happy'), s varchar, day date, h hugeint, b blob, l int[], v interval, r struct(a int))",
    """insert into t values (1, 10, 'sad', '', '2020-01-01', 10, 'a', [10], '30 days', {'a': 10}),
        (2, 9, 'ok', 'x', '12020-01-01', 9, '\\xff', [9], '1 month', {'a': 9}),
        (3, -1, 'happy', '''', '2020-01-02', -3, '', [], '2 days', {'a': null}),
        (4, null, null, null, null, null, null, null, null, null)""",
]


@pytest.mark.parametrize("on", ["n", "e", "s", "day", "h", "b", "l", "v", "r", "(n, s)", "s || i"])
def test_columns_stand_in_the_order_of_the_texts_of_values(on) -> None:
    assert_same_as_duckdb(f"pivot t on {on} using sum(i) group by i", setup=KINDS, backend="cpu")


def test_the_empty_text_has_a_name() -> None:
    for on in ("s, i using sum(i)", "s in ('', 'x') using sum(i)", "s using sum(i) as a, max(i)"):
        assert_same_as_duckdb(f"pivot t on {on} group by n", setup=KINDS, backend="cpu")


def test_values_are_those_of_now_in_tables_and_views() -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute("create table t as select 1 as k, 2 as v")
        text = "pivot t on k using sum(v)"
        connection.execute(f"create view w as {text}; create table made as {text}")
        assert connection.sql(text).columns == ["1"]
        connection.execute("insert into t values (7, 8)")
        assert connection.sql(text).columns == connection.table("w").columns == ["1", "7"]
        assert connection.table("made").columns == ["1"]


def test_a_filter_of_an_aggregate_holds() -> None:  # DuckDB forgets it
    with fuseline.connect("cpu") as connection:
        connection.execute("create table t as from (values (1, 1), (1, 5)) v(k, x)")
        assert connection.sql("pivot t on k using sum(x) filter (x > 1)").fetchall() == [(5,)]


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("pivot t on zz using sum(x)", 'no column "zz"', "zz"),
        ("pivot t on y using x", "one aggregate, and here are 0", "x"),
        ("pivot t on y using sum(x) + sum(y)", None, None),
        ("pivot t on 1 using sum(x)", "needs a column", "1"),
        ("pivot t on y in (0, 0) using sum(x)", '"0" twice', "y in (0, 0)"),
        ("from t pivot (sum(x) for (y, x) in (1))", "should be 2", "1"),
        ("from t pivot (sum(x) for y in ((1, 2)))", "should be 1", "1, 2"),
        ("from t pivot (sum(x) for y in (x + 1))", 'no column "x"', "x"),
        ("from t pivot (sum(x) for y in ((select 1)))", "must be a constant", "1"),
        ("pivot t on y using sum(x) group by lower(city)", "Syntax error", "("),
        ("pivot t on y in nothing using sum(x)", "a query or an ENUM", "y in nothing"),
        ("pivot t on y in (select y, x from t) using sum(x)", "one column", None),
        ("pivot t", "needs ON, USING or GROUP BY", None),
        ("select x in (1 as z) from t", "z is not supported", None),
        ("unpivot u on jan + feb", "expressions of one column", "jan + feb"),
        ("from t pivot (sum(x) for y in (1)) pivot (sum(p) for z in (1))", 'no column "z"', "z"),
        ("from u unpivot ((a, b) for (m, n) in ((jan, feb)))", "one column of names", "m, n"),
        ("unpivot u on zz", 'no column "zz"', "zz"),
        ("unpivot u on jan, s", "does not mix INTEGER and VARCHAR", "s"),
        (
            "unpivot (select jan, date '2024-01-01' as d from u) on jan, d",
            "INTEGER and DATE do not mix",
            "d",
        ),
        ("unpivot u on (jan, feb) into name n value v", "makes 1 columns", "jan"),
        ("unpivot u on * exclude (id, jan, feb, mar, s)", "EXCLUDE leaves no column", None),
        ("pivot (select range as k from range(100000)) on k", "the most are 2000", None),
    ],
)
def test_what_is_wrong_is_said_at_its_place(text, message, place) -> None:
    with fuseline.connect("cpu") as connection:
        for statement in SALES:
            connection.execute(statement)
        with pytest.raises(FuselineError, match=message) as caught:
            connection.sql(text).fetchall()
        if place is not None:
            assert caught.value.span is not None
            assert text[caught.value.span.start : caught.value.span.end] == place


def test_many_values_are_refused_before_the_plan_is_made() -> None:
    with fuseline.connect("cpu") as connection, pytest.raises(InvalidQuery, match="2001 columns"):
        connection.sql("pivot (select range as k from range(2001)) on k")
