"""ASOF and POSITIONAL joins."""

import random

import pyarrow as pa
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

TABLES = [
    "create table trades (s varchar, t int, n int)",
    "insert into trades values ('a', 1, 1), ('a', 5, 2), ('a', 10, 3), ('b', 5, 4), ('b', null, 5), (null, 5, 6), ('c', 9, 7), ('a', 5, 8)",
    "create table quotes (s varchar, t int, p decimal(6, 2))",
    "insert into quotes values ('a', 2, 1.5), ('a', 5, 2.5), ('a', 7, null), ('b', 1, 3.5), ('b', null, 4.5), (null, 1, 5.5), ('b', 6, 6.5)",
    "create table e (s varchar, t int, p int)",
    "create table m (ts timestamp, d double)",
    "insert into m values ('2024-01-01', 0), ('2024-01-02', 'nan'), ('2024-01-03', '-inf'), ('2024-01-04', -0.0)",
    "create table l (day date, f float)",
    "insert into l values ('2024-01-02', 'nan'), ('2024-01-01', 1), ('2024-01-05', 0)",
]
QUERIES = """
select * from trades asof join quotes using (s, t)
select * from trades asof left join quotes using (s, t)
select n, p from trades r asof join quotes q on r.s = q.s and r.t >= q.t
select n, p from trades r asof join quotes q on r.s = q.s and r.t > q.t
select n, p from trades r asof join quotes q on r.s = q.s and r.t <= q.t
select n, p from trades r asof join quotes q on r.s = q.s and r.t < q.t
select n, p from trades r asof left join quotes q on q.t <= r.t and q.s = r.s
select n, p from trades r asof left join quotes q on q.t > r.t and q.s = r.s
select n, q.t from trades r asof left join (select distinct on (t) * from quotes where t > 1 order by all) q on r.t > q.t
select n, q.p from trades r asof join quotes q on r.s = q.s and r.t + 1 >= q.t * 2 where q.p > 1
select * from trades asof join e using (s, t)
select * from trades asof left join e using (s, t)
select * from e asof left join quotes using (s, t)
select s, t, r.t, q.t, p from trades r asof join quotes q using (s, t) where t > 1
select r.* from trades r asof semi join quotes q on r.s = q.s and r.t >= q.t
select * from trades r asof anti join quotes q on r.s = q.s and r.t < q.t
select * from trades asof anti join quotes using (s, t)
select s, count(*) from trades asof semi join quotes using (s, t) group by s
select m.ts, l.day from m asof join l on m.ts >= l.day
select m.ts, l.day from m asof left join l on m.ts < l.day
select m.d, l.f from m asof left join l on m.d >= l.f
select * from trades asof right join quotes using (s, t)
select * from trades asof full join quotes using (s, t)
select s, t, r.t, q.t, p from trades r asof full join quotes q using (s, t) where q.p > 1 or r.n = 5
select n, p from trades r asof right join quotes q on r.s = q.s and r.t < q.t
select n, p from trades r asof full outer join quotes q on q.t <= r.t and q.s = r.s
select * from trades asof full join e using (s, t)
select * from trades asof right join e using (s, t)
select m.ts, l.day from m asof full join l on m.ts < l.day
select q.s, count(n), sum(p) from trades r asof right join quotes q using (s, t) group by q.s
select r.s, count(p), sum(p) from trades r asof left join quotes q using (s, t) group by r.s
select a.n, b.p, c.p from trades a asof join quotes b on a.s = b.s and a.t >= b.t asof left join quotes c on a.s = c.s and a.t < c.t
select n, (select count(*) from trades x asof join quotes q using (s, t) where x.n <= trades.n) as c from trades
select * from (select 1 as x union all select 2 order by x) a positional join (select 'p' as y union all select 'q' union all select 'r' order by y) b
select a.range, b.range from range(3) a positional join range(5, 7) b
select * from e positional join (select 1 as z) v
select count(*) from e a positional join e b
"""


@pytest.mark.parametrize("query", QUERIES.strip().splitlines())
def test_rows_are_paired_by_order(query, backend) -> None:
    assert_same_as_duckdb(query, setup=TABLES, backend=backend, fuse=("always", "never"))


def test_all_rows_of_the_right_side_stay_where_the_left_one_has_none() -> None:
    """DuckDB loses some here: those of all keys but one."""
    with fuseline.connect("cpu") as connection:
        for statement in TABLES:
            connection.execute(statement)
        for side in ("right", "full"):
            text = f"select e.p, q.p from e asof {side} join quotes q using (s, t) order by q.p"
            found = connection.sql(text).fetchall()
            assert [float(p) for _, p in found[:-1]] == [1.5, 2.5, 3.5, 4.5, 5.5, 6.5]
            assert found[-1] == (None, None)


def test_positional_rows_stand_in_their_order() -> None:
    with fuseline.connect("cpu") as connection:
        text = "select a.range, b.range from range(4) a positional join range(10, 12) b"
        assert connection.sql(text).fetchall() == [(0, 10), (1, 11), (2, None), (3, None)]


@pytest.mark.parametrize("seed", range(4))
def test_random_rows_are_paired_as_in_duckdb(seed, backend) -> None:
    draw = random.Random(seed)
    groups = draw.choice([1, 5, 300])

    def table(rows: int, times: list[float]) -> pa.Table:
        keys = [draw.choice([None, *range(groups)]) for _ in range(rows)]
        return pa.table({"k": pa.array(keys, pa.int32()), "t": times, "v": list(range(rows))})

    left = table(500, [draw.choice([None, draw.randint(-50, 50) / 2]) for _ in range(500)])
    distinct = draw.sample(range(-2000, 2000), 400)  # of equal times any row may be found
    right = table(400, [t / 40 for t in distinct])
    for sign in (">=", ">", "<=", "<"):
        for side in ("", "left", "right", "full"):
            query = f"select l.*, r.t as rt, r.v as rv from l asof {side} join r on l.k = r.k and l.t {sign} r.t"
            assert_same_as_duckdb(query, {"l": left, "r": right}, backend=backend)
        for kind in ("semi", "anti"):
            query = f"select * from l asof {kind} join r on l.k = r.k and l.t {sign} r.t"
            assert_same_as_duckdb(query, {"l": left, "r": right}, backend=backend)


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        (
            "from trades asof join quotes on trades.s = quotes.s",
            "here are 0 comparisons",
            "trades.s = quotes.s",
        ),
        (
            "from trades a asof join quotes b on a.t > b.t and a.n > b.p",
            "here are 2 comparisons",
            "a.t > b.t and a.n > b.p",
        ),
        (
            "from trades a asof join quotes b on a.t > b.t and a.n > 1",
            "takes equalities",
            None,
        ),
        (
            "from trades a asof join quotes b on a.t > b.t or a.s = b.s",
            "takes equalities",
            "a.t > b.t or a.s = b.s",
        ),
        (
            "from trades a asof join quotes b on a.t > b.t and a.n <> b.p",
            "takes equalities",
            "a.n <> b.p",
        ),
        ("from trades a asof join lateral (select a.t) b on a.t > b.t", "LATERAL", None),
        ("from trades a asof join quotes b using (zz)", 'no column "zz"', "zz"),
        ("from trades a positional join quotes b on a.t = b.t", "not supported here", "a.t = b.t"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(text, message, place) -> None:
    with fuseline.connect("cpu") as connection:
        for statement in TABLES:
            connection.execute(statement)
        with pytest.raises(FuselineError, match=message) as caught:
            connection.sql(text).fetchall()
        if place is not None:
            assert caught.value.span is not None
            assert text[caught.value.span.start : caught.value.span.end] == place
