"""Kernels that go through their rows in steps: results carry over from call to call, and in between a query stops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fuseline.codegen.cpu import host_functions
from fuseline.errors import Interrupted
from tests.codegen.fused import assert_fused
from tests.compare import connected
from tests.limits import SetLimits

ROWS = 3000
RANDOM = np.random.default_rng(7)
TABLES = {
    "t": {
        "a": RANDOM.integers(-100, 100, ROWS),
        "k": RANDOM.integers(0, 50, ROWS),
        "x": RANDOM.integers(0, 1000, ROWS) / 8,
        "wide": RANDOM.integers(0, 1 << 40, ROWS),
    },
    "u": {"k": [i % 60 for i in range(600)], "b": list(range(600))},
}
QUERIES = [
    "select sum(a), min(a), max(x), count(*), avg(x) from t where k > 3",
    "select k, sum(a), min(x), count(*) from t group by k",
    "select a, k, wide % 4096, count(*) from t group by all",
    "select a, x from t where a > 90",
    "select count(*), sum(b), max(a) from t join u on t.k = u.k",
    "select t.k, sum(b), min(b) from t join u on t.k = u.k where a > 0 group by t.k",
    "select a, b from t join u on t.k = u.k where b > 590",
    "select b, count(*) from u join t on t.k = u.k and t.a > 10 group by b",
    "select sum(a) from t where k in (select k from u where b > 570)",
]


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch, limits: SetLimits) -> Iterator[list[float]]:
    """Steps of 64 rows, or fewer where a clock says that they took long; the list is that clock."""
    limits(host_functions__FIRST_ROWS=64, host_functions__MOST_ROWS=64)
    clock = [0.0]

    def now() -> float:
        clock[0] += 0.015
        return clock[0]

    monkeypatch.setattr(host_functions.time, "perf_counter", now)
    return clock


@pytest.mark.by_day(2)
@pytest.mark.parametrize("query", QUERIES)
def test_results_carry_over(query: str, short: list[float]) -> None:
    assert_fused(query, TABLES)


def test_long_steps_become_shorter_and_short_ones_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = iter([0.001, 0.001, 0.1, 0.1, 0.01] + [0.01] * 1000)
    clock, sizes = [0.0], []
    monkeypatch.setattr(host_functions.time, "perf_counter", lambda: clock[0])

    def kernel(start: int, end: int) -> int:
        clock[0] += next(taken)
        sizes.append(end - start)
        return 1

    assert host_functions.in_steps(kernel, 0, 4 << 20) == len(sizes)
    first, most = host_functions.FIRST_ROWS, host_functions.MOST_ROWS
    assert sizes[:6] == [first, 4 * first, most, most // 4, most // 16, most // 16]
    assert sum(sizes) == 4 << 20


@pytest.mark.parametrize("query", QUERIES)
def test_a_stop_between_steps(query: str, monkeypatch: Any, limits: SetLimits) -> None:
    limits(host_functions__FIRST_ROWS=64, host_functions__MOST_ROWS=64)
    with connected(TABLES, fuse="always") as connection:
        expected = connection.sql(query).to_arrow()
        calls = []
        done = host_functions.Pace.done

        def stop(self: Any) -> None:
            calls.append(1)
            if len(calls) == 5:
                connection.interrupt()
            done(self)

        monkeypatch.setattr(host_functions.Pace, "done", stop)
        with pytest.raises(Interrupted):
            connection.sql(query).to_arrow()
        assert len(calls) == 5
        monkeypatch.undo()
        assert connection.sql(query).to_arrow().num_rows == expected.num_rows
