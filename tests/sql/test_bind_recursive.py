"""WITH RECURSIVE."""

import pytest

import fuseline
from fuseline.errors import (
    ConversionError,
    ExecutionError,
    FuselineError,
    Interrupted,
    MemoryLimitError,
    ParseError,
    UnknownColumn,
)
from tests.compare import assert_same_as_duckdb, connected

TABLES = [
    "create table edges (a int, b int)",
    "insert into edges values (1, 2), (2, 3), (3, 1), (3, 4), (5, 6), (6, null), (null, 7)",
    "create table staff (id int, boss int, name varchar, pay decimal(9, 2))",
    "insert into staff values (1, null, 'Ada', 9.5), (2, 1, 'Bo', 5), (3, 1, 'Cy', 4.25), (4, 2, 'Di', 3), (5, 4, 'Ed', null)",
]
QUERIES = """
with recursive r as (select 1 as n union all select n + 1 from r where n < 5) from r
with recursive r(a, b) as (select 1, 2 union all select a + 1, b * 2 from r where a < 4) from r
with recursive r(a) as (select 1, 2 as c union all select a + 1, c from r where a < 3) from r
with recursive r as (select 1 as n union all select n + 0.5 from r where n < 3) from r
with recursive r as (select 1.5 as n union all select n + 1 from r where n < 3) from r
with recursive r as (select 'a' as n union all select n || 'b' from r where length(n) < 3) from r
with recursive r as (select 1 as n union select (n % 3) + 1 from r) from r
with recursive r as (select 1::hugeint as n, 0.0::float as f union select n * 7, 'nan'::float from r where n < 100000000000000000000) from r
with recursive r as (select null::int as n, 'nan'::double as d union select n, d from r) from r
with recursive r as (select -0.0::double as d union select 0.0::double from r) from r
with recursive r as (select date '2024-01-30' as d, timestamp '2024-01-30 10:00' as t union all select (d + interval 1 day)::date, t + interval 1 day from r where d < '2024-02-02') from r
with recursive r as ((select 1 as n) union all (select n + 1 from r where n < 5 limit 1)) from r
with recursive r as (select 1 as n union all select max(n) + 1 from r having max(n) < 4) from r
with recursive r as (select 1 as n union all select r.n + 1 from r join r as s on r.n = s.n where r.n < 3) from r
with recursive r as (select 1 as n union all select n + 1 from (select * from r) where n < 3) select * from r a join r b using (n)
with recursive r as (select 1 as n union all select n + 1 from r where n < 3), s as (select n as m from r union all select m + 10 from s where m < 20) from s
with recursive r as (select 1 as n union all select a.n + 1 from (values (1), (2)) v(k) left join r a on a.n = v.k where a.n < 4) from r
with recursive r as (select 1 as n union all (with z as (from r) select n + 1 from z where n < 3)) from r
with recursive r as materialized (select 1 as n union all select n + 1 from r where n in (select n from r) and n < 4) select sum(n) from r
with recursive r as (select 1 as n where false union all select n + 1 from r) from r
with recursive r as (select 1 as n) from r
with recursive reached as (select 1 as node union select b from edges join reached on a = node) from reached
with recursive paths(a, b, length) as (select a, b, 1 from edges union all select p.a, e.b, length + 1 from paths p join edges e on p.b = e.a where length < 4) select a, b, count(*), min(length) from paths group by all
with recursive tree as (select id, name, 0 as depth, name as path from staff where boss is null union all select s.id, s.name, depth + 1, path || '/' || s.name from staff s join tree t on s.boss = t.id) from tree
with recursive tree as (select id, id as top, pay from staff union all select s.id, t.top, s.pay from staff s join tree t on s.boss = t.id) select top, count(*), sum(pay) from tree group by top
select n, (with recursive r as (select 1 as k union all select k + 1 from r where k < 3) select sum(k) from r) as s from (values (1), (2)) v(n)
select * from (with recursive r as (select 1 as n union all select n + 1 from r where n < 3) from r) where n > 1
with recursive r(a, b) using key (a) as (select 1, 0 union select a, b + 1 from r where b < 3) from r
with recursive r(a, b) using key (a) as (select 1, 0 union select a, b from r) from r
with recursive r(a, b) using key (b, a) as (select 1, 0 union select (a + 1) % 3, b from r where b < 5) from r
with recursive r(a, b, c) using key (a) as (select 1, 0, [1] union select (a + 1) % 3, b + 1, [a] from r where b < 5) from r
with recursive r(a, b) using key (a) as (select null::int, 'nan'::double union select a, b from r) from r
with recursive r as (select date '9999-12-30' as d, timestamp '9999-12-31 23:00:00' as m union select d + 1, m + interval '1 hour' from r where d < '10000-01-02') select d::varchar, m::varchar from r
with recursive r(a, b) using key (a) as (from (values (1, 0), (1, 5), (2, 7), (2, 7)) union select 90 + a, (select count(*) from r) from r where a < 4) from r
with recursive r(a, b) using key (a) as (from (values (1, 0), (1, 5), (2, 7), (2, 7)) union all select 90 + a, (select count(*) from r) from r where a < 4) from r
with recursive r(a, b) using key (a) as (from (values (1, 0), (2, 7)) union select r.a + 1, (select count(*) from recurring.r) from r where a < 4) from r
with recursive r(a, b) as (select 1, 1 union (with recursive s(a, b) as (select a, b + 1 from r where b < 4 union select a + 1, b from s where a < 4) from s)) from r
with recursive r(a, b) as (select 1, 1 union all select * from (with recursive s(c, d) using key (d) as (select a, b + 1 from r where b < 4 union select c + 1, d from s where c < (select max(a) + 3 from r)) from s)) from r
with recursive near(node, hops) using key (node) as (select 1, 0 union select e.b, n.hops + 1 from near n join edges e on e.a = n.node left join recurring.near k on k.node = e.b where k.hops is null) from near
"""


