"""`default_order` and `default_null_order` sort what names no direction, in ORDER BY, aggregates, windows and list_sort()."""

from __future__ import annotations

from itertools import product

import pytest

from fuseline.errors import InvalidQuery
from tests.compare import assert_same_as_duckdb, connected

TABLE = "create table t as select * from (values (1, 'ab'), (2, 'AB'), (3, null), (4, 'é')) v(i, s)"
QUERIES = """
select s from t order by s
select s from t order by s desc
select s from t order by s asc
select s from t order by s nulls last
select s from t order by s desc nulls first
select s, i from t order by all
select s from t order by all desc limit 2
select list(s order by s), list(i order by i), string_agg(s, ',' order by s desc), first(i order by s) from t
select i, row_number() over (order by s), lag(i) over (order by i), sum(i) over (order by s desc nulls last) from t order by i asc
select list_sort([3, null, 1]), list_sort([3, null, 1], 'desc'), list_sort([3, null, 1], 'asc'), list_sort([3, null, 1], 'desc', 'nulls first')
select list_reverse_sort([3, null, 1]), list_reverse_sort([3, null, 1], 'nulls last'), list_grade_up([3, null, 1]), array_sort([3, null, 1])
""".strip().splitlines()
PLACES = ("nulls_last", "nulls first", "sqlite", "postgres")


@pytest.mark.by_day
@pytest.mark.parametrize(("order", "nulls"), [*product(("asc", "descending"), PLACES)])
def test_what_names_no_direction(order: str, nulls: str) -> None:
    setup = [TABLE, f"set default_order = '{order}'", f"set default_null_order = '{nulls}'"]
    for query in QUERIES:
        assert_same_as_duckdb(query, setup=setup, ordered=True)


def test_another_order_holds_for_known_texts() -> None:
    with connected() as connection:
        connection.execute(TABLE)
        query = "select i from t order by s"
        asked = [connection.sql(query).fetchall()]
        connection.execute("set null_order = 'nulls_first'")
        asked.append(connection.sql(query).fetchall())
        connection.execute("reset default_null_order")
        asked.append(connection.sql(query).fetchall())
        assert [rows[0] for rows in asked] == [(2,), (3,), (2,)]
        assert connection.sql("select current_setting('default_null_order')").fetchone() == (
            "NULLS_LAST",
        )


def test_other_words_are_refused() -> None:
    with connected() as connection:
        with pytest.raises(InvalidQuery, match="default_order does not take 'up': expected asc"):
            connection.execute("set default_order = 'up'")
        with pytest.raises(InvalidQuery, match="expected nulls_first, nulls_last"):
            connection.execute("set default_null_order = 'middle'")
