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
    accumulators=[SimpleNamespace(fold="add"), SimpleNamespace(fold="min")]
)


def part(*numbers: int) -> tuple[Any, list[Any]]:
    found = np.array(numbers, np.int64)
    return found, [found * 0 + 1, found * 10]


@pytest.mark.parametrize("parts", [
    [(), ()], [(1, 5)], [(1, 5), (7, 9)], [(1, 5), (5, 9)], [(1, 5), (5,), (5, 6)], [(1, 5), (), (5, 6), ()],
    [(4,), (4,), (4,)], [(1, 5), (1, 5)], [(5, 9), (1, 5)], [(1, 9), (2, 3), (3, 8)],
])  # fmt: skip
def test_groups_of_several_ranges(parts: list[tuple[int, ...]]) -> None:
    numbers, (counts, least) = merged(ADDS_AND_MINS, [part(*p) for p in parts])
    everything = [n for p in parts for n in p]
    assert numbers.tolist() == sorted(set(everything))
    assert counts.tolist() == [everything.count(n) for n in numbers]
    assert least.tolist() == [10 * n for n in numbers]


@pytest.mark.parametrize("order", ["ascending", "random", "each twice"])
def test_many_groups_of_many_ranges(limits: SetLimits, order: str) -> None:
    limits(ROWS_A_RANGE=50_000)
    rows = 300_000
    keys = np.random.default_rng(1).permutation(rows) if order == "random" else np.arange(rows)
    keys = keys // 2 if order == "each twice" else keys
    table = pa.table({"k": keys, "v": np.arange(rows), "f": np.arange(rows) * 0.5})
    query = "select k, count(*), sum(v), min(v), max(f), avg(f) from t where v > 7 group by k"
    assert_fused(query, {"t": table})
