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
