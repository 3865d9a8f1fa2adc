"""Other spellings of what there is: operators called by their signs, INTEGER ARRAY for INTEGER[], unlist for unnest."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb, connected

TABLE = "create table t as select * from (values (1, 2, 'ab'), (null, 3, 'b'), (-4, 0, null)) v(a, b, s)"
QUERIES = [
    'select "+"(a, b), "-"(a, b), "*"(a, b), "/"(a, b), "//"(a, 2), "%"(a, 3), "^"(b, 2), "**"(b, 2) from t',
    'select "&"(b, 1), "|"(b, 1), "<<"(b, 2), ">>"(b, 1), "~"(a), "@"(a), "+"(a), "-"(a) from t',
    'select "="(a, b), "!="(a, b), "<"(a, b), "<="(a, 1), ">"(s, \'a\'), ">="(a, 1.5) from t',
    """select "||"(s, 'x'), "~~"(s, 'a%'), "!~~"(s, 'a%'), "~~*"(s, 'A%'), "!~~*"(s, 'A%'), "~~~"(s, 'a*'), "^@"(s, 'a') from t""",
    """select "&&"([1], [1, 2]), "@>"([1, 2], [1]), "<@"([1], [2]), "||"([1], [2]), "<->"([1.0], [2.5]), "<=>"([1.0], [2.0])""",
    """select "->>"('{"a": 1}', 'a'), "+"(date '2020-01-01', 1), "-"(interval 1 day)""",
    'select list_reduce([1, 2, 3], lambda x, y: "+"(x, y)), main."+"(1, 2), (1)."+"(2)',
    'select "+"(a, b) as c, c + 1, sum("*"(a, b)) over () from t where ">"(b, 0) order by "-"(b)',
    "select [1, 2]::int array, [1, 2]::int array[2], cast([1.5] as decimal(4, 1) array), try_cast(['a'] as int array)",
    "select [null::int array], {'a': [1]}::struct(a varchar array), [1]::int array || [2], array[1, 2][1], 1 in array[1]",
    "select ['2020-01-01']::timestamp array, [date '2020-01-01']::date array[1]",
    "select unlist([1, 2, null]) + 1, 5 as x",
    "select unlist([{'a': 1}, {'a': 2}], recursive := true)",
    "select a, unlist([a, b]) from t order by all",
]


@pytest.mark.parametrize("query", QUERIES)
def test_they_are_what_they_stand_for(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, setup=(TABLE,), backend=backend, fuse=("always", "never"))


def test_columns_of_arrays() -> None:
    setup = (
        "create type many as int array",
        "create table u (x int array not null, y varchar array default ['a'], z double array[2], m many)",
        "insert into u (x, z) values ([1], [1, 2])",
        "alter table u add column w int array",
    )
    assert_same_as_duckdb("select * from u", setup=setup)
    assert_same_as_duckdb("describe u", setup=setup)


@pytest.mark.parametrize(
    "query", ['select "+"(1, 2, 3)', 'select "<>"(1, 2)', "select * from unlist([1])", "select 4!"]
)
def test_other_calls_are_refused(query: str) -> None:
    with connected({}) as connection:
        with pytest.raises(FuselineError) as refused:
            connection.sql(query)
        assert refused.value.span is not None


MATCHES = [
    "select s ~ any(l) as a, s ~ all(l) as b, s ~ some(['^a', 'b$']) as c, s ~ all(array['a', 'b']) as d from m",
    "select s !~ any(l) as a, s !~ all(l) as b, not s ~ any(l) as c, not (s ~ all(l)) as d, not s !~ any(l) as e from m",
    "select s !~ all(['a', 'x']) as a, (s !~ any (array ['a', 'x'])) as b, s ~ any ((['a'])) as c from m",
    "select s from m where s ~ any(['a']) and s !~ all(['b', 'c']) order by s",
    "select s ~ any(list(s)) as x from m group by s order by all",
    "select no_match(s) as a, '!~ any' ~ any(['x']) as b from m",
    "from of_matches order by all",
]


@pytest.mark.parametrize("query", MATCHES)
def test_matches_with_any_and_all_of_some_patterns(query: str, backend: str) -> None:
    setup = (
        "create table m as select * from (values ('abc', ['a.*', 'x']), ('q', ['a']), (null, ['a']), ('a', [null, 'b']), ('a', []), ('a', null)) v(s, l)",
        "create macro no_match(x) as x !~ any(['a', 'x'])",
        "create view of_matches as select s !~ any(['a', 'x']) as a, s !~ all(l) as b from m",
    )
    assert_same_as_duckdb(query, setup=setup, backend=backend, fuse=("always", "never"))


def test_patterns_are_a_list() -> None:
    with connected({}) as connection:
        for patterns in ("select 'a'", "'a'", "[1]"):
            with pytest.raises(FuselineError) as refused:
                connection.sql(f"select 'a' ~ any({patterns})")
            assert refused.value.span is not None
