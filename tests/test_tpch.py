"""The 22 TPC-H queries on every backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import tpch as suite
from tests.compare import assert_same_as_duckdb
from tests.conftest import SCALE

QUERIES = suite.queries(SCALE)


@pytest.mark.parametrize("name", QUERIES)
def test_tpch(name: str, tpch: Any, tpch_tables: dict[str, Path], backend: str) -> None:
    answer = assert_same_as_duckdb(QUERIES[name], tpch_tables, backend=backend, connection=tpch)
    assert answer.num_rows > 0
    if tpch.settings.fuse == "always" and backend == "cpu":
        assert_all_in_kernels(tpch, QUERIES[name])


def assert_all_in_kernels(connection: Any, query: str) -> None:
    """Operators answered no part of it; what compares few rows with one row may be an operator."""
    frame = connection.sql(query)
    frame.to_arrow()
    assert not [n.text for n in frame.profile.nodes if n.name == "HashJoin"]
    assert frame.profile.pipelines
    assert all(n.receipt is not None and n.receipt.fused for n in frame.profile.pipelines)


@pytest.mark.parametrize("scale", [1, 30, 3000])
def test_a_share_of_a_sum_has_room_at_every_scale(
    scale: float, tpch: Any, tpch_tables: dict[str, Path], backend: str
) -> None:
    """Q11 multiplies a sum of 38 digits by 0.0001 / scale, which has no end at most of them."""
    query = suite.queries(scale)["q11"]
    assert_same_as_duckdb(query, tpch_tables, backend=backend, connection=tpch)
