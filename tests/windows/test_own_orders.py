"""ORDER BY inside of window functions: they see the rows of their frame in another order than the window's."""

from __future__ import annotations

import random

import duckdb
import pytest

from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb, connected

from .window_queries import Drawn, table

TABLES = {"t": table(90, 21), "none": table(0, 1), "one": table(1, 2)}
QUERIES = """
select id, rank(order by k) over (partition by p order by id) as a, row_number(order by s desc, id) over () as b from t
select id, percent_rank(order by k nulls first) over (partition by q) as a, cume_dist(order by k desc) over (order by id) as b from t
select id, ntile(3 order by k, id) over (order by id rows between 5 preceding and 3 following) from t
select id, lag(v order by k, id) over (partition by p), lead(s, 2, 'none' order by id desc) over (order by id rows between 4 preceding and 4 following) from t
select id, first_value(v order by k, id) over w as a, last_value(s order by f, id) over w as b, nth_value(n, 2 order by id desc) over w as c from t window w as (partition by q order by id)
select id, first_value(v order by k, id ignore nulls) over (order by id rows between 3 preceding and 3 following exclude current row) from t
select id, sum(u order by id) over (order by id), string_agg(s, '-' order by k, id) over (partition by p order by id rows 3 preceding) from t
select id, rank(order by id) over (order by k groups between 1 preceding and current row) as a, rank(order by 1) over (order by id) as b from t
""".strip().splitlines()
REFUSED = """
select ^dense_rank(order by k)^ over () from t
select ^rank(order by k)^ over (order by id rows between 1 preceding and current row exclude current row) from t
select ^row_number(distinct k)^ over (order by id) from t
""".strip().splitlines()


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("query", QUERIES)
def test_own_order(query: str, name: str, backend: str) -> None:
    assert_same_as_duckdb(query.replace("from t", f"from {name}"), TABLES, backend=backend)


@pytest.mark.by_day(3)
@pytest.mark.parametrize("seed", range(60))
def test_random_own_orders(seed: int, backend: str) -> None:
    draw = random.Random(seed)
    drawn = Drawn(seed)
    numbered = ["rank({})", "row_number({})", "percent_rank({})", "cume_dist({})", "ntile(3 {})"]
    taken = ["first_value(s {})", "last_value(v {})", "nth_value(f, 2 {})", "lag(d {})"]
    function = draw.choice([*numbered, *taken, "lead(n, 2 {})"])
    keys = [draw.choice(["k", "s", "f", "d desc", "n", "-k nulls first"]), "id"]
    if "rank" in function and draw.random() < 0.7:
        keys.pop()
    call = function.format(f"order by {', '.join(keys)}")
    for _ in range(50):  # until the row itself is in its frame, without which most have no meaning
        window = drawn.window(total=True, frames=True)
        if (
            "exclude" not in window
            and " following and" not in window
            and "preceding and 1 pre" not in window
        ):
            break
    query = f"select id, {call} over ({window}) as c from t"
    try:
        duckdb.connect().register("t", TABLES["t"]).execute(query)
    except duckdb.Error:
        return
    assert_same_as_duckdb(query, TABLES, backend=backend)


@pytest.mark.parametrize("marked", REFUSED)
def test_an_order_without_meaning_is_refused_at_its_place(marked: str) -> None:
    before, place, after = marked.split("^")
    with connected(TABLES) as connection, pytest.raises(FuselineError) as refused:
        connection.sql(before + place + after).to_arrow()
    span = refused.value.span
    assert span is not None
    assert len(before) <= span.start < len(before + place)
