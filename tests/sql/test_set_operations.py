"""UNION, INTERSECT and EXCEPT: bags and sets, NULLs, common types, precedence."""

from __future__ import annotations

import pytest

from fuseline.errors import InvalidQuery, ParseError
from tests.compare import assert_same_as_duckdb, connected
from tests.sql.tables import TABLES

OPERATIONS = ["union", "union all", "intersect", "intersect all", "except", "except all"]
QUERIES = [
    "select x from t union select z from u order by 1",
    "select x as a from t union all select z as b from u order by b, a",
    "select x from t union all select z from u order by x + 1",
    "select x from t union all select z from u order by x desc nulls first limit 3 offset 1",
    "(select x from t order by x limit 1) union all (select x from u order by x desc limit 1)",
    "select 1 union select 2 union all select 2 order by 1",
    "select 1 union all select 2 union select 2 order by 1",
    "select 2 union select 1 intersect select 1 order by 1",
    "select 1 except select 2 except select 1",
    "select 1 except (select 2 except select 1)",
    "select 1 union all select 2.5",
    "select 1 union all select 'a'",
    "select null union all select 1",
    "select null union all select null",
    "select 1::tinyint union all select 2::bigint",
    "select date '2024-01-01' union all select timestamp '2024-01-01 12:00:00'",
    "select x, p from u union select x, y from t",
    "select true union all select 1",
    "select [x] from t union all select '[7, 8]' union all select null",
    "select s from (select '{a: 5}' as s) union all select {'a': x} from t union all select null",
    "select map {'k': x} from t where x is not null union all select '{z=3}'",
    "select row(x, 'b') from t union all select '(4, c)'",
    "select [x] from t union all select ['z']",
    "select {'a': {'b': x, 'c': [x]}} as v from t union all by name select {'a': {'c': ['y']}, 'd': '1'} as v",
    "select row(x, 'a') from t union all select row('b', 2)",
    "select [1] intersect select '[1]'",
    "values (1, 'a') union values (2, 'b') order by 1",
    "select * from (select x from t union select x from u) q where x > 1",
    "select count(*) from (select x from t except all select x from u)",
    "select x from t where x in (select x from u intersect select 2)",
    "select x, y from t union by name select z as y, x from u",
    "select x, s from t union all by name select z, x from u",
    "from t select x union all from u select x",
    "select x from (select x from t union all select x from t) group by x having count(*) > 2",
]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("left", "right"), [
    ("select x from t", "select x from u"),
    ("select x, s from t", "select x, s from t where x > 1"),
    ("select x from t", "select x from empty"),
    ("select x from empty", "select x from t"),
    ("select x, y from t", "select x, z from u"),
    ("select s, d from t", "select s, d from t limit 2"),
])  # fmt: skip
def test_each_operation(operation: str, left: str, right: str, backend: str) -> None:
    ordered = "order by all limit 2" in right
    assert_same_as_duckdb(
        f"({left}) {operation} ({right})", TABLES, backend=backend, ordered=ordered
    )


@pytest.mark.parametrize("query", QUERIES)
def test_queries(query: str, backend: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend=backend)


def test_columns_of_one_name_have_no_place_by_name():
    with connected() as connection:
        for sides in (("1 as a, 2 as A", "3 as b"), ("1 as b", "3 as a, 4 as a")):
            with pytest.raises(InvalidQuery, match="stands more than once"):
                connection.sql(" union by name ".join(f"select {side}" for side in sides))


@pytest.mark.parametrize("query", ["select * except from t", "select t.* except from t"])
def test_except_after_a_star_is_no_list_without_parentheses(query):
    """DuckDB reads a set operation there, whose left side has no FROM; sqlglot reads over the word."""
    with connected(TABLES) as connection, pytest.raises(ParseError, match=r"\* EXCEPT \(a\)"):
        connection.sql(query)
