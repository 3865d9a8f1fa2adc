"""WITH ORDINALITY behind any call in FROM, words that are names in quotes, and clauses that stand twice."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb
from tests.statements.both_engines import assert_same_steps

TABLES = {
    "t": {
        "a": [1, 2, 3, None, 5],
        "b": ["x", "y", None, "x", "z"],
        "s": [{"f": 1, "g": "p"}, {"f": 2, "g": None}, None, {"f": None, "g": "q"}, {"f": 5, "g": "r"}],
        "l": [[1, 2], [], None, [None], [3]],
    }
}  # fmt: skip
QUERIES = """
select * from range(1, 10, 3) with ordinality
select * from range(2) with ordinality t(a, b)
from range(2) with ordinality as t
select i, x, o from range(3) r(i), range(i) with ordinality as q(x, o) order by all
from unnest([4, 5]) with ordinality
select a, v, n from t, unnest(l) with ordinality as u(v, n) order by all
select * from generate_series(date '2024-01-01', date '2024-01-03', interval 1 day) with ordinality g(d, n)
from repeat('x', 2) with ordinality
from range(3) with ordinality where ordinality = 2
select * from range(0) with ordinality
select a from t order by a limit all
select a from t order by a limit all offset 2
select a as "all", b from t order by "all" desc nulls first
select a as "All", -a as x from t order by "All", x
select a from t order by "a" + 1 desc, b
select a as "all", b from t order by all
from t pivot (sum(a) for b in ('x', 'y') group by s) pivot (count(*) for s in ({'f': 1, 'g': 'p'}))
from (select 1 as a, 'x' as b, 'p' as c, 5 as v) pivot (sum(v) for b in ('x')) pivot (max(x) for c in ('p'))
from (select 1 as a, 2 as b, 3 as c) unpivot (v for n in (a, b)) unpivot (w for m in (c))
pivot (select a as x, b, a from t) on b using sum(a) group by x order by all
select s.* exclude (f) from t
select s.* exclude g, a from t
select repeat(l, a), repeat([a], 2), repeat(b, 2), repeat([l], 2), repeat(['a', null], 2) from t
select repeat([1, 2], 0), repeat([1], -1), repeat([], 2), repeat(null::int[], 2), list_transform([2, 3], lambda x: repeat([x], x))
""".strip().splitlines()


@pytest.mark.parametrize("query", QUERIES)
def test_a_query(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, fuse=("always", "never"))


def test_an_enum_of_a_query_has_each_text_once() -> None:
    assert_same_steps(
        [
            "create type e as enum (values ('b'), ('a'), (null), ('b'))",
            "select enum_range(null::e), 'b'::e < 'a'::e",
            "select 'c'::e",
        ],
        device="cpu",
    )
