"""Joins on any condition with a table of few rows, which kernels compare with each row of the other side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.codegen.fused import BOTH, assert_fused_joins
from tests.codegen.simulated import Simulate
from tests.compare import assert_same_as_duckdb

BANDS = "(values ('low', 0, 30), ('middle', 20, 70), ('none', null, 5), ('high', 70, 1000)) as b(band, low, high)"


def rows(count: int = 2000) -> dict[str, Any]:
    draw = np.random.default_rng(2)
    x = draw.integers(-20, 120, count)
    return {
        "t": pa.table(
            {
                "k": pa.array(np.arange(count)),
                "x": pa.array(x, mask=np.arange(count) % 13 == 1),
                "g": pa.array([f"g{i % 5}" for i in range(count)]),
            }
        ),
        "u": pa.table({"n": pa.array([3, 50, None, 60]), "w": ["a", "b", "c", None]}),
    }


QUERIES = [
    f"select band, count(*), sum(x) from t, {BANDS} where x >= low and x < high group by band",
    f"select k, band from {BANDS} join t on x between low and high where k % 7 < 3",
    "select w, g, count(*), sum(x * n) from t, u group by w, g",
    "select w, count(*), count(n) from t left join u on x > n and k <> 3 group by w",
    "select g, count(*) from t where exists (select 1 from u where x < n) group by g",
    "select g, count(*) from t where not exists (select 1 from u where x < n or x > n + 40) group by g",
    "select count(*), sum(a.n), sum(b.n) from t, u as a, u as b where x > a.n and (a.n < b.n or x = b.n)",
]  # fmt: skip


@pytest.mark.parametrize("query", QUERIES)
def test_any_condition(query: str) -> None:
    assert_fused_joins(query, rows())


@pytest.mark.parametrize("query", QUERIES)
def test_any_condition_on_a_gpu(query: str, simulate: Simulate) -> None:
    simulate(query, rows(300))


@pytest.mark.parametrize(
    "few", ["(select n, w from u where n > 1000)", "(select n, w from u where n = 50)"]
)
def test_none_and_one(few: str) -> None:
    assert_same_as_duckdb(
        f"select w, count(*) from t, {few} as f where x > n group by w", rows(), fuse=BOTH
    )
    assert_same_as_duckdb(
        f"select w, count(*) from t left join {few} as f on x > n group by w", rows(), fuse=BOTH
    )


def test_what_no_kernel_compares() -> None:
    query = "select w, count(*) from t, u where g like '%' || n or w < g group by w"
    assert_same_as_duckdb(query, rows(), fuse=BOTH)
