"""The first rows of each group, by a condition on row_number() or rank(): the others are left out before anything is computed."""

from __future__ import annotations

import random

import pytest

from tests.compare import assert_same_as_duckdb, connected
from tests.limits import SetLimits

from .window_queries import table

TABLES = {"t": table(300, 8)}
CUT = """
select id, p from t qualify row_number() over (partition by p order by id) <= 3
select id, p from t qualify row_number() over (partition by p order by id desc) = 1
select id, k from t qualify rank() over (partition by q order by k nulls first) < 3
select * from (select id, k, row_number() over (partition by p, q order by s, id) as n from t) where 2 >= n and k > 0
select id, sum(v) over w as a, count(*) over w as b from t window w as (partition by p order by k) qualify rank() over w <= 4
select id, dense_rank() over w as dense, first_value(s) over w as f, rank() over w as r from t window w as (partition by p order by k, s) qualify r <= 5 and dense < 3
select id, max(u) over (w rows between 3 preceding and 1 preceding) as m from t window w as (order by f, id) qualify row_number() over w between 1 and 4
select id from t qualify row_number() over (order by d desc nulls last, id) = 7
""".strip().splitlines()
WHOLE = """
select id, lead(id) over w as n from t window w as (partition by p order by id) qualify row_number() over w <= 3
select id, count(*) over (w rows between current row and unbounded following) as n from t window w as (partition by p order by id) qualify row_number() over w <= 3
select id, cume_dist() over w as n from t window w as (partition by p order by id) qualify rank() over w <= 3
select id, p from t qualify row_number() over (partition by p order by id) >= 3
select id, p from t qualify dense_rank() over (partition by p order by k) <= 2
select id, p from t qualify row_number() over (partition by p order by id) <= 2 or k = 1
""".strip().splitlines()


@pytest.fixture(autouse=True)
def always(limits: SetLimits) -> None:
    limits(LEAST_CUT=0, LEAST_SUBSET=0)


@pytest.mark.parametrize("query", [*CUT, *WHOLE])
def test_the_first_of_each_group(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend, fuse=("always", "never"))


def test_the_plan_says_where_rows_are_left_out() -> None:
    with connected(TABLES) as connection:
        shown = [str(connection.sql(query).explain()) for query in (*CUT, *WHOLE)]
    assert ["rank up to" in text for text in shown] == [True] * len(CUT) + [False] * len(WHOLE)


@pytest.mark.parametrize("seed", range(30))
def test_random_first_rows(seed: int, backend: str) -> None:
    draw = random.Random(seed)
    function = draw.choice(["row_number()", "rank()"])
    keys = [
        draw.choice(["k", "s", "f", "d", "n", "b"]) + draw.choice(["", " desc", " nulls first"])
    ]
    partition = draw.choice(["", "partition by p ", "partition by p, q ", "partition by b "])
    condition = draw.choice(["<= 1", "< 3", "= 2", "<= 5", "<= 1000"])
    window = f"{partition}order by {', '.join([*keys, 'id'])}"
    calls = draw.sample(
        [
            "sum(u) over w as a",
            "count(k) over w as b",
            "min(s) over w as c",
            "count(*) over w as d",
        ],
        2,
    )
    query = (
        f"select id, {', '.join(calls)} from t window w as ({window})"
        f" qualify {function} over w {condition}"
    )
    assert_same_as_duckdb(query, TABLES, backend=backend)
