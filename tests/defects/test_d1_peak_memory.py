"""What a process takes under memory_limit: each kind of query that needs more, in a process of its own, measured by the kernel."""

from pathlib import Path

import pytest

from benchmarks.micro.limits import _duckdb, _fuseline, in_a_process
from tests.compare import difference, ordering
from tests.defects.test_d1_one_budget import QUERIES, N

ROWS = 4_000_000
LIMIT = CACHE = 64_000_000
MORE = 100_000_000  # bytes beside the limits and what a small query takes
TIMES = ROWS // N


def larger(query: str) -> str:
    """The query over more rows; pairs of few rows with few are as they are."""
    for rows in (N, N - 9, N - 20):
        query = query.replace(str(rows), str(rows + ROWS - N))
    return query.replace("% 5000 ", f"% {5000 * TIMES} ")


@pytest.mark.nightly
@pytest.mark.parametrize("name", QUERIES)
def test_a_process_keeps_to_its_limits(name: str, tmp_path: Path) -> None:
    query = larger(QUERIES[name])
    settings = {"memory_limit": str(LIMIT), "column_cache_limit": str(CACHE)}
    expected, *_ = in_a_process(_duckdb, {}, {}, query, 1)
    answer, _, small, most = in_a_process(_fuseline, settings, {}, query, 2)
    assert not isinstance(answer, str), answer
    order = ordering(query, expected.column_names)
    assert difference(expected, answer, order, exact_types=False) is None
    assert most <= small + LIMIT + CACHE + MORE
