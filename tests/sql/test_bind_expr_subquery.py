"""Lists and queries as operands: x IN l, x = ANY (l), ARRAY(SELECT ...), and lists of parts."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.compare import assert_same_as_duckdb

LISTS = "(values (1, [1, 2]), (3, [1, null]), (null, [null]), (4, []), (5, null)) as t(i, l)"


@pytest.mark.parametrize(
    "query",
    [
        f"select i, i in l, i not in l from {LISTS} order by i",
        "select 1 in [null, 2], null in [1], 1 in null::int[], 2 in [1] || [2], 'a' in 'cab'",
        f"select i, i = any(l), i <> all(l), i < some(l), i >= all(l) from {LISTS} order by i",
        "select 1 = any([]), 1 = all([]), 3 = all([3, 3]), 1 = any([null, 2]), (1, 2) = any([(1, 2)])",
        "select i from range(5) as t(i) where i = any([1, 3]) and i not in [3] order by i",
        f"select cardinality(l) as n, typeof(cardinality(l)), i in (with x as (select 3 as a) select a from x) from {LISTS} order by i",
    ],
)
def test_values_are_looked_up_in_lists(query: str) -> None:
    """IN asks as contains() does, ANY and ALL as a query of the elements."""
    assert_same_as_duckdb(query)


@pytest.mark.parametrize(
    "query",
    [
        "select x, array(select i from range(x) as t(i) order by i desc) as a from (values (0), (3)) as t(x) order by x",
        "select len(array(select 1 where false)) as a, array(values (1), (2)) as b, array(from range(3)) as c",
        "select array(select 1), exists(from range(2)), array(from range(2))",
        "select array(select i from range(9) as t(i) where i % 2 = 0 order by i limit 3) as a",
    ],
)
def test_a_query_makes_a_list(query: str) -> None:
    assert_same_as_duckdb(query)


@pytest.mark.parametrize(
    "query",
    [
        "select date_part(['year', 'epoch', 'julian'], d) from (values (timestamp '2024-05-06 07:08:09'), (null)) as t(d)",
        "select datepart(['YEAR', 'y'], date '2024-05-06'), date_part(['hour'], interval 3 hours)",
        "select m.b, m.c, (map {'a': 1}).a from (select map {'b': 1} as m)",
        "select {'a': 1} || 'x', concat(map {1: 2}, null, 'x'), typeof({'key': 1, 'a b': 2, 'A': 3})",
        "select [1, 2, 3][1:3:2], [1, 2, 3][:2], array[1, 2], array[[1], [2]][1][1]",
    ],
)
def test_parts_and_texts_of_nested_values(query: str) -> None:
    assert_same_as_duckdb(query)


def test_items_of_returning_have_duckdbs_names() -> None:
    setup = ["create table t (id int, v int)", "insert into t values (1, 2)"]
    query = "update t set v = 5 returning id, v * 2, (id, v), [v], v::varchar"
    assert_same_as_duckdb(query, setup=setup)


def test_csv_files_have_the_text_of_nested_values(tmp_path: Path) -> None:
    path = tmp_path / "nested.csv"
    rows = "select [1, 2] as l, {'a': 'x,y'} as s, (1, 'b') as r, map {1: 2} as m, null::int[] as n"
    copy = f"copy ({rows}) to '{path}'"
    assert_same_as_duckdb(
        "select content from read_text(getvariable('path'))",
        setup=[copy, f"set variable path = '{path}'"],
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select 1 in map {1: 2}", "list_contains"),
        ("select array[x for x in [1]]", "Syntax error"),
        ("select 1 = any(2)", "takes a list"),
        ("select array(select 1, 2)", "has 2 columns and 1 is expected"),
        ("select date_part([], date '2024-05-06')", "at least one part"),
        ("select date_part(['year', 'year'], date '2024-05-06')", "here are two"),
    ],
)
def test_what_is_no_operand(query: str, message: str) -> None:
    with pytest.raises(FuselineError, match=message):
        fuseline.connect(device="cpu").sql(query)
