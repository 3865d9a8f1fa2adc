"""Window functions: each clause and function as DuckDB answers them, fused and one operator at a time."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb

from .window_queries import table

TABLES = {"t": table(60, 3), "none": table(0, 1), "one": table(1, 2)}
QUERIES = """
select id, row_number() over (order by id), rank() over (partition by p order by k), dense_rank() over (order by s desc) from t
select id, percent_rank() over (order by k), cume_dist() over (partition by q order by k), ntile(7) over (order by id) from t
select id, count(*) over (), sum(u) over (partition by p), max(s) over (partition by p, q), avg(m) over (partition by f) from t
select id, lag(v) over (order by id), lead(s, 2, 'none') over (partition by q order by id), lag(n, -1, n) over (order by id) from t
select id, lag(u, 1, 1.5) over (order by id) from t
select id, first_value(d) over w as a, last_value(d) over w as b, nth_value(d, 3) over w as c from t window w as (partition by p order by id)
select id, first(b) over (order by id), last(s) over (order by id), arbitrary(f) over (order by id) from t
select id, last_value(v ignore nulls) over (order by id), nth_value(s, 2 respect nulls) over (order by id) from t
select id, sum(n / 1000) over (order by id), sum(v) over (order by id desc) from t
select id, sum(u) over (order by id rows between unbounded preceding and unbounded following exclude current row) from t
select id, sum(distinct u) over (partition by p order by k), count(distinct s) over (order by id rows 5 preceding) from t
select id, string_agg(s, '|' order by id desc) over (order by id rows 3 preceding) from t
select id, median(k) over (order by id rows between 2 preceding and 2 following), mode(id) over (order by id) from t
select id, sum(u) over v as a from t window w as (partition by p), v as (w order by id rows 2 preceding)
select id, sum(u) over (w order by id desc) as a from t window W as (partition by q)
select id, sum(u) over (w partition by q) as a from t window w as (order by k)
select p, sum(sum(u)) over (), rank() over (order by count(*), p), sum(u) from t group by p
select p, q, row_number() over (order by grouping(p, q), p, q), grouping(p), sum(u) from t group by rollup (p, q)
select p, sum(u) as total from t group by p having count(*) > 2 qualify rank() over (order by total desc, p) <= 2
select id, row_number() over (partition by p order by id) as n from t qualify n = 2
select id from t qualify row_number() over (partition by p order by id desc) = 1 and max(id) over () > 3
select -id as id, row_number() over (order by id) as n from t qualify id < 20
select distinct p, max(u) over (partition by p) from t
select id from t order by row_number() over (order by k desc, id)
select id, k from t order by sum(u) over (partition by k), id limit 4
select distinct on (place) row_number() over (partition by p order by id) as place, max(id) over () from t order by place
select p as h, count(*) over (partition by h) as c from t
select id, row_number() over (order by id) as a, a + 1 as b from t
select (select max(r) from (select row_number() over (order by o.id) as r from t o where o.p = t.p)) as most, id from t
select id, (select sum(t.u) over ()) as own from t
select * from (select id, p, row_number() over (partition by p order by id) as n from t) where p = 1 and n < 3
select * from (select id, p, sum(u) over (partition by p) as n from t) where p > 0 and id > 10
select id, n from (select id, rank() over (order by k) as n, sum(v) over (order by id) from t) limit 3 offset 500
select a.id, b.n from t a join (select id, count(*) over (order by id) as n from t) b using (id)
select id, sum(u) over (order by id rows between (select 2) preceding and current row) from t
select p, sum(p) over (order by p rows between count(*) preceding and current row) from t group by p
select id, sum(u) over (order by 1), sum(u) over (partition by 'x'), count(*) over (partition by null order by null) from t
select id, count(*) over (order by d range between interval 1 month preceding and interval 2 day following) from t
select id, count(*) over (order by f desc range between 1.5 preceding and current row exclude ties) from t
select id, min(t) over (order by t range between interval 30 day preceding and current row), max(t) over (order by -k) from t
select id, count(*) over (order by k groups between 1 preceding and 1 following exclude group) from t
select id, avg(f) filter (where k > 0) over (order by id rows between 3 preceding and 1 following) from t
select id, row_number() over (order by id rows between 1 preceding and current row), lag(id) over (order by id rows current row) from t
select row_number() over () as n union all select 2
select id, sum(u) over (order by id range between id preceding and u following) from t where u is not null
select id, stddev_samp(m) over (order by id), corr(u, k) over (order by id rows 9 preceding), var_pop(u) over (order by k) from t
select id, bool_and(b) over (order by id), bool_or(b) over (order by k), bit_xor(v) over (order by id rows 4 preceding) from t
""".strip().splitlines()


@pytest.mark.parametrize("query", QUERIES)
def test_window(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend, fuse=("always", "never"))


@pytest.mark.parametrize("name", ["none", "one"])
@pytest.mark.parametrize("query", QUERIES[:16])
def test_few_rows(query: str, name: str, backend: str) -> None:
    assert_same_as_duckdb(query.replace("from t", f"from {name}"), TABLES, backend=backend)


NAMED = (
    "sum(u) over (order by id rows 2 preceding)", "count(*) over (partition by p, k + 1 order by id desc nulls first)",
    "count(distinct p) filter (where k > 1) over (order by id range between unbounded preceding and current row)",
    "first(s respect nulls) over ()", "lag(s, 1 ignore nulls) over (order by id)", "-row_number() over (order by id)",
    "mode(p) over (order by p range between unbounded preceding and unbounded following)",
    "sum(k) over (order by k groups between 1 preceding and 2 following exclude ties)",
)  # fmt: skip


@pytest.mark.parametrize("call", NAMED)
def test_a_result_is_named_as_in_duckdb(call: str) -> None:
    assert_same_as_duckdb(f"select {call} from t", TABLES, backend="cpu")


def test_keys_of_all_64_bits_are_sorted_as_they_are(backend: str) -> None:
    """A key and a row's number fit one integer unless the key's span does not."""
    keys = [-(2**63), 3, -5, 2**63 - 1, 0, -(2**63), -(2**62), 5]
    tables = {"t": {"k": keys, "id": list(range(8))}}
    query = "select id, row_number() over (order by k, id) as n, rank() over (order by k) as r from t where k {}"
    for condition in ("< 10", "is not null", "> -10"):
        assert_same_as_duckdb(query.format(condition), tables, backend=backend)
