"""The name of a table as a struct of its columns, and comparisons in list comprehensions."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb

QUERIES = (
    "select t, t is null, t::varchar, t = {'a': 1} from (select 1 as a) t order by t",
    "select to_json(t), row_to_json(t), json_object('row', t) from (select 1 as a, [1] as b) t",
    "select t from (values (1)) a(i) left join (values (2, 3)) t(j, k) on i = j",
    "select count(t), list(t order by a) from (values (1), (2)) t(a)",
    "select t from (values (1)) t(t)",
    "select (select t) as x, u.b from (values (1)) t(i), (select 1 as b) u",
    "select x from (values (1, 2)) t(a, b), lateral (select t as x)",
    "select t, count(*) from (values (1), (1)) t(a) group by t",
    "select [x > 1 for x in l], [x > 1 and x < 3 for x in l], [not x > 1 for x in l], [-x for x in l] from (select [1, 2, 3] as l)",
    "select [x + 1 > 2 for x in [1, 2] if x > 0], [x between 1 and 2 for x in [1, 3]], [x || 'a' = 'ba' for x in ['b']]",
    "select [[y > x for y in [1, 2]] for x in [1, 2]], [x > 1 and u for x in [1, 2]] from (select true as u)",
)


@pytest.mark.parametrize("query", QUERIES)
def test_queries(query: str) -> None:
    assert_same_as_duckdb(query)