@pytest.mark.by_day
@pytest.mark.parametrize("query", QUERIES.strip().splitlines())
def test_rows_are_made_of_rows_until_there_are_no_more(query, backend, fuse) -> None:
    assert_same_as_duckdb(query, setup=TABLES, backend=backend, fuse=(fuse,))


def test_many_rows_in_a_round_and_many_rounds(backend) -> None:
    wide = "with recursive r as (select range as n, 0 as i from range(20000) union all select n + 1, i + 1 from r where i < 3) select i, count(*), sum(n) from r group by i"
    assert_same_as_duckdb(wide, backend=backend)
    deep = "with recursive r as (select 1 as n union all select n + 1 from r where n < 60) select count(*), sum(n) from r"
    assert_same_as_duckdb(deep, backend=backend)


def test_a_view_and_a_repeated_text_see_the_tables_of_now() -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute("create table edges (a int, b int); insert into edges values (1, 2)")
        connection.execute(
            "create view reached as with recursive r as (select 1 as node union select b from edges join r on a = node) from r"
        )
        assert connection.sql("select count(*) from reached").fetchall() == [(2,)]
        connection.execute("insert into edges values (2, 3)")
        assert connection.sql("select count(*) from reached").fetchall() == [(3,)]
        connection.execute(
            "create table kept as from reached; delete from edges where a in (select node from reached)"
        )
        assert connection.sql("select count(*) from kept").fetchall() == [(3,)]


ENDLESS = (
    "with recursive r as (select 1 as n union all select (n % 7) + 1 from r) select count(*) from r"
)


