"""What a process takes under memory_limit: each kind of query that needs more, in a process of its own, measured by the kernel."""

import pytest

from benchmarks.micro.limits import _duckdb, _fuseline, in_a_process
from tests.compare import difference, ordering
from tests.defects.test_d1_one_budget import QUERIES, N

ROWS = 4_000_000
LIMIT = 64_000_000  # of a query, and of the column cache
MORE = 100_000_000  # bytes beside the limits and what a small query takes
TIMES = ROWS // N

MANY = 20_000_000
KEYS = f"select x * 7919 % {MANY} as k from range({MANY}) t(x)"
SORTS = {
    "numbers": f"select sum(k * n) from (select k, 1 as n from ({KEYS}) order by k desc offset 7)",
    "texts": f"select sum(length(s)) from (select 'a longer text ' || k as s from ({KEYS}) order by s offset 7)",
    "distinct": f"select sum(k) from (select distinct k from ({KEYS}) order by k offset 5)",
    "first": f"select count(*), sum(k) from (select k from ({KEYS}) order by k limit 1000000)",
    "intersect": f"select count(*) from (select k from ({KEYS}) intersect select x * 2 from range({MANY}) b(x))",
}


def larger(query: str) -> str:
    """The query over more rows; pairs of few rows with few are as they are."""
    for rows in (N, N - 9, N - 20):
        query = query.replace(str(rows), str(rows + ROWS - N))
    return query.replace("% 5000 ", f"% {5000 * TIMES} ")


@pytest.mark.nightly
@pytest.mark.parametrize("name", QUERIES)
def test_a_process_keeps_to_its_limits(name: str) -> None:
    query = larger(QUERIES[name])
    check(query, LIMIT, 2)


@pytest.mark.nightly
@pytest.mark.parametrize("name", SORTS)
def test_a_process_that_sorts_many_rows_keeps_to_its_limits(name: str) -> None:
    check(SORTS[name], 100_000_000, 1)


def check(query: str, limit: int, runs: int) -> None:
    settings = {"memory_limit": str(limit), "column_cache_limit": str(limit)}
    expected, *_ = in_a_process(_duckdb, {}, {}, query, 1)
    answer, _, small, most = in_a_process(_fuseline, settings, {}, query, runs)
    assert not isinstance(answer, str), answer
    order = ordering(query, expected.column_names)
    assert difference(expected, answer, order, exact_types=False) is None
    assert most <= small + 2 * limit + MORE
