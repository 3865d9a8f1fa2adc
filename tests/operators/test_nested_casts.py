"""Tests of casts between nested types, and of structs with other fields that meet."""

import pytest

from tests.compare import assert_same_as_duckdb

ROWS = {"s": [{"a": 1, "b": None}, None, {"a": 3, "b": 4}], "k": [{"b": 1}, {"b": None}, None]}


@pytest.mark.parametrize("query", [
    "select s from t union all select k from t", "select {'a': 1} as x union all select {'b': 2.5}", "select [{'a': 1}, {'c': 'x'}] as l",
    "select case when true then {'a': 1} else {'b': 2} end as c, coalesce({'a': 1}, {'b': 2}) as d, if(false, {'a': 1}, {'b': 2}) as e",
    "select {'a': 1} = {'b': 1} as x, {'a': 1, 'b': 2} = {'b': 2, 'a': 1} as y, {'a': 1} < {'b': 1} as z, {'a': 1} is distinct from {'b': 1} as w",
    "select {'a': 1} in ({'b': 1}) as x, {'a': 1} in (select {'b': 1}) as y, greatest({'a': 1}, {'b': 2}) as z, nullif({'a': 1}, {'b': 1}) as w",
    "select {'a': {'x': 1}} as n union all select {'a': {'y': 2}}", "select {'A': 1} as x union all select {'a': 2.5}",
    "from (values ({'a': 1}), ({'b': 2}), (null), ({'a': 3, 'c': [1]})) v(x)", "select map {'k': {'a': 1}} as m union all select map {'k': {'b': 1}}",
    "select x, count(*) as n from (select s as x from t union all select k from t) group by x", "select t.s, k from t join t u using (k) where t.s <> {'c': 1}",
    "select {\"a\": 1, \"b c\": {\"d\": [2]}} as s, {\"a\": 1}.\"a\" as x",
    "select s::map(varchar, int) as m from t", "select k::map(varchar, varchar) as m, (s::map(varchar, bigint))['a'] as a from t where k is not null",
    "select {\"1\": 100, \"2\": 200}::map(int, bigint) as a, try_cast({\"a\": 'x', \"b\": '2'} as map(varchar, int)) as b, [{'a': 1}]::map(varchar, int)[] as c",
    "select {'p': {'n': 'x', 'm': 25}}::map(varchar, struct(n varchar, m bigint)) as a, {'a': {'b': 1}}::map(varchar, map(varchar, double)) as b",
    "select s::map(varchar, int) as m from t where false", "select {'d': date '2024-01-01', 't': time '12:00'}::map(varchar, varchar) as m",
])  # fmt: skip
def test_structs_meet_by_the_names_of_their_fields(query: str) -> None:
    assert_same_as_duckdb(query, {"t": ROWS}, backend="cpu", fuse=("always", "never"))