def test_what_never_ends_is_stopped() -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute("set recursion_limit = 50")
        with pytest.raises(ExecutionError, match="50 rounds") as caught:
            connection.sql(ENDLESS).fetchall()
        assert caught.value.span is not None
        connection.execute("reset recursion_limit; set statement_timeout = '200ms'")
        with pytest.raises(Interrupted):
            connection.sql(ENDLESS).fetchall()
        connection.reset_option("statement_timeout")  # which a statement would be under, too
        connection.execute("set memory_limit = '1MB'")
        with pytest.raises(MemoryLimitError):
            connection.sql(
                "with recursive r as (select range as n from range(50000) union all from r) select count(*) from r"
            ).fetchall()
        connection.execute("reset memory_limit")
        assert connection.sql("select 1").fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("text", "kind", "message", "place"),
    [
        (
            "with recursive r as (select 1 as n union all select 'x' from r) from r",
            ConversionError,
            "'x'",
            None,
        ),
        (
            "with recursive r as (select 1::tinyint as n union all select n + 200 from r) from r",
            ConversionError,
            "201",
            None,
        ),
        (
            "with recursive r as (select n from r union all select 1) from r",
            FuselineError,
            "reads itself",
            "n from r union all select 1",
        ),
        (
            "with recursive r as (select 1 as n intersect select n from r) from r",
            FuselineError,
            "reads itself",
            "1 as n intersect select n from r",
        ),
        (
            "with recursive r as (select 1 as n, 2 as m union all select n from r) from r",
            FuselineError,
            "2 and 1 columns",
            None,
        ),
        (
            "with recursive r as (select 1 as n union all select n from r order by n) from r",
            FuselineError,
            "belong to the query",
            "n",
        ),
        (
            "with recursive r as (select 1 as n union all select m from r) from r",
            FuselineError,
            'no column "m"',
            "m",
        ),
        (
            "with recursive r(a, b) as (select 1 union all select a from r) from r",
            FuselineError,
            "given 2 names",
            None,
        ),
        (
            "with recursive r using key (m) as (select 1 as n union select n from r) from r",
            FuselineError,
            'no column "m"',
            "m",
        ),
        (
            "with r using key (n) as (select 1 as n) from r",
            FuselineError,
            "USING KEY is supported in WITH RECURSIVE alone",
            "r",
        ),
        (
            "select (with recursive r as (select t.a as n union all select n + 1 from r where n < 5) select sum(n) from r) from edges t",
            FuselineError,
            "query around it",
            None,
        ),
        (
            "with r as (select 1 as n union all select n from r) from r",
            FuselineError,
            'no table "r"',
            "r",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_place(text, kind, message, place) -> None:
    with fuseline.connect("cpu") as connection:
        connection.execute(TABLES[0])
        with pytest.raises(kind, match=message) as caught:
            connection.sql(text).fetchall()
        if place is not None:
            span = caught.value.span
            assert span is not None
            assert text[span.start : span.end].startswith(place[:5])


RECURSIVE_VIEWS = [
    ("v(n) as select 1 union all select n + 1 from v where n < 5", "from v"),
    ("v(n, m) as values (1, 2) union all select n + 1, m * 2 from v where n < 3", "from v"),
    ("v(n) as select 1 union select n % 3 + 1 from v", "from v order by n"),
    ("v(n) as select 7", "from v"),
    ('"R v"("n m") as select 1 union all select "n m" + 1 from "R v" where "n m" < 3', 'from "R v"'),
]  # fmt: skip


@pytest.mark.parametrize(("view", "query"), RECURSIVE_VIEWS)
def test_recursive_views(view: str, query: str, backend: str) -> None:
    for kind in ("create", "create temp", "create or replace"):
        setup = (f"{kind} recursive view {view}",)
        assert_same_as_duckdb(query, setup=setup, backend=backend)


def test_a_recursive_view_names_its_columns() -> None:
    with connected({}) as connection:
        with pytest.raises(ParseError, match="names of its columns") as raised:
            connection.sql("create recursive view v as select 1 as n union all select n from v")
        assert raised.value.span is not None
        with pytest.raises(UnknownColumn, match="nosuch"):
            connection.sql("create recursive view v(n) as select nosuch")


@pytest.mark.parametrize(
    "query",
    ["query_table('c')", "query_table(['c', 't'])", "query('select a + 1 from c')", "query_table('main.t')"],
)  # fmt: skip
def test_texts_of_queries_read_entries_of_with(query: str) -> None:
    setup = ("create table t as select 1 as a",)
    assert_same_as_duckdb(f"with c as (select 9 as a) from {query}", setup=setup)


ENTRIES_WITHIN = [
    "with x as (select 1 as q) select q from x union all select n + 1 from v where n < 4",
    "with x as (select 2 as q) select q from x union all select n + q from v, x where n < 7",
    "with x as (select 2 as q), y as (from x) select q from y union select n + q from v, x where n < 7",
    "with recursive w(k) as (select 1 union all select k + 1 from w where k < 3) select max(k) from w union all select n + 1 from v where n < 5",
]


@pytest.mark.parametrize("query", ENTRIES_WITHIN)
def test_an_entry_that_reads_itself_has_entries_of_its_own(query: str, backend: str) -> None:
    whole = f"with recursive v(n) as ({query}) from v"
    assert_same_as_duckdb(whole, backend=backend, fuse=("always", "never"))
    setup = (f"create recursive view v(n) as {query}",)
    assert_same_as_duckdb("from v", setup=setup, backend=backend)
