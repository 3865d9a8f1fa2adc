"""Windows on a GPU whose partitions and peers kernels find, of few rows too, as DuckDB answers them."""

from __future__ import annotations

import pytest

from tests.compare import assert_same_as_duckdb
from tests.limits import SetLimits

from .test_windows import QUERIES as WINDOWS
from .window_queries import table

pytestmark = pytest.mark.gpu
TABLES = {"t": table(300, 3), "none": table(0, 1), "one": table(1, 2)}
FRAMES = (
    "rows unbounded preceding", "range unbounded preceding", "groups between unbounded preceding and unbounded following",
    "rows between unbounded preceding and 1 following", "rows between unbounded preceding and 2 preceding",
    "rows between unbounded preceding and current row exclude ties",
)  # fmt: skip
CALLS = "sum(v), sum(u), sum(n), min(v), max(n), count(*), count(n), avg(v), bool_or(b), max(s), first_value(n), last_value(v)"
ORDERS = ("order by id", "partition by p order by k, id", "partition by q, s order by k desc nulls first, id")  # fmt: skip


@pytest.fixture(autouse=True)
def few_rows(limits: SetLimits) -> None:
    limits(MARKED_ROWS=1, packed_keys__LEAST_ROWS=1, to_host__MOST_BYTES=-1)


@pytest.mark.parametrize("query", WINDOWS)
def test_as_duckdb(query: str) -> None:
    assert_same_as_duckdb(query, TABLES, backend="gpu", fuse=("always",))


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("order", ORDERS)
def test_frames_that_begin_with_the_partition(order: str, frame: str) -> None:
    window = f"({order} {frame})"
    calls = ", ".join(f"{call} over w as c{i}" for i, call in enumerate(CALLS.split(", ")))
    assert_same_as_duckdb(
        f"select id, {calls} from t window w as {window}", TABLES, backend="gpu", fuse=("always",)
    )


@pytest.mark.parametrize("frame", FRAMES[1:3])
def test_rows_with_equal_keys(frame: str) -> None:
    calls = ", ".join(f"{call} over w as c{i}" for i, call in enumerate(CALLS.split(", ")[:-2]))
    query = f"select id, rank() over w as r, dense_rank() over w as d, {calls}"
    window = f"(partition by p order by k {frame})"
    assert_same_as_duckdb(
        f"{query} from t window w as {window}", TABLES, backend="gpu", fuse=("always",)
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("away", [0, 1, 3, 1000, -2])
def test_values_of_other_rows(order: str, away: int) -> None:
    query = f"select id, lag(v, {away}) over w as a, lead(s, {away}) over w as b, lag(n, {away}, -1) over w as c"
    assert_same_as_duckdb(
        f"{query} from t window w as ({order})", TABLES, backend="gpu", fuse=("always",)
    )
