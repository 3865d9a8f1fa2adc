"""Groups that ranges of rows have met, put together."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuseline.codegen.cpu.sparse_groups import merged
from tests.codegen.fused import assert_fused
from tests.limits import SetLimits

ADDS_AND_MINS: Any = SimpleNamespace(
    accumulators=[SimpleNamespace(fold="add"), SimpleNamespace(fold="min")],
    grouping=SimpleNamespace(rows=0),
)


def part(*numbers: int) -> tuple[Any, list[Any]]:
    found = np.array(numbers, np.int64)
    return found, [found * 0 + 1, found * 10]


def whole(*numbers: int) -> tuple[None, list[Any]]:
    """All ten groups of a domain, of which these were met."""
    met = np.isin(np.arange(10), numbers)
    return None, [met.astype(np.int64), np.where(met, np.arange(10) * 10, 1 << 40)]


@pytest.mark.parametrize("parts", [
    [(), ()], [(1, 5)], [(1, 5), (7, 9)], [(1, 5), (5, 9)], [(1, 5), (5,), (5, 6)], [(1, 5), (), (5, 6), ()],
    [(4,), (4,), (4,)], [(1, 5), (1, 5)], [(5, 9), (1, 5)], [(1, 9), (2, 3), (3, 8)],
])  # fmt: skip
def test_groups_of_several_ranges(parts: list[tuple[int, ...]]) -> None:
    numbers, (counts, least) = merged(ADDS_AND_MINS, [part(*p) for p in parts])
    assert numbers is not None
    everything = [n for p in parts for n in p]
    assert numbers.tolist() == sorted(set(everything))
    assert counts.tolist() == [everything.count(n) for n in numbers]
    assert least.tolist() == [10 * n for n in numbers]


@pytest.mark.parametrize("parts", [[(1, 5)], [(1, 5), (1, 5, 7)], [(), (2,)], [(9,), (0, 9), (3,)]])
def test_ranges_that_have_all_groups(parts: list[tuple[int, ...]]) -> None:
    numbers, (counts, least) = merged(ADDS_AND_MINS, [whole(*p) for p in parts])
    assert numbers is None
    everything = [n for p in parts for n in p]
    assert counts.tolist() == [everything.count(n) for n in range(10)]
    assert [n for n in range(10) if least[n] == 10 * n] == sorted(set(everything))


def test_a_range_that_has_all_groups_beside_others() -> None:
    numbers, (counts, least) = merged(ADDS_AND_MINS, [whole(1, 5, 9), part(2, 5), whole()])
    assert numbers is not None
    assert (numbers.tolist(), counts.tolist()) == ([1, 2, 5, 9], [1, 1, 2, 1])
    assert least.tolist() == [10, 20, 50, 90]


def test_a_condition_on_many_groups_that_all_ranges_meet(limits: SetLimits) -> None:
    limits(ROWS_A_RANGE=50_000)
    rows = 300_000
    draw = np.random.default_rng(4)
    keys = pa.array(draw.integers(0, 100_000, rows), mask=np.arange(rows) % 97 == 5)
    table = pa.table(
        {"k": keys, "s": pa.array([f"s{i % 3}" for i in range(rows)]), "v": np.arange(rows)}
    )
    query = "select k, s, count(*), stddev(v), min(v), sum(v) / 2 from t group by k, s having count(*) > 3 and max(v) < 299000"
    assert_fused(query, {"t": table})
    assert_fused(f"{query} order by sum(v) desc, k limit 7", {"t": table})


@pytest.mark.parametrize("order", ["ascending", "random", "each twice"])
def test_many_groups_of_many_ranges(limits: SetLimits, order: str) -> None:
    limits(ROWS_A_RANGE=50_000)
    rows = 300_000
    keys = np.random.default_rng(1).permutation(rows) if order == "random" else np.arange(rows)
    keys = keys // 2 if order == "each twice" else keys
    table = pa.table({"k": keys, "v": np.arange(rows), "f": np.arange(rows) * 0.5})
    query = "select k, count(*), sum(v), min(v), max(f), avg(f) from t where v > 7 group by k"
    assert_fused(query, {"t": table})
